"""Keeps apart what a library call overwrites and what equal tensors are used for.

Tensors are values, so simplifying may make one of two equal ones, or of one and its copy. A call that overwrites its
operand (`tied`) must then not be given a tensor that is used later. `separate_overwritten`, after simplifying, looks
for those and copies:

    %a = exp(%x)                                        %b = exp(%x)
    %w = fusion.extern(%a) {tied = [[0, 0]]}     ->     %a = copy(%b)
    %r = %w - %a         (once a second exp(%x))        %w = fusion.extern(%a) {tied = [[0, 0]]}
                                                        %r = %w - %b

An argument is overwritten itself, for its caller sees that; its old value is copied before for those who use it later.

An opaque call may write its operands too, and who uses the same value later sees that. Which uses these are can't be
told any more once equal tensors are one. So `pin`, before simplifying, puts an op that nobody knows, `fusion.pin`,
between such an operand and its users, and in place of a copy of it; `unpin` makes a tensor of its own of each.
"""

from __future__ import annotations

from collections.abc import Iterator

from ..dialects import fusion
from ..dialects.mlir import ir
from . import generics, views

PIN = "fusion.pin"
KEEP_MEMORY = frozenset({"tensor.cast", "tensor.collapse_shape", "tensor.expand_shape", "tensor.extract_slice"})
"""Free ops, cloned into their users, which therefore read their operand's memory when the users run."""


def separate_overwritten(function: ir.Operation) -> None:
    """Copies in a function's blocks, so that no tensor is used after a call has overwritten its memory."""
    for block in function.regions[0].blocks:
        for op in [view.operation for view in block.operations]:
            for operand, _ in fusion.tied_operands(op) if fusion.is_op(op, "extern") else ():
                _separate(op, operand)


def pin(function: ir.Operation) -> None:
    """Makes sure that no equal tensor is taken for one that an opaque call may write, nor a copy for its source."""
    for block in function.regions[0].blocks:
        for op in [view.operation for view in block.operations]:
            if fusion.is_op(op, "extern") and "opaque" in fusion.extern_effects(op):
                for value in dict.fromkeys(op.operands):
                    _pin(value)


def unpin(function: ir.Operation) -> None:
    """Replaces each `fusion.pin` by its operand, if nobody else uses that, and by a copy otherwise."""
    for block in function.regions[0].blocks:
        for op in [view.operation for view in block.operations if view.operation.name == PIN]:
            source = op.operands[0]
            is_own = views.is_root(source) and not isinstance(source.owner, ir.Block)
            alone = is_own and sum(1 for _ in source.uses) == 1
            op.results[0].replace_all_uses_with(source if alone else _copy(source, ir.InsertionPoint(op)))
            op.erase()


def _pin(value: ir.Value) -> None:
    if not isinstance(value.type, ir.RankedTensorType):
        return
    for use in list(value.uses):
        user = use.owner.operation
        if _is_copy(user) and use.operand_number == 0:
            with ir.InsertionPoint(user), user.location:
                pinned = ir.Operation.create(PIN, results=[value.type], operands=[value])
            user.results[0].replace_all_uses_with(pinned.results[0])
            user.erase()
    if isinstance(value.owner, ir.Block) or value.owner.name.startswith("fusion."):
        return
    with ir.InsertionPoint.after(value.owner), value.owner.location:
        pinned = ir.Operation.create(PIN, results=[value.type], operands=[value])
    value.replace_all_uses_except(pinned.results[0], pinned)


def _is_copy(op: ir.Operation) -> bool:
    if len(op.results) != 1 or op.results[0].type != op.operands[0].type:
        return False
    return op.name == "linalg.copy" or (views.is_copy(op) and _maps_are_identities(op))


def _maps_are_identities(op: ir.Operation) -> bool:
    parts = generics.parts(op)
    return all(indexing == ir.AffineMap.get_identity(parts.loops) for indexing in parts.maps)


def _separate(op: ir.Operation, operand: int) -> None:
    """Copies, if the memory of an operand that `op` overwrites is used besides, in `op` or later."""
    value = op.operands[operand]
    root = views.memory_owner(value)
    constant = views.is_made_by(root, "arith.constant")
    besides = list(_uses_besides(root, op, operand))
    if not isinstance(root.owner, ir.Block):
        if besides or constant:
            op.operands[operand] = _copy_memory(value, op)
        return
    copies: dict[ir.Value, ir.Value] = {}
    for user, number, used in besides:
        if used not in copies:
            point = ir.InsertionPoint(op) if used == root else ir.InsertionPoint.after(used.owner)
            copies[used] = _copy(used, point)
        user.operands[number] = copies[used]


def _copy_memory(value: ir.Value, op: ir.Operation) -> ir.Value:
    """In front of `op`, a copy of what `value` is or is a view of, and `value`'s view of that."""
    if not views.is_made_by(value, "fusion.view"):
        return _copy(value, ir.InsertionPoint(op))
    source = _copy_memory(value.owner.operands[0], op)
    with ir.InsertionPoint(op):
        view = value.owner.clone().operation
    view.operands[0] = source
    return view.results[0]


def _uses_besides(root: ir.Value, op: ir.Operation, operand: int) -> Iterator[tuple[ir.Operation, int, ir.Value]]:
    """Who uses the memory of `root` after `op`, or in it as another operand: user, operand number and value."""
    pending = [root]
    while pending:
        used = pending.pop()
        for use in used.uses:
            user = use.owner.operation
            holder = _holder(user, op.block)
            later = holder != op and op.is_before_in_block(holder)
            if (user.name in KEEP_MEMORY or fusion.is_op(user, "view")) and not later:
                pending.append(user.results[0])
            elif later or (user == op and use.operand_number != operand):
                yield user, use.operand_number, used


def _holder(op: ir.Operation, block: ir.Block) -> ir.Operation:
    """The operation of `block` in whose body `op` is, or `op`."""
    while op.block != block:
        assert op.parent is not None
        op = op.parent.operation
    return op


def _copy(value: ir.Value, point: ir.InsertionPoint) -> ir.Value:
    element = ir.ShapedType(value.type).element_type
    return generics.elementwise(value, element, lambda x: x, value.location, point)
