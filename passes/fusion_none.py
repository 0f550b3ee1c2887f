"""Makes every operation a region of its own: what there is without fusion.

Needs a body of nodes and free operations (after fusion-normalize). Source order is kept. Before:

    %0 = linalg.generic ... ins(%a)
    %1 = linalg.generic ... ins(%0)
    return %1

After:

    %0 = "fusion.region"(%a) ({ ^bb0(%x): %3 = linalg.generic ... ins(%x)  "fusion.yield"(%3) })
    %1 = "fusion.region"(%0) ({ ^bb0(%x): %3 = linalg.generic ... ins(%x)  "fusion.yield"(%3) })
    return %1
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from ..dialects.mlir import ir
from . import graph
from .outline import Part, outline
from .pass_base import Pass


@dataclass(frozen=True)
class FusionNone(Pass):
    """A region an operation."""

    name: ClassVar[str] = "fusion-none"

    def run(self, module: ir.Module) -> None:
        for function in graph.functions(module):
            dependences = graph.build(function)
            outline(dependences, [Part((node,)) for node in range(len(dependences.nodes))])
