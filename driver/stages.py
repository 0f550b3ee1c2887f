"""The pipeline, on one screen.

`stages(options)` is the only place where options become pass options. A stage says what the body of a function
may hold afterwards (`allowed`: names, or prefixes that end in a dot) and what the modules with the kernels may
(`device`); both are asserted by lower.py, which runs this. upstream.py spells out what MLIR's own passes do.
"""

from __future__ import annotations

from dataclasses import dataclass

from ..passes.fusion_batch import FusionBatch
from ..passes.fusion_check_indices import FusionCheckIndices
from ..passes.fusion_consecutive import FusionConsecutive
from ..passes.fusion_dataflow import FusionDataflow
from ..passes.fusion_import_extern import FusionImportExtern
from ..passes.fusion_none import FusionNone
from ..passes.fusion_normalize import FusionNormalize
from ..passes.fusion_plan_memory import FusionPlanMemory
from ..passes.fusion_schedule import FusionSchedule
from ..passes.fusion_segment import FusionSegment
from ..passes.fusion_select_library import FusionSelectLibrary
from ..passes.fusion_split_reductions import FusionSplitReductions
from ..passes.fusion_to_cpu import FusionToCpu
from ..passes.fusion_to_gpu import FusionToGpu
from ..passes.pass_base import Pass
from ..targets.target import LEAST_GPU, Target
from .options import Options
from .upstream import FROM_TORCH, TO_LLVM, TO_NVVM


@dataclass(frozen=True)
class Stage:
    """Passes that take the program from one form to the next, and what that form may hold."""

    name: str
    passes: tuple[Pass | str, ...]
    allowed: tuple[str, ...]
    device: tuple[str, ...] = ()


CALLS = ("fusion.extern", "fusion.view", "fusion.random", "arith.constant", "func.return")
HOST = ("fusion.extern", "memref.", "arith.", "gpu.launch_func", "func.call", "func.return")
KERNEL_CODE = (
    "gpu.",
    "func.",
    "scf.",
    "cf.",
    "arith.",
    "math.",
    "complex.",
    "vector.",
    "memref.",
    "nvgpu.",
    "nvvm.",
    "llvm.call_intrinsic",
    # Another block's shared memory, of which memref knows nothing
    "llvm.inttoptr",
    "llvm.store",
)


def stages(options: Options) -> tuple[Stage, ...]:
    """The whole compiler for these options, in order."""
    target = _chosen_for(options)
    return (
        Stage(
            "import",
            (
                # Calls first: what torch-mlir doesn't lower must not be in its way
                FusionImportExtern(),
                *FROM_TORCH,
                # While nothing but torch-mlir has asserted anything
                FusionCheckIndices(),
            ),
            ("linalg.", "tensor.", "arith.", *CALLS),
        ),
        Stage(
            "linalg",
            (
                # First, while a matmul can still be told from any other contraction
                FusionSelectLibrary(matmul=options.matmul),
                # One form for every operation, so that what follows knows linalg.generic alone
                FusionNormalize(fma=options.fma, fast_math=options.fast_math),
            ),
            allowed=("linalg.", "tensor.", "arith.", *CALLS),
        ),
        # The decision that this project is about: one of the fusion passes
        Stage("region", (_fusion_pass(options),), allowed=("fusion.region", *CALLS)),
        # What one kernel can do is asked only now, of whole regions
        Stage(
            "segment",
            (
                # First, so that what feeds a partial result and what uses the joined one become kernels as usual
                FusionSplitReductions(target=target.name),
                FusionSegment(matmul_epilogue=options.matmul_epilogue),
            ),
            allowed=("fusion.kernel", *CALLS),
        ),
        # How each kernel runs, chosen for the target
        Stage(
            "schedule",
            (
                FusionSchedule(
                    target=target.name,
                    vectorize=options.vectorize,
                    cluster=options.cluster,
                    persistent=options.persistent,
                ),
                *_batches(options),
            ),
            allowed=("fusion.kernel", *CALLS),
        ),
        # Tensors become memory once nothing moves any more
        Stage("kernel", (FusionPlanMemory(),), allowed=("fusion.kernel", *HOST)),
        *(_cpu_stages(options) if target.kind == "cpu" else _gpu_stages(options)),
    )


def _chosen_for(options: Options) -> Target:
    """Whose number of multiprocessors, room for clusters and so on decide in which order sums are joined."""
    target = Target.parse(options.target)
    return LEAST_GPU if options.deterministic and target.kind != "cpu" else target


def _fusion_pass(options: Options) -> Pass:
    if options.fusion_type == "dataflow":
        return FusionDataflow(
            horizontal=options.horizontal,
            memory_aware=options.memory_aware,
            recompute=options.recompute,
            max_region_ops=options.max_region_ops,
            fuel=options.optimization_fuel,
        )
    if options.fusion_type == "consecutive":
        return FusionConsecutive(max_region_ops=options.max_region_ops, fuel=options.optimization_fuel)
    return FusionNone()


def _batches(options: Options) -> tuple[Pass, ...]:
    """Small kernels side by side share a launch, where launches are dear and siblings may be merged at all."""
    if Target.parse(options.target).kind == "cpu":
        return ()
    merges_siblings = options.horizontal and options.fusion_type != "none"
    return (FusionBatch() if merges_siblings else FusionBatch(max_kernels=1),)


def _gpu_stages(options: Options) -> tuple[Stage, ...]:
    to_gpu = FusionToGpu(index32=options.index32, reuse_kernels=options.kernel_reuse)
    return (
        # Each schedule emits its kernel, and the host function launches it
        Stage("gpu", (to_gpu,), HOST, KERNEL_CODE),
        # Only the kernels: the host function is run as it stands
        Stage("nvvm", TO_NVVM, HOST, ("llvm.", "nvvm.")),
    )


def _cpu_stages(options: Options) -> tuple[Stage, ...]:
    return (
        # The same schedules, as loops that the host function calls
        Stage("gpu", (FusionToCpu(reuse_kernels=options.kernel_reuse),), HOST, KERNEL_CODE),
        # Only the kernels: the host function is run as it stands
        Stage("llvm", TO_LLVM, HOST, ("llvm.",)),
    )
