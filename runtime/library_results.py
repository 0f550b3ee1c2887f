"""What a library call hands back, made what the host program was compiled for.

Kernels read results through the strides of their memref types, and buffers are reused by lifetime. So each
result is looked at: shape and dtype have to be right (an error otherwise: the compiler was wrong about the
operator), while one that lies differently, is not aligned for wide accesses, or shares memory with an operand
(`contiguous` may return its input) or an earlier result is copied.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import torch

from .arguments import ALIGNMENT, same_layout


@dataclass(frozen=True, slots=True)
class Expected:
    """What a result must be; no shape for a number."""

    shape: tuple[int, ...] | None
    strides: tuple[int, ...]
    dtype: torch.dtype | None
    used: bool


def settle(name: str, returned: object, operands: Sequence[object], outputs: Sequence[Expected | None]) -> list[object]:
    """What a call returned, but for results that are operands."""
    results = returned if isinstance(returned, tuple | list) else (returned,)
    if len(outputs) != len(results) and outputs:
        raise RuntimeError(f"{name} returned {len(results)} results, expected {len(outputs)}")
    taken, found = list(operands), list[object]()
    for number, expected in enumerate(outputs):
        if expected is None:
            continue
        value = results[number]
        if isinstance(value, torch.Tensor) and expected.shape is not None:
            found.append(_settle_tensor(name, value, taken, expected))
            taken.append(found[-1])
        elif expected.shape is None or not expected.used:
            found.append(value)
        else:
            raise RuntimeError(f"{name}: expected a tensor as result {number}, got {type(value).__name__}")
    return found


def _settle_tensor(name: str, value: torch.Tensor, operands: Sequence[object], expected: Expected) -> torch.Tensor:
    if value.shape != expected.shape:
        raise RuntimeError(f"{name}: expected shape {expected.shape}, got {tuple(value.shape)}")
    dtype = expected.dtype
    if value.dtype is not dtype and (dtype is None or max(value.dtype.itemsize, dtype.itemsize) > 1):
        raise RuntimeError(f"{name}: expected dtype {dtype}, got {value.dtype}")
    right = (
        (value.stride() == expected.strides or same_layout(value.shape, value.stride(), expected.strides))
        and not value.data_ptr() % ALIGNMENT
        and not _shares_memory(value, operands)
    )
    if right:
        return value
    return _copy(value, expected.strides)


def _copy(value: torch.Tensor, strides: tuple[int, ...]) -> torch.Tensor:
    """A copy with these strides; where one is 0, all elements along it are one, which is copied once."""
    kept = tuple(min(extent, 1) if stride == 0 else extent for extent, stride in zip(value.shape, strides, strict=True))
    first = value[tuple(slice(extent) for extent in kept)]
    fresh = torch.empty_strided(kept, strides, dtype=value.dtype, device=value.device).copy_(first)
    return fresh.as_strided(value.shape, strides)


def _shares_memory(value: torch.Tensor, operands: Sequence[object]) -> bool:
    memory = value.untyped_storage().data_ptr()
    return memory != 0 and any(
        isinstance(operand, torch.Tensor) and operand.untyped_storage().data_ptr() == memory for operand in operands
    )
