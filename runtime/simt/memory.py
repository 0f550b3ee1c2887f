"""Memory as kernels see it, and the checks of each access.

A `Segment` is memory with a shadow: which bytes were ever written, who read and wrote what. A `MemRef` is what an MLIR
memref is, a typed view of a segment; a block's shared memory is a segment for all blocks of a batch, in which each lane
starts at its own block's part.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np

from ...dialects.mlir import ir
from .elements import Array, Element, decode, encode
from .errors import KernelError, Kind, threads_text
from .grid import Grid
from .shadow import Accesses
from .state import Active, State

POISON = 0xA7
"""What bytes hold that nobody has written: another value in them means that someone else has, such as a library."""
BASE = 16
"""Bytes: the alignment of a segment's first byte."""


@dataclass(frozen=True, eq=False)
class Segment:
    """Bytes from an address on.

    `written` has a byte a byte, 1 where it was written; None if all were. `accesses` are the reads and the writes;
    None where no two lanes can meet.
    """

    data: Array
    address: int
    granule: int
    written: Array | None = None
    accesses: tuple[Accesses, Accesses] | None = None

    @staticmethod
    def fresh(size: int, granule: int, grid: Grid | None, address: int = 0) -> Segment:
        """New memory, that nobody has written; of a grid's blocks, or, for None, of a thread each."""
        size = math.ceil(size / BASE) * BASE
        data = np.full(size, POISON, np.uint8)
        return Segment(data, address, granule, np.zeros(size, np.uint8), tracked(size, granule, grid) if grid else None)


def tracked(size: int, granule: int, grid: Grid) -> tuple[Accesses, Accesses]:
    """Shadows of `size` bytes, for reads and for writes."""
    return Accesses(size // granule, grid), Accesses(size // granule, grid)


@dataclass(frozen=True, eq=False)
class MemRef:
    """A memref: elements with sizes and strides, from `offset` bytes after `base` on.

    `base` is a lane's own part of the segment, `limit` bytes long; both `base` and `offset` are int64, a lane each or
    one for all.
    """

    segment: Segment
    base: Array
    limit: int
    offset: Array
    shape: tuple[int, ...]
    strides: tuple[int, ...]
    element: Element

    def moved(self, offset: Array, shape: Sequence[int], strides: Sequence[int], element: Element | None = None):
        """Another view, so many bytes further on."""
        return replace(
            self,
            offset=self.offset + offset,
            shape=tuple(shape),
            strides=tuple(strides),
            element=element or self.element,
        )


@dataclass(frozen=True)
class Access:
    """A load or a store: the operation, the sizes of the vector it moves (none: a scalar), its alignment in bytes."""

    op: ir.Operation
    vector: tuple[int, ...]
    alignment: int | None


def load(state: State, access: Access, memory: MemRef, indices: Sequence[Array], active: Active) -> Array:
    """What `active` lanes read; other lanes get 0."""
    elements = _elements(access, memory, indices, active)
    segment, size = memory.segment, memory.element.size
    _check_written(access, segment, elements, size, active)
    _check_read(access, segment, elements, size, active)
    stored = segment.data.view(memory.element.memory)[elements]
    return active.spread(decode(memory.element, stored))


def store(
    state: State, access: Access, memory: MemRef, indices: Sequence[Array], values: Array, active: Active
) -> None:
    """Writes the values of `active` lanes."""
    elements = _elements(access, memory, indices, active)
    segment, size = memory.segment, memory.element.size
    new = encode(memory.element, active.pick(values))
    count = max(len(new), len(elements), len(active.lanes) if segment.accesses else 1)
    elements = np.broadcast_to(elements, (count, *access.vector))
    bits = np.ascontiguousarray(np.broadcast_to(new, elements.shape)).view(f"u{size}")
    _write(access, segment, elements, bits, active)
    if segment.written is not None:
        segment.written.view(bits.dtype)[elements] = _pattern(1, size)


def forget(state: State, access: Access, memory: MemRef, indices: Sequence[Array], active: Active) -> None:
    """Says that `active` lanes will write there, and that until then it holds what nobody wrote."""
    elements = _elements(access, memory, indices, active)
    segment, size = memory.segment, memory.element.size
    elements = np.broadcast_to(elements, (len(active.lanes), *access.vector))
    _write(access, segment, elements, np.full(elements.shape, _pattern(POISON, size), f"u{size}"), active)
    if segment.written is not None:
        segment.written.view(f"u{size}")[elements] = 0


def check_complete(function: ir.Operation, number: int, memory: MemRef) -> None:
    """Raises unless a launch, which is over, wrote every element of an argument: no kernel leaves a part to others."""
    segment = memory.segment
    if segment.accesses is None or 0 in memory.shape:
        return
    size = memory.element.size
    first = (memory.base + memory.offset) // size
    elements = first.reshape(-1, *[1] * len(memory.shape)) + _within(memory.shape, memory.strides)
    parts = size // segment.granule
    missing = segment.accesses[1].last(elements.ravel() * parts) < 0
    if missing.any():
        where = ", ".join(str(int(part)) for part in np.unravel_index(np.flatnonzero(missing)[0], memory.shape))
        count = int(missing.sum())
        message = f"argument {number}: {count} of {missing.size} elements are never written, the first at [{where}]"
        raise KernelError("incomplete", function, message)


def report(kind: Kind, op: ir.Operation, message: str, active: Active, lanes: Array) -> KernelError:
    """A finding about some lanes, given by their numbers in the launch."""
    distinct = np.unique(lanes)
    return KernelError(kind, op, message, threads_text([active.batch.grid.place(distinct[0])], len(distinct)))


def _elements(access: Access, memory: MemRef, indices: Sequence[Array], active: Active) -> Array:
    """The numbers in the segment of the elements that each lane (or all alike) accesses, checked to be there."""
    offset = active.pick(memory.offset)
    for axis, (index, extent, stride) in enumerate(zip(indices, memory.shape, memory.strides, strict=True)):
        picked = active.pick(index)
        reach = access.vector[axis - len(indices)] if len(indices) - axis <= len(access.vector) else 1
        _check_index(access, picked, extent, reach, axis, active)
        offset = offset + picked.astype(np.int64) * (stride * memory.element.size)
    within = _within(access.vector, memory.strides)
    span = (int(within.max(initial=0)) + 1) * memory.element.size
    _check_bounds(access, offset, span, memory, active)
    first = active.pick(memory.base) + offset
    _check_alignment(access, memory, first, active)
    numbers = first // memory.element.size
    return numbers.reshape(-1, *[1] * len(access.vector)) + within


def _within(vector: tuple[int, ...], strides: Sequence[int]) -> Array:
    """Distances of a vector's elements from its first one."""
    distances = np.zeros(vector, np.int64)
    for axis, stride in zip(range(len(vector)), strides[len(strides) - len(vector) :], strict=True):
        shape = [1] * len(vector)
        shape[axis] = -1
        distances = distances + (np.arange(vector[axis]) * stride).reshape(shape)
    return distances


def _check_index(access: Access, index: Array, extent: int, reach: int, axis: int, active: Active) -> None:
    bad = (index < 0) | (index > extent - reach)
    if not bad.any():
        return
    which = int(np.flatnonzero(bad)[0])
    what = f"index {int(index[which])}" + (f" of a vector of {reach}" if reach > 1 else "")
    message = f"out of bounds: {what} in dimension {axis} of {extent} elements"
    raise report("bounds", access.op, message, active, _lanes_of(bad, active))


def _check_bounds(access: Access, offset: Array, span: int, memory: MemRef, active: Active) -> None:
    bad = (offset < 0) | (offset > memory.limit - span)
    if bad.any():
        message = f"out of bounds: byte {int(offset[bad][0])} and {span} bytes on, of memory of {memory.limit} bytes"
        raise report("bounds", access.op, message, active, _lanes_of(bad, active))


def _check_alignment(access: Access, memory: MemRef, first: Array, active: Active) -> None:
    needed = max(access.alignment or 0, memory.element.size)
    bad = (first + memory.segment.address) % needed != 0
    if bad.any():
        message = f"misaligned: {needed} bytes are promised"
        raise report("alignment", access.op, message, active, _lanes_of(bad, active))


def _check_written(access: Access, segment: Segment, elements: Array, size: int, active: Active) -> None:
    if segment.written is None:
        return
    unknown = segment.written.view(f"u{size}")[elements] != _pattern(1, size)
    if unknown.any():
        unknown &= segment.data.view(f"u{size}")[elements] == _pattern(POISON, size)
    bad = _any_in_vector(unknown)
    if bad.any():
        raise report("uninitialised", access.op, "reads what was never written", active, _lanes_of(bad, active))


def _check_read(access: Access, segment: Segment, elements: Array, size: int, active: Active) -> None:
    if segment.accesses is None:
        return
    reads, writes = segment.accesses
    where, lanes = _granules(segment, elements, size, active)
    bad = writes.unordered(where, lanes)
    if bad.any():
        raise _race(access, "reads what another thread writes", writes, where[bad], lanes[bad], active)
    reads.note(where, lanes)


def _write(access: Access, segment: Segment, elements: Array, bits: Array, active: Active) -> None:
    """Writes, and looks for races: several lanes may write one place if they write the same."""
    stored = segment.data.view(bits.dtype)
    if segment.accesses is None:
        stored[elements] = bits
        return
    reads, writes = segment.accesses
    where, lanes = _granules(segment, elements, bits.itemsize, active)
    bad = reads.unordered(where, lanes)
    if bad.any():
        raise _race(access, "writes what another thread reads", reads, where[bad], lanes[bad], active)
    changed = np.repeat((stored[elements] != bits).ravel(), bits.itemsize // segment.granule)
    bad = writes.unordered(where, lanes) & changed
    if bad.any():
        raise _race(access, "writes what another thread writes", writes, where[bad], lanes[bad], active)
    writes.note(where, lanes)
    stored[elements] = bits
    lost = np.repeat((stored[elements] != bits).ravel(), bits.itemsize // segment.granule)
    if lost.any():
        raise _race(access, "writes what another thread writes", writes, where[lost], lanes[lost], active)


def _race(access: Access, what: str, others: Accesses, where: Array, lanes: Array, active: Active) -> KernelError:
    """A race between one of `lanes` and whoever accessed the same place before."""
    other = active.batch.grid.place(others.last(where[:1])[0])
    return report("race", access.op, f"race: {what}, with no barrier in between ({other})", active, lanes)


def _granules(segment: Segment, elements: Array, size: int, active: Active) -> tuple[Array, Array]:
    """Pairs of a granule and the lane that accesses it."""
    lanes = active.lanes
    per_lane = np.broadcast_to(elements, (len(lanes), *elements.shape[1:])).reshape(len(lanes), -1)
    parts = size // segment.granule
    if parts > 1:
        per_lane = (per_lane[:, :, None] * parts + np.arange(parts)).reshape(len(lanes), -1)
    return per_lane.ravel(), np.repeat(lanes, per_lane.shape[1])


def _any_in_vector(flags: Array) -> Array:
    return np.any(flags.reshape(len(flags), -1), axis=1, keepdims=True)[:, 0]


def _lanes_of(bad: Array, active: Active) -> Array:
    return active.lanes if len(bad) == 1 else active.lanes[bad]


def _pattern(byte: int, size: int) -> int:
    return int.from_bytes(bytes([byte] * size), "little")
