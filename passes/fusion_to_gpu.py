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

import functools
import itertools
from collections import defaultdict
from collections.abc import Sequence
from dataclasses import dataclass
from typing import ClassVar

from ..dialects.mlir import gpu, ir
from .approximate_divisions import approximate_divisions
from .batch_memory import refuse_shared_memory
from .emit_batch import Share, emit_batch
from .emit_kernel import Kernels, emit_body, kernels_of
from .errors import PassFailure
from .fusion_report import batch_of
from .fusion_schedule import problem_of, schedule_of
from .pass_base import Pass
from .schedules import Launch
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
        names: dict[tuple[str, ...], str] = {}
        launches = _launches(kernels)
        for launch in launches:
            if launch.key not in names:
                names[launch.key] = launch.describe(len(names))
                _make_function(launch, names[launch.key], block)
        for launch in launches:
            _launch(launch, names[launch.key])


@dataclass(frozen=True)
class _Launch:
    """Kernels that run at once, equal ones together, and what they have in common."""

    shares: tuple[tuple[ir.Operation, ...], ...]
    last: ir.Operation
    threads: int
    key: tuple[str, ...]

    @property
    def kernels(self) -> list[ir.Operation]:
        """All of them, in the order of the function's parameters."""
        return [kernel for share in self.shares for kernel in share]

    def describe(self, number: int) -> str:
        """A name for the function."""
        return self.key[0] if len(self.key) == 1 else f"batch_{number}_{self.key[0]}_and_{len(self.key) - 1}_more"


def _launches(kernels: Kernels) -> list[_Launch]:
    """The kernels, neighbours of one batch together."""
    found: list[_Launch] = []
    for _, group in itertools.groupby(kernels.all, key=lambda kernel: (kernel.parent, batch_of(kernel))):
        members = list(group)
        refuse_shared_memory(members)
        equal: dict[str, list[ir.Operation]] = defaultdict(list)
        for kernel in members:
            equal[kernels.name(kernel)].append(kernel)
        threads = {_problem_launch(kernel).threads for kernel in members}
        if len(threads) > 1:
            raise PassFailure(
                members[-1].location,
                f"kernels of a batch need as many threads a block; got {' and '.join(map(str, sorted(threads)))}",
            )
        key = tuple(name for name, share in equal.items() for _ in share)
        found.append(_Launch(tuple(map(tuple, equal.values())), members[-1], threads.pop(), key))
    return found


def _problem_launch(kernel: ir.Operation) -> Launch:
    family, parameters = schedule_of(kernel)
    return family.launch(problem_of(kernel), parameters)


def _make_function(launch: _Launch, name: str, block: ir.Block) -> None:
    types = [operand.type for kernel in launch.kernels for operand in kernel.operands]
    with ir.InsertionPoint(block), launch.last.location:
        function = gpu.GPUFuncOp(ir.FunctionType.get(types, []), name, known_block_size=[launch.threads, 1, 1])
        # The constructor's own `kernel=True` adds an attribute `gpu.kernel` that the lowering adds again
        function.attributes["kernel"] = ir.UnitAttr.get()
        entry = ir.Block.create_at_start(function.regions[0], types)
        with ir.InsertionPoint(entry):
            _emit(launch, function, list(entry.arguments))
            gpu.ReturnOp([])
    approximate_divisions(function.operation)


def _emit(launch: _Launch, function: gpu.GPUFuncOp, arguments: list[ir.Value]) -> None:
    if len(launch.key) == 1:
        _emit_kernel(launch.last, function, launch.threads, arguments, None)
        return
    remaining = iter(arguments)
    shares = []
    for equal in launch.shares:
        taken = [list(itertools.islice(remaining, len(kernel.operands))) for kernel in equal]
        emit = functools.partial(_emit_kernel, equal[0], function, launch.threads)
        shares.append(Share(taken, _problem_launch(equal[0]).blocks, emit))
    emit_batch(shares, gpu.BlockIdOp(gpu.Dimension.x).result)


def _emit_kernel(
    kernel: ir.Operation,
    function: gpu.GPUFuncOp,
    threads: int,
    memories: Sequence[ir.Value],
    block: ir.Value | None,
) -> None:
    family, parameters = schedule_of(kernel)
    emit_body(problem_of(kernel), family, parameters, GpuMachine(function, threads, block), memories)


def _launch(launch: _Launch, name: str) -> None:
    blocks = sum(_problem_launch(kernel).blocks for kernel in launch.kernels)
    with ir.InsertionPoint(launch.last), launch.last.location:
        if blocks:
            one = number(1)
            grid, block = (number(blocks), one, one), (number(launch.threads), one, one)
            operands = [operand for kernel in launch.kernels for operand in kernel.operands]
            gpu.LaunchFuncOp([MODULE, name], grid, block, operands)
    for kernel in launch.kernels:
        kernel.erase()
