"""LLVM 24's literals in LLVM 22's spelling: the values must survive, bit by bit."""

import struct
import time
from collections.abc import Callable
from fractions import Fraction

import numpy as np
import pytest
from mlir_fusion.dialects.mlir import ir, llvm
from mlir_fusion.targets import cpu
from mlir_fusion.targets.llvm_text import FORMATS, llvm22_literal, round_to_format, to_llvm22

TYPES = {"half": ("f16", np.uint16), "bfloat": ("bf16", np.uint16), "float": ("f32", np.uint32)}
TYPES["double"] = ("f64", np.uint64)


def interesting_bits(name: str, count: int) -> list[int]:
    """Random values, and the edges: zeros, subnormal numbers, the largest, infinities, all kinds of NaN."""
    form = FORMATS[name]
    rng = np.random.default_rng(7)
    largest = form.sign * 2 - 1
    random = [int(bits) & largest for bits in rng.integers(0, 2**63, count)]
    short = [round_to_format(Fraction(int(n), 1000), form) for n in rng.integers(0, 10**5, count)]
    edges = [0, 1, 2, form.quiet, form.quiet * 2 - 1, form.quiet * 2, form.infinity - 1, form.infinity]
    edges += [form.infinity | form.quiet, form.infinity | form.quiet | 5, form.infinity | 5]
    return random + short + edges + [bits | form.sign for bits in edges]


def as_literal(bits: int, mlir_type: str) -> str:
    return f"llvm.mlir.constant({bits:#x} : {mlir_type}) : {mlir_type}"


def translated(function_body: str, argument: str = "%p: !llvm.ptr") -> str:
    with ir.Context():
        module = ir.Module.parse(f"llvm.func @f({argument}) {{ {function_body} llvm.return }}")
        return llvm.translate_module_to_llvmir(module.operation)


def run(llvm_ir: str, buffer: np.ndarray) -> np.ndarray:
    cpu.jit(llvm_ir).function("f", 1)(buffer.ctypes.data)
    return buffer


@pytest.mark.parametrize("name", TYPES)
def test_constants_keep_their_bits_through_both_llvms(name):
    mlir_type, storage = TYPES[name]
    bits = interesting_bits(name, 150)
    lines = [
        f"%v{i} = {as_literal(value, mlir_type)} "
        f"%p{i} = llvm.getelementptr %p[{i}] : (!llvm.ptr) -> !llvm.ptr, {mlir_type} "
        f"llvm.store %v{i}, %p{i} : {mlir_type}, !llvm.ptr\n"
        for i, value in enumerate(bits)
    ]
    result = run(translated("".join(lines)), np.zeros(len(bits), storage))
    assert result.tolist() == bits


@pytest.mark.parametrize("name", TYPES)
def test_vectors_keep_their_bits(name):
    mlir_type, storage = TYPES[name]
    bits = interesting_bits(name, 5)[:32]
    bits += [0] * (32 - len(bits))
    elements = ", ".join(f"{value:#x}" for value in bits)
    vector = f"vector<32x{mlir_type}>"
    text = translated(
        f"%v = llvm.mlir.constant(dense<[{elements}]> : {vector}) : {vector}\n"
        f"llvm.store %v, %p {{alignment = 1 : i64}} : {vector}, !llvm.ptr\n"
    )
    assert run(text, np.zeros(32, storage)).tolist() == bits


def test_rounding_agrees_with_numpy():
    rng = np.random.default_rng(3)
    values = np.concatenate([rng.standard_normal(500) * 10.0 ** rng.integers(-50, 45, 500), [2049.0, 65519.9, 65520]])
    for value in np.abs(values):
        exact = Fraction(float(value))
        with np.errstate(over="ignore"):
            assert round_to_format(exact, FORMATS["half"]) == np.float16(value).view(np.uint16)
            assert round_to_format(exact, FORMATS["float"]) == np.float32(value).view(np.uint32)
        assert round_to_format(exact, FORMATS["double"]) == value.view(np.uint64)


def test_a_decimal_is_rounded_once():
    # Just above the middle between two floats, by less than a double can tell
    decimal = "1.00000005960464477539062500001"
    (expected,) = struct.unpack("<Q", struct.pack("<d", np.float64(np.nextafter(np.float32(1), np.float32(2)))))
    assert llvm22_literal(decimal, "float") == f"0x{expected:016X}"


@pytest.mark.parametrize(
    ("literal", "name", "expected"),
    [
        ("4.471500e-02", "float", "0x3FA6E4E260000000"),
        ("f0xC0135761", "float", "0xC0026AEC20000000"),
        ("+inf", "half", "0xH7C00"),
        ("-inf", "bfloat", "0xRFF80"),
        ("+qnan", "float", "0x7FF8000000000000"),
        ("-nan(0x1)", "half", "0xHFE01"),
        ("+snan(0x12345)", "float", "0x7FF02468A0000000"),
        ("-0.000000e+00", "double", "0x8000000000000000"),
    ],
)
def test_each_form(literal, name, expected):
    assert llvm22_literal(literal, name) == expected


@pytest.mark.parametrize(
    ("line", "expected"),
    [
        ("  %1 = fadd float %0, 1.5", "  %1 = fadd float %0, 0x3FF8000000000000"),
        ("  %1 = phi half [ 1.5, %a ], [ +inf, %b ]", "  %1 = phi half [ 0xH3E00, %a ], [ 0xH7C00, %b ]"),
        (
            "  %1 = select i1 %c, bfloat 1.5, bfloat -inf",
            "  %1 = select i1 %c, bfloat 0xR3FC0, bfloat 0xRFF80",
        ),
        ("  %1 = fmul <8 x half> %v, splat (half 2.0)", "  %1 = fmul <8 x half> %v, splat (half 0xH4000)"),
        (
            "  %1 = call float @f(half 1.5, double 1.5)",
            "  %1 = call float @f(half 0xH3E00, double 0x3FF8000000000000)",
        ),
        ('@s = constant [9 x i8] c"half 1.5 "', '@s = constant [9 x i8] c"half 1.5 "'),
        ("  %half1.5 = add i32 %float, 1 ; half 1.5", "  %half1.5 = add i32 %float, 1 ; half 1.5"),
        ("  %2 = fadd half %double, 1.5", "  %2 = fadd half %double, 0xH3E00"),
        ("  %2 = fadd half %a, 0xH3E00", "  %2 = fadd half %a, 0xH3E00"),
        ("half1.5:", "half1.5:"),
    ],
)
def test_only_literals_change(line, expected):
    assert to_llvm22(line) == expected


def test_rewriting_twice_changes_nothing():
    once = to_llvm22(translated("%v = llvm.mlir.constant(1.1 : f32) : f32 llvm.store %v, %p : f32, !llvm.ptr"))
    assert "0x3FF19999A0000000" in once
    assert to_llvm22(once) == once


def test_cost_is_linear():
    """By this process's time, for other processes take their share of the clock's; quadratic would be 256 times."""
    line = '  %1 = fadd <2 x float> <float 1.5, float +inf>, %"x" ; float 1.5\n'

    def seconds(lines: int) -> float:
        text = line * lines
        return min(timed(lambda: to_llvm22(text)) for _ in range(5))

    assert seconds(16000) < 64 * seconds(1000)


def timed(work: Callable[[], object]) -> float:
    start = time.process_time()
    work()
    return time.process_time() - start
