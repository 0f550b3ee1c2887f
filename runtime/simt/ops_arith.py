"""arith: integers wrap, floats round to nearest; what is undefined (a division by 0) gives any number."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from ...dialects.mlir import ir
from .compiler import Build, Compiler, Step, Table, computed, elementwise
from .elements import Array, from_bits, round_to, to_bits

Function = Callable[..., Array]


def _integers(function: Function, boolean: Function | None = None) -> Build:
    """Integers of any width; single bits as `boolean` has them, if that differs."""

    def build(compiler: Compiler, op: ir.Operation) -> Step:
        is_boolean = compiler.element(op.results[0]).is_boolean
        return computed(compiler, op, boolean if is_boolean and boolean else function)

    return build


def _unsigned(function: Function) -> Function:
    """A function of unsigned numbers, for signed arrays of them."""
    return lambda *values: function(*map(as_unsigned, values)).view(values[0].dtype)


def as_unsigned(values: Array) -> Array:
    """The same bits without a sign."""
    return values if values.dtype == bool else values.view(f"u{values.itemsize}")


def as_signed(values: Array) -> Array:
    """A single bit, 1, is -1."""
    return -values.astype(np.int8) if values.dtype == bool else values


def _divide(a: Array, b: Array) -> Array:
    """Towards zero."""
    return (a - np.fmod(a, b)) // b


def _ceil_divide(a: Array, b: Array) -> Array:
    return a // b + (np.remainder(a, b) != 0)


def _maximum(a: Array, b: Array) -> Array:
    """A NaN wins, and 0 is more than -0."""
    return np.where((a == 0) & (b == 0), a + b, np.maximum(a, b))


def _minimum(a: Array, b: Array) -> Array:
    return -_maximum(-a, -b)


INTEGER_COMPARISONS: tuple[Function, ...] = (
    np.equal,
    np.not_equal,
    lambda a, b: as_signed(a) < as_signed(b),
    lambda a, b: as_signed(a) <= as_signed(b),
    lambda a, b: as_signed(a) > as_signed(b),
    lambda a, b: as_signed(a) >= as_signed(b),
    lambda a, b: as_unsigned(a) < as_unsigned(b),
    lambda a, b: as_unsigned(a) <= as_unsigned(b),
    lambda a, b: as_unsigned(a) > as_unsigned(b),
    lambda a, b: as_unsigned(a) >= as_unsigned(b),
)


def _unordered(a: Array, b: Array) -> Array:
    return np.isnan(a) | np.isnan(b)


FLOAT_COMPARISONS: tuple[Function, ...] = (
    lambda a, b: np.zeros(np.broadcast(a, b).shape, bool),
    np.equal,
    np.greater,
    np.greater_equal,
    np.less,
    np.less_equal,
    lambda a, b: (a != b) & ~_unordered(a, b),
    lambda a, b: ~_unordered(a, b),
    lambda a, b: (a == b) | _unordered(a, b),
    lambda a, b: ~(a <= b),
    lambda a, b: ~(a < b),
    lambda a, b: ~(a >= b),
    lambda a, b: ~(a > b),
    np.not_equal,
    _unordered,
    lambda a, b: np.ones(np.broadcast(a, b).shape, bool),
)


def _compare_integers(compiler: Compiler, op: ir.Operation) -> Step:
    return computed(compiler, op, INTEGER_COMPARISONS[ir.IntegerAttr(op.attributes["predicate"]).value])


def _compare_floats(compiler: Compiler, op: ir.Operation) -> Step:
    return computed(compiler, op, FLOAT_COMPARISONS[ir.IntegerAttr(op.attributes["predicate"]).value])


def _select(compiler: Compiler, op: ir.Operation) -> Step:
    """A scalar condition chooses whole vectors."""
    axes = _rank(op.operands[1]) - _rank(op.operands[0])
    if not axes:
        return computed(compiler, op, np.where)
    return computed(compiler, op, lambda c, a, b: np.where(c.reshape(-1, *[1] * axes), a, b))


def _rank(value: ir.Value) -> int:
    return ir.VectorType(value.type).rank if isinstance(value.type, ir.VectorType) else 0


def _resize(is_signed: bool) -> Build:
    """To an integer of another width."""

    def build(compiler: Compiler, op: ir.Operation) -> Step:
        element = compiler.element(op.results[0])
        if element.is_boolean:
            return computed(compiler, op, lambda x: (x & 1).astype(bool))
        extended = as_signed if is_signed else as_unsigned
        return computed(compiler, op, lambda x: extended(x).astype(element.register))

    return build


def _round(compiler: Compiler, op: ir.Operation) -> Step:
    """To a narrower float."""
    element = compiler.element(op.results[0])
    return computed(compiler, op, lambda x: round_to(element, x))


def _extend(compiler: Compiler, op: ir.Operation) -> Step:
    element = compiler.element(op.results[0])
    return computed(compiler, op, lambda x: x.astype(element.register, copy=False))


def _from_integer(is_signed: bool) -> Build:
    def build(compiler: Compiler, op: ir.Operation) -> Step:
        element = compiler.element(op.results[0])
        read = as_signed if is_signed else as_unsigned
        wide = np.dtype(np.float64) if element.size < 4 else element.register
        return computed(compiler, op, lambda x: round_to(element, read(x).astype(wide)))

    return build


def _to_integer(is_signed: bool) -> Build:
    """Towards zero; what is out of range becomes the nearest, NaN 0, as on the GPU."""

    def build(compiler: Compiler, op: ir.Operation) -> Step:
        element = compiler.element(op.results[0])
        bits = max(8 * element.size, 32)
        low, high = (-(2 ** (bits - 1)), 2 ** (bits - 1) - 1) if is_signed else (0, 2**bits - 1)

        def convert(x: Array) -> Array:
            whole = np.trunc(np.nan_to_num(x.astype(np.float64), nan=0.0, posinf=2.0**70, neginf=-(2.0**70)))
            above, below = whole >= high, whole <= low
            exact = np.where(above | below, 0, whole).astype(np.int64 if is_signed else np.uint64)
            clamped = np.where(above, high, np.where(below, low, exact))
            return clamped.astype(bool) if element.is_boolean else clamped.astype(element.register)

        return computed(compiler, op, convert)

    return build


def _bitcast(compiler: Compiler, op: ir.Operation) -> Step:
    source, target = compiler.element(op.operands[0]), compiler.element(op.results[0])
    return computed(compiler, op, lambda x: from_bits(target, to_bits(source, x)))


OPS: Table = {
    "arith.addi": _integers(np.add, np.logical_xor),
    "arith.subi": _integers(np.subtract, np.logical_xor),
    "arith.muli": _integers(np.multiply, np.logical_and),
    "arith.divsi": elementwise(_divide),
    "arith.divui": elementwise(_unsigned(np.floor_divide)),
    "arith.ceildivsi": elementwise(_ceil_divide),
    "arith.floordivsi": elementwise(np.floor_divide),
    "arith.remsi": elementwise(np.fmod),
    "arith.remui": elementwise(_unsigned(np.remainder)),
    "arith.andi": elementwise(np.bitwise_and),
    "arith.ori": elementwise(np.bitwise_or),
    "arith.xori": elementwise(np.bitwise_xor),
    "arith.shli": elementwise(np.left_shift),
    "arith.shrsi": elementwise(np.right_shift),
    "arith.shrui": elementwise(_unsigned(np.right_shift)),
    "arith.maxsi": _integers(np.maximum, np.logical_and),
    "arith.minsi": _integers(np.minimum, np.logical_or),
    "arith.maxui": elementwise(_unsigned(np.maximum)),
    "arith.minui": elementwise(_unsigned(np.minimum)),
    "arith.addf": elementwise(np.add),
    "arith.subf": elementwise(np.subtract),
    "arith.mulf": elementwise(np.multiply),
    "arith.divf": elementwise(np.divide),
    "arith.remf": elementwise(np.fmod),
    "arith.negf": elementwise(np.negative),
    "arith.maximumf": elementwise(_maximum),
    "arith.minimumf": elementwise(_minimum),
    "arith.maxnumf": elementwise(np.fmax),
    "arith.minnumf": elementwise(np.fmin),
    "arith.cmpi": _compare_integers,
    "arith.cmpf": _compare_floats,
    "arith.select": _select,
    "arith.extsi": _resize(is_signed=True),
    "arith.extui": _resize(is_signed=False),
    "arith.trunci": _resize(is_signed=True),
    "arith.index_cast": _resize(is_signed=True),
    "arith.index_castui": _resize(is_signed=False),
    "arith.extf": _extend,
    "arith.truncf": _round,
    "arith.sitofp": _from_integer(is_signed=True),
    "arith.uitofp": _from_integer(is_signed=False),
    "arith.fptosi": _to_integer(is_signed=True),
    "arith.fptoui": _to_integer(is_signed=False),
    "arith.bitcast": _bitcast,
}
"""`arith.constant` is the compiler's own."""
