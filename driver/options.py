"""Options: what users set. Pass options are the passes' own; `stages.py` makes one of the other.

An option is a field of `Options`, and its declaration is all there is to it: name, type, default, meaning,
what a bare name (`on`) and disabling it (`off`) mean, and from which stage on it matters. From these come the
checks, `fusion-opt --help` and the table of options.

    Options.from_settings(fusion_type="dataflow", enable=["matmul=auto"], disable=["horizontal"])

Levels, lowest first: the entry point's defaults, settings, environment, the call. Each is one `override`.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace
from typing import Any, Literal

from ..passes.legality import DEFAULT_MAX_REGION_OPS
from ..passes.pass_base import check_choice, parse_scalar, print_value, unknown
from ..targets.target import TARGETS

FUSION_TYPES = ("consecutive", "dataflow", "none")
MATMUL = ("off", "on", "auto")

Value = bool | int | str
Stage = Literal["linalg", "region", "kernel", "gpu", "runtime"]


@dataclass(frozen=True)
class Declaration:
    """An option as `Options` declares it."""

    default: Value
    help: str
    stage: Stage
    """From which stage on it matters."""
    on: Value | None = True
    """What its bare name means where options are enabled; None if it needs a value."""
    off: Value | None = False
    """What disabling it means; None if that is not possible."""
    choices: tuple[str, ...] = ()
    at_least: int | None = None
    name: str = ""


def _option(declaration: Declaration) -> Any:
    return dataclasses.field(default=declaration.default, metadata={"declaration": declaration})


@dataclass(frozen=True)
class Options:
    """One value of each option. Two equal ones compile a program to the same code."""

    fusion_type: str = _option(
        Declaration("consecutive", "which algorithm decides what shares a kernel", "region", None, "none", FUSION_TYPES)
    )
    target: str = _option(Declaration("sm_90", "what to compile for", "kernel", None, None, tuple(TARGETS)))
    horizontal: bool = _option(Declaration(True, "dataflow merges independent siblings too", "region"))
    memory_aware: bool = _option(Declaration(True, "dataflow never raises the peak above the source order's", "region"))
    recompute: bool = _option(
        Declaration(
            True, "dataflow repeats cheap producers in several consumers where that moves fewer bytes", "region"
        )
    )
    max_region_ops: int = _option(
        Declaration(DEFAULT_MAX_REGION_OPS, "the most operations in a region", "region", None, None, at_least=1)
    )
    matmul: str = _option(
        Declaration("off", "compile matmuls instead of calling the library", "linalg", "on", "off", MATMUL)
    )
    verify_each: bool = _option(
        Declaration(False, "verify the IR after each pass, not only after each stage", "linalg")
    )

    def __post_init__(self) -> None:
        for declaration in declarations():
            _check(declaration, getattr(self, declaration.name))

    @classmethod
    def from_settings(
        cls,
        fusion_type: str | None = None,
        target: str | None = None,
        enable: Iterable[str] = (),
        disable: Iterable[str] = (),
        defaults: Options | None = None,
    ) -> Options:
        """Defaults, then settings: a fusion type or target of None says nothing."""
        said = {"fusion_type": fusion_type, "target": target}
        values = {name: value for name, value in said.items() if value is not None}
        return replace(defaults or cls(), **values).override(enable, disable)

    def override(self, enable: Iterable[str] = (), disable: Iterable[str] = (), where: str = "options") -> Options:
        """These options but for what `enable` (names, or name=value) and `disable` (names) say."""
        changes: dict[str, Value] = {}
        for text in enable:
            _put(changes, *_enabled(text, where), where)
        for text in disable:
            _put(changes, *_disabled(text, where), where)
        try:
            return replace(self, **changes)
        except ValueError as error:
            raise ValueError(f"{where}: {error}") from None

    def override_from_environment(self, environment: Mapping[str, str]) -> Options:
        """These options but for what the environment says."""
        options = self
        for variable, is_on in (
            ("MLIR_FUSION_OPTIONS", True),
            ("MLIR_FUSION_ENABLE", True),
            ("MLIR_FUSION_DISABLE", False),
        ):
            names = split_names(environment.get(variable, ""))
            options = options.override(names if is_on else (), () if is_on else names, variable)
        return options

    def differences(self) -> dict[str, str]:
        """The options that are not at their defaults, as text."""
        pairs = ((declaration, getattr(self, declaration.name)) for declaration in declarations())
        return {declaration.name: print_value(value) for declaration, value in pairs if value != declaration.default}


def declarations() -> tuple[Declaration, ...]:
    """All options, in order."""
    return tuple(replace(field.metadata["declaration"], name=field.name) for field in dataclasses.fields(Options))


def split_names(text: str) -> list[str]:
    """`a,b=1` as a list; spaces around the names don't count."""
    return [name.strip() for name in text.split(",") if name.strip()]


def _check(declaration: Declaration, value: Value) -> None:
    if type(value) is not type(declaration.default):
        kind = {bool: "true or false", int: "a whole number", str: "a string"}[type(declaration.default)]
        raise ValueError(f"option {declaration.name!r} must be {kind}, got {value!r}")
    if declaration.choices:
        check_choice(f"value of {declaration.name}", str(value), declaration.choices)
    if declaration.at_least is not None and int(value) < declaration.at_least:
        raise ValueError(f"option {declaration.name!r} must be {declaration.at_least} or more, got {value}")


def _put(changes: dict[str, Value], name: str, value: Value, where: str) -> None:
    if changes.get(name, value) != value:
        raise ValueError(f"{where}: option {name!r} is given twice, as {changes[name]!r} and as {value!r}")
    changes[name] = value


def _find(text: str, where: str) -> Declaration:
    known = {declaration.name: declaration for declaration in declarations()}
    name = text.replace("-", "_")
    if name not in known:
        raise ValueError(f"{where}: {unknown('option', text, known)}; allowed: {', '.join(known)}")
    return known[name]


def _enabled(text: str, where: str) -> tuple[str, Value]:
    name, has_value, value = text.partition("=")
    declaration = _find(name.strip(), where)
    if has_value:
        return declaration.name, _parse(declaration, value.strip(), where)
    if declaration.on is None:
        raise ValueError(f"{where}: option {declaration.name!r} needs a value: {declaration.name}=...")
    return declaration.name, declaration.on


def _parse(declaration: Declaration, text: str, where: str) -> Value:
    try:
        return parse_scalar(declaration.name, text, type(declaration.default))
    except ValueError as error:
        raise ValueError(f"{where}: {error}") from None


def _disabled(text: str, where: str) -> tuple[str, Value]:
    declaration = _find(text, where)
    if declaration.off is None:
        raise ValueError(f"{where}: option {declaration.name!r} can't be disabled, it always has a value")
    return declaration.name, declaration.off
