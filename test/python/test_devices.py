"""Tensors of one program on several devices; the meta device stands for a second one."""

from __future__ import annotations

import pytest
import torch
from torch import Tensor

import mlir_fusion


@pytest.fixture(autouse=True)
def _fresh():
    torch._dynamo.reset()


def test_an_operation_on_another_device_is_the_librarys():
    x, elsewhere = torch.randn(5, 7), torch.randn(5, 7, device="meta")
    here, there = mlir_fusion.compile(lambda x, y: (x.sin() * 2, y.sin() * 2))(x, elsewhere)
    assert there.device.type == "meta"
    torch.testing.assert_close(here, x.sin() * 2)


def test_a_move_goes_where_it_says():
    here, there = mlir_fusion.compile(lambda x: (x + 1, (x * 2).to("meta") + 1))(torch.zeros(3))
    assert there.device.type == "meta" and there.shape == (3,)
    assert here.tolist() == [1, 1, 1]


def test_a_new_tensor_is_made_where_it_says():
    def make(x: Tensor) -> tuple[Tensor, Tensor]:
        return x + torch.ones(4), torch.ones(4, device="meta")

    here, there = mlir_fusion.compile(make)(torch.arange(4.0))
    assert there.device.type == "meta"
    assert here.tolist() == [1, 2, 3, 4]


def test_explain_says_why():
    printed = str(mlir_fusion.explain(lambda x, y: (x.sin(), y.sin()), torch.zeros(2), torch.zeros(2, device="meta")))
    assert "has a tensor on meta, and the program is for cpu" in printed.replace("\n", " ")
