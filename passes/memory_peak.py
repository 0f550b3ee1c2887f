"""The most bytes that a function holds at once, once memory is planned.

Counted are intermediates and results, not arguments and constants, from the step that first touches them to
the last, or to the end if they are returned. Partial results of a reduction that was split are no tensors of the
program: like what a library call, or eager PyTorch's own reduction, keeps for its duration, they are a workspace,
which `workspace_bytes` counts by itself. What lies in a pool is counted by the byte, so that two buffers
in the same place (a kernel that overwrites its input) count once:

    pool   |--- a ---|--- b ---|         step 1: a            step 2: a + b
           |--- c, over a -----|         step 3: b | c, that is as many bytes as the longer one reaches
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import accumulate

from ..dialects import fusion
from ..dialects.mlir import ir
from .constants import number_of
from .covered import Covered, Range
from .memref_types import byte_size
from .reduction_split import is_partial

ALIASES = ("memref.reinterpret_cast", "memref.cast", "memref.subview")
NO_USE = (*ALIASES, "memref.view", "memref.dealloc")
"""They touch no memory: naming a part of a pool is no use of the pool."""

Home = tuple[ir.Value, int]
"""An allocation, and an offset in it."""


@dataclass
class _Buffer:
    home: Home
    size: int
    first: int
    last: int
    is_workspace: bool = False


def live_bytes(function: ir.Operation) -> list[int]:
    """The sum of live buffers at each operation of the function, workspaces apart."""
    steps = len(function.regions[0].blocks[0].operations)
    return _live([buffer for buffer in _buffers(function) if not buffer.is_workspace], steps)


def bytes_of(type_: ir.Type) -> int:
    """Bytes of a tensor or memref; what is neither is in no memory."""
    is_stored = isinstance(type_, ir.MemRefType | ir.RankedTensorType)
    return byte_size(type_) if is_stored else 0


def peak_bytes(function: ir.Operation) -> int:
    """The largest sum of live buffers at any step of the function, workspaces apart."""
    return _peak([buffer for buffer in _buffers(function) if not buffer.is_workspace])


def workspace_bytes(function: ir.Operation) -> int:
    """The largest sum of live partial results at any step of the function."""
    return _peak([buffer for buffer in _buffers(function) if buffer.is_workspace])


def _peak(buffers: Sequence[_Buffer]) -> int:
    """The most bytes that are in use at once."""
    return max(_live(buffers, max((buffer.last + 1 for buffer in buffers), default=0)), default=0)


def _live(buffers: Sequence[_Buffer], steps: int) -> list[int]:
    """The bytes in use at each step, each counted once."""
    ranges = _ranges(buffers)
    covered = Covered(ranges)
    starting: dict[int, list[Range]] = defaultdict(list)
    ending: dict[int, list[Range]] = defaultdict(list)
    for buffer, one in zip(buffers, ranges, strict=True):
        starting[buffer.first].append(one)
        ending[buffer.last + 1].append(one)
    found: list[int] = []
    for step in range(steps):
        for one in ending[step]:
            covered.remove(one)
        for one in starting[step]:
            covered.add(one)
        found.append(covered.bytes)
    return found


def _ranges(buffers: Sequence[_Buffer]) -> list[Range]:
    """Where the buffers are if all allocations stand behind one another."""
    extent: dict[ir.Value, int] = defaultdict(int)
    for buffer in buffers:
        allocation, offset = buffer.home
        extent[allocation] = max(extent[allocation], offset + buffer.size)
    start = dict(zip(extent, accumulate(extent.values(), initial=0), strict=False))
    first = [start[buffer.home[0]] + buffer.home[1] for buffer in buffers]
    return [(byte, byte + buffer.size) for byte, buffer in zip(first, buffers, strict=True)]


def _buffers(function: ir.Operation) -> list[_Buffer]:
    """Every buffer that the function makes, with the steps of its first and last use."""
    steps = [op.operation for op in function.regions[0].blocks[0].operations]
    found: dict[ir.Value, _Buffer] = {}
    for step, op in enumerate(steps):
        for operand in op.operands:
            buffer = found.get(operand)
            if buffer is not None and op.name not in NO_USE:
                buffer.first = step if buffer.first < 0 else buffer.first
                buffer.last = len(steps) if op.name == "func.return" else step
        for operand in _partial_results(op):
            if operand in found:
                found[operand].is_workspace = True
        _define(op, step, found)
    return [buffer for buffer in {id(one): one for one in found.values()}.values() if buffer.first >= 0]


def _partial_results(op: ir.Operation) -> list[ir.Value]:
    """The memory in which a kernel leaves partial results."""
    if not fusion.is_op(op, "kernel") or not len(op.regions[0].blocks):
        return []
    results = list(fusion.terminator(op).operands)
    outs = list(op.operands)[len(op.operands) - len(results) :]
    return [memory for memory, value in zip(outs, results, strict=True) if is_partial(value)]


def _define(op: ir.Operation, step: int, found: dict[ir.Value, _Buffer]) -> None:
    if _is_alias(op):
        if op.operands[0] in found:
            found[op.results[0]] = found[op.operands[0]]
    elif op.name == "memref.view":
        home = (op.operands[0], int(number_of(op.operands[1]) or 0))
        found[op.results[0]] = _Buffer(home, bytes_of(op.results[0].type), -1, -1)
    elif op.name == "memref.alloc":
        found[op.results[0]] = _Buffer((op.results[0], 0), bytes_of(op.results[0].type), -1, -1)
    elif fusion.is_op(op, "extern"):
        _define_results(op, step, found)


def _define_results(op: ir.Operation, step: int, found: dict[ir.Value, _Buffer]) -> None:
    """A library allocates its results, but for those that are operands it wrote."""
    tied = {result: operand for operand, result in fusion.tied_operands(op)}
    for number, result in enumerate(op.results):
        if number not in tied:
            found[result] = _Buffer((result, 0), bytes_of(result.type), step, step)
        elif op.operands[tied[number]] in found:
            found[result] = found[op.operands[tied[number]]]


def _is_alias(op: ir.Operation) -> bool:
    return op.name in ALIASES
