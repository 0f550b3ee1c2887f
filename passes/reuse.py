"""The peak of a plan in which regions overwrite inputs, as far as one can tell before they are kernels.

fusion-plan-memory lets a pointwise kernel write an output over an input that dies there (in_place.py). Whether a region
becomes one kernel, and a pointwise one, is decided later; here all of its operations being elementwise is taken for it.

    region {d = a + b; e = d * d}    a and b die here, d and e stay    live at it: a and b, not a + b + d + e
"""

from __future__ import annotations

from collections.abc import Sequence

from ..dialects.mlir import ir
from .graph import Graph
from .in_place import refuse_user
from .outline import Part
from .peak import last_uses, profile_of
from .plan import kept_memories, memory_sizes, steps_of


def reusing_peak(graph: Graph, parts: Sequence[Part]) -> int:
    """Most bytes live when the parts run in their order and overwrite what they may."""
    steps, sizes, kept = steps_of(graph, parts), memory_sizes(graph), kept_memories(graph)
    last = last_uses(steps, kept)
    shared = [False] * len(graph.values)
    for value, memory in enumerate(graph.memory):
        shared[memory] = shared[memory] or memory != value
    live = profile_of(steps, sizes, kept)
    with graph.block.owner.context:
        for position, (part, step) in enumerate(zip(parts, steps, strict=True)):
            dying = [memory for memory in step.touches if last.get(memory) == position and not shared[memory]]
            if dying and graph.nodes[part.nodes[0]].fusible:
                live[position] -= sum(sizes[memory] for memory in _overwritten(graph, part, dying, step.makes))
    return max(live, default=0)


def _overwritten(graph: Graph, part: Part, dying: Sequence[int], made: Sequence[int]) -> list[int]:
    """Which of the memories that die in a part its outputs take over, each at most one."""
    free = dict.fromkeys(dying)
    found = []
    for value in made:
        of_type = (memory for memory in free if _is_alike(graph, memory, value))
        taken = next((memory for memory in of_type if _is_elementwise_in(graph, part, memory, value)), None)
        if taken is not None:
            del free[taken]
            found.append(taken)
    return found


def _is_alike(graph: Graph, one: int, other: int) -> bool:
    return graph.values[one].type == graph.values[other].type and graph.sizes[one] == graph.sizes[other]


def _is_elementwise_in(graph: Graph, part: Part, read: int, made: int) -> bool:
    """Whether a part computes `made`, and all that it computes from `read`, at each position by itself."""
    inside = {*part.nodes, *part.recomputed}
    reached: set[int] = set()
    pending = [read]
    while pending:
        value = pending.pop()
        reached.add(value)
        for reader in graph.readers[value]:
            if reader not in inside:
                continue
            op, operand = graph.nodes[reader].op, graph.values[value]
            if operand not in list(op.operands) or refuse_user(op, operand) is not None:
                return False
            pending += (other for other in graph.nodes[reader].makes if other not in reached)
    return made in reached and all(_is_parallel(graph.nodes[node].op) for node in inside)


def _is_parallel(op: ir.Operation) -> bool:
    return op.name == "linalg.generic" and "reduction" not in str(op.attributes["iterator_types"])
