"""Whether a reduction is shared by more blocks than its results would occupy, and into how many parts.

A kernel has a block for some columns, or for a row: a sum of 262144 rows of 512 columns would run on a few of a
GPU's multiprocessors. `why_not_split` and `split_of` are pure functions of a reduction's shape, what it reads and
the target: they compare two times, in microseconds,

    whole   bytes / (bandwidth * the share of the multiprocessors that have a block)
    split   bytes / bandwidth + another launch

A reduction over columns in a region that also reduces the same rows is split in any case, into the parts that are
resident at once: one kernel then reads each row once, for both (schedules/row_and_column.py).
"""

from __future__ import annotations

import math
from dataclasses import dataclass

from ..targets.target import Target
from .structured import Generic

PARTIAL = "fusion.partial"
"""Marks a generic whose results are partial: of no meaning to the program, and short-lived."""
LAUNCH = 4.0  # microseconds that another kernel takes, at least
STRIP = 512  # bytes of a row that a block reads side by side, where there are many parts
NARROW_STRIP = 128  # the same where there are few
BLOCKS = 4  # a multiprocessor, that a split reduction has
RESIDENT = 2  # blocks a multiprocessor that hold whole rows at once
LEAST_ROWS = 16  # of a part, so that partial results are few beside what is read
LEAST_ELEMENTS = 8192  # of a part where the reduced dimension is the contiguous one
ALIGNED = 64  # elements that a part is a multiple of where possible, so that each starts where wide accesses may
ENOUGH = 0.75  # of the wanted parts, where fewer leave no rest


@dataclass(frozen=True)
class Split:
    """`whole` reduction dimensions become parallel; `dimension`, if any, becomes `parts` by `extent` and a rest."""

    whole: tuple[int, ...]
    dimension: int | None = None
    parts: int = 1
    extent: int = 0
    rest: int = 0


@dataclass(frozen=True)
class Traffic:
    """What one point of the iteration space reads: bytes in all, and bytes of the smallest element."""

    bytes: int
    smallest: int


def why_not_split(generic: Generic) -> str | None:
    """Why partial results of a generic can't be made and joined; None where they can."""
    if not generic.reduction_dims:
        return "it is no reduction"
    if 0 in generic.extents:
        return "it is empty"
    if any(generic.combiner(number) is None for number in range(len(generic.inits))):
        return "a reduction's partial results can't be joined"
    if any(inner.operation.name in ("linalg.index", "tensor.extract") for inner in generic.body.operations):
        return "it computes with positions"
    return None


def split_of(generic: Generic, traffic: Traffic, shares_rows: bool, target: Target) -> Split | None:
    """How to split a reduction that can be; None where it is as fast whole."""
    wanted = _resident_parts(generic, target) if shares_rows else _parts(generic, traffic, target)
    return _divide(generic, wanted) if wanted > 1 else None


def columns(generic: Generic) -> int:
    """How many neighbouring results there are: the extent of the dimensions inside of those reduced."""
    return math.prod(generic.extents[generic.reduction_dims[-1] + 1 :])


def _parts(generic: Generic, traffic: Traffic, target: Target) -> int:
    reduced = math.prod(generic.reduction_extents)
    results = math.prod(generic.extents) // reduced
    if columns(generic) == 1:
        whole_blocks = blocks = results
        most = reduced // LEAST_ELEMENTS
    else:
        outer = results // columns(generic)
        row = columns(generic) * traffic.smallest
        whole_blocks = outer * math.ceil(row / NARROW_STRIP)
        blocks = outer * math.ceil(row / STRIP)
        most = reduced // LEAST_ROWS
    at_full_speed = math.prod(generic.extents) * traffic.bytes / (target.memory_bandwidth * 1e3)
    share = min(1.0, whole_blocks / target.multiprocessors)
    if at_full_speed / share <= at_full_speed + LAUNCH:
        return 1
    return min(most, BLOCKS * target.multiprocessors // blocks)


def _resident_parts(generic: Generic, target: Target) -> int:
    return min(math.prod(generic.reduction_extents) // LEAST_ROWS, RESIDENT * target.multiprocessors)


def _divide(generic: Generic, wanted: int) -> Split | None:
    """The outermost dimensions are parts of their own, as long as they are few; the next one is cut."""
    dimensions = generic.reduction_dims
    whole: list[int] = []
    for dimension in dimensions[:-1]:
        if generic.extents[dimension] > wanted:
            break
        whole.append(dimension)
        wanted //= generic.extents[dimension]
    dimension = dimensions[len(whole)]
    inner = math.prod(generic.extents[dimension + 1 :])
    unit = ALIGNED // math.gcd(ALIGNED, inner)
    cut = _cut(generic.extents[dimension], wanted, unit) or _cut(generic.extents[dimension], wanted, 1)
    if cut is None:
        return Split(tuple(whole)) if whole else None
    parts, extent = cut
    return Split(tuple(whole), dimension, parts, extent, generic.extents[dimension] - parts * extent)


def _cut(extent: int, most: int, unit: int) -> tuple[int, int] | None:
    """(parts, elements of one, a multiple of `unit`): most of them or somewhat fewer, whichever leaves the least."""
    least = max(2, math.ceil(ENOUGH * most))
    cuts = [(parts, extent // parts // unit * unit) for parts in range(most, least - 1, -1)]
    usable = [(parts, size) for parts, size in cuts if size > 1]
    return min(usable, key=lambda cut: extent - cut[0] * cut[1], default=None)
