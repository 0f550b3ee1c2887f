"""A kernel of a module of kernels, by itself: as text that says what it is, and as a module that can be compiled.

fusion-to-gpu and fusion-to-cpu make functions that use nothing of the module around them but its attributes (how
wide an index is). So each can be compiled alone, and equal ones once.
"""

from __future__ import annotations

from collections.abc import Iterator

from ..dialects.mlir import ir

ANY_NAME = "kernel"


def kernels_in(nested: ir.Operation) -> Iterator[tuple[str, ir.Operation]]:
    """The functions of a `gpu.module` or a nested `builtin.module`, by name."""
    for op in nested.regions[0].blocks[0].operations:
        yield ir.StringAttr(op.operation.attributes["sym_name"]).value, op.operation


def text_of(nested: ir.Operation, kernel: ir.Operation) -> str:
    """All that a kernel's code depends on: equal for kernels that differ in name and location only."""
    alone = kernel.clone(ip=False)
    alone.attributes["sym_name"] = ir.StringAttr.get(ANY_NAME)
    around = sorted(f"{name} = {nested.attributes[name]}" for name in nested.attributes if name != "sym_name")
    body = alone.get_asm(use_local_scope=True, print_generic_op_form=True, assume_verified=True)
    return "\n".join((nested.name, *around, body))


def alone(nested: ir.Operation, kernel: ir.Operation) -> ir.Module:
    """A module with a copy of one kernel."""
    with ir.Location.unknown():
        module = ir.Module.create()
        if nested.name == "gpu.module":
            module.operation.attributes["gpu.container_module"] = ir.UnitAttr.get()
        with ir.InsertionPoint(module.body):
            holder = ir.Operation.create(
                nested.name, attributes={name: nested.attributes[name] for name in nested.attributes}, regions=1
            )
            block = ir.Block.create_at_start(holder.regions[0], [])
            kernel.clone(ip=ir.InsertionPoint(block))
    return module
