"""Programs that test_fuzz.py or `make fuzz` found, shrunk, each wrong when it was found."""

from __future__ import annotations

import pytest
import torch
from fuzz_check import check
from fuzz_programs import Input, Program, Step

import mlir_fusion

FOUND = {
    # The number was rounded to f32
    "rsub_f64": Program((Input((7,), "float64"),), (Step("rsub_scalar", (0,), (0.1,)),), (1,)),
    # The result had the shape of the operand, not of the condition
    "where_of_the_same": Program((Input((), "float32"), Input((1,), "float32")), (Step("where", (1, 0, 0)),), (2,)),
    # A copy of an argument that isn't contiguous, written in part
    "write_slice_of_transposed": Program(
        (Input((2, 5), "float32", "transposed"),), (Step("write_slice", (0, 0), (0, 0, 1, 1)),), (1,)
    ),
}


@pytest.mark.parametrize("name", FOUND)
def test_found(name: str) -> None:
    check(FOUND[name], [("simt", "dataflow"), ("cpu", "none")])


@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16, torch.float16, torch.int64], ids=str)
def test_fmod_is_exact(dtype: torch.dtype) -> None:
    """It was x - trunc(x / y) * y, off by 34 in bf16, and with a number it was an internal error."""
    torch._dynamo.reset()
    x, y = (torch.randn(200) * 5000).to(dtype), (torch.randn(200).abs() * 3 + 1).to(dtype)
    fast = mlir_fusion.compile(lambda x, y: (x.fmod(y), x.fmod(3)), target="cpu")
    assert all(torch.equal(one, other) for one, other in zip(fast(x, y), (x.fmod(y), x.fmod(3)), strict=True))
