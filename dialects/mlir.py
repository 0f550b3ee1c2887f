"""The one door to the MLIR bindings.

Everything else imports MLIR from here, so that moving to another build of the bindings (they ship inside
the torch-mlir wheel today) is a change to this file alone. Importing this module never imports torch.
"""

from torch_mlir import ir, passmanager, rewrite
from torch_mlir.dialects import (
    arith,
    bufferization,
    builtin,
    cf,
    complex,
    ext,
    func,
    gpu,
    linalg,
    llvm,
    math,
    memref,
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
    "ext",
    "func",
    "gpu",
    "ir",
    "linalg",
    "llvm",
    "math",
    "memref",
    "nvvm",
    "passmanager",
    "rewrite",
    "scf",
    "tensor",
    "torch_frontend",
    "vector",
]


def torch_frontend():
    """torch-mlir's FX importer module and its torch dialect, imported on demand: both need torch."""
    from torch_mlir.dialects import torch as torch_dialect
    from torch_mlir.extras import fx_importer

    return fx_importer, torch_dialect
