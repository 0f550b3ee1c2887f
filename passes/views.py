"""Which memory a chain of reshapes, slices, transposes and broadcasts reads.

`View` is a tensor seen as memory: sizes, strides and an offset in elements. Each view-like op maps a View to
a View, or to None where no strides describe the result (collapsing dimensions that don't lie one behind the
other). All of it is arithmetic on integers, so only static shapes have a View.

`trace(value)` follows the chain from `value` to the tensor that owns the memory:

    %e = tensor.expand_shape %x [[0], [1, 2]] output_shape [4, 2, 8] : tensor<4x16xf32> into tensor<4x2x8xf32>
    %t = linalg.generic {...} ins(%e) ...                  # a transpose, [1, 0, 2]

    trace(%t) == Traced(root=%x, view=View(offset=0, sizes=(2, 4, 8), strides=(8, 16, 1)))
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial

from ..dialects import fusion
from ..dialects.mlir import ir
from . import generics, layouts

NODES = frozenset({"linalg.generic", "tensor.concat", "tensor.pad", "tensor.insert_slice"})


@dataclass(frozen=True)
class View:
    """Sizes and strides, and an offset from the first element of the tensor that owns the memory."""

    offset: int
    sizes: tuple[int, ...]
    strides: tuple[int, ...]

    def same_memory(self, other: View) -> bool:
        """Whether both give the same elements in the same order; strides of single elements don't matter."""
        if self.sizes != other.sizes or self.offset != other.offset:
            return False
        triples = zip(self.sizes, self.strides, other.strides, strict=True)
        return 0 in self.sizes or all(size == 1 or one == two for size, one, two in triples)


@dataclass(frozen=True)
class Traced:
    """The tensor that owns the memory, and how it is seen."""

    root: ir.Value
    view: View


def contiguous(sizes: Sequence[int]) -> View:
    """Row-major."""
    strides = [math.prod(max(size, 1) for size in sizes[number + 1 :]) for number in range(len(sizes))]
    return View(0, tuple(sizes), tuple(strides))


def expand(view: View, groups: Sequence[Sequence[int]], sizes: Sequence[int]) -> View:
    """Each dimension becomes a group of dimensions, the last of which keeps its stride."""
    strides = [0] * len(sizes)
    for stride, group in zip(view.strides, groups, strict=True):
        for dimension in reversed(group):
            strides[dimension] = stride
            stride *= max(sizes[dimension], 1)
    if not view.sizes:
        strides = list(contiguous(sizes).strides)
    return View(view.offset, tuple(sizes), tuple(strides))


def collapse(view: View, groups: Sequence[Sequence[int]], sizes: Sequence[int]) -> View | None:
    """Each group becomes one dimension, if its dimensions lie one behind the other."""
    if 0 in view.sizes:
        return View(view.offset, tuple(sizes), contiguous(sizes).strides)
    strides = [_joint_stride([(view.sizes[d], view.strides[d]) for d in group]) for group in groups]
    known = [stride for stride in strides if stride is not None]
    return View(view.offset, tuple(sizes), tuple(known)) if len(known) == len(strides) else None


def _joint_stride(dimensions: Sequence[tuple[int, int]]) -> int | None:
    spread = [(size, stride) for size, stride in dimensions if size != 1]
    for (_, outer), (size, inner) in itertools.pairwise(spread):
        if outer != size * inner:
            return None
    return spread[-1][1] if spread else 1


def take(view: View, offsets: Sequence[int], sizes: Sequence[int], steps: Sequence[int], kept: Sequence[int]) -> View:
    """A slice; `kept` are the dimensions that the result has."""
    offset = view.offset + sum(o * s for o, s in zip(offsets, view.strides, strict=True))
    strides = [step * stride for step, stride in zip(steps, view.strides, strict=True)]
    return View(offset, tuple(sizes[d] for d in kept), tuple(strides[d] for d in kept))


def gather_dimensions(view: View, map_: ir.AffineMap, sizes: Sequence[int]) -> View | None:
    """Seen through an indexing map from the result's dimensions: permutes, broadcasts, takes diagonals."""
    offset, strides = view.offset, [0] * len(sizes)
    for expression, stride in zip(map_.results, view.strides, strict=True):
        if isinstance(expression, ir.AffineConstantExpr):
            offset += expression.value * stride
        elif isinstance(expression, ir.AffineDimExpr):
            strides[expression.position] += stride
        else:
            return None
    return View(offset, tuple(sizes), tuple(strides))


def compose(outer: View, memory: View, in_memory: bool) -> View | None:
    """`outer` as a fusion.view of a tensor that is `memory`.

    Strides of a fusion.view count elements in memory. Where the tensor is `in_memory` they hold as they are.
    Where it is a value whose place is only chosen now, they were meant for a contiguous tensor, and it has to
    be one.
    """
    dense = View(memory.offset, memory.sizes, contiguous(memory.sizes).strides)
    if not in_memory and not memory.same_memory(dense):
        return None
    return View(memory.offset + outer.offset, outer.sizes, outer.strides)


def is_root(value: ir.Value) -> bool:
    """Whether `value` owns memory when the program runs: an argument, a node's result, a table of constants."""
    owner = value.owner
    if isinstance(owner, ir.Block):
        return True
    op = owner.operation
    if op.name == "arith.constant":
        return isinstance(value.type, ir.RankedTensorType) and not generics.is_splat(op.attributes["value"])
    return op.name in NODES or op.name.startswith("fusion.")


def layout_of(value: ir.Value) -> View | None:
    """How a root lies in memory, seen from its first element; None if its sizes are not static."""
    shape = static_shape(value)
    if shape is None:
        return None
    return View(0, tuple(shape), layouts.layout_of(value).strides)


def static_shape(value: ir.Value) -> list[int] | None:
    shaped = ir.RankedTensorType(value.type)
    return list(shaped.shape) if shaped.has_static_shape else None


def is_made_by(value: ir.Value, name: str) -> bool:
    """Whether `value` is a result of an op of that name."""
    return not isinstance(value.owner, ir.Block) and value.owner.name == name


def memory_owner(value: ir.Value) -> ir.Value:
    """What a chain of fusion.view is a view of; `value` where it is none."""
    while is_made_by(value, "fusion.view"):
        value = value.owner.operands[0]
    return value


def is_copy(op: ir.Operation) -> bool:
    """Whether a linalg.generic only moves elements: its body yields its one input."""
    if not generics.is_generic(op) or len(op.results) != 1:
        return False
    parts, block = generics.parts(op), generics.body(op)
    return (
        len(parts.inputs) == 1
        and parts.all_parallel
        and parts.maps[-1] == ir.AffineMap.get_identity(parts.loops)
        and len(block.operations) == 1
        and generics.yield_of(op).operands[0] == block.arguments[0]
    )


def is_overwritten(value: ir.Value) -> bool:
    """Whether a library call may write the memory of `value`, which a view of it would then see."""
    for use in value.uses:
        user = use.owner.operation
        if fusion.is_op(user, "view") and is_overwritten(user.results[0]):
            return True
        if not fusion.is_op(user, "extern"):
            continue
        tied = {operand for operand, _ in fusion.tied_operands(user)}
        if use.operand_number in tied or "opaque" in fusion.extern_effects(user):
            return True
    return False


def trace(value: ir.Value) -> Traced | None:
    """The owner of the memory that `value` is, and how `value` lies in it; None if strides can't say it."""
    step = step_of(value)
    if step is None:
        view = layout_of(value)
        return Traced(value, view) if view else None
    source = trace(value.owner.operation.operands[0])
    view = step(source.view) if source else None
    return Traced(source.root, view) if source and view else None


def step_of(value: ir.Value) -> Callable[[View], View | None] | None:
    """What the op that gives `value` does to its operand's View; None where the op is no view of its operand."""
    owner = value.owner
    if isinstance(owner, ir.Block) or static_shape(value) is None:
        return None
    op = owner.operation
    if op.name not in STEPS or (generics.is_generic(op) and (not is_copy(op) or is_overwritten(value))):
        return None
    return partial(STEPS[op.name], op)


def _step_expand(op: ir.Operation, view: View) -> View | None:
    return expand(view, _reassociation(op), static_shape(op.results[0]) or [])


def _step_collapse(op: ir.Operation, view: View) -> View | None:
    return collapse(view, _reassociation(op), static_shape(op.results[0]) or [])


def _step_slice(op: ir.Operation, view: View) -> View | None:
    offsets, sizes, steps = (
        fusion.integers(op.attributes[f"static_{name}"]) for name in ("offsets", "sizes", "strides")
    )
    kept = _kept_dimensions(sizes, static_shape(op.results[0]) or [])
    if len(op.operands) > 1 or min(steps, default=1) < 0:
        return None
    return take(view, offsets, sizes, steps, kept)


def _step_cast(op: ir.Operation, view: View) -> View | None:
    return view


def _step_copy(op: ir.Operation, view: View) -> View | None:
    return gather_dimensions(view, generics.parts(op).maps[0], static_shape(op.results[0]) or [])


def _step_view(op: ir.Operation, view: View) -> View | None:
    outer = View(
        ir.IntegerAttr(op.attributes["offset"]).value,
        tuple(fusion.integers(op.attributes["sizes"])),
        tuple(fusion.integers(op.attributes["strides"])),
    )
    in_memory = step_of(op.operands[0]) is None or fusion.is_op(op.operands[0].owner, "view")
    return compose(outer, view, in_memory)


STEPS: dict[str, Callable[[ir.Operation, View], View | None]] = {
    "tensor.expand_shape": _step_expand,
    "tensor.collapse_shape": _step_collapse,
    "tensor.extract_slice": _step_slice,
    "tensor.cast": _step_cast,
    "linalg.generic": _step_copy,
    "fusion.view": _step_view,
}


def _reassociation(op: ir.Operation) -> list[list[int]]:
    return [fusion.integers(group) for group in ir.ArrayAttr(op.attributes["reassociation"])]


def _kept_dimensions(sizes: Sequence[int], kept_sizes: Sequence[int]) -> list[int]:
    """Which dimensions a rank-reducing slice keeps: those of size 1 that don't fit are dropped."""
    kept, wanted = [], list(kept_sizes)
    for dimension, size in enumerate(sizes):
        if wanted and size == wanted[0] and (size != 1 or len(sizes) - dimension >= len(wanted)):
            kept.append(dimension)
            wanted.pop(0)
    return kept
