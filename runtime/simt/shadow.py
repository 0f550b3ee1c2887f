"""Who accessed memory last, as far as it matters to whether a later access is ordered with it.

Memory is looked at in *granules*, the smallest elements that a kernel accesses. For each granule, the last lane that
accessed it is kept, with the arrivals of its groups then, and for each scope whether other parts of the same group
accessed it in that interval too. That is enough to tell whether any earlier access of another lane is not ordered with
one now: had its group passed a barrier since, it would be.
"""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from .grid import Array, Grid


class Accesses:
    """The reads, or the writes, of `granules` pieces of memory."""

    def __init__(self, granules: int, grid: Grid) -> None:
        self._scopes = grid.scopes
        self._lane = np.full(granules, -1, np.int32)
        self._epochs = [np.zeros(granules, np.int32) for _ in grid.scopes]
        self._shared = [np.zeros(granules, bool) for _ in grid.scopes]

    def last(self, where: Array) -> Array:
        """The lane that accessed each granule last, -1 if none did."""
        return self._lane[where]

    def unordered(self, where: Array, lanes: Array) -> Array:
        """Whether some other lane's access of each granule is not ordered with one of `lanes` now."""
        last = self._lane[where]
        result = np.zeros(len(where), bool)
        if not (last >= 0).any():
            return result
        for level, is_open in self._open(where, last, lanes):
            result |= is_open & self._by_others(level, where, last, lanes)
        return result

    def note(self, where: Array, lanes: Array) -> None:
        """Adds accesses of `where` by `lanes`, which happen at the same time."""
        last = self._lane[where]
        if (last >= 0).any():
            for level, is_open in list(self._open(where, last, lanes)):
                self._shared[level][where] = is_open & self._by_others(level, where, last, lanes)
        for scope, epochs in zip(self._scopes, self._epochs, strict=True):
            epochs[where] = scope.arrived[lanes // scope.size]
        self._lane[where] = lanes
        lost = self._lane[where] != lanes
        if lost.any():
            self._note_simultaneous(where[lost], lanes[lost])

    def _note_simultaneous(self, where: Array, lanes: Array) -> None:
        """Of lanes that access a granule at once, one is kept; these are the others."""
        last = self._lane[where]
        for level, scope in enumerate(self._scopes):
            together = (last // scope.size == lanes // scope.size) & self._differ(level, last, lanes)
            self._shared[level][where[together]] = True

    def _open(self, where: Array, last: Array, lanes: Array) -> Iterator[tuple[int, Array]]:
        """For each scope: whether the last access was in the lane's group, and nothing orders the two.

        A barrier of a larger scope orders as well, so the largest one comes first.
        """
        is_open = last >= 0
        for level in reversed(range(len(self._scopes))):
            scope = self._scopes[level]
            group = lanes // scope.size
            is_open = is_open & (last // scope.size == group) & (self._epochs[level][where] >= scope.waited[group])
            yield level, is_open

    def _by_others(self, level: int, where: Array, last: Array, lanes: Array) -> Array:
        return self._shared[level][where] | self._differ(level, last, lanes)

    def _differ(self, level: int, last: Array, lanes: Array) -> Array:
        """Whether two lanes are in different parts (the next smaller scope's groups) of a scope."""
        part = self._scopes[level - 1].size if level else 1
        return last // part != lanes // part
