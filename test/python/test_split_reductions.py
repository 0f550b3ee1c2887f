"""Reductions that are split compute what eager PyTorch does, in parts that fit a small GPU: run on the CPU."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

import pytest
import torch
from mlir_fusion.driver.cached_stages import forget_stages
from mlir_fusion.passes import fusion_split_reductions
from mlir_fusion.passes.schedules import Choice, Problem, row_and_column
from mlir_fusion.targets.target import SM_90
from programs import BF16, F16, F64, Program, integers, rand
from test_inner_reduction import run_with
from test_programs import compare
from test_schedules import families
from torch import Tensor

import mlir_fusion

split = fusion_split_reductions.split_reductions
# A launch is no time beside this memory's, so that tensors small enough for a test are worth splitting
SMALL_GPU = replace(SM_90, multiprocessors=8, memory_bandwidth=1e-3)

PROGRAMS = [
    Program("columns", lambda x: x.sum(0), lambda: (rand(1024, 64),)),
    Program("columns_bf16", lambda x: x.sum(0), lambda: (rand(512, 40, dtype=BF16),)),
    Program("odd_columns", lambda x: x.sum(0), lambda: (rand(769, 57),)),
    Program("one_column", lambda x: x.sum(0), lambda: (rand(50257, 1),)),
    Program("rest_of_computed", lambda x, y: (x * y).exp().sum(0), lambda: (rand(1009, 24), rand(1009, 24))),
    Program("rest_of_computed_bf16", lambda x: x.sum(), lambda: (rand(262147, dtype=BF16),)),
    Program("rows_as_one", lambda x: x.sum(0), lambda: (rand(65537, 33),)),
    Program("rows_as_one_bf16", lambda x: (x * x).sum(0), lambda: (rand(65537, 5, 3, dtype=BF16),)),
    Program("middle_as_one", lambda x: x.sum(1), lambda: (rand(64, 257, 513, dtype=BF16),)),
    Program("outer_and_middle_as_one", lambda x: x.sum((0, 2)), lambda: (rand(6, 64, 129, 257),)),
    Program("narrow", lambda x: x.mean(0), lambda: (rand(4095, 3),)),
    Program("strided", lambda x: x.sum(0), lambda: (rand(600, 90)[::2, 3:40],)),
    Program("middle", lambda x: x.sum(1), lambda: (rand(3, 800, 24),)),
    Program("batch_of_images", lambda x: x.sum((0, 2, 3)), lambda: (rand(40, 3, 21, 20),)),
    Program("leading_two", lambda x: (x * x).sum((0, 1)), lambda: (rand(5, 130, 33),)),
    Program("two_kept", lambda x: x.sum(0), lambda: (rand(700, 12, 7),)),
    Program("kept_apart", lambda x: x.sum((1, 2)), lambda: (rand(3, 40, 31, 24),)),
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

USED_WHOLE = ("normalised", "softmax_of_columns")
"""What is reduced is used by another kernel, too."""

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
    kernels = run(program)
    assert "fusion.partial" in kernels
    assert not {"generic", "pointwise"} & set(families(kernels)) or program.name in USED_WHOLE


@pytest.mark.parametrize("program", WHOLE, ids=str)
def test_whole(program: Program) -> None:
    assert "fusion.partial" not in run(program)


def layer_norm_backward(dy: Tensor, x: Tensor, w: Tensor, mean: Tensor, rstd: Tensor) -> tuple[Tensor, Tensor, Tensor]:
    xf, dyf = x.float(), dy.float()
    xhat = (xf - mean) * rstd
    g = dyf * w.float()
    c1, c2 = g.mean(-1, keepdim=True), (g * xhat).mean(-1, keepdim=True)
    dims = tuple(range(x.dim() - 1))
    dx = (g - c1 - xhat * c2) * rstd
    return dx.to(x.dtype), (dyf * xhat).sum(dims).to(w.dtype), dyf.sum(dims).to(w.dtype)


def rms_norm_backward(dy: Tensor, x: Tensor, w: Tensor) -> tuple[Tensor, Tensor]:
    h, g = x.float(), dy.float() * w.float()
    scale = torch.rsqrt(h.pow(2).mean(-1, keepdim=True) + 1e-6)
    inner = (g * h).mean(-1, keepdim=True)
    dx = scale * (g - h * scale * scale * inner)
    return dx.to(x.dtype), (dy.float() * h * scale).sum(0).to(w.dtype)


def layer_norm_inputs(*shape: int, dtype: torch.dtype = torch.float32) -> tuple[Tensor, ...]:
    rows = (*shape[:-1], 1)
    return rand(*shape, dtype=dtype), rand(*shape, dtype=dtype), rand(shape[-1], dtype=dtype), rand(*rows), rand(*rows)


def gelu_backward(dy: Tensor, x: Tensor, b: Tensor) -> tuple[Tensor, Tensor]:
    dx = torch.ops.aten.gelu_backward(dy, x + b)
    return dx, dx.sum(0)


def row_and_column_maxima(x: Tensor) -> tuple[Tensor, Tensor, Tensor]:
    y = x.relu()
    return y, y.amax(1), y.amax(0)


ROWS_AND_COLUMNS = [
    Program("layer_norm", layer_norm_backward, lambda: layer_norm_inputs(640, 72)),
    Program("layer_norm_bf16", layer_norm_backward, lambda: layer_norm_inputs(512, 128, dtype=BF16)),
    Program("layer_norm_odd", layer_norm_backward, lambda: layer_norm_inputs(615, 57)),
    Program("layer_norm_3d", layer_norm_backward, lambda: layer_norm_inputs(6, 130, 48)),
    Program("layer_norm_4d", layer_norm_backward, lambda: layer_norm_inputs(3, 5, 67, 24)),
    Program("layer_norm_narrow", layer_norm_backward, lambda: layer_norm_inputs(4095, 3)),
    Program("layer_norm_two_rows", layer_norm_backward, lambda: layer_norm_inputs(80, 9, 48)),
    Program("rms_norm", rms_norm_backward, lambda: (rand(700, 64), rand(700, 64), rand(64))),
    Program("rms_norm_f16", rms_norm_backward, lambda: (*(rand(700, 40, dtype=F16) for _ in "xy"), rand(40))),
    Program("gelu", gelu_backward, lambda: (rand(700, 64), rand(700, 64), rand(64))),
    Program("maxima", row_and_column_maxima, lambda: (rand(800, 33),)),
]


def test_rows_that_make_no_equal_parts() -> None:
    program = Program("prime", layer_norm_backward, lambda: layer_norm_inputs(619, 57))
    assert "row_and_column" not in families(run(program))


@pytest.mark.parametrize("program", ROWS_AND_COLUMNS, ids=str)
def test_rows_and_columns(program: Program) -> None:
    kernels = run(program)
    assert families(kernels)[0] == "row_and_column"


WAYS = [
    {"ahead": 1},
    {"unroll": 2},
    {"ahead": 1, "unroll": 3},
    {"vector": 4, "ahead": 1, "stages": 2},
    {"vector": 4, "ahead": 1, "stages": 4, "unroll": 2},
]


@pytest.mark.parametrize("program", ROWS_AND_COLUMNS[:4] + ROWS_AND_COLUMNS[8:], ids=str)
@pytest.mark.parametrize("ways", WAYS, ids=str)
def test_rows_under_way(program: Program, ways: dict[str, int], monkeypatch: pytest.MonkeyPatch) -> None:
    """What a GPU has under way, in registers or in shared memory, a CPU has too if it is told."""
    choose = row_and_column._cpu_choice

    def chosen(problem: Problem) -> Choice:
        parameters = choose(problem).parameters | ways
        columns = row_and_column._accepted(problem.body).space.column.extent
        return Choice(parameters | {"chunks": -(-columns // int(parameters["vector"]))}, "")

    monkeypatch.setattr(row_and_column, "_cpu_choice", chosen)
    if "vector" in ways:
        # Fewer lanes, each with a sum of its own
        program = replace(program, tolerance=1e-5)
    assert all(f"{name} = {value}" in run(program) for name, value in ways.items())


def in_order_of_use(x: Tensor, dy: Tensor, mean: Tensor, rstd: Tensor, w: Tensor) -> tuple[Tensor, ...]:
    return layer_norm_backward(dy, x, w, mean, rstd)


def inputs_in_order_of_use(columns: int, dtype: torch.dtype = torch.float32) -> tuple[Tensor, ...]:
    dy, x, w, mean, rstd = layer_norm_inputs(640, columns, dtype=dtype)
    return x, dy, mean, rstd, w


LAYER_NORMS = [
    Program("layer_norm_bf16", in_order_of_use, lambda: inputs_in_order_of_use(520, BF16)),
    Program("layer_norm_odd", in_order_of_use, lambda: inputs_in_order_of_use(511), 1e-5),
]


@pytest.mark.parametrize(
    "parameters",
    [
        {"across": 96, "cluster": 1, "down": 2, "chunks": 2, "ahead": 1, "stages": 0},
        {"across": 96, "cluster": 1, "down": 1, "chunks": 2, "ahead": 1, "stages": 3},
        {"across": 32, "cluster": 2, "down": 2, "chunks": 3, "ahead": 1, "stages": 3},
        {"across": 96, "cluster": 4, "down": 1, "chunks": 1, "ahead": 0, "stages": 0},
    ],
    ids=str,
)
@pytest.mark.parametrize("program", LAYER_NORMS, ids=str)
def test_rows_and_columns_in_the_checker(program: Program, parameters: dict[str, int]) -> None:
    """Rows shared by warps, by blocks, by no power of two of either, and on their way to shared memory."""
    width = 1 if program.name == "layer_norm_odd" else 4
    parameters |= {"vector": width, "unroll": 1, "chunks": parameters["chunks"] * 4 // width}
    run_with(program, "row_and_column", {name: str(value) for name, value in parameters.items()}, "simt")
