"""`--verify-diagnostics`: comments that say which diagnostics a test expects, as mlir-opt reads them.

    // expected-error @+1 {{part of the message}}
    "fusion.yield"() : () -> ()

Severity: error, warning, remark, note. Where: `@+N`, `@-N`, `@above`, `@below`, `@unknown`, nothing for the
comment's own line. `-re` after the severity makes each `{{...}}` inside the text a regular expression.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass

from ..driver.errors import Diagnostic

EXPECTATION = re.compile(
    r"expected-(?P<severity>error|warning|remark|note)(?P<regex>-re)? *"
    r"(?:@(?P<where>[+-]\d+|above|below|unknown) *)?\{\{(?P<text>.*)\}\}\s*$"
)


@dataclass(frozen=True)
class Expected:
    """A diagnostic that must come; a line of None is anywhere unknown."""

    severity: str
    line: int | None
    text: str
    comment_line: int
    is_regex: bool = False

    def matches(self, diagnostic: Diagnostic) -> bool:
        """Whether this is the one."""
        line = diagnostic.line if diagnostic.file else None
        if (diagnostic.severity, line) != (self.severity, self.line):
            return False
        if self.is_regex:
            return re.search(_pattern(self.text), diagnostic.message) is not None
        return self.text in diagnostic.message


def read_expectations(text: str) -> list[Expected]:
    """The expectations in a module's text."""
    lines = text.split("\n")
    found = []
    for number, line in enumerate(lines, start=1):
        matched = EXPECTATION.search(line)
        if matched:
            place = _line(matched["where"], number, lines)
            found.append(Expected(matched["severity"], place, matched["text"], number, bool(matched["regex"])))
    return found


def compare(expected: Sequence[Expected], diagnostics: Sequence[Diagnostic], name: str) -> list[Diagnostic]:
    """What was expected and did not come, and what came and was not expected."""
    missing = list(expected)
    problems = []
    for diagnostic in _with_notes(diagnostics):
        match = next((one for one in missing if one.matches(diagnostic)), None)
        if match:
            missing.remove(match)
        elif diagnostic.severity != "note":
            message = f"unexpected {diagnostic.severity}: {diagnostic.message}"
            problems.append(Diagnostic(diagnostic.file, diagnostic.line, diagnostic.column, "error", message))
    for one in missing:
        message = f'expected {one.severity} "{one.text}" was not produced'
        problems.append(Diagnostic(name, one.comment_line, 1, "error", message))
    return problems


def _with_notes(diagnostics: Sequence[Diagnostic]) -> list[Diagnostic]:
    found = []
    for diagnostic in diagnostics:
        found += [diagnostic, *_with_notes(diagnostic.notes)]
    return found


def _line(where: str | None, number: int, lines: Sequence[str]) -> int | None:
    if where == "unknown":
        return None
    if where == "below":
        # The next line that is not an expectation itself
        return next(n for n in range(number + 1, number + 2 + len(lines)) if not _is_comment(lines, n))
    if where == "above":
        return next(n for n in range(number - 1, -1, -1) if not _is_comment(lines, n))
    return number + int(where or 0)


def _is_comment(lines: Sequence[str], number: int) -> bool:
    return 1 <= number <= len(lines) and EXPECTATION.search(lines[number - 1]) is not None


def _pattern(text: str) -> str:
    parts = re.split(r"\{\{(.*?)\}\}", text)
    return "".join(part if index % 2 else re.escape(part) for index, part in enumerate(parts))
