"""May kernels of one batch run at once? Not if one writes memory that another touches.

fusion-batch sees to it, and fusion-plan-memory gives each what it needs; this is what asks once more, where memory is
known, for IR that came from elsewhere.
"""

from __future__ import annotations

import math
from collections import defaultdict
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from ..dialects.mlir import ir
from .errors import PassFailure
from .memref_types import element_bytes


@dataclass(frozen=True)
class _Access:
    """A kernel's use of bytes start to end of an allocation."""

    kernel: ir.Operation
    start: int
    end: int
    writes: bool

    def clashes(self, other: _Access) -> bool:
        apart = self.end <= other.start or other.end <= self.start
        return not apart and self.kernel != other.kernel and (self.writes or other.writes)


def refuse_shared_memory(kernels: Sequence[ir.Operation]) -> None:
    """PassFailure at a kernel that writes what another of the batch reads or writes."""
    if len(kernels) == 1:
        return
    by_allocation: dict[ir.Value, list[_Access]] = defaultdict(list)
    for kernel in kernels:
        for allocation, access in _accesses(kernel):
            by_allocation[allocation].append(access)
    for accesses in by_allocation.values():
        for access in (one for one in accesses if one.writes):
            if any(access.clashes(other) for other in accesses):
                raise PassFailure(access.kernel.location, "writes memory that another kernel of its batch uses")


def _accesses(kernel: ir.Operation) -> Iterator[tuple[ir.Value, _Access]]:
    ins = ir.DenseI32ArrayAttr(kernel.attributes["operandSegmentSizes"])[0]
    for number, operand in enumerate(kernel.operands):
        allocation, start, end = _extent(operand)
        yield allocation, _Access(kernel, start, end, number >= ins)


def _extent(memory: ir.Value) -> tuple[ir.Value, int, int]:
    """The allocation and the bytes in it that a memref may touch."""
    while not isinstance(memory, ir.BlockArgument) and memory.owner.name == "memref.reinterpret_cast":
        memory = memory.owner.operands[0]
    if isinstance(memory, ir.BlockArgument) or memory.owner.name != "memref.view":
        return memory, 0, 2**63
    pool, position = memory.owner.operands
    start = ir.IntegerAttr(position.owner.attributes["value"]).value
    return pool, start, start + math.prod(memory.type.shape) * element_bytes(memory.type.element_type)
