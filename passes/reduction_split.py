"""Whether a reduction is shared by more blocks than its results would occupy, and into how many parts.

A kernel has a block for some columns, or for a row: a sum of 262144 rows of 512 columns would run on a few of a
GPU's multiprocessors. `why_not_split` and `split_of` are pure functions of a reduction's shape, what it reads and
the target: they compare two times, in microseconds,

    whole   bytes / (bandwidth * the share of the multiprocessors that have a block)
    split   bytes / bandwidth + another launch

Rows of a width that no wide access divides are read several as one, if need be in a single part: what that many rows
come to side by side is joined by the second kernel.

A reduction over columns in a region that also reduces the same rows, or gives something of their size, is split in
any case, into the parts that are resident at once: one kernel then reads each row once, for both
(schedules/row_and_column.py).
"""

from __future__ import annotations

import math
from dataclasses import dataclass

from ..dialects import fusion
from ..dialects.mlir import ir
from ..targets.target import Target
from .structured import Generic

PARTIAL = "fusion.partial"
"""Marks a generic whose results are partial: of no meaning to the program, and short-lived."""
LAUNCH = 4.0  # microseconds that another kernel takes, at least
NARROW_LOSS = (
    0.4  # of the time that the widest accesses take, divided by an element's bytes: what single elements take more
)
STRIPS = 8  # that rows read as one make, so that the last one, where it is no whole one, is a small part
WIDEST = 16  # bytes of an access
STRIP = 512  # bytes of a row that a block reads side by side, where there are many parts
NARROW_STRIP = 128  # the same where there are few
BLOCKS = 4  # a multiprocessor, that a split reduction has
RESIDENT = 2  # blocks a multiprocessor that hold whole rows at once
WIDEST_ROW = 8192  # elements that such a block holds; of wider rows, each of a cluster's blocks holds a piece
LEAST_ROWS = 16  # of a part, so that partial results are few beside what is read
FEWEST_ROWS = 4  # of a part, where a block holds whole rows
LEAST_ELEMENTS = 8192  # of a part where the reduced dimension is the contiguous one
ALIGNED = 64  # elements that a part is a multiple of where possible, so that each starts where wide accesses may
ENOUGH = 0.75  # of the wanted parts, where fewer leave no rest


@dataclass(frozen=True)
class Split:
    """`whole` reduction dimensions become parallel; `dimension`, if any, becomes `parts` by `extent` and a rest.

    Of the `extent` elements of a part, `side_by_side` neighbours stay apart: the rows that are read as one.
    """

    whole: tuple[int, ...]
    dimension: int | None = None
    parts: int = 1
    extent: int = 0
    rest: int = 0
    side_by_side: int = 1


@dataclass(frozen=True)
class Traffic:
    """What one point of the iteration space reads: bytes in all, and bytes of the smallest element."""

    bytes: int
    smallest: int


def is_partial(value: ir.Value) -> bool:
    """Whether a value is a partial result, or what a region gives of one."""
    if not isinstance(value, ir.OpResult):
        return False
    if fusion.is_op(value.owner, "region"):
        return is_partial(fusion.terminator(value.owner).operands[value.result_number])
    return PARTIAL in value.owner.attributes


def why_not_split(generic: Generic) -> str | None:
    """Why partial results of a generic can't be made and joined; None where they can."""
    if not generic.reduction_dims:
        return "it is no reduction"
    if 0 in generic.extents:
        return "it is empty"
    if any(generic.combiner(number) is None for number in range(len(generic.inits))):
        return "a reduction's partial results can't be joined"
    if len({tuple(map(str, results)) for results in generic.maps[generic.input_count :]}) != 1:
        return "its results have different shapes"
    if any(inner.operation.name in ("linalg.index", "tensor.extract") for inner in generic.body.operations):
        return "it computes with positions"
    return None


def split_of(generic: Generic, traffic: Traffic, shares_rows: bool, target: Target) -> Split | None:
    """How to split a reduction that can be; None where it is as fast whole.

    `shares_rows`: whether there is more to do with the rows that it reads.
    """
    split = _resident_parts(generic, target) if shares_rows else None
    for side_by_side in () if split else dict.fromkeys((_side_by_side(generic, traffic), 1)):
        split = split or _divide(generic, _parts(generic, traffic, side_by_side, target), side_by_side)
    return split or (None if shares_rows else _undivided(generic, traffic, target))


def columns(generic: Generic) -> int:
    """How many neighbouring results there are: the extent of the dimensions inside of those reduced."""
    return math.prod(generic.extents[generic.reduction_dims[-1] + 1 :])


def _parts(generic: Generic, traffic: Traffic, side_by_side: int, target: Target) -> int:
    reduced = math.prod(generic.reduction_extents)
    results = math.prod(generic.extents) // reduced
    if columns(generic) == 1:
        whole_blocks = blocks = results
        most = reduced // LEAST_ELEMENTS
    else:
        outer = results // columns(generic)
        row = columns(generic) * traffic.smallest
        whole_blocks = outer * math.ceil(row / NARROW_STRIP)
        blocks = outer * math.ceil(side_by_side * row / STRIP)
        most = reduced // (side_by_side * LEAST_ROWS)
    at_full_speed = _at_full_speed(generic, traffic, target)
    share = min(1.0, whole_blocks / target.multiprocessors)
    if at_full_speed / share <= at_full_speed + LAUNCH:
        return 1
    return min(most, BLOCKS * target.multiprocessors // blocks)


def _resident_parts(generic: Generic, target: Target) -> Split | None:
    """About as many parts as blocks can be resident, none of them smaller than another."""
    outer = math.prod(generic.extents[: generic.reduction_dims[0]])
    pieces = math.ceil(columns(generic) / WIDEST_ROW) if target.has_clusters else 1
    whole, wanted = _whole(generic, RESIDENT * target.multiprocessors // (outer * pieces))
    if wanted < 2:
        return Split(whole) if whole else None
    dimension = generic.reduction_dims[len(whole)]
    extent = generic.extents[dimension]
    usual = range(math.ceil(wanted / 2), min(4 * wanted, extent // FEWEST_ROWS) + 1)
    divisors = [parts for parts in usual if parts > 1 and extent % parts == 0]
    if not divisors:
        return None
    parts = min(divisors, key=lambda parts: abs(parts - wanted))
    return Split(whole, dimension, parts, extent // parts)


def _undivided(generic: Generic, traffic: Traffic, target: Target) -> Split | None:
    """One part, of rows that are read as one, where accesses of single elements take longer than another launch."""
    side_by_side = _side_by_side(generic, traffic)
    lost = _at_full_speed(generic, traffic, target) * NARROW_LOSS / traffic.smallest
    if side_by_side == 1 or lost <= LAUNCH:
        return None
    dimension = generic.reduction_dims[-1]
    rest = generic.extents[dimension] % side_by_side
    return Split((), dimension, 1, generic.extents[dimension] - rest, rest, side_by_side)


def _at_full_speed(generic: Generic, traffic: Traffic, target: Target) -> float:
    """How long it takes to read everything once, in microseconds."""
    return math.prod(generic.extents) * traffic.bytes / (target.memory_bandwidth * 1e3)


def _divide(generic: Generic, wanted: int, side_by_side: int) -> Split | None:
    """About as many parts as are wanted, and what is left over."""
    if wanted < 2:
        return None
    whole, wanted = _whole(generic, wanted)
    dimension = generic.reduction_dims[len(whole)]
    inner = math.prod(generic.extents[dimension + 1 :])
    side_by_side = side_by_side if dimension == generic.reduction_dims[-1] else 1
    unit = ALIGNED // math.gcd(ALIGNED, inner) if columns(generic) == 1 else side_by_side
    cut = _cut(generic.extents[dimension], wanted, unit) or _cut(generic.extents[dimension], wanted, 1)
    if cut is None:
        return Split(whole) if whole else None
    parts, extent = cut
    if extent % side_by_side:
        side_by_side = 1
    return Split(whole, dimension, parts, extent, generic.extents[dimension] - parts * extent, side_by_side)


def _side_by_side(generic: Generic, traffic: Traffic) -> int:
    """How many rows make one of a width that the widest access divides, and that is several strips."""
    row, rows = columns(generic) * traffic.smallest, 1
    if columns(generic) == 1 or row % WIDEST == 0:
        return 1
    while rows * row % WIDEST or rows * row < STRIPS * STRIP:
        rows *= 2
    return rows if rows * LEAST_ROWS <= generic.extents[generic.reduction_dims[-1]] else 1


def _whole(generic: Generic, wanted: int) -> tuple[tuple[int, ...], int]:
    """The outermost dimensions, as long as they are few enough to be parts as they are, and what is still wanted."""
    whole: list[int] = []
    for dimension in generic.reduction_dims[:-1]:
        if generic.extents[dimension] > wanted:
            break
        whole.append(dimension)
        wanted //= generic.extents[dimension]
    return tuple(whole), wanted


def _cut(extent: int, most: int, unit: int) -> tuple[int, int] | None:
    """(parts, elements of one, a multiple of `unit`): most of them or somewhat fewer, whichever leaves the least."""
    least = max(2, math.ceil(ENOUGH * most))
    cuts = [(parts, extent // parts // unit * unit) for parts in range(most, least - 1, -1)]
    usable = [(parts, size) for parts, size in cuts if size > 1]
    return min(usable, key=lambda cut: extent - cut[0] * cut[1], default=None)
