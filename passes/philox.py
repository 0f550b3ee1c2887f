"""Random numbers as functions of where they stand: Philox4x32-10, ten rounds of a block cipher on a counter.

(J. Salmon et al., Parallel random numbers: as easy as 1, 2, 3.) Elements 4k to 4k + 3 of a draw, in row-major order,
are the four 32-bit words of counter `offset + k` under the key `seed`. So an element has the same value whoever
computes it: any schedule, on any target, in any fusion. Four neighbours take one computation.

    bits      the word
    uniform   its upper bits, as many as the type has digits, in [0, 1)
    normal    of two words: Box and Muller's method, in f32
"""

from __future__ import annotations

import math as numbers
from collections.abc import Sequence

from ..dialects.mlir import arith, ir, math

WORDS = 4  # of a counter
ROUNDS = 10
MULTIPLIERS = (0xD2511F53, 0xCD9E8D57)
KEY_STEPS = (0x9E3779B9, 0xBB67AE85)
DIGITS = {"f32": 24, "f16": 11, "bf16": 8}


def words(seed: ir.Value, counter: ir.Value) -> list[ir.Value]:
    """The four i32 words of a counter (i64) under a key (i64)."""
    zero = _i32(0)
    state = [*_halves(counter), zero, zero]
    key = _halves(seed)
    for turn in range(ROUNDS):
        if turn:
            key = [arith.AddIOp(half, _i32(step)).result for half, step in zip(key, KEY_STEPS, strict=True)]
        state = _round(state, key)
    return state


def elements(kind: str, type_: ir.Type, drawn: Sequence[ir.Value]) -> list[ir.Value]:
    """What the words of a counter are as elements of a draw."""
    if kind == "bits":
        return list(drawn)
    if kind == "uniform":
        return [_uniform(word, type_) for word in drawn]
    pairs = [_normals(drawn[place], drawn[place + 1]) for place in range(0, WORDS, 2)]
    return [element for pair in pairs for element in pair]


def _round(state: Sequence[ir.Value], key: Sequence[ir.Value]) -> list[ir.Value]:
    low0, high0 = _product(state[0], MULTIPLIERS[0])
    low1, high1 = _product(state[2], MULTIPLIERS[1])
    return [_xor(_xor(high1, state[1]), key[0]), low1, _xor(_xor(high0, state[3]), key[1]), low0]


def _product(word: ir.Value, factor: int) -> list[ir.Value]:
    """The halves of a product, the lower first."""
    return _halves(arith.MulIOp(arith.ExtUIOp(_type(64), word).result, _constant(factor, 64)).result)


def _halves(value: ir.Value) -> list[ir.Value]:
    high = arith.ShRUIOp(value, _constant(32, 64)).result
    return [arith.TruncIOp(_type(32), half).result for half in (value, high)]


def _uniform(word: ir.Value, type_: ir.Type) -> ir.Value:
    digits = DIGITS[str(type_)]
    kept = arith.ShRUIOp(word, _i32(32 - digits)).result
    value = _times(arith.UIToFPOp(ir.F32Type.get(), kept).result, 2.0**-digits)
    return value if isinstance(type_, ir.F32Type) else arith.TruncFOp(type_, value).result


def _normals(one: ir.Value, other: ir.Value) -> list[ir.Value]:
    """Two independent ones: a distance from the origin and a direction."""
    f32 = ir.F32Type.get()
    above_zero = arith.AddFOp(_times(arith.UIToFPOp(f32, one).result, 2.0**-32), _f32(2.0**-33)).result
    distance = math.SqrtOp(_times(math.LogOp(above_zero).result, -2.0)).result
    angle = _times(_uniform(other, f32), 2 * numbers.pi)
    return [arith.MulFOp(distance, turn(angle).result).result for turn in (math.CosOp, math.SinOp)]


def _times(value: ir.Value, factor: float) -> ir.Value:
    return arith.MulFOp(value, _f32(factor)).result


def _xor(one: ir.Value, other: ir.Value) -> ir.Value:
    return arith.XOrIOp(one, other).result


def _type(width: int) -> ir.Type:
    return ir.IntegerType.get_signless(width)


def _i32(value: int) -> ir.Value:
    return _constant(value, 32)


def _constant(value: int, width: int) -> ir.Value:
    signed = value - 2**width if value >= 2 ** (width - 1) else value
    return arith.ConstantOp(_type(width), signed).result


def _f32(value: float) -> ir.Value:
    return arith.ConstantOp(ir.F32Type.get(), value).result
