"""Rewrites arithmetic in linalg bodies into cheaper arithmetic that is at least as accurate.

Powers with a constant exponent, as PyTorch computes them:

    pow(x, 2) -> x * x       pow(x, 3) -> x * x * x     pow(x, 1/2) -> sqrt(x)    pow(x, -1/2) -> 1 / sqrt(x)
    pow(x, -1) -> 1 / x      pow(x, -2) -> 1 / (x * x)  other integers: pow(x, n) with a floating-point n

(The last one because GPUs have no function for an integer exponent of 64 bits.) And the logistic function:

    1 + tanh(u) -> 2 / (1 + exp(-2 u))

which keeps its relative accuracy where tanh(u) is near -1, and costs one exponential. The assertion that torch-mlir
puts before a reciprocal, that the divisor is not 0, goes: PyTorch's quotient is infinite.
"""

from __future__ import annotations

from collections.abc import Callable

from ..dialects.mlir import arith, ir, math
from . import generics
from .constants import number_of


def simplify(op: ir.Operation) -> None:
    """Rewrites the body of a linalg.generic in place."""
    for inner in [view.operation for view in generics.body(op).operations]:
        if _refuses_zero(inner):
            inner.erase()
            continue
        rewrite = _REWRITES.get(inner.name)
        if rewrite is None:
            continue
        with ir.InsertionPoint(inner), inner.location:
            result = rewrite(inner)
        if result is not None:
            inner.results[0].replace_all_uses_with(result)
            inner.erase()


def _power(op: ir.Operation) -> ir.Value | None:
    base, exponent = op.operands
    value = number_of(exponent)
    if value is None:
        return _float_power(op)
    special = _POWERS.get(float(value))
    if special is not None:
        return special(base)
    return _float_power(op)


def _float_power(op: ir.Operation) -> ir.Value | None:
    """An integer exponent as a floating-point one; nothing to do for one that is that already."""
    base, exponent = op.operands
    if op.name != "math.fpowi":
        return None
    return math.PowFOp(base, arith.SIToFPOp(base.type, exponent).result).result


def _reciprocal(x: ir.Value) -> ir.Value:
    return arith.DivFOp(_number(x.type, 1.0), x).result


def _square(x: ir.Value) -> ir.Value:
    return arith.MulFOp(x, x).result


_POWERS: dict[float, Callable[[ir.Value], ir.Value]] = {
    2.0: _square,
    3.0: lambda x: arith.MulFOp(_square(x), x).result,
    0.5: lambda x: math.SqrtOp(x).result,
    -0.5: lambda x: _reciprocal(math.SqrtOp(x).result),
    -1.0: _reciprocal,
    -2.0: lambda x: _reciprocal(_square(x)),
}


def _one_plus_tanh(op: ir.Operation) -> ir.Value | None:
    for one, other in (op.operands, reversed(list(op.operands))):
        if number_of(one) == 1.0 and not isinstance(other, ir.BlockArgument) and other.owner.name == "math.tanh":
            return _twice_logistic(other.owner.operands[0])
    return None


def _twice_logistic(u: ir.Value) -> ir.Value:
    """2 / (1 + exp(-2 u))."""
    exponential = math.ExpOp(arith.MulFOp(u, _number(u.type, -2.0)).result).result
    return arith.DivFOp(_number(u.type, 2.0), arith.AddFOp(exponential, _number(u.type, 1.0)).result).result


def _refuses_zero(op: ir.Operation) -> bool:
    """Whether it asserts that a floating-point number is not 0."""
    if op.name != "cf.assert" or isinstance(op.operands[0], ir.BlockArgument):
        return False
    condition = op.operands[0].owner.operation
    if condition.name != "arith.cmpf":
        return False
    predicate = arith.CmpFPredicate(ir.IntegerAttr(condition.attributes["predicate"]).value)
    is_unequal = predicate in (arith.CmpFPredicate.ONE, arith.CmpFPredicate.UNE)
    return is_unequal and any(number_of(operand) == 0.0 for operand in condition.operands)


_REWRITES: dict[str, Callable[[ir.Operation], ir.Value | None]] = {
    "math.powf": _power,
    "math.fpowi": _power,
    "arith.addf": _one_plus_tanh,
}


def _number(type_: ir.Type, value: float) -> ir.Value:
    return arith.ConstantOp(type_, value).result
