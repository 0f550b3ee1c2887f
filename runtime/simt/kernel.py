"""A kernel that can be launched: a `gpu.func`, compiled to steps, and the memory that a launch gives it.

A launch runs in batches of whole blocks, all lanes of a batch at once. Blocks of a batch advance together, which is one
of the orders that a GPU may choose; whether another order could give other results is what the checks are for.
"""

from __future__ import annotations

import copy
import ctypes
import math
import re
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace

import numpy as np

from ...dialects.mlir import ir
from ...dialects.walk import find
from . import ops_arith, ops_cluster, ops_copies, ops_gpu, ops_math, ops_memref, ops_scf, ops_vector
from .compiler import Compiler, unsupported
from .elements import Array, Element
from .errors import KernelError
from .grid import Batch, Grid, Size
from .memory import BASE, MemRef, Segment, check_complete, tracked
from .ops_memref import declared, layout_of, span
from .state import Active, State

TABLE = {
    **ops_arith.OPS,
    **ops_cluster.OPS,
    **ops_copies.OPS,
    **ops_gpu.OPS,
    **ops_math.LLVM_OPS,
    **ops_math.OPS,
    **ops_memref.OPS,
    **ops_scf.OPS,
    **ops_vector.OPS,
}
MOST_LANES = 1 << 15
VIEWS = ("memref.reinterpret_cast", "memref.cast", "memref.subview", "memref.view", "memref.assume_alignment")
STORED_OPERAND = {"memref.store": 1, "vector.store": 1}
ZERO = np.zeros(1, np.int64)

Written = Callable[[int, int], "Array | None"]
"""For an address and a number of bytes: a byte each, 1 where it was written; None where all were, or who knows."""


@dataclass(frozen=True)
class Parameter:
    """An argument of a kernel: memory if it has sizes, else a number."""

    element: Element
    shape: tuple[int, ...] = ()
    strides: tuple[int, ...] = ()
    offset: int = 0
    is_memory: bool = False
    is_written: bool = False

    @property
    def size(self) -> int:
        """Bytes from the base pointer to the last element."""
        return (self.offset + span(self.shape, self.strides)) * self.element.size if 0 not in self.shape else 0


class Kernel:
    """See the module's docstring. Raises a KernelError for an operation that the checker lacks."""

    def __init__(self, function: ir.Operation) -> None:
        block = function.regions[0].blocks[0]
        compiler = Compiler(TABLE, _index_bits(function))
        count = len(ir.FunctionType(ir.TypeAttr(function.attributes["function_type"]).value).inputs)
        self._function = function
        self._body = compiler.body(block)
        self._template = compiler.template
        self._granule = compiler.granule
        written = _written_arguments(function)
        arguments = list(block.arguments)
        self._parameters = [
            _parameter(function, value, compiler, written is None or value in written) for value in arguments[:count]
        ]
        self._cluster = _cluster_size(function)
        self._shared = list(_shared_memories(function, arguments[count:], compiler))

    def on(self, types: Sequence[str]) -> Kernel:
        """The same kernel on memory of these types, which say the sizes where the kernel's own leave them open."""
        sized = copy.copy(self)
        sized._parameters = [self._sized(*one) for one in zip(self._parameters, types, strict=True)]
        return sized

    def _sized(self, parameter: Parameter, type_: str) -> Parameter:
        if not parameter.is_memory:
            return parameter
        with self._function.context:
            shape, strides, offset = layout_of(self._function, ir.Type.parse(type_))
        return replace(parameter, shape=shape, strides=strides, offset=offset)

    def run(
        self, blocks: Size, threads: Size, arguments: Sequence[int | float], shared_bytes: int, written: Written
    ) -> None:
        """Runs all blocks; raises the first KernelError. Memory arguments are addresses in this process."""
        if blocks[0] % self._cluster:
            raise KernelError("launch", self._function, f"{blocks[0]} blocks are no whole clusters of {self._cluster}")
        grid = Grid.of(blocks, threads, self._cluster)
        given = _arguments(self._parameters, arguments, self._granule, grid, written)
        dynamic = SharedMemory(shared_bytes, (shared_bytes,), (1,), ops_gpu.BYTE, BASE)
        with np.errstate(all="ignore"):
            for batch in grid.batches(MOST_LANES):
                shared = [memory.allocate(batch, self._granule) for memory in (*self._shared, dynamic)]
                state = State(self._template.copy(), Active(batch), self._granule, shared)
                for slot, value in zip(self._body.arguments, [*given, *shared[:-1]], strict=True):
                    state.frame[slot] = value
                self._body.run(state)
                ops_cluster.check_end(state)
        for number, (parameter, memory) in enumerate(zip(self._parameters, given, strict=True)):
            if parameter.is_written and isinstance(memory, MemRef):
                check_complete(self._function, number, memory)


@dataclass(frozen=True)
class SharedMemory:
    """Memory that each block has."""

    size: int
    shape: tuple[int, ...]
    strides: tuple[int, ...]
    element: Element
    alignment: int

    def allocate(self, batch: Batch, granule: int) -> MemRef:
        """It, for the blocks of a batch, aligned no better than it says."""
        own = math.ceil(self.size / BASE) * BASE
        segment = Segment.fresh(own * batch.count, granule, batch.grid, self.alignment % BASE)
        return MemRef(segment, batch.block_numbers() * own, self.size, ZERO, self.shape, self.strides, self.element)


def _index_bits(function: ir.Operation) -> int:
    """How wide the module says that an index is."""
    attributes = function.parent.attributes
    found = re.search(r"index = (\d+)", str(attributes["dlti.dl_spec"]) if "dlti.dl_spec" in attributes else "")
    return int(found[1]) if found else 64


def _cluster_size(function: ir.Operation) -> int:
    if "known_cluster_size" not in function.attributes:
        return 1
    x, *others = ir.DenseI32ArrayAttr(function.attributes["known_cluster_size"])
    if others != [1, 1]:
        raise unsupported(function, "no clusters that are not along x", "grid.py")
    return x


def _parameter(function: ir.Operation, value: ir.Value, compiler: Compiler, is_written: bool) -> Parameter:
    element = compiler.element(value)
    if not isinstance(value.type, ir.MemRefType):
        return Parameter(element)
    shape, strides, offset = layout_of(function, value.type)
    return Parameter(element, shape, strides, offset, True, is_written)


def _shared_memories(function: ir.Operation, values: Sequence[ir.Value], compiler: Compiler) -> Iterator[SharedMemory]:
    notes = "workgroup_attrib_attrs"
    given = list(ir.ArrayAttr(function.attributes[notes])) if notes in function.attributes else []
    for number, value in enumerate(values):
        element = compiler.element(value)
        size, shape, strides = declared(function, value.type, element)
        note = ir.DictAttr(given[number]) if number < len(given) else {}
        alignment = ir.IntegerAttr(note["llvm.align"]).value if "llvm.align" in note else element.size
        yield SharedMemory(size, shape, strides, element, alignment)


def _written_arguments(function: ir.Operation) -> set[ir.Value] | None:
    """The memory that a kernel stores to; None where that can't be told from the IR."""
    stores = find(function, lambda op: op.name in STORED_OPERAND)
    roots = [_root(op.operands[STORED_OPERAND[op.name]]) for op in stores]
    known = {root for root in roots if root is not None}
    return None if any(root is None for root in roots) else known


def _root(memory: ir.Value) -> ir.Value | None:
    while not isinstance(memory, ir.BlockArgument):
        op = memory.owner.operation
        if op.name not in VIEWS:
            return memory if op.name in ("memref.alloca", "gpu.dynamic_shared_memory") else None
        memory = op.operands[0]
    return memory


def _arguments(
    parameters: Sequence[Parameter], arguments: Sequence[int | float], granule: int, grid: Grid, written: Written
) -> list[Array | MemRef]:
    """The values of the arguments; memory that overlaps is one segment."""
    pairs = list(zip(parameters, arguments, strict=True))
    ranges = [(int(given), int(given) + p.size, p.is_written) for p, given in pairs if p.is_memory]
    segments = [_segment(*merged, granule, grid, written) for merged in _merge(ranges)]
    return [_argument(parameter, given, segments) for parameter, given in pairs]


def _merge(ranges: Sequence[tuple[int, int, bool]]) -> list[tuple[int, int, bool]]:
    """Address ranges, those that overlap made one, which is written if one of them is."""
    merged: list[tuple[int, int, bool]] = []
    for start, end, is_written in sorted(ranges):
        if merged and start < merged[-1][1]:
            first, last, before = merged[-1]
            merged[-1] = (first, max(last, end), before or is_written)
        else:
            merged.append((start, end, is_written))
    return merged


def _segment(start: int, end: int, is_written: bool, granule: int, grid: Grid, written: Written) -> Segment:
    """Memory of this process as a segment. Its ends are rounded outwards; nobody looks there."""
    first, last = start // BASE * BASE, -(-end // BASE) * BASE
    bytes_ = np.ctypeslib.as_array((ctypes.c_uint8 * (last - first)).from_address(first))
    accesses = tracked(last - first, granule, grid) if is_written else None
    return Segment(bytes_, first, granule, written(first, last - first), accesses)


def _argument(parameter: Parameter, given: int | float, segments: Sequence[Segment]) -> Array | MemRef:
    if not parameter.is_memory:
        return np.array([given], parameter.element.register)
    address = int(given)
    segment = next(s for s in segments if s.address <= address and address + parameter.size <= s.address + len(s.data))
    base = np.array([address - segment.address])
    offset = np.array([parameter.offset * parameter.element.size])
    return MemRef(segment, base, parameter.size, offset, parameter.shape, parameter.strides, parameter.element)
