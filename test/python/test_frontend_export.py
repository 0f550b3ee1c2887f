"""Programs compiled ahead of time: written to a file, loaded in another process, called; and files that are refused."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pytest
import torch
import torch.nn.functional as F
from mlir_fusion.driver.package import FORMAT, MAGIC, PackageError
from torch import Tensor, nn

import mlir_fusion

RUN = """
import sys, time, torch
from mlir_fusion.targets import cpu
def compile_object(*_): raise AssertionError("something is compiled")
cpu.compile_object = cpu.compile_conversions = compile_object
import mlir_fusion
model = mlir_fusion.load(sys.argv[1])
inputs = torch.load(sys.argv[2])
torch.save([model(*inputs) for _ in range(2)], sys.argv[3])
compilers = [name for name in sys.modules if name in ("mlir_fusion.driver.build", "mlir_fusion.frontend.importer")]
assert not compilers, compilers
"""


class Counter(nn.Module):
    """Buffers that change, tied weights, a keyword, numbers and None among the results."""

    def __init__(self) -> None:
        super().__init__()
        self.first, self.norm = nn.Linear(5, 5), nn.BatchNorm1d(5)
        self.second = nn.Linear(5, 5)
        self.second.weight = self.first.weight
        self.register_buffer("calls", torch.zeros((), dtype=torch.int64))

    def forward(self, x: Tensor, y: Tensor | None = None, *, scale: int = 2) -> dict:
        self.calls += 1
        h = F.gelu(self.second(self.norm(self.first(x)))) * scale
        return {"h": h, "more": (h.sum(), None if y is None else y + 1), "number": 3}


@pytest.fixture(scope="module")
def example(tmp_path_factory):
    """(path of the file, the module, as it was when it was exported)."""
    torch.manual_seed(0)
    module, path = Counter(), tmp_path_factory.mktemp("export") / "counter.mfp"
    program = torch.export.export(module, (torch.randn(4, 5),), {"y": torch.randn(3), "scale": 2})
    mlir_fusion.export(program, path, target="cpu")
    return path, module


def test_another_process_runs_it_and_compiles_nothing(tmp_path):
    torch.manual_seed(0)
    module = nn.Sequential(nn.Linear(6, 8), nn.BatchNorm1d(8), nn.GELU(), nn.Linear(8, 3), nn.Softmax(-1))
    x = torch.randn(4, 6)
    for number, fusion_type in enumerate(("consecutive", "dataflow")):
        path, inputs, outputs = (tmp_path / f"{name}{number}" for name in ("model", "inputs", "outputs"))
        mlir_fusion.export(torch.export.export(module, (x,)), path, fusion_type=fusion_type, target="cpu")
        torch.save([x], inputs)
        subprocess.run([sys.executable, "-c", RUN, path, inputs, outputs], check=True)
        for found in torch.load(outputs):
            torch.testing.assert_close(found, module(x).detach())


def test_it_is_like_the_module(example):
    path, module = example
    loaded = mlir_fusion.load(path)
    for _ in range(3):
        x, y = torch.randn(4, 5), torch.randn(3)
        torch.testing.assert_close(loaded(x, y=y, scale=2), module(x, y=y, scale=2), check_device=True)
    torch.testing.assert_close(loaded.state_dict()["norm.running_mean"], module.norm.running_mean)
    assert loaded.state_dict()["calls"].item() == module.calls.item()


def test_a_mutated_input_is_written(tmp_path):
    class Add(nn.Module):
        def forward(self, x: Tensor, y: Tensor) -> Tensor:
            x.add_(y)
            return x * 2

    program = torch.export.export(Add(), (torch.randn(3), torch.randn(3)))
    mlir_fusion.export(program, tmp_path / "add", target="cpu")
    x, y = torch.randn(3), torch.randn(3)
    expected = x + y
    torch.testing.assert_close(mlir_fusion.load(tmp_path / "add")(x, y), expected * 2)
    torch.testing.assert_close(x, expected)


BAD = {
    "size": ((torch.randn(4, 6),), {}, RuntimeError, r"\(x\): expected shape \(4, 5\), got \(4, 6\)"),
    "rank": ((torch.randn(4),), {}, RuntimeError, r"\(x\): expected shape \(4, 5\), got \(4\)"),
    "dtype": ((torch.randn(4, 5, dtype=torch.float64),), {}, RuntimeError, r"\(x\): expected dtype torch.float32"),
    "device": ((torch.randn(4, 5, device="meta"),), {}, RuntimeError, "x: expected a tensor on cpu, got one on meta"),
    "no_tensor": ((3,), {}, TypeError, "x: expected a tensor, got int"),
    "number": ((torch.randn(4, 5),), {"scale": 3}, RuntimeError, "scale: exported for the value 2, got 3"),
    "unknown": ((torch.randn(4, 5),), {"z": 3}, TypeError, "no keyword argument 'z'"),
    "count": ((torch.randn(4, 5), 1), {}, TypeError, "not structured as exported"),
}


@pytest.mark.parametrize(("args", "kwargs", "error", "message"), BAD.values(), ids=BAD)
def test_bad_arguments_are_named_before_anything_runs(example, args, kwargs, error, message):
    loaded = mlir_fusion.load(example[0])
    with pytest.raises(error, match=message):
        loaded(*args, **{"y": torch.randn(3), "scale": 2, **kwargs})
    assert loaded.state_dict()["calls"].item() == 0


def altered(path: Path, folder: Path, content: bytes) -> Path:
    other = folder / path.name
    other.write_bytes(content)
    return other


def test_files_that_are_not_ours_or_not_whole_are_refused(example, tmp_path):
    path, content = example[0], example[0].read_bytes()
    cases = {
        b"": "is empty",
        b"PK\x03\x04 not ours": "no file of mlir_fusion.export",
        MAGIC: "cut off",
        MAGIC + b"999\n" + content[len(MAGIC) + len(str(FORMAT)) + 1 :]: "format 999",
        content[: len(content) // 2]: "cut off",
        content[:-1]: "'weights': it was cut off",
        content.replace(b'"target"', b'"tarjet"'): "checksum of its head",
        content.replace(b"func.func @main", b"func.func @mani", 1): "checksum of section 'host'",
    }
    for changed, message in cases.items():
        assert changed != content
        with pytest.raises(PackageError, match=message):
            mlir_fusion.load(altered(path, tmp_path, changed))


def test_a_file_of_another_version_or_machine_is_refused(example, monkeypatch):
    monkeypatch.setattr("mlir_fusion.frontend.load.versions", lambda: {"mlir-fusion": "9.9"})
    with pytest.raises(PackageError, match=r"made by mlir-fusion .*, this is 9\.9: export it again"):
        mlir_fusion.load(example[0])
    monkeypatch.undo()
    monkeypatch.setattr("mlir_fusion.targets.cpu.host_features", lambda: "+other")
    with pytest.raises(PackageError, match="other features than this machine's"):
        mlir_fusion.load(example[0])


def test_it_is_data(example):
    content = example[0].read_bytes()
    header = json.loads(content.split(b"\n", 3)[2])
    assert set(header["sections"]) >= {"host", "weights", "conversions"}
    assert b"func.func @main" in content
    # Tied weights are there once
    assert header["weights"]["first.weight"] == header["weights"]["second.weight"]


def test_symbolic_sizes_are_refused(tmp_path):
    program = torch.export.export(nn.ReLU(), (torch.randn(4),), dynamic_shapes={"input": {0: torch.export.Dim("n")}})
    with pytest.raises(ValueError, match="only sizes that are numbers"):
        mlir_fusion.export(program, tmp_path / "file")


def test_wrong_options_are_refused(tmp_path):
    program = torch.export.export(nn.ReLU(), (torch.randn(4),))
    with pytest.raises(ValueError, match="fusion"):
        mlir_fusion.export(program, tmp_path / "file", fusion_type="all")
