"""Programs compiled for the CPU target under each fusion type, against eager PyTorch in f64."""

from __future__ import annotations

import pytest
import torch
from programs import NARROW, PROGRAMS, TOLERANCES, Program

import mlir_fusion


def flatten(result: object) -> list[torch.Tensor]:
    if isinstance(result, torch.Tensor):
        return [result]
    return [tensor for part in result for tensor in flatten(part)]  # pyright: ignore


def in_f64(tensor: torch.Tensor) -> torch.Tensor:
    return tensor.double() if tensor.is_floating_point() else tensor


def compare(program: Program, inputs: list[torch.Tensor], found: object) -> None:
    """Same shapes, dtypes and strides as eager, and each element as near to f64 as the dtype allows.

    The error is relative to the element, or, where terms cancelled, to a typical one; or else it is at most twice
    the worst of eager PyTorch's, where that computes in the same precision (in 16 bits it rounds between operations).
    """
    eager = flatten(program.function(*inputs))
    exact = flatten(program.function(*map(in_f64, inputs)))
    for one, like, reference in zip(flatten(found), eager, exact, strict=True):
        assert (one.shape, one.dtype) == (like.shape, like.dtype)
        assert one.stride() == like.stride() or not like.numel()
        if not like.is_floating_point():
            assert torch.equal(one, like)
            continue
        assert torch.equal(one.isnan(), reference.isnan())
        finite = reference[reference.isfinite()]
        typical = finite.abs().mean().item() if finite.numel() else 0.0
        limit = max(program.tolerance, TOLERANCES[like.dtype]) if like.dtype != torch.float64 else 1e-12
        slack = max(limit * typical, 0.0 if like.dtype in NARROW else 2 * _worst(like, reference))
        torch.testing.assert_close(one.double(), reference, rtol=limit, atol=slack, equal_nan=True)


def _worst(found: torch.Tensor, reference: torch.Tensor) -> float:
    """The largest error that is finite."""
    errors = (found.double() - reference).abs()
    finite = errors[errors.isfinite()]
    return finite.max().item() if finite.numel() else 0.0


@pytest.mark.parametrize("fusion_type", ["none", "consecutive", "dataflow"])
@pytest.mark.parametrize("program", PROGRAMS, ids=str)
def test_program(program: Program, fusion_type: str) -> None:
    torch._dynamo.reset()
    torch.manual_seed(0)
    inputs = list(program.make())
    compiled = mlir_fusion.compile(program.function, fusion_type=fusion_type, target="cpu")
    compare(program, inputs, compiled(*inputs))


def test_quotients_by_what_rows_share() -> None:
    """One reciprocal a row, for divisors of every size: subnormal, huge, infinite, 0, none."""
    torch._dynamo.reset()
    torch.manual_seed(0)
    numbers = torch.tensor([0.0, 2.0**-133, 1e-38, 1.0, 3e38, torch.inf, torch.nan])
    x = torch.cat((torch.randn(64), torch.randn(64) * 1e-38, torch.randn(64) * 1e38, numbers)).bfloat16()
    s = torch.cat((torch.randn(30) * 1e38, torch.randn(30) * 1e-39, numbers, -numbers, torch.randn(30))).bfloat16()
    compiled = mlir_fusion.compile(lambda x, s: x / s, target="cpu")
    rows, divisors = x.expand(len(s), -1).contiguous(), s[:, None].contiguous()
    found, expected = compiled(rows, divisors), rows / divisors
    torch.testing.assert_close(found, expected, rtol=2.0**-7, atol=2.0**-133, equal_nan=True)
