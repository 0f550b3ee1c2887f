"""How many bytes some ranges cover together, kept up to date as ranges come and go.

    [0, 8)  [4, 12)       12 bytes, of which 4 twice          without [0, 8): 8 bytes

A tree of segments over all ends of ranges there will be, the classic way to the area of a union of rectangles: each
node counts the ranges that cover it whole but not its parent, and knows how much of it is covered. A range is added or
removed in log n steps.
"""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Iterable
from itertools import pairwise

Range = tuple[int, int]
"""The first byte, and the one after the last."""


class Covered:
    """The union of ranges, each of which is one of those named at first."""

    def __init__(self, ranges: Iterable[Range]) -> None:
        self._ends = sorted({end for one in ranges for end in one})
        widths = [after - first for first, after in pairwise(self._ends)]
        self._leaves = 1 << max(0, len(self._ends) - 2).bit_length()
        self._count = [0] * (2 * self._leaves)
        self._bytes = [0] * (2 * self._leaves)
        self._width = [0] * self._leaves + widths + [0] * (self._leaves - len(widths))
        for node in range(self._leaves - 1, 0, -1):
            self._width[node] = self._width[2 * node] + self._width[2 * node + 1]

    @property
    def bytes(self) -> int:
        """How many bytes are covered."""
        return self._bytes[1]

    def add(self, one: Range) -> None:
        """Covers a range once more."""
        self._change(one, 1)

    def remove(self, one: Range) -> None:
        """Takes back what `add` did for this range."""
        self._change(one, -1)

    def _change(self, one: Range, by: int) -> None:
        """Counts the nodes that make up a range, from the leaves at its ends upwards."""
        low, high = (bisect_left(self._ends, end) + self._leaves for end in one)
        first, last = low, high - 1
        while low < high:
            for node in (low,) * (low & 1) + (high - 1,) * (high & 1):
                self._count[node] += by
                self._update(node)
            low, high = (low + 1) >> 1, high >> 1
        for node in (first, last):
            while node > 1:
                node >>= 1
                self._update(node)

    def _update(self, node: int) -> None:
        if self._count[node]:
            self._bytes[node] = self._width[node]
        else:
            self._bytes[node] = self._bytes[2 * node] + self._bytes[2 * node + 1] if node < self._leaves else 0
