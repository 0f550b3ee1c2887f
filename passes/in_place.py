"""May a kernel write an output over an input that nobody reads afterwards?

It may if each thread has read what it needs of the input before it, or another thread, overwrites it. That
is so for a pointwise kernel that meets the input only at the position it writes:

    %t = linalg.generic {maps: identity, identity} ins(%a)     t[i, j] needs a[i, j] only: in place is fine
    %u = linalg.generic {maps: transposed, identity} ins(%t)   u[i, j] needs a[j, i]: it is not

A pointwise schedule reads all inputs at a position before it stores there, and computes a position once. The
answer is conservative: whatever is not recognised is refused, with a reason.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

from ..dialects import fusion
from ..dialects.mlir import ir
from .memref_types import element_bytes


def is_pointwise_kernel(kernel: ir.Operation) -> bool:
    """Whether a kernel's schedule reads all inputs at a position before it stores there."""
    schedule = fusion.read_schedule(kernel.attributes["schedule"]) if "schedule" in kernel.attributes else None
    return schedule is not None and schedule.family == "pointwise"


def refuse_in_place(
    kernel: ir.Operation,
    inputs: Sequence[int],
    output: int,
    is_pointwise: Callable[[ir.Operation], bool] = is_pointwise_kernel,
) -> str | None:
    """Why the yielded value `output` may not be written over the `inputs` (one buffer); None if it may."""
    if not is_pointwise(kernel):
        return "its schedule is not pointwise"
    arguments = kernel.regions[0].blocks[0].arguments
    result = fusion.terminator(kernel).operands[output]
    if any(not _same_bytes(arguments[number].type, result.type) for number in inputs):
        return "the output has another shape or element size"
    reached: set[ir.Value] = set()
    pending: list[ir.Value] = [arguments[number] for number in inputs]
    while pending:
        value = pending.pop()
        if value in reached:
            continue
        reached.add(value)
        for use in value.uses:
            user = use.owner.operation
            if user.name == "fusion.yield":
                continue
            reason = refuse_user(user, value)
            if reason:
                return reason
            pending.extend(user.results)
    return None if result in reached else "the output is not computed from the input"


def _same_bytes(one: ir.Type, other: ir.Type) -> bool:
    if not isinstance(one, ir.RankedTensorType) or not isinstance(other, ir.RankedTensorType):
        return False
    if list(one.shape) != list(other.shape):
        return False
    return element_bytes(one.element_type) == element_bytes(other.element_type)


def refuse_user(user: ir.Operation, value: ir.Value) -> str | None:
    """Why an operation mixes positions of `value`, or None if it is elementwise in it and in all results."""
    if user.name != "linalg.generic":
        return f"{user.name} reads it"
    if not all("parallel" in str(kind) for kind in ir.ArrayAttr(user.attributes["iterator_types"])):
        return "a reduction reads it"
    maps = [ir.AffineMapAttr(attribute).value for attribute in ir.ArrayAttr(user.attributes["indexing_maps"])]
    operands = list(user.operands)
    outputs = len(user.results)
    for number, (operand, indexing) in enumerate(zip(operands, maps, strict=True)):
        matters = operand == value or number >= len(operands) - outputs
        if matters and indexing != ir.AffineMap.get_identity(indexing.n_dims):
            return "it is read or written at another position"
    return None
