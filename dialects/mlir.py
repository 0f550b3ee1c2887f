"""The one door to the MLIR bindings.

Everything else imports MLIR from here, so that moving to another build of the bindings (they ship inside
the torch-mlir wheel today) is a change to this file alone. Importing this module never imports torch.
"""

from torch_mlir import ir, passmanager, rewrite
from torch_mlir._mlir_libs import _mlir
from torch_mlir.dialects import (
    arith,
    bufferization,
    builtin,
    cf,
    complex,
    func,
    gpu,
    linalg,
    llvm,
    math,
    memref,
    nvgpu,
    nvvm,
    scf,
    tensor,
    vector,
)

__all__ = [
    "arith",
    "bufferization",
    "builtin",
    "cf",
    "complex",
    "func",
    "gpu",
    "ir",
    "linalg",
    "llvm",
    "math",
    "memref",
    "nvgpu",
    "nvvm",
    "passmanager",
    "register_torch",
    "rewrite",
    "scf",
    "tensor",
    "torch_frontend",
    "transform_interpreter",
    "vector",
]


# Where the bindings look for the classes of an op's dialect, at each op they meet until they find a module of its
# name. fusion has none, but a module; without it, a third of the time of passes over regions went into that search.
_mlir.globals.append_dialect_search_prefix("mlir_fusion.dialects")


def torch_frontend():
    """torch-mlir's FX importer module and its torch dialect, imported on demand: both need torch."""
    from torch_mlir.dialects import torch as torch_dialect
    from torch_mlir.extras import fx_importer

    return fx_importer, torch_dialect


def register_torch(context: ir.Context) -> None:
    """Makes a context know the torch dialect and `torch_c`, its casts to and from builtin tensors.

    `torch_c` has no registration of its own in the bindings: the passes that use it bring it along, so one of
    them is run on nothing. Needs no torch.
    """
    from torch_mlir._mlir_libs import _torchMlir

    _torchMlir.register_dialect(context)
    with context, ir.Location.unknown():
        empty = ir.Module.create()
        passmanager.PassManager.parse("builtin.module(torch-func-backend-type-conversion)").run(empty.operation)


def transform_interpreter():
    """The interpreter of the transform dialect, imported on demand: few programs need it."""
    from torch_mlir.dialects.transform import interpreter

    return interpreter
