"""Which vector a group of neighbouring elements makes: lanes of a counter.

A thread handles `count` neighbouring elements at once: lane k stands at `last + k`, where `last` is the
innermost of `run`, counters that are contiguous with each other in every access (their merged position is a
multiple of `count`). For a form, the questions are how it changes from lane to lane, and by what number its
first lane is divisible: together they say whether a vector load will do, and how it is aligned.
"""

from __future__ import annotations

from dataclasses import dataclass

from .indexing import Atom, Counter, Form, Index, Quotient, Remainder, of
from .sizes import Extent, common_divisor, divides


@dataclass(frozen=True)
class Lanes:
    """`count` neighbouring values of the innermost counter of `run`.

    `aligned`: lane 0 of the merged run is a multiple of `count`; not so where the last vector of a row
    overlaps the one before it. `multiples` are forms that are multiples of `count` at lane 0 all the same: a
    schedule has chosen where to start so that they are.
    """

    count: int
    run: tuple[Counter, ...]
    aligned: bool = True
    multiples: tuple[Form, ...] = ()

    def step(self, form: Form) -> Extent | None:
        """By how much `form` grows from a lane to the next; None where that is not a constant."""
        total = self._merged_step(form)
        if total is None:
            return None
        for atom, coefficient in form.terms:
            if not isinstance(atom, Quotient | Remainder) or not self._varies(atom):
                continue
            inner = self._derived_step(atom)
            if inner is None:
                return None
            total += inner * coefficient
        return total

    def steps(self, index: Index) -> list[Extent | None]:
        """The step of each of an index's forms."""
        return [self.step(form) for form in index]

    def shifted(self, form: Form, lane: int) -> Form:
        """The form at a lane."""
        if lane == 0:
            return form
        last = self.run[-1]
        return form.substitute(lambda atom: of(atom) + lane if atom == last else None)

    def divisor(self, form: Form) -> int:
        """A number that divides `form` at lane 0, as large as is known; 0 for the form 0."""
        if any(self._known_divisor(form - multiple) % self.count == 0 for multiple in self.multiples):
            return self.count
        return self._known_divisor(form)

    def _known_divisor(self, form: Form) -> int:
        merged = self._merged_step(form)
        known = common_divisor(form.constant, (merged or 0) * self._unit)
        for atom, coefficient in form.terms:
            if atom not in self.run or merged is None:
                known = common_divisor(known, coefficient * self._atom_divisor(atom))
        return known

    @property
    def _unit(self) -> int:
        return self.count if self.aligned else 1

    def _merged_step(self, form: Form) -> Extent | None:
        """The run's merged coefficient, None where the form does not treat the run as one counter."""
        step = expected = form.coefficient(self.run[-1])
        for outer, inner in zip(self.run[-2::-1], self.run[:0:-1], strict=True):
            expected *= inner.extent
            if form.coefficient(outer) != expected:
                return None
        return step

    def _varies(self, atom: Quotient | Remainder) -> bool:
        return any(inner in self.run for inner in atom.form.atoms())

    def _derived_step(self, atom: Quotient | Remainder) -> Extent | None:
        """Inside an aligned group of lanes a quotient stands still and a remainder runs with its form."""
        step = self.step(atom.form)
        if step == 0:
            return 0
        aligned = self.aligned and self.divisor(atom.form) % self.count == 0 and divides(self.count, atom.divisor)
        if step != 1 or not aligned:
            return None
        return 1 if isinstance(atom, Remainder) else 0

    def _atom_divisor(self, atom: Atom) -> int:
        if isinstance(atom, Remainder):
            return common_divisor(self.divisor(atom.form), atom.divisor)
        return 1
