"""Training: what is kept between forward and backward pass, checkpointing, optimizers, peak memory."""

from __future__ import annotations

import copy
import gc
from collections.abc import Callable

import pytest
import torch
import torch.nn.functional as F
from mlir_fusion.frontend.foreach import foreach_decompositions
from torch import Tensor, nn
from torch.profiler import ProfilerActivity, profile
from torch.utils.checkpoint import checkpoint

import mlir_fusion


@pytest.fixture(autouse=True)
def _fresh():
    torch._dynamo.reset()
    torch.manual_seed(0)


def peak_bytes(step: Callable[[], object]) -> int:
    """The most that PyTorch's allocator had handed out at once during `step`, beyond what it had before."""
    gc.collect()
    with profile(activities=[ProfilerActivity.CPU], profile_memory=True) as profiler:
        step()
    live = most = 0
    events = [event for event in profiler.profiler.kineto_results.events() if event.name() == "[memory]"]
    for event in sorted(events, key=lambda event: event.start_ns()):
        live += event.nbytes()
        most = max(most, live)
    return most


class Block(nn.Module):
    """A feed-forward block with wide intermediate tensors."""

    def __init__(self, width: int) -> None:
        super().__init__()
        self.norm, self.up, self.down = nn.LayerNorm(width), nn.Linear(width, 4 * width), nn.Linear(4 * width, width)

    def forward(self, x: Tensor) -> Tensor:
        return x + self.down(F.gelu(self.up(self.norm(x))))


class Stack(nn.Module):
    """Blocks, checkpointed or not."""

    def __init__(self, depth: int, width: int, is_checkpointed: bool) -> None:
        super().__init__()
        self.blocks = nn.ModuleList(Block(width) for _ in range(depth))
        self.is_checkpointed = is_checkpointed

    def forward(self, x: Tensor) -> Tensor:
        for block in self.blocks:
            x = checkpoint(block, x, use_reentrant=False) if self.is_checkpointed else block(x)  # pyright: ignore
        return x.square().mean()


def step_of(module: nn.Module, x: Tensor) -> Callable[[], None]:
    def step() -> None:
        module(x).backward()

    return step


def peaks(is_checkpointed: bool, fusion_type: str) -> tuple[int, int]:
    """(ours, eager's) of a training step, gradients equal."""
    torch._dynamo.reset()
    module = Stack(6, 32, is_checkpointed)
    other = copy.deepcopy(module)
    x = torch.randn(512, 32)
    compiled = mlir_fusion.compile(other, fusion_type=fusion_type, target="cpu")
    for each in (module, compiled):
        step_of(each, x)()
    for one, reference in zip(other.parameters(), module.parameters(), strict=True):
        torch.testing.assert_close(one.grad, reference.grad)
    for each in (module, other):
        each.zero_grad(set_to_none=True)
    return peak_bytes(step_of(compiled, x)), peak_bytes(step_of(module, x))


@pytest.mark.parametrize("fusion_type", ["consecutive", "dataflow"])
def test_checkpointing_lowers_the_peak(fusion_type):
    plain, _ = peaks(False, fusion_type)
    ours, eager = peaks(True, fusion_type)
    assert ours < 0.5 * plain
    assert ours < 1.25 * eager


def test_what_the_forward_pass_saved_is_freed_after_its_last_reader():
    """A chain of wide tensors: while the backward pass walks it, fewer and fewer are alive."""
    weights = [torch.randn(64, 64, requires_grad=True) for _ in range(8)]

    def chain(x: Tensor) -> Tensor:
        for weight in weights:
            x = (x @ weight).sin()
        return x.sum()

    x = torch.randn(2048, 64)
    compiled = mlir_fusion.compile(chain, target="cpu")
    compiled(x).backward()
    loss = compiled(x)
    one = x.numel() * x.element_size()
    # Beyond what is saved: a gradient, what becomes of it, and small ones
    assert peak_bytes(loss.backward) < 3 * one


OPTIMIZERS = {
    "adam": lambda parameters: torch.optim.Adam(parameters, lr=1e-2, weight_decay=0.1),
    "adamw": lambda parameters: torch.optim.AdamW(parameters, lr=1e-2),
    "sgd": lambda parameters: torch.optim.SGD(parameters, lr=1e-2, momentum=0.9, nesterov=True),
    "adam_foreach": lambda parameters: torch.optim.Adam(parameters, lr=1e-2, amsgrad=True, foreach=True),
    "adamw_foreach": lambda parameters: torch.optim.AdamW(parameters, lr=1e-2, foreach=True),
    "sgd_foreach": lambda parameters: torch.optim.SGD(parameters, lr=1e-2, momentum=0.9, foreach=True),
}


@pytest.mark.parametrize("make", OPTIMIZERS.values(), ids=OPTIMIZERS)
def test_optimizers_steps_compile_without_library_calls(make):
    module = nn.Sequential(nn.Linear(7, 9), nn.Tanh(), nn.Linear(9, 3))
    other = copy.deepcopy(module)
    ours = make(other.parameters())
    theirs = make(module.parameters())
    step = mlir_fusion.compile(ours.step, target="cpu")
    for _ in range(4):
        x = torch.randn(5, 7)
        for each, advance in ((module, theirs.step), (other, step)):
            each.zero_grad()
            each(x).square().sum().backward()
            advance()
        for one, reference in zip(other.parameters(), module.parameters(), strict=True):
            torch.testing.assert_close(one, reference, rtol=1e-6, atol=1e-6)
    assert "fusion.extern" not in step.ir("region")


def foreach_arguments(overload: torch._ops.OpOverload) -> tuple[list, dict]:
    """Positive numbers of the kinds that an overload of an operation on lists takes."""

    def value(kind: str) -> object:
        if "List[Tensor]" in kind:
            return [torch.rand(3, 4) + 0.5, torch.rand(5) + 0.5]
        if "List" in kind:
            return [0.7, 1.6]
        return torch.rand(2 if "addc" in overload.name() else ()) + 0.5 if kind == "Tensor" else 0.6

    parameters = [(argument, value(str(argument.type))) for argument in overload._schema.arguments]
    positional = [given for argument, given in parameters if not argument.kwarg_only]
    return positional, {argument.name: given for argument, given in parameters if argument.kwarg_only}


@pytest.mark.parametrize("overload", foreach_decompositions(), ids=str)
def test_operations_on_lists_are_taken_apart_right(overload):
    positional, named = foreach_arguments(overload)
    expected = overload(*positional, **named)
    found = foreach_decompositions()[overload](*positional, **named)
    torch.testing.assert_close(found, expected)
