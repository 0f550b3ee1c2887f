"""Checks of what a compiled program is called with.

The errors are of the kinds that PyTorch raises: RuntimeError for a tensor that doesn't fit, TypeError for what is none.
The compiled code trusts shapes, dtypes and strides, so every call compares them first, natively (host_helpers.py). An
argument that does not fit is looked at here: an error names it, what was expected and what came, and a tensor that only
lies differently in memory is copied.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import ClassVar

import torch

ALIGNMENT = 16
"""Bytes: the widest access of a kernel. PyTorch's own allocations are aligned to more."""


@dataclass(frozen=True, slots=True)
class TensorArgument:
    """What one tensor argument must be; a negative extent or stride stands for any.

    One that only the library reads may be on any device (the library knows which it takes).
    """

    name: str
    shape: tuple[int, ...]
    strides: tuple[int, ...]
    dtype: torch.dtype
    is_anywhere: bool = False
    offset_bytes: int = 0
    """How far the first element is from the address that kernels are handed."""

    def admit(self, value: object, device: torch.device) -> torch.Tensor:
        """The value, or a copy that lies in memory as expected; raises where it is not the right tensor."""
        if not isinstance(value, torch.Tensor):
            raise TypeError(f"{self.name}: expected a tensor, got {type(value).__name__}")
        if value.dtype is not self.dtype:
            raise RuntimeError(f"{self.name}: expected dtype {self.dtype}, got {value.dtype}")
        if not self._accepts_shape(value.shape):
            raise RuntimeError(f"{self.name}: expected shape {_text(self.shape)}, got {_text(value.shape)}")
        if not self.is_anywhere and value.device != device:
            raise RuntimeError(f"{self.name}: expected device {device}, got {value.device}")
        strides = self._strides_for(value.shape)
        if not value.data_ptr() % ALIGNMENT and same_layout(value.shape, value.stride(), strides):
            return value
        return torch.empty_strided(value.shape, strides, dtype=self.dtype, device=value.device).copy_(value.detach())

    def _accepts_shape(self, shape: Sequence[int]) -> bool:
        return len(shape) == len(self.shape) and all(
            expected in (extent, -1) for extent, expected in zip(shape, self.shape, strict=True)
        )

    def _strides_for(self, shape: Sequence[int]) -> tuple[int, ...]:
        return self.strides if min(self.strides, default=0) >= 0 else row_major_strides(shape)


@dataclass(frozen=True, slots=True)
class ScalarArgument:
    """An argument that is a number."""

    name: str
    type: str
    """MLIR's: "index", "f32", ..."""
    is_anywhere: ClassVar[bool] = False

    @property
    def is_real(self) -> bool:
        """Whether it has a floating-point type."""
        return self.type.startswith("f")

    def admit(self, value: object, device: torch.device) -> int | float:
        """The number; TypeError for what is none."""
        if not isinstance(value, int | float if self.is_real else int):
            raise TypeError(f"{self.name}: expected a number of type {self.type}, got {type(value).__name__}")
        return value


def row_major_strides(shape: Sequence[int]) -> tuple[int, ...]:
    """Strides of a contiguous tensor, as PyTorch counts them."""
    strides = [1] * len(shape)
    for axis in range(len(shape) - 2, -1, -1):
        strides[axis] = strides[axis + 1] * max(shape[axis + 1], 1)
    return tuple(strides)


def same_layout(shape: Sequence[int], strides: Sequence[int], expected: Sequence[int]) -> bool:
    """Whether two layouts put every element at the same place: strides of extents up to 1 don't matter."""
    if 0 in shape:
        return True
    return all(one == other for extent, one, other in zip(shape, strides, expected, strict=True) if extent > 1)


def _text(shape: Sequence[int]) -> str:
    return "(" + ", ".join("any" if extent < 0 else str(extent) for extent in shape) + ")"
