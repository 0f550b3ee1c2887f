"""Maxima and minima of widened 16-bit floats, taken before they are widened: the result is the same, in half the work.

    %w = linalg.generic ins(%x : bf16) { extf }              %n = linalg.generic ins(%x : bf16) { maximumf }
    %m = linalg.generic ins(%w : f32) { maximumf }   ->      %m = linalg.generic ins(%n : bf16) { extf }

A GPU compares two 16-bit numbers with one instruction. The widened tensor stays for whoever else uses it.
"""

from __future__ import annotations

from ..dialects.mlir import arith, ir, linalg
from . import generics
from .constants import number_of
from .generics import Parts

NEUTRAL = {"arith.maximumf": float("-inf"), "arith.minimumf": float("inf")}


def narrow_extremes(op: ir.Operation) -> None:
    """Rewrites a linalg.generic if it is such a maximum or minimum."""
    parts = generics.parts(op)
    if len(parts.inputs) != 1 or len(parts.outputs) != 1 or parts.all_parallel:
        return
    combine, source = _combine(op), _narrow_source(parts.inputs[0])
    if combine is None or source is None:
        return
    if number_of(generics.uniform_scalar(parts.outputs[0])) != NEUTRAL[combine.name]:
        return
    narrow, point = ir.RankedTensorType(source.type).element_type, ir.InsertionPoint(op)
    with point, op.location:
        neutral = arith.ConstantOp(narrow, ir.FloatAttr.get(narrow, NEUTRAL[combine.name])).result
        init = linalg.fill(neutral, outs=[generics.empty_like(parts.outputs[0], narrow, op.location, point)])
    new = Parts((source,), (init,), parts.maps, parts.iterators)
    name = combine.name
    reduced = generics.build(
        new, lambda arguments: [ir.Operation.create(name, [narrow], list(arguments)).result], op.location, point
    ).results[0]
    wide = generics.elementwise(
        reduced, combine.results[0].type, lambda x: arith.ExtFOp(combine.results[0].type, x).result, op.location, point
    )
    op.results[0].replace_all_uses_with(wide)
    op.erase()


def _combine(op: ir.Operation) -> ir.Operation | None:
    """The one operation of the body, if it takes the extreme of the element and the accumulator."""
    body = generics.body(op)
    operations = [view.operation for view in body.operations]
    if len(operations) != 2 or operations[0].name not in NEUTRAL:
        return None
    combine, result = operations[0], operations[0].results[0]
    is_whole = set(combine.operands) == set(body.arguments) and operations[1].operands[0] == result
    return combine if is_whole else None


def _narrow_source(value: ir.Value) -> ir.Value | None:
    """The 16-bit tensor of which `value` is nothing but the widened elements."""
    if isinstance(value, ir.BlockArgument) or not generics.is_generic(value.owner.operation):
        return None
    op = value.owner.operation
    parts, operations = generics.parts(op), [view.operation for view in generics.body(op).operations]
    if len(parts.inputs) != 1 or len(operations) != 2 or operations[0].name != "arith.extf":
        return None
    source, identity = operations[0].operands[0], ir.AffineMap.get_identity(parts.loops)
    is_plain = parts.all_parallel and all(map_ == identity for map_ in parts.maps)
    if (
        not is_plain
        or not isinstance(source.type, ir.F16Type | ir.BF16Type)
        or source != generics.body(op).arguments[0]
    ):
        return None
    return parts.inputs[0]
