"""Reductions that are split compute what eager PyTorch does, in parts that fit a small GPU: run on the CPU."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

import pytest
import torch
from mlir_fusion.driver.cached_stages import forget_stages
from mlir_fusion.passes import fusion_split_reductions
from mlir_fusion.targets.target import SM_90
from programs import BF16, F16, F64, Program, integers, rand
from test_programs import compare

import mlir_fusion

split = fusion_split_reductions.split_reductions
# A launch is no time beside this memory's, so that tensors small enough for a test are worth splitting
SMALL_GPU = replace(SM_90, multiprocessors=8, memory_bandwidth=1e-3)

PROGRAMS = [
    Program("columns", lambda x: x.sum(0), lambda: (rand(1024, 64),)),
    Program("columns_bf16", lambda x: x.sum(0), lambda: (rand(512, 40, dtype=BF16),)),
    Program("odd_columns", lambda x: x.sum(0), lambda: (rand(769, 57),)),
    Program("one_column", lambda x: x.sum(0), lambda: (rand(50257, 1),)),
    Program("narrow", lambda x: x.mean(0), lambda: (rand(4095, 3),)),
    Program("strided", lambda x: x.sum(0), lambda: (rand(600, 90)[::2, 3:40],)),
    Program("middle", lambda x: x.sum(1), lambda: (rand(3, 800, 24),)),
    Program("batch_of_images", lambda x: x.sum((0, 2, 3)), lambda: (rand(40, 3, 21, 20),)),
    Program("leading_two", lambda x: (x * x).sum((0, 1)), lambda: (rand(5, 130, 33),)),
    Program("five_dimensions", lambda x: x.sum((0, 2, 4)), lambda: (rand(24, 2, 7, 3, 130),)),
    Program("everything", lambda x: (x * x).sum(), lambda: (rand(2**18),)),
    Program("prime", lambda x: x.sum(), lambda: (rand(262147),)),
    Program("everything_3d", lambda x: x.exp().mean(), lambda: (rand(7, 133, 129),)),
    Program("everything_f64", lambda x: x.sum(), lambda: (rand(131073, dtype=F64),)),
    Program("everything_f16", lambda x: x.sum(), lambda: (rand(100001, dtype=F16),)),
    Program("few_rows", lambda x: x.sum(1), lambda: (rand(3, 100001),)),
    Program("largest", lambda x: x.amax(0), lambda: (rand(2050, 17),)),
    Program("least", lambda x: x.amin(), lambda: (rand(99991),)),
    Program("integers", lambda x: x.sum(0), lambda: (integers(-9, 9, 1000, 11),)),
    Program("any", lambda x: (x > 3.9).any(0), lambda: (rand(2000, 21),)),
    Program("broadcast", lambda x, y, z: (x * y + z).sum(0), lambda: (rand(700, 32), rand(700, 1), rand(32))),
    Program("two_sums", lambda x, y: (x.sum(0), (x * y).sum(0) * 2), lambda: (rand(900, 32), rand(900, 32))),
    Program("epilogue", lambda x, y: x.sum(0) / 3 + y, lambda: (rand(900, 32), rand(32))),
    Program("normalised", lambda x: x / x.sum(0), lambda: (rand(800, 16).abs(),)),
    Program("softmax_of_columns", lambda x: torch.softmax(x, 0), lambda: (rand(800, 16),)),
]

WHOLE = [
    Program("one_row", lambda x: x.sum(0), lambda: (rand(1, 300),)),
    Program("few_elements", lambda x: x.sum(), lambda: (rand(300),)),
    Program("argmax", lambda x: x.argmax(0), lambda: (rand(4000, 16),)),
    Program("cumulative", lambda x: x.cumsum(0), lambda: (rand(400, 16),)),
]


@pytest.fixture(autouse=True)
def splits_for_a_small_gpu(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    monkeypatch.setattr(fusion_split_reductions, "split_reductions", lambda module, _: split(module, SMALL_GPU))
    forget_stages()
    yield
    forget_stages()


def run(program: Program) -> str:
    """Compares a program's result with eager's; gives its kernels."""
    torch._dynamo.reset()
    torch.manual_seed(0)
    inputs = list(program.make())
    compiled = mlir_fusion.compile(
        program.function, fusion_type="dataflow", target="cpu", disable_options=["disk_cache"]
    )
    compare(program, inputs, compiled(*inputs))
    return compiled.ir("kernel")


@pytest.mark.parametrize("program", PROGRAMS, ids=str)
def test_split(program: Program) -> None:
    assert "fusion.partial" in run(program)


@pytest.mark.parametrize("program", WHOLE, ids=str)
def test_whole(program: Program) -> None:
    assert "fusion.partial" not in run(program)
