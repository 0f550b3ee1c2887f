"""A reduction's result under way: what it starts from, how values join it, and what the program started from."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

from ...dialects.mlir import arith, ir, vector
from ..evaluate import Evaluator
from ..indexing import Form, Index
from ..kernel_body import Request
from ..lanes import Lanes
from ..structured import Combiner, Generic


@dataclass(frozen=True)
class Partial:
    """One result of a linalg.generic at one element of it."""

    value: ir.Value
    index: Index
    generic: Generic

    @property
    def request(self) -> Request:
        return self.value, self.index

    @property
    def number(self) -> int:
        return ir.OpResult(self.value).result_number

    @property
    def combiner(self) -> Combiner:
        combiner = self.generic.combiner(self.number)
        assert combiner is not None, "the schedule accepts only reductions whose partial results can be joined"
        return combiner

    def combine(self, left: ir.Value, right: ir.Value) -> ir.Value:
        """Two partial results joined."""
        return self.combiner.join(left, right)

    def start(self, width: int) -> ir.Value:
        """An accumulator that holds nothing yet."""
        combiner = self.combiner
        neutral = arith.ConstantOp(combiner.element_type, combiner.neutral).result
        return neutral if width == 1 else splat(neutral, width)

    def expression(
        self, reduction: Sequence[Form], lanes: Lanes | None, valid: ir.Value | None, evaluator: Evaluator
    ) -> ir.Value:
        """What one point of the reduction (or a vector of them) adds; nothing where it is not valid."""
        point = self.generic.dimensions(self.number, self.index, reduction)
        value = evaluator.partial(self.generic, self.value, point, lanes)
        if lanes is not None and not isinstance(value.type, ir.VectorType):
            value = splat(value, lanes.count)
        if valid is None:
            return value
        return arith.SelectOp(valid, value, self.start(lanes.count if lanes else 1)).result

    def with_init(self, total: ir.Value, lanes: Lanes | None, evaluator: Evaluator) -> ir.Value:
        """What the result starts from, joined at the end; a neutral one is left out."""
        init = self.generic.inits[self.number]
        if is_filled_with(init, self.combiner.neutral):
            return total
        first = evaluator.at(init, self.index, lanes)
        if isinstance(total.type, ir.VectorType) and not isinstance(first.type, ir.VectorType):
            first = splat(first, ir.VectorType(total.type).shape[0])
        return self.combine(first, total)


def is_filled_with(init: ir.Value, attribute: ir.Attribute) -> bool:
    """Whether a tensor is a fill with this constant."""
    if isinstance(init, ir.BlockArgument) or init.owner.name != "linalg.fill":
        return False
    scalar = init.owner.operands[0]
    if isinstance(scalar, ir.BlockArgument) or scalar.owner.name != "arith.constant":
        return False
    return scalar.owner.attributes["value"] == attribute


def splat(value: ir.Value, width: int) -> ir.Value:
    """A vector of one scalar."""
    return vector.BroadcastOp(ir.VectorType.get([width], value.type), value).result


def join_lanes(value: ir.Value, combine: Callable[[ir.Value, ir.Value], ir.Value]) -> ir.Value:
    """Lanes joined as a tree."""
    if not isinstance(value.type, ir.VectorType):
        return value
    width = ir.VectorType(value.type).shape[0]
    parts = [vector.ExtractOp(value, [], [lane]).result for lane in range(width)]
    while len(parts) > 1:
        half = len(parts) // 2
        parts = [combine(parts[k], parts[k + half]) for k in range(half)]
    return parts[0]
