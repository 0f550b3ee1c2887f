"""Calls of library functions: `args` of fusion.extern as Python values.

`args` has one entry a schema argument, in the order of the ATen schema, the keyword-only ones included.
This is the one place that says how each is written; the frontend writes them, this module reads them:

    what the call gets          in the attribute
    tensor, or a size           #fusion.operand<i>, the i-th operand
    None                        unit
    bool                        true, false (an i1 integer)
    int                         an integer of any other width: 3 : i64
    float                       1.0 : f64 (infinities and NaN in MLIR's hexadecimal form)
    complex                     "complex:1+2j"
    a list, a tuple             an array of these
    torch.dtype                 "dtype:float32"
    torch.device                "device:cuda:1", or "device:program": the one that the program runs on
    torch.layout                "layout:strided"
    torch.memory_format         "memory_format:channels_last"
    str                         the text itself, or "str:" and the text where it starts like one of the above

`constant_text` gives the text of complex numbers and of the last five.

An operand is handed over with the dtype that `dtypes` names, or else with the one its tensor has: a boolean
lies in memory as a byte, and becomes a boolean again here, at no cost.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

import torch

from ..dialects import fusion
from ..dialects.mlir import ir


class ProgramDevice:
    """Stands in a template of arguments for the device that the program runs on."""


Constant = (
    ProgramDevice
    | None
    | bool
    | int
    | float
    | complex
    | str
    | torch.dtype
    | torch.device
    | torch.layout
    | torch.memory_format
    | list
)
Operand = torch.Tensor | int | float
Call = Callable[[Sequence[Operand]], object]
PROGRAM_DEVICE = "device:program"
PREFIXES = ("complex:", "dtype:", "device:", "layout:", "memory_format:", "str:")


def constant_text(value: complex | str | torch.dtype | torch.device | torch.layout | torch.memory_format) -> str:
    """How `args` spells a constant that is neither a real number nor None."""
    if isinstance(value, str):
        return "str:" + value if value.startswith(PREFIXES) else value
    if isinstance(value, complex):
        return f"complex:{str(value).strip('()')}"
    kinds = {torch.dtype: "dtype", torch.layout: "layout", torch.memory_format: "memory_format"}
    if isinstance(value, torch.device):
        return f"device:{value}"
    return f"{kinds[type(value)]}:{str(value).removeprefix('torch.')}"


def read_text(text: str) -> Constant:
    """The constant that `constant_text` wrote."""
    kind, _, rest = text.partition(":")
    if kind + ":" not in PREFIXES:
        return text
    if kind == "str":
        return rest
    if kind == "complex":
        return _read_complex(rest)
    if kind == "device":
        return ProgramDevice() if text == PROGRAM_DEVICE else torch.device(rest)
    expected = {"dtype": torch.dtype, "layout": torch.layout, "memory_format": torch.memory_format}[kind]
    value = getattr(torch, rest, None)
    if not isinstance(value, expected):
        raise ValueError(f"PyTorch has no {kind} called {rest!r}")
    return value


def _read_complex(text: str) -> complex:
    try:
        return complex(text)
    except ValueError:
        raise ValueError(f"{text!r} is no complex number; one is written as 1.5-2j") from None


class Slot:
    """Stands in a template of arguments for an operand."""

    __slots__ = ("number",)

    def __init__(self, number: int) -> None:
        self.number = number


Entry = Constant | Slot


@dataclass(frozen=True, slots=True)
class LibraryCall:
    """A fusion.extern, read: the overload and the template of its arguments."""

    overload: torch._ops.OpOverload
    positional: list[Entry]
    named: dict[str, Entry]

    def on(self, device: torch.device) -> Call:
        """The call as a function of its operands, for tensors on a device."""
        overload = self.overload
        positional = [place(entry, device) for entry in self.positional]
        if not self.named:
            return lambda operands: overload(*fill(positional, operands))
        named = {name: place(entry, device) for name, entry in self.named.items()}
        return lambda operands: overload(
            *fill(positional, operands), **{name: fill_one(entry, operands) for name, entry in named.items()}
        )


def read_call(op: ir.Operation) -> LibraryCall:
    """What a fusion.extern calls; ValueError if PyTorch has no such operator."""
    name = ir.StringAttr(op.attributes["op"]).value
    overload = resolve_overload(name)
    parameters = overload._schema.arguments
    template = [read_entry(entry) for entry in ir.ArrayAttr(op.attributes["args"])]
    if len(template) > len(parameters):
        raise ValueError(f"{name} takes {len(parameters)} arguments, 'args' has {len(template)} entries")
    pairs = list(zip(parameters, template, strict=False))
    positional = [entry for parameter, entry in pairs if not parameter.kwarg_only]
    named = {parameter.name: entry for parameter, entry in pairs if parameter.kwarg_only}
    return LibraryCall(overload, positional, named)


def place(entry: Entry, device: torch.device) -> Entry:
    """The entry with the program's device filled in."""
    if isinstance(entry, list):
        return [place(element, device) for element in entry]
    return device if isinstance(entry, ProgramDevice) else entry


def read_entry(attribute: ir.Attribute) -> Entry:
    """An entry of `args` as a constant, a `Slot`, or a list of these."""
    operand = fusion.read_operand(attribute)
    if operand is not None:
        return Slot(operand)
    if isinstance(attribute, ir.ArrayAttr):
        return [read_entry(element) for element in attribute]
    if isinstance(attribute, ir.UnitAttr):
        return None
    if isinstance(attribute, ir.StringAttr):
        return read_text(attribute.value)
    if isinstance(attribute, ir.FloatAttr):
        return float(attribute.value)
    if isinstance(attribute, ir.BoolAttr):
        return bool(attribute.value)
    if isinstance(attribute, ir.IntegerAttr):
        return int(attribute.value)
    raise ValueError(f"'args' of fusion.extern can't hold {attribute}")


def fill(template: Sequence[Entry], operands: Sequence[Operand]) -> list[object]:
    """The arguments of a call: the template with operands in their slots."""
    return [fill_one(entry, operands) for entry in template]


def fill_one(entry: Entry, operands: Sequence[Operand]) -> object:
    """One argument of a call."""
    kind = type(entry)
    if kind is Slot:
        return operands[entry.number]  # pyright: ignore[reportAttributeAccessIssue, reportOptionalMemberAccess]
    if kind is list:
        return [fill_one(element, operands) for element in entry]  # pyright: ignore
    return entry


def resolve_overload(name: str) -> torch._ops.OpOverload:
    """The overload called `aten.mm.default`; `aten.mm` means its default."""
    namespace, _, rest = name.partition(".")
    packet_name, _, overload_name = rest.partition(".")
    try:
        packet = getattr(getattr(torch.ops, namespace), packet_name)
        return getattr(packet, overload_name or "default")
    except AttributeError:
        raise ValueError(f"PyTorch has no operator {name!r}; is the library that defines it imported?") from None
