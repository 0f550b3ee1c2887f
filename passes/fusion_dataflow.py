"""Fuses over the whole dependence graph, around library calls, for the most bytes not moved.

A producer joins its consumer (vertical) and consumers of one value join each other (horizontal), wherever
they stand in the source, as long as no cycle arises. Merges are taken by what they save, most first. The
order of the regions and calls is chosen with them, so that the peak of live bytes never exceeds that of the
source order (`memory-aware`).

Needs a body of nodes and free operations (after fusion-normalize). Leaves fusion.region, fusion.extern,
fusion.view, constants and the return, in a topological order. Before:

    %c = linalg.generic ins(%a, %b)          c = a + b
    %d = "fusion.extern"(%c, %b) {op = "aten.mm.default", ...}
    %e = linalg.generic ins(%a, %c)          e = a - c
    return %d, %e

After, with one region, which reads a and b once:

    %c, %e = "fusion.region"(%a, %b) ({ c = a + b; e = a - c })
    %d = "fusion.extern"(%c, %b) {op = "aten.mm.default", ...}
    return %d, %e

groups.py decides what is legal, live_profile.py what memory allows, merge_search.py what is tried.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from ..dialects.mlir import ir
from . import graph
from .graph import Graph
from .groups import Groups
from .legality import DEFAULT_MAX_REGION_OPS, check_max_region_ops
from .live_profile import LiveProfile
from .merge_search import MergeSearch
from .outline import Part, outline
from .pass_base import Pass
from .plan import source_peak


@dataclass(frozen=True)
class FusionDataflow(Pass):
    """Producers with consumers and siblings with each other, by gain, within the source order's peak."""

    name: ClassVar[str] = "fusion-dataflow"

    horizontal: bool = True
    memory_aware: bool = True
    max_region_ops: int = DEFAULT_MAX_REGION_OPS

    def __post_init__(self) -> None:
        check_max_region_ops(self.max_region_ops)

    def run(self, module: ir.Module) -> None:
        for function in graph.functions(module):
            dependences = graph.build(function)
            outline(dependences, self.plan(dependences))

    def plan(self, dependences: Graph) -> list[Part]:
        """The regions and single nodes that a graph becomes, in order."""
        groups = Groups(dependences)
        profile = LiveProfile(groups, dependences.sizes, source_peak(dependences)) if self.memory_aware else None
        MergeSearch(groups, dependences.sizes, profile, self.horizontal, self.max_region_ops).run()
        return [Part(tuple(sorted(groups.members[group]))) for group in groups.in_order()]
