"""What can go wrong around the compiler: a clear message, nothing half written, and the next call works.

The cache's own faults (torn entries, a folder that can't be written) are in test_driver_cache.py, and compiles that are
killed in test_cache_stress.py.
"""

from __future__ import annotations

import os
import resource
import signal
import subprocess
import sys
import time
from pathlib import Path
from types import SimpleNamespace

import pytest
import torch
from mlir_fusion.driver.cached_stages import forget_stages
from mlir_fusion.driver.kernel_code import forget_kernels
from mlir_fusion.runtime.cuda import CudaLauncher, started
from mlir_fusion.targets.ptxas import AssemblerError, assemble
from mlir_fusion.targets.target import Target
from mlir_fusion.tools.fusion_opt import main
from test_runtime_launchers import LAUNCH, RecordingDriver

import mlir_fusion

PROGRAM = """
func.func @main(%x: tensor<8xf32>) -> tensor<8xf32> {
  %0 = tensor.empty() : tensor<8xf32>
  %y = linalg.exp ins(%x : tensor<8xf32>) outs(%0 : tensor<8xf32>) -> tensor<8xf32>
  return %y : tensor<8xf32>
}
"""
FUSION_OPT = [sys.executable, "-m", "mlir_fusion.tools.fusion_opt"]


def double_exp(x: torch.Tensor) -> torch.Tensor:
    return x.exp() * 2


def files(folder: Path) -> list[str]:
    """Every file below a folder."""
    return sorted(path.name for path in folder.rglob("*") if path.is_file())


def check_compiles(target: str = "cpu") -> None:
    """A program that no cache in memory has compiles, and is right."""
    forget_stages()
    forget_kernels()
    x = torch.randn(5, 7, dtype=torch.float64)
    torch.testing.assert_close(mlir_fusion.compile(double_exp, target=target)(x), double_exp(x))


# -- an interrupt in the middle of compiling


INTERRUPTED = (
    "mlir_fusion.passes.fusion_normalize.FusionNormalize.run",
    "mlir_fusion.passes.fusion_schedule.FusionSchedule.run",
    "mlir_fusion.passes.fusion_to_cpu.FusionToCpu.run",
    "mlir_fusion.driver.lower.run_stage",
    "mlir_fusion.runtime.disk_cache.os.replace",
)


@pytest.mark.parametrize("place", INTERRUPTED)
def test_an_interrupt_while_compiling(place: str, cold: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def interrupt(*_: object) -> None:
        raise KeyboardInterrupt

    with monkeypatch.context() as patch:
        patch.setattr(place, interrupt)
        with pytest.raises(KeyboardInterrupt):
            mlir_fusion.compile(double_exp, target="cpu")(torch.randn(5, 7, dtype=torch.float64))
    assert not [name for name in files(cold) if name.startswith(".tmp-")]
    check_compiles()


def heed_interrupts() -> None:
    """What a shell starts in the background ignores them, and so do its children."""
    signal.signal(signal.SIGINT, signal.SIG_DFL)


def test_an_interrupted_command_writes_nothing(tmp_path: Path) -> None:
    output = tmp_path / "out.mlir"
    command = subprocess.Popen(
        [*FUSION_OPT, "-", "-o", str(output)],
        stdin=subprocess.PIPE,
        stderr=subprocess.PIPE,
        preexec_fn=heed_interrupts,
    )
    children = Path(f"/proc/{command.pid}/task/{command.pid}/children")
    while not children.read_text():
        time.sleep(0.05)
    # While the process that does the work waits for its input
    time.sleep(0.5)
    command.send_signal(signal.SIGINT)
    assert command.wait(timeout=120) == 130
    assert command.communicate()[1] == b""
    assert files(tmp_path) == []


# -- a full disk


def limit_files() -> None:
    """As on a disk that is full after 100 bytes of each file: a write beyond fails."""
    signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
    resource.setrlimit(resource.RLIMIT_FSIZE, (100, 100))


def test_output_on_a_full_disk(tmp_path: Path) -> None:
    output = tmp_path / "out.mlir"
    output.write_text("before")
    command = [*FUSION_OPT, "-", "--emit=gpu", "-o", str(output)]
    done = subprocess.run(
        command, input=PROGRAM.encode(), capture_output=True, preexec_fn=limit_files, timeout=120, check=False
    )
    assert (done.returncode, done.stderr.decode()) == (
        1,
        f"fusion-opt: error: can't write {str(output)!r}: File too large\n",
    )
    assert (files(tmp_path), output.read_text()) == (["out.mlir"], "before")


def test_standard_output_on_a_full_disk() -> None:
    with Path("/dev/full").open("wb") as full:
        done = subprocess.run(
            [*FUSION_OPT, "-"], input=PROGRAM.encode(), stdout=full, stderr=subprocess.PIPE, timeout=120, check=False
        )
    message = "fusion-opt: error: can't write standard output: No space left on device\n"
    assert (done.returncode, done.stderr.decode()) == (1, message)


COMPILE_ONCE = """
import torch, mlir_fusion
x = torch.randn(5, 7)
torch.testing.assert_close(mlir_fusion.compile(lambda x: x.exp() * 2, target="cpu")(x), x.exp() * 2)
"""


def test_a_cache_on_a_full_disk(cold: Path) -> None:
    cold.mkdir()
    environment = {**os.environ, "MLIR_FUSION_CACHE_DIR": str(cold)}
    done = subprocess.run(
        [sys.executable, "-c", COMPILE_ONCE],
        env=environment,
        capture_output=True,
        preexec_fn=limit_files,
        timeout=300,
        check=False,
    )
    assert done.returncode == 0, done.stderr.decode()
    assert f"can't keep compiled code in {cold}, going on without: File too large" in done.stderr.decode()
    assert files(cold) == []


def test_an_internal_error_on_a_full_disk(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture) -> None:
    def full(*_: object, **__: object) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr("mlir_fusion.tools.fusion_opt.read_chunks", lambda *_: 1 // 0)
    monkeypatch.setattr("tempfile.NamedTemporaryFile", full)
    assert main(["-"]) == 1
    message = "fusion-opt: error: internal error: ZeroDivisionError: "
    errors = capsys.readouterr().err
    assert errors.startswith(message)
    assert errors.endswith("its traceback can't be kept: No space left on device\n")


# -- no assembler


def test_no_assembler(monkeypatch: pytest.MonkeyPatch, tmp_path: Path, capsys: pytest.CaptureFixture) -> None:
    source = tmp_path / "program.mlir"
    source.write_text(PROGRAM)
    monkeypatch.setattr("mlir_fusion.targets.ptxas.find_ptxas", lambda: None)
    assert main([str(source), "--emit=cubin", "-o", str(tmp_path / "out.cubin")]) == 1
    assert capsys.readouterr().err == (
        "fusion-opt: error: ptxas was not found: install the package nvidia-cuda-nvcc, or set MLIR_FUSION_PTXAS or "
        "CUDA_HOME\n"
    )
    assert files(tmp_path) == ["program.mlir"]


def test_an_assembler_without_a_disk(monkeypatch: pytest.MonkeyPatch) -> None:
    def full(*_: object, **__: object) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr("mlir_fusion.targets.ptxas.find_ptxas", lambda: Path("ptxas"))
    monkeypatch.setattr("tempfile.mkdtemp", full)
    with pytest.raises(AssemblerError, match=r"none can be written: .*No space left on device"):
        assemble("", Target.parse("sm_90"))


# -- drivers and GPUs


class Answering(RecordingDriver):
    """Fails where told to, with a status that it calls `name`."""

    def __init__(self, failing: str, name: str) -> None:
        super().__init__(failing)
        self.name = name

    def cuGetErrorName(self, status: object) -> tuple:  # noqa: N802
        return 0, self.name.encode()

    def cuGetErrorString(self, status: object) -> tuple:  # noqa: N802
        return 0, b"in the driver's words"


@pytest.mark.parametrize(
    ("failing", "name", "remedy"),
    [
        ("load", "CUDA_ERROR_UNSUPPORTED_PTX_VERSION", "the driver is older than the PTX: update it"),
        ("load", "CUDA_ERROR_NO_BINARY_FOR_GPU", "the kernels are for another generation of GPUs"),
        ("load", "CUDA_ERROR_INVALID_PTX", "the PTX is for another generation of GPUs, or wrong"),
        ("retain", "CUDA_ERROR_NOT_INITIALIZED", "a process forked from one that uses a GPU can't use it"),
    ],
)
def test_what_the_driver_refuses(failing: str, name: str, remedy: str) -> None:
    launcher = CudaLauncher("ptx", Answering(failing, name))
    with pytest.raises(RuntimeError, match=f"failed: {name}: in the driver's words; {remedy}"):
        launcher.function(LAUNCH, 0)


def test_no_gpu() -> None:
    with pytest.raises(RuntimeError, match=r"starting CUDA failed: CUDA_ERROR_NO_DEVICE: .*; there is no GPU"):
        started(Answering("init", "CUDA_ERROR_NO_DEVICE"))


def test_no_driver() -> None:
    def init(_: int) -> tuple:
        raise RuntimeError("Failed to dlopen libcuda.so.1")

    with pytest.raises(RuntimeError, match=r"there is no NVIDIA driver \(Failed to dlopen libcuda.so.1\)"):
        started(SimpleNamespace(cuInit=init))  # pyright: ignore[reportArgumentType]


def test_no_gpu_where_one_is_asked_for(cold: Path) -> None:
    if torch.cuda.is_available():
        pytest.skip("there is a GPU")
    with pytest.raises(ValueError, match="the tensors are on the CPU: this machine has no GPU for PyTorch"):
        mlir_fusion.compile(double_exp, target="sm_90")(torch.randn(4))
    check_compiles()


# -- fork after use


FORK = """
import os, sys, torch, mlir_fusion
torch.set_num_threads(1)
double, x = mlir_fusion.compile(lambda x: x.exp() * 2, target="cpu"), torch.randn(5, 7)
double(x)
child = os.fork()
torch.testing.assert_close(double(x), x.exp() * 2)
torch.testing.assert_close(mlir_fusion.compile(lambda x: x.sin() + 3, target="cpu")(x), x.sin() + 3)
if child:
    sys.exit(os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]))
"""


def test_a_fork_after_use() -> None:
    done = subprocess.run([sys.executable, "-c", FORK], capture_output=True, timeout=300, check=False)
    assert done.returncode == 0, done.stderr.decode()
