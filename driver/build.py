"""From a module to machine code, and the text of any stage on the way.

build(module, options)               what the runtime needs: the host function and the kernels' code
emit_text(module, options, "ptx")    what `fusion-opt --emit=ptx` prints; bytes for a cubin
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from ..dialects.mlir import ir
from ..passes.pass_base import check_choice
from ..targets import cpu, nvptx
from ..targets.lowering import translate
from ..targets.target import Target
from .errors import UserError
from .levels import LEVELS, detect_level, nested_modules
from .lower import lower
from .options import Options
from .runner import Instruments, print_module

MLIR_STAGES = ("linalg", "region", "kernel", "gpu", "nvvm", "llvm")
MACHINE_CODE = ("ptx", "cubin")
EMITS = (*MLIR_STAGES, *MACHINE_CODE)
"""What can be asked for, of one target or another."""

BY_KIND = {
    "cpu": ("linalg", "region", "kernel", "gpu", "llvm"),
    "gpu": ("linalg", "region", "kernel", "gpu", "nvvm", "ptx", "cubin"),
    "simt": ("linalg", "region", "kernel", "gpu"),
}


@dataclass(frozen=True)
class PtxCode:
    """One PTX module, and each kernel's entry point in it by the kernel's name."""

    text: str
    kernels: dict[str, str]


@dataclass(frozen=True)
class Artifact:
    """A compiled program: `@main`, which the runtime walks, and the code of what it launches."""

    host: ir.Module
    code: PtxCode | cpu.NativeModule


def build(module: ir.Module, options: Options) -> Artifact:
    """Compiles `module`, which becomes the artifact's host module, down to machine code."""
    target = Target.parse(options.target)
    lower(module, options, "gpu")
    with module.context:
        # The host function needs the kernels only by name; they are lowered in a copy
        lowered = ir.Module.parse(str(module))
    lower(lowered, options, "llvm" if target.kind == "cpu" else "nvvm")
    return Artifact(module, _native(lowered) if target.kind == "cpu" else _ptx(lowered, target))


def emit_text(
    module: ir.Module,
    options: Options,
    emit: str | None = None,
    instruments: Instruments | None = None,
) -> str | bytes:
    """The program at a stage, as text (a cubin: as bytes); None is regions, or where the module is beyond."""
    target = Target.parse(options.target)
    generic = instruments is not None and instruments.generic
    if emit is None and LEVELS.index(detect_level(module)) > LEVELS.index("region"):
        return print_module(module.operation, generic)
    stage = emit or "region"
    _check_emit(stage, target)
    if stage not in MACHINE_CODE:
        lower(module, options, stage, instruments)
        return print_module(module.operation, generic)
    lower(module, options, "nvvm", instruments)
    code = _ptx(module, target)
    return code.text if stage == "ptx" else _cubin(code, target)


def _check_emit(stage: str, target: Target) -> None:
    try:
        check_choice(f"stage of target {target.name}", stage, BY_KIND[target.kind])
    except ValueError as error:
        raise UserError(str(error)) from None


def _ptx(module: ir.Module, target: Target) -> PtxCode:
    with module.context:
        kernels = {name: name for nested in nested_modules(module) for name in _kernel_names(nested)}
        texts = [translate(nested) for nested in nested_modules(module)]
    if not texts:
        return PtxCode("", {})
    if len(texts) > 1:
        raise UserError(f"PTX is made from one gpu.module, but there are {len(texts)}")
    return PtxCode(nvptx.compile_to_ptx(texts[0], target), kernels)


def _native(module: ir.Module) -> cpu.NativeModule:
    with module.context:
        texts = [translate(nested) for nested in nested_modules(module)]
    return cpu.jit(texts[0] if texts else "")


def _cubin(code: PtxCode, target: Target) -> bytes:
    if not code.kernels:
        raise UserError("the program has no kernel of its own, so there is no cubin")
    try:
        return nvptx.assemble(code.text, target)
    except nvptx.AssemblerError as error:
        raise UserError(str(error)) from None


def _kernel_names(nested: ir.Operation) -> Iterator[str]:
    for op in nested.regions[0].blocks[0].operations:
        attributes = op.operation.attributes
        if "gpu.kernel" in attributes or "nvvm.kernel" in attributes:
            yield ir.StringAttr(attributes["sym_name"]).value
