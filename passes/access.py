"""What an operation on tensors reads to give one element of its result.

This is the meaning of every operation that moves elements about, in one place: for element `index` of a
result, `pieces(op, index)` lists where the element may come from, each piece with the conditions under which
it does. The first piece whose conditions hold is the one; the last has none.

    tensor.collapse_shape, expand_shape    the element at the same row-major position
    tensor.extract_slice                   offset + index * stride
    tensor.concat                          operand k while the index is inside it
    tensor.pad, tensor.insert_slice        the source inside a window, else the padding or the destination
    linalg.fill, tensor.splat              the scalar
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from ..dialects.mlir import ir
from .indexing import Form, Index, delinearize, linearize, row_major
from .sizes import Extent, meanings

# MLIR's marker of a size, stride or offset that is an operand.
DYNAMIC = -(2**63)


@dataclass(frozen=True)
class Condition:
    """low <= form < high; with a step, (form - low) is a multiple of it."""

    form: Form
    low: Extent
    high: Extent
    step: int = 1

    @property
    def always(self) -> bool:
        least, greatest = self.form.bounds
        return self.step == 1 and least >= self.low and greatest < self.high

    @property
    def never(self) -> bool:
        least, greatest = self.form.bounds
        return greatest < self.low or least >= self.high


@dataclass(frozen=True)
class Piece:
    """Element `index` of `value` (a scalar has the index ()), where all `conditions` hold."""

    value: ir.Value
    index: Index
    conditions: tuple[Condition, ...] = ()


def shape(value: ir.Value) -> list[Extent]:
    """A tensor's sizes, those from before a cast that forgets them."""
    while not ir.ShapedType(value.type).has_static_shape and not isinstance(value, ir.BlockArgument):
        if value.owner.name != "tensor.cast":
            break
        value = value.owner.operands[0]
    return meanings(ir.ShapedType(value.type).shape)


def pieces(op: ir.Operation, index: Index) -> list[Piece]:
    """Where element `index` of `op`'s result may come from; conditions known to fail or to hold are gone."""
    possible = []
    for piece in _PIECES[op.name](op, index):
        if any(condition.never for condition in piece.conditions):
            continue
        open_conditions = tuple(c for c in piece.conditions if not c.always)
        possible.append(Piece(piece.value, piece.index, open_conditions))
        if not open_conditions:
            break
    return possible


def moves_elements(op: ir.Operation) -> bool:
    """Whether `pieces` knows the operation."""
    return op.name in _PIECES


def _reshape(op: ir.Operation, index: Index) -> list[Piece]:
    source = op.operands[0]
    position = linearize(index, row_major(shape(op.results[0])))
    return [Piece(source, delinearize(position, shape(source)))]


def _cast(op: ir.Operation, index: Index) -> list[Piece]:
    return [Piece(op.operands[0], index)]


def _scalar(op: ir.Operation, index: Index) -> list[Piece]:
    return [Piece(op.operands[0], ())]


def _extract_slice(op: ir.Operation, index: Index) -> list[Piece]:
    offsets, sizes, strides = slice_parameters(op)
    kept = iter(index)
    dropped = _dropped_dimensions(sizes, shape(op.results[0]))
    source_index = []
    for dimension, (offset, stride) in enumerate(zip(offsets, strides, strict=True)):
        inner = Form() if dimension in dropped else next(kept)
        source_index.append(inner * stride + offset)
    return [Piece(op.operands[0], tuple(source_index))]


def _insert_slice(op: ir.Operation, index: Index) -> list[Piece]:
    source, destination = op.operands[0], op.operands[1]
    offsets, sizes, strides = slice_parameters(op)
    dropped = _dropped_dimensions(sizes, shape(source))
    conditions, source_index = [], []
    for dimension, form in enumerate(index):
        offset, size, stride = offsets[dimension], sizes[dimension], strides[dimension]
        conditions.append(Condition(form, offset, offset + (size - 1) * stride + 1, stride))
        if dimension not in dropped:
            source_index.append((form - offset) // stride)
    return [Piece(source, tuple(source_index), tuple(conditions)), Piece(destination, index)]


def _pad(op: ir.Operation, index: Index) -> list[Piece]:
    source = op.operands[0]
    low = meanings(list(ir.DenseI64ArrayAttr(op.attributes["static_low"])))
    conditions = [
        Condition(form, start, start + extent) for form, start, extent in zip(index, low, shape(source), strict=True)
    ]
    inside = tuple(form - start for form, start in zip(index, low, strict=True))
    operations = op.regions[0].blocks[0].operations
    padding = operations[len(operations) - 1].operation.operands[0]
    return [Piece(source, inside, tuple(conditions)), Piece(padding, ())]


def _concat(op: ir.Operation, index: Index) -> list[Piece]:
    axis = ir.IntegerAttr(op.attributes["dim"]).value
    result: list[Piece] = []
    start: Extent = 0
    for operand in op.operands:
        end = start + shape(operand)[axis]
        inside = (*index[:axis], index[axis] - start, *index[axis + 1 :])
        result.append(Piece(operand, inside, (Condition(index[axis], start, end),)))
        start = end
    last = result[-1]
    return [*result[:-1], Piece(last.value, last.index)]


def slice_parameters(op: ir.Operation) -> tuple[list[Extent], list[Extent], list[int]]:
    """(offsets, sizes, strides) of tensor.extract_slice and tensor.insert_slice."""
    names = ("static_offsets", "static_sizes", "static_strides")
    offsets, sizes, strides = (list(ir.DenseI64ArrayAttr(op.attributes[name])) for name in names)
    return meanings(offsets), meanings(sizes), strides


def has_static_parameters(op: ir.Operation) -> bool:
    """Whether a slice or a pad has no offset, size or stride that is an operand."""
    names = ("static_offsets", "static_sizes", "static_strides", "static_low", "static_high")
    present = [ir.DenseI64ArrayAttr(op.attributes[name]) for name in names if name in op.attributes]
    return all(number != DYNAMIC for numbers in present for number in numbers)


def _dropped_dimensions(sizes: Sequence[Extent], kept: Sequence[Extent]) -> set[int]:
    """The unit dimensions of a rank-reducing slice: those of `sizes` that have no partner in `kept`."""
    dropped: set[int] = set()
    remaining = list(kept)
    for dimension, size in enumerate(sizes):
        if remaining and remaining[0] == size:
            remaining.pop(0)
        else:
            dropped.add(dimension)
    return dropped


_PIECES = {
    "tensor.expand_shape": _reshape,
    "tensor.collapse_shape": _reshape,
    "tensor.cast": _cast,
    "tensor.extract_slice": _extract_slice,
    "tensor.insert_slice": _insert_slice,
    "tensor.pad": _pad,
    "tensor.concat": _concat,
    "linalg.fill": _scalar,
    "tensor.splat": _scalar,
}
