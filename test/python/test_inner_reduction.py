"""Inner reductions with parameters written by hand, on the CPU: what a GPU keeps on chip is kept there too."""

from __future__ import annotations

import re

import pytest
import torch
import torch.nn.functional as F
from mlir_fusion.dialects.mlir import ir
from mlir_fusion.driver.build import build
from mlir_fusion.driver.launchers import make_launcher
from mlir_fusion.driver.options import Options
from mlir_fusion.driver.programs import make_program
from mlir_fusion.driver.runner import make_context
from programs import BF16, F16, Program, integers, rand
from test_programs import compare

import mlir_fusion

ROWS = [
    Program("softmax", lambda x: torch.softmax(x, -1), lambda: (rand(3, 1000),)),
    Program("softmax_bf16", lambda x: torch.softmax(x, -1), lambda: (rand(3, 1001, dtype=BF16),)),
    Program("one_column", lambda x: torch.softmax(x, -1), lambda: (rand(9, 1),)),
    Program("masked", lambda m, x: torch.softmax(torch.where(m, x, -1e9), -1), lambda: (rand(5, 96) > 0, rand(5, 96))),
    Program(
        "layer_norm",
        lambda x, r, w, b: (F.layer_norm(x + r, (96,), w, b), x + r),
        lambda: (rand(6, 96), rand(6, 96), rand(96), rand(96)),
        4e-6,
    ),
    Program(
        "group_norm",
        lambda x, w, b: F.silu(F.group_norm(x, 4, w, b)),
        lambda: (rand(3, 8, 5, 8, dtype=F16), rand(8, dtype=F16), rand(8, dtype=F16)),
    ),
    Program("padded", lambda x: torch.softmax(F.pad(x, (1, 2)), -1), lambda: (rand(4, 61),)),
    Program("residual", lambda x, y: torch.softmax(x, -1) * y, lambda: (rand(4, 64), rand(4, 64))),
    Program(
        "infinite",
        lambda x: torch.softmax(x, -1),
        lambda: (torch.stack((torch.full((40,), -torch.inf), torch.arange(40.0) / 0, rand(40))),),
    ),
]


def with_parameters(text: str, family: str, parameters: dict[str, str]) -> str:
    """The text of kernels with these parameters in the schedules of a family."""
    for name, value in parameters.items():
        text, count = re.subn(rf'(#fusion.schedule<"{family}", {{[^}}]*?\b{name} = )[^,}}]+', rf"\g<1>{value}", text)
        assert count
    return text


ODD_ROWS = [
    *(program for program in ROWS if program.name != "one_column"),
    Program("odd", lambda x: torch.softmax(x, -1), lambda: (rand(9, 77),)),
    Program("odd_bf16", lambda x, y: torch.softmax(x, -1) + y, lambda: (rand(9, 301, dtype=BF16), rand(9, 301)), 2e-3),
    Program("odd_bias", lambda x, w: torch.softmax(x * w, -1) * w, lambda: (rand(9, 61, dtype=F16), rand(61))),
    Program("odd_start", lambda x: torch.softmax(x, -1), lambda: (rand(9, 129)[:, 3:100],)),
    Program("padded_rows", lambda x: x.sum(-1), lambda: (rand(9, 128)[:, :93],)),
    Program("log_softmax", lambda x: torch.log_softmax(x, -1), lambda: (rand(2, 3, 35),)),
    Program("cross_entropy", F.cross_entropy, lambda: (rand(8, 57), integers(0, 57, 8))),
    Program("any", lambda x: (x > 2).any(-1), lambda: (rand(8, 51),)),
]


@pytest.mark.parametrize("parameters", [{}, {"unroll": "1"}, {"vector": "1", "unroll": "3"}, {"groups": "1"}], ids=str)
@pytest.mark.parametrize("program", ROWS, ids=str)
def test_row_in_shared_memory(program: Program, parameters: dict[str, str]) -> None:
    run(program, {"row": '"shared"', **parameters})


@pytest.mark.parametrize("program", [program for program in ROWS if program.name != "one_column"], ids=str)
def test_rows_in_turn(program: Program) -> None:
    """Vectors that an asynchronous copy may have."""
    run(program, {"row": '"shared"', "groups": "1", "vector": "4"})


@pytest.mark.parametrize(
    "parameters",
    [
        {"vector": "4"},
        {"vector": "8", "row": '"shared"', "unroll": "1"},
        {"vector": "4", "row": '"shared"', "groups": "1"},
    ],
    ids=str,
)
@pytest.mark.parametrize("program", ODD_ROWS, ids=str)
def test_vectors_that_start_where_memory_is_aligned(program: Program, parameters: dict[str, str]) -> None:
    run(program, {"aligned": "1", **parameters})


def batch_norm(x: torch.Tensor, w: torch.Tensor, b: torch.Tensor) -> torch.Tensor:
    others, x = [0, *range(2, x.dim())], x.to(w.dtype)
    mean, variance = x.mean(others, keepdim=True), x.var(others, keepdim=True, unbiased=False)
    w, b = (each.view(1, -1, *[1] * (x.dim() - 2)) for each in (w, b))
    return torch.relu((x - mean) * torch.rsqrt(variance + 1e-5) * w + b)


IN_TURN = [
    Program("batch_norm", batch_norm, lambda: (rand(3, 5, 6, 10), rand(5), rand(5)), 4e-6),
    Program("batch_norm_bf16", batch_norm, lambda: (rand(4, 7, 96, dtype=BF16), rand(7), rand(7)), 4e-6),
    Program("softmax", lambda x, y: torch.softmax(x, -1) * y, lambda: (rand(5, 1000), rand(5, 1000))),
    Program("sums", lambda x: (x - x.mean(-1, keepdim=True)).square().sum(-1), lambda: (rand(4, 1400),)),
    Program("odd", lambda x: torch.softmax(x, -1), lambda: (rand(5, 1001, dtype=BF16),)),
]


@pytest.mark.parametrize(
    "shape",
    [
        {"threads": "96", "cluster": "2", "chunks": "0"},
        {"threads": "32", "cluster": "3", "chunks": "1"},
        {"threads": "160", "cluster": "1", "chunks": "1"},
    ],
    ids=str,
)
@pytest.mark.parametrize("program", IN_TURN, ids=str)
def test_rows_in_turn_in_the_checker(program: Program, shape: dict[str, str]) -> None:
    """The next row is on its way while one is computed; some of it is held in registers, and makes place early.

    Blocks and clusters have no power of two of warps.
    """
    parameters = {"row": '"shared"', "rows": "1", "groups": "2", "vector": "4", "unroll": "2", **shape}
    aligned = {"aligned": "1"} if program.name == "odd" else {}
    run(program, {**parameters, **aligned}, "simt")


def run(program: Program, parameters: dict[str, str], target: str = "cpu") -> None:
    run_with(program, "inner_reduction", parameters, target)


def run_with(program: Program, family: str, parameters: dict[str, str], target: str) -> None:
    """Compares with eager what is computed under these parameters of the schedules of a family."""
    torch._dynamo.reset()
    torch.manual_seed(0)
    inputs = list(program.make())
    compiled = mlir_fusion.compile(program.function, fusion_type="dataflow", target=target).lower(*inputs)
    text = with_parameters(compiled.ir("kernel"), family, parameters)
    options = Options(target=target, disk_cache=False)
    with make_context():
        artifact = build(ir.Module.parse(text), options)
    compare(program, inputs, make_program(artifact.host, make_launcher(artifact.code, options))(*inputs))
