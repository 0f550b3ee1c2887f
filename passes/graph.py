"""The dependence graph of a function body, which both fusion passes decide on.

It is made of numbers, so that the algorithms are pure and fast. *Values* are the tensors that nodes
exchange: the function's arguments, constant tensors, and the results of nodes. *Nodes* are the operations
that a report counts, in source order. Free operations (`legality.is_free`) are parts of their users: a
value used through one is used by the node behind it.

    %0 = linalg.fill ins(%zero) outs(%e)          free
    %1 = linalg.generic ins(%a) outs(%0)          node 0, reads value 0 (%a), makes value 1
    %2 = tensor.expand_shape %1                   free
    %3 = linalg.generic ins(%2, %a) outs(%e)      node 1, reads values 1 and 0, makes value 2

Three things order nodes: a value that one makes and another reads; memory that one writes and another
touches (`after`); and effects, which keep source order among themselves (`after` again). A view, or the
result of a call that wrote its operand, is a value of its own in the *memory* of another value: it takes no
bytes and keeps them alive. Pure operations that nobody uses are nodes like all others: a fusion pass loses
nothing.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field

from ..dialects import fusion
from ..dialects.mlir import ir
from . import legality
from .errors import PassFailure
from .generics import is_generic
from .reduction_split import is_partial

NOMINAL_EXTENT = 128
"""What a dynamic dimension counts as where sizes are compared."""


@dataclass(frozen=True)
class Node:
    """An operation, the values it reads and makes, and the nodes that an effect puts before it."""

    op: ir.Operation
    reads: tuple[int, ...]
    makes: tuple[int, ...]
    after: tuple[int, ...]
    why_not_fusible: str | None

    @property
    def fusible(self) -> bool:
        return self.why_not_fusible is None


@dataclass
class Graph:
    """A function body; lists over values are indexed by a value's number, those over nodes by a node's."""

    block: ir.Block
    nodes: list[Node] = field(default_factory=list)
    values: list[ir.Value] = field(default_factory=list)
    numbers: dict[ir.Value, int] = field(default_factory=dict)
    sizes: list[int] = field(default_factory=list)
    makers: list[int] = field(default_factory=list)
    memory: list[int] = field(default_factory=list)
    readers: list[list[int]] = field(default_factory=list)
    written: set[int] = field(default_factory=set)
    returned: frozenset[int] = frozenset()
    constants: list[ir.Operation] = field(default_factory=list)
    free: dict[ir.Value, ir.Operation] = field(default_factory=dict)

    def is_intermediate(self, value: int) -> bool:
        """Whether the program allocates this value's memory: not a view, an argument or a constant."""
        return self.makers[value] >= 0 and self.memory[value] == value

    def predecessors(self, node: int) -> Iterator[int]:
        """The nodes that must come before a node (some may be named twice)."""
        yield from self.nodes[node].after
        for value in self.nodes[node].reads:
            if self.makers[value] >= 0:
                yield self.makers[value]


def functions(module: ir.Module | ir.Operation) -> Iterator[ir.Operation]:
    """The functions of a module that have a body, not those of modules inside it."""
    for op in module.operation.regions[0].blocks[0].operations:
        if op.operation.name == "func.func" and len(op.operation.regions[0].blocks):
            yield op.operation


def kernel_ops(module: ir.Module) -> list[ir.Operation]:
    """The fusion.kernel of a module's functions, in order."""
    operations = (op for function in functions(module) for op in function.regions[0].blocks[0].operations)
    return [op.operation for op in operations if fusion.is_op(op, "kernel")]


def generic_ops(module: ir.Module) -> list[ir.Operation]:
    """The linalg.generic of a module's functions, in order."""
    blocks = (block for function in functions(module) for block in function.regions[0].blocks)
    return [view.operation for block in blocks for view in block.operations if is_generic(view)]


def erase_unused(block: ir.Block, removable: Callable[[ir.Operation], bool]) -> None:
    """Erases operations of a block whose results nobody uses, and then those that only served them."""
    for op in reversed([view.operation for view in block.operations]):
        if removable(op) and not any(True for result in op.results for _ in result.uses):
            op.erase()


def build(function: ir.Operation) -> Graph:
    """The dependence graph of a function of one block."""
    blocks = list(function.regions[0].blocks)
    if len(blocks) != 1:
        raise PassFailure(function.location, f"fusion needs a function of one block, got {len(blocks)}")
    reject_memory(blocks[0])
    return _Builder(Graph(blocks[0])).build()


def reject_memory(block: ir.Block) -> None:
    """PassFailure at the first linalg operation that isn't on tensors."""
    for op in block.operations:
        reason = legality.why_not_on_tensors(op.operation)
        if reason is not None:
            raise PassFailure(op.operation.location, reason)


def size_of(type_: ir.Type) -> int:
    """Bytes of a value, 0 for what is not in memory."""
    if not isinstance(type_, ir.RankedTensorType):
        return 0
    elements = 1
    for number, extent in enumerate(type_.shape):
        elements *= NOMINAL_EXTENT if type_.is_dynamic_dim(number) else extent
    return elements * _element_bytes(type_.element_type)


def _element_bytes(type_: ir.Type) -> int:
    if isinstance(type_, ir.ComplexType):
        return 2 * _element_bytes(type_.element_type)
    if isinstance(type_, ir.FloatType | ir.IntegerType):
        return (type_.width + 7) // 8
    return 8


class _Builder:
    """Fills a graph in one walk over the block."""

    def __init__(self, graph: Graph) -> None:
        self.graph = graph
        self.roots: dict[ir.Value, tuple[int, ...]] = {}
        self.last_effect: int | None = None
        self.last_write: dict[int, int] = {}
        self.touched: dict[int, list[int]] = {}

    def build(self) -> Graph:
        for argument in self.graph.block.arguments:
            self._add_value(argument, -1)
        for op in self.graph.block.operations:
            self._add_operation(op.operation)
        return self.graph

    def _add_operation(self, op: ir.Operation) -> None:
        if op.name in ("func.return", "fusion.yield"):
            self.graph.returned = frozenset(self._values_of(op.operands))
        elif legality.is_kept_constant(op):
            self.graph.constants.append(op)
            self._add_value(op.results[0], -1)
        elif legality.is_free(op):
            reads = self._values_of(used_values(op))
            for result in op.results:
                self.roots[result] = reads
                self.graph.free[result] = op
        else:
            self._add_node(op)

    def _add_node(self, op: ir.Operation) -> None:
        graph = self.graph
        index = len(graph.nodes)
        reads = self._values_of(used_values(op))
        sources = _memory_sources(op)
        makes = tuple(self._add_value(result, index, sources.get(number)) for number, result in enumerate(op.results))
        for value in reads:
            graph.readers[value].append(index)
        after = self._order(index, op, reads)
        graph.nodes.append(Node(op, reads, makes, after, legality.why_not_fusible(op)))

    def _add_value(self, value: ir.Value, maker: int, source: ir.Value | None = None) -> int:
        graph = self.graph
        number = len(graph.values)
        graph.values.append(value)
        graph.numbers[value] = number
        graph.sizes.append(0 if is_partial(value) else size_of(value.type))
        graph.makers.append(maker)
        roots = () if source is None else self.roots[source]
        graph.memory.append(graph.memory[roots[0]] if len(roots) == 1 else number)
        graph.readers.append([])
        self.roots[value] = (number,)
        return number

    def _values_of(self, operands: Sequence[ir.Value]) -> tuple[int, ...]:
        """The values behind `operands`, each once, in order of first use."""
        return tuple(dict.fromkeys(number for operand in operands for number in self.roots[operand]))

    def _order(self, index: int, op: ir.Operation, reads: tuple[int, ...]) -> tuple[int, ...]:
        """The nodes that effects put before node `index`, and notes what it does for those that follow."""
        after: list[int] = []
        effects = fusion.extern_effects(op) if op.name == "fusion.extern" else ()
        opaque = "opaque" in effects or legality.has_unknown_effect(op)
        if effects or opaque:
            after += [] if self.last_effect is None else [self.last_effect]
            self.last_effect = index
        touched = {self.graph.memory[value] for value in reads}
        for memory in touched:
            after += [self.last_write[memory]] if memory in self.last_write else []
        for memory in touched if opaque else self._written(op):
            after += self.touched.get(memory, [])
            self.last_write[memory] = index
            self.graph.written.add(memory)
            self.touched[memory] = []
        for memory in touched:
            self.touched.setdefault(memory, []).append(index)
        return tuple(dict.fromkeys(node for node in after if node != index))

    def _written(self, op: ir.Operation) -> set[int]:
        if op.name != "fusion.extern":
            return set()
        written = (op.operands[operand] for operand, _ in fusion.tied_operands(op))
        return {self.graph.memory[value] for value in self._values_of(list(written))}


def outer_uses(op: ir.Operation) -> Iterator[tuple[ir.Operation, int, ir.Value]]:
    """Where `op`, or one in its body, uses a value from outside `op`: user, operand number, value."""
    yield from ((op, number, operand) for number, operand in enumerate(op.operands))
    inner: set[ir.Value] = set()
    pending = [] if op.name.startswith("fusion.") else list(op.regions)
    while pending:
        for block in pending.pop().blocks:
            inner.update(block.arguments)
            for view in block.operations:
                nested = view.operation
                for number, operand in enumerate(nested.operands):
                    if operand not in inner:
                        yield nested, number, operand
                inner.update(nested.results)
                pending += nested.regions


def used_values(op: ir.Operation) -> list[ir.Value]:
    """The operands of `op`, then what its body uses from outside of it."""
    return [value for _, _, value in outer_uses(op)]


def _memory_sources(op: ir.Operation) -> dict[int, ir.Value]:
    """Result number to the operand in whose memory that result is."""
    if op.name == "fusion.view":
        return {0: op.operands[0]}
    if op.name != "fusion.extern":
        return {}
    return {result: op.operands[operand] for operand, result in fusion.tied_operands(op)}
