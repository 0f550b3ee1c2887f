"""PyTorch's semantics beyond values: what aliases what, what is mutated, what a call returns and leaves behind."""

from __future__ import annotations

from collections.abc import Callable

import pytest
import torch
from torch import Tensor

import mlir_fusion


def compiled_by_us(function: Callable) -> Callable:
    return mlir_fusion.compile(function, target="cpu")


def compiled_by_dynamo(function: Callable) -> Callable:
    return torch.compile(function, backend="mlir_fusion")


@pytest.fixture(params=[compiled_by_us, compiled_by_dynamo], ids=["compile", "torch.compile"])
def compiled(request) -> Callable[[Callable], Callable]:
    torch._dynamo.reset()
    torch.manual_seed(0)
    return request.param


def shares(one: Tensor, other: Tensor) -> bool:
    return one.untyped_storage().data_ptr() == other.untyped_storage().data_ptr()


COPIES = {
    "clone": lambda x: (x.clone(), x.clone()),
    "contiguous": lambda x: (x.contiguous(), x.contiguous()),
    "to_channels_last": lambda x: (x.contiguous(memory_format=torch.channels_last), x),
    "clone_of_view": lambda x: (x.permute(0, 2, 3, 1).clone(), x[0]),
    "library": lambda x: ((y := x.sort(1).values), y.clone(), y.contiguous(), y[0]),
    "computed": lambda x: ((y := x.sin()), y.clone(), y.permute(0, 2, 3, 1).clone()),
}


@pytest.mark.parametrize("function", COPIES.values(), ids=COPIES)
@pytest.mark.parametrize("channels_last", [False, True])
def test_what_is_copied_is_new_memory_and_what_is_viewed_is_not(compiled, function, channels_last):
    x = torch.randn(3, 4, 6, 5)
    if channels_last:
        x = x.to(memory_format=torch.channels_last)
    eager, found = (x, *function(x)), (x, *compiled(function)(x))
    assert [one.stride() for one in found] == [one.stride() for one in eager]
    for one, other in zip(found, eager, strict=True):
        torch.testing.assert_close(one, other)
    for number, one in enumerate(eager):
        for other, tensor in enumerate(eager[:number]):
            assert shares(found[number], found[other]) == shares(one, tensor), (number, other)
