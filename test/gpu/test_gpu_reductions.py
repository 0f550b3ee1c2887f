"""Reductions of columns, of everything, and of rows and columns at once, at full size on the GPU against f64."""

from __future__ import annotations

import pytest
import torch
from programs import Program
from test_programs import compare, flatten
from test_split_reductions import layer_norm_backward

import mlir_fusion

BF16, F32 = torch.bfloat16, torch.float32
SHAPES = [(65536, 2048), (262144, 512), (50257, 4095), (1, 4096), (100003, 1), (3, 50257), (4095, 33), (16, 2**20)]
NORMS = [(32768, 4096), (8, 1024, 768), (4095, 257), (9000, 8192), (64, 50257), (9, 64)]


def rand(*shape: int, dtype: torch.dtype = F32) -> torch.Tensor:
    return torch.randn(shape, device="cuda").to(dtype)


def check(function, inputs: list[torch.Tensor]) -> None:
    """As near to f64 as eager has to be, and the same bits again."""
    torch._dynamo.reset()
    compiled = mlir_fusion.compile(function, fusion_type="dataflow")
    found = compiled(*inputs)
    compare(Program("", function, list), inputs, found)
    again = compiled(*inputs)
    for one, other in zip(flatten(found), flatten(again), strict=True):
        assert torch.equal(one, other)


@pytest.mark.parametrize("dtype", [F32, BF16], ids=str)
@pytest.mark.parametrize("shape", SHAPES, ids=str)
def test_column_sum(shape: tuple[int, int], dtype: torch.dtype) -> None:
    torch.manual_seed(0)
    check(lambda x: x.sum(0), [rand(*shape, dtype=dtype)])


@pytest.mark.parametrize("shape", [(2**26 + 1,), (4095, 50257), (7, 33, 1025, 65), (1,)], ids=str)
def test_full_sum(shape: tuple[int, ...]) -> None:
    torch.manual_seed(0)
    check(lambda x: (x * x).sum(), [rand(*shape)])


@pytest.mark.parametrize("shape", [(64, 3, 224, 224), (128, 256, 56, 56), (2, 5, 7, 11)], ids=str)
def test_channel_sums(shape: tuple[int, ...]) -> None:
    torch.manual_seed(0)
    check(lambda x: x.sum((0, 2, 3)), [rand(*shape)])


@pytest.mark.parametrize("dtype", [F32, BF16], ids=str)
@pytest.mark.parametrize("shape", NORMS, ids=str)
def test_layer_norm_backward(shape: tuple[int, ...], dtype: torch.dtype) -> None:
    torch.manual_seed(0)
    rows = (*shape[:-1], 1)
    wide = [rand(*shape, dtype=dtype) for _ in range(2)]
    check(layer_norm_backward, [*wide, rand(shape[-1], dtype=dtype), rand(*rows), rand(*rows)])
