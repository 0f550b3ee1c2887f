"""Schedule families compute what eager PyTorch does: run on the CPU, through the emitters that the GPU has.

Each program names the family that is to run it, so that a heuristic that stops choosing one does not stop its test.
"""

from __future__ import annotations

import re

import pytest
import torch
from programs import BF16, Program, rand
from test_programs import compare

import mlir_fusion

TRANSPOSES = [
    Program("add", lambda x, y: x.t() + y, lambda: (rand(130, 72), rand(72, 130))),
    Program("odd_sizes", lambda x, y: x.t() * y, lambda: (rand(131, 71), rand(71, 131))),
    Program("whole_tiles", lambda x, y: x.t().float() * y, lambda: (rand(128, 192, dtype=BF16), rand(192, 128))),
    Program("part_of_a_tile", lambda x: (x * 2).t() + 1, lambda: (rand(72, 200, dtype=BF16),)),
    Program("first_last", lambda x: x.permute(2, 0, 1) * 2, lambda: (rand(33, 44, 56),)),
    Program("batch", lambda x: x.permute(0, 2, 1) * 2, lambda: (rand(5, 44, 56),)),
    Program("merged", lambda x, b: x.permute(0, 2, 3, 1) + b, lambda: (rand(3, 32, 7, 7), rand(32))),
    Program("rank_5", lambda x: x.permute(0, 4, 2, 1, 3) * 2, lambda: (rand(2, 3, 4, 9, 24),)),
    Program("two_inputs", lambda x, y, z: x.t() * y.t() + z, lambda: (rand(40, 64), rand(40, 64), rand(64, 40))),
    Program("booleans", lambda x, y: torch.where(x.t(), y, -y), lambda: (rand(40, 64) > 0, rand(64, 40))),
    Program("results", lambda x, y: (x.t() + y, x.t() * y), lambda: (rand(40, 64), rand(64, 40))),
]


def families(text: str) -> list[str]:
    return re.findall(r'#fusion.schedule<"(\w+)"', text)


def run(program: Program, expected: set[str]) -> None:
    torch._dynamo.reset()
    torch.manual_seed(0)
    inputs = list(program.make())
    compiled = mlir_fusion.compile(program.function, fusion_type="dataflow", target="cpu")
    compare(program, inputs, compiled(*inputs))
    assert expected <= set(families(compiled.ir("kernel")))


@pytest.mark.parametrize("program", TRANSPOSES, ids=str)
def test_transpose(program: Program) -> None:
    run(program, {"transpose"})
