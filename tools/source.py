"""Reading input and writing output for the command lines, so that nothing is ever half written."""

from __future__ import annotations

import os
import re
import stat
import sys
import tempfile
from dataclasses import dataclass
from pathlib import Path

from ..dialects.mlir import ir
from ..driver.errors import Diagnostic, UserError, diagnostics_of
from .hostile import why_hostile

SPLIT = re.compile(rb"^// -----[ \t\r]*\n", re.MULTILINE)


@dataclass(frozen=True)
class Chunk:
    """A module's text; newlines before it keep the line numbers of the file that it was cut from."""

    name: str
    text: bytes
    path: Path | None = None
    """The file, where the chunk is the whole of it."""

    def parse(self) -> ir.Module:
        """The module, in the current context."""
        fault = why_hostile(self.text, self.name)
        if fault is not None:
            raise UserError(f"{self.name}: can't parse the module", [fault])
        try:
            return ir.Module.parseFile(str(self.path)) if self.path else ir.Module.parse(self.text)
        except ir.MLIRError as error:
            found = tuple(self.named(one) for one in diagnostics_of(error))
            raise UserError(f"{self.name}: can't parse the module", found) from None

    def located(self, error: UserError) -> UserError:
        """The error with the file's name in its diagnostics."""
        return UserError(error.message, [self.named(one) for one in error.diagnostics])

    def named(self, diagnostic: Diagnostic) -> Diagnostic:
        """The diagnostic with the file's name: text that came from no file is "-" to MLIR."""
        return diagnostic.renamed("-", self.name)


def read_chunks(argument: str, split: bool) -> list[Chunk]:
    """The input, cut at `// -----` lines if `split`."""
    name, text = _read(argument)
    if not split:
        regular = argument != "-" and Path(argument).is_file()
        return [Chunk(name, text, Path(argument) if regular else None)]
    chunks, start = [], 0
    for marker in [*SPLIT.finditer(text), None]:
        end = marker.start() if marker else len(text)
        chunks.append(Chunk(name, b"\n" * text.count(b"\n", 0, start) + text[start:end]))
        start = marker.end() if marker else end
    return chunks


def write_output(path: str | None, content: str | bytes) -> None:
    """To a file, which appears whole or not at all, or to standard output."""
    data = content.encode() if isinstance(content, str) else content
    if path is None or path == "-":
        _write_standard_output(data)
        return
    try:
        _write_file(Path(path), data)
    except OSError as error:
        raise UserError(f"can't write {path!r}: {error.strerror}") from None


def _write_standard_output(data: bytes) -> None:
    try:
        sys.stdout.flush()
        sys.stdout.buffer.write(data)
        sys.stdout.buffer.flush()
    except BrokenPipeError:
        raise
    except OSError as error:
        # What is still held back can't be written either, and must not be tried at the end
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        raise UserError(f"can't write standard output: {error.strerror}") from None


def _read(argument: str) -> tuple[str, bytes]:
    if argument == "-":
        return "<stdin>", sys.stdin.buffer.read()
    try:
        return argument, Path(argument).read_bytes()
    except OSError as error:
        raise UserError(f"can't read {argument!r}: {error.strerror}") from None
    except ValueError as error:
        raise UserError(f"can't read {argument!r}: {error}") from None


def _write_file(path: Path, data: bytes) -> None:
    target = path.resolve()
    if target.exists() and not stat.S_ISREG(target.stat().st_mode):
        # A device or a pipe: nothing to replace
        target.write_bytes(data)
        return
    descriptor, temporary = tempfile.mkstemp(prefix=f".{target.name}.", dir=target.parent)
    try:
        with os.fdopen(descriptor, "wb") as file:
            file.write(data)
        os.chmod(temporary, _mode(target))
        os.replace(temporary, target)
    except BaseException:
        os.unlink(temporary)
        raise


def _mode(target: Path) -> int:
    """The permissions of the file that is replaced, or those of any new file."""
    if target.exists():
        return stat.S_IMODE(target.stat().st_mode)
    mask = os.umask(0)
    os.umask(mask)
    return 0o666 & ~mask
