"""Which lines of the user's source an operation came from, as its location says.

loc(callsite("model.py":7:0 at "train.py":30:0))                 model.py:7, the innermost frame
loc(fused["model.py":7:0, "model.py":9:0])                       model.py:7 and model.py:9
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator

from ..dialects.mlir import ir

# Not a frame that called another one
FRAME = re.compile(r'(?<! at )(?<! at callsite\()"((?:[^"\\]|\\.)*)":(\d+):\d+')


def lines_of(op: ir.Operation) -> tuple[str, ...]:
    """`file:line` of each operation inside `op`, in order, each once; of itself where nothing is inside."""
    return tuple(dict.fromkeys(line for text in dict.fromkeys(_locations(op)) for line in lines_in(text)))


def lines_in(location: str) -> Iterable[str]:
    """The lines that a printed location names."""
    return (f"{file}:{line}" for file, line in FRAME.findall(location) if line != "0")


def _locations(op: ir.Operation) -> Iterator[str]:
    found = False
    for region in op.regions:
        for block in region.blocks:
            for inner in block.operations:
                if inner.operation.name.startswith(("linalg.generic", "tensor.concat", "tensor.pad")):
                    found = True
                    yield str(inner.operation.location)
    if not found:
        yield str(op.location)
