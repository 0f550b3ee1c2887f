"""The two kinds of failure, and how each is told.

A fault in the user's program or pipeline is a `UserError`: its text is MLIR diagnostics
(`file:line:col: error: ...`), or one line. A fault of ours is a `InternalError`: it says in which stage and
pass, where the IR that led to it was written, and the command that repeats it.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from ..dialects.mlir import ir

FILE_LOCATION = re.compile(r'"((?:[^"\\]|\\.)*)":(\d+):(\d+)')


@dataclass(frozen=True)
class Diagnostic:
    """One of MLIR's diagnostics, with its location as text and its notes."""

    file: str | None
    line: int
    column: int
    severity: str
    message: str
    notes: tuple[Diagnostic, ...] = ()

    def __str__(self) -> str:
        where = f"{self.file}:{self.line}:{self.column}" if self.file else "<unknown>:0"
        lines = [f"{where}: {self.severity}: {self.message}", *map(str, self.notes)]
        return "\n".join(lines)

    def renamed(self, old: str, new: str) -> Diagnostic:
        """With another name for a file, in its notes too."""
        file = new if self.file == old else self.file
        return replace(self, file=file, notes=tuple(note.renamed(old, new) for note in self.notes))


class UserError(ValueError):
    """The program, the pipeline or an option is wrong."""

    def __init__(self, message: str, diagnostics: Sequence[Diagnostic] = ()) -> None:
        """`diagnostics` come first in the text; without any, it is the message alone."""
        super().__init__(message)
        self.message = message
        self.diagnostics = tuple(diagnostics)

    def __str__(self) -> str:
        return "\n".join(map(str, self.diagnostics)) if self.diagnostics else self.message


@dataclass
class InternalError(RuntimeError):
    """We failed, not the user."""

    stage: str
    pass_name: str
    reason: str
    folder: Path
    command: str

    def __str__(self) -> str:
        return (
            f"internal error in stage {self.stage!r}, pass {self.pass_name!r}: {self.reason}\n"
            f"The IR before the stage and the traceback are in {self.folder}\n"
            f"To repeat: {self.command}"
        )


def diagnostic(info: ir.DiagnosticInfo | ir.Diagnostic) -> Diagnostic:
    """What the bindings give, as values that outlive it; without the note that repeats the operation."""
    severity = str(info.severity).rpartition(".")[2].lower()
    notes = (diagnostic(note) for note in info.notes)
    kept = tuple(note for note in notes if not note.message.startswith("see current operation"))
    return _located(str(info.location), severity, info.message, kept)


def diagnostics_of(error: ir.MLIRError) -> tuple[Diagnostic, ...]:
    """The diagnostics that an exception of the bindings carries."""
    return tuple(diagnostic(info) for info in error.error_diagnostics)


def diagnostic_at(location: ir.Location, message: str) -> Diagnostic:
    """An error of our own at a location of the program."""
    return _located(str(location), "error", message, ())


def _located(location: str, severity: str, message: str, notes: tuple[Diagnostic, ...]) -> Diagnostic:
    found = FILE_LOCATION.search(location)
    file, line, column = (found[1], int(found[2]), int(found[3])) if found else (None, 0, 0)
    return Diagnostic(file, line, column, severity, message, notes)
