"""Results of decompositions lie in memory as eager PyTorch's do.

A decomposition of pointwise operations keeps its input's order of dimensions, where the operation itself may not:
layer norm of a transposed tensor is row-major. A caller can see that (`y.stride()`, `y.view(...)`), and so can
the autograd formulas that PyTorch applies to the result. What the operation itself would return is known without
computing it: PyTorch's fake tensors carry strides.
"""

from __future__ import annotations

import functools
from collections.abc import Callable, Iterator, Sequence

import torch
from torch import Tensor
from torch.fx.experimental.proxy_tensor import disable_proxy_modes_tracing


def keeping_strides(overload: torch._ops.OperatorBase, decomposition: Callable) -> Callable:
    """The decomposition, its results copied where they would lie differently from those of `overload`."""

    @functools.wraps(decomposition)
    def decompose(*args: object, **kwargs: object) -> object:
        result = decomposition(*args, **kwargs)
        if result is NotImplemented or all(map(_is_row_major, _tensors((args, kwargs, result)))):
            return result
        with disable_proxy_modes_tracing():
            expected = overload(*args, **kwargs)
        return _like(result, expected)

    return decompose


def _tensors(value: object) -> Iterator[Tensor]:
    if isinstance(value, Tensor):
        yield value
    elif isinstance(value, dict):
        yield from _tensors(tuple(value.values()))
    elif isinstance(value, list | tuple):
        for element in value:
            yield from _tensors(element)


def _is_row_major(tensor: Tensor) -> bool:
    return tensor.is_contiguous()


def _like(result: object, expected: object) -> object:
    if isinstance(result, list | tuple):
        return type(result)(_like(one, other) for one, other in zip(result, expected, strict=True))  # pyright: ignore
    if not isinstance(result, Tensor) or not isinstance(expected, Tensor):
        return result
    if _strides(result) == _strides(expected):
        return result
    return _in_order(result, sorted(range(result.dim()), key=lambda axis: (-expected.stride(axis), axis)))


def _strides(tensor: Tensor) -> list[int]:
    """Of dimensions that have more than one element: those of the others say nothing."""
    return [stride for size, stride in zip(tensor.shape, tensor.stride(), strict=True) if size != 1]


def _in_order(tensor: Tensor, order: Sequence[int]) -> Tensor:
    """A copy whose dimensions lie in memory in this order, the outermost first."""
    back = sorted(range(len(order)), key=order.__getitem__)
    return tensor.permute(*order).contiguous().permute(*back)
