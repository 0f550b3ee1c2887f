"""Groups and parts: neighbours to start from, groups as parts in order, merging within the peak."""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType

from .graph import Graph
from .groups import Groups
from .legality import why_not_this_size
from .live_profile import LiveProfile
from .memory_order import low_peak_order
from .merge_search import MergeSearch
from .outline import Part
from .plan import kept_memories, memory_sizes, plan_peak, predecessors_of, steps_of


def parts_of(groups: Groups, extra: Mapping[int, set[int]] = MappingProxyType({})) -> list[Part]:
    """The groups by slot; `extra` is what each computes again."""
    return [
        Part(tuple(sorted(groups.members[group])), tuple(sorted(extra.get(group, ())))) for group in groups.in_order()
    ]


def neighbours(dependences: Graph, max_region_ops: int) -> list[tuple[int, ...]]:
    """Neighbours in the source merged as far as may be: a second place to start from."""
    runs: list[list[int]] = []
    for number, node in enumerate(dependences.nodes):
        joins = node.fusible and runs and dependences.nodes[number - 1].fusible
        if joins and why_not_this_size(len(runs[-1]) + 1, max_region_ops) is None:
            runs[-1].append(number)
        else:
            runs.append([number])
    return [tuple(run) for run in runs]


def merge_within_peak(groups: Groups, profile: LiveProfile, search: MergeSearch) -> None:
    """Merges what the search finds, and again what memory did not allow if an order with a lower peak is found."""
    search.run()
    if _lower_peak(groups, profile):
        search.retry_refused()
        _lower_peak(groups, profile)


def _lower_peak(groups: Groups, profile: LiveProfile) -> bool:
    """Puts the groups in an order with a lower peak, if one is found; with dynamic sizes none is looked for."""
    if not profile.ceiling.is_a_number:
        return False
    graph, current = groups.graph, parts_of(groups)
    order = low_peak_order(
        steps_of(graph, current), predecessors_of(graph, current), memory_sizes(graph), kept_memories(graph)
    )
    if plan_peak(graph, [current[number] for number in order]) >= profile.peak():
        return False
    in_order = groups.in_order()
    groups.move({in_order[number]: slot for slot, number in enumerate(order)})
    profile.rebuild()
    return True
