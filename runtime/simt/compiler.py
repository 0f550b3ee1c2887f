"""A `gpu.func` as a list of steps: Python functions over a State, made once a kernel.

Each operation becomes one step by its line in a table (`ops_*.py`). A block becomes a `Body`, which also knows after
which step a value is no longer needed: a kernel may have thousands, of all lanes each.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

from ...dialects.mlir import ir
from .elements import Array, Element, constant, element_of, round_to
from .errors import KernelError
from .state import State

Step = Callable[[State], None]
Build = Callable[["Compiler", ir.Operation], Step]
Table = Mapping[str, Build]
TERMINATORS = ("scf.yield", "gpu.return", "scf.condition")


@dataclass(frozen=True)
class Body:
    """A block: its steps, each with the slots that are free after it, and the slots that its terminator names."""

    steps: Sequence[tuple[Step, tuple[int, ...]]]
    arguments: tuple[int, ...]
    results: tuple[int, ...]

    def run(self, state: State) -> None:
        """Runs the steps for the lanes that are active."""
        frame = state.frame
        for step, dead in self.steps:
            step(state)
            for slot in dead:
                frame[slot] = None


class Compiler:
    """Gives values their slots and blocks their bodies."""

    def __init__(self, table: Table, index_bits: int) -> None:
        self.index_bits = index_bits
        self.granule = 8
        self.constants: dict[int, Array] = {}
        self._table = table
        self._slots: dict[ir.Value, int] = {}
        self._used: set[int] = set()

    @property
    def template(self) -> list:
        """A frame with nothing but constants."""
        return [self.constants.get(slot) for slot in range(len(self._slots))]

    def define(self, value: ir.Value) -> int:
        """The slot of a value that an operation or a block makes."""
        return self._slots.setdefault(value, len(self._slots))

    def use(self, value: ir.Value) -> int:
        """The slot of an operand."""
        slot = self._slots[value]
        self._used.add(slot)
        return slot

    def uses(self, values: Sequence[ir.Value]) -> tuple[int, ...]:
        """The slots of operands."""
        return tuple(self.use(value) for value in values)

    def element(self, value: ir.Value) -> Element:
        """The element type of a scalar, a vector or a memref."""
        try:
            return element_of(value.type, self.index_bits)
        except KeyError as error:
            owner = value.owner.owner if isinstance(value.owner, ir.Block) else value.owner
            raise unsupported(owner.operation, f"no numbers of type {error.args[0]}", "elements.py") from None

    def memory_element(self, value: ir.Value) -> Element:
        """The element type of a memref that is accessed."""
        element = self.element(value)
        self.granule = min(self.granule, element.size)
        return element

    def constant(self, op: ir.Operation) -> None:
        """Puts a constant in the frame's template."""
        type_ = op.results[0].type
        self.constants[self.define(op.results[0])] = constant(op.attributes["value"], type_, self.index_bits)

    def body(self, block: ir.Block) -> Body:
        """The steps of a block."""
        own = {self.define(argument) for argument in block.arguments}
        arguments, results = tuple(self.define(argument) for argument in block.arguments), ()
        steps: list[tuple[Step, set[int]]] = []
        outer, at_end = self._used, set()
        for view in block.operations:
            op, self._used = view.operation, set()
            if op.name == "arith.constant":
                self.constant(op)
            elif op.name in TERMINATORS:
                results, at_end = self.uses(op.operands), self._used
            else:
                steps.append((self._build(op), self._used))
                own |= {self.define(result) for result in op.results}
                steps[-1][1].update(self.define(result) for result in op.results)
        everywhere = set(at_end).union(*(used for _, used in steps))
        self._used = outer | (everywhere - own)
        return Body(_with_ends(steps, own, at_end), arguments, results)

    def _build(self, op: ir.Operation) -> Step:
        if op.name not in self._table:
            where = f"ops_{op.name.partition('.')[0]}.py"
            raise unsupported(op, f"no operation '{op.name}'", where)
        return self._table[op.name](self, op)


def _with_ends(
    steps: Sequence[tuple[Step, set[int]]], own: set[int], at_end: set[int]
) -> list[tuple[Step, tuple[int, ...]]]:
    """Each step with the slots of the block's own values that nothing after it needs."""
    needed, result = set(at_end), []
    for step, used in reversed(steps):
        result.append((step, tuple((used & own) - needed)))
        needed |= used
    return result[::-1]


def unsupported(op: ir.Operation, what: str, file: str) -> KernelError:
    """What is missing, and the file that a line has to be added to."""
    return KernelError("unsupported", op, f"the checker has {what}; runtime/simt/{file} is where to add it")


def elementwise(function: Callable[..., Array]) -> Build:
    """An operation whose result is a function of its operands, lane by lane, rounded to its type."""

    def build(compiler: Compiler, op: ir.Operation) -> Step:
        return computed(compiler, op, function)

    return build


def computed(compiler: Compiler, op: ir.Operation, function: Callable[..., Array]) -> Step:
    """The step that puts `function` of the operands into the result's slot."""
    operands, result = compiler.uses(op.operands), compiler.define(op.results[0])
    element = compiler.element(op.results[0])
    if element.is_bfloat:
        exact = function
        function = lambda *values: round_to(element, exact(*values))  # noqa: E731
    if len(operands) == 1:
        (only,) = operands

        def unary(state: State) -> None:
            state.frame[result] = function(state.frame[only])

        return unary

    def step(state: State) -> None:
        frame = state.frame
        frame[result] = function(*[frame[slot] for slot in operands])

    return step
