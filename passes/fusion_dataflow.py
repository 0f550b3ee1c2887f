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

No operation is lost: one whose result nobody uses is computed in some region and not yielded. With dynamic
sizes a merge is refused unless it is good for all sizes (ceiling.py).

groups.py decides what is legal, live_profile.py what memory allows, merge_search.py what is tried in which order;
memory_order.py improves the order, recompute.py finds what to compute again. fusion-segment may have to take some of
it back, once it knows what a kernel can do, and finds in `fusion.source` what the source was (source_order.py).
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import ClassVar

from ..dialects.mlir import ir
from . import graph
from .ceiling import Ceiling
from .fuel import NO_LIMIT, Fuel, check_fuel
from .graph import Graph
from .group_plan import merge_within_peak, neighbours, parts_of
from .groups import Groups
from .legality import DEFAULT_MAX_REGION_OPS, check_max_region_ops, why_not_this_size
from .live_profile import LiveProfile
from .merge_search import MergeSearch
from .outline import Part, outline
from .pass_base import Pass
from .plan import bytes_moved, source_peak
from .recompute import Recomputation, adopt
from .reuse import reusing_peak
from .size_classes import size_classes
from .source_order import Source, note_source


@dataclass(frozen=True)
class FusionDataflow(Pass):
    """Producers with consumers and siblings with each other, by gain, within the source order's peak."""

    name: ClassVar[str] = "fusion-dataflow"

    horizontal: bool = True
    memory_aware: bool = True
    recompute: bool = True
    max_region_ops: int = DEFAULT_MAX_REGION_OPS
    fuel: int = NO_LIMIT

    def __post_init__(self) -> None:
        check_max_region_ops(self.max_region_ops)
        check_fuel(self.fuel)

    def run(self, module: ir.Module) -> None:
        fuel = Fuel(self.fuel)
        for function in graph.functions(module):
            dependences = graph.build(function)
            parts = self.plan(dependences)
            self._note_source(function, dependences, parts)
            outline(dependences, fuel.limit(dependences, parts))

    def _note_source(self, function: ir.Operation, dependences: Graph, parts: Sequence[Part]) -> None:
        """Tells fusion-segment what it may have to go back to; not if fuel runs out, which ends the guarantee."""
        merged = any(len(part.nodes) + len(part.recomputed) > 1 for part in parts)
        if merged and self.memory_aware and self.fuel == NO_LIMIT:
            is_static = size_classes(dependences).count == 1
            peak = source_peak(dependences) if is_static else None
            note_source(function, parts, Source(peak, self.max_region_ops if self.horizontal else 1))

    def plan(self, dependences: Graph) -> list[Part]:
        """The regions and single nodes that a graph becomes, in order: of the plans found, what moves fewest bytes."""
        ceiling = Ceiling(dependences) if self.memory_aware else None
        plans = self._merge(Groups(dependences), ceiling)
        if self.horizontal:
            runs = [Part(run) for run in neighbours(dependences, self.max_region_ops)]
            fewer = bytes_moved(dependences, runs) < bytes_moved(dependences, plans[-1])
            if fewer and _fits(dependences, runs, ceiling):
                more = self._merge(_grouped(dependences, runs), ceiling)
                plans += [*(plan for plan in more if _fits(dependences, plan, ceiling)), runs]
        return min(plans, key=lambda plan: bytes_moved(dependences, plan)) if len(plans) > 1 else plans[0]

    def _may_share(self, groups: Groups, one: int, other: int) -> bool:
        """Whether two groups may be one region, if no path leads from one to the other through a third."""
        ops = len(groups.members[one]) + len(groups.members[other])
        return why_not_this_size(ops, self.max_region_ops) is None

    def _merge(self, groups: Groups, ceiling: Ceiling | None) -> list[list[Part]]:
        """Merges from `groups` on, in an order for a low peak: with recomputation, if that is allowed, and without."""
        profile = LiveProfile(groups, ceiling) if ceiling is not None else None
        search = MergeSearch(groups, profile, self.horizontal, self._may_share)
        if profile is None:
            search.run()
        else:
            merge_within_peak(groups, profile, search)
        if self.horizontal:
            search.save_launches()
        parts = parts_of(groups)
        if not self.recompute:
            return [parts]
        recomputation = Recomputation(groups, profile, self.max_region_ops)
        recomputation.run()
        return [adopt(groups.graph, parts_of(groups, recomputation.extra)), parts]


def _fits(dependences: Graph, parts: Sequence[Part], ceiling: Ceiling | None) -> bool:
    """Whether memory allows a plan, outputs taking over the memory of inputs where they may."""
    if ceiling is None or ceiling.admits_plan(parts):
        return True
    return ceiling.is_a_number and reusing_peak(dependences, parts) <= ceiling.most


def _grouped(dependences: Graph, parts: Sequence[Part]) -> Groups:
    """Groups that are `parts`, which are runs of neighbours."""
    groups = Groups(dependences)
    for part in parts:
        for node in part.nodes[1:]:
            groups.merge(part.nodes[0], node)
    return groups
