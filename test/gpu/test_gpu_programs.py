"""The programs of test/python/programs.py, and full-size ones, on the GPU against f64."""

from __future__ import annotations

import pytest
import torch
import torch.nn.functional as F
from programs import PROGRAMS, Program
from test_programs import compare

import mlir_fusion


@pytest.mark.parametrize("fusion_type", ["none", "consecutive", "dataflow"])
@pytest.mark.parametrize("program", PROGRAMS, ids=str)
def test_program(program: Program, fusion_type: str) -> None:
    torch._dynamo.reset()
    torch.manual_seed(0)
    inputs = [tensor.cuda() if tensor.is_contiguous() else _to_gpu(tensor) for tensor in program.make()]
    compiled = mlir_fusion.compile(program.function, fusion_type=fusion_type)
    compare(program, inputs, compiled(*inputs))


def _to_gpu(tensor: torch.Tensor) -> torch.Tensor:
    """A copy on the GPU that lies as the original does."""
    storage = torch.empty(tensor.untyped_storage().size() // tensor.element_size(), dtype=tensor.dtype, device="cuda")
    storage.copy_(tensor.as_strided(storage.shape, (1,), 0))
    return storage.as_strided(tensor.shape, tensor.stride(), tensor.storage_offset())


def relative_error(found: torch.Tensor, expected: torch.Tensor) -> float:
    return ((found.double() - expected).norm() / expected.norm()).item()


SIZES = [(1, 1), (1, 4095), (3, 50257), (7, 65536), (2, 262144), (4096, 1), (33, 257), (1025, 768), (300, 32768)]
SIZES += [(500, 65536), (100, 262144), (300, 50257), (500, 49999)]  # more rows than run at once


@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16, torch.float16, torch.float64], ids=str)
@pytest.mark.parametrize("rows,columns", SIZES)
def test_softmax_sizes(rows: int, columns: int, dtype: torch.dtype) -> None:
    torch._dynamo.reset()
    x = torch.randn(rows, columns, device="cuda").to(dtype)
    found = mlir_fusion.compile(lambda x: torch.softmax(x, -1))(x)
    limit = {torch.float64: 1e-14, torch.float32: 2e-6}.get(dtype, 1e-2)
    assert relative_error(found, torch.softmax(x.double(), -1)) < limit


@pytest.mark.parametrize("dtype,limit", [(torch.float32, 2e-6), (torch.bfloat16, 1e-2)], ids=str)
def test_full_size(dtype: torch.dtype, limit: float) -> None:
    """The two kernels that the first speed goals are about, at their size."""
    torch._dynamo.reset()
    x = torch.randn(32768, 4096, device="cuda").to(dtype)
    assert relative_error(mlir_fusion.compile(lambda x: torch.softmax(x, -1))(x), torch.softmax(x.double(), -1)) < limit
    x, b = torch.randn(16384, 8192, device="cuda").to(dtype), torch.randn(8192, device="cuda").to(dtype)
    found = mlir_fusion.compile(lambda x, b: F.gelu(x + b, approximate="tanh"))(x, b)
    assert relative_error(found, F.gelu((x + b).double(), approximate="tanh")) < limit


@pytest.mark.parametrize("fusion_type", ["none", "consecutive"])
def test_pointwise_results_are_bit_equal(fusion_type: str) -> None:
    """Rounding is the op's, not the kernel's: fusion changes no bit of a pointwise result."""

    def function(x: torch.Tensor, y: torch.Tensor) -> torch.Tensor:
        return F.gelu(x * y + x, approximate="tanh") * torch.sigmoid(y) - torch.exp(x) / (y * y + 1)

    for dtype in (torch.float32, torch.bfloat16, torch.float16):
        torch._dynamo.reset()
        x, y = (torch.randn(1000, 333, device="cuda").to(dtype) for _ in range(2))
        one = mlir_fusion.compile(function, fusion_type=fusion_type)(x, y)
        torch._dynamo.reset()
        other = mlir_fusion.compile(function, fusion_type="dataflow")(x, y)
        assert torch.equal(one, other)


def test_training_step() -> None:
    """A layer with attention, forward and backward, beside eager."""
    torch.manual_seed(0)
    layer = torch.nn.TransformerEncoderLayer(64, 4, 128, dropout=0.0, batch_first=True, device="cuda")
    x = torch.randn(3, 17, 64, device="cuda")
    layer(x).square().mean().backward()
    expected = [parameter.grad.clone() for parameter in layer.parameters()]
    layer.zero_grad()
    torch._dynamo.reset()
    torch.compile(layer, backend="mlir_fusion")(x).square().mean().backward()
    for parameter, gradient in zip(layer.parameters(), expected, strict=True):
        torch.testing.assert_close(parameter.grad, gradient, rtol=1e-4, atol=1e-6)
