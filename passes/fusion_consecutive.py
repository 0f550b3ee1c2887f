"""Fuses operations that follow one another in the source: one scan, source order kept exactly.

A region takes one operation after the other and closes only at one that can't join it: a library call, a
view, or one too many (`max-region-ops`). The order of operations is that of the program, so memory use is
what its author can predict; what it peaks at is reported and not bounded. (fusion-dataflow looks at the
whole graph instead.) `fuel` ends it after so many fusions (fuel.py).

Needs a body of nodes and free operations (after fusion-normalize). Leaves fusion.region, fusion.extern,
fusion.view, constants and the return. Before:

    %c = linalg.generic ins(%a, %b)          c = a + b
    %d = "fusion.extern"(%c, %b) {op = "aten.mm.default", ...}
    %e = linalg.generic ins(%a, %c)          e = a - c
    %f = linalg.generic ins(%e)              f = relu(e)
    return %d, %f

After, with a region on either side of the call:

    %c = "fusion.region"(%a, %b) ({ c = a + b })
    %d = "fusion.extern"(%c, %b) {op = "aten.mm.default", ...}
    %f = "fusion.region"(%a, %c) ({ e = a - c; f = relu(e) })
    return %d, %f
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from ..dialects.mlir import ir
from . import graph
from .fuel import NO_LIMIT, Fuel, check_fuel
from .graph import Graph
from .legality import DEFAULT_MAX_REGION_OPS, check_max_region_ops, why_not_this_size
from .outline import Part, outline
from .pass_base import Pass


@dataclass(frozen=True)
class FusionConsecutive(Pass):
    """Runs of operations that can share a region, in source order."""

    name: ClassVar[str] = "fusion-consecutive"

    max_region_ops: int = DEFAULT_MAX_REGION_OPS
    fuel: int = NO_LIMIT

    def __post_init__(self) -> None:
        check_max_region_ops(self.max_region_ops)
        check_fuel(self.fuel)

    def run(self, module: ir.Module) -> None:
        fuel = Fuel(self.fuel)
        for function in graph.functions(module):
            dependences = graph.build(function)
            parts = [Part(run) for run in consecutive_runs(dependences, self.max_region_ops)]
            outline(dependences, fuel.limit(dependences, parts))


def consecutive_runs(dependences: Graph, max_region_ops: int) -> list[tuple[int, ...]]:
    """The nodes in source order, cut into runs that may each be a region, and single nodes that may not."""
    runs: list[list[int]] = []
    open_run = False
    for number, node in enumerate(dependences.nodes):
        if open_run and node.fusible and why_not_this_size(len(runs[-1]) + 1, max_region_ops) is None:
            runs[-1].append(number)
        else:
            runs.append([number])
        open_run = node.fusible
    return [tuple(run) for run in runs]
