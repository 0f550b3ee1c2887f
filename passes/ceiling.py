"""How many bytes may be live: what is live at some point of the source order.

With static sizes that is one number, the source's peak. With dynamic sizes the live bytes are a number for each size
class (size_classes.py), and a point of the plan is allowed if some point of the source order has at least as much in
every class: then the plan's peak is no higher than the source's whatever the sizes are. It is a sufficient condition;
what it can't decide is refused.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from .graph import Graph
from .outline import Part
from .peak import Step, profile_of
from .plan import kept_memories, memory_sizes, source_steps, steps_of
from .size_classes import size_classes

MOST_CLASSES = 32
"""With more size classes than this, nothing is allowed that changes what is live."""
MOST_POINTS = 64
"""How many points of the source order are compared with, those of most bytes."""


class Ceiling:
    """The most bytes that may be live, by size class."""

    def __init__(self, graph: Graph) -> None:
        self.graph = graph
        self.classes = size_classes(graph)
        self.decides = self.classes.count <= MOST_CLASSES
        source = self.columns(source_steps(graph)) if self.decides else np.zeros((1, 0), dtype=np.int64)
        self.most = int(source[0].max(initial=0))
        self.points = source[:, np.argsort(-source.sum(axis=0), kind="stable")[:MOST_POINTS]]

    @property
    def is_a_number(self) -> bool:
        """Whether all sizes are static."""
        return self.classes.count == 1

    def columns(self, steps: Sequence[Step]) -> np.ndarray:
        """The live bytes during each step, a row a class."""
        kept, allocated = kept_memories(self.graph), memory_sizes(self.graph)
        rows = []
        for row in range(self.classes.count):
            of_row = zip(self.classes.of, self.classes.bytes, allocated, strict=True)
            sizes = [size if number == row and bytes_ else 0 for number, size, bytes_ in of_row]
            rows.append(profile_of(steps, sizes, kept))
        return np.array(rows, dtype=np.int64).reshape(self.classes.count, len(steps))

    def admits(self, columns: np.ndarray) -> bool:
        """Whether each of `columns`, the live bytes by class at some point, is below a point of the source."""
        if self.is_a_number:
            return int(columns.max(initial=0)) <= self.most
        if not self.decides:
            return False
        below = (columns[:, :, None] <= self.points[:, None, :]).all(axis=0)
        return bool(below.any(axis=-1).all())

    def admits_plan(self, parts: Sequence[Part]) -> bool:
        """Whether the parts, run in their order, stay below."""
        return self.decides and self.admits(self.columns(steps_of(self.graph, parts)))
