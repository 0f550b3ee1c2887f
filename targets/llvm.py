"""The way into llvmlite's LLVM: parse, optimise.

The code generators that the MLIR bindings lack live in llvmlite. Both targets that produce machine code go
the same way through it: text in, the default O3 pipeline with the target's cost model, machine code out."""

from __future__ import annotations

from functools import cache

import llvmlite.binding as llvmlite

from .llvm_text import to_llvm22


class CodegenError(RuntimeError):
    """LLVM or an assembler refused what we gave it: a fault of the compiler, not of the user's program."""


@cache
def initialize() -> None:
    """Registers the code generators. Once is enough, and only needed where code is generated."""
    llvmlite.initialize_all_targets()
    llvmlite.initialize_all_asmprinters()


def parse(text: str, context: llvmlite.ContextRef) -> llvmlite.ModuleRef:
    """A verified module. Give each its own context: a context keeps every constant and type until it dies."""
    try:
        module = llvmlite.parse_assembly(to_llvm22(text), context=context)
        module.verify()
    except RuntimeError as error:
        raise CodegenError(f"LLVM can't read the IR that it was given: {error}") from error
    return module


def retarget(module: llvmlite.ModuleRef, machine: llvmlite.TargetMachine) -> None:
    """Says in the module which machine it is for; what is linked together must agree."""
    module.triple = machine.triple
    module.data_layout = str(machine.target_data)


def optimize(module: llvmlite.ModuleRef, machine: llvmlite.TargetMachine) -> None:
    """LLVM's O3 pipeline, vectorisers included."""
    options = llvmlite.create_pipeline_tuning_options(speed_level=3)
    options.loop_vectorization = True
    options.slp_vectorization = True
    options.loop_interleaving = True
    options.loop_unrolling = True
    builder = llvmlite.create_pass_builder(machine, options)
    builder.getModulePassManager().run(module, builder)


def remove_unused(module: llvmlite.ModuleRef, machine: llvmlite.TargetMachine) -> None:
    """Deletes what no visible symbol reaches."""
    builder = llvmlite.create_pass_builder(machine, llvmlite.create_pipeline_tuning_options())
    passes = llvmlite.create_new_module_pass_manager()
    passes.add_global_dead_code_eliminate_pass()
    passes.run(module, builder)
