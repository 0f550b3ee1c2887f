"""How numbers of MLIR's types are held: in a register (a numpy dtype to compute with) and in memory (its bits).

numpy has no bfloat16: in registers it is a float32 whose low half is zero, and every operation with a bf16 result
rounds it. Integers are signed; operations on unsigned ones look at them so. An index has as many bits as the module
says.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cache

import numpy as np

from ...dialects.mlir import ir

Array = np.ndarray


@dataclass(frozen=True)
class Element:
    """A scalar type: its name in MLIR, and the dtypes of its numbers in registers and in memory."""

    name: str
    register: np.dtype
    memory: np.dtype

    @property
    def size(self) -> int:
        """Bytes in memory."""
        return self.memory.itemsize

    @property
    def is_bfloat(self) -> bool:
        """Whether registers hold it as a float32."""
        return self.name == "bf16"

    @property
    def is_boolean(self) -> bool:
        """Whether it is a single bit."""
        return self.name == "i1"


DTYPES = {
    "i1": ("bool", "uint8"),
    "i8": ("int8", "int8"),
    "i16": ("int16", "int16"),
    "i32": ("int32", "int32"),
    "i64": ("int64", "int64"),
    "f16": ("float16", "float16"),
    "bf16": ("float32", "uint16"),
    "f32": ("float32", "float32"),
    "f64": ("float64", "float64"),
}


@cache
def element_named(name: str) -> Element:
    """The element type with this name; KeyError if the checker has none."""
    register, memory = DTYPES[name]
    return Element(name, np.dtype(register), np.dtype(memory))


def element_of(type_: ir.Type, index_bits: int) -> Element:
    """The element type of a scalar, a vector or a memref; KeyError for one that the checker lacks."""
    if isinstance(type_, ir.ShapedType):
        type_ = type_.element_type
    return element_named(f"i{index_bits}" if isinstance(type_, ir.IndexType) else str(type_))


def encode(element: Element, values: Array) -> Array:
    """Registers to memory."""
    if element.is_bfloat:
        return (np.ascontiguousarray(values).view(np.uint32) >> 16).astype(np.uint16)
    return values.astype(element.memory, copy=False)


def decode(element: Element, stored: Array) -> Array:
    """Memory to registers."""
    if element.is_bfloat:
        return (stored.astype(np.uint32) << 16).view(np.float32)
    return stored.astype(element.register, copy=False)


def to_bits(element: Element, values: Array) -> Array:
    """A number's bits as an unsigned integer of its size."""
    stored = np.ascontiguousarray(encode(element, values))
    return stored.view(f"u{element.size}")


def from_bits(element: Element, bits: Array) -> Array:
    """The number that has these bits, which are of its size."""
    return decode(element, np.ascontiguousarray(bits).view(element.memory))


def round_to(element: Element, values: Array) -> Array:
    """The nearest number of this type, ties to even; `values` are wider floats."""
    if not element.is_bfloat:
        return values.astype(element.register, copy=False)
    narrow = _to_odd(values) if values.dtype == np.float64 else values
    bits = np.ascontiguousarray(narrow, dtype=np.float32).view(np.uint32)
    rounded = (bits + 0x7FFF + ((bits >> 16) & 1)) & np.uint32(0xFFFF0000)
    quiet = (bits | 0x00400000) & np.uint32(0xFFFF0000)
    return np.where(np.isnan(narrow), quiet, rounded).view(np.float32)


def _to_odd(values: Array) -> Array:
    """Doubles as floats, inexact ones with their last bit set, so that rounding again is as rounding once."""
    nearest = values.astype(np.float32)
    inexact = (nearest != values) & np.isfinite(nearest)
    bits = np.ascontiguousarray(nearest).view(np.uint32)
    away = np.abs(nearest.astype(np.float64)) > np.abs(values)
    return np.where(inexact, (bits - away) | 1, bits).astype(np.uint32).view(np.float32)


def constant(attribute: ir.Attribute, type_: ir.Type, index_bits: int) -> Array:
    """A constant as the value of one lane: shape (1,), or (1, ...) for a vector."""
    element = element_of(type_, index_bits)
    if not isinstance(type_, ir.VectorType):
        return _numbers([attribute.value], element)  # pyright: ignore[reportAttributeAccessIssue]
    shape = (1, *type_.shape)
    if ir.DenseElementsAttr(attribute).is_splat:
        return np.broadcast_to(_numbers([ir.DenseElementsAttr(attribute).get_splat_value().value], element), shape)  # pyright: ignore
    return _numbers(list(attribute), element).reshape(shape)  # pyright: ignore[reportArgumentType, reportCallIssue]


def _numbers(values: list, element: Element) -> Array:
    if element.register.kind != "i":
        return round_to(element, np.array(values)) if element.is_bfloat else np.array(values).astype(element.register)
    # Unsigned spellings of negative numbers too
    modulus = 1 << 8 * element.size
    wrapped = [(int(value) + modulus // 2) % modulus - modulus // 2 for value in values]
    return np.array(wrapped, dtype=element.register)
