"""After which operation of a host function nobody needs an argument's memory any more.

A backward pass is handed what the forward pass saved, and nobody else holds it: what a program drops after its last
reader is free for the rest of the pass.
"""

from __future__ import annotations

from ..dialects import fusion
from ..dialects.mlir import ir

SAME_MEMORY = ("memref.view", "memref.reinterpret_cast", "memref.cast")


def last_uses(function: ir.Operation) -> dict[ir.Operation, list[ir.BlockArgument]]:
    """The arguments by their last user; those that are returned, or that nobody reads, are not there."""
    block = function.regions[0].blocks[0]
    order = {view.operation: number for number, view in enumerate(block.operations)}
    found: dict[ir.Operation, list[ir.BlockArgument]] = {}
    for argument in block.arguments:
        users = users_of_memory(argument)
        if users and not any(user.name == "func.return" for user in users):
            found.setdefault(max(users, key=order.__getitem__), []).append(argument)
    return found


def users_of_memory(value: ir.Value) -> list[ir.Operation]:
    """The operations that read the memory of `value`, under any name."""
    users: list[ir.Operation] = []
    names = [value]
    while names:
        for use in names.pop().uses:
            user = use.owner.operation
            users.append(user)
            if user.name in SAME_MEMORY:
                names.append(user.results[0])
            elif fusion.is_op(user, "extern"):
                tied = fusion.tied_operands(user)
                names += [user.results[result] for operand, result in tied if operand == use.operand_number]
    return users
