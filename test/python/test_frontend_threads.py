"""Several threads compile and call different models at once."""

from __future__ import annotations

import copy
import threading
from concurrent.futures import ThreadPoolExecutor

import torch
import torch.nn.functional as F
from torch import Tensor, nn

import mlir_fusion

THREADS, CALLS = 8, 4


class Residual(nn.Module):
    """Another structure for every number."""

    def __init__(self, number: int) -> None:
        super().__init__()
        self.number = number
        self.norm = nn.LayerNorm(8 + number)
        self.layers = nn.ModuleList(nn.Linear(8 + number, 8 + number) for _ in range(1 + number % 3))

    def forward(self, x: Tensor) -> Tensor:
        for layer in self.layers:
            x = x + F.gelu(layer(self.norm(x))) * self.number
        return x.softmax(-1) if self.number % 2 else x.sin()


def distance(found: Tensor, expected: Tensor) -> float:
    """The largest error, relative to the largest element."""
    return ((found - expected).abs().max() / expected.abs().max()).item()


def test_eight_threads_compile_and_call_different_models(cold) -> None:
    torch._dynamo.reset()
    barrier = threading.Barrier(THREADS)
    torch.manual_seed(0)  # (here: the threads would share the state)
    modules = [Residual(number) for number in range(THREADS)]
    inputs = [[torch.randn(5, 8 + number) for _ in range(CALLS)] for number in range(THREADS)]

    def work(number: int) -> list[float]:
        module = modules[number]
        other = copy.deepcopy(module)
        fusion_type = ("consecutive", "dataflow", "none")[number % 3]
        compiled = mlir_fusion.compile(other, fusion_type=fusion_type, target="cpu")
        barrier.wait()
        errors = []
        for x in inputs[number]:
            found, expected = compiled(x), module(x)
            found.square().sum().backward()
            expected.square().sum().backward()
            errors.append(distance(found, expected))
            pairs = zip(other.parameters(), module.parameters(), strict=True)
            errors += [distance(one.grad, reference.grad) for one, reference in pairs]  # pyright: ignore
        return errors

    with ThreadPoolExecutor(THREADS) as pool:
        for errors in pool.map(work, range(THREADS)):
            assert max(errors) < 1e-5


def test_eight_threads_call_one_model(cold) -> None:
    torch._dynamo.reset()
    torch.manual_seed(0)
    module = Residual(3)
    compiled = mlir_fusion.compile(module, target="cpu")
    inputs = [torch.randn(5, 11) for _ in range(THREADS)]
    with ThreadPoolExecutor(THREADS) as pool:
        found = list(pool.map(compiled, inputs))
    for one, x in zip(found, inputs, strict=True):
        torch.testing.assert_close(one, module(x))
