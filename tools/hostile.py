"""What of an input would end the process, or never end, if MLIR were given it: told as a diagnostic instead.

MLIR's parser and printer recurse, as do we, so nesting is limited; text has to be UTF-8, which the bindings demand of
every name; and aliases may not stand for more than memory holds. What else ends the process, `command.run_isolated`
tells.
"""

from __future__ import annotations

import re
from collections.abc import Iterator

import numpy as np

from ..driver.errors import Diagnostic

DEEPEST = 256
"""Brackets inside each other, those of aliases included; twenty times what a compiler's output has."""
LONGEST_NUMBER = 1000
"""Digits: reading more takes MLIR quadratic time."""
LARGEST_EXPANSION = 1 << 28
"""Bytes of the text with all aliases written out, as MLIR prints some of them."""
BYTECODE = b"ML\xefR"
"""How a file of MLIR's binary format starts."""
SKIPPED = re.compile(rb'"[^"\\\n]*(?:\\.[^"\\\n]*)*"|//[^\n]*|->')
NUMBER = re.compile(rb"(?:0x[0-9a-fA-F]|[0-9])[0-9a-fA-F]{%d}" % LONGEST_NUMBER)
SIGNS = re.compile(rb"(?:-\s*){%d}" % (DEEPEST + 1))
ALIAS = re.compile(rb"(?m)^[ \t]*([#!][A-Za-z_$][\w$.\-]*)[ \t]*=")
NAME = re.compile(rb"[#!][A-Za-z_$][\w$.\-]*")
ESCAPE = re.compile(rb"\\([0-9a-fA-F]{2})")
STEPS = np.zeros(256, np.int32)
"""What a byte of code adds to how deep what follows is nested."""
STEPS[list(b"([{<")], STEPS[list(b")]}>")] = 1, -1


def why_hostile(text: bytes, name: str) -> Diagnostic | None:
    """Why a program must not be parsed, at its place in the file `name`; None where it may be."""
    if text.startswith(BYTECODE):
        return Diagnostic(
            name, 1, 1, "error", "this is bytecode; MLIR's reader trusts its every byte, so text is needed"
        )
    found = next(_faults(text), None)
    if found is None:
        return None
    position, message = found
    line = text.count(b"\n", 0, position) + 1
    return Diagnostic(name, line, position - text.rfind(b"\n", 0, position), "error", message)


def _faults(text: bytes) -> Iterator[tuple[int, str]]:
    try:
        text.decode()
    except UnicodeDecodeError as error:
        yield error.start, f"byte 0x{text[error.start]:02x} is not part of UTF-8 text"
    yield from _undecodable_strings(text)
    # As long as before, so that positions are the same
    code = SKIPPED.sub(lambda skipped: b" " * len(skipped[0]), text)
    for number in NUMBER.finditer(code):
        yield number.start(), f"a number of more than {LONGEST_NUMBER} digits"
    for signs in SIGNS.finditer(code):
        yield signs.start(), f"more than {DEEPEST} signs in a row"
    yield from _nesting(code)


def _undecodable_strings(text: bytes) -> Iterator[tuple[int, str]]:
    for string in SKIPPED.finditer(text) if b"\\" in text else ():
        if string[0].startswith(b'"') and b"\\" in string[0]:
            try:
                ESCAPE.sub(lambda escape: bytes([int(escape[1], 16)]), string[0]).decode()
            except UnicodeDecodeError:
                yield string.start(), "the bytes of this string are not UTF-8 text"


def _nesting(code: bytes) -> Iterator[tuple[int, str]]:
    """Pieces that end where the next alias is defined, each with what its aliases stand for."""
    starts = [match.start() for match in ALIAS.finditer(code)]
    depths: dict[bytes, int] = {}
    sizes: dict[bytes, int] = {}
    expansion = 0
    for start, end in zip([0, *starts], [*starts, len(code)], strict=True):
        defined = ALIAS.match(code, start)
        inside = code[defined.end() if defined else start : end]
        used = NAME.findall(inside)
        below = max((depths.get(name, 0) for name in used), default=0)
        own, position = _deepest(inside)
        if own + below > DEEPEST:
            yield end - len(inside) + position, f"nested more than {DEEPEST} deep"
        size = min(len(inside) + sum(sizes.get(name, 0) for name in used), 2 * LARGEST_EXPANSION)
        if defined:
            depths[defined[1]], sizes[defined[1]] = own + below, size
        expansion += size
        if expansion > LARGEST_EXPANSION:
            yield start, f"aliases stand for more than {LARGEST_EXPANSION >> 20} MiB of text"


def _deepest(code: bytes) -> tuple[int, int]:
    """How deep brackets are inside each other, and where they are."""
    depths = np.cumsum(STEPS[np.frombuffer(code, np.uint8)])
    # A bracket that closes nothing, as in `d0 >= 0`, leads no deeper than the top
    depths -= np.minimum(np.minimum.accumulate(depths), 0)
    position = int(depths.argmax()) if len(depths) else 0
    return (int(depths[position]) if len(depths) else 0), position
