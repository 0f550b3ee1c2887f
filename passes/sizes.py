"""Sizes that no kernel knows while it is compiled: polynomials of symbols, whose values come with each launch.

    s = symbol("s0")
    64 * s - s * 64 == 0        (2 * s + 1) * s        16 * s % 8 == 0        8 * s > 7 is False: s may be 0

They stand where numbers stand otherwise, in shapes, strides and index forms, and code is emitted from them (`emit`). A
comparison is true if it is true whatever the symbols' values, each of which is 0 or more; what cannot be told is false.
So "a < b" and "a >= b" may both be false, and code that asks has to be right where the answer is false.

IR has numbers only. While a program with symbols is compiled, each has a number that *stands in* for it, and
`standing_in` says what a number in a type or an attribute means (docs/dynamic-shapes.md).
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING

from ..dialects.mlir import arith, ir

Monomial = tuple["Atom", ...]


@dataclass(frozen=True)
class Floor:
    """floor(dividend / divisor), where that is no polynomial; neither is negative."""

    dividend: Extent
    divisor: Extent

    def __str__(self) -> str:
        return f"({self.dividend} // {self.divisor})"


Atom = str | Floor


class UndecidedError(Exception):
    """Code for all sizes would need to know more of a size than is known."""


# To type checkers a size is a number: whatever takes one takes the other, or raises an UndecidedError
Number = int if TYPE_CHECKING else object


@dataclass(frozen=True, eq=False)
class Size(Number):
    """A polynomial that is no number; make one with `symbol` and arithmetic. Equal if equal for all symbols."""

    terms: frozenset[tuple[Monomial, int]]

    @cached_property
    def _hash(self) -> int:
        return hash(self.terms)

    def __hash__(self) -> int:
        return self._hash

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Size) and self.terms == other.terms

    def __str__(self) -> str:
        return " + ".join(_term_text(monomial, factor) for monomial, factor in _ordered(self))

    __repr__ = __str__

    def __bool__(self) -> bool:
        """It may be another number than 0."""
        return True

    def __add__(self, other: Extent) -> Extent:
        return _sum(((_terms(self), 1), (_terms(other), 1)))

    __radd__ = __add__

    def __neg__(self) -> Size:
        return Size(frozenset((monomial, -factor) for monomial, factor in self.terms))

    def __sub__(self, other: Extent) -> Extent:
        return self + -other

    def __rsub__(self, other: Extent) -> Extent:
        return -self + other

    def __mul__(self, other: Extent) -> Extent:
        return _sum((_times(_terms(self), monomial), factor) for monomial, factor in _terms(other).items())

    __rmul__ = __mul__

    def __floordiv__(self, divisor: Extent) -> Extent:
        return _divide(self, divisor)

    def __rfloordiv__(self, dividend: int) -> Extent:
        return 0 if dividend == 0 else _divide(dividend, self)

    def __mod__(self, divisor: Extent) -> Extent:
        return self - self // divisor * divisor

    def __rmod__(self, dividend: int) -> Extent:
        return dividend - dividend // self * self

    def __divmod__(self, divisor: Extent) -> tuple[Extent, Extent]:
        return self // divisor, self % divisor

    def __index__(self) -> int:
        raise UndecidedError(f"the value of {self}")

    def __truediv__(self, other: object) -> float:
        raise UndecidedError(f"the value of {self}")

    def bit_length(self) -> int:
        """What a number would answer."""
        raise UndecidedError(f"the value of {self}")

    def __lt__(self, other: float | Size) -> bool:
        return _is_never_negative(other - self - 1) if isinstance(other, int | Size) else other == math.inf

    def __le__(self, other: float | Size) -> bool:
        return _is_never_negative(other - self) if isinstance(other, int | Size) else other == math.inf

    def __gt__(self, other: float | Size) -> bool:
        return _is_never_negative(self - other - 1) if isinstance(other, int | Size) else other == -math.inf

    def __ge__(self, other: float | Size) -> bool:
        return _is_never_negative(self - other) if isinstance(other, int | Size) else other == -math.inf


Extent = int | Size


def symbol(name: str) -> Size:
    """The size that is a symbol."""
    return Size(frozenset([((name,), 1)]))


def divides(divisor: Extent, number: Extent) -> bool:
    """Whether it is known that nothing is left."""
    if isinstance(number, int) and isinstance(divisor, int):
        return number % divisor == 0
    return _long_division(number, divisor)[1] == 0


def up(number: Extent, divisor: int) -> Extent:
    """number / divisor, rounded up."""
    return -(-number // divisor) if isinstance(number, int) else (number + (divisor - 1)) // divisor


def common_divisor(*numbers: Extent) -> int:
    """A number that divides all, as large as is known."""
    return math.gcd(*(math.gcd(*_terms(number).values()) for number in numbers))


def value_of(number: Extent, symbols: Mapping[str, int]) -> int:
    """The number that an extent is for these values."""
    if isinstance(number, int):
        return number
    return sum(factor * math.prod(_atom_value(atom, symbols) for atom in monomial) for monomial, factor in number.terms)


def _atom_value(atom: Atom, symbols: Mapping[str, int]) -> int:
    if isinstance(atom, str):
        return symbols[atom]
    return value_of(atom.dividend, symbols) // value_of(atom.divisor, symbols)


def _terms(number: Extent) -> dict[Monomial, int]:
    if isinstance(number, Size):
        return dict(number.terms)
    return {(): number} if number else {}


def _make(terms: Mapping[Monomial, int]) -> Extent:
    left = {monomial: factor for monomial, factor in terms.items() if factor}
    return left.get((), 0) if left.keys() <= {()} else Size(frozenset(left.items()))


def _sum(parts: Iterable[tuple[Mapping[Monomial, int], int]]) -> Extent:
    total: dict[Monomial, int] = {}
    for terms, factor in parts:
        for monomial, own in terms.items():
            total[monomial] = total.get(monomial, 0) + own * factor
    return _make(total)


def _times(terms: Mapping[Monomial, int], by: Monomial) -> dict[Monomial, int]:
    return {tuple(sorted((*monomial, *by), key=str)): factor for monomial, factor in terms.items()}


def _divide(dividend: Extent, divisor: Extent) -> Extent:
    """The quotient; what can be told to leave no rest is divided as a polynomial, term by term."""
    whole, rest = _long_division(dividend, divisor)
    if rest == 0 or (rest >= 0 and rest < divisor):
        return whole
    if not _is_never_negative(dividend):
        raise UndecidedError(f"whether {dividend} is negative")
    return Size(frozenset([((Floor(dividend, divisor),), 1)]))


def _long_division(dividend: Extent, divisor: Extent) -> tuple[Extent, Extent]:
    """(quotient, rest) where dividend = quotient * divisor + rest, by the divisor's leading term."""
    lead, factor = _ordered(divisor)[0] if isinstance(divisor, Size) else ((), divisor)
    whole: Extent = 0
    rest: Extent = 0
    while _terms(dividend):
        monomial, own = _ordered(dividend)[0]
        left = _without(monomial, lead)
        if left is None or own % factor:
            rest, taken = rest + _make({monomial: own}), _make({monomial: own})
        else:
            part = _make({left: own // factor})
            whole, taken = whole + part, part * divisor
        dividend = dividend - taken
    return whole, rest


def _without(monomial: Monomial, part: Monomial) -> Monomial | None:
    """monomial / part, if it is one."""
    left = list(monomial)
    for atom in part:
        if atom not in left:
            return None
        left.remove(atom)
    return tuple(left)


def _is_never_negative(number: Extent) -> bool:
    return all(factor >= 0 for factor in _terms(number).values())


def _ordered(number: Extent) -> list[tuple[Monomial, int]]:
    """The terms, those of most symbols first; the order does not depend on hashes."""
    return sorted(_terms(number).items(), key=lambda term: (-len(term[0]), str(term[0])))


def _term_text(monomial: Monomial, factor: int) -> str:
    return "*".join(map(str, (*([] if factor == 1 and monomial else [factor]), *monomial)))


# -- in IR

_STAND_INS: ContextVar[Mapping[int, Size] | None] = ContextVar("stand-ins", default=None)
_VALUES: ContextVar[Mapping[str, ir.Value] | None] = ContextVar("values of symbols", default=None)


@contextmanager
def standing_in(numbers: Mapping[int, Size]) -> Iterator[None]:
    """Makes numbers in the IR mean sizes."""
    token = _STAND_INS.set(numbers)
    try:
        yield
    finally:
        _STAND_INS.reset(token)


@contextmanager
def symbol_values(values: Mapping[str, ir.Value]) -> Iterator[None]:
    """Where emitted code finds the symbols: index values, arguments of the function."""
    token = _VALUES.set(values)
    try:
        yield
    finally:
        _VALUES.reset(token)


def symbols_in_force() -> list[str]:
    """The symbols of the sizes that numbers stand for, in order."""
    sizes = (_STAND_INS.get() or {}).values()
    return sorted({atom for size in sizes for monomial, _ in size.terms for atom in monomial if isinstance(atom, str)})


def meaning(number: int) -> Extent:
    """What a number in a type or an attribute means."""
    return (_STAND_INS.get() or {}).get(number, number)


def meanings(numbers: Sequence[int]) -> list[Extent]:
    """What each number means."""
    known = _STAND_INS.get()
    return [known.get(number, number) for number in numbers] if known else list(numbers)


def emit(number: Extent) -> ir.Value:
    """The number, or the size's value, as an index."""
    if isinstance(number, int):
        return arith.ConstantOp(ir.IndexType.get(), number).result
    parts = [_emit_term(monomial, factor) for monomial, factor in _ordered(number)]
    result = parts[0]
    for part in parts[1:]:
        result = arith.AddIOp(result, part).result
    return result


def _emit_term(monomial: Monomial, factor: int) -> ir.Value:
    values = [_emit_atom(atom) for atom in monomial]
    if factor != 1 or not values:
        values.append(emit(factor))
    result = values[0]
    for value in values[1:]:
        result = arith.MulIOp(result, value).result
    return result


def _emit_atom(atom: Atom) -> ir.Value:
    if isinstance(atom, str):
        return (_VALUES.get() or {})[atom]
    return arith.DivUIOp(emit(atom.dividend), emit(atom.divisor)).result
