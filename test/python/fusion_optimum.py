"""The best fusion there is of a small graph, by trying every partition and every order.

A partition of the fusible nodes is allowed if some order of its parts respects all dependences and stays within a
peak of live bytes; the optimum is the allowed partition that moves fewest bytes. Exponential: for about 10 nodes.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from mlir_fusion.passes.graph import Graph
from mlir_fusion.passes.outline import Part, escaping
from mlir_fusion.passes.plan import bytes_moved


def fewest_bytes(graph: Graph, peak: int, known: int) -> int:
    """The bytes that the best allowed partition moves, at most `known`, what some allowed one moves."""
    best = known
    for parts in partitions(graph):
        moved = bytes_moved(graph, parts)
        if moved < best and least_peak(graph, parts) <= peak:
            best = moved
    return best


def partitions(graph: Graph) -> Iterator[list[Part]]:
    """Every way to put the fusible nodes into parts, the other nodes being parts of their own."""
    fusible = [number for number, node in enumerate(graph.nodes) if node.fusible]
    single = [Part((number,)) for number, node in enumerate(graph.nodes) if not node.fusible]
    for grouping in _groupings(fusible):
        yield [*(Part(tuple(group)) for group in grouping), *single]


def _groupings(items: Sequence[int]) -> Iterator[list[list[int]]]:
    if not items:
        yield []
        return
    for grouping in _groupings(items[:-1]):
        for number in range(len(grouping)):
            yield [*grouping[:number], [*grouping[number], items[-1]], *grouping[number + 1 :]]
        yield [*grouping, [items[-1]]]


def least_peak(graph: Graph, parts: Sequence[Part]) -> float:
    """The lowest peak of live bytes over all valid orders of the parts; infinite if there is none (a cycle)."""
    escapes = escaping(graph, parts)
    of = {node: number for number, part in enumerate(parts) for node in part.nodes}
    needs = [
        {of[other] for node in part.nodes for other in graph.predecessors(node)} - {number}
        for number, part in enumerate(parts)
    ]
    memories = _Memories(graph, parts, escapes)
    best: dict[int, float] = {0: 0}
    for done in range(1 << len(parts)):
        if done not in best:
            continue
        for number, need in enumerate(needs):
            if not done >> number & 1 and all(done >> other & 1 for other in need):
                after = done | 1 << number
                peak = max(best[done], memories.live_during(done, after))
                best[after] = min(best.get(after, peak), peak)
    return best.get((1 << len(parts)) - 1, float("inf"))


class _Memories:
    """Which parts make and use each memory, as bits."""

    def __init__(self, graph: Graph, parts: Sequence[Part], escapes: Sequence[bool]) -> None:
        self.makers: dict[int, int] = {}
        self.users: dict[int, int] = {}
        kept = {graph.memory[value] for value in graph.returned}
        for number, part in enumerate(parts):
            for node in (graph.nodes[node] for node in part.nodes):
                made = [value for value in node.makes if escapes[value] or not node.fusible]
                self.makers.update((value, 1 << number) for value in made if graph.is_intermediate(value))
                for value in (*node.reads, *node.makes):
                    memory = graph.memory[value]
                    self.users[memory] = self.users.get(memory, 0) | 1 << number
        self.users.update(dict.fromkeys(kept, -1))
        self.sizes = graph.sizes

    def live_during(self, before: int, after: int) -> int:
        """The bytes live while the part runs that is in `after` and not in `before`."""
        return sum(
            self.sizes[memory]
            for memory, maker in self.makers.items()
            if after & maker and (self.users[memory] & ~before or self.users[memory] == -1)
        )
