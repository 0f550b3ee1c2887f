"""Why a kernel and one that reads its results are two, as far as the program and its options tell.

Kernels of one region are apart because no schedule takes both (fusion-segment), which the schedules explain. Kernels of
two regions are apart because the fusion pass kept them so: consecutive, where something stands between them in the
source; dataflow, where what depends on one and is needed by the other can't be in between, where the peak of memory
would rise, or where nothing would be gained.
"""

from __future__ import annotations

import itertools
from collections.abc import Callable, Collection, Iterator, Sequence
from dataclasses import dataclass

from ..options import Options
from .anatomy import Anatomy, Box, Node

MOST_PAIRS = 400
"""Of more, the first are explained."""

CUT = "one region, which was cut operation by operation, though a schedule would take these two"

SameRegion = Callable[[int, int], bool]
OneKernel = Callable[[Collection[int], Collection[str]], str]


@dataclass(frozen=True)
class Apart:
    """Two boxes, the second of which reads results of the first, and why they are not one."""

    first: int
    second: int
    reason: str


def kernels_apart(
    anatomy: Anatomy,
    edges: Sequence[tuple[int, int]],
    options: Options,
    fuses_without_limit: SameRegion,
    one_kernel: OneKernel,
) -> list[Apart]:
    """A reason for each pair of kernels among `edges`, which are pairs of boxes.

    `fuses_without_limit` says whether dataflow would put two nodes into one region if memory were no matter;
    `one_kernel` why schedules refuse nodes of one region.
    """
    reach = _Between(anatomy, edges)
    boxes = anatomy.boxes
    pairs = ((a, b) for a, b in dict.fromkeys(edges) if boxes[a].kind == boxes[b].kind == "kernel")
    found: list[Apart] = []
    for a, b in itertools.islice(pairs, MOST_PAIRS):
        first, second = boxes[a], boxes[b]
        if first.region == second.region:
            refused = one_kernel((*first.nodes, *second.nodes), {first.family, second.family})
            reason = f"one region, but no schedule takes both: {refused}" if refused else CUT
        elif options.fusion_type == "none":
            reason = "fusion type none: each operation is a kernel"
        elif options.fusion_type == "consecutive":
            reason = _between_in_source(anatomy.nodes, first, second, options.max_region_ops)
        else:
            reason = _dataflow(anatomy, reach, (a, b), options, fuses_without_limit)
        found.append(Apart(a, b, reason))
    return found


def _between_in_source(nodes: Sequence[Node], first: Box, second: Box, limit: int) -> str:
    """What ended the first one's region."""
    between = range(max(first.nodes), min(second.nodes))
    barrier = next((nodes[number] for number in between if nodes[number].why_not_fusible), None)
    if barrier is None:
        return f"a region holds no more than max_region_ops={limit} operations"
    return f"{barrier.label} stands between them in the source: {barrier.why_not_fusible}"


def _dataflow(
    anatomy: Anatomy, reach: _Between, pair: tuple[int, int], options: Options, fuses_without_limit: SameRegion
) -> str:
    first, second = (anatomy.boxes[number] for number in pair)
    barrier = reach.find(*pair)
    if barrier is not None:
        return f"{barrier.name} needs the first and the second needs it: {_what(barrier)}"
    if len(first.nodes) + len(second.nodes) > options.max_region_ops:
        return f"together more than max_region_ops={options.max_region_ops} operations"
    if options.memory_aware and fuses_without_limit(first.nodes[0], second.nodes[0]):
        return "as one they would raise the peak of memory above the source order's"
    return "dataflow found no bytes to save, or no order in which they could be one"


def _what(box: Box) -> str:
    return {"call": "a library call", "view": "a view, which needs no kernel"}.get(box.kind, "another kernel")


class _Between:
    """Finds a box on a way from one box to another that is not the direct edge."""

    def __init__(self, anatomy: Anatomy, edges: Sequence[tuple[int, int]]) -> None:
        self.boxes = anatomy.boxes
        self.readers: dict[int, set[int]] = {}
        for first, second in edges:
            self.readers.setdefault(first, set()).add(second)

    def find(self, first: int, second: int) -> Box | None:
        """A library call or view on such a way, or else a kernel, or None. Boxes are in an order that edges follow."""
        came_from: dict[int, int] = {}
        pending = [(first, reader) for reader in self.readers.get(first, ()) if reader < second]
        while pending:
            before, box = pending.pop()
            if box in came_from:
                continue
            came_from[box] = before
            if second in self.readers.get(box, ()):
                return self._barrier(box, first, came_from)
            pending += [(box, reader) for reader in self.readers.get(box, ()) if reader < second]
        return None

    def _barrier(self, box: int, first: int, came_from: dict[int, int]) -> Box:
        way = list(self._way(box, first, came_from))
        return next((one for one in way if one.kind != "kernel"), way[0])

    def _way(self, box: int, first: int, came_from: dict[int, int]) -> Iterator[Box]:
        while box != first:
            yield self.boxes[box]
            box = came_from[box]
