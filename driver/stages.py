"""The pipeline, on one screen.

`stages(options)` is the only place where options become pass options. A stage says what the body of a
function may hold afterwards (`allowed`: names, or prefixes that end in a dot) and what the modules with the
kernels may (`device`); both are asserted. `lower` runs from the stage that a module is at to the one that is
asked for.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

from ..dialects.mlir import ir
from ..passes import PASSES
from ..passes.fusion_expand_math import FusionExpandMath
from ..passes.pass_base import Pass, check_choice
from ..targets.target import Target
from .errors import Diagnostic, UserError
from .levels import LEVELS, detect_level, first_illegal
from .options import Options
from .runner import QUIET, Instruments, run_stage


@dataclass(frozen=True)
class Stage:
    """Passes that take the program from one form to the next, and what that form may hold."""

    name: str
    passes: tuple[Pass | str, ...]
    allowed: tuple[str, ...]
    device: tuple[str, ...] = ()


CALLS = ("fusion.extern", "fusion.view", "fusion.random", "arith.constant", "func.return")
HOST = ("fusion.extern", "memref.", "arith.", "gpu.launch_func", "func.call", "func.return")
KERNEL_CODE = ("gpu.", "func.", "scf.", "cf.", "arith.", "math.", "complex.", "vector.", "memref.", "nvvm.")

# torch-mlir's own pipeline, but for its last pass, which refuses what it doesn't know: fusion.extern
FROM_TORCH = (
    "func.func(torch-restructure-non-constant-axes,torch-fuse-quantized-ops,"
    "convert-torch-to-tmtensor{allow-non-finites=true},canonicalize,"
    "convert-torch-to-linalg{allow-non-finites=true},canonicalize,"
    "convert-torch-to-scf,convert-torch-to-arith,convert-torch-to-tensor),convert-torch-conversion-to-mlprogram,"
    "func.func(memref-expand,canonicalize,resolve-shaped-type-result-dims,cse),torch-func-backend-type-conversion,"
    "func.func(canonicalize,torch-finalizing-backend-type-conversion)"
)
# Kernels have static shapes, so a memref argument is a bare pointer
TO_NVVM = (
    "gpu.module(canonicalize,cse,expand-strided-metadata,lower-affine,convert-scf-to-cf,"
    # Vectors too, since the module says how wide an index is and convert-vector-to-llvm wouldn't ask
    "convert-gpu-to-nvvm{use-bare-ptr-memref-call-conv=1},"
    "convert-math-to-llvm,canonicalize,cse,reconcile-unrealized-casts)",
)
TO_LLVM = (
    # Functions of 16-bit floats are those of f32
    "builtin.module(canonicalize,cse,convert-math-to-funcs,math-extend-to-supported-types{target-type=f32})",
    FusionExpandMath(),
    "builtin.module(arith-expand{include-bf16=1},convert-math-to-llvm{approximate-log1p=0},convert-math-to-libm,"
    "convert-vector-to-llvm,convert-scf-to-cf,expand-strided-metadata,lower-affine,convert-arith-to-llvm,"
    "finalize-memref-to-llvm,convert-func-to-llvm{use-bare-ptr-memref-call-conv=1},convert-cf-to-llvm,"
    "convert-ub-to-llvm,convert-index-to-llvm,canonicalize,cse,reconcile-unrealized-casts)",
)


def stages(options: Options) -> tuple[Stage, ...]:
    """The whole compiler for these options, in order."""
    target = Target.parse(options.target)
    return (
        # Calls first: what torch-mlir doesn't lower must not be in its way
        Stage(
            "import", (*_present(_make("fusion-import-extern")), FROM_TORCH), ("linalg.", "tensor.", "arith.", *CALLS)
        ),
        Stage(
            "linalg",
            _present(
                # First, while a matmul can still be told from any other contraction
                _make("fusion-select-library", matmul=options.matmul),
                # One form for every operation, so that what follows knows linalg.generic alone
                _make("fusion-normalize"),
            ),
            allowed=("linalg.", "tensor.", "arith.", *CALLS),
        ),
        # The decision that this project is about: one of the fusion passes
        Stage("region", _present(_fusion_pass(options)), allowed=("fusion.region", *CALLS)),
        # What one kernel can do is asked only now, of whole regions
        Stage("segment", _present(_make("fusion-segment")), allowed=("fusion.kernel", *CALLS)),
        # How each kernel runs, chosen for the target
        Stage(
            "schedule",
            _present(_make("fusion-schedule", target=target.name)),
            allowed=("fusion.kernel", *CALLS),
        ),
        # Tensors become memory once nothing moves any more
        Stage("kernel", _present(_make("fusion-plan-memory")), allowed=("fusion.kernel", *HOST)),
        *(_cpu_stages() if target.kind == "cpu" else _gpu_stages(target)),
    )


def _gpu_stages(target: Target) -> tuple[Stage, ...]:
    return (
        # Each schedule emits its kernel
        Stage("gpu", _present(_make("fusion-to-gpu")), HOST, KERNEL_CODE),
        # Only the kernels: the host function is run as it stands
        Stage("nvvm", TO_NVVM, HOST, ("llvm.", "nvvm.")),
    )


def _cpu_stages() -> tuple[Stage, ...]:
    return (
        # Loops over the same kernels
        Stage("gpu", _present(_make("fusion-to-cpu")), HOST, KERNEL_CODE),
        # Only the kernels: the host function is run as it stands
        Stage("llvm", TO_LLVM, HOST, ("llvm.",)),
    )


def _fusion_pass(options: Options) -> Pass | None:
    if options.fusion_type == "dataflow":
        return _make(
            "fusion-dataflow",
            horizontal=options.horizontal,
            memory_aware=options.memory_aware,
            max_region_ops=options.max_region_ops,
        )
    if options.fusion_type == "consecutive":
        return _make("fusion-consecutive", max_region_ops=options.max_region_ops)
    return _make("fusion-none")


def _make(name: str, **fields: object) -> Pass | None:
    return PASSES[name](**fields) if name in PASSES else None


def _present(*passes: Pass | None) -> tuple[Pass, ...]:
    return tuple(one for one in passes if one is not None)


def lower(module: ir.Module, options: Options, emit: str, instruments: Instruments | None = None) -> ir.Module:
    """Takes `module`, in place, from the stage that it is at to stage `emit`."""
    shown = instruments or replace(QUIET, verify_each=options.verify_each)
    for number, stage in enumerate(remaining_stages(module, options, emit)):
        run(module, stage, shown.numbered(number, stage.name))
    return module


def run(module: ir.Module, stage: Stage, instruments: Instruments) -> None:
    """Runs one stage and asserts the form that it promises."""

    def illegal() -> Diagnostic | None:
        found = first_illegal(module, stage.allowed, stage.device, stage.name)
        if found and stage.name in ("import", "linalg"):
            # Nothing has been built yet: the program itself holds what can't be compiled
            raise UserError("the program can't be compiled", [found])
        return found

    run_stage(module, stage.name, stage.passes, instruments, illegal)


def remaining_stages(module: ir.Module, options: Options, emit: str) -> list[Stage]:
    """The stages that lead from where `module` is to `emit`; UserError if it is past that."""
    plan = stages(options)
    _check_stage(emit, plan, options)
    level = detect_level(module)
    first = _after("import" if level == "linalg" else level, plan)
    last = _after(emit, plan)
    if first > last:
        raise UserError(f"the module is at stage {level!r} already, past {emit!r}")
    return list(plan[first:last])


def _check_stage(emit: str, plan: tuple[Stage, ...], options: Options) -> None:
    try:
        check_choice(f"stage of target {options.target}", emit, [stage.name for stage in plan])
    except ValueError as error:
        raise UserError(str(error)) from None


def _after(level: str, plan: tuple[Stage, ...]) -> int:
    """The number of the first stage after `level`."""
    rank = LEVELS.index(level)
    return sum(1 for stage in plan if LEVELS.index(stage.name) <= rank)
