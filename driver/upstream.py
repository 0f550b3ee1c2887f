"""Pipelines of upstream passes: torch to linalg, GPU kernels to NVVM, loops to LLVM."""

from __future__ import annotations

from ..passes.fusion_expand_copies import FusionExpandCopies
from ..passes.fusion_expand_math import FusionExpandMath

# torch-mlir's own pipelines, but for the last pass, which refuses what it doesn't know: fusion.extern
FROM_TORCH = (
    "torchdynamo-export-to-torch-backend-pipeline",
    "func.func(torch-restructure-non-constant-axes,torch-fuse-quantized-ops,"
    "convert-torch-to-tmtensor{allow-non-finites=true},canonicalize,"
    "convert-torch-to-linalg{allow-non-finites=true},canonicalize,"
    "convert-torch-to-scf,convert-torch-to-arith,convert-torch-to-tensor),convert-torch-conversion-to-mlprogram,"
    "func.func(memref-expand,canonicalize,resolve-shaped-type-result-dims),torch-func-backend-type-conversion,"
    "func.func(canonicalize,torch-finalizing-backend-type-conversion)",
)

# Kernels have static shapes, so a memref argument is a bare pointer
TO_NVVM = (
    # Upstream's own lowering of these takes an index for 64 bits wide
    FusionExpandCopies(),
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
