"""Constant tensors as globals in memory.

    %c = arith.constant dense<[1, 2]> : tensor<2xi32>
becomes
    memref.global "private" constant @constant_0 : memref<2xi32> = dense<[1, 2]>
    %c = memref.get_global @constant_0 : memref<2xi32>
"""

from __future__ import annotations

from ..dialects.mlir import ir


class ConstantGlobals:
    """The constants of a module as `memref.global`s, equal ones once."""

    def __init__(self, module: ir.Module) -> None:
        self._body = module.body
        self._names: dict[ir.Attribute, str] = {}
        self._taken = {
            ir.StringAttr(op.attributes["sym_name"]).value
            for op in module.body.operations
            if "sym_name" in op.attributes
        }

    def name(self, value: ir.Attribute, memory: ir.MemRefType, location: ir.Location) -> str:
        if value not in self._names:
            name = self._fresh_name()
            stored = value if memory.element_type == value.type.element_type else _as_bytes(value)
            ir.Operation.create(
                "memref.global",
                attributes={
                    "sym_name": ir.StringAttr.get(name),
                    "sym_visibility": ir.StringAttr.get("private"),
                    "type": ir.TypeAttr.get(memory),
                    "initial_value": stored,
                    "constant": ir.UnitAttr.get(),
                },
                loc=location,
                ip=ir.InsertionPoint.at_block_begin(self._body),
            )
            self._names[value] = name
        return self._names[value]

    def _fresh_name(self) -> str:
        number = len(self._names)
        while f"constant_{number}" in self._taken:
            number += 1
        self._taken.add(f"constant_{number}")
        return f"constant_{number}"


def _as_bytes(value: ir.Attribute) -> ir.Attribute:
    """Booleans, one a byte."""
    byte = ir.IntegerType.get_signless(8)
    elements = [ir.IntegerAttr.get(byte, int(element)) for element in ir.DenseIntElementsAttr(value)]
    return ir.DenseElementsAttr.get(elements, ir.RankedTensorType.get(list(value.type.shape), byte))
