"""math, and the NVVM intrinsics that stand for it. What numpy lacks is torch's."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import torch

from ...dialects.mlir import ir
from .compiler import Compiler, Step, Table, computed, elementwise, unsupported
from .elements import Array


def _by_torch(function: Callable[[torch.Tensor], torch.Tensor]) -> Callable[[Array], Array]:
    return lambda x: function(torch.from_numpy(np.array(x))).numpy()


def _round_away(x: Array) -> Array:
    """Halves away from zero."""
    whole = np.trunc(x)
    return np.where(np.abs(x - whole) >= 0.5, whole + np.copysign(np.ones_like(x), x), whole)


def _multiply_add(a: Array, b: Array, c: Array) -> Array:
    """a * b + c, rounded once."""
    if a.dtype == np.float64:
        return _multiply_add_double(a, b, c)
    # The product is exact in f64; rounding the sum to odd makes rounding it again harmless
    product, addend = a.astype(np.float64) * b, c.astype(np.float64)
    total, error = _two_sum(product, addend)
    inexact = np.isfinite(total) & (error != 0)
    bits = total.view(np.int64)
    away = (error < 0) == (total > 0)
    odd = np.where(inexact, (bits - away) | 1, bits).view(np.float64)
    return odd.astype(a.dtype)


def _multiply_add_double(a: Array, b: Array, c: Array) -> Array:
    product = a * b
    (a_high, a_low), (b_high, b_low) = _split(a), _split(b)
    rest = ((a_high * b_high - product) + a_high * b_low + a_low * b_high) + a_low * b_low
    total, error = _two_sum(product, c)
    exact = total + (error + rest)
    return np.where(np.isfinite(exact), exact, product + c)


def _two_sum(a: Array, b: Array) -> tuple[Array, Array]:
    """The rounded sum, and what rounding lost."""
    total = a + b
    other = total - a
    return total, (a - (total - other)) + (b - other)


def _split(a: Array) -> tuple[Array, Array]:
    """A double as two of half its digits."""
    scaled = a * 134217729.0
    high = scaled - (scaled - a)
    return high, a - high


def _flushed(x: Array) -> Array:
    """Numbers below the normal ones are 0."""
    return np.where(np.abs(x) < np.finfo(x.dtype).tiny, np.copysign(np.zeros_like(x), x), x)


INTRINSICS: dict[str, Callable[..., Array]] = {
    "llvm.nvvm.div.full": np.divide,
    "llvm.nvvm.ex2.approx.ftz.f": lambda x: _flushed(np.exp2(_flushed(x))),
}


def _intrinsic(compiler: Compiler, op: ir.Operation) -> Step:
    name = ir.StringAttr(op.attributes["intrin"]).value
    if name not in INTRINSICS:
        raise unsupported(op, f"no intrinsic '{name}'", "ops_math.py")
    return computed(compiler, op, INTRINSICS[name])


OPS: Table = {
    "math.absf": elementwise(np.abs),
    "math.absi": elementwise(np.abs),
    "math.acos": elementwise(np.arccos),
    "math.acosh": elementwise(np.arccosh),
    "math.asin": elementwise(np.arcsin),
    "math.asinh": elementwise(np.arcsinh),
    "math.atan": elementwise(np.arctan),
    "math.atan2": elementwise(np.arctan2),
    "math.atanh": elementwise(np.arctanh),
    "math.cbrt": elementwise(np.cbrt),
    "math.ceil": elementwise(np.ceil),
    "math.copysign": elementwise(np.copysign),
    "math.cos": elementwise(np.cos),
    "math.cosh": elementwise(np.cosh),
    "math.erf": elementwise(_by_torch(torch.erf)),
    "math.erfc": elementwise(_by_torch(torch.erfc)),
    "math.exp": elementwise(np.exp),
    "math.exp2": elementwise(np.exp2),
    "math.expm1": elementwise(np.expm1),
    "math.floor": elementwise(np.floor),
    "math.fma": elementwise(_multiply_add),
    "math.isfinite": elementwise(np.isfinite),
    "math.isinf": elementwise(np.isinf),
    "math.isnan": elementwise(np.isnan),
    "math.log": elementwise(np.log),
    "math.log10": elementwise(np.log10),
    "math.log1p": elementwise(np.log1p),
    "math.log2": elementwise(np.log2),
    "math.powf": elementwise(np.power),
    "math.round": elementwise(_round_away),
    "math.roundeven": elementwise(np.rint),
    "math.rsqrt": elementwise(lambda x: (1 / np.sqrt(x)).astype(x.dtype)),
    "math.sin": elementwise(np.sin),
    "math.sinh": elementwise(np.sinh),
    "math.sqrt": elementwise(np.sqrt),
    "math.tan": elementwise(np.tan),
    "math.tanh": elementwise(np.tanh),
    "math.trunc": elementwise(np.trunc),
}
LLVM_OPS: Table = {"llvm.call_intrinsic": _intrinsic}
