"""Tensors that MLIR's types can't describe, operands that PyTorch refuses, and numbers that a dtype doesn't hold."""

from __future__ import annotations

from collections.abc import Callable

import pytest
import torch
import torch.nn.functional as F
from torch import Tensor

import mlir_fusion

UNUSUAL = {
    "uint16": lambda: torch.tensor([1, 65535], dtype=torch.uint16),
    "uint32": lambda: torch.tensor([1, 2**32 - 1], dtype=torch.uint32),
    "uint64": lambda: torch.tensor([1, 2**63], dtype=torch.uint64),
    "complex32": lambda: torch.randn(3).to(torch.complex32),
    "float8_e8m0fnu": lambda: torch.ones(3).to(torch.float8_e8m0fnu),
    "float8_e4m3fnuz": lambda: torch.randn(3).to(torch.float8_e4m3fnuz),
    "sparse": lambda: torch.eye(3).to_sparse(),
}


@pytest.mark.parametrize("make", UNUSUAL.values(), ids=UNUSUAL)
def test_unusual_tensors_are_left_to_pytorch(make: Callable[[], Tensor]) -> None:
    torch._dynamo.reset()
    torch.manual_seed(0)
    x, y = make(), torch.randn(5)

    def program(x: Tensor, y: Tensor) -> tuple[Tensor, Tensor]:
        return x.clone(), y * 2 + 1

    (copied, computed), (expected, _) = mlir_fusion.compile(program)(x, y), program(x, y)
    assert copied.dtype == x.dtype and copied.layout == x.layout
    assert torch.equal(copied.to_dense().to(torch.complex64), expected.to_dense().to(torch.complex64))
    assert torch.equal(computed, y * 2 + 1)


REFUSED: dict[str, Callable[[], tuple[Callable, Tensor]]] = {
    "relu of bool": lambda: (torch.relu, torch.tensor([True, False])),
    "1 - bool": lambda: (lambda x: 1 - x, torch.tensor([True, False])),
    "number too large": lambda: (lambda x: x.clamp(1e6, float("inf")), torch.randn(3).half()),
    "division by 0": lambda: (lambda x: x % (x - x), torch.arange(1, 4)),
    "rounded division by 0": lambda: (lambda x: torch.div(x, x - x, rounding_mode="trunc"), torch.arange(1, 4)),
}


@pytest.mark.parametrize("make", REFUSED.values(), ids=REFUSED)
def test_what_eager_refuses_is_refused(make: Callable[[], tuple[Callable, Tensor]]) -> None:
    torch._dynamo.reset()
    function, x = make()
    with pytest.raises(RuntimeError):
        function(x)
    with pytest.raises(RuntimeError):
        mlir_fusion.compile(function)(x)


@pytest.mark.parametrize("dtype", [torch.float16, torch.bfloat16, torch.float32], ids=str)
def test_a_number_is_compared_in_the_tensors_dtype(dtype: torch.dtype) -> None:
    torch._dynamo.reset()
    x = torch.tensor([0.1, 0.2, -0.1, 0.0], dtype=dtype)

    def program(x: Tensor) -> tuple[Tensor, ...]:
        return x == 0.1, x < 0.1, x >= 0.1, F.threshold(x, 0.1, 7.0), torch.where(x > 0.1, x, 0.1), x != 0.2

    for found, expected in zip(mlir_fusion.compile(program)(x), program(x), strict=True):
        assert torch.equal(found, expected)


def test_large_integers_keep_their_digits() -> None:
    torch._dynamo.reset()
    x = torch.tensor([2**62 + 1, -(2**53) - 1, 7, -(2**63) + 1])

    def program(x: Tensor) -> tuple[Tensor, ...]:
        return -x, x.abs(), x - 1, 3 - x, x * 3, torch.div(x, -3, rounding_mode="floor"), x % -3, x.sign(), x == 7

    for found, expected in zip(mlir_fusion.compile(program)(x), program(x), strict=True):
        assert torch.equal(found, expected)
