"""nvgpu: asynchronous copies into shared memory.

Until its thread has waited for a copy, the place that it goes to holds what nobody wrote. What it takes is read, and
looked at for races, when it is asked for; what it gives is written then, as far as races go, and again once the thread
has waited.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from ...dialects.mlir import ir
from .compiler import Compiler, Step, Table
from .elements import Array
from .memory import Access, MemRef, forget, load, store
from .state import Active, State


@dataclass(frozen=True, eq=False)
class Copy:
    """A copy under way: what it writes and where, for which lanes, and which group of each lane's it belongs to."""

    access: Access
    memory: MemRef
    place: Array
    values: Array
    active: Active
    group: Array


def _copy(compiler: Compiler, op: ir.Operation) -> Step:
    target, place, source, position = compiler.uses(op.operands)
    compiler.define(op.results[0])
    element = compiler.memory_element(op.operands[0])
    compiler.memory_element(op.operands[2])
    count = ir.IntegerAttr(op.attributes["dstElements"]).value
    access = Access(op, (count,), count * element.size)

    def step(state: State) -> None:
        frame, active = state.frame, state.active
        values = load(state, access, frame[source], [frame[position]], active)
        forget(state, access, frame[target], [frame[place]], active)
        state.copies.append(Copy(access, frame[target], frame[place], values, active, state.groups))

    return step


def _end_group(compiler: Compiler, op: ir.Operation) -> Step:
    compiler.define(op.results[0])

    def step(state: State) -> None:
        state.groups = state.groups + _mask(state.active)

    return step


def _wait(compiler: Compiler, op: ir.Operation) -> Step:
    """Waits until at most `numGroups` of the thread's groups are under way."""
    pending = ir.IntegerAttr(op.attributes["numGroups"]).value if "numGroups" in op.attributes else 0

    def step(state: State) -> None:
        left: list[Copy] = []
        for copy in state.copies:
            there = copy.active.among(copy.group < state.groups - pending)
            if state.active.mask is not None:
                there = there.among(state.active.mask)
            if there.any():
                store(state, copy.access, copy.memory, [copy.place], copy.values, there)
            others = copy.active.among(~_mask(there))
            if others.any():
                left.append(Copy(copy.access, copy.memory, copy.place, copy.values, others, copy.group))
        state.copies = left

    return step


def _mask(active: Active) -> Array:
    return np.ones(active.batch.size, bool) if active.mask is None else active.mask


OPS: Table = {
    "nvgpu.device_async_copy": _copy,
    "nvgpu.device_async_create_group": _end_group,
    "nvgpu.device_async_wait": _wait,
}
