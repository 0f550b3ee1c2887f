"""LLVM IR text as LLVM 24 prints it, in the form that LLVM 22 parses.

The MLIR bindings are built from LLVM 24, llvmlite (which has the code generators) from LLVM 22. Textual IR
carries one to the other, and they differ in how they write floating-point constants:

    %1 = fadd float %0, 4.471500e-02         the shortest decimal that rounds to the value
    %2 = fadd float %1, f0x7F7FFFFF          or its bits
    %3 = fmul half %h, +inf                  or +qnan, -nan(0x12), +snan(0x12)

LLVM 22 refuses a decimal that is not exact in the type, and doesn't know the other forms. It does read
bits: `0xH` and four digits for a half, `0xR` and four for a bfloat, sixteen digits of the *double* of the
same value for a float and a double:

    %1 = fadd float %0, 0x3FA6E4E260000000
    %2 = fadd float %1, 0x47EFFFFFE0000000
    %3 = fmul half %h, 0xH7C00

A literal does not say its type; the nearest floating-point type named before it on the same line does. That
holds for every instruction and constant that LLVM prints. Names, strings and comments are skipped, so that
a variable may be called `%float`, and a string may contain `1.5`.
"""

from __future__ import annotations

import re
import struct
from collections.abc import Iterator
from dataclasses import dataclass
from fractions import Fraction
from functools import lru_cache


@dataclass(frozen=True)
class Format:
    """An IEEE 754 binary format."""

    mantissa_bits: int
    exponent_bits: int

    @property
    def min_exponent(self) -> int:
        """The exponent of the smallest normal number, and of all subnormal ones."""
        return 2 - (1 << (self.exponent_bits - 1))

    @property
    def sign(self) -> int:
        return 1 << (self.mantissa_bits + self.exponent_bits)

    @property
    def infinity(self) -> int:
        return ((1 << self.exponent_bits) - 1) << self.mantissa_bits

    @property
    def quiet(self) -> int:
        """The bit that tells a quiet NaN from a signalling one."""
        return 1 << (self.mantissa_bits - 1)


FORMATS = {
    "half": Format(mantissa_bits=10, exponent_bits=5),
    "bfloat": Format(mantissa_bits=7, exponent_bits=8),
    "float": Format(mantissa_bits=23, exponent_bits=8),
    "double": Format(mantissa_bits=52, exponent_bits=11),
}

# Whether a line can hold a literal at all: most don't, and splitting a line into tokens is what costs
CANDIDATE = re.compile(r"\d\.\d|f0x|[+-](?:inf|s?nan|qnan)")

TOKEN = re.compile(
    r"""
    (?P<literal> [+-]? \d+ \. \d* (?: [eE] [+-]? \d+ )?
               | f0x [0-9A-Fa-f]+
               | [+-] (?: inf | qnan | s?nan \( 0x [0-9A-Fa-f]+ \) ) ) (?! [\w.$] )
  | (?P<type> half | bfloat | float | double ) (?! [\w.$-] )
  | " [^"]* "                        # a string, or the quoted part of a name
  | [%@$!\#] [\w.$-]+                # a name
  | [A-Za-z_.$] [\w.$-]*             # any other word
  | ; .*                             # a comment
    """,
    re.VERBOSE,
)


def to_llvm22(text: str) -> str:
    """The same module with floating-point literals that LLVM 22 reads."""
    return "\n".join(_rewrite_line(line) if CANDIDATE.search(line) else line for line in text.split("\n"))


def _rewrite_line(line: str) -> str:
    return "".join(_rewritten_pieces(line))


def _rewritten_pieces(line: str) -> Iterator[str]:
    float_type = None
    copied = 0
    for token in TOKEN.finditer(line):
        if token["type"]:
            float_type = token["type"]
        elif token["literal"] and float_type:
            yield line[copied : token.start()]
            yield llvm22_literal(token["literal"], float_type)
            copied = token.end()
    yield line[copied:]


@lru_cache(maxsize=4096)
def llvm22_literal(literal: str, float_type: str) -> str:
    """One literal of LLVM 24 in LLVM 22's spelling: `llvm22_literal("+inf", "half")` is `0xH7C00`."""
    bits = literal_bits(literal, FORMATS[float_type])
    if float_type == "half":
        return f"0xH{bits:04X}"
    if float_type == "bfloat":
        return f"0xR{bits:04X}"
    return f"0x{_widen(bits) if float_type == 'float' else bits:016X}"


def literal_bits(literal: str, form: Format) -> int:
    """The bits that a literal of LLVM 24 means in a format."""
    if literal.startswith("f0x"):
        return int(literal[3:], 16)
    sign = form.sign if literal.startswith("-") else 0
    magnitude = literal.lstrip("+-")
    if magnitude == "inf":
        return sign | form.infinity
    if magnitude == "qnan":
        return sign | form.infinity | form.quiet
    if "nan" in magnitude:
        payload = int(magnitude[magnitude.index("(") + 1 : -1], 16)
        return sign | form.infinity | (0 if magnitude.startswith("snan") else form.quiet) | payload
    return sign | round_to_format(Fraction(magnitude), form)


def round_to_format(value: Fraction, form: Format) -> int:
    """The bits of the nearest number to a value that is not negative, ties to even.

    Exact, where going through a Python float would round twice.
    """
    if value == 0:
        return 0
    exponent = value.numerator.bit_length() - value.denominator.bit_length()
    if Fraction(2) ** exponent > value:
        exponent -= 1
    exponent = max(exponent, form.min_exponent)
    # A subnormal number counts units of the smallest exponent. A normal one has one unit more in front, which
    # is just what its exponent field is larger by; rounding up to the next power of two carries into it.
    units = round(value / Fraction(2) ** (exponent - form.mantissa_bits))
    bits = ((exponent - form.min_exponent) << form.mantissa_bits) + units
    return min(bits, form.infinity)


def _widen(bits: int) -> int:
    """The bits of the double of the same value as a float; a NaN keeps its payload, and stays signalling."""
    single, double = FORMATS["float"], FORMATS["double"]
    if bits & ~single.sign > single.infinity:
        sign = double.sign if bits & single.sign else 0
        payload = bits & ((1 << single.mantissa_bits) - 1)
        return sign | double.infinity | payload << (double.mantissa_bits - single.mantissa_bits)
    (value,) = struct.unpack("<f", struct.pack("<I", bits))
    return struct.unpack("<Q", struct.pack("<d", value))[0]
