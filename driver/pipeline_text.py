"""Pass pipelines as text, spelled as MLIR spells them.

    builtin.module(fusion-normalize,func.func(canonicalize,cse),fusion-dataflow{horizontal=false})

Upstream passes and ours mix freely. MLIR's own parser doesn't know ours, so the text is read here, into

    Nest("builtin.module", (PassText("fusion-normalize"), Nest("func.func", (PassText("canonicalize"), ...)))

and `resolve` makes steps of it: our passes become instances, runs of upstream ones stay text. A mistake is
located in the text, and names the nearest thing that exists:

    unknown pass 'fusion-dataflw', did you mean 'fusion-dataflow'?
      builtin.module(fusion-normalize,fusion-dataflw)
                                      ^
"""

from __future__ import annotations

import re
import string
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field

from ..dialects.mlir import ir, passmanager
from ..passes import PASSES
from ..passes.pass_base import Pass, unknown
from .errors import UserError

ROOT = "builtin.module"
WHOLE = "fusion-pipeline"
NAME = re.compile(r"[A-Za-z_][\w.\-]*")
CLOSING = {"{": "}", "[": "]", "(": ")", '"': '"', "'": "'"}


@dataclass(frozen=True)
class PassText:
    """A pass as written: its name and its options, unread."""

    name: str
    options: str = ""
    position: int = field(default=0, compare=False)

    def __str__(self) -> str:
        return f"{self.name}{{{self.options}}}" if self.options else self.name


@dataclass(frozen=True)
class Nest:
    """Passes that run on each operation of this name."""

    anchor: str
    elements: tuple[PassText | Nest, ...]
    position: int = field(default=0, compare=False)

    def __str__(self) -> str:
        return f"{self.anchor}({','.join(map(str, self.elements))})"


@dataclass(frozen=True)
class Whole:
    """The whole pipeline by its name: `fusion-pipeline{fusion=dataflow emit=ptx}`."""

    settings: Mapping[str, str | None]


Step = Pass | str | Whole
"""What to run on the module: a pass of ours, a run of upstream passes as text, or the whole pipeline."""


class PipelineError(UserError):
    """A mistake in the text of a pipeline, with a caret under it."""

    def __init__(self, message: str, text: str, position: int) -> None:
        """`position` counts characters of `text`."""
        start = text.rfind("\n", 0, position) + 1
        line = text[start:].partition("\n")[0]
        super().__init__(f"pass pipeline: {message}\n  {line}\n  {' ' * (position - start)}^")


def parse(text: str) -> Nest:
    """The pipeline; without `builtin.module(...)` around it, that is understood."""
    reader = _Reader(text)
    elements = reader.elements()
    if reader.position < len(text):
        raise reader.error(f"expected ',' or the end, got {text[reader.position]!r}")
    if len(elements) == 1 and isinstance(elements[0], Nest) and elements[0].anchor == ROOT:
        return elements[0]
    return Nest(ROOT, elements)


def resolve(text: str) -> tuple[Step, ...]:
    """The steps of the pipeline, each checked: names, options, and where passes may stand."""
    steps: list[Step] = []
    for element in parse(text).elements:
        step = _resolve_element(element, text)
        if isinstance(step, str) and steps and isinstance(steps[-1], str):
            steps[-1] += "," + step
        else:
            steps.append(step)
    return tuple(steps)


def is_pass(name: str) -> bool:
    """Whether there is a pass of this name, ours or an upstream one."""
    if name in PASSES or name == WHOLE:
        return True
    with ir.Context():
        return NAME.fullmatch(name) is not None and _is_registered(name)


def print_steps(steps: tuple[Step, ...]) -> str:
    """The text of a pipeline that resolves to these steps."""
    return f"{ROOT}({','.join(_print_step(step) for step in steps)})"


def read_options(element: PassText, text: str) -> dict[str, str | None]:
    """`a=1 b={x,y} c` as a dictionary, None where only the name is given."""
    options: dict[str, str | None] = {}
    for entry in _split_options(element.options):
        key, has_value, value = entry.partition("=")
        if key in options:
            raise PipelineError(f"option {key!r} is given twice", text, element.position)
        options[key] = value if has_value else None
    return options


def _print_step(step: Step) -> str:
    if not isinstance(step, Whole):
        return str(step)
    settings = (key if value is None else f"{key}={value}" for key, value in step.settings.items())
    return str(PassText(WHOLE, " ".join(settings)))


def _resolve_element(element: PassText | Nest, text: str) -> Step:
    if isinstance(element, PassText) and element.name == WHOLE:
        return Whole(read_options(element, text))
    if isinstance(element, PassText) and element.name in PASSES:
        return _our_pass(element, text)
    for nested, anchors in _passes_inside(element, (ROOT,)):
        _check_upstream(nested, anchors, text)
    return str(element)


def _our_pass(element: PassText, text: str) -> Pass:
    options = read_options(element, text)
    try:
        return PASSES[element.name].from_options(options)
    except ValueError as error:
        raise PipelineError(str(error), text, _position_of_fault(element, str(error))) from None


def _position_of_fault(element: PassText, message: str) -> int:
    """Where the first thing that the message quotes stands in the options, else where the pass does."""
    for quoted in re.findall(r"'([^']*)'", message):
        found = element.options.find(quoted)
        if quoted and found >= 0:
            return element.position + len(element.name) + 1 + found
    return element.position


def _passes_inside(element: PassText | Nest, anchors: tuple[str, ...]) -> Iterator[tuple[PassText, tuple[str, ...]]]:
    """Every pass with the anchors around it, outermost first."""
    if isinstance(element, PassText):
        yield element, anchors
        return
    for inner in element.elements:
        yield from _passes_inside(inner, (*anchors, element.anchor))


def _check_upstream(element: PassText, anchors: tuple[str, ...], text: str) -> None:
    if element.name in PASSES or element.name == WHOLE:
        raise PipelineError(
            f"{element.name} runs on {ROOT}, it can't stand inside {anchors[-1]}", text, element.position
        )
    refusal = _refusal(element, anchors)
    if refusal is None:
        return
    if not _is_registered(element.name):
        raise PipelineError(_unknown_pass(element.name), text, element.position)
    bad = re.search(r"no such option ([\w.\-]+)", refusal)
    if bad is None:
        raise PipelineError(refusal, text, element.position)
    message = _unknown_upstream_option(element.name, bad[1], anchors)
    raise PipelineError(message, text, _position_of_fault(element, f"'{bad[1]}'"))


def _unknown_pass(name: str) -> str:
    known = [*PASSES, WHOLE, *(near for near in _one_edit_away(name) if _is_registered(near))]
    return unknown("pass", name, known)


def _unknown_upstream_option(name: str, option: str, anchors: tuple[str, ...]) -> str:
    """The allowed options are those that the pass manager prints for the pass."""
    printed = str(passmanager.PassManager.parse(_anchored(name, anchors)))
    allowed = re.findall(r"([\w\-]+)=", printed)
    listed = f"; {name} has {', '.join(allowed)}" if allowed else f"; {name} has no options"
    return unknown("option", option, allowed) + listed


def _refusal(element: PassText, anchors: tuple[str, ...]) -> str | None:
    """Why the bindings refuse the pass here, in one line; None if they take it."""
    try:
        passmanager.PassManager.parse(_anchored(str(element), anchors))
    except ValueError as error:
        lines = [line.strip() for line in str(error).splitlines() if line.strip()]
        return re.sub(r"^MLIR Textual PassPipeline Parser:\d+:\d+: error: ", "", lines[0])
    except ir.MLIRError as error:
        return str(error).splitlines()[-1]
    return None


def _anchored(text: str, anchors: tuple[str, ...]) -> str:
    return "(".join((*anchors, text)) + ")" * len(anchors)


def _is_registered(name: str) -> bool:
    refusal = _refusal(PassText(name), ("any",))
    return refusal is None or "does not refer to a registered pass" not in refusal


def _one_edit_away(name: str) -> Iterator[str]:
    """The bindings can't list their passes, but they can be asked about each name one typing mistake away."""
    letters = string.ascii_lowercase + string.digits + "-"
    splits = [(name[:index], name[index:]) for index in range(len(name) + 1)]
    for before, after in splits:
        yield before + after[1:]
        yield before + after[1:2] + after[:1] + after[2:]
        for letter in letters:
            yield before + letter + after
            yield before + letter + after[1:]


def _split_options(options: str) -> list[str]:
    """Splits at spaces outside brackets and quotes."""
    entries, depth, current = [], [], ""
    for character in options:
        if depth and character == depth[-1]:
            depth.pop()
        elif character in CLOSING:
            depth.append(CLOSING[character])
        if character.isspace() and not depth:
            entries, current = [*entries, current], ""
        else:
            current += character
    return [entry for entry in [*entries, current] if entry]


@dataclass
class _Reader:
    """Recursive descent over the text."""

    text: str
    position: int = 0

    def elements(self) -> tuple[PassText | Nest, ...]:
        """element (',' element)*, or nothing before a ')'."""
        found: list[PassText | Nest] = []
        while True:
            self.skip_spaces()
            if not found and self.peek() in ("", ")"):
                return ()
            found.append(self.element())
            self.skip_spaces()
            if self.peek() != ",":
                return tuple(found)
            self.position += 1

    def element(self) -> PassText | Nest:
        """A pass with or without options, or an anchor and what is nested in it."""
        start = self.position
        matched = NAME.match(self.text, start)
        if matched is None:
            raise self.error(f"expected the name of a pass, got {self.peek() or 'the end'!r}")
        self.position = matched.end()
        if self.peek() == "(":
            return self.nest(matched[0], start)
        options = self.braces() if self.peek() == "{" else ""
        return PassText(matched[0], options, start)

    def nest(self, anchor: str, start: int) -> Nest:
        """`(` elements `)`."""
        opened = self.position
        self.position += 1
        elements = self.elements()
        if self.peek() == "":
            raise PipelineError("this '(' is never closed", self.text, opened)
        if self.peek() != ")":
            raise self.error(f"expected ',' or ')', got {self.peek()!r}")
        self.position += 1
        return Nest(anchor, elements, start)

    def braces(self) -> str:
        """What stands between the brace here and its partner."""
        start = self.position
        depth: list[str] = []
        for index in range(start, len(self.text)):
            character = self.text[index]
            if depth and character == depth[-1]:
                depth.pop()
            elif character in CLOSING:
                depth.append(CLOSING[character])
            if not depth:
                self.position = index + 1
                return " ".join(self.text[start + 1 : index].split())
        raise PipelineError("this '{' is never closed", self.text, start)

    def peek(self) -> str:
        """The character here, empty at the end."""
        return self.text[self.position : self.position + 1]

    def skip_spaces(self) -> None:
        """Spaces and newlines separate nothing."""
        while self.peek().isspace():
            self.position += 1

    def error(self, message: str) -> PipelineError:
        """A mistake at this place."""
        return PipelineError(message, self.text, self.position)
