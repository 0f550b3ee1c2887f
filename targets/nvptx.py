"""LLVM IR to PTX, and (with ptxas) to a cubin.

    text of LLVM 24 -> module of LLVM 22 -> + libdevice's functions -> O3 -> PTX

What the IR says about floating point is what the PTX does. `fmul` and `fadd` without the flag `contract`
become `mul.rn` and `add.rn`: the explicit rounding keeps ptxas from fusing them behind our back. Division and
square root round correctly, subnormal numbers are kept, NaN and infinity are honoured. `ex2.approx` and its
like appear where the IR allows approximation (`afn`) or inside libdevice, which knows what it does.

A fatal error of LLVM's code generator ends the process: nothing can catch it. What reaches this module has
passed MLIR's verifiers and LLVM's own, which is all one can do.
"""

from __future__ import annotations

import llvmlite.binding as llvmlite

from . import llvm
from .libdevice import NVPTX, link_libdevice
from .ptxas import AssemblerError, Resources, assemble, resource_usage
from .target import Target
from .toolkit import find_ptxas

__all__ = ["AssemblerError", "Resources", "assemble", "compile_to_ptx", "find_ptxas", "resource_usage"]


def compile_to_ptx(llvm_ir: str, target: Target) -> str:
    """One PTX module with every kernel of the LLVM IR."""
    if not target.ptx_chip:
        raise ValueError(f"target {target.name} has no PTX")
    llvm.initialize()
    context = llvmlite.create_context()
    module = llvm.parse(llvm_ir, context)
    machine = _machine(target)
    llvm.retarget(module, machine)
    link_libdevice(module, context, machine)
    llvm.optimize(module, machine)
    return machine.emit_assembly(module)


def _machine(target: Target) -> llvmlite.TargetMachine:
    return llvmlite.Target.from_triple(NVPTX).create_target_machine(
        cpu=target.ptx_chip, features=target.ptx_feature, opt=3
    )
