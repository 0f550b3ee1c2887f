"""Exponentials of the distance to a row's maximum: what is known of them, and of their sum.

    m = max of x        e = exp(x - m)        s = sum of e

All e are at most 1 and one of them is 1, so s is at least 1. Hence an exponential below 2^-126 is nothing beside s; s
has a reciprocal without further ado; and in the logarithm of s the approximate exponential's error, of n numbers at
most (log n + 1) half units in the last place of 1, is less than that of adding them.
"""

from __future__ import annotations

from collections.abc import Iterator

from ..dialects.mlir import ir
from . import generics

AT_MOST_ONE = "fusion.at_most_one"
RESHAPES = frozenset({"tensor.expand_shape", "tensor.collapse_shape"})
AFN = "#arith.fastmath<afn>"


def mark_exponentials(op: ir.Operation, approximate: bool) -> None:
    """Marks the exponential of a linalg.generic that is nothing else, if the largest of those summed together is 1.

    With `approximate`, one that is only summed may be approximate too.
    """
    inner = _only(op, "math.exp")
    largest = None if inner is None else _maximum_subtracted(generics.parts(op).inputs[0])
    if inner is None or largest is None:
        return
    users = [use.owner.operation for use in op.results[0].uses]
    if not all(generics.is_generic(user) for user in users):
        return
    reductions = [user for user in users if not generics.parts(user).all_parallel]
    if not all(_sums_over(user, _reduced(largest)) for user in reductions):
        return
    inner.attributes[AT_MOST_ONE] = ir.UnitAttr.get()
    if approximate and users == reductions:
        inner.attributes["fastmath"] = ir.Attribute.parse(AFN)


def is_sum_of_marked(value: ir.Value) -> bool:
    """Whether a tensor holds sums of marked exponentials: those of a row, or of more."""
    op = _producer(value)
    if op is None or _only(op, "arith.addf") is None or generics.parts(op).all_parallel:
        return False
    exponential = _producer(generics.parts(op).inputs[0])
    inner = None if exponential is None else _only(exponential, "math.exp")
    return inner is not None and AT_MOST_ONE in inner.attributes


def _sums_over(op: ir.Operation, dimensions: set[int]) -> bool:
    return _only(op, "arith.addf") is not None and dimensions <= _reduced(op)


def _reduced(op: ir.Operation) -> set[int]:
    """The dimensions of its only input that a reduction takes together; none where it is not read as it lies."""
    parts = generics.parts(op)
    if len(parts.inputs) != 1 or parts.maps[0] != ir.AffineMap.get_identity(parts.loops):
        return set()
    return {number for number, kind in enumerate(parts.iterators) if str(kind) != generics.PARALLEL}


def _maximum_subtracted(value: ir.Value) -> ir.Operation | None:
    """The operation that takes the maximum m of x, where the value is x - m."""
    op = _producer(value)
    inner = None if op is None else _only(op, "arith.subf", inputs=2)
    if op is None or inner is None:
        return None
    parts = generics.parts(op)
    if list(inner.operands) != list(generics.body(op).arguments)[:2]:
        return None
    x, largest = parts.inputs
    if parts.maps[0] != ir.AffineMap.get_identity(parts.loops):
        return None
    return next((maximum for maximum, of in _maxima(largest) if of == x), None)


def _maxima(value: ir.Value) -> Iterator[tuple[ir.Operation, ir.Value]]:
    """What takes the maximum that `value` is, and of what: also of that widened, if it was taken before."""
    op = _producer(value)
    if op is None:
        return
    if _only(op, "arith.maximumf") is not None and _reduced(op):
        yield op, generics.parts(op).inputs[0]
    if _only(op, "arith.extf") is None:
        return
    for maximum, narrow in _maxima(generics.parts(op).inputs[0]):
        for use in narrow.uses:
            user = use.owner.operation
            if generics.is_generic(user) and _only(user, "arith.extf") is not None:
                yield maximum, user.results[0]


def _producer(value: ir.Value) -> ir.Operation | None:
    """The linalg.generic that makes a tensor, before reshapes."""
    while not isinstance(value, ir.BlockArgument) and value.owner.name in RESHAPES:
        value = value.owner.operands[0]
    if isinstance(value, ir.BlockArgument) or not generics.is_generic(value.owner.operation):
        return None
    return value.owner.operation


def _only(op: ir.Operation, name: str, inputs: int = 1) -> ir.Operation | None:
    """The operation of this name, if the body holds no other and it is of the inputs and, in a reduction, of what
    has been reduced so far."""
    operations = [view.operation for view in generics.body(op).operations]
    if len(operations) != 2 or operations[0].name != name or operations[1].operands[0] != operations[0].results[0]:
        return None
    parts, arguments = generics.parts(op), list(generics.body(op).arguments)
    used = arguments[: len(parts.inputs) + (not parts.all_parallel)]
    return operations[0] if len(parts.inputs) == inputs and set(operations[0].operands) == set(used) else None
