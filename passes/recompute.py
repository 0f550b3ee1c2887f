"""Computes cheap values again where they are used, when that moves fewer bytes than storing and reading them.

    before   {y = cast(x), ...}  call  {u = y + a}  call  {v = y * b}       y is written once and read twice
    after    {..., y = cast(x), u = y + a}  call  {y' = cast(x), v = y' * b}          x, half as big, is read twice

A value of one group that other groups read is made by a *cone*: the operations that compute it from what is in
memory anyway. If all of them are elementwise and few, each reader may compute the cone itself. It then reads the
cone's inputs instead of the value, and if nobody is left to read the value it is not written either. Library calls,
reductions and random numbers are never computed twice, nothing is where a call overwrites an input, and the peak of
live bytes stays within its limit.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Sequence
from dataclasses import dataclass, replace

from ..dialects.mlir import ir
from .graph import Graph
from .groups import Groups
from .live_profile import LiveProfile
from .outline import Part, escaping

MOST_NODES = 4
"""A cone of more operations is not cheap."""
MOST_SCALARS = 16
"""Nor is an operation with more scalar operations in its body."""


@dataclass(frozen=True)
class Cone:
    """The operations that make a value, and the values in memory that they start from."""

    nodes: frozenset[int]
    inputs: frozenset[int]


class Recomputation:
    """Decides which groups compute what again; `extra` holds, by group, the nodes."""

    def __init__(self, groups: Groups, profile: LiveProfile | None, max_region_ops: int) -> None:
        self.groups = groups
        self.profile = profile
        self.max_region_ops = max_region_ops
        self.known_cheap: dict[int, bool] = {}
        self.extra: defaultdict[int, set[int]] = defaultdict(set)
        self.local: defaultdict[int, set[int]] = defaultdict(set)

    def run(self) -> None:
        """Looks at each value that one region makes and others read, in the order of the program."""
        graph, groups = self.groups.graph, self.groups
        for value, maker in enumerate(graph.makers):
            if maker >= 0 and groups.readers[value] and graph.nodes[maker].fusible:
                cone = self._cone(value)
                if cone is not None:
                    self._offer(value, cone)

    def _cone(self, value: int) -> Cone | None:
        """How to compute `value` from memory, or None if that is not cheap."""
        graph, groups = self.groups.graph, self.groups
        home = groups.of[graph.makers[value]]
        nodes: set[int] = set()
        inputs: set[int] = set()
        pending = [graph.makers[value]]
        while pending:
            node = pending.pop()
            nodes.add(node)
            if len(nodes) > MOST_NODES or not graph.nodes[node].fusible:
                return None
            inner = {read for read in graph.nodes[node].reads if self._is_inner(read, home)}
            pending += (graph.makers[read] for read in inner)
            inputs.update(set(graph.nodes[node].reads) - inner)
        if inputs & self.local[home] or any(graph.memory[read] in graph.written for read in inputs):
            return None
        return Cone(frozenset(nodes), frozenset(inputs))

    def _is_cheap(self, node: int) -> bool:
        if node not in self.known_cheap:
            self.known_cheap[node] = is_cheap(self.groups.graph.nodes[node].op)
        return self.known_cheap[node]

    def _is_inner(self, value: int, home: int) -> bool:
        """Whether a value exists within its group only."""
        groups = self.groups
        return groups.maker(value) == home and not groups.readers[value] and value not in groups.graph.returned

    def _offer(self, value: int, cone: Cone) -> None:
        """Lets the readers of `value` compute it where that moves fewer bytes and memory allows it."""
        groups = self.groups
        readers = sorted(
            (reader for reader in groups.readers[value] if self._has_room(reader, cone)),
            key=lambda reader: groups.slot[reader],
        )
        gains = {reader: self._saved(reader, value, cone) for reader in readers}
        every = len(readers) == len(groups.readers[value]) and value not in groups.graph.returned
        saved = sum(gains.values()) + self._saved_at_home(value, cone) if every else 0
        if max(saved, *gains.values(), 0) == 0 or not all(self._is_cheap(node) for node in cone.nodes):
            return
        if saved > 0 and self._recompute(value, cone, readers):
            return
        winners = [reader for reader in readers if gains[reader] > 0]
        if winners:
            self._recompute(value, cone, winners)

    def _has_room(self, reader: int, cone: Cone) -> bool:
        groups = self.groups
        size = len(groups.members[reader]) + len(self.extra[reader] | cone.nodes)
        return groups.graph.nodes[reader].fusible and size <= self.max_region_ops

    def _saved(self, reader: int, value: int, cone: Cone) -> int:
        """The bytes that a reader need not read, less those that it has to."""
        sizes = self.groups.graph.sizes
        return sizes[value] - sum(sizes[read] for read in self._added(reader, cone))

    def _saved_at_home(self, value: int, cone: Cone) -> int:
        """The bytes saved where `value` was made, if nobody reads it from there."""
        graph, groups = self.groups.graph, self.groups
        home = groups.of[graph.makers[value]]
        empty = cone.nodes.issuperset(groups.members[home]) and not self.extra[home]
        return graph.sizes[value] + (sum(graph.sizes[read] for read in cone.inputs) if empty else 0)

    def _added(self, reader: int, cone: Cone) -> set[int]:
        return set(cone.inputs) - self.groups.reads[reader] - self.local[reader]

    def _recompute(self, value: int, cone: Cone, readers: Sequence[int]) -> bool:
        """Makes `readers` compute `value`, unless memory does not allow it."""
        graph, groups = self.groups.graph, self.groups
        added = {reader: self._added(reader, cone) for reader in readers}
        for reader in readers:
            groups.reread(reader, {value}, added[reader])
        gained = {graph.memory[read]: readers for read in cone.inputs}
        if self.profile is not None and not self.profile.allows_readers(gained, graph.memory[value]):
            for reader in readers:
                groups.reread(reader, added[reader], {value})
            return False
        for reader in readers:
            self.extra[reader] |= cone.nodes
            self.local[reader].update(made for node in cone.nodes for made in graph.nodes[node].makes)
        return True


def is_cheap(op: ir.Operation) -> bool:
    """Whether `op` is elementwise, with a short body and one result, so that computing it again costs little."""
    if op.name != "linalg.generic" or len(op.results) != 1:
        return False
    if "reduction" in str(op.attributes["iterator_types"]):
        return False
    names = [inner.operation.name for inner in op.regions[0].blocks[0].operations]
    return len(names) <= MOST_SCALARS and "tensor.extract" not in names


def adopt(graph: Graph, parts: Sequence[Part]) -> list[Part]:
    """Moves nodes that only other parts compute still to the first of those, so that they are not dead code."""
    nodes = [set(part.nodes) for part in parts]
    extra = [set(part.recomputed) for part in parts]
    again: dict[int, list[int]] = {}
    for number, part in enumerate(parts):
        for node in part.recomputed:
            again.setdefault(node, []).append(number)
    escapes = escaping(graph, parts)
    home = {node: number for number, part in enumerate(parts) for node in part.nodes}
    for node in sorted(again, reverse=True):
        made = graph.nodes[node].makes
        here = nodes[home[node]]
        used = any(escapes[value] or not here.isdisjoint(graph.readers[value]) for value in made)
        if not used:
            here.discard(node)
            nodes[again[node][0]].add(node)
            extra[again[node][0]].discard(node)
    return [
        replace(part, nodes=tuple(sorted(own)), recomputed=tuple(sorted(copies)))
        for part, own, copies in zip(parts, nodes, extra, strict=True)
        if own
    ]
