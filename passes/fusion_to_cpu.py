"""fusion-to-cpu: makes each scheduled kernel a function of loops, and its place in the host function a call.

The kernels live in a module of their own, which is compiled; the host function sees declarations. A kernel
that checks indices returns an i32, not 0 if a check failed, and what it would have read there counts as 0.
Equal kernels share a function, unless `reuse-kernels=false`.

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
from .emit_kernel import emit_body, kernels_of, parameter_types
from .fusion_schedule import problem_of, schedule_of
from .pass_base import Pass
from .schedules.machine import LoopMachine

MODULE = "kernels"


@dataclass(frozen=True)
class FusionToCpu(Pass):
    """See the module's docstring."""

    name: ClassVar[str] = "fusion-to-cpu"
    reuse_kernels: bool = True

    def run(self, module: ir.Module) -> None:
        kernels = kernels_of(module, self.reuse_kernels)
        if not kernels.all:
            return
        block = kernel_module(module)
        returned: dict[str, list[ir.Type]] = {}
        for kernel in kernels.distinct:
            name = kernels.name(kernel)
            returned[name] = make_function(kernel, name, block)
            _declare(kernel, name, returned[name], module.body)
        for kernel in kernels.all:
            _call(kernel, kernels.name(kernel), returned[kernels.name(kernel)])


def kernel_module(module: ir.Module) -> ir.Block:
    """A new module for kernels."""
    with ir.InsertionPoint(module.body), module.operation.location:
        holder = builtin.ModuleOp()
        holder.attributes["sym_name"] = ir.StringAttr.get(MODULE)
    return holder.body


def make_function(kernel: ir.Operation, name: str, block: ir.Block) -> list[ir.Type]:
    """Adds the function to `block`; returns what it returns."""
    family, parameters = schedule_of(kernel)
    types = parameter_types(kernel)
    with kernel.location:
        function = func.FuncOp(name, ir.FunctionType.get(types, []), ip=ir.InsertionPoint(block))
        entry = function.add_entry_block()
        machine = LoopMachine(entry)
        with ir.InsertionPoint(entry):
            emit_body(problem_of(kernel), family, parameters, machine, list(entry.arguments))
            results = [memref.LoadOp(machine.failed, []).result] if machine.failed else []
            func.ReturnOp(results)
        type_ = ir.FunctionType.get(types, [result.type for result in results])
        function.attributes["function_type"] = ir.TypeAttr.get(type_)
    return type_.results


def _declare(kernel: ir.Operation, name: str, results: list[ir.Type], host: ir.Block) -> None:
    type_ = ir.FunctionType.get(parameter_types(kernel), results)
    with kernel.location:
        func.FuncOp(name, type_, visibility="private", ip=ir.InsertionPoint(host))


def _call(kernel: ir.Operation, name: str, results: list[ir.Type]) -> None:
    with ir.InsertionPoint(kernel), kernel.location:
        func.CallOp(results, name, list(kernel.operands))
    kernel.erase()
