"""Nodes merged into groups, and a topological order of the groups that follows every merge.

A group is named by one of its nodes. Each occupies a *slot*: at first node i is in slot i, which is source
order; a merge empties one slot. Between merges every edge leads from a lower slot to a higher one, so a
path from a to b stays within the slots between them, and whether merging a and b would close a cycle is
decided exactly by looking there: it does if and only if a path leads from a to b through a third group.

    slots   0   1   2   3          merging 0 and 3, where 0 -> 1 and 2 -> 3:
            a   x   y   b          1 must follow the merged group (`after`), 2 must precede it (`before`)
            y   ab  .   x          a new order: `before`, the merged group, `after`, in the slots of all of them

This is the incremental topological order of Pearce and Kelly on merged groups. We prefer it to bit sets of
reachability: a merge changes what all ancestors reach, which costs n bits for each of them, while a search
costs what lies between the two groups, and most merges are of neighbours. The search goes forward from one
and backward from the other in turns, with doubling budgets, so it costs about what the cheaper of the two
directions does. Library calls are never merged, so a path through one stays: `separated` answers from bits,
one a call, that nodes are given once. A pair found illegal by search has a *witness*, a group on the path:
the pair stays illegal until the witness is merged into one of the two, so nothing is searched again before
that.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from itertools import chain

from .graph import Graph

FIRST_BUDGET = 32
"""Edges to look at before the other direction is tried."""
MOST_BUDGET = 1024
"""Edges after which a pair is left alone: groups so far apart seldom fit together, and all searches stay cheap."""
MOST_BITS = 2048
"""Of more calls than this, evenly spread ones get a bit: a long path meets one, and a short one is soon searched."""


@dataclass(frozen=True)
class Between:
    """What lies between two groups that may be merged; None where it was not needed to decide."""

    after: set[int] | None
    before: set[int] | None


class Groups:
    """The groups of a graph's nodes, what they read and make, and their slots."""

    def __init__(self, graph: Graph) -> None:
        nodes = range(len(graph.nodes))
        self.graph = graph
        self.of = list(nodes)
        self.members = [[node] for node in nodes]
        self.reads = [set(graph.nodes[node].reads) for node in nodes]
        self.escaping = [set(graph.nodes[node].makes) for node in nodes]
        self.readers = [set(readers) for readers in graph.readers]
        self.slot = list(nodes)
        self.at: list[int | None] = list(nodes)
        self.earlier = [set(graph.nodes[node].after) for node in nodes]
        self.later: list[set[int]] = [set() for _ in nodes]
        for node in nodes:
            for other in graph.nodes[node].after:
                self.later[other].add(node)
        self.calls_before, self.calls_after = _reach_of_calls(graph)

    def in_order(self) -> list[int]:
        """The groups by slot."""
        return [group for group in self.at if group is not None]

    def maker(self, value: int) -> int | None:
        """The group that makes a value."""
        node = self.graph.makers[value]
        return None if node < 0 else self.of[node]

    def successors(self, group: int) -> Iterator[int]:
        """Groups that must follow (some may be named twice)."""
        readers = map(self.readers.__getitem__, self.escaping[group])
        return chain(chain.from_iterable(readers), map(self.of.__getitem__, self.later[group]))

    def predecessors(self, group: int) -> Iterator[int]:
        """Groups that must come first (some may be named twice)."""
        of, makers = self.of, self.graph.makers
        for value in self.reads[group]:
            if makers[value] >= 0:
                yield of[makers[value]]
        for node in self.earlier[group]:
            yield of[node]

    def separated(self, one: int, other: int) -> bool:
        """Whether a path is known to lead through a call from one to the other: they can never be merged."""
        before, after = self.calls_before, self.calls_after
        return after[one] & before[other] != 0 or after[other] & before[one] != 0

    def between(self, first: int, second: int) -> Between | int | None:
        """What lies between two groups (`first` in the lower slot), or a group on a path from one to the other.

        None if so much lies between them that it was not worth finding out.
        """
        budget = FIRST_BUDGET
        while budget <= MOST_BUDGET:
            after = self._reach(first, second, True, budget)
            if isinstance(after, int):
                return after
            before = self._reach(second, first, False, budget if after is None else FIRST_BUDGET)
            if isinstance(before, int):
                return before
            if after is not None or before is not None:
                return Between(after, before)
            budget *= 2
        return None

    def surroundings(self, first: int, second: int, budget: int) -> tuple[set[int], set[int]] | None:
        """All that must follow and all that must precede a pair that may be merged, unless that is too much."""
        after = self._reach(first, second, True, budget)
        before = self._reach(second, first, False, budget) if after is not None else None
        return (after, before) if isinstance(after, set) and isinstance(before, set) else None

    def _reach(self, start: int, target: int, forward: bool, budget: int) -> set[int] | int | None:
        """The groups reached from `start` in the slots between it and `target`.

        A group instead, if one of them has an edge to `target`; None if more than `budget` edges were looked at.
        """
        low, high = sorted((self.slot[start], self.slot[target]))
        step, slot = (self.successors if forward else self.predecessors), self.slot
        found: set[int] = set()
        pending = [start]
        while pending:
            group = pending.pop()
            for neighbour in step(group):
                if budget < 0:
                    return None
                budget -= 1
                if neighbour == target:
                    if group != start:
                        return group
                elif low < slot[neighbour] < high and neighbour not in found:
                    found.add(neighbour)
                    pending.append(neighbour)
        return found

    def degree(self, group: int) -> int:
        """About how much there is to do when this group is merged into another."""
        return len(self.reads[group]) + len(self.escaping[group]) + len(self.members[group])

    def move(self, slots: dict[int, int]) -> None:
        """Puts groups into other slots, which are theirs or empty."""
        for group in slots:
            self.at[self.slot[group]] = None
        for group, slot in slots.items():
            self.slot[group] = slot
            self.at[slot] = group

    def merge(self, into: int, other: int) -> None:
        """Merges `other` into `into`, whose slot it takes."""
        if self.at[self.slot[other]] == other:
            self.at[self.slot[other]] = None
        for node in self.members[other]:
            self.of[node] = into
        self.members[into] += self.members[other]
        self.calls_before[into] |= self.calls_before[other]
        self.calls_after[into] |= self.calls_after[other]
        self.earlier[into] |= self.earlier[other]
        self.later[into] |= self.later[other]
        for value in self.reads[other]:
            self.readers[value].discard(other)
            if self.maker(value) != into:
                self.readers[value].add(into)
                self.reads[into].add(value)
        for value in self.escaping[other]:
            self.readers[value].discard(into)
            self.reads[into].discard(value)
        made_here = [v for v in self.escaping[other] if self.readers[v] or v in self.graph.returned]
        read_here = [v for v in self.reads[other] if self.maker(v) == into]
        hidden = [v for v in read_here if not self.readers[v] and v not in self.graph.returned]
        self.escaping[into].update(made_here)
        self.escaping[into].difference_update(hidden)
        self.members[other], self.reads[other], self.escaping[other] = [], set(), set()

    def reread(self, group: int, dropped: set[int], added: set[int]) -> None:
        """Makes a group read other values."""
        for value in dropped:
            self.readers[value].discard(group)
        for value in added:
            self.readers[value].add(group)
        self.reads[group] = (self.reads[group] - dropped) | added


def _reach_of_calls(graph: Graph) -> tuple[list[int], list[int]]:
    """By node, as bits: the calls that lead to it, and the calls that it leads to."""
    calls = [number for number, node in enumerate(graph.nodes) if not node.fusible]
    spread = -(-len(calls) // MOST_BITS) or 1
    bit = {call: 1 << number for number, call in enumerate(calls[::spread])}
    before, after = [0] * len(graph.nodes), [0] * len(graph.nodes)
    for node in range(len(graph.nodes)):
        for other in graph.predecessors(node):
            before[node] |= before[other] | bit.get(other, 0)
    for node in reversed(range(len(graph.nodes))):
        reached = after[node] | bit.get(node, 0)
        for other in graph.predecessors(node):
            after[other] |= reached
    return before, after
