"""Whether a small relative error of an f32 step is hidden by roundings to 16 bits that all its uses end in.

Inside one body that is easy to see: what it yields is 16 bits wide. Across bodies it holds as long as each step keeps
relative errors as small as they are: products, quotients, and sums of numbers that are all positive.

    e = exp(x)          f32, not rounded itself        the sum of exponentials, and the quotient by it, are off by as
    s = sum of e        f32                            little as the exponentials; only the rounded quotient is seen
    y = bf16(e / s)
"""

from __future__ import annotations

from dataclasses import dataclass, replace

from ..dialects.mlir import ir
from . import generics
from .constants import number_of

STEPS = 8  # bodies that are followed, one behind the other
RESHAPES = frozenset({"tensor.expand_shape", "tensor.collapse_shape", "tensor.cast", "tensor.extract_slice"})
POSITIVE = frozenset({"math.exp", "math.exp2"})


@dataclass(frozen=True)
class _Error:
    """A value that is a little wrong: whether it is positive for certain, and how far it may still be followed."""

    is_positive: bool
    steps: int = STEPS


def is_hidden(value: ir.Value) -> bool:
    """Whether all uses of a result of a linalg body end in a rounding to 16 bits, and nothing enlarges its error."""
    return _is_hidden_in_body(value, _Error(value.owner.name in POSITIVE))


def _is_hidden_in_body(value: ir.Value, error: _Error) -> bool:
    for use in value.uses:
        user = use.owner.operation
        if user.name == "linalg.yield":
            hidden = _is_hidden_tensor(user.parent.operation.results[use.operand_number], error)
        elif user.name == "arith.truncf":
            hidden = _is_narrow(user.results[0].type) or _is_hidden_in_body(user.results[0], error)
        elif user.name in ("arith.mulf", "arith.divf"):
            hidden = _is_hidden_in_body(user.results[0], replace(error, is_positive=False))
        else:
            hidden = error.is_positive and _is_sum(user) and _is_hidden_in_body(user.results[0], error)
        if not hidden:
            return False
    return True


def _is_hidden_tensor(value: ir.Value, error: _Error) -> bool:
    if _is_narrow(ir.ShapedType(value.type).element_type):
        return True
    if error.steps == 0:
        return False
    further = replace(error, steps=error.steps - 1)
    for use in value.uses:
        user = use.owner.operation
        if user.name in RESHAPES:
            hidden = _is_hidden_tensor(user.results[0], further)
        elif generics.is_generic(user) and use.operand_number < len(generics.parts(user).inputs):
            hidden = _is_hidden_in_body(generics.body(user).arguments[use.operand_number], further)
        else:
            hidden = False
        if not hidden:
            return False
    return True


def _is_sum(op: ir.Operation) -> bool:
    """Whether it adds to the accumulator of a sum that starts from nothing."""
    if op.name != "arith.addf":
        return False
    generic = op.parent.operation
    parts, body = generics.parts(generic), generics.body(generic)
    accumulators = list(body.arguments)[len(parts.inputs) :]
    starts = [generics.uniform_scalar(output) for output in parts.outputs]
    return any(
        accumulator in list(op.operands) and number_of(start) == 0
        for accumulator, start in zip(accumulators, starts, strict=True)
    )


def _is_narrow(type_: ir.Type) -> bool:
    return isinstance(type_, ir.F16Type | ir.BF16Type)
