"""fusion-split-reductions: makes partial results of a reduction whose own results would not fill the target.

A reduction over columns, or of everything, gives few results, so few blocks would do the work. It becomes two: one
that reduces each of several parts, with parts as a further parallel dimension, and one that joins them. fusion-segment
then makes a kernel of each, what feeds the reduction going with the first and what uses it with the second. The order
in which elements are joined depends on shapes and the target only: the same inputs give the same bits.
reduction_split.py decides, from shapes, bytes and the target; nothing is split for a CPU.

Before: fusion.region ops. After: the same, with partial results marked `fusion.partial`.

    %s = linalg.generic {(r, c) -> (r, c), (r, c) -> (c); "reduction", "parallel"}
           ins(%x : tensor<65536x512xf32>) outs(%zero) { %y = addf %in, %out ; yield %y }
 ->
    %e = tensor.expand_shape %x [[0, 1], [2]] : tensor<65536x512xf32> into tensor<128x512x512xf32>
    %p = linalg.generic {(p, r, c) -> (p, r, c), (p, r, c) -> (p, c); "parallel", "reduction", "parallel"}
           ins(%e) outs(%zeros : tensor<128x512xf32>) attrs = {fusion.partial} { addf }
    %s = linalg.generic {(p, c) -> (p, c), (p, c) -> (c); "reduction", "parallel"} ins(%p) outs(%zero) { addf }

Elements that are left over where the parts don't divide the dimension are reduced like before, into what the joined
result starts from.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import ClassVar

from ..dialects import fusion
from ..dialects.mlir import arith, ir, linalg, tensor
from ..targets.target import Target
from .generics import PARALLEL, Parts, build, parts, rebuild, swap
from .graph import functions
from .indexing import Counter, of
from .kernel_body import KernelBody
from .pass_base import Pass
from .reduction_split import PARTIAL, Split, Traffic, columns, split_of, why_not_split
from .schedules.family import element_bytes
from .source_order import mark_places, note_places, take_place
from .structured import Generic

REDUCTION = "#linalg.iterator_type<reduction>"


@dataclass(frozen=True)
class FusionSplitReductions(Pass):
    """See the module's docstring."""

    name: ClassVar[str] = "fusion-split-reductions"
    target: str = "sm_90"

    def __post_init__(self) -> None:
        Target.parse(self.target)

    def run(self, module: ir.Module) -> None:
        split_reductions(module, Target.parse(self.target))


def split_reductions(module: ir.Module, target: Target) -> None:
    """What the pass does, for any target."""
    if target.kind == "cpu":
        return
    for function in functions(module):
        source_peak = mark_places(function)
        for op in function.regions[0].blocks[0].operations:
            if fusion.is_op(op, "region"):
                _split_region(op.operation, target)
        if source_peak is not None:
            note_places(function, source_peak)


def _split_region(region: ir.Operation, target: Target) -> None:
    body = KernelBody.of_kernel(region)
    operations = [op.operation for op in region.regions[0].blocks[0].operations]
    generics = [body.generic(op) for op in operations if op.name == "linalg.generic" and PARTIAL not in op.attributes]
    splits = [(generic, _split_of(generic, generics, body, target)) for generic in generics]
    for generic, split in splits:
        if split is not None and _divides_inputs(generic, split):
            _split(generic, split)


def _split_of(generic: Generic, generics: Sequence[Generic], body: KernelBody, target: Target) -> Split | None:
    if why_not_split(generic) is not None:
        return None
    shares_rows = columns(generic) > 1 and any(_has_rows_of(other, generic) for other in generics)
    return split_of(generic, _traffic(generic, body), shares_rows, target)


def _has_rows_of(rows: Generic, of_columns: Generic) -> bool:
    """Whether one reduces the rows whose columns the other reduces."""
    reduced, kept = of_columns.reduction_dims, rows.reduction_dims
    if not kept or reduced != list(range(len(reduced))) or kept != list(range(rows.rank - len(kept), rows.rank)):
        return False
    same_rows = math.prod(rows.reduction_extents) == columns(of_columns)
    return same_rows and math.prod(rows.extents) == math.prod(of_columns.extents)


def _traffic(generic: Generic, body: KernelBody) -> Traffic:
    """The inputs that have an element for every point, behind all that is computed on the way."""
    result = generic.op.results[0]
    index = tuple(of(Counter(extent)) for extent in ir.ShapedType(result.type).shape)
    points = math.prod(generic.extents)
    read = {value for value, _ in body.trace([(result, index)]).reads}
    sizes = [element_bytes(value) for value in read if math.prod(ir.ShapedType(value.type).shape) >= points]
    return Traffic(sum(sizes), min(sizes)) if sizes else Traffic(0, 4)


def _divides_inputs(generic: Generic, split: Split) -> bool:
    """Whether the dimension that is cut is a dimension of the inputs, not a part of an expression."""
    if split.dimension is None:
        return True
    counters = [Counter(extent) for extent in generic.extents]
    cut, point = counters[split.dimension], [of(counter) for counter in counters]
    forms = [form for number in range(generic.input_count) for form in generic.input_index(number, point)]
    used = [form for form in forms if cut in form.atoms()]
    return bool(used) and all(form == of(cut) for form in used)


def _split(generic: Generic, split: Split) -> None:
    """Puts partial results, and their join, in the place of a reduction."""
    op, point = generic.op, ir.InsertionPoint(generic.op)
    with op.location:
        starts = list(generic.inits)
        if split.rest:
            rest = _reduce_rest(generic, split, point)
            take_place(rest, op)
            starts = list(rest.results)
        partial = _reduce_parts(generic, split, point)
        joined = _join(generic, list(partial.results), starts, point)
    for made in (partial, joined):
        take_place(made, op)
    for old, new in zip(op.results, joined.results, strict=True):
        old.replace_all_uses_with(new)
    op.erase()


def _reduce_rest(generic: Generic, split: Split, point: ir.InsertionPoint) -> ir.Operation:
    """The same reduction of the elements that no part has."""
    assert split.dimension is not None
    old = parts(generic.op)
    start = split.parts * split.extent
    inputs = [
        _slice(value, _positions(map_, split.dimension), start, split.rest, point)
        for value, map_ in zip(old.inputs, old.maps, strict=False)
    ]
    return swap(generic.op.clone(ip=point), Parts(tuple(inputs), old.outputs, old.maps, old.iterators))


def _reduce_parts(generic: Generic, split: Split, point: ir.InsertionPoint) -> ir.Operation:
    old = parts(generic.op)
    inputs = [_cut(value, map_, split, point) for value, map_ in zip(old.inputs, old.maps, strict=False)]
    counts = [generic.extents[dimension] for dimension in split.whole]
    counts += [split.parts] if split.dimension is not None else []
    outputs = [_neutral(generic, number, counts, point) for number in range(len(generic.inits))]
    copy = generic.op.clone(ip=point)
    made = rebuild(copy, Parts(tuple(inputs), tuple(outputs), tuple(_maps(old, split)), tuple(_iterators(old, split))))
    copy.erase()
    made.attributes[PARTIAL] = ir.UnitAttr.get()
    return made


def _join(
    generic: Generic, partial: Sequence[ir.Value], starts: Sequence[ir.Value], point: ir.InsertionPoint
) -> ir.Operation:
    combiners = [generic.combiner(number) for number in range(len(starts))]
    rank = ir.RankedTensorType(partial[0].type).rank
    parts_rank = rank - ir.RankedTensorType(starts[0].type).rank
    identity = ir.AffineMap.get_identity(rank)
    kept = ir.AffineMap.get(rank, 0, [ir.AffineDimExpr.get(number) for number in range(parts_rank, rank)])
    kinds = [ir.Attribute.parse(REDUCTION)] * parts_rank + [ir.Attribute.parse(PARALLEL)] * (rank - parts_rank)

    def combine(arguments: Sequence[ir.Value]) -> list[ir.Value]:
        elements, accumulators = arguments[: len(partial)], arguments[len(partial) :]
        return [
            ir.Operation.create(
                combiner.operation, [one.type], [one, other], attributes=dict(combiner.attributes)
            ).result
            for combiner, one, other in zip(combiners, elements, accumulators, strict=True)
            if combiner is not None
        ]

    maps = (identity,) * len(partial) + (kept,) * len(starts)
    return build(Parts(tuple(partial), tuple(starts), maps, tuple(kinds)), combine, generic.op.location, point)


def _neutral(generic: Generic, number: int, counts: Sequence[int], point: ir.InsertionPoint) -> ir.Value:
    """What partial results start from."""
    combiner = generic.combiner(number)
    assert combiner is not None
    shape = [*counts, *ir.ShapedType(generic.inits[number].type).shape]
    with point:
        empty = tensor.EmptyOp(shape, combiner.element_type).result
        return linalg.fill(arith.ConstantOp(combiner.element_type, combiner.neutral).result, outs=[empty])


def _maps(old: Parts, split: Split) -> list[ir.AffineMap]:
    """Indexing maps where the dimension that is cut has become two, and parts are leading dimensions of results."""
    cut = split.dimension
    loops = old.loops + (cut is not None)
    moved = [ir.AffineDimExpr.get(d + (cut is not None and d > cut)) for d in range(old.loops)]
    renumber = ir.AffineMap.get(loops, 0, moved)
    leading = [moved[dimension] for dimension in split.whole] + ([moved[cut]] if cut is not None else [])
    maps = []
    for number, map_ in enumerate(old.maps):
        results = [] if number < len(old.inputs) else list(leading)
        for position, expression in enumerate(map_.results):
            is_cut = number < len(old.inputs) and position in _positions(map_, cut)
            results += [moved[cut], ir.AffineDimExpr.get(cut + 1)] if is_cut and cut is not None else []
            results += [] if is_cut else [expression.compose(renumber)]
        maps.append(ir.AffineMap.get(loops, 0, results))
    return maps


def _iterators(old: Parts, split: Split) -> list[ir.Attribute]:
    parallel, reduction = ir.Attribute.parse(PARALLEL), ir.Attribute.parse(REDUCTION)
    kinds: list[ir.Attribute] = []
    for dimension, kind in enumerate(old.iterators):
        if dimension == split.dimension:
            kinds += [parallel, reduction]
        else:
            kinds.append(parallel if dimension in split.whole else kind)
    return kinds


def _positions(map_: ir.AffineMap, dimension: int | None) -> list[int]:
    """The dimensions of an operand that an iteration dimension runs along."""
    if dimension is None:
        return []
    return [k for k, expression in enumerate(map_.results) if expression == ir.AffineDimExpr.get(dimension)]


def _cut(value: ir.Value, map_: ir.AffineMap, split: Split, point: ir.InsertionPoint) -> ir.Value:
    """An input whose dimension is parts by elements of a part."""
    positions = _positions(map_, split.dimension)
    if not positions:
        return value
    if split.rest:
        value = _slice(value, positions, 0, split.parts * split.extent, point)
    type_ = ir.RankedTensorType(value.type)
    shape: list[int] = []
    groups: list[list[int]] = []
    for position, extent in enumerate(type_.shape):
        sizes = [split.parts, split.extent] if position in positions else [extent]
        groups.append(list(range(len(shape), len(shape) + len(sizes))))
        shape += sizes
    result = ir.RankedTensorType.get(shape, type_.element_type)
    with point:
        return tensor.ExpandShapeOp(result, value, groups, [], shape).result


def _slice(value: ir.Value, positions: Sequence[int], start: int, size: int, point: ir.InsertionPoint) -> ir.Value:
    """Part of an input along some of its dimensions."""
    if not positions:
        return value
    type_ = ir.RankedTensorType(value.type)
    offsets = [start if position in positions else 0 for position in range(type_.rank)]
    sizes = [size if position in positions else extent for position, extent in enumerate(type_.shape)]
    result = ir.RankedTensorType.get(sizes, type_.element_type)
    with point:
        return tensor.ExtractSliceOp(result, value, [], [], [], offsets, sizes, [1] * type_.rank).result
