"""Two processes on this machine train compiled models: DDP, FSDP2, tensor parallelism, DTensor, collectives."""

from __future__ import annotations

import socket
import subprocess
import sys
from pathlib import Path

import pytest
import torch.distributed
from distributed_models import CASES, WORLD

SECONDS = 300


@pytest.mark.skipif(not torch.distributed.is_gloo_available(), reason="this PyTorch has no gloo")
def test_two_processes_compute_what_they_would_without_a_compiler() -> None:
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = str(free.getsockname()[1])
    script = Path(__file__).with_name("distributed_models.py")
    commands = [[sys.executable, script, str(rank), port, *CASES] for rank in range(WORLD)]
    processes = [
        subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True) for command in commands
    ]
    try:
        for process in processes:
            output, _ = process.communicate(timeout=SECONDS)
            assert process.returncode == 0, output
    finally:
        for process in processes:
            process.kill()
