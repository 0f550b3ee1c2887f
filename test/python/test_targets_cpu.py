"""Native code: numerics, names, the 16-bit conversions, threads."""

import gc
import math
from concurrent.futures import ThreadPoolExecutor

import llvmlite.binding as llvmlite
import numpy as np
import pytest
from mlir_fusion.dialects.mlir import ir
from mlir_fusion.driver.runner import run_stage
from mlir_fusion.driver.upstream import TO_LLVM
from mlir_fusion.targets import cpu
from mlir_fusion.targets.llvm import CodegenError
from mlir_fusion.targets.lowering import translate

SOFTMAX = """
module { module @kernels {
  func.func @softmax(%x: memref<4x1000xbf16>, %y: memref<4x1000xbf16>, %sums: memref<4xf32>) {
    %c0 = arith.constant 0 : index
    %c1 = arith.constant 1 : index
    %c4 = arith.constant 4 : index
    %c8 = arith.constant 8 : index
    %n = arith.constant 1000 : index
    %low = arith.constant 0xFF800000 : f32
    %zero = arith.constant 0.0 : f32
    scf.for %row = %c0 to %c4 step %c1 {
      %max = scf.for %i = %c0 to %n step %c8 iter_args(%m = %low) -> (f32) {
        %v = vector.load %x[%row, %i] : memref<4x1000xbf16>, vector<8xbf16>
        %f = arith.extf %v : vector<8xbf16> to vector<8xf32>
        %r = vector.reduction <maximumf>, %f, %m : vector<8xf32> into f32
        scf.yield %r : f32
      }
      %sum = scf.for %i = %c0 to %n step %c1 iter_args(%s = %zero) -> (f32) {
        %v = memref.load %x[%row, %i] : memref<4x1000xbf16>
        %f = arith.extf %v : bf16 to f32
        %d = arith.subf %f, %max : f32
        %e = math.exp %d : f32
        %r = arith.addf %s, %e : f32
        scf.yield %r : f32
      }
      %is_first = arith.cmpi eq, %row, %c0 : index
      scf.if %is_first {
        memref.store %max, %sums[%row] : memref<4xf32>
      } else {
        memref.store %sum, %sums[%row] : memref<4xf32>
      }
      %maxes = vector.broadcast %max : f32 to vector<8xf32>
      %all = vector.broadcast %sum : f32 to vector<8xf32>
      scf.for %i = %c0 to %n step %c8 {
        %v = vector.load %x[%row, %i] : memref<4x1000xbf16>, vector<8xbf16>
        %f = arith.extf %v : vector<8xbf16> to vector<8xf32>
        %d = arith.subf %f, %maxes : vector<8xf32>
        %e = math.exp %d : vector<8xf32>
        %q = arith.divf %e, %all : vector<8xf32>
        %b = arith.truncf %q : vector<8xf32> to vector<8xbf16>
        vector.store %b, %y[%row, %i] : memref<4x1000xbf16>, vector<8xbf16>
      }
    }
    return
  }
} }
"""


def lowered(source: str) -> str:
    with ir.Context():
        module = ir.Module.parse(source)
        run_stage(module, "llvm", TO_LLVM)
        return translate(module.body.operations[0].operation)


def to_bfloat(values: np.ndarray) -> np.ndarray:
    """Bits of the nearest bfloat, ties to even; by halves of floats, independent of the code under test."""
    bits = values.astype(np.float32).view(np.uint32).astype(np.uint64)
    low, down = bits & 0xFFFF, bits >> 16
    up = (low > 0x8000) | ((low == 0x8000) & (down & 1 == 1))
    quiet = np.isnan(values)
    return np.where(quiet, down | 0x40, down + up).astype(np.uint16)


def from_bfloat(bits: np.ndarray) -> np.ndarray:
    return (bits.astype(np.uint32) << 16).view(np.float32)


def test_softmax_of_bfloats():
    rng = np.random.default_rng(11)
    x = to_bfloat(rng.standard_normal((4, 1000)))
    y, sums = np.zeros_like(x), np.zeros(4, np.float32)
    run = cpu.jit(lowered(SOFTMAX)).function("softmax", 3)
    run(x.ctypes.data, y.ctypes.data, sums.ctypes.data)
    exact = np.exp(from_bfloat(x).astype(np.float64) - from_bfloat(x).max(1, keepdims=True))
    np.testing.assert_allclose(from_bfloat(y), exact / exact.sum(1, keepdims=True), rtol=2**-8)
    np.testing.assert_allclose(sums[1:], exact.sum(1)[1:], rtol=1e-5)
    assert sums[0] == from_bfloat(x)[0].max()


REFERENCES = {
    "erf": math.erf,
    "erfc": math.erfc,
    "tanh": math.tanh,
    "exp": math.exp,
    "expm1": math.expm1,
    "log1p": math.log1p,
    "rsqrt": lambda x: 1 / math.sqrt(x),
    "sin": math.sin,
    "cbrt": lambda x: x ** (1 / 3),
    "atanh": math.atanh,
    "floor": math.floor,
    "absf": abs,
}


@pytest.mark.parametrize("op", REFERENCES)
@pytest.mark.parametrize(("mlir_type", "dtype"), [("f32", np.float32), ("f64", np.float64)])
def test_mathematical_functions(op, mlir_type, dtype):
    source = f"""module {{ module @kernels {{
      func.func @f(%x: memref<8x{mlir_type}>, %y: memref<8x{mlir_type}>) {{
        %c0 = arith.constant 0 : index
        %v = vector.load %x[%c0] : memref<8x{mlir_type}>, vector<8x{mlir_type}>
        %r = math.{op} %v : vector<8x{mlir_type}>
        vector.store %r, %y[%c0] : memref<8x{mlir_type}>, vector<8x{mlir_type}>
        return }} }} }}"""
    x = np.array([1e-12, 1e-6, 1e-3, 0.1, 0.3, 0.49, 0.51, 0.99], dtype)
    y = np.zeros_like(x)
    cpu.jit(lowered(source)).function("f", 2)(x.ctypes.data, y.ctypes.data)
    expected = [REFERENCES[op](float(value)) for value in x]
    np.testing.assert_allclose(y, expected, rtol=8 * np.finfo(dtype).eps)


def test_expm1_far_from_zero():
    source = """module { module @kernels { func.func @f(%x: memref<4xf32>) {
        %c0 = arith.constant 0 : index
        %v = vector.load %x[%c0] : memref<4xf32>, vector<4xf32>
        %r = math.expm1 %v : vector<4xf32>
        vector.store %r, %x[%c0] : memref<4xf32>, vector<4xf32>
        return } } }"""
    x = np.array([-np.inf, np.inf, np.nan, -30], np.float32)
    cpu.jit(lowered(source)).function("f", 1)(x.ctypes.data)
    np.testing.assert_array_equal(x, np.array([-1, np.inf, np.nan, -1], np.float32))


def constant(value: int) -> str:
    return f"define void @main(ptr %p) {{ store i32 {value}, ptr %p ret void }}"


def called(module: cpu.NativeModule) -> int:
    buffer = np.zeros(1, np.int32)
    module.function("main", 1)(buffer.ctypes.data)
    return int(buffer[0])


def test_modules_may_define_equal_names():
    first, second = cpu.jit(constant(1)), cpu.jit(constant(2))
    assert (called(first), called(second)) == (1, 2)
    assert first.address("main") != second.address("main")


def test_a_function_keeps_its_module_alive():
    function = cpu.jit(constant(5)).function("main", 1)
    gc.collect()
    cpu.jit(constant(6))
    buffer = np.zeros(1, np.int32)
    function(buffer.ctypes.data)
    assert buffer[0] == 5


def test_threads():
    with ThreadPoolExecutor(4) as pool:
        assert list(pool.map(lambda n: called(cpu.jit(constant(n))), range(24))) == list(range(24))


def test_an_unknown_name():
    with pytest.raises(KeyError, match="no function 'other'"):
        cpu.jit(constant(1)).address("other")


def test_a_missing_symbol_is_named():
    with pytest.raises(CodegenError, match=r"not found: \['no_such_function'\]"):
        cpu.jit("declare void @no_such_function()\ndefine void @f() { call void @no_such_function() ret void }")
    assert called(cpu.jit(constant(3))) == 3


@pytest.fixture
def plain_machine(monkeypatch):
    """A processor that converts nothing to 16 bits, so that LLVM calls our functions."""

    def machine() -> llvmlite.TargetMachine:
        triple = llvmlite.get_process_triple()
        return llvmlite.Target.from_triple(triple).create_target_machine(opt=3, reloc="pic", jit=True)

    monkeypatch.setattr(cpu, "host_machine", machine)


def convert(values: np.ndarray, source: str, target: str, storage: type) -> np.ndarray:
    operation = "fpext" if source == "half" else "fptrunc"
    text = f"""define void @f(ptr %in, ptr %out, ptr %end) {{
    entry: br label %loop
    loop: %i = phi i64 [ 0, %entry ], [ %j, %loop ]
      %p = getelementptr {source}, ptr %in, i64 %i
      %q = getelementptr {target}, ptr %out, i64 %i
      %x = load {source}, ptr %p
      %y = {operation} {source} %x to {target}
      store {target} %y, ptr %q
      %j = add i64 %i, 1
      %n = load i64, ptr %end
      %more = icmp ult i64 %j, %n
      br i1 %more, label %loop, label %done
    done: ret void }}"""
    result, count = np.zeros(values.size, storage), np.array([values.size])
    cpu.jit(text).function("f", 3)(values.ctypes.data, result.ctypes.data, count.ctypes.data)
    return result


def floats(dtype: type) -> np.ndarray:
    """All halves, what lies in the middle between two, its neighbours, and random bits."""
    with np.errstate(invalid="ignore"):
        halves = np.arange(2**16, dtype=np.uint16).view(np.float16).astype(dtype)
    finite = halves[np.isfinite(halves)]
    middles = (finite[:-1] + finite[1:]) / 2
    bits = {np.float32: np.uint32, np.float64: np.uint64}[dtype]
    random = np.random.default_rng(5).integers(0, np.iinfo(bits).max, 20000, bits).view(dtype)
    # As bfloats, too: ties have the high bit of the low half set
    ties = (np.arange(2**16, dtype=np.uint32) << 16 | 0x8000).view(np.float32).astype(dtype)
    near = [np.nextafter(edges, dtype(limit)) for edges in (middles, ties) for limit in (-np.inf, np.inf)]
    return np.concatenate([halves, middles, ties, random, *near])


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("host", ["plain", "this"])
def test_narrowing_to_half(dtype, host, request):
    if host == "plain":
        request.getfixturevalue("plain_machine")
    with np.errstate(all="ignore"):
        values = floats(dtype)
        expected = values.astype(np.float16)
    source = "float" if dtype == np.float32 else "double"
    assert_same(convert(values, source, "half", np.float16), expected)


@pytest.mark.parametrize("host", ["plain", "this"])
def test_narrowing_to_bfloat(host, request):
    if host == "plain":
        request.getfixturevalue("plain_machine")
    with np.errstate(all="ignore"):
        values = floats(np.float32)
    result = convert(values, "float", "bfloat", np.uint16)
    assert_same(from_bfloat(result), from_bfloat(to_bfloat(values)))


def test_narrowing_a_double_to_bfloat_rounds_once():
    with np.errstate(all="ignore"):
        values = floats(np.float64)
        nearest = values.astype(np.float32)
        # To odd: the neighbour toward zero, with a last bit that says "and more"
        inexact = (nearest.astype(np.float64) != values) & ~np.isnan(values)
        away = inexact & (np.abs(nearest.astype(np.float64)) > np.abs(values))
        odd = ((nearest.view(np.uint32) - away) | inexact).astype(np.uint32).view(np.float32)
    result = convert(values, "double", "bfloat", np.uint16)
    assert_same(from_bfloat(result), from_bfloat(to_bfloat(odd)))


@pytest.mark.parametrize("host", ["plain", "this"])
def test_widening_every_half(host, request):
    if host == "plain":
        request.getfixturevalue("plain_machine")
    halves = np.arange(2**16, dtype=np.uint16).view(np.float16)
    with np.errstate(invalid="ignore"):
        assert_same(convert(halves, "half", "float", np.float32), halves.astype(np.float32))


def assert_same(actual: np.ndarray, expected: np.ndarray) -> None:
    """Equal numbers, signs of zeros included, and NaN where NaN is expected."""
    np.testing.assert_array_equal(actual, expected)
    numbers = ~np.isnan(expected)
    np.testing.assert_array_equal(np.signbit(actual)[numbers], np.signbit(expected)[numbers])
