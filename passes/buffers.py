"""Where buffers go: lifetimes in, offsets out. Plain integers, no IR.

A program is a row of steps. A buffer is written by step `start`, read for the last time by step `end`, and
takes `size` bytes on all steps between, both included. Buffers whose lifetimes don't meet may share memory:

    step     0    1    2    3                       offset
    a        |====|                                 0
    b             |=========|                       1024
    c                  |====|                       0        c moves in where a was

`place` packs buffers into one block of memory: a sweep over the steps with a best-fit allocator, n log n.

`plan_pools` decides how many blocks. One block would live from the first writer to the last reader even
where little of it is used, while a library call allocates beside it; so a block is closed wherever nothing
is live, and one that would raise the total (everything allocated at the worst step) is split further. The
total is then never above what separate buffers, each freed after its last reader, would need.
"""

from __future__ import annotations

from bisect import bisect_left, insort
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field

import numpy as np

ALIGNMENT = 256


@dataclass(frozen=True)
class Buffer:
    """`size` bytes that are in use from step `start` to step `end`, both included."""

    start: int
    end: int
    size: int

    def meets(self, other: Buffer) -> bool:
        """Whether there is a step at which both are in use."""
        return self.start <= other.end and other.start <= self.end


@dataclass(frozen=True)
class Pool:
    """One allocation, and the offset of each buffer (by its number) in it."""

    start: int
    end: int
    size: int
    offsets: dict[int, int]


def align(size: int, alignment: int = ALIGNMENT) -> int:
    """The next multiple of the alignment."""
    return -(-size // alignment) * alignment


def place(buffers: Sequence[Buffer]) -> tuple[list[int], int]:
    """An offset for each buffer, multiples of ALIGNMENT, and the size of the block that holds them all.

    Never larger than the sum of the (aligned) sizes, and no two buffers that meet overlap.
    """
    arena = _Arena()
    offsets = [0] * len(buffers)
    departures = sorted(range(len(buffers)), key=lambda number: buffers[number].end)
    leaving = iter(departures)
    next_to_leave = next(leaving, None)
    for number in _arrival_order(buffers):
        while next_to_leave is not None and buffers[next_to_leave].end < buffers[number].start:
            arena.release(offsets[next_to_leave], align(buffers[next_to_leave].size))
            next_to_leave = next(leaving, None)
        offsets[number] = arena.take(align(buffers[number].size))
    return offsets, arena.top


def _arrival_order(buffers: Sequence[Buffer]) -> list[int]:
    """By first step; the largest first among those of one step, since they are the hardest to place."""
    return sorted(range(len(buffers)), key=lambda number: (buffers[number].start, -buffers[number].size))


@dataclass
class _Arena:
    """A best-fit allocator over [0, top): free blocks by size, and by either end to join neighbours."""

    top: int = 0
    by_size: list[tuple[int, int]] = field(default_factory=list)
    size_at: dict[int, int] = field(default_factory=dict)
    start_of_end: dict[int, int] = field(default_factory=dict)

    def take(self, size: int) -> int:
        if size == 0:
            return 0
        position = bisect_left(self.by_size, (size, 0))
        if position == len(self.by_size):
            return self._grow(size)
        available, offset = self.by_size[position]
        self._remove(offset)
        if available > size:
            self._add(offset + size, available - size)
        return offset

    def release(self, offset: int, size: int) -> None:
        if size == 0:
            return
        following = self.size_at.get(offset + size)
        if following is not None:
            self._remove(offset + size)
            size += following
        before = self.start_of_end.get(offset)
        if before is not None:
            size += self.size_at[before]
            self._remove(before)
            offset = before
        self._add(offset, size)

    def _grow(self, size: int) -> int:
        """Takes the free block at the top, if there is one, and as much new memory as it lacks."""
        offset = self.start_of_end.get(self.top, self.top)
        if offset != self.top:
            self._remove(offset)
        self.top = offset + size
        return offset

    def _add(self, offset: int, size: int) -> None:
        insort(self.by_size, (size, offset))
        self.size_at[offset] = size
        self.start_of_end[offset + size] = offset

    def _remove(self, offset: int) -> None:
        size = self.size_at.pop(offset)
        del self.start_of_end[offset + size]
        del self.by_size[bisect_left(self.by_size, (size, offset))]


def live_bytes(buffers: Sequence[Buffer], steps: int) -> np.ndarray:
    """The aligned bytes in use at each of `steps` steps."""
    change = np.zeros(steps + 1, dtype=np.int64)
    for buffer in buffers:
        change[buffer.start] += align(buffer.size)
        change[buffer.end + 1] -= align(buffer.size)
    return np.cumsum(change)[:steps]


def plan_pools(buffers: Sequence[Buffer], steps: int, others: Sequence[Buffer] = ()) -> list[Pool]:
    """Pools that hold all buffers; `others` is what lives outside of pools, such as library results.

    The largest sum over the steps of pools and others is that of buffers and others, not more.
    """
    total = live_bytes([*buffers, *others], steps)
    peak = int(total.max(initial=0))
    pools: list[Pool] = []
    pending = list(reversed(list(_stretches(buffers))))
    while pending:
        members = pending.pop()
        pool = _make_pool(buffers, members)
        window = slice(pool.start, pool.end + 1)
        rest = total[window] - live_bytes(_moved(buffers, members, pool.start), pool.end + 1 - pool.start)
        if len(members) == 1 or int(rest.max()) + pool.size <= peak:
            total[window] = rest + pool.size
            pools.append(pool)
        else:
            pending.extend(reversed(_split(buffers, members)))
    return sorted(pools, key=lambda pool: (pool.start, pool.end))


def _stretches(buffers: Sequence[Buffer]) -> Iterator[list[int]]:
    """Groups of buffers with no step at which a group is live but none of its buffers is."""
    group: list[int] = []
    end = -1
    for number in _arrival_order(buffers):
        if group and buffers[number].start > end:
            yield group
            group = []
        group.append(number)
        end = max(end, buffers[number].end)
    if group:
        yield group


def _make_pool(buffers: Sequence[Buffer], members: Sequence[int]) -> Pool:
    chosen = [buffers[number] for number in members]
    offsets, size = place(chosen)
    start = min(buffer.start for buffer in chosen)
    end = max(buffer.end for buffer in chosen)
    return Pool(start, end, size, dict(zip(members, offsets, strict=True)))


def _moved(buffers: Sequence[Buffer], members: Sequence[int], origin: int) -> list[Buffer]:
    """The members on a time axis that starts at `origin`."""
    chosen = (buffers[number] for number in members)
    return [Buffer(buffer.start - origin, buffer.end - origin, buffer.size) for buffer in chosen]


def _split(buffers: Sequence[Buffer], members: Sequence[int]) -> list[list[int]]:
    """Halves of a group, cut in time; each buffer that lives across the cut is alone from then on."""
    starts = sorted({buffers[number].start for number in members})
    if len(starts) == 1:
        return [[number] for number in members]
    cut = _quietest_cut(buffers, members, starts)
    before = [number for number in members if buffers[number].end < cut]
    after = [number for number in members if buffers[number].start >= cut]
    across = [[number] for number in members if buffers[number].start < cut <= buffers[number].end]
    return [group for group in (before, *across, after) if group]


def _quietest_cut(buffers: Sequence[Buffer], members: Sequence[int], starts: Sequence[int]) -> int:
    """The step, among the middle half of the starts, that the fewest bytes live across."""
    quarter = len(starts) // 4
    candidates = starts[max(quarter, 1) : max(len(starts) - quarter, 2)]
    origin, last = starts[0], max(buffers[number].end for number in members)
    crossing = np.zeros(last - origin + 2, dtype=np.int64)
    for number in members:
        crossing[buffers[number].start + 1 - origin] += align(buffers[number].size)
        crossing[buffers[number].end + 1 - origin] -= align(buffers[number].size)
    levels = np.cumsum(crossing)
    return min(candidates, key=lambda step: int(levels[step - origin]))
