"""fusion-to-cpu: makes each scheduled kernel a function of loops, and its place in the host function a call.

The kernels live in a module of their own, which is compiled; the host function sees declarations. A failed
bounds check sets `@failed_check`, which the runtime reads after a call.

Before: fusion.kernel ops on memrefs, with schedules. After: none; the module holds `module @kernels`.

    "fusion.kernel"(%x, %y) ({...}) {name = "exp_0", schedule = #fusion.schedule<"pointwise", ...>}
 ->
    func.call @exp_0(%x, %y)
    ...
    func.func private @exp_0(memref<...>, memref<...>)
    module @kernels { func.func @exp_0(%a: memref<...>, %b: memref<...>) { loops } }
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from ..dialects.mlir import builtin, func, ir, memref
from .emit_kernel import emit_body, kernels_of
from .fusion_schedule import problem_of, schedule_of
from .pass_base import Pass
from .schedules.machine import LoopMachine

MODULE = "kernels"
FAILED_CHECK = "failed_check"


@dataclass(frozen=True)
class FusionToCpu(Pass):
    """See the module's docstring."""

    name: ClassVar[str] = "fusion-to-cpu"

    def run(self, module: ir.Module) -> None:
        kernels = kernels_of(module)
        if not kernels.all:
            return
        with ir.InsertionPoint(module.body), module.operation.location:
            holder = builtin.ModuleOp()
            holder.attributes["sym_name"] = ir.StringAttr.get(MODULE)
        _declare_flag(holder.body)
        for kernel in kernels.distinct:
            _make_function(kernel, kernels.name(kernel), holder.body, module.body)
        for kernel in kernels.all:
            with ir.InsertionPoint(kernel), kernel.location:
                func.CallOp([], kernels.name(kernel), list(kernel.operands))
            kernel.erase()


def _declare_flag(block: ir.Block) -> None:
    flag = ir.MemRefType.get([], ir.IntegerType.get_signless(32))
    initial = ir.DenseElementsAttr.get_splat(
        ir.RankedTensorType.get([], ir.IntegerType.get_signless(32)),
        ir.IntegerAttr.get(ir.IntegerType.get_signless(32), 0),
    )
    with ir.InsertionPoint(block), ir.Location.unknown():
        memref.GlobalOp(FAILED_CHECK, ir.TypeAttr.get(flag), initial_value=initial)


def _make_function(kernel: ir.Operation, name: str, block: ir.Block, host: ir.Block) -> None:
    family, parameters = schedule_of(kernel)
    type_ = ir.FunctionType.get([operand.type for operand in kernel.operands], [])
    with kernel.location:
        func.FuncOp(name, type_, visibility="private", ip=ir.InsertionPoint(host))
        function = func.FuncOp(name, type_, ip=ir.InsertionPoint(block))
        entry = function.add_entry_block()
        with ir.InsertionPoint(entry):
            machine = LoopMachine(FAILED_CHECK)
            emit_body(problem_of(kernel), family, parameters, machine, list(entry.arguments))
            func.ReturnOp([])
