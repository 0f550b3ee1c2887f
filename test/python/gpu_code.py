"""GPU code in tests: a program at stage gpu as a module that can be changed, and run by the checker."""

from __future__ import annotations

from collections.abc import Callable, Sequence

import torch
from mlir_fusion.dialects.mlir import arith, ir
from mlir_fusion.driver.levels import nested_modules
from mlir_fusion.driver.programs import make_program
from mlir_fusion.driver.runner import make_context
from mlir_fusion.passes.split_kernels import kernels_in
from mlir_fusion.runtime.simt.launcher import SimtLauncher

import mlir_fusion


def gpu_module(function: Callable, inputs: Sequence[torch.Tensor]) -> ir.Module:
    """What `function` becomes for the checker, which is what it becomes for a GPU."""
    torch._dynamo.reset()
    compiled = mlir_fusion.compile(function, target="simt")
    return parse(compiled.lower(*inputs).ir("gpu"))


def parse(text: str) -> ir.Module:
    """A module in a context of its own, each operation located at its line."""
    with make_context():
        return ir.Module.parse(text)


def run(module: ir.Module, *inputs: torch.Tensor) -> list[torch.Tensor]:
    """Calls @main with the checker."""
    with module.context:
        functions = {name: op for nested in nested_modules(module) for name, op in kernels_in(nested)}
        return make_program(module, SimtLauncher(functions))(*inputs)  # pyright: ignore[reportReturnType]


def find(module: ir.Module, name: str, accepts: Callable[[ir.Operation], bool] = lambda _: True) -> list[ir.Operation]:
    """The operations with this name, in order."""
    found: list[ir.Operation] = []

    def visit(op: ir.Operation) -> ir.WalkResult:
        if op.name == name and accepts(op):
            found.append(op)
        return ir.WalkResult.ADVANCE

    module.operation.walk(visit)
    return found


def is_shared(memory: ir.Value) -> bool:
    """Whether memory is a block's own."""
    return "workgroup" in str(memory.type)


def constant_like(value: ir.Value, number: int) -> ir.Value:
    """A constant of a value's type, at the insertion point."""
    return arith.ConstantOp(value.type, number).result
