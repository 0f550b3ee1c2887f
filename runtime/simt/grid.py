"""Threads as lanes: how a launch's blocks are numbered, and which barriers its threads have passed.

A *lane* is a thread of the launch, numbered block by block, threads of a block in the order of their linear id. A
*scope* is a set of lanes that a barrier can synchronise: a block, a cluster of blocks; the whole grid is one that
nothing does. Each group of a scope counts its barriers, arrivals and waits apart: what a lane did before it arrived
is ordered with what lanes of its group do once they have waited for that arrival.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np

Array = np.ndarray
Size = tuple[int, int, int]
WARP = 32
AXES = {"x": 0, "y": 1, "z": 2}


@dataclass(frozen=True, eq=False)
class Scope:
    """Groups of `size` lanes, and at how many barriers each has arrived, and has waited."""

    size: int
    arrived: Array
    waited: Array

    @staticmethod
    def of(size: int, groups: int) -> Scope:
        """A scope whose groups have met no barrier yet."""
        return Scope(size, np.zeros(groups, np.int32), np.zeros(groups, np.int32))


@dataclass(frozen=True, eq=False)
class Grid:
    """A launch: sizes, and scopes from the smallest to the largest."""

    blocks: Size
    threads: Size
    cluster: int
    """Blocks of a cluster, neighbours along x."""
    scopes: tuple[Scope, ...]

    @staticmethod
    def of(blocks: Size, threads: Size, cluster: int = 1) -> Grid:
        """The grid of a launch that starts now."""
        size, count = _product(threads), _product(blocks)
        scopes = [Scope.of(size, count)]
        if cluster > 1:
            scopes.append(Scope.of(size * cluster, count // cluster))
        return Grid(blocks, threads, cluster, (*scopes, Scope.of(size * count, 1)))

    @property
    def block_size(self) -> int:
        """Threads of a block."""
        return _product(self.threads)

    @property
    def cluster_size(self) -> Size:
        """Blocks of a cluster, by axis."""
        return (self.cluster, 1, 1)

    @property
    def block_count(self) -> int:
        """Blocks of the grid."""
        return _product(self.blocks)

    def batches(self, most_lanes: int) -> Iterator[Batch]:
        """The grid in pieces of whole clusters."""
        step = max(most_lanes // (self.block_size * self.cluster), 1) * self.cluster
        for first in range(0, self.block_count, step):
            yield Batch(self, first, min(step, self.block_count - first))

    def place(self, lane: int) -> str:
        """A lane in words."""
        block, thread = divmod(int(lane), self.block_size)
        return f"thread {_coordinates(thread, self.threads)} of block {_coordinates(block, self.blocks)}"


@dataclass(frozen=True, eq=False)
class Batch:
    """Blocks that run at the same time: `count` of them, from number `first` on."""

    grid: Grid
    first: int
    count: int

    @property
    def size(self) -> int:
        """Lanes."""
        return self.count * self.grid.block_size

    @property
    def lanes(self) -> Array:
        """The numbers of the lanes, of shape (size,)."""
        return np.arange(self.size, dtype=np.int32) + self.first * self.grid.block_size

    def block_numbers(self) -> Array:
        """The number, in the batch, of each lane's block."""
        return np.repeat(np.arange(self.count, dtype=np.int64), self.grid.block_size)

    def thread_id(self, axis: int) -> Array:
        """A coordinate of each lane in its block."""
        linear = np.arange(self.grid.block_size)
        return np.tile(_coordinate(linear, self.grid.threads, axis), self.count)

    def block_id(self, axis: int) -> Array:
        """A coordinate of each lane's block."""
        linear = np.arange(self.first, self.first + self.count)
        return np.repeat(_coordinate(linear, self.grid.blocks, axis), self.grid.block_size)


def _coordinate(linear: Array, size: Size, axis: int) -> Array:
    return linear // (1, size[0], size[0] * size[1])[axis] % size[axis]


def _coordinates(linear: int, size: Size) -> str:
    x, y, z = (int(_coordinate(np.array(linear), size, axis)) for axis in range(3))
    return f"({x}, {y}, {z})" if size[1] * size[2] > 1 else str(x)


def _product(size: Size) -> int:
    return size[0] * size[1] * size[2]
