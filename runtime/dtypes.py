"""torch's dtypes for MLIR's element types."""

from __future__ import annotations

import torch

from ..dialects.mlir import ir

DTYPES = {
    "f16": torch.float16,
    "bf16": torch.bfloat16,
    "f32": torch.float32,
    "f64": torch.float64,
    "i1": torch.bool,
    "i8": torch.int8,
    "si8": torch.int8,
    "ui8": torch.uint8,
    "i16": torch.int16,
    "i32": torch.int32,
    "i64": torch.int64,
    "index": torch.int64,
    "f8E4M3FN": torch.float8_e4m3fn,
    "f8E5M2": torch.float8_e5m2,
    "complex<f16>": torch.complex32,
    "complex<f32>": torch.complex64,
    "complex<f64>": torch.complex128,
}


def dtype_of(element: ir.Type) -> torch.dtype:
    """The dtype that an element type stands for; TypeError if torch has none."""
    try:
        return DTYPES[str(element)]
    except KeyError:
        raise TypeError(f"PyTorch has no dtype for elements of type {element}") from None


def dtype_name(dtype: torch.dtype) -> str:
    """`float32`, `bool`, ..."""
    return str(dtype).removeprefix("torch.")


def dtype_named(name: str) -> torch.dtype:
    """The dtype called `float32`, `bool`, ..."""
    dtype = getattr(torch, name, None)
    if not isinstance(dtype, torch.dtype):
        raise TypeError(f"PyTorch has no dtype called {name!r}")
    return dtype
