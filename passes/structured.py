"""Reading linalg.generic: dimensions, indexing maps and the combiners of its reductions."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property

from ..dialects.mlir import ir
from .indexing import Counter, Form, Index, constant, of
from .sizes import Extent, meaning, meanings

# A combiner's neutral element by operation: what a reduction starts from, whatever the type's width.
NEUTRAL = {
    "arith.addf": 0.0,
    "arith.mulf": 1.0,
    "arith.maximumf": float("-inf"),
    "arith.minimumf": float("inf"),
    "arith.maxnumf": float("-inf"),
    "arith.minnumf": float("inf"),
    "arith.addi": 0,
    "arith.muli": 1,
    "arith.ori": 0,
    "arith.xori": 0,
    "arith.andi": -1,
    "arith.maxui": 0,
    "arith.minui": -1,
}
SIGNED_EXTREMES = {"arith.maxsi": "least", "arith.minsi": "greatest"}


@dataclass(frozen=True)
class Combiner:
    """How a reduction joins two partial results: `operation(accumulator, expression)`."""

    operation: str
    attributes: tuple[tuple[str, ir.Attribute], ...]
    expression: ir.Value
    element_type: ir.Type

    @property
    def neutral(self) -> ir.Attribute:
        """The attribute of a constant x with operation(x, y) == y."""
        if isinstance(self.element_type, ir.FloatType):
            return ir.FloatAttr.get(self.element_type, NEUTRAL[self.operation])
        width = ir.IntegerType(self.element_type).width
        extremes = {"least": -(1 << (width - 1)), "greatest": (1 << (width - 1)) - 1}
        signed = SIGNED_EXTREMES.get(self.operation)
        value = extremes[signed] if signed else int(NEUTRAL[self.operation])
        return ir.IntegerAttr.get(self.element_type, value)

    def join(self, left: ir.Value, right: ir.Value) -> ir.Value:
        """Two partial results, scalars or vectors, joined."""
        attributes = dict(self.attributes)
        return ir.Operation.create(self.operation, [left.type], [left, right], attributes=attributes).result


@dataclass(frozen=True, eq=False)
class Generic:
    """A linalg.generic, taken apart; its counters are its own, so keep one object an operation."""

    op: ir.Operation

    @cached_property
    def input_count(self) -> int:
        return ir.DenseI32ArrayAttr(self.op.attributes["operandSegmentSizes"])[0]

    @cached_property
    def inputs(self) -> list[ir.Value]:
        return list(self.op.operands)[: self.input_count]

    @cached_property
    def inits(self) -> list[ir.Value]:
        return list(self.op.operands)[self.input_count :]

    @cached_property
    def maps(self) -> list[list[ir.AffineExpr]]:
        attributes = ir.ArrayAttr(self.op.attributes["indexing_maps"])
        return [list(ir.AffineMapAttr(attribute).value.results) for attribute in attributes]

    @cached_property
    def reduction_dims(self) -> list[int]:
        kinds = ir.ArrayAttr(self.op.attributes["iterator_types"])
        return [number for number, kind in enumerate(kinds) if "reduction" in str(kind)]

    @cached_property
    def rank(self) -> int:
        return len(ir.ArrayAttr(self.op.attributes["iterator_types"]))

    @cached_property
    def extents(self) -> list[Extent]:
        """The size of each iteration dimension."""
        found: dict[int, Extent] = {}
        for value, results in zip(self.op.operands, self.maps, strict=True):
            for expression, extent in zip(results, meanings(ir.ShapedType(value.type).shape), strict=True):
                if isinstance(expression, ir.AffineDimExpr):
                    found.setdefault(ir.AffineDimExpr(expression).position, extent)
        return [found[dimension] for dimension in range(self.rank)]

    @cached_property
    def counters(self) -> dict[int, Counter]:
        """The atom of each reduction dimension."""
        return {d: Counter(self.extents[d], f"r{d}") for d in self.reduction_dims}

    @property
    def reduction_extents(self) -> list[Extent]:
        """The sizes of the reduction dimensions."""
        return [self.extents[dimension] for dimension in self.reduction_dims]

    @cached_property
    def gathers(self) -> list[ir.Operation]:
        """The tensor.extract operations of the body."""
        return [op.operation for op in self.body.operations if op.operation.name == "tensor.extract"]

    @cached_property
    def body(self) -> ir.Block:
        return self.op.regions[0].blocks[0]

    @cached_property
    def yielded(self) -> list[ir.Value]:
        operations = self.body.operations
        return list(operations[len(operations) - 1].operation.operands)

    @cached_property
    def accumulators(self) -> list[ir.Value]:
        return list(self.body.arguments)[self.input_count :]

    @cached_property
    def reads_inits(self) -> bool:
        """Whether the body uses what the result held before."""
        return any(True for argument in self.accumulators for _ in argument.uses)

    @cached_property
    def is_product(self) -> bool:
        """Whether it is a product of matrices: a sum in which each of two inputs lacks a dimension of the other's."""
        if not self.reduction_dims or self.input_count != 2:
            return False
        left, right = ({_position(e) for e in results} - set(self.reduction_dims) for results in self.maps[:2])
        return bool(left - right and right - left)

    def dimensions(self, result: int, index: Index, reduction: Sequence[Form] | None = None) -> list[Form]:
        """The iteration point that adds to element `index` of a result.

        `reduction` gives the reduction dimensions' values; without it they are `counters`.
        """
        point: list[Form | None] = [None] * self.rank
        inner = [of(counter) for counter in self.counters.values()] if reduction is None else reduction
        for dimension, form in zip(self.reduction_dims, inner, strict=True):
            point[dimension] = form
        for expression, form in zip(self.maps[self.input_count + result], index, strict=True):
            if isinstance(expression, ir.AffineDimExpr):
                point[ir.AffineDimExpr(expression).position] = form
        return [constant(0) if form is None else form for form in point]

    def input_index(self, number: int, dimensions: Sequence[Form]) -> Index:
        """Which element of operand `number` an iteration point reads."""
        return tuple(apply(expression, dimensions) for expression in self.maps[number])

    def combiner(self, result: int) -> Combiner | None:
        """How partial values of a result are joined; None where only the given order is known to be right."""
        accumulator, value = self.accumulators[result], self.yielded[result]
        if isinstance(value, ir.BlockArgument) or value.owner.name not in {*NEUTRAL, *SIGNED_EXTREMES}:
            return None
        others = [operand for operand in value.owner.operands if operand != accumulator]
        if len(others) != 1 or depends_on(others[0], self.accumulators):
            return None
        attributes = tuple(value.owner.attributes.items())
        return Combiner(value.owner.name, attributes, others[0], value.type)


def _position(expression: ir.AffineExpr) -> int:
    """The dimension that an expression is; -1 if it is none."""
    return ir.AffineDimExpr(expression).position if isinstance(expression, ir.AffineDimExpr) else -1


def depends_on(value: ir.Value, arguments: Sequence[ir.Value]) -> bool:
    """Whether `value`, computed in a linalg body, uses one of the body's `arguments`."""
    pending, seen = [value], set()
    while pending:
        current = pending.pop()
        if current in seen:
            continue
        seen.add(current)
        if current in arguments:
            return True
        if not isinstance(current, ir.BlockArgument):
            pending.extend(current.owner.operands)
    return False


def apply(expression: ir.AffineExpr, dimensions: Sequence[Form]) -> Form:
    """An affine expression of the dimensions, as a form."""
    if isinstance(expression, ir.AffineDimExpr):
        return dimensions[ir.AffineDimExpr(expression).position]
    if isinstance(expression, ir.AffineConstantExpr):
        return constant(meaning(ir.AffineConstantExpr(expression).value))
    binary = ir.AffineBinaryExpr(expression)
    left = apply(binary.lhs, dimensions)
    if isinstance(expression, ir.AffineAddExpr):
        return left + apply(binary.rhs, dimensions)
    number = ir.AffineConstantExpr(binary.rhs).value
    if isinstance(expression, ir.AffineMulExpr):
        return left * number
    if isinstance(expression, ir.AffineFloorDivExpr):
        return left // number
    if isinstance(expression, ir.AffineModExpr):
        return left % number
    return (left * -1 // number) * -1
