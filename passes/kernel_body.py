"""What a kernel would compute, element by element, before any code exists.

`KernelBody` is a set of operations seen from its outputs. `trace` follows the elements that a schedule asks
for, through indexing maps, reshapes and gathers, down to the kernel's inputs, and reports every element-wise
*request* (a value at an index), the inputs' elements that are read, and the reductions met, by level: a
reduction of level n needs the results of reductions of level n - 1. Schedules decide by a trace what they
accept; `evaluate.py` emits code for the same requests.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field

from ..dialects.mlir import ir
from .access import moves_elements, pieces
from .errors import PassFailure
from .indexing import Form, Index, Loaded, of
from .structured import Generic

Request = tuple[ir.Value, Index]
ReductionPoint = Callable[[Generic], Sequence[Form] | None]

# Operations that give a tensor without reading one.
SOURCES = ("tensor.empty", "arith.constant")


def own_counters(_: Generic) -> None:
    """The reduction point of a schedule that gives every reduction a loop of its own."""


@dataclass
class Trace:
    """What a set of requests leads to."""

    requests: dict[Request, list[Request]] = field(default_factory=dict)
    reads: list[Request] = field(default_factory=list)
    reductions: list[Request] = field(default_factory=list)

    def levels(self) -> list[list[Request]]:
        """The reductions, those first that need no other."""
        depth: dict[Request, int] = {}
        reductions = set(self.reductions)
        for request in self._children_first():
            below = max((depth[child] for child in self.requests[request]), default=0)
            depth[request] = below + (request in reductions)
        count = max(depth.values(), default=0)
        return [[r for r in self.reductions if depth[r] == level + 1] for level in range(count)]

    def _children_first(self) -> list[Request]:
        order: list[Request] = []
        done: set[Request] = set()
        for root in self.requests:
            stack = [(root, False)]
            while stack:
                request, expanded = stack.pop()
                if expanded:
                    order.append(request)
                elif request not in done:
                    done.add(request)
                    stack.append((request, True))
                    stack.extend((child, False) for child in self.requests[request])
        return order


class KernelBody:
    """Operations that give `outputs`, down to the values that `is_input` accepts."""

    def __init__(
        self,
        outputs: Sequence[ir.Value],
        is_input: Callable[[ir.Value], bool],
        generics: dict[ir.Operation, Generic] | None = None,
    ) -> None:
        self.outputs = list(outputs)
        self.is_input = is_input
        self._generics = {} if generics is None else generics

    @classmethod
    def of_kernel(cls, kernel: ir.Operation) -> KernelBody:
        """The body of a fusion.kernel or a fusion.region."""
        operations = kernel.regions[0].blocks[0].operations
        outputs = list(operations[len(operations) - 1].operation.operands)
        return cls(outputs, lambda value: isinstance(value, ir.BlockArgument))

    def generic(self, op: ir.Operation) -> Generic:
        """The linalg.generic `op`, the same object at every call."""
        if op not in self._generics:
            self._generics[op] = Generic(op)
        return self._generics[op]

    def trace(self, requests: Sequence[Request], reduction_point: ReductionPoint = own_counters) -> Trace:
        """Follows `requests` to the inputs; raises UnsupportedError at an operation it can't follow."""
        trace = Trace()
        pending = list(requests)
        while pending:
            request = pending.pop()
            if request in trace.requests:
                continue
            children = self._children(request, trace, reduction_point)
            trace.requests[request] = children
            pending.extend(children)
        return trace

    def _children(self, request: Request, trace: Trace, reduction_point: ReductionPoint) -> list[Request]:
        value, index = request
        if self.is_input(value):
            trace.reads.append(request)
            return []
        if not isinstance(value.type, ir.RankedTensorType) or value.owner.name in SOURCES:
            return []
        op = value.owner.operation
        if op.name == "linalg.generic":
            generic = self.generic(op)
            if generic.reduction_dims:
                trace.reductions.append(request)
            return generic_reads(generic, value, index, reduction_point(generic))
        if moves_elements(op):
            return [(piece.value, piece.index) for piece in pieces(op, index)]
        if op.name == "fusion.random":
            return [(operand, ()) for operand in op.operands]
        raise UnsupportedError(op)


class UnsupportedError(PassFailure):
    """No schedule knows how to compute an element of this operation's result."""

    def __init__(self, op: ir.Operation) -> None:
        # Named operations of linalg are generic ones after fusion-normalize
        advice = "; run fusion-normalize first" if op.name.startswith("linalg.") else ""
        super().__init__(op.location, f"'{op.name}' can't be part of a kernel{advice}")


def generic_reads(generic: Generic, value: ir.Value, index: Index, reduction: Sequence[Form] | None) -> list[Request]:
    """The elements that one element of a linalg.generic's result needs (at one reduction point)."""
    number = ir.OpResult(value).result_number
    point = generic.dimensions(number, index, reduction)
    reads = [(operand, generic.input_index(k, point)) for k, operand in enumerate(generic.inputs)]
    if generic.reduction_dims or generic.reads_inits:
        reads.append((generic.inits[number], index))
    return reads + [_gather(op, point) for op in generic.gathers]


def _gather(op: ir.Operation, point: Sequence[Form]) -> Request:
    tensor, *indices = op.operands
    return tensor, tuple(_gather_index(op, number, value, point) for number, value in enumerate(indices))


def _gather_index(op: ir.Operation, number: int, value: ir.Value, point: Sequence[Form]) -> Form:
    if not isinstance(value, ir.BlockArgument) and value.owner.name == "linalg.index":
        return point[ir.IntegerAttr(value.owner.attributes["dim"]).value]
    return of(Loaded((op, number, tuple(point))))
