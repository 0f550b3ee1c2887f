"""Merges groups by gain: the heart of fusion-dataflow.

Candidates are pairs that share bytes: a producer and a consumer of its result (vertical), or two consumers
of the same value (horizontal). A merge saves one read of everything both use, and the write of what nobody
else uses. The pair that saves most is tried first, of equals the closest one; each merge changes what its
neighbours would save, so a pair taken from the queue is weighed again, and put back if it has become
lighter. A pair is merged if

    - they may share a region at all (`may_share`);
    - no path leads from one to the other through a third group (groups.py);
    - there is a slot for the merged group that keeps the peak within the limit (live_profile.py): that of the
      consumer, that of the producer, or one between those that must come before and those that must come after.

At last, small neighbours that share no bytes are merged for the launch that it saves.

Every step costs about the logarithm of the queue's length, or the size of the smaller group.
"""

from __future__ import annotations

import heapq
from collections.abc import Callable, Iterator
from dataclasses import dataclass

from ..dialects.mlir import ir
from .groups import Between, Groups
from .live_profile import LiveProfile

SIBLINGS = 4
"""How many of the next consumers of a value each consumer is paired with at first."""
MANY = 16
"""Consumers of a value that has more of them are paired with the next one only, and not again after a merge."""
SMALL_BYTES = 1 << 20
"""A region that moves fewer bytes takes less time than its launch."""
MOST_WORK = 250
"""A merge for which more nodes and values than this have to move is not worth its time."""

Pair = tuple[int, int]


@dataclass(frozen=True)
class _Launch:
    """A group, the one shape of all that it computes, if there is one, and the bytes it moves at most."""

    group: int
    shape: tuple[int, ...] | None
    bytes: int


class MergeSearch:
    """Merges groups of `groups`, best first, until no pair is left."""

    def __init__(
        self,
        groups: Groups,
        profile: LiveProfile | None,
        horizontal: bool,
        may_share: Callable[[Groups, int, int], bool],
    ) -> None:
        """`may_share` says whether two groups may be one, as far as their size or kind decides."""
        self.groups = groups
        self.sizes = groups.graph.sizes
        self.profile = profile
        self.horizontal = horizontal
        self.may_share = may_share
        self.queue: list[tuple[int, int, Pair]] = []
        self.queued: dict[Pair, int] = {}
        self.waiting: dict[int, list[Pair]] = {}
        self.refused: dict[Pair, int] = {}

    def run(self) -> None:
        """Merges what is worth merging."""
        for pair in self._first_pairs():
            self._push(*pair)
        self._drain()

    def retry_refused(self) -> None:
        """Looks again at the pairs that memory did not allow, once the order has changed."""
        pairs, self.refused = list(self.refused), {}
        for one, other in pairs:
            self._push(self.groups.of[one], self.groups.of[other])
        self._drain()

    def save_launches(self) -> None:
        """Merges neighbours in the order that share nothing, where a launch costs more than what they do.

        They have to be small and of one shape, so that one kernel will do. Nothing lies between them, so there is no
        path to look for.
        """
        groups = self.groups
        previous: _Launch | None = None
        for group in groups.in_order():
            launch = self._launch(group)
            if previous is not None and self._saves_a_launch(previous, launch):
                one, other = previous.group, group
                place = groups.slot[max(one, other, key=groups.degree)]
                slots = {one: place, other: place}
                if self.profile is None or self.profile.allows(one, other, slots):
                    self._merge(one, other, slots)
                    launch = _Launch(groups.of[group], launch.shape, previous.bytes + launch.bytes)
            previous = launch
        self._drain()

    def _launch(self, group: int) -> _Launch:
        moved = self.groups.reads[group] | self.groups.escaping[group]
        return _Launch(group, _shape(self.groups, group), sum(self.sizes[value] for value in moved))

    def _saves_a_launch(self, one: _Launch, other: _Launch) -> bool:
        nodes = self.groups.graph.nodes
        if not (nodes[one.group].fusible and nodes[other.group].fusible) or self._hopeless(one.group, other.group):
            return False
        small = one.bytes + other.bytes <= SMALL_BYTES
        return small and one.shape is not None and one.shape == other.shape

    def _drain(self) -> None:
        while self.queue:
            negative, _, pair = heapq.heappop(self.queue)
            if self.queued.get(pair) == -negative:
                del self.queued[pair]
                self._consider(pair, -negative)

    def _first_pairs(self) -> Iterator[Pair]:
        graph = self.groups.graph
        for value, readers in enumerate(graph.readers):
            maker = graph.makers[value]
            fusible = [reader for reader in readers if graph.nodes[reader].fusible]
            if maker >= 0 and graph.nodes[maker].fusible:
                yield from ((maker, reader) for reader in fusible)
            if self.horizontal:
                near = SIBLINGS if len(fusible) <= MANY else 1
                for number, reader in enumerate(fusible):
                    yield from ((reader, other) for other in fusible[number + 1 : number + 1 + near])

    def _push(self, one: int, other: int) -> None:
        pair = (one, other) if one < other else (other, one)
        saved = 0 if one == other or self._hopeless(*pair) else self._saved(*pair)
        if saved == 0 or self.queued.get(pair) == saved or self.refused.get(pair) == saved:
            return
        self.queued[pair] = saved
        distance = abs(self.groups.slot[one] - self.groups.slot[other])
        heapq.heappush(self.queue, (-saved, distance, pair))

    def _hopeless(self, one: int, other: int) -> bool:
        """Whether two groups can't be merged, whatever else is."""
        return not self.may_share(self.groups, one, other) or self.groups.separated(one, other)

    def _saved(self, one: int, other: int) -> int:
        """The bytes that need not be moved if two groups are one."""
        groups, graph = self.groups, self.groups.graph
        saved = sum(self.sizes[value] for value in groups.reads[one] & groups.reads[other])
        for maker, reader in ((one, other), (other, one)):
            for value in _passed(groups, maker, reader):
                hidden = len(groups.readers[value]) == 1 and value not in graph.returned
                saved += self.sizes[value] * (2 if hidden else 1)
        return saved

    def _consider(self, pair: Pair, saved: int) -> None:
        """Merges a pair if it saves what was thought, is legal and fits."""
        groups = self.groups
        now = groups.of[pair[0]], groups.of[pair[1]]
        if now != pair:
            if now not in self.queued and now[::-1] not in self.queued:
                self._push(*now)
            return
        if self._saved(*pair) != saved:
            self._push(*pair)
            return
        if self._hopeless(*pair):
            return
        first, second = sorted(pair, key=lambda group: groups.slot[group])
        if not self.horizontal and not _passed(groups, first, second):
            return
        between = groups.between(first, second)
        if isinstance(between, int):
            self.waiting.setdefault(between, []).append(pair)
        if not isinstance(between, Between):
            return
        for slots in _placements(groups, first, second, between):
            if self.profile is None or self.profile.allows(first, second, slots):
                self._merge(first, second, slots)
                return
        self.refused[pair] = saved

    def _merge(self, first: int, second: int, slots: dict[int, int]) -> None:
        groups = self.groups
        small, large = sorted((first, second), key=groups.degree)
        neighbours = _neighbours(groups, small, self.horizontal)
        groups.move({group: slot for group, slot in slots.items() if group != small})
        groups.merge(large, small)
        for neighbour in neighbours:
            self.queued.pop((small, neighbour) if small < neighbour else (neighbour, small), None)
            self._push(large, neighbour)
        for one, other in self.waiting.pop(small, []):
            pair = groups.of[one], groups.of[other]
            if large in pair:
                self._push(*pair)
            else:
                self.waiting.setdefault(large, []).append(pair)


def _passed(groups: Groups, maker: int, reader: int) -> set[int]:
    """The values that one group makes and the other reads."""
    return groups.escaping[maker] & groups.reads[reader]


def _shape(groups: Groups, group: int) -> tuple[int, ...] | None:
    """The shape of all that a group computes, if it is one shape."""
    graph = groups.graph
    types = {graph.values[value].type for node in groups.members[group] for value in graph.nodes[node].makes}
    shapes = {tuple(type_.shape) for type_ in types if isinstance(type_, ir.RankedTensorType)}
    return shapes.pop() if len(shapes) == 1 else None


def _neighbours(groups: Groups, group: int, horizontal: bool) -> set[int]:
    """The groups that share bytes with one, leaving out those that share only what many read."""
    nodes, found = groups.graph.nodes, set()
    for value in groups.escaping[group]:
        if len(groups.readers[value]) <= MANY:
            found.update(groups.readers[value])
    for value in groups.reads[group]:
        maker = groups.maker(value)
        if maker is not None:
            found.add(maker)
        if horizontal and len(groups.readers[value]) <= MANY:
            found.update(groups.readers[value])
    return {neighbour for neighbour in found if nodes[neighbour].fusible and neighbour != group}


def _placements(groups: Groups, first: int, second: int, between: Between) -> Iterator[dict[int, int]]:
    """New slots for a pair that may be merged, and for what has to move: first where least moves."""
    slot = groups.slot
    simple = []
    if between.after is not None and not between.after:
        simple.append((first, slot[second]))
    if between.before is not None and not between.before:
        simple.append((second, slot[first]))
    for _, place in sorted(simple, key=lambda moved: groups.degree(moved[0])):
        yield {first: place, second: place}
    surroundings = groups.surroundings(first, second, MOST_WORK)
    if surroundings is None or sum(groups.degree(group) for group in set().union(*surroundings)) > MOST_WORK:
        return
    after, before = surroundings
    if not after and not before:
        return
    free = sorted(slot[group] for group in (first, second, *after, *before))
    leading = sorted(before, key=lambda group: slot[group])
    trailing = sorted(after, key=lambda group: slot[group])
    moved = dict(zip(leading, free, strict=False))
    moved.update(zip(trailing, free[len(before) + 2 :], strict=True))
    for place in free[len(before) : len(before) + 2]:
        yield {**moved, first: place, second: place}
