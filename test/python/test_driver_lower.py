"""From stage to stage: where a module is, what each stage may leave behind, and code at the end."""

import numpy as np
import pytest
from mlir_fusion.dialects.mlir import ir
from mlir_fusion.driver.build import BY_KIND, PtxCode, build, emit_text
from mlir_fusion.driver.errors import InternalError, UserError
from mlir_fusion.driver.levels import LEVELS, detect_level
from mlir_fusion.driver.lower import lower, run
from mlir_fusion.driver.options import Options
from mlir_fusion.driver.report import report
from mlir_fusion.driver.runner import QUIET, make_context
from mlir_fusion.driver.stages import Stage, stages
from mlir_fusion.passes.fusion_normalize import FusionNormalize

PROGRAM = """
func.func @main(%x: tensor<64xf32>) -> (tensor<64xf32>, tensor<64xf32>) {
  %0 = tensor.empty() : tensor<64xf32>
  %y = linalg.exp ins(%x : tensor<64xf32>) outs(%0 : tensor<64xf32>) -> tensor<64xf32>
  %z = "fusion.extern"(%y) {op = "aten.cos.default", args = [#fusion.operand<0>]} : (tensor<64xf32>) -> tensor<64xf32>
  return %y, %z : tensor<64xf32>, tensor<64xf32>
}
"""
CALL_ALONE = """
func.func @main(%x: tensor<64xf32>) -> tensor<64xf32> {
  %z = "fusion.extern"(%x) {op = "aten.cos.default", args = [#fusion.operand<0>]} : (tensor<64xf32>) -> tensor<64xf32>
  return %z : tensor<64xf32>
}
"""
CPU, GPU = Options(target="cpu"), Options(target="sm_90")


def parse(text: str) -> ir.Module:
    with make_context():
        return ir.Module.parse(text)


@pytest.mark.parametrize("options", [CPU, GPU], ids=["cpu", "gpu"])
def test_every_stage_is_recognised_and_can_be_resumed(options: Options):
    module = parse(PROGRAM)
    for stage in stages(options)[1:]:
        module = parse(str(lower(module, options, stage.name)))
        assert detect_level(module) == stage.name


def test_a_program_of_calls_alone_goes_through():
    module = parse(CALL_ALONE)
    for emit in BY_KIND["gpu"][:-2]:
        lower(module, GPU, emit)
    assert "memref<64xf32>" in str(module)
    assert "gpu.module" not in str(module)
    assert build(parse(CALL_ALONE), GPU).code == PtxCode({})


def test_there_is_no_way_back():
    with pytest.raises(UserError, match="the module is at stage 'kernel' already, past 'region'"):
        lower(lower(parse(PROGRAM), GPU, "kernel"), GPU, "region")


def test_an_unknown_stage_names_those_of_the_target():
    with pytest.raises(UserError, match="target cpu has no stage 'nvvm', did you mean"):
        emit_text(parse(PROGRAM), CPU, "nvvm")


def test_what_a_stage_may_not_leave_behind_is_our_fault(tmp_path, monkeypatch):
    monkeypatch.setenv("MLIR_FUSION_DUMP", str(tmp_path))
    stage = Stage("region", (FusionNormalize(),), allowed=("fusion.", "func.return"))
    with pytest.raises(InternalError, match=r"stage 'region', pass 'fusion-normalize'.*'tensor\.empty' can't be in"):
        run(parse(PROGRAM), stage, QUIET)


def test_stages_come_in_the_order_of_levels():
    for options in (CPU, GPU):
        ranks = [LEVELS.index(stage.name) for stage in stages(options)]
        assert ranks == sorted(ranks)


def test_ptx_names_its_kernels():
    code = build(parse(PROGRAM), GPU).code
    assert isinstance(code, PtxCode)
    assert list(code.kernels) == ["exp_0"]
    entry = code.kernels["exp_0"]
    assert f".visible .entry {entry.name}(" in str(entry.image.code)


def test_native_code_computes():
    artifact = build(parse(PROGRAM), CPU)
    assert not isinstance(artifact.code, PtxCode)
    x, y = np.linspace(-2, 2, 64, dtype=np.float32), np.empty(64, np.float32)
    artifact.code.function("exp_0", 2)(x.ctypes.data, y.ctypes.data)
    np.testing.assert_allclose(y, np.exp(x), rtol=1e-6)


@pytest.mark.parametrize("emit", BY_KIND["gpu"][:-1])
def test_equal_programs_give_equal_text(emit: str):
    assert emit_text(parse(PROGRAM), GPU, emit) == emit_text(parse(PROGRAM), GPU, emit)


def test_a_report_counts_the_same_from_any_stage():
    (whole,) = report(parse(PROGRAM), GPU)
    assert (whole.ops, whole.regions, whole.kernels, whole.extern_calls) == (2, 1, 1, 1)
    assert (whole.bytes_moved, whole.peak_bytes, whole.source_peak_bytes) == (1024, 512, 512)
    assert [(kernel.name, kernel.ops, kernel.bytes) for kernel in whole.kernel_list] == [("exp_0", 1, 512)]
    for emit in ("linalg", "region", "kernel"):
        (one,) = report(lower(parse(PROGRAM), GPU, emit), GPU)
        assert (one.kernels, one.extern_calls, one.bytes_moved, one.peak_bytes) == (1, 1, 1024, 512)
        assert one.source_peak_bytes == (512 if emit == "linalg" else None)
