"""Divisions that may be off by two units in the last place, as the GPU instruction that does just that.

`div.full.f32` works for all operands and takes about half the instructions of a correctly rounded division, and
no branch. fusion-normalize marks the divisions that may use it (`fusion.approximate`); the CPU ignores the mark.

    %q = arith.divf %a, %b {fusion.approximate} : f32
 ->
    %q = llvm.call_intrinsic "llvm.nvvm.div.full"(%a, %b) : (f32, f32) -> f32
"""

from __future__ import annotations

from ..dialects.mlir import ir, llvm, vector
from ..dialects.walk import find
from .narrow_floats import APPROXIMATE

INTRINSIC = "llvm.nvvm.div.full"


def approximate_divisions(function: ir.Operation) -> None:
    """Rewrites the marked f32 divisions in a GPU function."""
    for op in find(function, lambda op: op.name == "arith.divf" and APPROXIMATE in op.attributes):
        with ir.InsertionPoint(op), op.location:
            op.results[0].replace_all_uses_with(_divide(*op.operands))
        op.erase()


def _divide(left: ir.Value, right: ir.Value) -> ir.Value:
    if not isinstance(left.type, ir.VectorType):
        return llvm.call_intrinsic(left.type, INTRINSIC, [left, right], [], [])
    lanes = range(ir.VectorType(left.type).shape[0])
    quotients = [_divide(_lane(left, lane), _lane(right, lane)) for lane in lanes]
    return vector.FromElementsOp(left.type, quotients).result


def _lane(value: ir.Value, lane: int) -> ir.Value:
    return vector.ExtractOp(value, [], [lane]).result
