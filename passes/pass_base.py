"""What every pass shares: its name and its options as text.

A pass is a frozen dataclass; its fields are its options. `max_region_ops: int = 64` of FusionDataflow is
written `fusion-dataflow{max-region-ops=32}`, and `str(pass)` prints only what differs from the defaults:

    str(FusionDataflow(max_region_ops=32)) == "fusion-dataflow{max-region-ops=32}"
    FusionDataflow.from_options({"max-region-ops": "32"}) == FusionDataflow(max_region_ops=32)

A field is a bool, an int or a string, or a tuple of one of these (`{1,2,3}` in text). What only some values
allow is checked by the pass itself, in `__post_init__`, with `check_choice`.
"""

from __future__ import annotations

import abc
import dataclasses
import difflib
import sys
import typing
from collections.abc import Collection, Mapping
from typing import TYPE_CHECKING, ClassVar, Protocol, Self

if TYPE_CHECKING:
    from ..dialects.mlir import ir

BOOLEANS = {"true": True, "1": True, "false": False, "0": False}


class Pass(abc.ABC):
    """The mixin: a subclass is a frozen dataclass with a `name` and a `run`."""

    name: ClassVar[str]

    @abc.abstractmethod
    def run(self, module: ir.Module) -> None:
        """Changes `module` in place; its context is current."""

    @classmethod
    def summary(cls) -> str:
        """The first sentence of its module's docstring, for lists of passes."""
        text = (sys.modules[cls.__module__].__doc__ or "").strip()
        paragraph = " ".join(text.partition("\n\n")[0].split())
        return paragraph.removeprefix(f"{cls.name}: ").removeprefix(f"`{cls.name}`: ")

    @classmethod
    def option_fields(cls) -> dict[str, dataclasses.Field[object]]:
        """The fields by their names as options: `max-region-ops`."""
        return {field.name.replace("_", "-"): field for field in _fields(cls)}

    @classmethod
    def from_options(cls, options: Mapping[str, str | None]) -> Self:
        """The pass with these options, None being a name without a value, which switches on what is true or false.

        ValueError for an option that it does not have, or a value that it refuses.
        """
        fields = cls.option_fields()
        types = typing.get_type_hints(cls)
        values: dict[str, object] = {}
        for key, text in options.items():
            if key not in fields:
                raise ValueError(_unknown_option(cls.name, key, fields))
            values[fields[key].name] = parse_value(key, text, types[fields[key].name])
        return cls(**values)

    def options(self) -> dict[str, str]:
        """The options that differ from the defaults, as text."""
        fields = self.option_fields().items()
        values = {key: (getattr(self, field.name), field.default) for key, field in fields}
        return {key: print_value(value) for key, (value, default) in values.items() if value != default}

    def __str__(self) -> str:
        """The pass as it is written in a pipeline."""
        options = " ".join(f"{key}={value}" for key, value in self.options().items())
        return f"{self.name}{{{options}}}" if options else self.name


def parse_value(key: str, text: str | None, kind: object) -> object:
    """`text` as a value of the field's type."""
    if text is None:
        if kind is not bool:
            raise ValueError(f"option {key!r} needs a value: {key}=...")
        return True
    if typing.get_origin(kind) is tuple:
        element = typing.get_args(kind)[0]
        inner = text.removeprefix("{").removesuffix("}")
        return tuple(parse_value(key, part.strip(), element) for part in inner.split(",") if part.strip())
    return parse_scalar(key, text, kind)


def parse_scalar(key: str, text: str, kind: object) -> bool | int | str:
    """`text` as a bool, an int or a string; ValueError names the option `key`."""
    if kind is bool:
        if text.lower() not in BOOLEANS:
            raise ValueError(f"option {key!r} must be true or false, got {text!r}")
        return BOOLEANS[text.lower()]
    return _integer(key, text) if kind is int else text


def print_value(value: object) -> str:
    """The text that `parse_value` reads."""
    if isinstance(value, tuple):
        return "{" + ",".join(print_value(element) for element in value) + "}"
    if isinstance(value, bool):
        return "true" if value else "false"
    return str(value)


def check_choice(what: str, value: str, allowed: Collection[str]) -> None:
    """ValueError that names the allowed values and the nearest one, unless `value` is allowed."""
    if value not in allowed:
        raise ValueError(f"{unknown(what, value, allowed)}; allowed: {', '.join(allowed)}")


def unknown(what: str, name: str, known: Collection[str]) -> str:
    """`unknown pass 'canonicalise', did you mean 'canonicalize'?`"""
    return f"unknown {what} {name!r}{nearest(name, known)}"


def nearest(name: str, known: Collection[str]) -> str:
    """`, did you mean 'canonicalize'?`, or nothing where no name is like it."""
    near = difflib.get_close_matches(name, known, n=1, cutoff=0.5)
    return f", did you mean {near[0]!r}?" if near else ""


def _unknown_option(owner: str, key: str, known: Collection[str]) -> str:
    if not known:
        return f"{owner} has no options, got {key!r}"
    return f"{unknown('option', key, known)}; {owner} has {', '.join(known)}"


def _integer(key: str, text: str) -> int:
    try:
        return int(text)
    except ValueError:
        raise ValueError(f"option {key!r} must be a whole number, got {text!r}") from None


class _Dataclass(Protocol):
    __dataclass_fields__: ClassVar[dict[str, dataclasses.Field[object]]]


def _fields(cls: type[Pass]) -> tuple[dataclasses.Field[object], ...]:
    """The dataclass fields; a pass without options need not have any."""
    return dataclasses.fields(typing.cast(type[_Dataclass], cls))
