"""How much arithmetic an operation is: floating-point operations, counted as papers count them.

An addition, a product, a comparison that picks a value, a root or an exponential is one operation an element, a fused
multiply-add two. Conversions, integers and indices are none. Of library calls those are counted whose number follows
from the shapes alone: matrix products, convolutions and attention (all of the matrix, causal or not); of others nothing
is known, which is None and not 0.
"""

from __future__ import annotations

import math
from collections.abc import Sequence

from ..dialects import fusion
from ..dialects.mlir import ir
from . import generics
from .structured import Generic

FLOATS = ("addf", "subf", "mulf", "divf", "remf", "negf", "maximumf", "minimumf", "maxnumf", "minnumf")
COUNTED = frozenset(f"arith.{name}" for name in FLOATS)
INTEGERS = frozenset({"math.absi", "math.ipowi", "math.ctlz", "math.cttz", "math.ctpop"})

PRODUCTS = {"aten.mm": 0, "aten.bmm": 0, "aten.addmm": 1, "aten.baddbmm": 1}
"""Matrix products: which argument is the left factor."""
ATTENTION = ("aten._scaled_dot_product", "aten.scaled_dot_product")
CONVOLUTION = "aten.convolution"
TRANSPOSED = 6
"""The argument of a convolution that says whether it is one."""


def flops_of(op: ir.Operation) -> int | None:
    """Floating-point operations of a linalg operation, a region, a kernel or a call; None where they aren't known."""
    if fusion.is_op(op, "region", "kernel"):
        return sum(flops_of(inner.operation) or 0 for inner in op.regions[0].blocks[0].operations)
    if fusion.is_op(op, "extern"):
        return _flops_of_call(op)
    if not generics.is_generic(op):
        return 0
    scalars = sum(_flops_of_scalar(inner.operation.name) for inner in generics.body(op).operations)
    return scalars * math.prod(Generic(op).extents) if scalars else 0


def _flops_of_scalar(name: str) -> int:
    if name == "math.fma":
        return 2
    return int(name in COUNTED or (name.startswith("math.") and name not in INTEGERS))


def _flops_of_call(op: ir.Operation) -> int | None:
    name = ".".join(ir.StringAttr(op.attributes["op"]).value.split(".")[:2])
    arguments = [_operand(op, entry) for entry in ir.ArrayAttr(op.attributes["args"])]
    if name in PRODUCTS:
        left = arguments[PRODUCTS[name]]
        return None if left is None else 2 * _elements(op.results[0]) * _shape(left)[-1]
    if name == CONVOLUTION:
        return _flops_of_convolution(op, arguments)
    if name.startswith(ATTENTION) and "backward" not in name:
        return _flops_of_attention(op, arguments)
    return None


def _flops_of_convolution(op: ir.Operation, arguments: Sequence[ir.Value | None]) -> int | None:
    """Each element of the result is a sum over a filter; transposed, each of the input goes into one."""
    values, weight = arguments[:2]
    if values is None or weight is None:
        return None
    is_transposed = str(ir.ArrayAttr(op.attributes["args"])[TRANSPOSED]) == "true"
    return 2 * _elements(values if is_transposed else op.results[0]) * math.prod(_shape(weight)[1:])


def _flops_of_attention(op: ir.Operation, arguments: Sequence[ir.Value | None]) -> int | None:
    """Each query meets each key, and each weight a value."""
    query, key = arguments[:2]
    if query is None or key is None:
        return None
    return 2 * (_elements(query) + _elements(op.results[0])) * _shape(key)[-2]


def _operand(op: ir.Operation, entry: ir.Attribute) -> ir.Value | None:
    """The operand that stands for an argument, if one does."""
    number = fusion.read_operand(entry)
    return None if number is None else op.operands[number]


def _elements(value: ir.Value) -> int:
    return math.prod(_shape(value))


def _shape(value: ir.Value) -> list[int]:
    return list(ir.ShapedType(value.type).shape)
