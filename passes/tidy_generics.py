"""Takes out of a `linalg.generic` what its body does not need.

What torch-mlir emits depends on more than it reads: the indices of a maximum that nobody uses, one tensor
given twice, a filled tensor as the output of an op that never looks at it, a 0-d constant as an operand. Each
of these would be a false edge for fusion or a useless load in a kernel.

    %r:2 = linalg.generic ins(%x, %x, %splat) outs(%filled, %indices)
    ->
    %r = linalg.generic ins(%x) outs(%empty)      the splat's scalar is captured by the body
"""

from __future__ import annotations

from collections.abc import Callable

from ..dialects.mlir import ir
from . import generics
from .generics import Parts


def tidy(op: ir.Operation) -> ir.Operation:
    """Applies each simplification until none applies; gives the operation that stands for `op` now."""
    changed = True
    while changed:
        changed = False
        for simplify in SIMPLIFICATIONS:
            new = simplify(op)
            if new is not None:
                op, changed = new, True
    return op


def _capture_scalar(op: ir.Operation) -> ir.Operation | None:
    """An input all of whose elements are one scalar is replaced by that scalar."""
    parts = generics.parts(op)
    for number, value in enumerate(parts.inputs):
        shaped = isinstance(value.type, ir.RankedTensorType)
        if not parts.without(number).bounded():
            continue
        scalar = generics.uniform_scalar(value) if shaped else value
        if scalar is not None:
            return _drop_input(op, parts, number, scalar)
    return None


def _merge_equal_inputs(op: ir.Operation) -> ir.Operation | None:
    """A tensor that is read twice in the same way is read once."""
    parts = generics.parts(op)
    seen: dict[tuple[ir.Value, ir.AffineMap], int] = {}
    for number, value in enumerate(parts.inputs):
        first = seen.setdefault((value, parts.maps[number]), number)
        if first != number:
            return _drop_input(op, parts, number, generics.body(op).arguments[first])
    return None


def _drop_unread_input(op: ir.Operation) -> ir.Operation | None:
    parts = generics.parts(op)
    for number in range(len(parts.inputs)):
        if not _is_used(generics.body(op).arguments[number]) and parts.without(number).bounded():
            return _drop_input(op, parts, number, None)
    return None


def _drop_dead_result(op: ir.Operation) -> ir.Operation | None:
    """A result without users goes, with what only it needs, unless it is the only one."""
    parts = generics.parts(op)
    if len(parts.outputs) == 1:
        return None
    for number, result in enumerate(op.results):
        operand = len(parts.inputs) + number
        if not _is_used(result) and _feeds_only(op, operand, number) and parts.without(operand).bounded():
            return _drop_output(op, parts, number)
    return None


def _empty_unread_init(op: ir.Operation) -> ir.Operation | None:
    """An initial value that the body does not read is a tensor.empty."""
    parts = generics.parts(op)
    for number, value in enumerate(parts.outputs):
        operand = len(parts.inputs) + number
        if _is_used(generics.body(op).arguments[operand]) or _is_empty(value):
            continue
        element = ir.ShapedType(value.type).element_type
        empty = generics.empty_like(value, element, op.location, ir.InsertionPoint(op))
        if empty.type == value.type:
            return generics.swap(op, parts.with_operand(operand, empty))
    return None


SIMPLIFICATIONS: tuple[Callable[[ir.Operation], ir.Operation | None], ...] = (
    _capture_scalar,
    _merge_equal_inputs,
    _drop_unread_input,
    _drop_dead_result,
    _empty_unread_init,
)


def _drop_input(op: ir.Operation, parts: Parts, number: int, instead: ir.Value | None) -> ir.Operation:
    block = generics.body(op)
    if instead is not None:
        block.arguments[number].replace_all_uses_with(instead)
    block.erase_argument(number)
    return generics.swap(op, parts.without(number))


def _drop_output(op: ir.Operation, parts: Parts, number: int) -> ir.Operation:
    operand = len(parts.inputs) + number
    terminator = generics.yield_of(op)
    kept = [value for position, value in enumerate(terminator.operands) if position != number]
    with ir.InsertionPoint(terminator):
        ir.Operation.create("linalg.yield", operands=kept, loc=terminator.location)
    terminator.erase()
    _erase_unused_chain(generics.body(op), generics.body(op).arguments[operand])
    generics.body(op).erase_argument(operand)
    new = generics.rebuild(op, parts.without(operand))
    survivors = [result for position, result in enumerate(op.results) if position != number]
    for old, result in zip(survivors, new.results, strict=True):
        old.replace_all_uses_with(result)
    op.erase()
    return new


def _feeds_only(op: ir.Operation, operand: int, result: int) -> bool:
    """Whether a block argument serves no other purpose than the result of that number."""
    reached = _reached(generics.body(op).arguments[operand])
    if reached is None:
        return False
    terminator = generics.yield_of(op)
    values = {value for one in reached for value in one.results} | {generics.body(op).arguments[operand]}
    return all(position == result for position, value in enumerate(terminator.operands) if value in values)


def _reached(value: ir.Value) -> list[ir.Operation] | None:
    """The arithmetic that depends on `value`, without the terminator; None where more than arithmetic does."""
    reached: list[ir.Operation] = []
    pending = [value]
    while pending:
        for use in pending.pop().uses:
            user = use.owner.operation
            if user.name == "linalg.yield" or user in reached:
                continue
            if user.name.partition(".")[0] not in ("arith", "math"):
                return None
            reached.append(user)
            pending.extend(user.results)
    return reached


def _erase_unused_chain(block: ir.Block, argument: ir.Value) -> None:
    """Removes the arithmetic that depends on `argument`, which nothing uses any more."""
    doomed = _reached(argument) or []
    for op in reversed([view.operation for view in block.operations]):
        if op in doomed:
            op.erase()


def _is_empty(value: ir.Value) -> bool:
    return not isinstance(value.owner, ir.Block) and value.owner.name == "tensor.empty"


def _is_used(value: ir.Value) -> bool:
    return next(iter(value.uses), None) is not None
