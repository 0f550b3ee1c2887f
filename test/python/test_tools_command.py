"""The command line of mlir-fusion: its mistakes, and the versions that both commands print."""

from __future__ import annotations

import subprocess
import sys
from importlib import metadata

import pytest
from mlir_fusion.tools import fusion_opt
from mlir_fusion.tools.mlir_fusion import main

import mlir_fusion


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ([], "a command is needed: run, options, cache, bisect; --help says more"),
        (["rnu"], "unknown command 'rnu', did you mean 'run'?; allowed: run, options, cache, bisect"),
        (["run", "--targt=cpu"], "unknown flag '--targt', did you mean '--target'?"),
        (["run", "--sed=3"], "unknown flag '--sed', did you mean '--seed'?"),
        (["run", "--seed=x"], "argument --seed: must be a whole number, got 'x'"),
        (["run", "a.mlir", "b.mlir"], "mlir-fusion run takes FILE, got 'b.mlir' as well"),
        (
            ["run", "--target=sm_90"],
            "--target=sm_90 names what to compile for; run takes cpu or cuda, the GPU that is there",
        ),
        (["run", "--target=gpu"], "unknown value of --target 'gpu', did you mean 'cpu'?; allowed: cpu, simt, cuda"),
        (["options", "x"], "mlir-fusion options takes flags only, got 'x' as well"),
        (["options", "--markdwn"], "unknown flag '--markdwn', did you mean '--markdown'?"),
        (["cache", "info", "x.mlir"], "mlir-fusion cache takes ACTION, got 'x.mlir' as well"),
        (["cache", "inof"], "unknown action 'inof', did you mean 'info'?; allowed: info, clear"),
    ],
)
def test_a_mistake_is_one_message_and_status_1(arguments, message, capsys):
    assert main(arguments) == 1
    assert capsys.readouterr() == ("", f"mlir-fusion: error: {message}\n")


@pytest.mark.parametrize(("name", "command"), [("mlir-fusion", main), ("fusion-opt", fusion_opt.main)])
def test_versions(name, command, capsys):
    assert command(["--version"]) == 0
    version = metadata.version("mlir-fusion")
    assert capsys.readouterr().out.startswith(f"{name}: mlir-fusion {version} (torch-mlir ")
    assert mlir_fusion.__version__ == version


def test_a_passs_time_is_told_with_its_stage(tmp_path):
    program = tmp_path / "program.mlir"
    program.write_text("func.func @f(%x: tensor<4xf32>) -> tensor<4xf32> {\n  return %x : tensor<4xf32>\n}\n")
    command = [sys.executable, "-m", "mlir_fusion.tools.fusion_opt", "--mlir-timing", str(program)]
    done = subprocess.run(command, capture_output=True, text=True, check=True)
    lines = done.stderr.splitlines()
    stages = [line for line in lines if line.startswith("stage ")]
    assert stages == ["stage linalg:", "stage region:"]
    assert lines.index("stage region:") > next(n for n, line in enumerate(lines) if "FusionNormalize" in line)
    assert lines[-1].startswith("in all: ")
