"""Sums of many elements are as exact as blocked summation makes them, on the CPU target, where one thread walks all."""

from __future__ import annotations

from collections.abc import Callable

import pytest
import torch
from torch import Tensor

import mlir_fusion

LIMIT = 1e-6  # of the result; a chain of a million additions is off by ten times as much


@pytest.mark.parametrize(
    ("function", "shape"),
    [
        (lambda x: x.sum(0), (1_000_003, 3)),
        (lambda x: (x * x).sum(-1), (2, 1_000_003)),
        (lambda x: x.mean(), (997, 1009)),
        (lambda x: x.sum(0), (1_000_003, 1)),
    ],
    ids=["columns", "rows", "all", "column"],
)
def test_long_sums(function: Callable[[Tensor], Tensor], shape: tuple[int, ...]):
    torch._dynamo.reset()
    x = torch.rand(shape, generator=torch.Generator().manual_seed(0))
    found, exact = mlir_fusion.compile(function)(x), function(x.double())
    torch.testing.assert_close(found.double(), exact, rtol=LIMIT, atol=0)


def test_a_long_product_of_matrices():
    torch._dynamo.reset()
    a, b = torch.rand(2, 2**18), torch.rand(2**18, 3)
    found = mlir_fusion.compile(torch.mm, enable_options=["matmul=on"])(a, b)
    torch.testing.assert_close(found.double(), a.double() @ b.double(), rtol=LIMIT, atol=0)
