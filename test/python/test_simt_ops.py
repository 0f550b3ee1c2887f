"""What the checker computes, an operation at a time: integers against Python's, floats against PyTorch's."""

from __future__ import annotations

import fractions
import math
from collections.abc import Callable, Sequence

import numpy as np
import pytest
import torch
from gpu_code import parse
from mlir_fusion.driver.levels import nested_modules
from mlir_fusion.passes.split_kernels import kernels_in
from mlir_fusion.runtime.simt.errors import KernelError
from mlir_fusion.runtime.simt.kernel import Kernel

DTYPES = {
    "i8": torch.int8,
    "i16": torch.int16,
    "i32": torch.int32,
    "i64": torch.int64,
    "f16": torch.float16,
    "bf16": torch.bfloat16,
    "f32": torch.float32,
    "f64": torch.float64,
}


def apply(code: str, inputs: Sequence[torch.Tensor], types: Sequence[str], result: str) -> torch.Tensor:
    """Runs `code`, which makes %r of %v0, %v1, ..., a thread an element."""
    count = inputs[0].numel()
    output = torch.zeros(count, dtype=DTYPES[result])
    memories = [*(f"memref<{count}x{type_}>" for type_ in types), f"memref<{count}x{result}>"]
    arguments = ", ".join(f"%m{k}: {memory}" for k, memory in enumerate(memories))
    loads = "\n".join(f"%v{k} = memref.load %m{k}[%t] : {memory}" for k, memory in enumerate(memories[:-1]))
    last = len(memories) - 1
    kernel(f"""gpu.func @k({arguments}) kernel {{
      %t = gpu.thread_id x
      {loads}
      {code}
      memref.store %r, %m{last}[%t] : {memories[last]}
      gpu.return
    }}""").run((1, 1, 1), (count, 1, 1), [t.data_ptr() for t in (*inputs, output)], 0, lambda *_: None)
    return output


_MODULES: list = []


def kernel(function: str) -> Kernel:
    """The kernel, in a module that outlives it."""
    module = parse(f"module {{ gpu.module @kernels {{ {function} }} }}")
    _MODULES.append(module)
    return Kernel(next(op for nested in nested_modules(module) for _, op in kernels_in(nested)))


def wrap(value: int, bits: int) -> int:
    return (value + (1 << bits - 1)) % (1 << bits) - (1 << bits - 1)


def truncated(a: int, b: int) -> int:
    return abs(a) // abs(b) * (1 if (a < 0) == (b < 0) else -1)


def unsigned(function: Callable[[int, int], int]) -> Callable[[int, int, int], int]:
    return lambda a, b, bits: function(a % (1 << bits), b % (1 << bits))


INTEGERS: dict[str, Callable[[int, int, int], int]] = {
    "arith.addi": lambda a, b, _: a + b,
    "arith.subi": lambda a, b, _: a - b,
    "arith.muli": lambda a, b, _: a * b,
    "arith.divsi": lambda a, b, _: truncated(a, b),
    "arith.remsi": lambda a, b, _: a - b * truncated(a, b),
    "arith.floordivsi": lambda a, b, _: a // b,
    "arith.ceildivsi": lambda a, b, _: -(-a // b),
    "arith.divui": unsigned(lambda a, b: a // b),
    "arith.remui": unsigned(lambda a, b: a % b),
    "arith.maxui": unsigned(max),
    "arith.minui": unsigned(min),
    "arith.maxsi": lambda a, b, _: max(a, b),
    "arith.minsi": lambda a, b, _: min(a, b),
    "arith.andi": lambda a, b, _: a & b,
    "arith.ori": lambda a, b, _: a | b,
    "arith.xori": lambda a, b, _: a ^ b,
}
SHIFTS: dict[str, Callable[[int, int, int], int]] = {
    "arith.shli": lambda a, b, _: a << b,
    "arith.shrsi": lambda a, b, _: a >> b,
    "arith.shrui": lambda a, b, bits: (a % (1 << bits)) >> b,
}
COMPARISONS: dict[str, Callable[[int, int, int], int]] = {
    "eq": lambda a, b, _: a == b,
    "ne": lambda a, b, _: a != b,
    "slt": lambda a, b, _: a < b,
    "sge": lambda a, b, _: a >= b,
    "ult": unsigned(lambda a, b: a < b),
    "uge": unsigned(lambda a, b: a >= b),
    "ugt": unsigned(lambda a, b: a > b),
    "ule": unsigned(lambda a, b: a <= b),
}


def edge_integers(type_: str, seed: int = 0) -> torch.Tensor:
    bits = int(type_[1:])
    low, high = -(1 << bits - 1), (1 << bits - 1) - 1
    generator = torch.Generator().manual_seed(seed)
    random = torch.randint(low, high, (80,), generator=generator, dtype=torch.int64)
    edges = torch.tensor([low, low + 1, -2, -1, 1, 2, 3, high - 1, high] * 2)
    return torch.cat((random, edges[torch.randperm(18, generator=generator)])).to(DTYPES[type_])


@pytest.mark.parametrize("type_", ["i8", "i16", "i32", "i64"])
@pytest.mark.parametrize("name", [*INTEGERS, *SHIFTS])
def test_integers(name: str, type_: str) -> None:
    bits = int(type_[1:])
    a, b = edge_integers(type_, 1), edge_integers(type_, 2)
    b = b.remainder(bits) if name in SHIFTS else torch.where(b == 0, 1, b)
    found = apply(f"%r = {name} %v0, %v1 : {type_}", [a, b.to(a.dtype)], [type_, type_], type_)
    reference = {**INTEGERS, **SHIFTS}[name]
    expected = [wrap(int(reference(x, y, bits)), bits) for x, y in zip(a.tolist(), b.tolist(), strict=True)]
    # The lowest number divided by -1 does not fit
    defined = torch.tensor([y != -1 or "div" not in name for y in b.tolist()])
    assert found[defined].tolist() == torch.tensor(expected)[defined].tolist()


@pytest.mark.parametrize("type_", ["i8", "i32", "i64"])
@pytest.mark.parametrize("predicate", COMPARISONS)
def test_integer_comparisons(predicate: str, type_: str) -> None:
    a, b = edge_integers(type_, 1), edge_integers(type_, 2)
    a[:5] = b[:5]
    code = f"%c = arith.cmpi {predicate}, %v0, %v1 : {type_}\n%r = arith.extui %c : i1 to i8"
    found = apply(code, [a, b], [type_, type_], "i8")
    bits = int(type_[1:])
    expected = [int(COMPARISONS[predicate](x, y, bits)) for x, y in zip(a.tolist(), b.tolist(), strict=True)]
    assert found.tolist() == expected


def edge_floats(dtype: torch.dtype, seed: int = 0) -> torch.Tensor:
    generator = torch.Generator().manual_seed(seed)
    edges = [0.0, -0.0, 1.0, -1.0, 0.5, -2.5, math.inf, -math.inf, math.nan, 6e-8, -1e-40, 3e38, 60000.0]
    scales = 10 ** (torch.rand(200, generator=generator) * 8 - 4)
    random = torch.randn(200, generator=generator) * scales
    return torch.cat((random, torch.tensor(edges)[torch.randperm(13, generator=generator)])).to(dtype)


FLOATS: dict[str, Callable[[torch.Tensor, torch.Tensor], torch.Tensor]] = {
    "arith.addf": torch.add,
    "arith.subf": torch.sub,
    "arith.mulf": torch.mul,
    "arith.divf": torch.div,
    "arith.maximumf": torch.maximum,
    "arith.minimumf": torch.minimum,
    "arith.maxnumf": torch.fmax,
    "arith.minnumf": torch.fmin,
    "math.copysign": torch.copysign,
}


@pytest.mark.parametrize("type_", ["f16", "bf16", "f32", "f64"])
@pytest.mark.parametrize("name", FLOATS)
def test_floats_are_exact(name: str, type_: str) -> None:
    a, b = edge_floats(DTYPES[type_], 1), edge_floats(DTYPES[type_], 2)
    found = apply(f"%r = {name} %v0, %v1 : {type_}", [a, b], [type_, type_], type_)
    torch.testing.assert_close(found, FLOATS[name](a, b), rtol=0, atol=0, equal_nan=True)


FUNCTIONS: dict[str, Callable[[torch.Tensor], torch.Tensor]] = {
    **{
        f"math.{name}": getattr(torch, name)
        for name in "acos asin atan ceil cos cosh erf erfc exp exp2 expm1 floor log log10 log1p log2 rsqrt sin "
        "sinh sqrt tan tanh trunc acosh asinh atanh".split()
    },
    "math.absf": torch.abs,
    "math.roundeven": torch.round,
    "math.cbrt": lambda x: x.sign() * x.abs() ** (1 / 3),
    "math.round": lambda x: x.sign() * torch.floor(x.abs() + 0.5),
    "arith.negf": torch.neg,
}


@pytest.mark.parametrize("type_", ["f16", "bf16", "f32", "f64"])
@pytest.mark.parametrize("name", FUNCTIONS)
def test_functions(name: str, type_: str) -> None:
    """Off by a few units in the last place at most."""
    dtype = DTYPES[type_]
    x = (torch.randn(300, generator=torch.Generator().manual_seed(0)) * 3).to(dtype)
    found = apply(f"%r = {name} %v0 : {type_}", [x], [type_], type_)
    expected = FUNCTIONS[name](x.double())
    unit = torch.finfo(dtype).eps
    torch.testing.assert_close(found.double(), expected.to(dtype).double(), rtol=4 * unit, atol=unit, equal_nan=True)


PREDICATES: dict[str, Callable[[float, float], bool]] = {
    "oeq": lambda a, b: a == b,
    "ogt": lambda a, b: a > b,
    "ole": lambda a, b: a <= b,
    "one": lambda a, b: a < b or a > b,
    "ord": lambda a, b: a == a and b == b,
    "ueq": lambda a, b: not (a < b or a > b),
    "ult": lambda a, b: not a >= b,
    "uge": lambda a, b: not a < b,
    "ule": lambda a, b: not a > b,
    "ugt": lambda a, b: not a <= b,
    "une": lambda a, b: a != b,
    "uno": lambda a, b: a != a or b != b,
}


@pytest.mark.parametrize("predicate", PREDICATES)
def test_float_comparisons(predicate: str) -> None:
    values = [0.0, -0.0, 1.0, -2.0, math.inf, math.nan]
    pairs = [(a, b) for a in values for b in values]
    a, b = (torch.tensor(side) for side in zip(*pairs, strict=True))
    code = f"%c = arith.cmpf {predicate}, %v0, %v1 : f32\n%r = arith.extui %c : i1 to i8"
    found = apply(code, [a, b], ["f32", "f32"], "i8")
    assert found.tolist() == [int(PREDICATES[predicate](x, y)) for x, y in pairs]


@pytest.mark.parametrize(("wide", "narrow"), [("f32", "bf16"), ("f64", "bf16"), ("f32", "f16"), ("f64", "f32")])
def test_rounding(wide: str, narrow: str) -> None:
    """To nearest, ties to even, once: a double near a tie of two bf16s is not rounded by way of a float."""
    base = torch.randn(100, dtype=torch.float64, generator=torch.Generator().manual_seed(0))
    near = base.to(DTYPES[narrow]).double()
    ties = near * (1 + torch.finfo(DTYPES[narrow]).eps / 2)
    x = torch.cat((base, near, ties, ties * (1 + 1e-12), ties * (1 - 1e-12), edge_floats(torch.float64)))
    x = x.to(DTYPES[wide])
    found = apply(f"%r = arith.truncf %v0 : {wide} to {narrow}", [x], [wide], narrow)
    if (wide, narrow) != ("f64", "bf16"):
        torch.testing.assert_close(found, x.to(DTYPES[narrow]), rtol=0, atol=0, equal_nan=True)
        return
    # PyTorch goes by way of float, so: no bf16 is nearer
    step = found.view(torch.int16)
    for other in ((step + 1).view(torch.bfloat16), (step - 1).view(torch.bfloat16)):
        usable = x.isfinite() & other.isfinite() & found.isfinite() & (found != 0)
        nearer = (other.double() - x).abs() < (found.double() - x).abs()
        assert not (nearer & usable).any()
    back = apply(f"%r = arith.extf %v0 : {narrow} to {wide}", [found], [narrow], wide)
    assert torch.equal(back.nan_to_num(), found.double().nan_to_num())


def test_conversions() -> None:
    numbers = torch.tensor([-3.7, 3.7, 0.0, 1e10, -1e10, math.nan, math.inf, 255.9])
    found = apply("%r = arith.fptosi %v0 : f32 to i32", [numbers], ["f32"], "i32")
    assert found.tolist() == [-3, 3, 0, 2**31 - 1, -(2**31), 0, 2**31 - 1, 255]
    found = apply("%r = arith.fptoui %v0 : f32 to i32", [numbers], ["f32"], "i32")
    assert found.tolist() == [0, 3, 0, wrap(2**32 - 1, 32), 0, 0, wrap(2**32 - 1, 32), 255]
    bytes_ = torch.tensor([-1, 127, 0, -128], dtype=torch.int8)
    assert apply("%r = arith.uitofp %v0 : i8 to f32", [bytes_], ["i8"], "f32").tolist() == [255, 127, 0, 128]
    assert apply("%r = arith.sitofp %v0 : i8 to f64", [bytes_], ["i8"], "f64").tolist() == [-1, 127, 0, -128]
    code = "%b = arith.trunci %v0 : i8 to i1\n%r = arith.extsi %b : i1 to i32"
    assert apply(code, [bytes_], ["i8"], "i32").tolist() == [-1, -1, 0, 0]
    bits = apply("%r = arith.bitcast %v0 : bf16 to i16", [torch.tensor([1.0, -2.0]).bfloat16()], ["bf16"], "i16")
    assert bits.tolist() == [0x3F80, wrap(0xC000, 16)]


@pytest.mark.parametrize("type_", ["f32", "f64"])
def test_a_multiply_add_is_rounded_once(type_: str) -> None:
    dtype = DTYPES[type_]
    generator = torch.Generator().manual_seed(0)
    a, b = (torch.randn(400, generator=generator, dtype=dtype) for _ in range(2))
    # Nearly cancelling, or far smaller, and the exact middle between two numbers and a bit
    c = torch.where(torch.arange(400) % 2 == 0, -a * b, a * b * 1e-9).to(dtype)
    found = apply(f"%r = math.fma %v0, %v1, %v2 : {type_}", [a, b, c], [type_] * 3, type_)
    for x, y, z, r in zip(a.tolist(), b.tolist(), c.tolist(), found.numpy(), strict=True):
        exact = fractions.Fraction(x) * fractions.Fraction(y) + fractions.Fraction(z)
        error = abs(fractions.Fraction(float(r)) - exact)
        neighbours = (np.nextafter(r, r.dtype.type(math.inf)), np.nextafter(r, r.dtype.type(-math.inf)))
        slack = 0 if type_ == "f32" else error / 1000
        assert all(error <= abs(fractions.Fraction(float(n)) - exact) + slack for n in neighbours)


def test_vectors() -> None:
    x = torch.arange(8, dtype=torch.float32)
    code = """
      %v = vector.broadcast %v0 : f32 to vector<4xf32>
      %one = arith.constant dense<[0.0, 1.0, 2.0, 3.0]> : vector<4xf32>
      %s = arith.addf %v, %one : vector<4xf32>
      %i = vector.insert %v0, %s [1] : f32 into vector<4xf32>
      %e:4 = vector.to_elements %i : vector<4xf32>
      %w = vector.from_elements %e#3, %e#2, %e#1, %e#0 : vector<4xf32>
      %q = vector.shuffle %w, %w [0, 1, 2, 7] : vector<4xf32>, vector<4xf32>
      %h = vector.extract_strided_slice %q {offsets = [1], sizes = [3], strides = [1]} : vector<4xf32> to vector<3xf32>
      %a = vector.reduction <add>, %h : vector<3xf32> into f32
      %b = vector.extract %q[0] : f32 from vector<4xf32>
      %r = arith.subf %b, %a : f32
    """
    # q is (x + 3, x + 2, x, x)
    assert apply(code, [x], ["f32"], "f32").tolist() == [(v + 3) - (3 * v + 2) for v in range(8)]


def test_control_flow() -> None:
    """Each lane goes its own way: branches, loops of different lengths, one inside the other."""
    x = torch.arange(64, dtype=torch.int32)
    code = """
      %c0 = arith.constant 0 : i32
      %c1 = arith.constant 1 : i32
      %c3 = arith.constant 3 : i32
      %sum = scf.for %i = %c0 to %v0 step %c1 iter_args(%s = %c0) -> (i32) : i32 {
        %m = arith.remsi %i, %c3 : i32
        %z = arith.cmpi eq, %m, %c0 : i32
        %n = scf.if %z -> i32 {
          %inner = scf.for %j = %c0 to %i step %c3 iter_args(%n1 = %s) -> (i32) : i32 {
            %u = arith.addi %n1, %c1 : i32
            scf.yield %u : i32
          }
          scf.yield %inner : i32
        } else {
          scf.yield %s : i32
        }
        scf.yield %n : i32
      }
      %r, %steps = scf.while (%a = %sum, %k = %c0) : (i32, i32) -> (i32, i32) {
        %go = arith.cmpi sgt, %a, %c3 : i32
        scf.condition(%go) %a, %k : i32, i32
      } do {
      ^bb0(%a: i32, %k: i32):
        %less = arith.subi %a, %c3 : i32
        %more = arith.addi %k, %c1 : i32
        scf.yield %less, %more : i32, i32
      }
    """

    def expected(value: int) -> int:
        total = sum(-(-i // 3) for i in range(0, value, 3))
        while total > 3:
            total -= 3
        return total

    assert apply(code, [x], ["i32"], "i32").tolist() == [expected(value) for value in range(64)]


@pytest.mark.parametrize("mode,source", [("xor", lambda i: i ^ 5), ("idx", lambda _: 5), ("down", lambda i: i + 5)])
def test_shuffles(mode: str, source: Callable[[int], int]) -> None:
    x = torch.arange(64, dtype=torch.int32)
    code = f"""
      %o = arith.constant 5 : i32
      %w = arith.constant 32 : i32
      %s, %ok = gpu.shuffle {mode} %v0, %o, %w : i32
      %m = arith.constant -1 : i32
      %r = arith.select %ok, %s, %m : i32
    """
    expected = [source(i % 32) + i // 32 * 32 if source(i % 32) < 32 else -1 for i in range(64)]
    assert apply(code, [x], ["i32"], "i32").tolist() == expected


def test_an_unknown_operation_is_named() -> None:
    with pytest.raises(KernelError, match=r"no operation 'math.ipowi'; runtime/simt/ops_math.py is where to add it"):
        apply("%r = math.ipowi %v0, %v0 : i32", [torch.ones(4, dtype=torch.int32)], ["i32"], "i32")
    with pytest.raises(KernelError, match=r"no numbers of type i4; runtime/simt/elements.py"):
        apply(
            "%c = arith.trunci %v0 : i32 to i4\n%r = arith.extui %c : i4 to i32", [torch.ones(4).int()], ["i32"], "i32"
        )
