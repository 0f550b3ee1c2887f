"""Programs compiled for the checker: it finds nothing wrong with their kernels, and gets what eager PyTorch does."""

from __future__ import annotations

import pytest
import torch
from programs import PROGRAMS, Program
from test_programs import compare
from test_schedules import TRANSPOSES

import mlir_fusion


@pytest.mark.parametrize("program", [*PROGRAMS, *TRANSPOSES], ids=str)
def test_program(program: Program) -> None:
    torch._dynamo.reset()
    torch.manual_seed(0)
    inputs = list(program.make())
    compiled = mlir_fusion.compile(program.function, fusion_type="dataflow", target="simt")
    compare(program, inputs, compiled(*inputs))


def test_the_schedules_are_those_of_a_gpu() -> None:
    """Code for the checker is the code that becomes PTX."""

    def function(x: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
        return torch.softmax(x, -1), (x * 2).t().contiguous()

    texts = []
    for target in ("simt", "sm_90"):
        torch._dynamo.reset()
        compiled = mlir_fusion.compile(function, target=target).lower(torch.randn(300, 520))
        texts.append(compiled.ir("gpu").replace(f"target={target}", "target"))
    assert texts[0] == texts[1]


def test_an_error_names_the_line_of_the_program() -> None:
    def function(x: torch.Tensor, i: torch.Tensor) -> torch.Tensor:
        return torch.nn.functional.embedding(i, x) + 1

    compiled = mlir_fusion.compile(function, target="simt")
    with pytest.raises(IndexError, match=r"test_simt_programs\.py.*index out of range, by thread 2 of block 0"):
        compiled(torch.randn(5, 4), torch.tensor([0, 4, 5]))
