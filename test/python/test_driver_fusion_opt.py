"""The command line of fusion-opt: what users get wrong, output that is whole or absent, and no torch."""

import io
import os
import subprocess
import sys
from pathlib import Path

import pytest
from mlir_fusion.dialects.mlir import ir
from mlir_fusion.driver.options import declarations
from mlir_fusion.passes.fusion_normalize import FusionNormalize
from mlir_fusion.tools.fusion_opt import main

PROGRAM = """
func.func @main(%x: tensor<8xf32>) -> tensor<8xf32> {
  %0 = tensor.empty() : tensor<8xf32>
  %y = linalg.exp ins(%x : tensor<8xf32>) outs(%0 : tensor<8xf32>) -> tensor<8xf32>
  return %y : tensor<8xf32>
}
"""


@pytest.fixture
def program(tmp_path: Path) -> str:
    path = tmp_path / "program.mlir"
    path.write_text(PROGRAM)
    return str(path)


ALLOWED_TARGETS = "allowed: cpu, simt, sm_80, sm_90, sm_90a, sm_100"


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (
            ["--fusion=dataflw"],
            "unknown value of --fusion 'dataflw', did you mean 'dataflow'?; allowed: consecutive, dataflow, none",
        ),
        (["--target=sm_9"], f"unknown value of --target 'sm_9', did you mean 'sm_90'?; {ALLOWED_TARGETS}"),
        (
            ["--emit=kernels"],
            "unknown value of --emit 'kernels', did you mean 'kernel'?; "
            "allowed: linalg, region, kernel, gpu, nvvm, llvm, ptx, cubin",
        ),
        (["--report=jsn"], "unknown value of --report 'jsn', did you mean 'json'?; allowed: json, table"),
        (["--verify-each=no"], "unknown value of --verify-each 'no'; allowed: true, 1, false, 0"),
        (
            ["--target=cpu", "--emit=ptx"],
            "target cpu has no stage 'ptx'; its stages: linalg, region, kernel, gpu, llvm",
        ),
        (
            ["--enable=matmull"],
            "command line: unknown option 'matmull', did you mean 'matmul'?; allowed: "
            + ", ".join(option.name for option in declarations()),
        ),
        (
            ["--enable=horizontal", "--disable=horizontal"],
            "command line: option 'horizontal' is given twice, as True and as False",
        ),
        (["--fusoin=dataflow"], "unknown flag '--fusoin', did you mean '--fusion'?"),
        (["--fusion"], "argument --fusion: expected one argument"),
        (["another.mlir"], "fusion-opt takes FILE, got 'another.mlir' as well"),
        (
            ["--fusion=none", "--pass-pipeline=cse"],
            "--fusion and --pass-pipeline can't be given together: "
            "write the fusion pass, or fusion-pipeline{fusion=...}, in the pipeline",
        ),
        (
            ["--report=json", "--emit=ptx"],
            "--report and --emit can't be given together: a report is printed instead of IR",
        ),
        (
            ["--pass-pipeline=csee"],
            "pass pipeline: unknown pass 'csee', did you mean 'cse'?\n  csee\n  ^",
        ),
        (
            ["--pass-pipeline=fusion-pipeline{emit=ptx},cse"],
            "fusion-pipeline ends in machine code here, so nothing can follow it",
        ),
        (["--mlir-print-ir-tree-dir=/dev/null/x"], "can't write the IR to '/dev/null/x': Not a directory"),
        (["--mlir-print-ir-tree-dir=/dev/null"], "can't write the IR to '/dev/null': it is not a folder"),
        (
            ["--canonicalize"],
            "canonicalize is a pass, no flag: --pass-pipeline='builtin.module(canonicalize)' runs it",
        ),
        (
            ["-fusion-dataflow=x"],
            "fusion-dataflow is a pass, no flag: --pass-pipeline='builtin.module(fusion-dataflow)' runs it",
        ),
        (["--report", "x.mlir"], "--report took the file 'x.mlir' as its value: write --report=VALUE, then the file"),
        (
            ["--pass-pipeline", "x.mlir"],
            "--pass-pipeline took the file 'x.mlir' as its value: write --pass-pipeline=VALUE, then the file",
        ),
        (["-o", "/nowhere/out"], "can't write '/nowhere/out': No such file or directory"),
    ],
)
def test_a_mistake_is_one_message_and_status_1(arguments, message, program, capsys):
    assert main([program, *arguments]) == 1
    output, errors = capsys.readouterr()
    assert output == ""
    assert errors == f"fusion-opt: error: {message}\n"


def test_a_missing_file(tmp_path, capsys):
    assert main([str(tmp_path / "absent.mlir")]) == 1
    assert capsys.readouterr().err == (
        f"fusion-opt: error: can't read '{tmp_path}/absent.mlir': No such file or directory\n"
    )


def test_a_folder_is_no_file(tmp_path, capsys):
    assert main([str(tmp_path)]) == 1
    assert capsys.readouterr().err == f"fusion-opt: error: can't read '{tmp_path}': Is a directory\n"


@pytest.mark.parametrize("content", [b"\x7fELF\x00\xff\xfe", b"\xff\xff\xff", b"func.func @f("])
def test_what_is_no_mlir_is_a_diagnostic(content, tmp_path, capsys):
    path = tmp_path / "garbage.mlir"
    path.write_bytes(content)
    assert main([str(path)]) == 1
    errors = capsys.readouterr().err
    assert errors.startswith(f"{path}:1:")
    assert ": error: " in errors


def test_an_empty_file_is_an_empty_module(tmp_path, capfdbinary):
    path = tmp_path / "empty.mlir"
    path.write_bytes(b"")
    assert main([str(path)]) == 0
    assert capfdbinary.readouterr().out == b"module {\n}\n"


def test_what_can_not_be_compiled_is_a_diagnostic(tmp_path, capsys):
    path = tmp_path / "loop.mlir"
    path.write_text("func.func @f(%f: f32) -> f32 {\n  %g = math.exp %f : f32\n  return %g : f32\n}\n")
    assert main([str(path), "--emit=ptx"]) == 1
    assert capsys.readouterr().err.startswith(f"{path}:2:8: error: 'math.exp' ")


def test_standard_input(monkeypatch, capfdbinary):
    monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO(b"func.func @f(")))
    assert main(["-"]) == 1
    assert capfdbinary.readouterr().err.startswith(b"<stdin>:1:13: error: ")


def test_output_replaces_a_file_only_when_all_went_well(program, tmp_path):
    output = tmp_path / "out.mlir"
    output.write_text("before")
    output.chmod(0o640)
    assert main([program, "--emit=linalg", "-o", str(output)]) == 0
    assert "math.exp" in output.read_text()
    assert output.stat().st_mode & 0o777 == 0o640
    assert main([program, "--pass-pipeline=func.func(csee)", "-o", str(output)]) == 1
    assert "math.exp" in output.read_text()
    assert sorted(path.name for path in tmp_path.iterdir()) == ["out.mlir", "program.mlir"]


def test_an_output_that_can_not_be_replaced_leaves_nothing(program, tmp_path, capsys):
    folder = tmp_path / "folder"
    folder.mkdir()
    assert main([program, "-o", str(folder)]) == 1
    assert "can't write" in capsys.readouterr().err
    assert list(folder.iterdir()) == []


def test_options_of_the_environment_are_below_the_command_line(program, monkeypatch, capfdbinary):
    monkeypatch.setenv("MLIR_FUSION_OPTIONS", "fusion_type=none,target=cpu")
    assert main([program, "--report=json"]) == 0
    assert b'"fusion_type": "none"' in capfdbinary.readouterr().out
    assert main([program, "--report=json", "--fusion=dataflow"]) == 0
    assert b'"fusion_type": "dataflow"' in capfdbinary.readouterr().out


def test_a_mistake_in_the_environment_is_told(program, monkeypatch, capsys):
    monkeypatch.setenv("MLIR_FUSION_ENABLE", "horizontl")
    assert main([program]) == 1
    assert capsys.readouterr().err.startswith("fusion-opt: error: MLIR_FUSION_ENABLE: unknown option 'horizontl'")


def test_a_bug_of_ours_names_the_stage_and_repeats(program, monkeypatch, tmp_path, capsys):
    def fail(self: FusionNormalize, module: ir.Module) -> None:
        raise KeyError("lost")

    monkeypatch.setattr(FusionNormalize, "run", fail)
    monkeypatch.setenv("MLIR_FUSION_DUMP", str(tmp_path / "dump"))
    assert main([program]) == 1
    errors = capsys.readouterr().err
    first, *_, repeat = errors.splitlines()
    assert first == "fusion-opt: error: internal error in stage 'linalg', pass 'fusion-normalize': KeyError: 'lost'"
    assert "Traceback" not in errors
    (folder,) = (tmp_path / "dump").iterdir()
    assert "linalg.exp" in (folder / "input.mlir").read_text()
    assert "KeyError: 'lost'" in (folder / "traceback.txt").read_text()
    assert repeat.startswith(f"To repeat: fusion-opt {folder}/input.mlir --pass-pipeline='builtin.module(")
    assert "fusion-normalize" in repeat


def test_a_bug_outside_any_pass_is_no_traceback(program, monkeypatch, capsys):
    monkeypatch.setattr("mlir_fusion.tools.fusion_opt.emit_text", lambda *_: 1 // 0)
    assert main([program]) == 1
    errors = capsys.readouterr().err
    assert errors.startswith("fusion-opt: error: internal error: ZeroDivisionError: ")
    assert "Traceback" not in errors


def test_starting_imports_no_torch(program):
    script = (
        "import sys\nfrom mlir_fusion.tools.fusion_opt import main\n"
        f"assert main([{program!r}, '--emit=ptx', '-o', {os.devnull!r}]) == 0\n"
        "sys.exit('torch' in sys.modules)"
    )
    subprocess.run([sys.executable, "-c", script], check=True, timeout=60)


def test_a_reader_that_leaves_early_is_no_error_message(program):
    command = f"{sys.executable} -m mlir_fusion.tools.fusion_opt {program} | true"
    done = subprocess.run(command, shell=True, capture_output=True, timeout=60, check=True)
    assert done.stderr == b""
