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
from typing import Literal

from ..passes.pass_base import check_choice, parse_value, unknown
from ..targets.target import TARGETS

FUSION_TYPES = ("consecutive", "dataflow", "none")
MATMUL = ("off", "on", "auto")

Value = bool | int | str
EffectiveFrom = Literal["linalg", "region", "kernel", "gpu", "runtime"]


def _option(
    default: Value,
    help_text: str,
    stage: EffectiveFrom,
    on: Value | None = True,
    off: Value | None = False,
    choices: Iterable[str] = (),
) -> object:
    metadata = {"help": help_text, "stage": stage, "on": on, "off": off, "choices": tuple(choices)}
    return dataclasses.field(default=default, metadata=metadata)


@dataclass(frozen=True)
class Options:
    """One value of each option. Two equal ones compile a program to the same code."""

    fusion_type: str = _option(  # type: ignore[assignment]
        "consecutive",
        "which algorithm decides what shares a kernel",
        "region",
        None,
        "none",
        FUSION_TYPES,
    )
    target: str = _option("sm_90", "what to compile for", "kernel", None, None, TARGETS)  # type: ignore[assignment]
    horizontal: bool = _option(True, "dataflow merges independent siblings too", "region")  # type: ignore[assignment]
    memory_aware: bool = _option(True, "dataflow never raises the peak above the source order's", "region")  # type: ignore[assignment]
    max_region_ops: int = _option(64, "the most operations in a region", "region", None, None)  # type: ignore[assignment]
    matmul: str = _option(  # type: ignore[assignment]
        "off", "compile matmuls instead of calling the library", "linalg", "on", "off", MATMUL
    )
    verify_each: bool = _option(False, "verify the IR after each pass, not only after each stage", "linalg")  # type: ignore[assignment]

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
        return {
            declaration.name: str(value).lower() if isinstance(value, bool) else str(value)
            for declaration, value in pairs
            if value != declaration.default
        }


@dataclass(frozen=True)
class Declaration:
    """An option as `Options` declares it."""

    name: str
    default: Value
    help: str
    stage: EffectiveFrom
    on: Value | None
    off: Value | None
    choices: tuple[str, ...]


def declarations() -> tuple[Declaration, ...]:
    """All options, in order."""
    return tuple(
        Declaration(field.name, field.default, **_renamed(field.metadata))  # type: ignore[arg-type]
        for field in dataclasses.fields(Options)
    )


def split_names(text: str) -> list[str]:
    """`a,b=1` as a list; spaces around the names don't count."""
    return [name.strip() for name in text.split(",") if name.strip()]


def _renamed(metadata: Mapping[str, object]) -> dict[str, object]:
    return {key: metadata[key] for key in ("help", "stage", "on", "off", "choices")}


def _check(declaration: Declaration, value: Value) -> None:
    if type(value) is not type(declaration.default):
        kind = {bool: "true or false", int: "a whole number", str: "a string"}[type(declaration.default)]
        raise ValueError(f"option {declaration.name!r} must be {kind}, got {value!r}")
    if declaration.choices:
        check_choice(declaration.name, str(value), declaration.choices)
    if declaration.name == "max_region_ops" and int(value) < 1:
        raise ValueError(f"option 'max_region_ops' must be 1 or more, got {value}")


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
        try:
            return declaration.name, parse_value(declaration.name, value.strip(), type(declaration.default))  # type: ignore[return-value]
        except ValueError as error:
            raise ValueError(f"{where}: {error}") from None
    if declaration.on is None:
        raise ValueError(f"{where}: option {declaration.name!r} needs a value: {declaration.name}=...")
    return declaration.name, declaration.on


def _disabled(text: str, where: str) -> tuple[str, Value]:
    declaration = _find(text, where)
    if declaration.off is None:
        raise ValueError(f"{where}: option {declaration.name!r} can't be disabled, it always has a value")
    return declaration.name, declaration.off
