"""A program's text with sizes in it, from its texts for two sets of sizes.

What the symbols are is known by example: a program is made twice, each symbol with another number in each. Where the
two texts differ, they differ in numbers, and each pair of numbers is an expression of the symbols:

    tensor<211x64xf32>  in one, where s0 is 211       tensor<[s0]x64xf32>
    tensor<223x64xf32>  in the other, where it is 223

The texts of a program that depends on its sizes in any other way differ in something else, which is refused.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from .sizes import Extent, Size, symbol, value_of

# Places in the source, names, types and attributes, each one piece, so that numbers in them are not taken for sizes
TOKEN = re.compile(
    r"""(?P<opaque>"(?:[^"\\]|\\.)*"(?::\d+:\d+)?|[%#@!^][\w.$#-]+|0x[0-9A-Fa-f]+|(?<![\dx])[A-Za-z_][\w.$]*)"""
    r"""|(?P<float>\d+\.\d*(?:[eE][+-]?\d+)?)|(?P<int>\d+)"""
)
NEAR = 16  # how far from a product of sizes a number may be: a window less 1, a padding


class NotGeneralError(Exception):
    """The program depends on its sizes in a way that is not known for all sizes."""


class AmbiguousError(Exception):
    """A number of the program is one that stands for a size: other numbers may do."""


@dataclass(frozen=True)
class Examples:
    """By name: the numbers that a symbol, or a value computed from symbols, has in the two texts."""

    symbols: Mapping[str, tuple[int, int]]
    computed: Mapping[str, tuple[int, int]]

    def extent(self, one: int, other: int) -> Extent:
        """The expression that has these values; NotGeneralError if none is found."""
        if one == other:
            return one
        for distance in sorted(range(-NEAR, NEAR + 1), key=abs):
            product = self._product(one - distance, other - distance)
            if product is not None:
                return product + distance
        raise NotGeneralError(f"{one} and {other} are no expression of its sizes")

    def _product(self, one: int, other: int) -> Extent | None:
        """A product of symbols, perhaps of one computed value, and a number."""
        result: Extent = 1
        for name, (first, second) in self.symbols.items():
            while one and one % first == 0 and other % second == 0 and other:
                result, one, other = result * symbol(name), one // first, other // second
        for name, (first, second) in self.computed.items():
            if one != other and one and one % first == 0 and other % second == 0 and one // first == other // second:
                return result * symbol(name) * (one // first)
        return result * one if one == other and isinstance(result, Size) else None


@dataclass(frozen=True)
class Number:
    """A place in the text where a size is written."""

    extent: Extent
    is_float: bool

    def at(self, values: Mapping[str, int]) -> str:
        """The number for these values of the symbols."""
        number = value_of(self.extent, values)
        return f"{number}.0" if self.is_float else str(number)

    def __str__(self) -> str:
        return f"[{self.extent}]"


@dataclass(frozen=True)
class SizeTemplate:
    """The text in pieces, and what the numbers of the first text stand for."""

    parts: Sequence[str | Number]
    stand_ins: Mapping[int, Size]

    def at(self, values: Mapping[str, int]) -> str:
        """The text for these values of the symbols."""
        return "".join(part if isinstance(part, str) else part.at(values) for part in self.parts)

    def __str__(self) -> str:
        return "".join(map(str, self.parts))


def size_template(one: str, other: str, examples: Examples) -> SizeTemplate:
    """The program whose texts these are; NotGeneralError where there is none, AmbiguousError for other examples."""
    parts: list[str | Number] = []
    plain: set[int] = set()
    place = place_in_other = 0
    others = TOKEN.finditer(other)
    for token in TOKEN.finditer(one):
        match = next(others, None)
        between = one[place : token.start()]
        if match is None or match.lastgroup != token.lastgroup or between != other[place_in_other : match.start()]:
            raise NotGeneralError("its operations depend on its sizes")
        parts += [between, _number(token, match, examples)]
        if token.lastgroup != "opaque" and token[0] == match[0]:
            plain.add(int(float(token[0])))
        place, place_in_other = token.end(), match.end()
    if next(others, None) is not None or one[place:] != other[place_in_other:]:
        raise NotGeneralError("its operations depend on its sizes")
    parts.append(one[place:])
    return SizeTemplate(_joined(parts), _stand_ins(one, parts, plain, examples))


def _number(one: re.Match[str], other: re.Match[str], examples: Examples) -> str | Number:
    if one[0] == other[0]:
        return one[0]
    if one.lastgroup == "opaque":
        raise NotGeneralError(f"{one[0]} is {other[0]} for other sizes")
    first, second = float(one[0]), float(other[0])
    if not first.is_integer() or not second.is_integer():
        raise NotGeneralError(f"it computes with {one[0]}, which is {other[0]} for other sizes")
    return Number(examples.extent(int(first), int(second)), one.lastgroup == "float")


def _stand_ins(one: str, parts: Sequence[str | Number], plain: set[int], examples: Examples) -> dict[int, Size]:
    """What each number stands for; each has one meaning."""
    values = {name: pair[0] for name, pair in {**examples.symbols, **examples.computed}.items()}
    found: dict[int, Size] = {}
    for extent in (part.extent for part in parts if isinstance(part, Number)):
        number = value_of(extent, values)
        assert isinstance(extent, Size)
        if number in plain or found.setdefault(number, extent) != extent:
            raise AmbiguousError(f"{number} stands for {extent} and for something else")
    return found


def _joined(parts: Sequence[str | Number]) -> tuple[str | Number, ...]:
    """The same with neighbouring texts made one."""
    joined: list[str | Number] = []
    for part in parts:
        last = joined[-1] if joined else None
        if isinstance(part, str) and isinstance(last, str):
            joined[-1] = last + part
        else:
            joined.append(part)
    return tuple(joined)
