"""Cuts the printed form of a module into the pieces that belong to one operation each.

The operations of a function stand at one depth, and what is inside one is deeper or begins with a bracket. So one
printing of the whole module, and one pass over its lines, gives the text of every operation; printing each by itself
would number the whole function's values anew each time.

    func.func @main(...) {
      %0 = tensor.empty() : ...                    piece 0
      %1 = linalg.generic {...} ins(%0) {          piece 1, with all lines to the bracket
      } -> ...
      return %1                                    piece 2
    }
"""

from __future__ import annotations

import re
from collections.abc import Sequence

ALIAS = re.compile(r"#[A-Za-z_]\w*")
ENTRY = re.compile(r"\.entry (\w+)\(")
DEPTH = "    "
CONTINUES = (" ", "}", ")", "^", "]")


def body_pieces(text: str) -> list[str]:
    """The pieces of the first function, or nested module, of a printed module: one an operation of its body.

    Each begins with the attribute aliases that it uses.
    """
    aliases = {line.split(" ", 1)[0]: line for line in text.splitlines() if line.startswith("#")}
    return [_with_aliases(piece, aliases) for piece in _cut(_first_body(text))]


def nested_pieces(text: str, opening: str) -> list[str]:
    """The same for the operations inside the module-level operation whose line begins with `opening`."""
    lines = text.splitlines()
    start = next((number for number, line in enumerate(lines) if line.startswith(f"  {opening}")), None)
    aliases = {line.split(" ", 1)[0]: line for line in lines if line.startswith("#")}
    return [] if start is None else [_with_aliases(piece, aliases) for piece in _cut(_until_closed(lines[start + 1 :]))]


def join_pieces(pieces: Sequence[str]) -> str:
    """Several pieces as one text, each alias that they use said once."""
    lines = [line for piece in pieces for line in piece.splitlines()]
    aliases = dict.fromkeys(line for line in lines if line.startswith("#"))
    return "\n".join([*aliases, *(line for line in lines if not line.startswith("#"))])


def ptx_pieces(text: str) -> dict[str, str]:
    """The code of each kernel of a PTX module, by its name, with what stands in front of all of them."""
    lines = text.splitlines()
    starts = [number for number, line in enumerate(lines) if ENTRY.search(line)]
    if not starts:
        return {}
    head = "\n".join(line for line in lines[: starts[0]] if line and not line.startswith("//"))
    found: dict[str, str] = {}
    for start in starts:
        end = next((n for n in range(start, len(lines)) if lines[n].startswith("}")), len(lines) - 1)
        match = ENTRY.search(lines[start])
        if match:
            found[match[1]] = "\n".join([head, "", *lines[start : end + 1]])
    return found


def _first_body(text: str) -> list[str]:
    lines = text.splitlines()
    start = next((number for number, line in enumerate(lines) if line.startswith("  func.func ")), None)
    return [] if start is None else _until_closed(lines[start + 1 :])


def _until_closed(lines: Sequence[str]) -> list[str]:
    end = next((number for number, line in enumerate(lines) if line.startswith("  }")), len(lines))
    return list(lines[:end])


def _cut(lines: Sequence[str]) -> list[str]:
    pieces: list[list[str]] = []
    for line in lines:
        inner = line[len(DEPTH) :]
        if pieces and (not inner or inner.startswith(CONTINUES)):
            pieces[-1].append(inner)
        elif inner:
            pieces.append([inner])
    return ["\n".join(piece) for piece in pieces]


def _with_aliases(piece: str, aliases: dict[str, str]) -> str:
    used = [aliases[name] for name in dict.fromkeys(ALIAS.findall(piece)) if name in aliases]
    return "\n".join([*used, piece])
