"""Gives the tensors of a block static types, from those of its arguments on, one operation after the other.

    %d = tensor.dim %x, %c0             64, since %x is 64x8 by now
    %e = tensor.empty(%d)               made anew, as tensor<64x8xf32>
    %y = linalg.exp ins(%x) outs(%e)    of the type of what it is written over
    %m = fusion.extern(%y, %w) aten.mm  64x16, if %w is 8x16

What is known besides: the numbers of the symbols, and the shapes of what the function returns.
"""

from __future__ import annotations

import operator
from collections.abc import Callable, Mapping, Sequence

from ..dialects import fusion
from ..dialects.mlir import ir
from .errors import PassFailure
from .graph import erase_unused
from .size_expressions import evaluate

Shape = list[int]

ARITHMETIC: dict[str, Callable[[int, int], int]] = {
    "arith.addi": operator.add,
    "arith.subi": operator.sub,
    "arith.muli": operator.mul,
    "arith.divsi": operator.floordiv,
    "arith.divui": operator.floordiv,
    "arith.floordivsi": operator.floordiv,
    "arith.ceildivsi": lambda one, other: -(-one // other),
    "arith.remsi": operator.mod,
    "arith.remui": operator.mod,
    "arith.maxsi": max,
    "arith.minsi": min,
}
CONVERSIONS = ("arith.index_cast", "arith.extsi", "arith.extui", "arith.trunci")
LIBRARY: dict[str, Callable[..., Shape]] = {
    "aten.mm.default": lambda one, other: [one[0], other[1]],
    "aten.addmm.default": lambda _, one, other: [one[0], other[1]],
    "aten.bmm.default": lambda one, other: [*one[:2], other[2]],
    "aten.baddbmm.default": lambda _, one, other: [*one[:2], other[2]],
}
DYNAMIC = ir.ShapedType.get_dynamic_size()


class Sizes:
    """Walks a block; `numbers` are those of the symbols, `said` the shapes of values that are known beforehand."""

    def __init__(self, numbers: Mapping[str, int], said: Mapping[ir.Value, Shape]) -> None:
        self._symbols = numbers
        self._said = dict(said)
        self._known: dict[ir.Value, int] = {}

    def infer(self, block: ir.Block) -> None:
        """Changes the types of all results in the block; PassFailure where a size does not follow."""
        for op in [view.operation for view in block.operations]:
            self._scalar(op)
            if any(_is_dynamic(result.type) for result in op.results) or fusion.is_op(op, "region"):
                self._infer(op)
        erase_unused(block, lambda op: op.name == "tensor.dim" or op.name.startswith("arith."))

    def _scalar(self, op: ir.Operation) -> None:
        """Notes the number that an operation on sizes gives, if it is known."""
        operands = [self._known.get(operand) for operand in op.operands]
        if op.name == "arith.constant" and isinstance(op.attributes["value"], ir.IntegerAttr):
            self._known[op.results[0]] = ir.IntegerAttr(op.attributes["value"]).value
        elif op.name == "tensor.dim" and operands[1] is not None:
            self._known[op.results[0]] = ir.RankedTensorType(op.operands[0].type).get_dim_size(operands[1])
        elif op.name in CONVERSIONS and operands[0] is not None:
            self._known[op.results[0]] = operands[0]
        elif op.name in ARITHMETIC and operands[0] is not None and operands[1] is not None:
            self._known[op.results[0]] = ARITHMETIC[op.name](operands[0], operands[1])

    def _infer(self, op: ir.Operation) -> None:
        if fusion.is_op(op, "region"):
            self._region(op)
        elif fusion.is_op(op, "extern"):
            for number, result in enumerate(op.results):
                _set(result, self._shape_of_call(op, number))
        elif op.name.startswith("linalg."):
            for result, output in zip(op.results, list(op.operands)[-len(op.results) :], strict=True):
                _set(result, _shape(output))
        elif op.name in _SHAPES:
            _SHAPES[op.name](self, op)
        else:
            raise PassFailure(op.location, f"can't tell the sizes of what '{op.name}' gives")

    def _region(self, op: ir.Operation) -> None:
        block = op.regions[0].blocks[0]
        for argument, operand in zip(block.arguments, op.operands, strict=True):
            argument.set_type(operand.type)
        self.infer(block)
        for result, value in zip(op.results, fusion.terminator(op).operands, strict=True):
            result.set_type(value.type)

    def _shape_of_call(self, op: ir.Operation, number: int) -> Shape:
        result, name = op.results[number], ir.StringAttr(op.attributes["op"]).value
        tied = {made: operand for operand, made in fusion.tied_operands(op)}
        if not _is_dynamic(result.type):
            return _shape(result)
        if "result_shapes" in op.attributes:
            return self._evaluate(ir.ArrayAttr(op.attributes["result_shapes"])[number])
        if number in tied:
            return _shape(op.operands[tied[number]])
        if name in LIBRARY:
            return LIBRARY[name](*(_shape(operand) for operand in op.operands))
        if result in self._said:
            return self._said[result]
        hint = 'say it with result_shapes, for example result_shapes = [["s0", 8]]'
        raise PassFailure(op.location, f"the sizes of result {number} of {name} don't follow from its operands; {hint}")

    def _evaluate(self, shape: ir.Attribute) -> Shape:
        extents = [extent.value for extent in ir.ArrayAttr(shape) if isinstance(extent, ir.StringAttr | ir.IntegerAttr)]
        return [extent if isinstance(extent, int) else evaluate(extent, self._symbols) for extent in extents]

    def numbers(self, op: ir.Operation, static: str, operands: Sequence[ir.Value]) -> list[int]:
        """The numbers in an attribute, the dynamic ones taken from the operands in order."""
        return self._filled(op, list(ir.DenseI64ArrayAttr(op.attributes[static])), operands)

    def _filled(self, op: ir.Operation, given_numbers: Sequence[int], operands: Sequence[ir.Value]) -> list[int]:
        given = iter(operands)
        found = [next(given) if one == DYNAMIC else one for one in given_numbers]
        values = [one if isinstance(one, int) else self._known.get(one) for one in found]
        if any(value is None for value in values):
            raise PassFailure(op.location, f"can't tell the sizes of what '{op.name}' gives")
        return [value for value in values if value is not None]

    def empty(self, op: ir.Operation) -> None:
        """tensor.empty and tensor.splat: the dynamic sizes are the last operands."""
        type_ = ir.RankedTensorType(op.results[0].type)
        count = sum(type_.is_dynamic_dim(dimension) for dimension in range(type_.rank))
        rest = list(op.operands)[: len(op.operands) - count]
        given = iter(list(op.operands)[len(rest) :])
        shape = [
            self._known.get(next(given)) if type_.is_dynamic_dim(d) else type_.get_dim_size(d)
            for d in range(type_.rank)
        ]
        if any(extent is None for extent in shape):
            raise PassFailure(op.location, f"can't tell the sizes of what '{op.name}' gives")
        _rebuild(op, rest, [extent for extent in shape if extent is not None], {})

    def expand(self, op: ir.Operation) -> None:
        shape = self.numbers(op, "static_output_shape", list(op.operands)[1:])
        i64s = ir.DenseI64ArrayAttr.get(shape)
        _rebuild(op, [op.operands[0]], shape, {"static_output_shape": i64s})

    def collapse(self, op: ir.Operation) -> None:
        source, shape = _shape(op.operands[0]), []
        for group in ir.ArrayAttr(op.attributes["reassociation"]):
            extent = 1
            for dimension in ir.ArrayAttr(group):
                extent *= source[ir.IntegerAttr(dimension).value]
            shape.append(extent)
        _set(op.results[0], shape)

    def slice(self, op: ir.Operation) -> None:
        """Offsets, sizes and strides, in operands where dynamic; static sizes of 1 may be dropped from the result."""
        ends = list(ir.DenseI32ArrayAttr(op.attributes["operandSegmentSizes"]))
        operands, parts, position = list(op.operands), [], ends[0]
        for name, count in zip(("offsets", "sizes", "strides"), ends[1:], strict=True):
            parts.append(self.numbers(op, f"static_{name}", operands[position : position + count]))
            position += count
        rank = ir.RankedTensorType(op.results[0].type).rank
        droppable = [d for d, size in enumerate(ir.DenseI64ArrayAttr(op.attributes["static_sizes"])) if size == 1]
        dropped = set(droppable[: len(parts[1]) - rank])
        shape = [size for dimension, size in enumerate(parts[1]) if dimension not in dropped]
        names = ("static_offsets", "static_sizes", "static_strides")
        changed = {name: ir.DenseI64ArrayAttr.get(part) for name, part in zip(names, parts, strict=True)}
        changed["operandSegmentSizes"] = ir.DenseI32ArrayAttr.get([1, 0, 0, 0])
        _rebuild(op, [operands[0]], shape, changed)

    def pad(self, op: ir.Operation) -> None:
        ends = list(ir.DenseI32ArrayAttr(op.attributes["operandSegmentSizes"]))
        operands = list(op.operands)
        low = self.numbers(op, "static_low", operands[1 : 1 + ends[1]])
        high = self.numbers(op, "static_high", operands[1 + ends[1] : 1 + ends[1] + ends[2]])
        _set(op.results[0], [sum(one) for one in zip(_shape(operands[0]), low, high, strict=True)])

    def concat(self, op: ir.Operation) -> None:
        shapes = [_shape(operand) for operand in op.operands]
        dimension = ir.IntegerAttr(op.attributes["dim"]).value
        joined = list(shapes[0])
        joined[dimension] = sum(shape[dimension] for shape in shapes)
        _set(op.results[0], joined)

    def like_source(self, op: ir.Operation) -> None:
        """A cast: of its operand's type."""
        op.results[0].replace_all_uses_with(op.operands[0])
        op.erase()

    def like_destination(self, op: ir.Operation) -> None:
        _set(op.results[0], _shape(op.operands[1]))


_SHAPES: dict[str, Callable[[Sizes, ir.Operation], None]] = {
    "tensor.cast": Sizes.like_source,
    "tensor.collapse_shape": Sizes.collapse,
    "tensor.concat": Sizes.concat,
    "tensor.empty": Sizes.empty,
    "tensor.expand_shape": Sizes.expand,
    "tensor.extract_slice": Sizes.slice,
    "tensor.insert_slice": Sizes.like_destination,
    "tensor.pad": Sizes.pad,
    "tensor.splat": Sizes.empty,
}


def _is_dynamic(type_: ir.Type) -> bool:
    return isinstance(type_, ir.RankedTensorType) and not type_.has_static_shape


def _shape(value: ir.Value) -> Shape:
    return list(ir.RankedTensorType(value.type).shape)


def _set(value: ir.Value, shape: Shape) -> None:
    type_ = ir.RankedTensorType(value.type)
    value.set_type(ir.RankedTensorType.get(shape, type_.element_type, type_.encoding))


def _rebuild(op: ir.Operation, operands: Sequence[ir.Value], shape: Shape, changed: dict[str, ir.Attribute]) -> None:
    """The operation with static sizes, in the place of `op`."""
    type_ = ir.RankedTensorType(op.results[0].type)
    attributes = {name: op.attributes[name] for name in op.attributes} | changed
    made = ir.Operation.create(
        op.name,
        results=[ir.RankedTensorType.get(shape, type_.element_type, type_.encoding)],
        operands=list(operands),
        attributes=attributes,
        loc=op.location,
        ip=ir.InsertionPoint(op),
    )
    op.results[0].replace_all_uses_with(made.results[0])
    op.erase()
