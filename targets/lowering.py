"""From MLIR's llvm dialect to LLVM IR text.

The pipelines of upstream passes that get a module into the llvm dialect are in driver/stages.py.
"""

from __future__ import annotations

from ..dialects.mlir import ir, llvm
from ..dialects.walk import find
from .llvm import CodegenError

# What a module may hold when it is translated: these dialects, and the modules themselves
TRANSLATABLE = ("llvm", "nvvm", "gpu.module", "builtin.module")


def translate(module: ir.Operation) -> str:
    """LLVM IR of a `gpu.module` or a `builtin.module` in the llvm and nvvm dialects.

    The bindings' translation ends the process when it meets another op, so that is looked for first.
    """
    leftover = find(module, lambda op: not _is_translatable(op.name))
    if leftover:
        names = ", ".join(sorted({op.name for op in leftover}))
        raise CodegenError(f"{leftover[0].location}: no translation to LLVM IR for: {names}")
    for memory in find(module, _is_launch_sized):
        memory.attributes["linkage"] = ir.Attribute.parse("#llvm.linkage<external>", module.context)
    return llvm.translate_module_to_llvmir(module)


def _is_launch_sized(op: ir.Operation) -> bool:
    """Shared memory of the size that a launch asks for. MLIR makes it internal, which LLVM takes for an empty array."""
    return op.name == "llvm.mlir.global" and op.attributes["sym_name"].value.startswith("__dynamic_shmem__")


def _is_translatable(name: str) -> bool:
    return name in TRANSLATABLE or name.partition(".")[0] in TRANSLATABLE
