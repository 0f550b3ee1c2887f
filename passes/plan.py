"""What a grouping of a graph's nodes costs: peak of live bytes, bytes moved, launches.

The measures of DESIGN.md, for the source order and for any list of parts. They are pure functions, shared
by the report, the passes and the tests.
"""

from __future__ import annotations

from collections.abc import Sequence

from .graph import Graph
from .outline import Part, escaping
from .peak import Step, peak_of


def source_peak(graph: Graph) -> int:
    """Most bytes live in source order, each result a new buffer: what eager PyTorch holds."""
    return peak_of(source_steps(graph), memory_sizes(graph), kept_memories(graph))


def plan_peak(graph: Graph, parts: Sequence[Part]) -> int:
    """Most bytes live when the parts run in their order; what stays within a part takes none."""
    return peak_of(steps_of(graph, parts), memory_sizes(graph), kept_memories(graph))


def bytes_moved(graph: Graph, parts: Sequence[Part]) -> int:
    """Bytes of each part's distinct inputs and of its outputs; views move nothing."""
    escapes = escaping(graph, parts)
    return sum(_part_bytes(graph, part, escapes) for part in parts)


def memory_sizes(graph: Graph) -> list[int]:
    """By value: the bytes that the program allocates for it; none for views, arguments and constants."""
    return [size if graph.is_intermediate(value) else 0 for value, size in enumerate(graph.sizes)]


def kept_memories(graph: Graph) -> set[int]:
    """The memories that live to the end."""
    return {graph.memory[value] for value in graph.returned}


def source_steps(graph: Graph) -> list[Step]:
    """The nodes one by one, each result in memory even if nobody uses it."""
    every = [True] * len(graph.values)
    return [_step(graph, Part((node,)), every) for node in range(len(graph.nodes))]


def steps_of(graph: Graph, parts: Sequence[Part]) -> list[Step]:
    """What each part touches in memory and makes there."""
    escapes = escaping(graph, parts)
    return [_step(graph, part, escapes) for part in parts]


def predecessors_of(graph: Graph, parts: Sequence[Part]) -> list[set[int]]:
    """By part: the parts that must come before it."""
    of = {node: number for number, part in enumerate(parts) for node in part.nodes}
    found = []
    for number, part in enumerate(parts):
        inner = {*part.nodes, *part.recomputed}
        before = {other for node in inner for other in graph.predecessors(node) if other not in inner}
        found.append({of[other] for other in before} - {number})
    return found


def _step(graph: Graph, part: Part, allocated: Sequence[bool]) -> Step:
    """What a part touches in memory."""
    nodes = [graph.nodes[node] for node in part.nodes]
    made = [value for node in nodes for value in node.makes if allocated[value] or not node.fusible]
    inner = {value for number in (*part.nodes, *part.recomputed) for value in graph.nodes[number].makes}
    read = [v for number in (*part.nodes, *part.recomputed) for v in graph.nodes[number].reads if v not in inner]
    touched = (graph.memory[value] for value in (*read, *made))
    return Step(tuple(touched), tuple(value for value in made if graph.is_intermediate(value)))


def _part_bytes(graph: Graph, part: Part, escapes: Sequence[bool]) -> int:
    numbers = (*part.nodes, *part.recomputed)
    nodes = [graph.nodes[number] for number in numbers]
    if nodes[0].op.name == "fusion.view":
        return 0
    inner = {value for node in nodes for value in node.makes}
    read = {value for node in nodes for value in node.reads} - inner
    made = {v for n in part.nodes for v in graph.nodes[n].makes if escapes[v] or not graph.nodes[n].fusible}
    return sum(graph.sizes[value] for value in read | made)
