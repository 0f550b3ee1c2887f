"""Random PyTorch programs, the same ones each time: compiled results beside eager's. `make fuzz` makes new ones."""

from __future__ import annotations

import os
import warnings

import pytest
from fuzz_check import check, some_variants
from fuzz_programs import Program, programs
from hypothesis import HealthCheck, given, seed, settings

LONG = "MLIR_FUSION_TEST_LONG" in os.environ
CHUNKS = 8
COUNT = 250 if LONG else 6
"""Programs a chunk."""


@pytest.mark.parametrize("chunk", range(CHUNKS))
def test_random_programs(chunk: int) -> None:
    @seed(chunk)
    @settings(max_examples=COUNT, deadline=None, database=None, suppress_health_check=list(HealthCheck))
    @given(programs())
    def run(program: Program) -> None:
        check(program, some_variants(program))

    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        run()
