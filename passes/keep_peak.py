"""Re-establishes dataflow's guarantee of the peak once regions are as small as kernels.

What stayed within a region takes no memory; when fusion-segment cuts the region, the values between its kernels do,
and live at another time than in the source. If the plan then holds more than the source's order, `keep_peak`

    - looks for an order of the kernels and calls with a lower peak;
    - failing that, goes back to the source's order, one operation at a time and none of them computed again, and
      merges anew, but only what shares a kernel in the plan, as long as the peak allows it (merge_search.py).

    region {s = sum(x); y = x / s; t = sum of y's columns}    ->    kernels {s, y} {t}: y lives between them
"""

from __future__ import annotations

from collections.abc import Callable
from itertools import accumulate

from ..dialects import fusion
from ..dialects.mlir import ir
from . import source_order
from .ceiling import Ceiling
from .graph import build
from .group_plan import merge_within_peak, parts_of
from .groups import Groups
from .lifetimes import Storages, prescribed_layouts
from .live_profile import LiveProfile
from .memory_order import low_peak_order
from .merge_search import MergeSearch
from .outline import Part, outline
from .peak import peak_of
from .plan import kept_memories, memory_sizes, predecessors_of, source_steps
from .reduction_split import PARTIAL

KERNEL = "fusion.kernel_number"


def keep_peak(function: ir.Operation, limit: int, is_pointwise: Callable[[ir.Operation], bool]) -> None:
    """Makes the peak of a function at most `limit`, the source's; its nodes are marked with their places there.

    Every region is to be a kernel, before and after; `is_pointwise` says which of them may overwrite an input.
    """
    graph = build(function)
    steps, sizes, kept = source_steps(graph), memory_sizes(graph), kept_memories(graph)
    peak = peak_of(steps, sizes, kept)
    if peak <= limit or planned_peak(function, is_pointwise) <= limit:
        return
    parts = [Part((node,)) for node in range(len(graph.nodes))]
    order = low_peak_order(steps, predecessors_of(graph, parts), sizes, kept)
    if peak_of([steps[number] for number in order], sizes, kept) < peak:
        source_order.put_in_order(function, [graph.nodes[number].op for number in order])
    if planned_peak(function, is_pointwise) > limit:
        _merge_anew(function)


def planned_peak(function: ir.Operation, is_pointwise: Callable[[ir.Operation], bool]) -> int:
    """What fusion-plan-memory will make of the function as it is, workspaces apart."""
    block = function.regions[0].blocks[0]
    storages = Storages(block, True, frozenset(prescribed_layouts(function)), is_pointwise)
    steps = len(storages.operations)
    change = [0] * (steps + 1)
    for storage in storages.distinct():
        if storage.kind in ("kernel", "extern") and not _is_workspace(storage.tensors[0]):
            change[storage.start] += storage.size
            change[steps if storage.escapes else storage.end + 1] -= storage.size
    return max(accumulate(change), default=0)


def _is_workspace(tensor: ir.Value) -> bool:
    """Whether a region leaves partial results in `tensor`."""
    if not isinstance(tensor, ir.OpResult) or not fusion.is_op(tensor.owner, "region"):
        return False
    made = fusion.terminator(tensor.owner).operands[tensor.result_number]
    return isinstance(made, ir.OpResult) and PARTIAL in made.owner.attributes


def _merge_anew(function: ir.Operation) -> None:
    for number, view in enumerate(list(function.regions[0].blocks[0].operations)):
        if fusion.is_op(view.operation, "region"):
            for op in view.operation.regions[0].blocks[0].operations:
                if source_order.PLACE in op.operation.attributes:
                    op.operation.attributes[KERNEL] = ir.IntegerAttr.get(ir.IntegerType.get_signless(64), number)
    source_order.restore(function)
    graph = build(function)
    kernel_of = [_take_kernel(node.op) for node in graph.nodes]
    groups = Groups(graph)
    profile = LiveProfile(groups, Ceiling(graph))
    search = MergeSearch(groups, profile, True, lambda _, one, other: kernel_of[one] == kernel_of[other])
    merge_within_peak(groups, profile, search)
    outline(graph, parts_of(groups))


def _take_kernel(node: ir.Operation) -> int | None:
    """The kernel that a node was part of; None for a call or a view."""
    if KERNEL not in node.attributes:
        return None
    number = ir.IntegerAttr(node.attributes[KERNEL]).value
    del node.attributes[KERNEL]
    return number
