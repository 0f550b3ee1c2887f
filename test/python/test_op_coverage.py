"""PyTorch's operator database: a few operations always, a fixed tenth of all in the long tests."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import op_coverage
import pytest
import torch

SCRIPT = Path(op_coverage.__file__)
SOME = "add,nn.functional.gelu,fliplr,all,sort,nn.functional.celu"


def run(*arguments: str | Path) -> subprocess.CompletedProcess[str]:
    return subprocess.run([sys.executable, SCRIPT, *arguments], capture_output=True, text=True)


def test_some_operations_and_their_table(tmp_path: Path) -> None:
    state, result = tmp_path / "state.jsonl", tmp_path / "table.md"
    command = ("--state", state, "--table", result, "--only", SOME, "--dtypes", "float32")
    done = run(*command)
    assert done.returncode == 0, done.stdout + done.stderr
    found = {finding.op: finding.kind for finding in op_coverage.read(state)}
    assert set(found) == set(SOME.split(","))
    assert (found["add"], found["sort"]) == ("compiled", "compiled and library")
    assert "| add | compiled (float32) |" in result.read_text()
    # Nothing is looked at twice
    before = state.read_text()
    assert run(*command).returncode == 0 and state.read_text() == before


def test_a_wrong_result_is_found() -> None:
    op = op_coverage.database()["sin"]
    (sample,) = list(op.sample_inputs("cpu", torch.float32))[:1]  # pyright: ignore[reportAttributeAccessIssue]
    expected = op_coverage.outcome(op, sample, op, False)
    assert op_coverage.difference(op, sample, "eager", False, expected) == ""
    assert "AssertionError" in op_coverage.difference(op, sample, "eager", False, [expected[0] + 1])


@pytest.mark.skipif("MLIR_FUSION_TEST_LONG" not in os.environ, reason="takes long")
def test_a_tenth_of_all_operations(tmp_path: Path) -> None:
    done = run("--state", tmp_path / "state.jsonl", "--tenth")
    assert done.returncode == 0, done.stdout
