"""On a GPU: the driver's translation of a kernel is kept, and code from disk computes the same."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest
import torch
from mlir_fusion.driver.cached_stages import forget_stages
from mlir_fusion.driver.kernel_code import forget_kernels
from mlir_fusion.runtime import cubin

import mlir_fusion

WARM_START = Path(__file__).resolve().parent.parent / "python" / "warm_start.py"


def f(x: torch.Tensor) -> torch.Tensor:
    return (x.exp() + 1).log() * x.sum(-1, keepdim=True)


def new_process() -> None:
    torch._dynamo.reset()
    forget_stages()
    forget_kernels()


def test_the_driver_translates_once(tmp_path: Path, monkeypatch):
    monkeypatch.setenv("MLIR_FUSION_CACHE_DIR", str(tmp_path))
    x = torch.randn(64, 128, device="cuda")
    new_process()
    first = mlir_fusion.compile(f)(x)
    assert list((tmp_path / "cubins").iterdir())
    new_process()
    monkeypatch.setattr(cubin, "_link", lambda *_: pytest.fail("translated again"))
    fast = mlir_fusion.compile(f)
    assert torch.equal(fast(x), first)
    assert not any(count.misses for count in fast.cache_info().values())
    torch.testing.assert_close(first, f(x))


def test_without_the_disk_the_driver_loads_ptx(tmp_path: Path, monkeypatch):
    monkeypatch.setenv("MLIR_FUSION_CACHE_DIR", str(tmp_path))
    x = torch.randn(64, 128, device="cuda")
    new_process()
    torch.testing.assert_close(mlir_fusion.compile(f, disable_options=["disk_cache"])(x), f(x))
    assert not list(tmp_path.iterdir())


def test_options_in_turn_compute_the_same():
    x = torch.randn(64, 130, device="cuda")
    fast = mlir_fusion.compile(f)
    for option in ("vectorize", "index32", "fma", "kernel_reuse", "fast_math", "fusion_type"):
        for options in ({"_disable_options": [option]}, {}):
            torch.testing.assert_close(fast(x, **options), f(x))


def test_a_second_process_starts_in_a_tenth_of_the_time(tmp_path: Path):
    # The driver's own folder must not help
    environment = {**os.environ, "MLIR_FUSION_CACHE_DIR": str(tmp_path), "CUDA_CACHE_DISABLE": "1"}
    command = [sys.executable, str(WARM_START), "6", "cuda"]
    outputs = [subprocess.run(command, env=environment, capture_output=True, text=True, check=True) for _ in range(5)]
    cold, *warm = (json.loads(output.stdout) for output in outputs)
    print(cold, *warm, sep="\n")
    assert all(not misses for _, misses in warm[0]["counts"].values())
    assert warm[0]["checksum"] == cold["checksum"]
    assert min(one["beyond"] for one in warm) <= 0.1 * cold["beyond"]
