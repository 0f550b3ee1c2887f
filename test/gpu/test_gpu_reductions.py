"""Reductions of columns, of everything, and of rows and columns at once, at full size on the GPU against f64."""

from __future__ import annotations

import pytest
import torch
from mlir_fusion.driver.cached_stages import forget_stages
from mlir_fusion.passes.schedules import Choice, Problem, row_and_column
from mlir_fusion.targets.target import Target
from programs import Program
from test_programs import compare, flatten
from test_split_reductions import layer_norm_backward

import mlir_fusion

BF16, F32 = torch.bfloat16, torch.float32
SHAPES = [(65536, 2048), (262144, 512), (50257, 4095), (1, 4096), (100003, 1), (3, 50257), (4095, 33), (16, 2**20)]
NORMS = [(32768, 4096), (8, 1024, 768), (4095, 257), (9000, 8192), (64, 50257), (9, 64)]


def rand(*shape: int, dtype: torch.dtype = F32) -> torch.Tensor:
    return torch.randn(shape, device="cuda").to(dtype)


def check(function, inputs: list[torch.Tensor], tolerance: float = 0.0) -> None:
    """As near to f64 as eager has to be, and the same bits again."""
    torch._dynamo.reset()
    compiled = mlir_fusion.compile(function, fusion_type="dataflow")
    found = compiled(*inputs)
    compare(Program("", function, list, tolerance), inputs, found)
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


def test_middle_sum() -> None:
    """Rows of an odd width, read several as one; and one row, of which nothing is summed."""
    torch.manual_seed(0)
    check(lambda x: x.sum(1), [rand(64, 1000, 513, dtype=BF16)])
    check(lambda x: x.sum((0, 2)), [rand(32, 64, 128, 257, dtype=BF16)])
    check(lambda x: x.sum(0), [rand(1, 2**24 + 8)])


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


@pytest.mark.parametrize("dtype", [F32, BF16], ids=str)
def test_wide_layer_norm_backward(dtype: torch.dtype) -> None:
    """Rows that clusters share, on their way to shared memory."""
    test_layer_norm_backward((512, 16384), dtype)
    test_layer_norm_backward((2, 200, 32768), dtype)


def batch_norm(x: torch.Tensor, w: torch.Tensor, b: torch.Tensor) -> torch.Tensor:
    mean, variance = x.mean((0, 2, 3), keepdim=True), x.var((0, 2, 3), keepdim=True, unbiased=False)
    return torch.relu((x - mean) * torch.rsqrt(variance + 1e-5) * w.view(1, -1, 1, 1) + b.view(1, -1, 1, 1))


@pytest.mark.parametrize("shape", [(128, 37, 56, 56), (100, 20, 60, 49), (16, 3, 30, 31)], ids=str)
def test_batch_norm(shape: tuple[int, ...]) -> None:
    """Channels that clusters take in turn, and smaller ones."""
    torch.manual_seed(0)
    check(batch_norm, [rand(*shape), rand(shape[1]), rand(shape[1])], 1e-5)


def test_shared_memory_beside_what_the_kernel_has_by_itself(monkeypatch: pytest.MonkeyPatch) -> None:
    """48 KiB that the launch asks for, and a little more: together they need an opt-in."""
    choose = row_and_column._gpu_choice

    def chosen(problem: Problem, target: Target) -> Choice:
        return Choice(choose(problem, target).parameters | {"unroll": 1, "ahead": 1, "stages": 3}, "")

    monkeypatch.setattr(row_and_column, "_gpu_choice", chosen)
    forget_stages()
    test_layer_norm_backward((1024, 4096), BF16)
    forget_stages()
