"""Approximate exponentials that are added to larger numbers, as one GPU instruction.

Where an f32 exponential may be approximated (`afn`), a GPU has ex2.approx. Its plain form takes three instructions
more, for results below 2^-126, which the form `ftz` takes for 0. They are nothing beside 1, which they are added to in
a sigmoid, and beside the largest exponential of a softmax (`fusion.at_most_one`):

    %e = math.exp %x fastmath<afn> : f32           %t = arith.mulf %x, log2(e) : f32
    %s = arith.addf %e, %one : f32          ->     %e = llvm.call_intrinsic "llvm.nvvm.ex2.approx.ftz.f"(%t)
"""

from __future__ import annotations

import math

from ..dialects.mlir import arith, ir, llvm, vector
from ..dialects.walk import find
from .constants import number_of
from .softmax_exponentials import AT_MOST_ONE

INTRINSIC = "llvm.nvvm.ex2.approx.ftz.f"
LEAST = 2.0**-64  # numbers of at least this size swallow those below 2^-126


def approximate_exponentials(function: ir.Operation) -> None:
    """Rewrites such exponentials in a GPU function."""
    for op in find(function, lambda op: op.name == "math.exp" and _may_be_off(op) and _is_small_part(op)):
        with ir.InsertionPoint(op), op.location:
            op.results[0].replace_all_uses_with(_exponential(op.operands[0]))
        op.erase()


def _may_be_off(op: ir.Operation) -> bool:
    return _element(op.results[0].type) == ir.F32Type.get() and "afn" in str(op.attributes["fastmath"])


def _is_small_part(op: ir.Operation) -> bool:
    return AT_MOST_ONE in op.attributes or all(_swallows(use) for use in op.results[0].uses)


def _swallows(use: ir.OpOperand) -> bool:
    """Whether the use adds a constant that is far larger than what is lost."""
    user = use.owner.operation
    if user.name != "arith.addf":
        return False
    other = _constant(user.operands[1 - use.operand_number])
    return other is not None and abs(other) >= LEAST


def _constant(value: ir.Value) -> float | None:
    """The number that a scalar or all elements of a vector are, if they are a constant."""
    if isinstance(value, ir.BlockArgument):
        return None
    op = value.owner.operation
    return _constant(op.operands[0]) if op.name == "vector.broadcast" else number_of(value)


def _exponential(exponent: ir.Value) -> ir.Value:
    if isinstance(exponent.type, ir.VectorType):
        lanes = range(ir.VectorType(exponent.type).shape[0])
        powers = [_exponential(vector.ExtractOp(exponent, [], [lane]).result) for lane in lanes]
        return vector.FromElementsOp(exponent.type, powers).result
    f32 = ir.F32Type.get()
    scaled = arith.MulFOp(exponent, arith.ConstantOp(f32, math.log2(math.e)).result).result
    return llvm.call_intrinsic(f32, INTRINSIC, [scaled], [], [])


def _element(type_: ir.Type) -> ir.Type:
    return ir.VectorType(type_).element_type if isinstance(type_, ir.VectorType) else type_
