"""memref: views of memory, and a thread's own. Loads and stores are those of vectors (ops_vector.py)."""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np

from ...dialects.mlir import ir
from .compiler import Compiler, Step, Table, unsupported
from .elements import Array, Element
from .errors import KernelError
from .memory import MemRef, Segment, report
from .ops_vector import DYNAMIC, MEMORY_OPS
from .state import State

ANY_SIZE = 1 << 62
"""Stands for a first dimension that varies: the memory's own end is what an access is checked against."""


def layout_of(op: ir.Operation, type_: ir.Type) -> tuple[tuple[int, ...], tuple[int, ...], int]:
    """Sizes, strides and offset of a memref type, in elements."""
    memory = ir.MemRefType(type_)
    strides, offset = memory.get_strides_and_offset()
    if DYNAMIC in strides or DYNAMIC in memory.shape[1:]:
        raise unsupported(op, f"no memory of strides that vary ({memory})", "ops_memref.py")
    return (
        tuple(ANY_SIZE if extent == DYNAMIC else extent for extent in memory.shape),
        tuple(strides),
        0 if offset == DYNAMIC else offset,
    )


def span(shape: Sequence[int], strides: Sequence[int]) -> int:
    """Elements from the first to the last one."""
    if 0 in shape:
        return 0
    return sum((extent - 1) * stride for extent, stride in zip(shape, strides, strict=True)) + 1


def _cast(compiler: Compiler, op: ir.Operation) -> Step:
    source, result = compiler.use(op.operands[0]), compiler.define(op.results[0])

    def step(state: State) -> None:
        state.frame[result] = state.frame[source]

    return step


def _reinterpret_cast(compiler: Compiler, op: ir.Operation) -> Step:
    """Sizes, strides and offset anew, counted from the first element of the memory."""
    source, *varying = compiler.uses(op.operands)
    result, (shape, strides, _) = compiler.define(op.results[0]), layout_of(op, op.results[0].type)
    offsets = list(ir.DenseI64ArrayAttr(op.attributes["static_offsets"]))
    _, _, before = layout_of(op, op.operands[0].type)

    def step(state: State) -> None:
        memory: MemRef = state.frame[source]
        offset = _value(offsets[0], [state.frame[slot] for slot in varying])
        distance = (offset - before) * memory.element.size
        state.frame[result] = memory.moved(distance, shape, strides)

    return step


def _value(static: int, varying: list[Array]) -> Array:
    """A static number, or the next of those that vary."""
    return varying.pop(0).astype(np.int64) if static == DYNAMIC else np.array([static])


def _subview(compiler: Compiler, op: ir.Operation) -> Step:
    source, *varying = compiler.uses(op.operands)
    result, (shape, strides, _) = compiler.define(op.results[0]), layout_of(op, op.results[0].type)
    offsets = list(ir.DenseI64ArrayAttr(op.attributes["static_offsets"]))

    def step(state: State) -> None:
        memory: MemRef = state.frame[source]
        values = [state.frame[slot] for slot in varying]
        parts = [_value(offset, values) * stride for offset, stride in zip(offsets, memory.strides, strict=True)]
        distance = sum(parts, np.zeros(1, np.int64)) * memory.element.size
        state.frame[result] = memory.moved(distance, shape, strides)

    return step


def _view(compiler: Compiler, op: ir.Operation) -> Step:
    """A piece of bytes as elements; it must lie within them."""
    source, shift = compiler.uses(op.operands[:2])
    result, (shape, strides, _) = compiler.define(op.results[0]), layout_of(op, op.results[0].type)
    element = compiler.element(op.results[0])
    size = span(shape, strides) * element.size

    def step(state: State) -> None:
        memory: MemRef = state.frame[source]
        moved = memory.moved(state.frame[shift].astype(np.int64), shape, strides, element)
        _check_fits(state, op, moved, size)
        state.frame[result] = moved

    return step


def _check_fits(state: State, op: ir.Operation, memory: MemRef, size: int) -> None:
    bad = np.broadcast_to(memory.offset + size > memory.limit, state.batch.size)
    lanes = state.active.lanes[state.active.pick(bad)]
    if len(lanes):
        message = f"out of bounds: a view of {size} bytes, of memory of {memory.limit} bytes"
        raise report("bounds", op, message, state.active, lanes)


def declared(op: ir.Operation, type_: ir.Type, element: Element) -> tuple[int, tuple[int, ...], tuple[int, ...]]:
    """Bytes, sizes and strides of memory that a kernel declares."""
    shape, strides, _ = layout_of(op, type_)
    return span(shape, strides) * element.size, shape, strides


def _alloca(compiler: Compiler, op: ir.Operation) -> Step:
    result, element = compiler.define(op.results[0]), compiler.element(op.results[0])
    size, shape, strides = declared(op, op.results[0].type, element)
    own = math.ceil(size / 16) * 16

    def step(state: State) -> None:
        segment = Segment.fresh(own * state.batch.size, state.granule, None)
        base = np.arange(state.batch.size, dtype=np.int64) * own
        state.frame[result] = MemRef(segment, base, size, np.zeros(1, np.int64), shape, strides, element)

    return step


def _assume_alignment(compiler: Compiler, op: ir.Operation) -> Step:
    source, result = compiler.use(op.operands[0]), compiler.define(op.results[0])
    alignment = ir.IntegerAttr(op.attributes["alignment"]).value

    def step(state: State) -> None:
        memory: MemRef = state.frame[source]
        if ((memory.base + memory.offset + memory.segment.address) % alignment).any():
            raise KernelError("alignment", op, f"misaligned: {alignment} bytes are promised")
        state.frame[result] = memory

    return step


OPS: Table = {
    **MEMORY_OPS,
    "memref.cast": _cast,
    "memref.reinterpret_cast": _reinterpret_cast,
    "memref.subview": _subview,
    "memref.view": _view,
    "memref.alloca": _alloca,
    "memref.assume_alignment": _assume_alignment,
}
