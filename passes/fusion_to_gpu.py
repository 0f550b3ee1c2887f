"""fusion-to-gpu: makes each scheduled kernel a GPU function, and its place in the host function a launch.

Kernels that are equal but for their names become one function. Booleans are bytes in memory; the kernel's
arguments are the memrefs it had, which the later lowering passes as bare pointers. With `index32`, indices have
32 bits if no memory of the program needs more; with `reuse-kernels=false` each kernel has a function of its own.

Before: fusion.kernel ops on memrefs, with schedules. After: none; the module holds `gpu.module @kernels`.

    "fusion.kernel"(%x, %y) ({...}) {name = "exp_0", schedule = #fusion.schedule<"pointwise", ...>}
 ->
    gpu.launch_func @kernels::@exp_0 blocks in (%c16, %c1, %c1) threads in (%c256, %c1, %c1) args(%x, %y)
    ...
    gpu.module @kernels { gpu.func @exp_0(%a: memref<...>, %b: memref<...>) kernel {...} }
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from ..dialects.mlir import gpu, ir
from .approximate_divisions import approximate_divisions
from .emit_kernel import emit_body, kernels_of
from .fusion_schedule import problem_of, schedule_of
from .pass_base import Pass
from .schedules.machine import GpuMachine, number

MODULE = "kernels"
LARGEST_INDEX_32 = 2**31 - 1


@dataclass(frozen=True)
class FusionToGpu(Pass):
    """See the module's docstring."""

    name: ClassVar[str] = "fusion-to-gpu"
    index32: bool = True
    reuse_kernels: bool = True

    def run(self, module: ir.Module) -> None:
        kernels = kernels_of(module, self.reuse_kernels)
        if not kernels.all:
            return
        module.operation.attributes["gpu.container_module"] = ir.UnitAttr.get()
        with ir.InsertionPoint(module.body), module.operation.location:
            holder = gpu.GPUModuleOp(MODULE)
            block = ir.Block.create_at_start(holder.regions[0])
        if self.index32 and kernels.most_elements <= LARGEST_INDEX_32:
            holder.attributes["dlti.dl_spec"] = ir.Attribute.parse("#dlti.dl_spec<index = 32 : i64>")
        for kernel in kernels.distinct:
            _make_function(kernel, kernels.name(kernel), block)
        for kernel in kernels.all:
            _launch(kernel, kernels.name(kernel))


def _make_function(kernel: ir.Operation, name: str, block: ir.Block) -> None:
    family, parameters = schedule_of(kernel)
    problem = problem_of(kernel)
    threads = family.launch(problem, parameters).threads
    types = [operand.type for operand in kernel.operands]
    with ir.InsertionPoint(block), kernel.location:
        function = gpu.GPUFuncOp(ir.FunctionType.get(types, []), name, known_block_size=[threads, 1, 1])
        # The constructor's own `kernel=True` adds an attribute `gpu.kernel` that the lowering adds again
        function.attributes["kernel"] = ir.UnitAttr.get()
        entry = ir.Block.create_at_start(function.regions[0], types)
        with ir.InsertionPoint(entry):
            emit_body(problem, family, parameters, GpuMachine(function, threads), list(entry.arguments))
            gpu.ReturnOp([])
    approximate_divisions(function.operation)


def _launch(kernel: ir.Operation, name: str) -> None:
    family, parameters = schedule_of(kernel)
    launch = family.launch(problem_of(kernel), parameters)
    with ir.InsertionPoint(kernel), kernel.location:
        if launch.blocks:
            one = number(1)
            grid, block = (number(launch.blocks), one, one), (number(launch.threads), one, one)
            gpu.LaunchFuncOp([MODULE, name], grid, block, list(kernel.operands))
    kernel.erase()
