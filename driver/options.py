"""Options: what users set. Pass options are the passes' own; `stages.py` makes one of the other.

An option is a field of `Options`, and its declaration is all there is to it: name, type, default, meaning,
what a bare name (`on`) and disabling it (`off`) mean, and the first stage that it affects. From these come the
checks, `fusion-opt --help`, the table of options, docs/options.md and the keys of the caches.

    Options.from_settings(fusion_type="dataflow", enable=["matmul=auto"], disable=["horizontal"])

Options are set at levels, lowest first: the entry point's defaults, settings, environment, the call. What one level
says is a `Settings`; scope.py puts the levels on top of each other.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace
from typing import Any, Literal

from ..passes.legality import DEFAULT_MAX_REGION_OPS, LARGEST_MAX_REGION_OPS
from ..passes.pass_base import parse_scalar, print_value, unknown
from ..targets.target import TARGETS
from .environment import warn_of_unknown

FUSION_TYPES = ("consecutive", "dataflow", "none")
MATMUL = ("off", "on", "auto")
FAST_MATH = ("off", "auto", "on")
NO_LIMIT = -1
LARGEST_FUEL = 1_000_000_000
LARGEST_DISK_CACHE = 1_000_000

Value = bool | int | str
Affected = Literal["fusion", "segment", "schedule", "codegen", "runtime"]
AFFECTED: tuple[Affected, ...] = ("fusion", "segment", "schedule", "codegen", "runtime")
"""In order: an option that affects one may affect all that follow."""


@dataclass(frozen=True)
class Declaration:
    """An option as `Options` declares it."""

    default: Value
    help: str
    stage: Affected
    """The first stage that it affects."""
    on: Value | None = True
    """What its bare name means where options are enabled; None if it needs a value."""
    off: Value | None = False
    """What disabling it means; None if that is not possible."""
    choices: tuple[str, ...] = ()
    at_least: int = 0
    at_most: int = 0
    name: str = ""

    @property
    def range(self) -> str:
        """The values that it takes, in words."""
        if isinstance(self.default, bool):
            return "true or false"
        if isinstance(self.default, int):
            return f"a whole number from {self.at_least} to {self.at_most}"
        return f"one of {', '.join(self.choices)}"

    def takes(self, value: Value) -> bool:
        """Whether it may have this value."""
        if type(value) is not type(self.default):
            return False
        if isinstance(value, str):
            return value in self.choices
        return isinstance(value, bool) or self.at_least <= value <= self.at_most


def _option(declaration: Declaration) -> Any:
    return dataclasses.field(default=declaration.default, metadata={"declaration": declaration})


@dataclass(frozen=True)
class Options:
    """One value of each option. Two equal ones compile a program to the same code."""

    fusion_type: str = _option(
        Declaration("consecutive", "which algorithm decides what shares a kernel", "fusion", None, "none", FUSION_TYPES)
    )
    target: str = _option(Declaration("sm_90", "what to compile for", "segment", None, None, tuple(TARGETS)))
    horizontal: bool = _option(Declaration(True, "dataflow merges independent siblings too", "fusion"))
    memory_aware: bool = _option(Declaration(True, "dataflow never raises the peak above the source order's", "fusion"))
    recompute: bool = _option(
        Declaration(
            True, "dataflow repeats cheap producers in several consumers where that moves fewer bytes", "fusion"
        )
    )
    max_region_ops: int = _option(
        Declaration(
            DEFAULT_MAX_REGION_OPS,
            "the most operations in a region",
            "fusion",
            None,
            None,
            at_least=1,
            at_most=LARGEST_MAX_REGION_OPS,
        )
    )
    eager_random: bool = _option(
        Declaration(
            False, "random numbers are drawn by the library: a seed gives those that eager PyTorch draws", "fusion"
        )
    )
    optimization_fuel: int = _option(
        Declaration(
            NO_LIMIT,
            "how many times an operation may join a region before fusion stops, to find the one at fault; -1: no limit",
            "fusion",
            None,
            NO_LIMIT,
            at_least=NO_LIMIT,
            at_most=LARGEST_FUEL,
        )
    )
    deterministic: bool = _option(
        Declaration(
            False,
            "sums are joined in the same order on every GPU and in every process: nothing depends on what the GPU has, "
            "nor on measurements",
            "segment",
        )
    )
    autotune: bool = _option(
        Declaration(
            False,
            "each kernel's schedule is the fastest of several, measured where it is compiled; at most 2 s a kernel",
            "schedule",
        )
    )
    matmul: str = _option(
        Declaration(
            "off", "compile matmuls instead of calling the library; auto: small ones", "fusion", "on", "off", MATMUL
        )
    )
    matmul_epilogue: bool = _option(
        Declaration(True, "a compiled matmul and what follows it may be one kernel", "segment")
    )
    fma: bool = _option(
        Declaration(True, "a product and a sum become one instruction where the result is rounded to 16 bits", "fusion")
    )
    fast_math: str = _option(
        Declaration(
            "auto",
            "approximate exponentials, roots and divisions; auto: where the result is rounded to 16 bits, "
            "which hides it; on: in f32 too",
            "fusion",
            "on",
            "off",
            FAST_MATH,
        )
    )
    vectorize: bool = _option(Declaration(True, "a thread handles several neighbouring elements at once", "schedule"))
    cluster: bool = _option(
        Declaration(True, "several blocks share a long row, where the GPU has clusters of blocks", "schedule")
    )
    persistent: bool = _option(
        Declaration(
            True,
            "a block whose row fills a multiprocessor stays for many rows and loads the next one ahead",
            "schedule",
        )
    )
    index32: bool = _option(
        Declaration(True, "GPU kernels count in 32 bits where everything they reach is near enough", "codegen")
    )
    kernel_reuse: bool = _option(
        Declaration(True, "kernels of equal code are compiled once, within a program and across programs", "codegen")
    )
    cuda_graphs: bool = _option(
        Declaration(False, "kernels with no library call between them are launched at once, as a CUDA graph", "runtime")
    )
    disk_cache: bool = _option(Declaration(True, "keep compiled code in a folder, for other processes", "runtime"))
    disk_cache_mib: int = _option(
        Declaration(
            1024,
            "how large that folder may grow before the oldest goes",
            "runtime",
            None,
            None,
            at_least=1,
            at_most=LARGEST_DISK_CACHE,
        )
    )
    verify_each: bool = _option(
        Declaration(False, "verify the IR after each pass, not only after each stage", "fusion")
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
        settings = Settings.read(enable, disable, values={"fusion_type": fusion_type, "target": target})
        return settings.apply(defaults or cls())

    def override(self, enable: Iterable[str] = (), disable: Iterable[str] = (), where: str = "options") -> Options:
        """These options but for what `enable` (names, or name=value) and `disable` (names) say."""
        return Settings.read(enable, disable, where).apply(self)

    def override_from_environment(self, environment: Mapping[str, str]) -> Options:
        """These options but for what the environment says."""
        return Settings.from_environment(environment).apply(self)

    def differences(self) -> dict[str, str]:
        """The options that are not at their defaults, as text."""
        pairs = ((declaration, getattr(self, declaration.name)) for declaration in declarations())
        return {declaration.name: print_value(value) for declaration, value in pairs if value != declaration.default}

    def affecting(self, stage: Affected) -> dict[str, Value]:
        """The values of the options that affect a stage or an earlier one: what its result depends on."""
        last = AFFECTED.index(stage)
        names = (declaration.name for declaration in declarations() if AFFECTED.index(declaration.stage) <= last)
        return {name: getattr(self, name) for name in names}


@dataclass(frozen=True)
class Settings:
    """What one level says, checked: values by the options' names."""

    values: Mapping[str, Value] = dataclasses.field(default_factory=dict)

    @classmethod
    def read(
        cls,
        enable: Iterable[str] = (),
        disable: Iterable[str] = (),
        where: str = "options",
        values: Mapping[str, Value | None] | None = None,
    ) -> Settings:
        """Names (or name=value) to enable, names to disable, and values by name, of which None says nothing."""
        said = {name: value for name, value in (values or {}).items() if value is not None}
        entries = [(where, *_named(name, value, where)) for name, value in said.items()]
        entries += [(where, *_enabled(text, where)) for text in names_of(enable, where)]
        entries += [(where, *_disabled(text, where)) for text in names_of(disable, where)]
        return cls(_without_conflict(entries))

    @classmethod
    def from_keywords(cls, said: Mapping[str, Any], where: str) -> Settings:
        """`enable_options` and `disable_options`, lists of names, and options by name; None says nothing."""
        for name in said:
            if name not in LISTS and name not in NAMES:
                raise ValueError(f"{where}: {unknown('option', name, KEYWORDS)}; allowed: {', '.join(KEYWORDS)}")
        enable, disable = (() if said.get(name) is None else said[name] for name in LISTS)
        return cls.read(enable, disable, where, {name: value for name, value in said.items() if name not in LISTS})

    @classmethod
    def from_environment(cls, environment: Mapping[str, str]) -> Settings:
        """The environment's level: all its variables are one, so that none of them contradicts another."""
        warn_of_unknown(environment)
        entries = [
            (variable, *read(text, variable))
            for variable, read in VARIABLES.items()
            for text in split_names(environment.get(variable, ""))
        ]
        return cls(_without_conflict(entries))

    def then(self, later: Settings) -> Settings:
        """Both, of which the later one wins."""
        return Settings({**self.values, **later.values})

    def apply(self, options: Options) -> Options:
        """`options` but for what is said here."""
        return replace(options, **self.values) if self.values else options


_DECLARATIONS = tuple(replace(field.metadata["declaration"], name=field.name) for field in dataclasses.fields(Options))
NAMES = tuple(declaration.name for declaration in _DECLARATIONS)
LISTS = ("enable_options", "disable_options")
KEYWORDS = (*LISTS, *NAMES)
"""What says options where Python takes them by name."""


def declarations() -> tuple[Declaration, ...]:
    """All options, in order."""
    return _DECLARATIONS


def split_names(text: str) -> list[str]:
    """`a,b=1` as a list; spaces around the names don't count."""
    return [name.strip() for name in text.split(",") if name.strip()]


def names_of(names: Iterable[str], where: str) -> list[str]:
    """The names in a list; one string is an error, since it would be taken letter by letter.

    So is a dictionary, whose values would be ignored.
    """
    if isinstance(names, Mapping):
        raise ValueError(f"{where}: options are given as a list of names, got a dictionary; write {_as_list(names)}")
    if isinstance(names, str):
        raise ValueError(f"{where}: options are given as a list of names, got the string {names!r}")
    if not isinstance(names, Iterable):
        raise ValueError(f"{where}: options are given as a list of names, got {shown(names)}")
    listed: list[object] = list(names)
    for name in listed:
        if not isinstance(name, str):
            raise ValueError(f"{where}: an option is given as a name or name=value, got {shown(name)}")
    return [str(name).strip() for name in listed]


def shown(value: object) -> str:
    """A value in a message: numbers and strings as they are, of anything else its type."""
    return f"{value!r}" if isinstance(value, bool | int | float | str) else f"a value of type {type(value).__name__}"


def _as_list(values: Mapping[Any, object]) -> str:
    """A dictionary as the list for `enable_options` that it should have been."""
    return str([f"{name}={print_value(value)}" for name, value in values.items()])


class OptionTable(tuple[Declaration, ...]):
    """All declarations; printed, a table."""

    def __repr__(self) -> str:
        return print_table()

    __str__ = __repr__


def list_options() -> OptionTable:
    """Every option there is: `print(mlir_fusion.list_options())`."""
    return OptionTable(declarations())


def print_table() -> str:
    """A line an option: name, default, the values it takes, the first stage that it affects, and what it does."""
    rows = [("option", "default", "values", "affects", "meaning")]
    rows += [
        (option.name, print_value(option.default), option.range, option.stage, option.help) for option in declarations()
    ]
    widths = [max(len(row[column]) for row in rows) for column in range(len(rows[0]) - 1)]
    return "".join(
        "  ".join([*(cell.ljust(width) for cell, width in zip(row, widths, strict=False)), row[-1]]) + "\n"
        for row in rows
    )


def print_markdown() -> str:
    """The table for docs/options.md."""
    lines = [
        "| option | default | bare name | disabled | values | affects | meaning |",
        "|---|---|---|---|---|---|---|",
    ]
    for option in declarations():
        cells = (option.name, *map(_cell, (option.default, option.on, option.off)))
        lines.append(f"| {' | '.join((*cells, option.range, option.stage, option.help))} |")
    return "\n".join(lines) + "\n"


def _cell(value: Value | None) -> str:
    return "" if value is None else print_value(value)


def _check(declaration: Declaration, value: Value) -> None:
    if declaration.takes(value):
        return
    if declaration.choices and isinstance(value, str):
        what = unknown(f"value of {declaration.name}", value, declaration.choices)
        raise ValueError(f"{what}; allowed: {', '.join(declaration.choices)}")
    raise ValueError(f"option {declaration.name!r} must be {declaration.range}, got {shown(value)}")


def _without_conflict(entries: Iterable[tuple[str, str, Value]]) -> dict[str, Value]:
    """The values; ValueError where a level says two things of one option."""
    found: dict[str, tuple[str, Value]] = {}
    for where, name, value in entries:
        first, known = found.setdefault(name, (where, value))
        if known != value:
            raise ValueError(
                f"{where}: option {name!r} is given twice, as {known!r}"
                f"{'' if first == where else f' by {first}'} and as {value!r}"
            )
    return {name: value for name, (_, value) in found.items()}


def _find(text: str, where: str) -> Declaration:
    known = {declaration.name: declaration for declaration in declarations()}
    name = text.replace("-", "_")
    if name not in known:
        raise ValueError(f"{where}: {unknown('option', text, known)}; allowed: {', '.join(known)}")
    return known[name]


def _named(name: str, value: Value, where: str) -> tuple[str, Value]:
    declaration = _find(name, where)
    try:
        _check(declaration, value)
    except ValueError as error:
        raise ValueError(f"{where}: {error}") from None
    return declaration.name, value


def _enabled(text: str, where: str) -> tuple[str, Value]:
    name, has_value, value = text.partition("=")
    declaration = _find(name.strip(), where)
    if has_value:
        return _named(declaration.name, _parse(declaration, value.strip(), where), where)
    if declaration.on is None:
        raise ValueError(
            f"{where}: option {declaration.name!r} needs a value: {declaration.name}=..., {declaration.range}"
        )
    return declaration.name, declaration.on


def _valued(text: str, where: str) -> tuple[str, Value]:
    """`name=value`, and nothing shorter."""
    if "=" not in text:
        raise ValueError(f"{where}: expected name=value, got {text!r}")
    return _enabled(text, where)


def _parse(declaration: Declaration, text: str, where: str) -> Value:
    try:
        return parse_scalar(declaration.name, text, type(declaration.default))
    except ValueError:
        raise ValueError(f"{where}: option {declaration.name!r} must be {declaration.range}, got {text!r}") from None


def _disabled(text: str, where: str) -> tuple[str, Value]:
    declaration = _find(text, where)
    if declaration.off is None:
        raise ValueError(f"{where}: option {declaration.name!r} can't be disabled, it always has a value")
    return declaration.name, declaration.off


VARIABLES = {
    "MLIR_FUSION_OPTIONS": _valued,
    "MLIR_FUSION_ENABLE": _enabled,
    "MLIR_FUSION_DISABLE": _disabled,
}
