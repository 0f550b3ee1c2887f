"""Approximate divisions by what neighbours have in common become products with its reciprocal.

The quotients of a row by the row's sum need one division and many products, in place of many divisions:

    %q = arith.divf %a, %s {fusion.approximate}  ->    %r = arith.divf 1.0, %s {fusion.approximate}
                                                       %q = arith.mulf %a, %r

where %s is the same for neighbours along the innermost loop. So that the smallest numbers have reciprocals too, they
are scaled up first, and the products again; but for sums that are known to be at least 1 (softmax_exponentials.py).
"""

from __future__ import annotations

from ..dialects.mlir import arith, ir, math
from . import generics
from .narrow_floats import APPROXIMATE
from .softmax_exponentials import is_sum_of_marked

TINY, SCALE = 2.0**-100, 2.0**60  # divisors below the one are multiplied by the other


def invert_divisors(op: ir.Operation) -> None:
    """Rewrites the marked divisions in the body of a linalg.generic."""
    for inner in [view.operation for view in generics.body(op).operations]:
        if inner.name == "arith.divf" and APPROXIMATE in inner.attributes and _is_uniform(inner.operands[1], op):
            divisor = generics.parts(op).inputs[ir.BlockArgument(inner.operands[1]).arg_number]
            _multiply(inner, is_sum_of_marked(divisor))


def _is_uniform(value: ir.Value, op: ir.Operation) -> bool:
    """Whether neighbours along the innermost loop see the same value of an argument of the body."""
    if not isinstance(value, ir.BlockArgument):
        return False
    parts = generics.parts(op)
    innermost = ir.AffineDimExpr.get(parts.loops - 1) if parts.loops else None
    return value.arg_number < len(parts.inputs) and innermost not in list(parts.maps[value.arg_number].results)


def _multiply(op: ir.Operation, is_large: bool) -> None:
    """a / b as (a * r) * s with r = 1 / (b * s), where s is 1 if b is known to be large."""
    (left, right), f32 = op.operands, ir.F32Type.get()
    with ir.InsertionPoint(op), op.location:
        one = arith.ConstantOp(f32, 1.0).result
        scale = None if is_large else _scale(right, one)
        scaled = right if scale is None else arith.MulFOp(right, scale).result
        reciprocal = arith.DivFOp(one, scaled)
        reciprocal.operation.attributes[APPROXIMATE] = ir.UnitAttr.get()
        quotient = arith.MulFOp(left, reciprocal.result).result
        if scale is not None:
            quotient = arith.MulFOp(quotient, scale).result
    op.results[0].replace_all_uses_with(quotient)
    op.erase()


def _scale(divisor: ir.Value, one: ir.Value) -> ir.Value:
    up, tiny = (arith.ConstantOp(ir.F32Type.get(), value).result for value in (SCALE, TINY))
    is_tiny = arith.CmpFOp(arith.CmpFPredicate.OLT, math.AbsFOp(divisor).result, tiny).result
    return arith.SelectOp(is_tiny, up, one).result
