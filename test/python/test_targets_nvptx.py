"""PTX: floating-point semantics, libdevice, the assembler."""

import re
from pathlib import Path

import pytest
from mlir_fusion.dialects.mlir import ir
from mlir_fusion.driver.runner import run_stage
from mlir_fusion.driver.upstream import TO_NVVM
from mlir_fusion.targets import libdevice, toolkit
from mlir_fusion.targets.llvm import CodegenError
from mlir_fusion.targets.lowering import translate
from mlir_fusion.targets.nvptx import (
    AssemblerError,
    Resources,
    assemble,
    compile_to_ptx,
    find_ptxas,
    resource_usage,
)
from mlir_fusion.targets.ptxas import parse_resource_usage
from mlir_fusion.targets.target import Target

GPUS = ["sm_80", "sm_90", "sm_90a", "sm_100"]
SM_90 = Target.parse("sm_90")
needs_ptxas = pytest.mark.skipif(find_ptxas() is None, reason="needs ptxas")

# A block of 256 threads takes a row of 4096: 8 elements at a time, twice
SOFTMAX = """
module attributes {gpu.container_module} { gpu.module @kernels {
  gpu.func @softmax(%x: memref<128x4096xbf16> {llvm.noalias, llvm.readonly}, %y: memref<128x4096xbf16>)
      workgroup(%partial: memref<8xf32, #gpu.address_space<workgroup>>)
      kernel attributes {known_block_size = array<i32: 256, 1, 1>} {
    %c0 = arith.constant 0 : index
    %c1 = arith.constant 1 : index
    %c2 = arith.constant 2 : index
    %c8 = arith.constant 8 : index
    %c32 = arith.constant 32 : index
    %c2048 = arith.constant 2048 : index
    %low = arith.constant 0xFF800000 : f32
    %log2e = arith.constant dense<1.44269504> : vector<8xf32>
    %distance = arith.constant 16 : i32
    %width = arith.constant 32 : i32
    %row = gpu.block_id x
    %thread = gpu.thread_id x
    %start = arith.muli %thread, %c8 : index
    %mine = scf.for %i = %c0 to %c2 step %c1 iter_args(%m = %low) -> (f32) {
      %chunk = arith.muli %i, %c2048 : index
      %column = arith.addi %start, %chunk : index
      %v = vector.load %x[%row, %column] {alignment = 16} : memref<128x4096xbf16>, vector<8xbf16>
      %f = arith.extf %v : vector<8xbf16> to vector<8xf32>
      %r = vector.reduction <maximumf>, %f, %m : vector<8xf32> into f32
      scf.yield %r : f32
    }
    %other, %valid = gpu.shuffle xor %mine, %distance, %width : f32
    %warp_max = arith.maximumf %mine, %other : f32
    %lane = arith.remui %thread, %c32 : index
    %warp = arith.divui %thread, %c32 : index
    %is_first = arith.cmpi eq, %lane, %c0 : index
    scf.if %is_first {
      memref.store %warp_max, %partial[%warp] : memref<8xf32, #gpu.address_space<workgroup>>
    }
    gpu.barrier
    %all = vector.load %partial[%c0] {alignment = 16}
        : memref<8xf32, #gpu.address_space<workgroup>>, vector<8xf32>
    %max = vector.reduction <maximumf>, %all : vector<8xf32> into f32
    %is_finite = arith.cmpf ogt, %max, %low : f32
    cf.assert %is_finite, "row of -inf"
    %maxes = vector.broadcast %max : f32 to vector<8xf32>
    scf.for %i = %c0 to %c2 step %c1 {
      %chunk = arith.muli %i, %c2048 : index
      %column = arith.addi %start, %chunk : index
      %v = vector.load %x[%row, %column] {alignment = 16} : memref<128x4096xbf16>, vector<8xbf16>
      %f = arith.extf %v : vector<8xbf16> to vector<8xf32>
      %d = arith.subf %f, %maxes : vector<8xf32>
      %scaled = arith.mulf %d, %log2e : vector<8xf32>
      %e = math.exp2 %scaled fastmath<afn> : vector<8xf32>
      %erf = math.erf %e : vector<8xf32>
      %whole = math.trunc %erf : vector<8xf32>
      %unused = ub.poison : vector<8xf32>
      %b = arith.truncf %whole : vector<8xf32> to vector<8xbf16>
      %sum = arith.addf %b, %v : vector<8xbf16>
      vector.store %sum, %y[%row, %column] {alignment = 16} : memref<128x4096xbf16>, vector<8xbf16>
    }
    gpu.return
  }
} }
"""


def kernel(body: str, result: str = "%r", scalar: str = "float") -> str:
    """A kernel of two scalars of a type that stores one result."""
    declared = sorted(set(re.findall(r"@([\w.]+)\((\w+ [^)]*)\)", body)))
    declarations = "\n".join(
        f"declare {scalar} @{name}({', '.join([scalar] * (arguments.count(',') + 1))})" for name, arguments in declared
    )
    return (
        f"define ptx_kernel void @k(ptr addrspace(1) %p, {scalar} %a, {scalar} %b) {{\n{body}\n"
        f"store {scalar} {result}, ptr addrspace(1) %p\nret void }}\n{declarations}"
    )


def instructions(ptx: str) -> list[str]:
    """The instructions' names, without moves and parameter loads."""
    names = re.findall(r"^\t(?:@\S+ )?([a-z]\w*(?:\.\w+)*)", ptx, re.MULTILINE)
    return [name for name in names if not name.startswith(("ld.param", "mov", "ret", "cvta"))]


def lowered(source: str) -> str:
    with ir.Context():
        module = ir.Module.parse(source)
        run_stage(module, "nvvm", TO_NVVM)
        return translate(module.body.operations[0].operation)


@pytest.mark.parametrize(("scalar", "suffix"), [("float", "f32"), ("double", "f64"), ("half", "f16")])
def test_a_product_and_a_sum_stay_two_roundings(scalar, suffix):
    ptx = compile_to_ptx(kernel(f"%m = fmul {scalar} %a, %b\n%r = fadd {scalar} %m, %a", scalar=scalar), SM_90)
    assert f"mul.rn.{suffix}" in ptx and f"add.rn.{suffix}" in ptx and "fma" not in ptx


def test_they_are_fused_where_the_ir_says_contract():
    ptx = compile_to_ptx(kernel("%m = fmul contract float %a, %b\n%r = fadd contract float %m, %a"), SM_90)
    assert instructions(ptx) == ["fma.rn.f32", "st.global.b32"]


def test_packed_arithmetic_is_not_fused_either():
    body = """
      %v = insertelement <2 x float> poison, float %a, i32 0
      %w = insertelement <2 x float> %v, float %b, i32 1
      %m = fmul <2 x float> %w, %w
      %s = fadd <2 x float> %m, %w
      %x = extractelement <2 x float> %s, i32 0
      %y = extractelement <2 x float> %s, i32 1
      %r = fsub float %x, %y"""
    assert "fma" not in compile_to_ptx(kernel(body), Target.parse("sm_100"))


@pytest.mark.parametrize(
    ("body", "expected"),
    [
        ("%r = fdiv float %a, %b", "div.rn.f32"),
        ("%r = call float @llvm.sqrt.f32(float %a)", "sqrt.rn.f32"),
        ("%r = call float @__nv_sqrtf(float %a)", "sqrt.rn.f32"),
        ("%r = call float @llvm.maximum.f32(float %a, float %b)", "max.NaN.f32"),
        ("%r = call float @__nv_exp2f(float %a)", "ex2.approx.f32"),
        ("%r = call float @__nv_fast_expf(float %a)", "ex2.approx.f32"),
    ],
)
def test_instructions_round_as_the_ir_says(body, expected):
    assert expected in instructions(compile_to_ptx(kernel(body), SM_90))


def test_adding_zero_and_dividing_by_itself_are_not_simplified():
    names = instructions(compile_to_ptx(kernel("%z = fadd float %a, 0.0\n%r = fdiv float %z, %z"), SM_90))
    assert "add.rn.f32" in names and "div.rn.f32" in names


def test_libdevice_leaves_nothing_but_what_is_used():
    ptx = compile_to_ptx(kernel("%r = call float @__nv_erff(float %a)"), SM_90)
    assert len(ptx) < 4000
    assert "__nv" not in ptx and "reflect" not in ptx and ".func" not in ptx


def test_libdevice_is_not_read_where_no_function_of_it_is_declared(monkeypatch):
    def read(name: str) -> bytes:
        raise AssertionError(f"read for {name}")

    monkeypatch.setattr(libdevice, "_extract", read)
    compile_to_ptx(kernel("%r = fadd float %a, %b"), SM_90)


def test_two_functions_of_libdevice_in_one_kernel():
    body = "%s = call double @__nv_sin(double %a)\n%r = call double @__nv_pow(double %s, double %b)"
    ptx = compile_to_ptx(kernel(body, scalar="double"), SM_90)
    assert ".visible .func" not in ptx


def test_unknown_function_of_libdevice():
    with pytest.raises(CodegenError, match="no function __nv_nonesuch"):
        compile_to_ptx(kernel("%r = call float @__nv_nonesuch(float %a)"), SM_90)


def test_missing_libdevice_names_both_sources(monkeypatch):
    monkeypatch.setattr(toolkit, "_packaged", lambda name: iter(()))
    monkeypatch.setattr(toolkit, "_toolkits", lambda: [])
    with pytest.raises(FileNotFoundError, match=r"nvidia-nvvm.*CUDA_HOME"):
        toolkit.find_libdevice()


def test_invalid_ir_is_an_error():
    with pytest.raises(CodegenError, match="can't read the IR"):
        compile_to_ptx("define void @f() { ret i32 }", SM_90)


def test_a_target_without_ptx_is_refused():
    with pytest.raises(ValueError, match="cpu has no PTX"):
        compile_to_ptx("", Target.parse("cpu"))


def test_softmax_reads_and_writes_16_bytes_at_a_time():
    names = instructions(compile_to_ptx(lowered(SOFTMAX), SM_90))
    memory = {name for name in names if name.startswith(("ld.global", "st.global"))}
    assert memory == {"ld.global.nc.v4.b32", "st.global.v4.b32"}
    assert "shfl.sync.bfly.b32" in names and "bar.sync" in names and "ex2.approx.f32" in names


def test_other_dialects_are_an_error_instead_of_a_crash():
    with ir.Context():
        module = ir.Module.parse("module { func.func @f() { return } }")
        with pytest.raises(CodegenError, match=r"no translation to LLVM IR for: func\.func, func\.return"):
            translate(module.operation)


@needs_ptxas
@pytest.mark.parametrize("name", GPUS)
def test_softmax_assembles_for_every_gpu_without_spilling(name):
    target = Target.parse(name)
    ptx = compile_to_ptx(lowered(SOFTMAX), target)
    assert f".target {name}\n" in ptx
    assert assemble(ptx, target)[:4] == b"\x7fELF"
    usage = resource_usage(ptx, target)["softmax"]
    assert usage.shared == 32 and usage.spill_stores == 0 and 0 < usage.registers < 128


@needs_ptxas
def test_a_failing_assembler_says_what_and_how_to_repeat():
    with pytest.raises(AssemblerError) as failure:
        assemble(".version 8.0\n.target sm_90\n.address_size 64\nnonsense\n", SM_90)
    message = str(failure.value)
    assert "syntax error" in message and "-arch=sm_90" in message
    (path,) = re.findall(r"The PTX is in (\S+)\. ", message)
    assert "nonsense" in Path(path).read_text()
    Path(path).unlink()
    Path(path).parent.rmdir()


def test_the_named_assembler_comes_first(monkeypatch):
    monkeypatch.setenv("MLIR_FUSION_PTXAS", "/nowhere/ptxas")
    assert find_ptxas() == Path("/nowhere/ptxas")
    with pytest.raises(AssemblerError, match="can't run /nowhere/ptxas"):
        assemble("", SM_90)


def test_resources_of_two_kernels():
    log = """ptxas info    : 0 bytes gmem
ptxas info    : Compiling entry function 'a' for 'sm_90'
ptxas info    : Function properties for a
    48 bytes stack frame, 44 bytes spill stores, 52 bytes spill loads
ptxas info    : Used 255 registers, used 1 barriers, 48 bytes cumulative stack size, 1024 bytes smem
ptxas info    : Compile time = 1.000 ms
ptxas info    : Compiling entry function 'b' for 'sm_90'
ptxas info    : Function properties for b
    0 bytes stack frame, 0 bytes spill stores, 0 bytes spill loads
ptxas info    : Used 10 registers, used 0 barriers
"""
    assert parse_resource_usage(log) == {
        "a": Resources(registers=255, stack=48, spill_stores=44, spill_loads=52, shared=1024),
        "b": Resources(registers=10, stack=0, spill_stores=0, spill_loads=0, shared=0),
    }
