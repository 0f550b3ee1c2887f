"""Random calls with random options: each gives what a new process gives, and just what is new is compiled."""

from __future__ import annotations

import os
import random
import subprocess
import sys
from pathlib import Path

import pytest
import random_calls
import torch
from mlir_fusion.driver.options import Options, declarations
from random_calls import CHOICES, FUNCTIONS, data, make_input, random_options

import mlir_fusion

LONG = "MLIR_FUSION_TEST_LONG" in os.environ
CALLS, FRESH = (60, 12) if LONG else (10, 1)
STAGES = ("fusion", "segment", "schedule", "codegen")


@pytest.mark.parametrize("seed", range(4 if LONG else 1))
def test_random_calls(seed: int, cold: Path, monkeypatch):
    torch._dynamo.reset()
    generator = random.Random(seed)
    # (each size its own graph: of a graph for all sizes, the same size may come from other lines)
    compiled = {name: mlir_fusion.compile(function, dynamic=False) for name, function in FUNCTIONS.items()}
    seen: set[object] = set()
    results: dict[tuple[str, int, str], bytes] = {}
    for _ in range(CALLS):
        name, rows, said = generator.choice(sorted(FUNCTIONS)), generator.choice((8, 16)), random_options(generator)
        fast, by_environment = compiled[name], generator.random() < 0.3
        before = fast.cache_info()
        with monkeypatch.context() as patch:
            if by_environment:
                patch.setenv("MLIR_FUSION_OPTIONS", ",".join(said))
            result = data(fast(make_input(rows), _enable_options=[] if by_environment else said))
        options = Options.from_settings(target="cpu", enable=said)
        for stage in STAGES:
            key = (stage, name, rows, tuple(options.affecting(stage).items()))
            assert fast.cache_info()[stage].misses - before[stage].misses == (key not in seen)
            seen.add(key)
        assert results.setdefault((name, rows, ",".join(said)), result) == result
    for number, (name, rows, said) in enumerate(generator.sample(sorted(results), FRESH)):
        assert in_a_new_process(name, rows, said, cold / str(number)) == results[name, rows, said]


def test_random_calls_try_every_option():
    assert {*CHOICES, "autotune", "target"} == {option.name for option in declarations()}


def in_a_new_process(name: str, rows: int, said: str, folder: Path) -> bytes:
    command = [sys.executable, random_calls.__file__, name, str(rows), said]
    environment = {**os.environ, "MLIR_FUSION_CACHE_DIR": str(folder)}
    done = subprocess.run(command, env=environment, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    return bytes.fromhex(done.stdout)
