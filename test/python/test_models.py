"""Whole models: outputs, loss, gradients and buffers of a training step equal eager PyTorch's, in f32 on the CPU.

Tolerance: each number is within 2e-5 of the largest of its tensor or, for gradients, within 2e-6 of the largest of all
gradients (some are zero but for rounding errors: that of a key projection's bias, for one). A model is one graph, but
where PyTorch itself breaks it.
"""

from __future__ import annotations

import copy
import os
from collections.abc import Iterable

import pytest
import torch
from torch import Tensor, nn
from torch._dynamo.utils import counters

import mlir_fusion

pytest.importorskip("transformers")

from models import MODELS, Model, loss, outputs

RELATIVE, OF_ALL_GRADIENTS = 2e-5, 2e-6
# Dynamo doesn't trace a call of `logging`
BROKEN_BY_PYTORCH = {"gpt2": "logging.Logger"}
FUSION_TYPES = ("consecutive", "dataflow")
IS_LONG = "MLIR_FUSION_TEST_LONG" in os.environ
# The others take too long for every run: `make test-long` has them, under both fusion types
QUICK = ("llama", "bert", "resnet")
STEPS = [
    pytest.param(model, fusion_type, id=f"{model}-{fusion_type}")
    for model in MODELS
    for fusion_type in FUSION_TYPES
    if IS_LONG or (fusion_type == "dataflow" and model.name in QUICK)
]


def assert_close(found: Iterable[tuple[str, Tensor | None]], expected: Iterable[tuple[str, Tensor | None]]) -> None:
    """Equal names, shapes, dtypes; values as near as the module's docstring says."""
    found, expected = list(found), list(expected)
    sizes = [tensor.abs().max().item() for _, tensor in expected if tensor is not None and tensor.is_floating_point()]
    largest = max(sizes, default=0.0) if any(name.startswith("grad of") for name, _ in expected) else 0.0
    for (name, one), (other_name, other) in zip(found, expected, strict=True):
        assert name == other_name
        if one is None or other is None:
            assert one is other, name
            continue
        limit = RELATIVE * other.abs().max().item() if other.is_floating_point() else 0
        limit = max(limit, OF_ALL_GRADIENTS * largest)
        torch.testing.assert_close(one, other, rtol=0, atol=limit, msg=lambda text, name=name: f"{name}: {text}")


def gradients(module: nn.Module) -> list[tuple[str, Tensor | None]]:
    return [(f"grad of {name}", parameter.grad) for name, parameter in module.named_parameters()]


def train(module: nn.Module, call: nn.Module, model: Model) -> tuple[list[Tensor], Tensor]:
    """Outputs and loss of a training step of `module`, called as `call`; the gradients stay in the module."""
    torch.manual_seed(1)
    returned = call(**model.inputs())
    value = loss(returned)
    value.backward()
    return outputs(returned), value


@pytest.mark.parametrize(("model", "fusion_type"), STEPS)
def test_a_training_step_equals_eager(model: Model, fusion_type: str) -> None:
    torch._dynamo.reset()
    counters.clear()
    torch.manual_seed(0)
    module = model.make().train()
    other = copy.deepcopy(module)
    expected, expected_loss = train(module, module, model)
    found, found_loss = train(other, mlir_fusion.compile(other, fusion_type=fusion_type, target="cpu"), model)
    assert_close([("loss", found_loss)], [("loss", expected_loss)])
    assert_close([("output", one) for one in found], [("output", one) for one in expected])
    assert_close(gradients(other), gradients(module))
    assert_close(other.named_buffers(), module.named_buffers())
    assert_only_pytorchs_breaks(model)


def assert_only_pytorchs_breaks(model: Model) -> None:
    reason = BROKEN_BY_PYTORCH.get(model.name)
    breaks = list(counters["graph_break"])
    assert all(reason is not None and text.startswith(reason) for text in breaks), breaks


@pytest.mark.parametrize("model", MODELS, ids=str)
@pytest.mark.skipif(not IS_LONG, reason="a training step runs the forward pass too")
def test_inference_equals_eager(model: Model) -> None:
    torch._dynamo.reset()
    torch.manual_seed(0)
    module, inputs = model.make().eval(), model.inputs()
    with torch.no_grad():
        expected = module(**inputs)
        for fusion_type in FUSION_TYPES:
            found = mlir_fusion.compile(module, fusion_type=fusion_type, target="cpu")(**inputs)
            assert_close([("output", one) for one in outputs(found)], [("output", one) for one in outputs(expected)])
