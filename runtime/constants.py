"""Dense constants of the IR as tensors."""

from __future__ import annotations

import re

import numpy as np
import torch

from ..dialects.mlir import ir
from .dtypes import dtype_of

NARROW = {"bf16", "f8E4M3FN", "f8E5M2"}
"""Element types that numpy lacks, and the bindings therefore don't hand out."""


def constant_tensor(attribute: ir.Attribute) -> torch.Tensor:
    """A dense attribute as a new tensor on the CPU."""
    shaped = ir.ShapedType(attribute.type)
    dtype, shape = dtype_of(shaped.element_type), list(shaped.shape)
    if str(shaped.element_type) in NARROW:
        return _from_text(str(attribute), dtype, shape)
    return torch.from_numpy(np.array(attribute)).to(dtype).reshape(shape).clone()


def _from_text(text: str, dtype: torch.dtype, shape: list[int]) -> torch.Tensor:
    """MLIR prints many elements as one string of bytes, few as numbers; one stands for all if it is alone."""
    body = text[text.index("<") + 1 : text.rindex("> :")]
    if body.startswith('"0x'):
        raw = torch.frombuffer(bytearray.fromhex(body[3:-1]), dtype=dtype)
    else:
        raw = torch.stack([_element(token, dtype) for token in re.findall(r"[-+.\w]+", body)] or [torch.empty(0)])
    return (raw.expand(shape) if raw.numel() == 1 else raw.reshape(shape)).clone()


def _element(token: str, dtype: torch.dtype) -> torch.Tensor:
    if not token.startswith("0x"):
        return torch.tensor(float(token), dtype=dtype)
    return torch.frombuffer(bytearray(bytes.fromhex(token[2:]))[::-1], dtype=dtype)[0]
