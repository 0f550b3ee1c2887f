"""Operands and numbers of different dtypes, brought to the one that PyTorch computes in.

torch-mlir takes operands of any dtypes, but not as PyTorch does: it crashes on some, widens others, and compares with a
number in f64 where PyTorch rounds the number to the tensor's dtype. So these conversions are made operations of their
own, before import. A number that the dtype doesn't hold is left alone: PyTorch refuses it, or it is the library's.
"""

from __future__ import annotations

import functools
from collections.abc import Callable, Sequence

import torch
from torch._ops import OpOverload

from .compiled_ops import SIGNED, holds

aten = torch.ops.aten
Tensor = torch.Tensor
Number = float | int | bool

NARROW = (torch.float16, torch.bfloat16)
_ROUNDED = ("add", "sub", "rsub", "mul", "div")


def promoted(overload: OpOverload, x: Tensor, y: Tensor | Number, alpha: Number = 1) -> Tensor:
    """The operation on operands of one dtype; NotImplemented where they are of that dtype already."""
    if "sub" in overload._opname and torch.bool in (x.dtype, getattr(y, "dtype", None)):
        return NotImplemented  # it is refused
    return _with_dtype(overload, torch.result_type(x, y), x, y, {} if alpha == 1 else {"alpha": alpha})


def _divided(overload: OpOverload, x: Tensor, y: Tensor | Number) -> Tensor:
    """Division, where integers become floating-point numbers."""
    dtype = torch.result_type(x, y)
    kept = dtype.is_floating_point or dtype.is_complex
    return _with_dtype(overload, dtype if kept else torch.get_default_dtype(), x, y, {})


def _with_dtype(
    overload: OpOverload, dtype: torch.dtype, x: Tensor, y: Tensor | Number, options: dict[str, Number]
) -> Tensor:
    if not isinstance(y, Tensor):
        return _with_number(overload, dtype, x, y, options)
    if x.dtype == y.dtype == dtype:
        return NotImplemented
    if dtype in NARROW and overload._opname in _ROUNDED and x.is_floating_point() and y.is_floating_point():
        # A 0-d operand of another dtype is not rounded to 16 bits before it is used
        return overload(x.float(), y.float(), **options).to(dtype)
    return overload(x.to(dtype), y.to(dtype), **options)


def _with_number(overload: OpOverload, dtype: torch.dtype, x: Tensor, y: Number, options: dict[str, Number]) -> Tensor:
    if dtype in SIGNED and holds(dtype, y) and overload is not aten.remainder.Scalar:
        # torch-mlir crashes on some numbers of 8 bits
        on_tensors = getattr(aten, overload._opname).Tensor
        return on_tensors(x.to(dtype), torch.full((), y, dtype=dtype, device=x.device), **options)
    return NotImplemented if x.dtype == dtype else overload(x.to(dtype), y, **options)


def _compared(overload: OpOverload, x: Tensor, y: Number) -> Tensor:
    """A comparison with a number, which is rounded to the tensor's dtype first."""
    dtype = torch.result_type(x, y)
    if dtype.is_complex or not holds(dtype, y):
        return NotImplemented
    return overload(x.to(dtype), torch.full((), y, dtype=dtype, device=x.device))


def _as_bool(overload: OpOverload, x: Tensor, y: Tensor) -> Tensor:
    if x.dtype == y.dtype:
        return NotImplemented
    return overload(x.to(torch.bool), y.to(torch.bool))


def _chosen(condition: Tensor, x: Tensor | Number, y: Tensor | Number) -> Tensor:
    """For where: a number is a 0-d tensor of the dtype that both promote to."""
    dtype = torch.result_type(x, y)
    if not all(isinstance(value, Tensor) or holds(dtype, value) for value in (x, y)):
        return NotImplemented
    if isinstance(x, Tensor) and isinstance(y, Tensor) and x.dtype == y.dtype:
        return _chosen_of_shape(condition, x, y)
    one, other = (
        value.to(dtype) if isinstance(value, Tensor) else torch.full((), value, dtype=dtype, device=condition.device)
        for value in (x, y)
    )
    return aten.where.self(condition, one, other)


def _chosen_of_shape(condition: Tensor, x: Tensor, y: Tensor) -> Tensor:
    """torch-mlir takes a choice between a value and itself for the value, whatever the condition's shape."""
    shape = torch.broadcast_shapes(condition.shape, x.shape, y.shape)
    if x.shape != y.shape or x.shape == shape:
        return NotImplemented
    return aten.where.self(condition, x.expand(shape), y.expand(shape))


def _filled(x: Tensor, mask: Tensor, value: Tensor) -> Tensor:
    if value.dtype == x.dtype or not torch.can_cast(value.dtype, x.dtype):
        return NotImplemented
    return aten.masked_fill.Tensor(x, mask, value.to(x.dtype))


def _joined(overload: OpOverload, tensors: Sequence[Tensor], dim: int = 0) -> Tensor:
    """For cat and stack: one dtype, and for cat none without elements."""
    dtype = functools.reduce(torch.promote_types, (tensor.dtype for tensor in tensors))
    kept = [tensor for tensor in tensors if tensor.numel()] if overload is aten.cat.default else list(tensors)
    if not kept or (len(kept) == len(tensors) and all(tensor.dtype == dtype for tensor in tensors)):
        return NotImplemented
    return overload([tensor.to(dtype) for tensor in kept], dim)


def _table() -> dict[OpOverload, Callable[..., Tensor]]:
    """The function that stands for each overload."""
    table: dict[OpOverload, Callable[..., Tensor]] = {
        **{overload: functools.partial(promoted, overload) for overload in _PROMOTED},
        **{overload: functools.partial(_divided, overload) for overload in (aten.div.Tensor, aten.div.Scalar)},
        **{overload: functools.partial(_as_bool, overload) for overload in _LOGICAL},
        **{overload: functools.partial(_joined, overload) for overload in (aten.cat.default, aten.stack.default)},
        **{overload: _chosen for overload in _CHOICES},
        aten.masked_fill.Tensor: _filled,
    }
    for name in ("eq", "ne", "lt", "le", "gt", "ge"):
        packet = getattr(aten, name)
        table[packet.Scalar] = functools.partial(_compared, packet.Tensor)
    return table


_PROMOTED = (
    *(aten.add.Tensor, aten.add.Scalar, aten.sub.Tensor, aten.sub.Scalar, aten.rsub.Tensor, aten.rsub.Scalar),
    *(aten.mul.Tensor, aten.mul.Scalar, aten.remainder.Tensor, aten.remainder.Scalar),
    *(aten.pow.Tensor_Tensor, aten.atan2.default),
    *(aten.bitwise_and.Tensor, aten.bitwise_or.Tensor, aten.bitwise_xor.Tensor),
    *(aten.eq.Tensor, aten.ne.Tensor, aten.lt.Tensor, aten.le.Tensor, aten.gt.Tensor, aten.ge.Tensor),
)
_LOGICAL = (aten.logical_and.default, aten.logical_or.default, aten.logical_xor.default)
_CHOICES = (aten.where.self, aten.where.ScalarSelf, aten.where.ScalarOther, aten.where.Scalar)

PROMOTIONS = _table()
