"""What is known of scalars: the number that one is."""

from __future__ import annotations

from ..dialects.mlir import ir


def number_of(value: ir.Value | None) -> float | int | None:
    """The number that a scalar is, if it is a constant."""
    if value is None or isinstance(value, ir.BlockArgument) or value.owner.name != "arith.constant":
        return None
    attribute = value.owner.attributes["value"]
    return attribute.value if isinstance(attribute, ir.FloatAttr | ir.IntegerAttr) else None
