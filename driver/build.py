"""From a module to machine code, and the text of any stage on the way.

build(module, options)               what the runtime needs: the host function and the kernels' code
emit_text(module, options, "ptx")    what `fusion-opt --emit=ptx` prints; bytes for a cubin
"""

from __future__ import annotations

import os
from dataclasses import dataclass

from ..dialects.mlir import ir
from ..runtime.disk_cache import DiskCache, cache_folder
from ..targets import nvptx
from ..targets.lowering import translate
from ..targets.target import MIB, Target
from .cache import Counts
from .cached_stages import lowered
from .errors import UserError
from .kernel_code import KernelCompiler, NativeCode, PtxCode, SimtCode
from .levels import LEVELS, detect_level, nested_modules
from .lower import check_stage, lower
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
class Artifact:
    """A compiled program: `@main`, which the runtime walks, and the code of what it launches."""

    host: ir.Module
    code: PtxCode | NativeCode | SimtCode


def build(module: ir.Module, options: Options, counts: Counts | None = None) -> Artifact:
    """Compiles `module`, which may be changed, down to machine code; `counts` is told what the caches had.

    The host module is another one, of the same context: what the cache keeps is text.
    """
    counts, disk = counts or Counts(), disk_cache(options)
    program = lowered(module, options, counts, disk)
    host = ir.Module.parse(program.text, module.context)
    return Artifact(host, KernelCompiler(host, options, counts, disk).compile(program.kernel_keys))


def disk_cache(options: Options) -> DiskCache | None:
    """The folder of compiled code, where these options and the environment want one."""
    folder = cache_folder(os.environ)
    return DiskCache(folder, options.disk_cache_mib * MIB) if options.disk_cache and folder else None


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
    check_stage(stage, target.name, BY_KIND[target.kind])
    if stage not in MACHINE_CODE:
        lower(module, options, stage, instruments)
        return print_module(module.operation, generic)
    lower(module, options, "nvvm", instruments)
    ptx = _ptx(module, target)
    return ptx if stage == "ptx" else _cubin(ptx, target)


def _ptx(module: ir.Module, target: Target) -> str:
    """One PTX module with all kernels; empty if there are none."""
    with module.context:
        texts = [translate(nested) for nested in nested_modules(module)]
    if len(texts) > 1:
        raise UserError(f"PTX is made from one gpu.module, but there are {len(texts)}")
    return nvptx.compile_to_ptx(texts[0], target) if texts else ""


def _cubin(ptx: str, target: Target) -> bytes:
    if not ptx:
        raise UserError("the program has no kernel of its own, so there is no cubin")
    try:
        return nvptx.assemble(ptx, target)
    except nvptx.AssemblerError as error:
        raise UserError(str(error)) from None
