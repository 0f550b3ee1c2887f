"""What the checker reports: an error in a kernel, with the operation's location and the threads."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Literal

from ...dialects.mlir import ir

Kind = Literal[
    "bounds",
    "alignment",
    "uninitialised",
    "incomplete",
    "race",
    "barrier",
    "shuffle",
    "launch",
    "assertion",
    "unsupported",
]
MOST_CHARACTERS = 200


class KernelError(Exception):
    """A kernel does what no kernel may do; `kind` says which rule it broke, `location` is MLIR's."""

    def __init__(self, kind: Kind, op: ir.Operation, message: str, threads: str = "") -> None:
        self.kind: Kind = kind
        self.location = op.location
        self.message = f"{message}{f', {threads}' if threads else ''}; in kernel @{_kernel(op)}: {_line(op)}"
        super().__init__(f"{_place(op.location)}: error: {self.message}")


class TrapError(KernelError, IndexError):
    """An assertion of a kernel failed, which is how a kernel says that an index is out of range."""


def threads_text(places: Sequence[str], count: int) -> str:
    """`by thread ... and n more`, from the first places of `count`."""
    more = f" and {count - 1} more" if count > 1 else ""
    return f"by {places[0]}{more}"


def _place(location: ir.Location) -> str:
    return str(location).removeprefix("loc(").removesuffix(")")


def _line(op: ir.Operation) -> str:
    """The operation's first line."""
    text = op.get_asm(skip_regions=True, use_local_scope=True, assume_verified=True).strip()
    return text if len(text) <= MOST_CHARACTERS else text[:MOST_CHARACTERS] + "..."


def _kernel(op: ir.Operation) -> str:
    while op.name != "gpu.func" and op.parent is not None:
        op = op.parent.operation
    return ir.StringAttr(op.attributes["sym_name"]).value if op.name == "gpu.func" else "?"
