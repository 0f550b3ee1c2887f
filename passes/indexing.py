"""Index arithmetic as data: linear forms over bounded atoms.

Where an element of a tensor comes from is a linear form, `2*row + column + 1`, over *atoms*: loop counters,
indices read from memory, and quotients or remainders that stay nonlinear. Because each atom knows its range,
taking a linear index apart along a shape and putting it together again cancel exactly:

    (i*8 + j) // 8  ->  i        and   (i*8 + j) % 8  ->  j        for 0 <= j < 8

which is what lets a chain of reshapes, slices and transposes become one address. Forms carry no MLIR values:
the same forms serve to judge a fusion, to choose a vector width and to emit code.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from functools import cached_property

from .sizes import Extent, Size, common_divisor, divides

Bound = Extent | float
"""An extent, or an infinity."""
Bounds = tuple[Bound, Bound]


@dataclass(frozen=True, eq=False)
class Counter:
    """An atom that runs over 0 <= counter < extent: a loop, a thread, an element of a dimension."""

    extent: Extent
    label: str = "d"

    @property
    def bounds(self) -> Bounds:
        return 0, max(self.extent - 1, 0)


@dataclass(frozen=True)
class Loaded:
    """An index that the program computes, from memory for instance; equal keys mean equal values."""

    key: object

    @property
    def bounds(self) -> Bounds:
        return -math.inf, math.inf


@dataclass(frozen=True)
class Quotient:
    """floor(form / divisor), where it is not a linear form itself."""

    form: Form
    divisor: Extent

    @property
    def bounds(self) -> Bounds:
        low, high = self.form.bounds
        if isinstance(low, Size) or isinstance(high, Size) or isinstance(self.divisor, Size):
            return 0 if low >= 0 else -math.inf, math.inf
        return low // self.divisor, high // self.divisor


@dataclass(frozen=True)
class Remainder:
    """form - divisor * floor(form / divisor): never negative."""

    form: Form
    divisor: Extent

    @property
    def bounds(self) -> Bounds:
        return 0, self.divisor - 1


Atom = Counter | Loaded | Quotient | Remainder
Index = tuple["Form", ...]


@dataclass(frozen=True)
class Form:
    """constant + sum of coefficient * atom; no coefficient is zero, an atom occurs once."""

    terms: frozenset[tuple[Atom, Extent]] = frozenset()
    constant: Extent = 0

    def __hash__(self) -> int:
        return self._hash

    @cached_property
    def _hash(self) -> int:
        return hash((self.terms, self.constant))

    @cached_property
    def bounds(self) -> Bounds:
        """The least and the greatest value, both inclusive."""
        low: Bound = self.constant
        high: Bound = self.constant
        for atom, coefficient in self.terms:
            least, greatest = _scaled(atom.bounds, coefficient)
            low, high = _plus(low, least), _plus(high, greatest)
        return low, high

    def coefficient(self, atom: Atom) -> Extent:
        return next((coefficient for other, coefficient in self.terms if other == atom), 0)

    def __add__(self, other: Form | Extent) -> Form:
        if not isinstance(other, Form):
            return Form(self.terms, self.constant + other) if other else self
        return _combine([*self.terms, *other.terms], self.constant + other.constant)

    def __sub__(self, other: Form | Extent) -> Form:
        return self + other * -1 if isinstance(other, Form) else self + -other

    def __mul__(self, factor: Extent) -> Form:
        if factor == 0:
            return Form()
        scaled = frozenset((atom, coefficient * factor) for atom, coefficient in self.terms)
        return Form(scaled, self.constant * factor)

    def __floordiv__(self, divisor: Extent) -> Form:
        whole, rest = self._split(divisor)
        return whole if rest._within(divisor) else whole + of(Quotient(*_reduced(rest, divisor)))

    def __mod__(self, divisor: Extent) -> Form:
        _, rest = self._split(divisor)
        return rest if rest._within(divisor) else of(Remainder(rest, divisor))

    def _split(self, divisor: Extent) -> tuple[Form, Form]:
        """(whole, rest) with self = divisor * whole + rest, the rest holding what can't be divided."""
        whole = [(atom, c // divisor) for atom, c in self.terms if divides(divisor, c)]
        rest = frozenset((atom, c) for atom, c in self.terms if not divides(divisor, c))
        if isinstance(divisor, Size) and not divides(divisor, self.constant):
            return Form(frozenset(whole)), Form(rest, self.constant)
        return Form(frozenset(whole), self.constant // divisor), Form(rest, self.constant % divisor)

    def _within(self, divisor: Extent) -> bool:
        low, high = self.bounds
        return low >= 0 and high < divisor

    def atoms(self) -> Iterable[Atom]:
        """Every atom, those inside quotients and remainders too."""
        for atom, _ in self.terms:
            yield atom
            if isinstance(atom, Quotient | Remainder):
                yield from atom.form.atoms()

    def substitute(self, replace: Callable[[Atom], Form | None]) -> Form:
        """The form with each atom replaced by what `replace` gives for it; None keeps the atom."""
        result = Form(frozenset(), self.constant)
        for atom, coefficient in self.terms:
            result = result + _substituted(atom, replace) * coefficient
        return result


def _scaled(bounds: Bounds, coefficient: Extent) -> Bounds:
    """The bounds of a multiple."""
    least, greatest = bounds
    if coefficient >= 0:
        return _multiple(least, coefficient), _multiple(greatest, coefficient)
    if coefficient <= 0:
        return -_multiple(greatest, -coefficient), -_multiple(least, -coefficient)
    return -math.inf, math.inf


def _multiple(bound: Bound, factor: Extent) -> Bound:
    """Of a factor that is more than 0."""
    return bound if isinstance(bound, float) else bound * factor


def _plus(one: Bound, other: Bound) -> Bound:
    if isinstance(one, float):
        return one
    return other if isinstance(other, float) else one + other


def _substituted(atom: Atom, replace: Callable[[Atom], Form | None]) -> Form:
    replacement = replace(atom)
    if replacement is not None:
        return replacement
    if isinstance(atom, Quotient):
        return atom.form.substitute(replace) // atom.divisor
    if isinstance(atom, Remainder):
        return atom.form.substitute(replace) % atom.divisor
    return of(atom)


def of(atom: Atom) -> Form:
    """The form that is this atom."""
    return Form(frozenset([(atom, 1)]))


def constant(value: Extent) -> Form:
    """The form that is this number."""
    return Form(frozenset(), value)


def _combine(terms: Sequence[tuple[Atom, Extent]], number: Extent) -> Form:
    total: dict[Atom, Extent] = {}
    for atom, coefficient in terms:
        total[atom] = total.get(atom, 0) + coefficient
    return _rejoin(Form(frozenset((atom, c) for atom, c in total.items() if c), number), total)


def _rejoin(form: Form, total: dict[Atom, Extent]) -> Form:
    """n*(x // n) + x % n is x: undoes an index taken apart and put together along the same shape."""
    for atom, coefficient in total.items():
        if not isinstance(atom, Remainder) or coefficient == 0:
            continue
        whole = (atom.form // atom.divisor) * (atom.divisor * coefficient)
        if whole.terms and _contains(form, whole):
            return form - whole - of(atom) * coefficient + atom.form * coefficient
    return form


def _contains(form: Form, part: Form) -> bool:
    return all(form.coefficient(atom) == coefficient for atom, coefficient in part.terms)


def _reduced(form: Form, divisor: Extent) -> tuple[Form, Extent]:
    """The same quotient with the common factor of all terms and the divisor taken out."""
    varying = [form.constant] if isinstance(form.constant, Size) else []
    common = common_divisor(divisor, *(coefficient for _, coefficient in form.terms), *varying)
    if common == 1:
        return form, divisor
    terms = frozenset((atom, coefficient // common) for atom, coefficient in form.terms)
    return Form(terms, form.constant // common), divisor // common


def linearize(index: Sequence[Form], strides: Sequence[Extent], offset: Extent = 0) -> Form:
    """The element offset of an index: offset + sum of index * stride."""
    result = constant(offset)
    for form, stride in zip(index, strides, strict=True):
        result = result + form * stride
    return result


def delinearize(form: Form, shape: Sequence[Extent]) -> Index:
    """The index along `shape` of a row-major linear position, which must lie inside the shape.

    Where the shape has no elements, there is no position, and any index will do.
    """
    index: list[Form] = []
    for extent in (max(extent, 1) for extent in reversed(shape[1:])):
        index.append(form % extent)
        form = form // extent
    return (*([form] if shape else []), *reversed(index))


def row_major(shape: Sequence[Extent]) -> list[Extent]:
    """Strides, in elements, of a contiguous tensor."""
    strides: list[Extent] = []
    step: Extent = 1
    for extent in reversed(shape):
        strides.append(step)
        step *= max(extent, 1)
    return strides[::-1]
