"""Operations on lists of tensors (`_foreach_add`), as optimizers call them, one tensor at a time.

Each then fuses with the others on the same tensor, and with their neighbours on other tensors.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator

import torch
from torch import Tensor
from torch._ops import OpOverload

aten = torch.ops.aten

NAMES = """
    abs add addcdiv addcmul ceil clamp_max clamp_min cos div erf erfc exp expm1 floor lerp log log10 log1p log2
    maximum minimum mul neg pow reciprocal round rsqrt sigmoid sign sin sqrt sub tanh trunc
"""


# What the operation on one tensor doesn't take
KEPT = {
    aten._foreach_addcdiv.Tensor,
    aten._foreach_addcmul.Tensor,
    aten._foreach_maximum.Scalar,
    aten._foreach_maximum.ScalarList,
    aten._foreach_minimum.Scalar,
    aten._foreach_minimum.ScalarList,
}


def foreach_decompositions() -> dict[OpOverload, Callable]:
    """By overload; those that write in place are functionalised before they get here."""
    return {overload: _each(getattr(aten, name), overload) for name in NAMES.split() for overload in _overloads(name)}


def _overloads(name: str) -> Iterator[OpOverload]:
    packet = getattr(aten, f"_foreach_{name}", None)
    for overload in packet.overloads() if packet is not None else ():
        found = getattr(packet, overload)
        if not found._schema.is_mutable and found not in KEPT:
            yield found


def _each(single: Callable, overload: OpOverload) -> Callable:
    lists = {argument.name for argument in overload._schema.arguments if "List" in str(argument.type)}
    names = [argument.name for argument in overload._schema.arguments]
    # The scalars of addcmul and addcdiv are keyword arguments of the single operation
    keyword = {"value", "scalars"} if "addc" in overload.name() else set()

    def call(*args: object, **kwargs: object) -> list[Tensor]:
        given = dict(zip(names, args, strict=False)) | kwargs
        count = next(len(value) for value in given.values() if isinstance(value, list | tuple))
        rows = [_row(given, lists, number) for number in range(count)]
        return [_call(single, row, keyword, kwargs) for row in rows]

    return call


def _row(given: dict[str, object], lists: set[str], number: int) -> dict[str, object]:
    return {
        name: value[number] if name in lists and isinstance(value, list | tuple) else value
        for name, value in given.items()
    }


def _call(single: Callable, row: dict[str, object], keyword: set[str], named: dict[str, object]) -> Tensor:
    positional = [value for name, value in row.items() if name not in keyword and name not in named]
    extra = {name: value for name, value in row.items() if name in named}
    if keyword & set(row):
        extra["value"] = next(row[name] for name in row if name in keyword)
    return single(*positional, **extra)
