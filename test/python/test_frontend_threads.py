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


def test_eight_threads_compile_and_call_different_models(cold) -> None:
    torch._dynamo.reset()
    barrier = threading.Barrier(THREADS)

    def work(number: int) -> list[float]:
        torch.manual_seed(number)
        module = Residual(number)
        other = copy.deepcopy(module)
        fusion_type = ("consecutive", "dataflow", "none")[number % 3]
        compiled = mlir_fusion.compile(other, fusion_type=fusion_type, target="cpu")
        barrier.wait()
        errors = []
        for _ in range(CALLS):
            x = torch.randn(5, 8 + number)
            found, expected = compiled(x), module(x)
            found.square().sum().backward()
            expected.square().sum().backward()
            errors.append((found - expected).abs().max().item())
            pairs = zip(other.parameters(), module.parameters(), strict=True)
            errors += [(one.grad - reference.grad).abs().max().item() for one, reference in pairs]  # pyright: ignore
        return errors

    with ThreadPoolExecutor(THREADS) as pool:
        for errors in pool.map(work, range(THREADS)):
            assert max(errors) < 1e-4


def test_eight_threads_call_one_model(cold) -> None:
    torch._dynamo.reset()
    module = Residual(3)
    compiled = mlir_fusion.compile(module, target="cpu")
    inputs = [torch.randn(5, 11) for _ in range(THREADS)]
    with ThreadPoolExecutor(THREADS) as pool:
        found = list(pool.map(compiled, inputs))
    for one, x in zip(found, inputs, strict=True):
        torch.testing.assert_close(one, module(x))
