"""How tensors lie in memory: strides and offset, read from wherever the IR records them.

function argument     its attribute fusion.layout, else row-major
fusion.view           its attributes
fusion.extern         its attribute result_layouts, where it has one
fusion.kernel         what the function returns: fusion.layout among its attributes of results; else row-major
memref                its type
"""

from __future__ import annotations

from dataclasses import dataclass

from ..dialects import fusion
from ..dialects.mlir import ir
from .indexing import row_major
from .sizes import Extent, meaning, meanings


@dataclass(frozen=True)
class Layout:
    """Strides and offset in elements."""

    strides: tuple[Extent, ...]
    offset: Extent = 0


def layout_of(value: ir.Value) -> Layout:
    """The layout of a tensor or a memref of static shape."""
    shape = meanings(ir.ShapedType(value.type).shape)
    if isinstance(value.type, ir.MemRefType):
        memory = ir.MemRefType(value.type)
        if not isinstance(memory.layout, ir.StridedLayoutAttr):
            return Layout(tuple(row_major(shape)))
        strides, offset = memory.get_strides_and_offset()
        return Layout(tuple(meanings(strides)), meaning(offset))
    recorded = _of_argument(value) if isinstance(value, ir.BlockArgument) else _of_result(value)
    return recorded or Layout(tuple(row_major(shape)))


def _of_argument(argument: ir.BlockArgument) -> Layout | None:
    owner = argument.owner.owner.operation  # not the view, whose `name` is the symbol
    if owner.name != "func.func" or "arg_attrs" not in owner.attributes:
        return None
    return _from_dictionary(ir.ArrayAttr(owner.attributes["arg_attrs"])[argument.arg_number])


def _from_dictionary(attributes: ir.DictAttr) -> Layout | None:
    if "fusion.layout" not in attributes:
        return None
    return _from_attribute(attributes["fusion.layout"])


def prescribed_layout(value: ir.Value) -> ir.Attribute | None:
    """The #fusion.layout that the function must return `value` with, if it returns it and says so."""
    returns = [use for use in value.uses if use.owner.name == "func.return"]
    for use in returns:
        function = use.owner.operation.parent
        if "res_attrs" in function.attributes:
            attributes = ir.DictAttr(ir.ArrayAttr(function.attributes["res_attrs"])[use.operand_number])
            if "fusion.layout" in attributes:
                return attributes["fusion.layout"]
    return None


def _of_result(value: ir.Value) -> Layout | None:
    attributes = value.owner.attributes
    if fusion.is_op(value.owner, "kernel", "region"):
        prescribed = prescribed_layout(value)
        return None if prescribed is None else _from_attribute(prescribed)
    if fusion.is_op(value.owner, "view"):
        return Layout(tuple(fusion.integers(attributes["strides"])), ir.IntegerAttr(attributes["offset"]).value)
    if not fusion.is_op(value.owner, "extern") or "result_layouts" not in attributes:
        return None
    recorded = ir.ArrayAttr(attributes["result_layouts"])[ir.OpResult(value).result_number]
    return _from_attribute(recorded)


def _from_attribute(attribute: ir.Attribute) -> Layout | None:
    found = fusion.read_layout(attribute)
    return None if found is None else Layout(found.strides, found.offset)
