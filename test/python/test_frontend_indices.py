"""Reads at indices that a program computes: what eager PyTorch refuses is an IndexError, never another element."""

from __future__ import annotations

from collections.abc import Callable

import pytest
import torch
import torch.nn.functional as F
from torch import Tensor

import mlir_fusion

READS: dict[str, Callable[[Tensor, Tensor], Tensor]] = {
    "index_select": lambda x, i: x.index_select(1, i),
    "index": lambda x, i: x[:, i] + 1,
    "index_two": lambda x, i: x[i, i % 3],
    "embedding": lambda x, i: F.embedding(i, x),
    "gather": lambda x, i: x.gather(1, i.long()[None]),
}
INDICES = (0, 3, 4, 5, 7, -1, -4, -5, -6, 100_000_000, -(2**31), 2**32 + 1, -(2**32) + 1)


def outcome(function: Callable[[Tensor, Tensor], Tensor], x: Tensor, i: Tensor) -> Tensor | None:
    """The result, or None where the index is refused."""
    try:
        return function(x, i)
    except (IndexError, RuntimeError) as error:
        assert "ind" in str(error).lower()
        return None


@pytest.mark.parametrize("dtype", [torch.int64, torch.int32], ids=str)
@pytest.mark.parametrize("read", READS)
def test_read(read: str, dtype: torch.dtype) -> None:
    torch._dynamo.reset()
    torch.manual_seed(0)
    x = torch.randn(4, 5)
    compiled = mlir_fusion.compile(READS[read])
    for index in INDICES:
        if not torch.iinfo(dtype).min <= index <= torch.iinfo(dtype).max:
            continue
        i = torch.tensor([1, index, 0], dtype=dtype)
        expected, found = outcome(READS[read], x, i), outcome(compiled, x, i)
        assert (found is None) == (expected is None), index
        assert found is None or (expected is not None and torch.equal(found, expected)), index


def test_read_of_a_transposed_tensor_in_one_kernel_with_its_users() -> None:
    """Fused, and with neighbours computed as a vector, every element is checked."""
    torch._dynamo.reset()
    torch.manual_seed(0)
    x, i = torch.randn(64, 40).t(), torch.arange(64).roll(5)

    def read(x: Tensor, i: Tensor) -> Tensor:
        return (x * 2).index_select(1, i).exp() + x[:, -i]

    compiled = mlir_fusion.compile(read, fusion_type="dataflow")
    torch.testing.assert_close(compiled(x, i), read(x, i))
    i[63] = 64
    with pytest.raises(IndexError):
        compiled(x, i)
