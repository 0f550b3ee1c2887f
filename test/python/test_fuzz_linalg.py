"""Random linalg programs, the same ones each time, beside MLIR's own lowering. `make fuzz` makes new ones."""

from __future__ import annotations

import os

import pytest
from hypothesis import HealthCheck, given, seed, settings
from linalg_check import DifferenceError, check, run, some_variants
from linalg_programs import Program, Step, Value, programs

LONG = "MLIR_FUSION_TEST_LONG" in os.environ
CHUNKS = 4
COUNT = 500 if LONG else 20
"""Programs a chunk."""


@pytest.mark.parametrize("chunk", range(CHUNKS))
def test_random_programs(chunk: int) -> None:
    @seed(chunk)
    @settings(max_examples=COUNT, deadline=None, database=None, suppress_health_check=list(HealthCheck))
    @given(programs())
    def program_is_right(program: Program) -> None:
        check(program, some_variants(program))

    program_is_right()


def test_a_difference_is_told(monkeypatch: pytest.MonkeyPatch) -> None:
    matrix = Value((3, 5), "f32")
    program = Program((matrix,), (Step("iota", (0,), (1,), matrix),), (1,))
    check(program, [("cpu", "none")])
    monkeypatch.setattr("linalg_check.run", lambda *given: [result + 1 for result in run(*given)])
    with pytest.raises(DifferenceError, match=r"output 0 \(cpu, none\): 15 of 15 elements differ"):
        check(program, [("cpu", "none")])
