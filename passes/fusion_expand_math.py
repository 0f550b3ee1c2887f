"""fusion-expand-math: writes out the functions that upstream lowers with a loss, for the CPU.

`convert-math-to-llvm` makes `expm1(x)` an `exp(x) - 1`, which is 0 for a small x. Near zero,
expm1(x) = 2 t / (1 - t) with t = tanh(x / 2), which loses nothing there. (GPUs have libdevice's function.)

Must hold before: nothing; other operations are left alone. Before and after:

    %y = math.expm1 %x : f32          %t = math.tanh(%x / 2)
                                      %near = (%t + %t) / (1 - %t)
                                      %far = math.exp(%x) - 1
                                      %y = select (|%x| < 1/2), %near, %far
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from ..dialects.mlir import arith, ir, math
from ..dialects.walk import find
from .pass_base import Pass


@dataclass(frozen=True)
class FusionExpandMath(Pass):
    """See the module's docstring."""

    name: ClassVar[str] = "fusion-expand-math"

    def run(self, module: ir.Module) -> None:
        """Rewrites every `math.expm1`, in nested modules too."""
        for op in find(module.operation, lambda op: op.name == "math.expm1"):
            with ir.InsertionPoint(op), op.location:
                op.results[0].replace_all_uses_with(expm1(op.operands[0]))
            op.erase()


def expm1(x: ir.Value) -> ir.Value:
    """exp(x) - 1, to the accuracy of exp and tanh."""
    one, half = _splat(x.type, 1.0), _splat(x.type, 0.5)
    t = math.tanh(arith.mulf(x, half))
    near = arith.divf(arith.addf(t, t), arith.subf(one, t))
    far = arith.subf(math.exp(x), one)
    is_near = arith.cmpf(arith.CmpFPredicate.OLT, math.absf(x), half)
    return arith.select(is_near, near, far)


def _splat(shape: ir.Type, value: float) -> ir.Value:
    if not isinstance(shape, ir.ShapedType):
        return arith.constant(shape, ir.FloatAttr.get(shape, value))
    element = ir.FloatAttr.get(shape.element_type, value)
    return arith.constant(shape, ir.DenseElementsAttr.get_splat(shape, element))
