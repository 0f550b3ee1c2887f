"""NVIDIA's mathematical functions, linked into a kernel that calls some.

MLIR turns `math.erf` into a call of `__nv_erff`, which libdevice defines as bitcode. libdevice is large (half
a megabyte), and linking it whole costs every kernel a hundred milliseconds and, unless its functions are made
internal, pages of dead PTX. So each function is cut out once, with just what it calls (a few kilobytes), and
kept for the life of the process.

libdevice asks how it was compiled by calling `__nvvm_reflect` with a name. LLVM folds these calls, and says 0
to all but `__CUDA_ARCH`. That is what we want of `__CUDA_FTZ` (subnormal numbers are not flushed), but not of
`__CUDA_PREC_SQRT`: nvcc and PyTorch say 1, a square root that rounds correctly.
"""

from __future__ import annotations

import re
from functools import cache

import llvmlite.binding as llvmlite

from .llvm import CodegenError, remove_unused, retarget
from .toolkit import find_libdevice

NVPTX = "nvptx64-nvidia-cuda"
PREFIX = "__nv_"


def link_libdevice(module: llvmlite.ModuleRef, context: llvmlite.ContextRef, machine: llvmlite.TargetMachine) -> None:
    """Defines the functions of libdevice that a module of `context` declares, for its use only."""
    needed = [function.name for function in module.functions if _is_missing(function)]
    for name in needed:
        part = llvmlite.parse_bitcode(_extract(name), context=context)
        retarget(part, machine)
        module.link_in(part)
    for name in needed:
        module.get_function(name).linkage = "internal"


def _is_missing(function: llvmlite.ValueRef) -> bool:
    return function.is_declaration and function.name.startswith(PREFIX)


@cache
def _libdevice() -> bytes:
    return find_libdevice().read_bytes()


@cache
def _extract(name: str) -> bytes:
    """Bitcode of one function of libdevice and of what it calls."""
    library = llvmlite.parse_bitcode(_libdevice(), context=llvmlite.create_context())
    defined = {function.name: function for function in library.functions if not function.is_declaration}
    if name not in defined:
        raise CodegenError(f"libdevice has no function {name}")
    for other, function in defined.items():
        if other != name:
            function.linkage = "internal"
    remove_unused(library, llvmlite.Target.from_triple(NVPTX).create_target_machine())
    precise = _with_precise_roots(str(library))
    return llvmlite.parse_assembly(precise, context=llvmlite.create_context()).as_bitcode()


def _with_precise_roots(text: str) -> str:
    """The module's text with every question for __CUDA_PREC_SQRT answered by 1."""
    question = re.search(r'^(@\S+) = .* c"__CUDA_PREC_SQRT\\00"', text, re.MULTILINE)
    if question is None:
        return text
    call = rf"call i32 @__nvvm_reflect\(ptr {re.escape(question[1])}\)[ #\d]*"
    return re.sub(call, "add i32 0, 1", text)
