"""fusion-to-gpu: makes each scheduled kernel a GPU function, and its place in the host function a launch.

Kernels that are equal but for their names become one function. Booleans are bytes in memory; the kernel's
arguments are the memrefs it had, which the later lowering passes as bare pointers. With `index32`, indices have
32 bits if no memory of the program needs more; with `reuse-kernels=false` each kernel has a function of its own.
A function says how many blocks make a cluster, a launch how much shared memory beyond attributions it needs.

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

from ..dialects.mlir import arith, gpu, ir
from .approximate_divisions import approximate_divisions
from .approximate_exponentials import approximate_exponentials
from .batch_memory import refuse_shared_memory
from .emit_batch import Share, emit_batch
from .emit_kernel import Kernels, emit_body, kernels_of, parameter_types
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
        block = kernel_module(module, self.index32 and kernels.most_elements <= LARGEST_INDEX_32)
        names: dict[tuple[str, ...], str] = {}
        shared_bytes: dict[tuple[str, ...], int] = {}
        launches = _launches(kernels)
        for launch in launches:
            if launch.key not in names:
                names[launch.key] = launch.describe(len(names))
                shared_bytes[launch.key] = make_function(launch, names[launch.key], block)
        for launch in launches:
            _launch(launch, names[launch.key], shared_bytes[launch.key])


def kernel_module(module: ir.Module, index32: bool) -> ir.Block:
    """A new `gpu.module` for kernels."""
    module.operation.attributes["gpu.container_module"] = ir.UnitAttr.get()
    with ir.InsertionPoint(module.body), module.operation.location:
        holder = gpu.GPUModuleOp(MODULE)
        block = ir.Block.create_at_start(holder.regions[0])
    if index32:
        holder.attributes["dlti.dl_spec"] = ir.Attribute.parse("#dlti.dl_spec<index = 32 : i64>")
    return block


@dataclass(frozen=True)
class JointLaunch:
    """Kernels that run at once, equal ones together, and what they have in common."""

    shares: tuple[tuple[ir.Operation, ...], ...]
    last: ir.Operation
    threads: int
    cluster: int
    key: tuple[str, ...]

    @property
    def kernels(self) -> list[ir.Operation]:
        """All of them, in the order of the function's parameters."""
        return [kernel for share in self.shares for kernel in share]

    def describe(self, number: int) -> str:
        """A name for the function."""
        return self.key[0] if len(self.key) == 1 else f"batch_{number}_{self.key[0]}_and_{len(self.key) - 1}_more"


def launch_alone(kernel: ir.Operation) -> JointLaunch:
    """A kernel that runs by itself."""
    launch = _problem_launch(kernel)
    name = ir.StringAttr(kernel.attributes["name"]).value
    return JointLaunch(((kernel,),), kernel, launch.threads, launch.cluster, (name,))


def _launches(kernels: Kernels) -> list[JointLaunch]:
    """The kernels, neighbours of one batch together."""
    found: list[JointLaunch] = []
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
        cluster = max(_problem_launch(kernel).cluster for kernel in members)
        if len(members) > 1 and cluster > 1:
            raise PassFailure(members[-1].location, "a kernel whose blocks form clusters can't be part of a batch")
        key = tuple(name for name, share in equal.items() for _ in share)
        found.append(JointLaunch(tuple(map(tuple, equal.values())), members[-1], threads.pop(), cluster, key))
    return found


def _problem_launch(kernel: ir.Operation) -> Launch:
    family, parameters = schedule_of(kernel)
    return family.launch(problem_of(kernel), parameters)


def make_function(launch: JointLaunch, name: str, block: ir.Block) -> int:
    """Emits a function; returns how many bytes of shared memory its launch has to ask for."""
    types = [type_ for kernel in launch.kernels for type_ in parameter_types(kernel)]
    with ir.InsertionPoint(block), launch.last.location:
        function = gpu.GPUFuncOp(ir.FunctionType.get(types, []), name, known_block_size=[launch.threads, 1, 1])
        if launch.cluster > 1:
            function.attributes["known_cluster_size"] = ir.DenseI32ArrayAttr.get([launch.cluster, 1, 1])
        # The constructor's own `kernel=True` adds an attribute `gpu.kernel` that the lowering adds again
        function.attributes["kernel"] = ir.UnitAttr.get()
        entry = ir.Block.create_at_start(function.regions[0], types)
        with ir.InsertionPoint(entry):
            machines = _emit(launch, function, list(entry.arguments))
            gpu.ReturnOp([])
    approximate_divisions(function.operation)
    approximate_exponentials(function.operation)
    return max(machine.dynamic_bytes for machine in machines)


def _emit(launch: JointLaunch, function: gpu.GPUFuncOp, arguments: list[ir.Value]) -> list[GpuMachine]:
    """Emits the kernels' code; returns where each runs. A block runs one of them, so their memory may be the same."""
    if len(launch.key) == 1:
        machine = GpuMachine(function, launch.threads, cluster=launch.cluster)
        _emit_kernel(launch.last, machine, arguments)
        return [machine]
    remaining = iter(arguments)
    shares, machines = [], list[GpuMachine]()

    def emit(kernel: ir.Operation, memories: Sequence[ir.Value], block: ir.Value | None) -> None:
        machines.append(GpuMachine(function, launch.threads, block))
        _emit_kernel(kernel, machines[-1], memories)

    for equal in launch.shares:
        taken = [list(itertools.islice(remaining, len(kernel.operands))) for kernel in equal]
        shares.append(Share(taken, _problem_launch(equal[0]).blocks, functools.partial(emit, equal[0])))
    emit_batch(shares, gpu.BlockIdOp(gpu.Dimension.x).result)
    return machines


def _emit_kernel(kernel: ir.Operation, machine: GpuMachine, arguments: Sequence[ir.Value]) -> None:
    family, parameters = schedule_of(kernel)
    emit_body(problem_of(kernel), family, parameters, machine, arguments)


def _launch(launch: JointLaunch, name: str, shared_bytes: int) -> None:
    blocks = sum(_problem_launch(kernel).blocks for kernel in launch.kernels)
    operands = [operand for kernel in launch.kernels for operand in kernel.operands]
    with ir.InsertionPoint(launch.last), launch.last.location:
        emit_launch(name, blocks, launch.threads, operands, shared_bytes)
    for kernel in launch.kernels:
        kernel.erase()


def emit_launch(name: str, blocks: int, threads: int, operands: Sequence[ir.Value], shared_bytes: int) -> None:
    """Launches a function of the kernels' module; none where there is nothing for it to do."""
    if not blocks:
        return
    one, i32 = number(1), ir.IntegerType.get_signless(32)
    grid, block = (number(blocks), one, one), (number(threads), one, one)
    shared = arith.ConstantOp(i32, shared_bytes).result if shared_bytes else None
    gpu.LaunchFuncOp([MODULE, name], grid, block, list(operands), dynamic_shared_memory_size=shared)
