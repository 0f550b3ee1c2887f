"""Many processes with one cold folder, killed at random: no wrong result, no torn entry."""

from __future__ import annotations

import os
import random
import subprocess
import sys
import time
from pathlib import Path

import pytest
from mlir_fusion.runtime.disk_cache import MAGIC, TEMPORARY, DiskCache

SCRIPT = Path(__file__).with_name("cache_stress.py")
LONG = "MLIR_FUSION_TEST_LONG" in os.environ
PROCESSES, KERNELS, ROUNDS = (16, 200, 2) if LONG else (3, 12, 1)


def start(folder: Path, seed: int) -> subprocess.Popen[str]:
    environment = {**os.environ, "MLIR_FUSION_CACHE_DIR": str(folder)}
    command = [sys.executable, str(SCRIPT), str(seed), str(KERNELS)]
    return subprocess.Popen(command, env=environment, stderr=subprocess.PIPE, text=True)


@pytest.mark.parametrize("attempt", range(ROUNDS))
def test_processes_killed_while_they_share_a_cold_folder(attempt: int, tmp_path: Path):
    processes = [start(tmp_path, attempt * PROCESSES + number) for number in range(PROCESSES)]
    _kill_some(processes, tmp_path, random.Random(attempt))
    for process in processes:
        _, errors = process.communicate()
        # Killed by us, or done; a warning would be about an entry that is not whole
        assert process.returncode in (0, -9), errors
        assert not errors
    assert start(tmp_path, 1).wait() == 0
    entries = [path for path in tmp_path.rglob("*") if path.is_file() and not path.name.startswith(TEMPORARY)]
    assert len([path for path in entries if path.parts[-3] == "kernels"]) == KERNELS
    for path in entries:
        assert path.read_bytes().startswith(MAGIC)
        assert DiskCache(tmp_path, 1 << 30).get(path.parts[-3], path.name) is not None


def _kill_some(processes: list[subprocess.Popen[str]], folder: Path, generator: random.Random) -> None:
    """Kills half of the processes while they write."""
    deadline = time.monotonic() + 60
    while not folder.joinpath("kernels").exists() and time.monotonic() < deadline:
        time.sleep(0.01)
    for process in generator.sample(processes, len(processes) // 2):
        time.sleep(generator.random() * 0.2)
        process.kill()
