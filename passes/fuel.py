"""Optimization fuel: stops fusion after so many fusions, to find the one that makes a program fail.

A fusion is one operation joining the region of others, or being computed again in one. They are counted in the
order of the regions, so the first N fusions are the same whatever comes after them: between N - 1 and N, exactly one
operation changes its place. `limit` takes a finished plan and takes apart what is beyond N. Each region is cut
after a few of its operations in source order, and the rest stand alone behind it; so it stays legal, but the plan
may hold more memory than the whole one.

    parts {a, b, c} {d, e}    with 3 fusions: as they are    with 1: {a, b} {c} {d} {e}

What the last fusion allowed was is logged, to `mlir_fusion.fuel`.
"""

from __future__ import annotations

import logging
from collections.abc import Sequence

from .graph import Graph
from .outline import Part

NO_LIMIT = -1
LOG = logging.getLogger("mlir_fusion.fuel")


def check_fuel(fuel: int) -> None:
    """ValueError unless `fuel` is a number of fusions or NO_LIMIT."""
    if fuel < NO_LIMIT:
        raise ValueError(f"fuel must be 0 or more, or {NO_LIMIT} for no limit, got {fuel}")


class Fuel:
    """The fusions that are left to a pass, over all functions of a module."""

    def __init__(self, fusions: int) -> None:
        """NO_LIMIT leaves every plan as it is."""
        self._left = fusions

    def limit(self, graph: Graph, parts: Sequence[Part]) -> Sequence[Part]:
        """The plan with the fusions that are left; takes them."""
        if self._left == NO_LIMIT:
            return parts
        return [cut for part in parts for cut in self._limit_part(graph, part)]

    def _limit_part(self, graph: Graph, part: Part) -> list[Part]:
        wanted = [*part.nodes[1:], *part.recomputed]
        taken = min(self._left, len(wanted))
        self._left -= taken
        if taken and self._left == 0:
            LOG.info("the last fusion: %s", _describe(graph, part, wanted[taken - 1]))
        if taken == len(wanted):
            return [part]
        joined = min(taken, len(part.nodes) - 1)
        first = Part(part.nodes[: joined + 1], part.recomputed[: taken - joined])
        return [first, *(Part((node,)) for node in part.nodes[joined + 1 :])]


def _describe(graph: Graph, part: Part, node: int) -> str:
    op, home = graph.nodes[node].op, graph.nodes[part.nodes[0]].op
    verb = "is computed again in" if node in part.recomputed else "joins"
    return f"{op.name} at {op.location} {verb} the region of {home.name} at {home.location}"
