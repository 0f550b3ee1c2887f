"""Reading, building and rebuilding `linalg.generic`.

The bindings give a linalg op as a flat list of operands and attributes. `Parts` is what one thinks in:
inputs, outputs (the initial values), a map for each, and the iterators; `rebuild` puts changed parts around
the old body, which it moves instead of cloning, so block arguments keep their identity.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace

from ..dialects.mlir import arith, ir, linalg, tensor

PARALLEL = "#linalg.iterator_type<parallel>"


@dataclass(frozen=True)
class Parts:
    """The operands of a linalg.generic, each with its map, and what its loops are."""

    inputs: tuple[ir.Value, ...]
    outputs: tuple[ir.Value, ...]
    maps: tuple[ir.AffineMap, ...]
    iterators: tuple[ir.Attribute, ...]

    @property
    def loops(self) -> int:
        return len(self.iterators)

    @property
    def all_parallel(self) -> bool:
        return all(str(iterator) == PARALLEL for iterator in self.iterators)

    def without(self, operand: int) -> Parts:
        """These parts less one operand (numbered through inputs and outputs) and its map."""
        operands = (*self.inputs, *self.outputs)
        kept = operands[:operand] + operands[operand + 1 :]
        inputs = len(self.inputs) - (operand < len(self.inputs))
        maps = self.maps[:operand] + self.maps[operand + 1 :]
        return replace(self, inputs=kept[:inputs], outputs=kept[inputs:], maps=maps)

    def with_operand(self, operand: int, value: ir.Value) -> Parts:
        """These parts with another value for one operand."""
        operands = [*self.inputs, *self.outputs]
        operands[operand] = value
        return replace(self, inputs=tuple(operands[: len(self.inputs)]), outputs=tuple(operands[len(self.inputs) :]))

    def bounded(self) -> bool:
        """Whether each loop is some operand's dimension, where linalg takes the loop's extent from."""
        found = {expression for map_ in self.maps for expression in map_.results}
        return all(ir.AffineDimExpr.get(loop) in found for loop in range(self.loops))


def is_generic(op: ir.Operation | ir.OpView) -> bool:
    return op.operation.name == "linalg.generic"


def parts(op: ir.Operation | ir.OpView) -> Parts:
    """The parts of a linalg.generic."""
    operation = op.operation
    count = ir.DenseI32ArrayAttr(operation.attributes["operandSegmentSizes"])[0]
    operands = tuple(operation.operands)
    maps = tuple(ir.AffineMapAttr(a).value for a in ir.ArrayAttr(operation.attributes["indexing_maps"]))
    iterators = tuple(ir.ArrayAttr(operation.attributes["iterator_types"]))
    return Parts(operands[:count], operands[count:], maps, iterators)


def body(op: ir.Operation | ir.OpView) -> ir.Block:
    return op.operation.regions[0].blocks[0]


def yield_of(op: ir.Operation | ir.OpView) -> ir.Operation:
    """The linalg.yield of a linalg op."""
    operations = body(op).operations
    return operations[len(operations) - 1].operation


def rebuild(op: ir.Operation, new: Parts) -> ir.Operation:
    """A linalg.generic in front of `op` with the body of `op` and other parts; `op` is left without a body.

    The caller replaces the results of `op` and erases it.
    """
    made = _create(new, op.location, ir.InsertionPoint(op))
    body(op).append_to(made.regions[0])
    return made


def swap(op: ir.Operation, new: Parts) -> ir.Operation:
    """`rebuild` where the results stay the same in number: also replaces and erases `op`."""
    made = rebuild(op, new)
    for old, result in zip(op.results, made.results, strict=True):
        old.replace_all_uses_with(result)
    op.erase()
    return made


def build(
    new: Parts,
    make_body: Callable[[Sequence[ir.Value]], Sequence[ir.Value]],
    location: ir.Location,
    point: ir.InsertionPoint,
) -> ir.Operation:
    """A linalg.generic whose body is what `make_body` emits for its block arguments."""
    made = _create(new, location, point)
    elements = [_element(value.type) for value in (*new.inputs, *new.outputs)]
    block = ir.Block.create_at_start(made.regions[0], elements, [location] * len(elements))
    with ir.InsertionPoint(block), location:
        linalg.YieldOp(list(make_body(list(block.arguments))))
    return made


def elementwise(
    source: ir.Value,
    element: ir.Type,
    compute: Callable[[ir.Value], ir.Value],
    location: ir.Location,
    point: ir.InsertionPoint,
) -> ir.Value:
    """A generic over `source` that gives a tensor of the same shape and of `element`s."""
    output = empty_like(source, element, location, point)
    identity = ir.AffineMap.get_identity(ir.ShapedType(source.type).rank)
    iterators = (ir.Attribute.parse(PARALLEL),) * identity.n_dims
    new = Parts((source,), (output,), (identity, identity), iterators)
    return build(new, lambda arguments: [compute(arguments[0])], location, point).results[0]


def constant_tensor(value: ir.Value, like: ir.Value, location: ir.Location, point: ir.InsertionPoint) -> ir.Value:
    """A generic that gives a tensor shaped like `like` whose elements all are the scalar `value`."""
    output = empty_like(like, value.type, location, point)
    identity = ir.AffineMap.get_identity(ir.ShapedType(like.type).rank)
    iterators = (ir.Attribute.parse(PARALLEL),) * identity.n_dims
    return build(Parts((), (output,), (identity,), iterators), lambda _: [value], location, point).results[0]


def uniform_scalar(value: ir.Value) -> ir.Value | None:
    """The scalar that all elements of `value` are, if it is a fill or a splat; may put a constant next to
    the splat."""
    owner = value.owner
    if isinstance(owner, ir.Block):
        return None
    op = owner.operation
    if op.name == "linalg.fill" or (op.name == "tensor.splat" and len(op.operands) == 1):
        return op.operands[0]
    if op.name == "tensor.from_elements" and len(op.operands) == 1:
        return op.operands[0]
    if op.name != "arith.constant" or not is_splat(op.attributes["value"]):
        return None
    with ir.InsertionPoint(op), op.location:
        splat = ir.DenseElementsAttr(op.attributes["value"]).get_splat_value()
        return arith.ConstantOp(_element(value.type), splat).result


def is_splat(attribute: ir.Attribute) -> bool:
    return isinstance(attribute, ir.DenseElementsAttr) and attribute.is_splat


def empty_like(
    value: ir.Value,
    element: ir.Type,
    location: ir.Location,
    point: ir.InsertionPoint,
    order: Sequence[int] | None = None,
) -> ir.Value:
    """A tensor.empty of the shape of `value`, its dimensions in another `order` if one is given."""
    shaped = ir.RankedTensorType(value.type)
    with point, location:
        sizes = [
            _dimension(value, number) if shaped.is_dynamic_dim(number) else shaped.get_dim_size(number)
            for number in (order if order is not None else range(shaped.rank))
        ]
        return tensor.EmptyOp(sizes, element).result


def _dimension(value: ir.Value, number: int) -> ir.Value:
    index = arith.ConstantOp(ir.IndexType.get(), number).result
    return tensor.DimOp(value, index).result


def _create(new: Parts, location: ir.Location, point: ir.InsertionPoint) -> ir.Operation:
    attributes = {
        "indexing_maps": ir.ArrayAttr.get([ir.AffineMapAttr.get(map_) for map_ in new.maps]),
        "iterator_types": ir.ArrayAttr.get(list(new.iterators)),
        "operandSegmentSizes": ir.DenseI32ArrayAttr.get([len(new.inputs), len(new.outputs)]),
    }
    return ir.Operation.create(
        "linalg.generic",
        results=[value.type for value in new.outputs],
        operands=[*new.inputs, *new.outputs],
        attributes=attributes,
        regions=1,
        loc=location,
        ip=point,
    )


def _element(type_: ir.Type) -> ir.Type:
    return ir.ShapedType(type_).element_type if isinstance(type_, ir.RankedTensorType) else type_
