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
from typing import ClassVar, Literal

from ..dialects import fusion
from ..dialects.mlir import arith, ir, linalg, tensor
from ..targets.target import Target
from .generics import PARALLEL, Parts, build, parts, rebuild, swap
from .graph import functions
from .indexing import Counter, of
from .kernel_body import KernelBody
from .outline import RECOMPUTED
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
        source = mark_places(function)
        for op in function.regions[0].blocks[0].operations:
            if fusion.is_op(op, "region"):
                _split_region(op.operation, target)
        if source is not None:
            note_places(function, source)


def _split_region(region: ir.Operation, target: Target) -> None:
    body = KernelBody.of_kernel(region)
    operations = [op.operation for op in region.regions[0].blocks[0].operations]
    generics = [body.generic(op) for op in operations if op.name == "linalg.generic" and not _is_done(op)]
    splits = [(generic, _split_of(generic, generics, body, target)) for generic in generics]
    for generic, split in splits:
        if split is not None and _divides_inputs(generic, split):
            _split(generic, split)


def _is_done(op: ir.Operation) -> bool:
    """Whether it is a part already, or repeats another operation."""
    return PARTIAL in op.attributes or RECOMPUTED in op.attributes


def _split_of(generic: Generic, generics: Sequence[Generic], body: KernelBody, target: Target) -> Split | None:
    if why_not_split(generic) is not None:
        return None
    shares_rows = any(_has_rows_of(other, generic) for other in generics)
    as_large = any(_is_as_large(output, generic) for output in body.outputs)
    has_rows = columns(generic) > 1 and (shares_rows or as_large)
    return split_of(generic, _traffic(generic, body), has_rows, target)


def _has_rows_of(rows: Generic, of_columns: Generic) -> bool:
    """Whether one reduces the rows whose columns the other reduces."""
    reduced, kept = of_columns.reduction_dims, rows.reduction_dims
    if reduced != list(range(reduced[0], reduced[-1] + 1)) or kept != list(range(rows.rank - len(kept), rows.rank)):
        return False
    same_rows = math.prod(rows.reduction_extents) == columns(of_columns)
    return bool(kept) and same_rows and math.prod(rows.extents) == math.prod(of_columns.extents)


def _is_as_large(output: ir.Value, generic: Generic) -> bool:
    """Whether an output has an element for every point of a reduction."""
    return math.prod(ir.ShapedType(output.type).shape) == math.prod(generic.extents)


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
        partial = _reduce_parts(generic, split, point)
        # Afterwards, so that what feeds the parts is in their kernel by then
        rest = [_reduce_rest(generic, split, point)] if split.rest else []
        starts = list(rest[0].results) if rest else list(generic.inits)
        joined = _join(generic, split, partial, starts, point)
    for made in (*rest, partial):
        made.attributes[PARTIAL] = ir.UnitAttr.get()
    for made in (*rest, partial, joined):
        take_place(made, op)
    for old, new in zip(op.results, joined.results, strict=True):
        old.replace_all_uses_with(new)
    op.erase()


def _reduce_rest(generic: Generic, split: Split, point: ir.InsertionPoint) -> ir.Operation:
    """The same reduction of the elements that no part has."""
    assert split.dimension is not None
    old = parts(generic.op)
    start = split.parts * split.extent
    copies: dict[ir.Operation, ir.Operation] = {}
    inputs = [
        _slice(_again(value, copies, point), _positions(map_, split.dimension), start, split.rest, point)
        for value, map_ in zip(old.inputs, old.maps, strict=False)
    ]
    return swap(generic.op.clone(ip=point), Parts(tuple(inputs), old.outputs, old.maps, old.iterators))


def _again(value: ir.Value, copies: dict[ir.Operation, ir.Operation], point: ir.InsertionPoint) -> ir.Value:
    """What feeds a reduction, computed a second time: else it would be stored whole, for two kernels to read.

    Only the elements of the rest will be. What reductions give is there already.
    """
    op = None if isinstance(value, ir.BlockArgument) else value.owner.operation
    if op is None or not isinstance(value.type, ir.RankedTensorType) or not _is_elementwise(op):
        return value
    if op not in copies:
        operands = [_again(operand, copies, point) for operand in op.operands]
        copy = copies[op] = op.clone(ip=point)
        for number, operand in enumerate(operands):
            copy.operands[number] = operand
        if op.name == "linalg.generic":
            copy.attributes[RECOMPUTED] = ir.UnitAttr.get()
    return copies[op].results[ir.OpResult(value).result_number]


def _is_elementwise(op: ir.Operation) -> bool:
    if op.name == "linalg.generic":
        return parts(op).all_parallel
    return op.name in ("tensor.expand_shape", "tensor.collapse_shape", "tensor.extract_slice")


@dataclass(frozen=True)
class _Loop:
    """A loop of the partial reduction: over parts, inside a part, over rows read as one, or a dimension as it was."""

    dimension: int
    role: Literal["part", "inside", "beside", "kept"]


def _loops(generic: Generic, split: Split) -> list[_Loop]:
    """Parts stand where their dimension was, so that memory is walked in order; first, if only rows are left inside."""
    loops: list[_Loop] = []
    for dimension in range(generic.rank):
        if dimension in split.whole:
            loops.append(_Loop(dimension, "part"))
        elif dimension == split.dimension:
            loops += [_Loop(dimension, "part"), _Loop(dimension, "inside")]
            loops += [_Loop(dimension, "beside")] if split.side_by_side > 1 else []
        else:
            loops.append(_Loop(dimension, "kept"))
    return loops if columns(generic) > 1 else sorted(loops, key=lambda loop: loop.role != "part")


def _reduce_parts(generic: Generic, split: Split, point: ir.InsertionPoint) -> ir.Operation:
    old, loops = parts(generic.op), _loops(generic, split)
    inputs = [_cut(value, map_, split, point) for value, map_ in zip(old.inputs, old.maps, strict=False)]
    maps = [_input_map(map_, split, loops) for map_ in old.maps[: len(inputs)]]
    outputs = []
    for number, map_ in enumerate(old.maps[len(inputs) :]):
        results = _results(map_, loops)
        outputs.append(_neutral(generic, number, _sizes(generic, number, results, split), point))
        maps.append(ir.AffineMap.get(len(loops), 0, [_expression(one, loops) for one in results]))
    copy = generic.op.clone(ip=point)
    made = rebuild(copy, Parts(tuple(inputs), tuple(outputs), tuple(maps), tuple(_iterators(old, loops))))
    copy.erase()
    return made


def _results(map_: ir.AffineMap, loops: Sequence[_Loop]) -> list[_Loop | ir.AffineExpr]:
    """What the dimensions of a partial result run along: parts among the old ones, in the order of the loops."""
    remaining = [loop for loop in loops if loop.role in ("part", "beside")]
    parts_first = all(loop.role == "part" for loop in loops[: len(remaining)])
    results: list[_Loop | ir.AffineExpr] = []
    for expression in map_.results:
        while remaining and (parts_first or _is_behind(expression, remaining[0])):
            results.append(remaining.pop(0))
        results.append(expression)
    return [*results, *remaining]


def _is_behind(expression: ir.AffineExpr, part: _Loop) -> bool:
    return isinstance(expression, ir.AffineDimExpr) and ir.AffineDimExpr(expression).position > part.dimension


def _sizes(generic: Generic, number: int, results: Sequence[_Loop | ir.AffineExpr], split: Split) -> list[int]:
    """The shape of a partial result."""
    old = iter(ir.ShapedType(generic.inits[number].type).shape)
    return [_extent(one, generic, split) if isinstance(one, _Loop) else next(old) for one in results]


def _extent(loop: _Loop, generic: Generic, split: Split) -> int:
    if loop.role == "beside":
        return split.side_by_side
    return split.parts if loop.dimension == split.dimension else generic.extents[loop.dimension]


def _expression(one: _Loop | ir.AffineExpr, loops: Sequence[_Loop]) -> ir.AffineExpr:
    return ir.AffineDimExpr.get(loops.index(one)) if isinstance(one, _Loop) else _renumbered(one, loops)


def _renumbered(expression: ir.AffineExpr, loops: Sequence[_Loop]) -> ir.AffineExpr:
    """An expression of the old dimensions, of which none is cut, in those of the loops."""
    place = {loop.dimension: number for number, loop in enumerate(loops) if loop.role in ("part", "kept")}
    return expression.compose(ir.AffineMap.get(len(loops), 0, [ir.AffineDimExpr.get(place[d]) for d in sorted(place)]))


def _input_map(map_: ir.AffineMap, split: Split, loops: Sequence[_Loop]) -> ir.AffineMap:
    """The map of an input whose dimensions that are cut have become two."""
    cut = _positions(map_, split.dimension)
    results: list[ir.AffineExpr] = []
    for position, expression in enumerate(map_.results):
        if position in cut:
            pieces = [number for number, loop in enumerate(loops) if loop.dimension == split.dimension]
            results += [ir.AffineDimExpr.get(number) for number in pieces]
        else:
            results.append(_renumbered(expression, loops))
    return ir.AffineMap.get(len(loops), 0, results)


def _iterators(old: Parts, loops: Sequence[_Loop]) -> list[ir.Attribute]:
    parallel = ir.Attribute.parse(PARALLEL)
    kinds = {"part": parallel, "beside": parallel, "inside": ir.Attribute.parse(REDUCTION)}
    return [kinds.get(loop.role, old.iterators[loop.dimension]) for loop in loops]


def _join(
    generic: Generic, split: Split, partial: ir.Operation, starts: Sequence[ir.Value], point: ir.InsertionPoint
) -> ir.Operation:
    """The reduction of the partial results' parts."""
    loops, old = _loops(generic, split), parts(generic.op)
    is_part = [isinstance(one, _Loop) for one in _results(old.maps[len(old.inputs)], loops)]
    combiners = [generic.combiner(number) for number in range(len(starts))]
    rank = len(is_part)
    identity = ir.AffineMap.get_identity(rank)
    kept = ir.AffineMap.get(rank, 0, [ir.AffineDimExpr.get(number) for number in range(rank) if not is_part[number]])
    kinds = [ir.Attribute.parse(REDUCTION if one else PARALLEL) for one in is_part]

    def combine(arguments: Sequence[ir.Value]) -> list[ir.Value]:
        elements, accumulators = arguments[: len(starts)], arguments[len(starts) :]
        return [
            ir.Operation.create(
                combiner.operation, [one.type], [one, other], attributes=dict(combiner.attributes)
            ).result
            for combiner, one, other in zip(combiners, elements, accumulators, strict=True)
            if combiner is not None
        ]

    results = tuple(partial.results)
    maps = (identity,) * len(results) + (kept,) * len(starts)
    return build(Parts(results, tuple(starts), maps, tuple(kinds)), combine, generic.op.location, point)


def _neutral(generic: Generic, number: int, sizes: Sequence[int], point: ir.InsertionPoint) -> ir.Value:
    """What a partial result starts from."""
    combiner = generic.combiner(number)
    assert combiner is not None
    with point:
        empty = tensor.EmptyOp(list(sizes), combiner.element_type).result
        return linalg.fill(arith.ConstantOp(combiner.element_type, combiner.neutral).result, outs=[empty])


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
    pieces = [split.parts, split.extent // split.side_by_side]
    pieces += [split.side_by_side] if split.side_by_side > 1 else []
    shape: list[int] = []
    groups: list[list[int]] = []
    for position, extent in enumerate(type_.shape):
        sizes = pieces if position in positions else [extent]
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
