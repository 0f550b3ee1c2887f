"""Puts groups of a function's nodes into `fusion.region` ops, in a given order.

`outline` gets the order as *parts*: each is some nodes that become one region, or one node that is not
fusible and stays what it is. It rewrites the whole body in one pass over the parts: nodes are moved, not
cloned; free operations are cloned into each region that uses them, and what nobody uses any more is erased.

A region's operands are the values that its nodes use from outside, in order of first use; it yields the
values used outside of it, in order of definition. A node that is computed again in another region
(recomputation) is cloned and marked `fusion.recomputed`.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from ..dialects.mlir import ir
from .graph import Graph, outer_uses, used_values

RECOMPUTED = "fusion.recomputed"


@dataclass(frozen=True)
class Part:
    """Nodes of one region, or one node that stays outside; and nodes of other parts that it computes again."""

    nodes: tuple[int, ...]
    recomputed: tuple[int, ...] = ()


def outline(graph: Graph, parts: Sequence[Part]) -> None:
    """Rewrites the function body of `graph` to be `parts`, in their order, then the return."""
    _Outliner(graph, parts).run()


def escaping(graph: Graph, parts: Sequence[Part]) -> list[bool]:
    """By value: whether it is returned or used by a part that does not compute it."""
    escapes = [value in graph.returned for value in range(len(graph.values))]
    for part in parts:
        own = {value for node in (*part.nodes, *part.recomputed) for value in graph.nodes[node].makes}
        for node in (*part.nodes, *part.recomputed):
            for value in graph.nodes[node].reads:
                escapes[value] = escapes[value] or value not in own
    return escapes


class _Outliner:
    """Moves the nodes of a body into place, keeping track of what each value has become."""

    def __init__(self, graph: Graph, parts: Sequence[Part]) -> None:
        self.graph = graph
        self.parts = parts
        self.escapes = escaping(graph, parts)
        operations = graph.block.operations
        self.end = operations[len(operations) - 1].operation
        self.now: dict[ir.Value, ir.Value] = {value: value for value in graph.values}

    def run(self) -> None:
        for constant in reversed(self.graph.constants):
            constant.move_before(self.graph.block.operations[0].operation)
        copies = self._copies()
        for part in self.parts:
            if self.graph.nodes[part.nodes[0]].fusible:
                self._outline_part(part, copies)
            else:
                self._keep(self.graph.nodes[part.nodes[0]].op)
        self._keep(self.end)
        for op in (*copies.values(), *reversed(dict.fromkeys(self.graph.free.values()))):
            op.erase()

    def _copies(self) -> dict[int, ir.Operation]:
        """A copy, still with its original operands, of each node that is computed again somewhere."""
        recomputed = dict.fromkeys(node for part in self.parts for node in part.recomputed)
        point = ir.InsertionPoint(self.end)
        return {node: self.graph.nodes[node].op.clone(ip=point) for node in recomputed}

    def _keep(self, op: ir.Operation) -> None:
        """Puts `op`, and the free operations behind its operands, at the end of the body."""
        if op != self.end:
            op.move_before(self.end)
        self._replace_operands(op, self.now)

    def _outline_part(self, part: Part, copies: dict[int, ir.Operation]) -> None:
        """Makes a region of `part` at the end of the body."""
        graph = self.graph
        nodes = sorted((*part.nodes, *part.recomputed))
        made = {value for node in nodes for value in graph.nodes[node].makes}
        reads = dict.fromkeys(value for node in nodes for value in graph.nodes[node].reads if value not in made)
        inputs = [graph.values[value] for value in reads]
        yielded = [v for node in sorted(part.nodes) for v in graph.nodes[node].makes if self.escapes[v]]
        outputs = [graph.values[value] for value in yielded]
        region, block = self._make_region(inputs, outputs, [graph.nodes[node].op.location for node in nodes])
        local = dict(zip(inputs, block.arguments, strict=True))
        for node in nodes:
            self._add(node, copies[node] if node in part.recomputed else None, block, local)
        with ir.InsertionPoint(block), region.location:
            ir.Operation.create("fusion.yield", operands=[local[value] for value in outputs])
        self.now.update(zip(outputs, region.results, strict=True))

    def _make_region(
        self, inputs: Sequence[ir.Value], outputs: Sequence[ir.Value], locations: Sequence[ir.Location]
    ) -> tuple[ir.Operation, ir.Block]:
        region = ir.Operation.create(
            "fusion.region",
            results=[value.type for value in outputs],
            operands=[self.now[value] for value in inputs],
            regions=1,
            loc=ir.Location.fused(list(dict.fromkeys(locations))),
            ip=ir.InsertionPoint(self.end),
        )
        types = [value.type for value in inputs]
        return region, ir.Block.create_at_start(region.regions[0], types, [value.location for value in inputs])

    def _add(self, node: int, copy: ir.Operation | None, block: ir.Block, local: dict[ir.Value, ir.Value]) -> None:
        """Appends a node, or a further copy of `copy`, to a region's body."""
        original = self.graph.nodes[node].op
        op = original
        if copy is None:
            block.append(original)
        else:
            op = copy.clone(ip=ir.InsertionPoint(block))
            op.attributes[RECOMPUTED] = ir.UnitAttr.get()
        self._replace_operands(op, local)
        local.update(zip(original.results, op.results, strict=True))

    def _replace_operands(self, op: ir.Operation, local: dict[ir.Value, ir.Value]) -> None:
        """Makes `op` use what `local` says, and copies in front of it of the free operations it needs."""
        for user, number, value in list(outer_uses(op)):
            if value not in local:
                self._copy_free(value, local, ir.InsertionPoint(op))
            user.operands[number] = local[value]

    def _copy_free(self, value: ir.Value, local: dict[ir.Value, ir.Value], point: ir.InsertionPoint) -> None:
        """Copies the free operation that makes `value`, after those that it needs, and notes the results."""
        pending = [value]
        while pending:
            op = self.graph.free[pending[-1]]
            missing = [needed for needed in used_values(op) if needed not in local]
            if missing:
                pending += missing
                continue
            pending.pop()
            if op.results[0] in local:
                continue
            copy = op.clone(ip=point)
            for user, number, needed in list(outer_uses(copy)):
                user.operands[number] = local[needed]
            local.update(zip(op.results, copy.results, strict=True))
