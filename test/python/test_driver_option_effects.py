"""Every option changes what happens: at the stage that its declaration names, and at no earlier one.

The keys of the caches rest on the second half, so it is asked of every option and value.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import ClassVar

import pytest
from mlir_fusion.dialects.mlir import ir
from mlir_fusion.driver import lower
from mlir_fusion.driver.build import emit_text
from mlir_fusion.driver.errors import InternalError
from mlir_fusion.driver.kernel_code import PtxCode
from mlir_fusion.driver.launchers import make_launcher
from mlir_fusion.driver.options import AFFECTED, Declaration, Options, Value, declarations
from mlir_fusion.driver.runner import make_context
from mlir_fusion.driver.stages import Stage, stages
from mlir_fusion.passes.pass_base import Pass
from mlir_fusion.runtime.cuda import CudaLauncher
from mlir_fusion.runtime.cuda_graph import GraphLauncher

F32 = """
func.func @main(%a: tensor<64x64xf32>, %b: tensor<8x8xf32>) -> (tensor<64x64xf32>, tensor<64x64xf32>, tensor<8x8xf32>) {
  %0 = tensor.empty() : tensor<64x64xf32>
  %e = linalg.exp ins(%a : tensor<64x64xf32>) outs(%0 : tensor<64x64xf32>) -> tensor<64x64xf32>
  %s = linalg.add ins(%e, %a : tensor<64x64xf32>, tensor<64x64xf32>) outs(%0 : tensor<64x64xf32>) -> tensor<64x64xf32>
  %c = "fusion.extern"(%s) {op = "aten.cos.default", args = [#fusion.operand<0>]}
    : (tensor<64x64xf32>) -> tensor<64x64xf32>
  %f = linalg.exp ins(%c : tensor<64x64xf32>) outs(%0 : tensor<64x64xf32>) -> tensor<64x64xf32>
  %g = linalg.add ins(%f, %c : tensor<64x64xf32>, tensor<64x64xf32>) outs(%0 : tensor<64x64xf32>) -> tensor<64x64xf32>
  %zero = arith.constant 0.0 : f32
  %1 = tensor.empty() : tensor<8x8xf32>
  %z = linalg.fill ins(%zero : f32) outs(%1 : tensor<8x8xf32>) -> tensor<8x8xf32>
  %m = linalg.matmul ins(%b, %b : tensor<8x8xf32>, tensor<8x8xf32>) outs(%z : tensor<8x8xf32>) -> tensor<8x8xf32>
  return %s, %g, %m : tensor<64x64xf32>, tensor<64x64xf32>, tensor<8x8xf32>
}
"""
SIBLINGS = """
func.func @main(%a: tensor<64xf32>) -> (tensor<64xf32>, tensor<64xf32>) {
  %0 = tensor.empty() : tensor<64xf32>
  %e = linalg.exp ins(%a : tensor<64xf32>) outs(%0 : tensor<64xf32>) -> tensor<64xf32>
  %s = linalg.log ins(%a : tensor<64xf32>) outs(%0 : tensor<64xf32>) -> tensor<64xf32>
  return %e, %s : tensor<64xf32>, tensor<64xf32>
}
"""
HALF = """
#id = affine_map<(i) -> (i)>
func.func @main(%a: tensor<64xf16>, %b: tensor<64xf16>) -> tensor<64xf16> {
  %0 = tensor.empty() : tensor<64xf16>
  %r = linalg.generic {indexing_maps = [#id, #id, #id], iterator_types = ["parallel"]}
      ins(%a, %b : tensor<64xf16>, tensor<64xf16>) outs(%0 : tensor<64xf16>) {
  ^bb0(%x: f16, %y: f16, %o: f16):
    %p = arith.mulf %x, %y : f16
    %s = arith.addf %p, %x : f16
    %e = math.exp %s : f16
    linalg.yield %e : f16
  } -> tensor<64xf16>
  return %r : tensor<64xf16>
}
"""
EPILOGUE = """
func.func @main(%a: tensor<8x16xf32>, %b: tensor<16x8xf32>) -> tensor<8x8xf32> {
  %zero = arith.constant 0.0 : f32
  %0 = tensor.empty() : tensor<8x8xf32>
  %z = linalg.fill ins(%zero : f32) outs(%0 : tensor<8x8xf32>) -> tensor<8x8xf32>
  %m = linalg.matmul ins(%a, %b : tensor<8x16xf32>, tensor<16x8xf32>) outs(%z : tensor<8x8xf32>) -> tensor<8x8xf32>
  %e = linalg.exp ins(%m : tensor<8x8xf32>) outs(%0 : tensor<8x8xf32>) -> tensor<8x8xf32>
  return %e : tensor<8x8xf32>
}
"""
COLUMNS = """
func.func @main(%a: tensor<64x30720xf32>) -> tensor<30720xf32> {
  %0 = tensor.empty() : tensor<30720xf32>
  %zero = arith.constant 0.0 : f32
  %z = linalg.fill ins(%zero : f32) outs(%0 : tensor<30720xf32>) -> tensor<30720xf32>
  %s = linalg.reduce { arith.addf } ins(%a : tensor<64x30720xf32>) outs(%z : tensor<30720xf32>) dimensions = [0]
  return %s : tensor<30720xf32>
}
"""
RECOMPUTED = """
func.func @main(%x: tensor<64x64xf16>, %a: tensor<64x64xf32>) -> (tensor<64x64xf32>, tensor<64x64xf32>) {
  %0 = tensor.empty() : tensor<64x64xf32>
  %y = linalg.generic {indexing_maps = [affine_map<(i, j) -> (i, j)>, affine_map<(i, j) -> (i, j)>],
      iterator_types = ["parallel", "parallel"]} ins(%x : tensor<64x64xf16>) outs(%0 : tensor<64x64xf32>) {
  ^bb0(%in: f16, %out: f32):
    %w = arith.extf %in : f16 to f32
    linalg.yield %w : f32
  } -> tensor<64x64xf32>
  %u = linalg.add ins(%y, %a : tensor<64x64xf32>, tensor<64x64xf32>) outs(%0 : tensor<64x64xf32>) -> tensor<64x64xf32>
  %c = "fusion.extern"(%u) {op = "aten.cos.default", args = [#fusion.operand<0>]}
    : (tensor<64x64xf32>) -> tensor<64x64xf32>
  %v = linalg.mul ins(%y, %c : tensor<64x64xf32>, tensor<64x64xf32>) outs(%0 : tensor<64x64xf32>) -> tensor<64x64xf32>
  return %c, %v : tensor<64x64xf32>, tensor<64x64xf32>
}
"""
CALL = "(tensor<8x8xf32>, tensor<8x8xf32>) -> tensor<8x8xf32>"
EARLY = f"""
func.func @main(%a: tensor<8x8xf32>, %w: tensor<8x8xf32>) -> tensor<8x8xf32> {{
  %e = tensor.empty() : tensor<8x8xf32>
  %p = linalg.exp ins(%a : tensor<8x8xf32>) outs(%e : tensor<8x8xf32>) -> tensor<8x8xf32>
  %s = "fusion.extern"(%p, %w) {{op = "aten.mm.default", args = [#fusion.operand<0>, #fusion.operand<1>]}} : {CALL}
  %q = linalg.log ins(%a : tensor<8x8xf32>) outs(%e : tensor<8x8xf32>) -> tensor<8x8xf32>
  %t = "fusion.extern"(%s, %q) {{op = "aten.mm.default", args = [#fusion.operand<0>, #fusion.operand<1>]}} : {CALL}
  %r = linalg.abs ins(%a : tensor<8x8xf32>) outs(%e : tensor<8x8xf32>) -> tensor<8x8xf32>
  %u = "fusion.extern"(%t, %r) {{op = "aten.mm.default", args = [#fusion.operand<0>, #fusion.operand<1>]}} : {CALL}
  %x = linalg.ceil ins(%a : tensor<8x8xf32>) outs(%e : tensor<8x8xf32>) -> tensor<8x8xf32>
  %v = "fusion.extern"(%u, %x) {{op = "aten.mm.default", args = [#fusion.operand<0>, #fusion.operand<1>]}} : {CALL}
  return %v : tensor<8x8xf32>
}}
"""

LONG_ROWS = """
#map = affine_map<(d0, d1) -> (d0, d1)>
#row = affine_map<(d0, d1) -> (d0)>
func.func @main(%a: tensor<4096x32768xf32>) -> tensor<4096x32768xf32> {
  %zero = arith.constant 0.0 : f32
  %0 = tensor.empty() : tensor<4096xf32>
  %1 = tensor.empty() : tensor<4096x32768xf32>
  %z = linalg.fill ins(%zero : f32) outs(%0 : tensor<4096xf32>) -> tensor<4096xf32>
  %s = linalg.generic {indexing_maps = [#map, #row], iterator_types = ["parallel", "reduction"]}
      ins(%a : tensor<4096x32768xf32>) outs(%z : tensor<4096xf32>) {
  ^bb0(%x: f32, %o: f32):
    %t = arith.addf %x, %o : f32
    linalg.yield %t : f32
  } -> tensor<4096xf32>
  %r = linalg.generic {indexing_maps = [#map, #row, #map], iterator_types = ["parallel", "parallel"]}
      ins(%a, %s : tensor<4096x32768xf32>, tensor<4096xf32>) outs(%1 : tensor<4096x32768xf32>) {
  ^bb0(%x: f32, %m: f32, %o: f32):
    %t = arith.subf %x, %m : f32
    linalg.yield %t : f32
  } -> tensor<4096x32768xf32>
  return %r : tensor<4096x32768xf32>
}
"""

DATAFLOW = Options(fusion_type="dataflow")
SHOWN: dict[str, tuple[str, Options, Value, str]] = {
    "fusion_type": (F32, Options(), "none", "region"),
    "target": (F32, Options(), "cpu", "gpu"),
    "horizontal": (SIBLINGS, DATAFLOW, False, "region"),
    "memory_aware": (EARLY, DATAFLOW, False, "region"),
    "recompute": (RECOMPUTED, DATAFLOW, False, "region"),
    "max_region_ops": (F32, Options(), 1, "region"),
    "optimization_fuel": (F32, Options(), 1, "region"),
    "deterministic": (COLUMNS, Options(target="sm_100"), True, "kernel"),
    "matmul": (F32, Options(), "auto", "linalg"),
    "matmul_epilogue": (EPILOGUE, Options(matmul="on"), False, "kernel"),
    "fma": (HALF, Options(), False, "linalg"),
    "fast_math": (HALF, Options(), "off", "linalg"),
    "vectorize": (F32, Options(), False, "kernel"),
    "cluster": (LONG_ROWS, DATAFLOW, False, "kernel"),
    "persistent": (LONG_ROWS, replace(DATAFLOW, cluster=False), False, "kernel"),
    "index32": (F32, Options(), False, "gpu"),
    "kernel_reuse": (F32, Options(), False, "gpu"),
}
"""By option: a program that shows it, options that it differs from in the value given, and the stage to look at."""

ELSEWHERE = {
    "autotune": "test_autotune.py",
    "cuda_graphs": "test_cuda_graphs_launch_at_once",
    "disk_cache": "test_driver_cache.py",
    "disk_cache_mib": "test_driver_cache.py",
    "eager_random": "test_random_numbers.py",
    "verify_each": "test_verify_each_looks_between_passes",
}
STAGES_OF = {"fusion": ("import", "linalg", "region"), "segment": ("segment",), "schedule": ("schedule", "kernel")}
"""The compiler's stages by what options say they affect; what is not here is codegen."""


def test_every_option_is_shown():
    assert {*SHOWN, *ELSEWHERE} == {option.name for option in declarations()}


@pytest.mark.parametrize("name", SHOWN)
def test_an_option_changes_the_program_at_its_stage(name: str):
    program, options, value, emit = SHOWN[name]
    texts = [_emit(program, changed, emit) for changed in (options, replace(options, **{name: value}))]
    assert texts[0] != texts[1]


def test_fast_math_reaches_f32_only_if_it_is_on():
    assert "afn" not in str(_emit(F32, Options(), "linalg"))
    assert "afn" in str(_emit(F32, Options(fast_math="on"), "linalg"))


@pytest.mark.parametrize("option", declarations(), ids=lambda option: option.name)
@pytest.mark.parametrize("options", [Options(), DATAFLOW, Options(target="cpu")], ids=["gpu", "dataflow", "cpu"])
def test_an_option_affects_no_stage_before_the_one_it_names(option: Declaration, options: Options):
    for value in _values(option):
        changed = replace(options, **{option.name: value})
        for before, after in zip(stages(options), stages(changed), strict=True):
            if _rank(before.name) < AFFECTED.index(option.stage):
                assert before.passes == after.passes


@pytest.mark.parametrize("fusion_type", ["consecutive", "dataflow"])
def test_fuel_counts_the_fusions_one_by_one(fusion_type: str):
    unlimited = _regions(Options(fusion_type=fusion_type))
    none = _regions(Options(fusion_type="none"))
    assert _regions(Options(fusion_type=fusion_type, optimization_fuel=0)) == none
    counts = [
        _regions(Options(fusion_type=fusion_type, optimization_fuel=fuel)) for fuel in range(none - unlimited + 1)
    ]
    assert counts == list(range(none, unlimited - 1, -1))


@dataclass(frozen=True)
class Retype(Pass):
    """Gives the function another type, which is not that of its body."""

    name: ClassVar[str] = "retype"
    to: str = "() -> ()"

    def run(self, module: ir.Module) -> None:
        attributes = module.body.operations[0].operation.attributes
        attributes["function_type"] = ir.TypeAttr.get(ir.Type.parse(self.to))


def test_verify_each_looks_between_passes(monkeypatch):
    passes = (Retype(), Retype("(tensor<64xf32>) -> (tensor<64xf32>, tensor<64xf32>)"))
    monkeypatch.setattr(lower, "stages", lambda _: (Stage("linalg", passes, ("linalg.", "tensor.", "func.")),))
    _emit(SIBLINGS, Options(), "linalg")
    with pytest.raises(InternalError, match="retype"):
        _emit(SIBLINGS, Options(verify_each=True), "linalg")


def test_what_is_deterministic_is_the_same_on_every_gpu():
    for program in (COLUMNS, F32):
        texts = {
            str(_emit(program, Options(target=target, deterministic=True), "kernel"))
            for target in ("sm_80", "sm_90", "sm_90a", "sm_100")
        }
        assert len(texts) == 1
    assert _emit(COLUMNS, Options(target="sm_80"), "kernel") != _emit(COLUMNS, Options(target="sm_100"), "kernel")


def test_cuda_graphs_launch_at_once():
    code = PtxCode({})
    assert isinstance(make_launcher(code, Options(cuda_graphs=True)), GraphLauncher)
    assert isinstance(make_launcher(code, Options()), CudaLauncher)


def _regions(options: Options) -> int:
    return str(_emit(F32, replace(options, recompute=False), "region")).count('"fusion.region"')


def _rank(stage: str) -> int:
    found = (AFFECTED.index(affected) for affected, names in STAGES_OF.items() if stage in names)
    return next(found, AFFECTED.index("codegen"))


def _values(option: Declaration) -> tuple[Value, ...]:
    if isinstance(option.default, bool):
        return (not option.default,)
    return option.choices or (option.at_least, option.at_most)


def _emit(program: str, options: Options, emit: str) -> str | bytes:
    with make_context():
        return emit_text(ir.Module.parse(program), options, emit)
