"""Turns index forms into MLIR arithmetic, for counters that a schedule has bound to values.

Counters that are the digits of one linear position (row-major over their extents) are bound as a group. A
form that uses neighbouring digits in step then needs no division: over a group (i < 4, j < 8) of position
%p, `8*i + j` is %p itself, while `j` alone is %p mod 8.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass

from ..dialects.mlir import arith, ir
from .indexing import Atom, Counter, Form, Quotient, Remainder, of
from .sizes import Extent, Size, emit


@dataclass(frozen=True)
class Digits:
    """Counters that are the row-major digits of `position`."""

    position: ir.Value
    counters: tuple[Counter, ...]


class Binding:
    """Values of counters, and the arithmetic that makes forms of them at the current insertion point."""

    def __init__(self) -> None:
        self._values: dict[Atom, ir.Value] = {}
        self._groups: list[Digits] = []

    def bind(self, atom: Atom, value: ir.Value) -> None:
        """Makes an atom stand for an index value."""
        self._values[atom] = value

    def bind_digits(self, counters: Sequence[Counter], position: ir.Value) -> None:
        """Makes counters stand for the digits of a linear position."""
        self._groups.append(Digits(position, tuple(counters)))

    @contextmanager
    def bound(self, atom: Atom, value: ir.Value) -> Iterator[None]:
        """Binds an atom inside a loop."""
        self._values[atom] = value
        try:
            yield
        finally:
            del self._values[atom]

    def number(self, value: Extent) -> ir.Value:
        """An index constant, or the value of a size."""
        return emit(value)

    def emit(self, form: Form) -> ir.Value:
        """The value of a form."""
        remaining = dict(form.terms)
        parts = [part for group in self._groups for part in self._digits(group, remaining)]
        parts += [self._scaled(self._atom(atom), c) for atom, c in _ordered(remaining)]
        if form.constant != 0 or not parts:
            parts.append(self.number(form.constant))
        result = parts[0]
        for part in parts[1:]:
            result = arith.AddIOp(result, part).result
        return result

    def _digits(self, group: Digits, remaining: dict[Atom, Extent]) -> Iterator[ir.Value]:
        """The terms of a group's counters, neighbouring digits in step taken together."""
        counters = group.counters
        last = len(counters) - 1
        while last >= 0:
            coefficient = remaining.pop(counters[last], 0)
            first, expected = last, coefficient
            while coefficient != 0 and first > 0:
                expected *= counters[first].extent
                if remaining.get(counters[first - 1]) != expected:
                    break
                del remaining[counters[first - 1]]
                first -= 1
            if coefficient != 0:
                yield self._scaled(self._run(group, first, last), coefficient)
            last = first - 1

    def _run(self, group: Digits, first: int, last: int) -> ir.Value:
        """The number that digits first..last make."""
        extents = [counter.extent for counter in group.counters]
        below, within = math.prod(extents[last + 1 :]), math.prod(extents[first : last + 1])
        value = group.position
        if below != 1:
            value = arith.DivUIOp(value, self.number(below)).result
        return arith.RemUIOp(value, self.number(within)).result if first else value

    def _scaled(self, value: ir.Value, factor: Extent) -> ir.Value:
        return value if factor == 1 else arith.MulIOp(value, self.number(factor)).result

    def _atom(self, atom: Atom) -> ir.Value:
        if isinstance(atom, Quotient):
            return self._quotient(atom)
        if isinstance(atom, Remainder):
            return self._remainder(atom)
        if atom not in self._values:
            raise KeyError(f"{atom} is not bound here")
        return self._values[atom]

    def _quotient(self, atom: Quotient) -> ir.Value:
        if atom.form.bounds[0] >= 0:
            return arith.DivUIOp(self.emit(atom.form), self.number(atom.divisor)).result
        floor = self.emit(atom.form - of(Remainder(atom.form, atom.divisor)))
        return arith.DivSIOp(floor, self.number(atom.divisor)).result

    def _remainder(self, atom: Remainder) -> ir.Value:
        value, divisor = self.emit(atom.form), self.number(atom.divisor)
        if atom.form.bounds[0] >= 0:
            return arith.RemUIOp(value, divisor).result
        signed = arith.RemSIOp(value, divisor).result
        return arith.RemSIOp(arith.AddIOp(signed, divisor).result, divisor).result


def _ordered(terms: dict[Atom, Extent]) -> list[tuple[Atom, Extent]]:
    """The terms in an order that does not depend on hashes, so that equal kernels print equally."""
    return sorted(terms.items(), key=_order, reverse=True)


def _order(term: tuple[Atom, Extent]) -> tuple[int, int, str, str]:
    atom, factor = term
    return (1, 0, str(factor), str(atom)) if isinstance(factor, Size) else (0, abs(factor), "", str(atom))
