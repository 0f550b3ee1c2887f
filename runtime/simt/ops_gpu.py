"""gpu: where a thread is, barriers, shuffles, a block's shared memory."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from ...dialects.mlir import ir
from .compiler import Build, Compiler, Step, Table
from .elements import Array, element_named
from .grid import AXES, WARP, Batch
from .memory import report
from .state import State

BYTE = element_named("i8")


def _word(attribute: ir.Attribute) -> str:
    """`x` of `#gpu<dim x>`."""
    return str(attribute).rpartition(" ")[2].rstrip(">")


def _place(read: Callable[[Batch, int], Array | int]) -> Build:
    """A coordinate, or a size, along an axis."""

    def build(compiler: Compiler, op: ir.Operation) -> Step:
        axis, result = AXES[_word(op.attributes["dimension"])], compiler.define(op.results[0])
        dtype = element_named(f"i{compiler.index_bits}").register

        def step(state: State) -> None:
            state.frame[result] = np.atleast_1d(np.asarray(read(state.batch, axis), dtype))

        return step

    return build


def _warp_place(read: Callable[[Array], Array]) -> Build:
    """What a thread's number in its block says of its place in a warp."""

    def build(compiler: Compiler, op: ir.Operation) -> Step:
        result = compiler.define(op.results[0])
        dtype = element_named(f"i{compiler.index_bits}").register

        def step(state: State) -> None:
            thread = state.batch.lanes % state.batch.grid.block_size
            state.frame[result] = read(thread).astype(dtype)

        return step

    return build


def barrier(level: int, arrives: bool = True, waits: bool = True) -> Build:
    """A barrier of a scope, or a half of one: all threads of a group, or none, must reach it."""

    def build(compiler: Compiler, op: ir.Operation) -> Step:
        def step(state: State) -> None:
            scopes = state.batch.grid.scopes
            # A cluster of one block has no scope of its own
            scope = scopes[min(level, len(scopes) - 2)]
            groups = _whole_groups(state, op, scope.size)
            scope.arrived[groups] += arrives
            scope.waited[groups] += waits

        return step

    return build


def _whole_groups(state: State, op: ir.Operation, size: int) -> Array:
    """The numbers of the groups of `size` lanes that are active; a finding if one is so in part."""
    active, batch = state.active, state.batch
    first = batch.lanes[0] // size
    if active.mask is None:
        return first + np.arange(batch.size // size)
    reached = active.mask.reshape(-1, size)
    counts = reached.sum(axis=1)
    partly = (counts > 0) & (counts < size)
    if partly.any():
        missing = batch.lanes[np.flatnonzero((~reached & partly[:, None]).ravel())]
        count = size - int(counts[partly][0])
        message = f"barrier: {count} of {size} threads don't reach it: it is missed"
        raise report("barrier", op, message, active, missing)
    return first + np.flatnonzero(reached[:, 0])


def _shuffle(compiler: Compiler, op: ir.Operation) -> Step:
    """Another lane's value, of the same warp; all lanes that the mask names have to take part."""
    value, offset, width = compiler.uses(op.operands)
    result, valid = (compiler.define(each) for each in op.results)
    mode = _word(op.attributes["mode"])

    def step(state: State) -> None:
        lanes = np.arange(state.batch.size)
        own = lanes % state.batch.grid.block_size % WARP
        widths, distances = (np.broadcast_to(state.frame[slot], lanes.shape) for slot in (width, offset))
        _check_warps(state, op, own, widths)
        source, inside = _source(mode, own, distances, widths)
        values = np.broadcast_to(state.frame[value], (len(lanes), *state.frame[value].shape[1:]))
        from_lane = np.clip(lanes - own + source, 0, len(lanes) - 1)
        state.frame[result] = np.where(inside, values[from_lane], values)
        state.frame[valid] = inside

    return step


def _source(mode: str, own: Array, distance: Array, width: Array) -> tuple[Array, Array]:
    """The lane of the warp that each one reads, and whether that is in its part of the warp."""
    start = own // width * width
    source = {"xor": own ^ distance, "up": own - distance, "down": own + distance, "idx": start + distance}[mode]
    return source, (source >= start) & (source < start + width)


def _check_warps(state: State, op: ir.Operation, own: Array, widths: Array) -> None:
    """The hardware is told which lanes take part: the first `width` of the warp, so these have to, and no others."""
    active, block = state.active, state.batch.grid.block_size
    takes_part = np.ones(len(own), bool) if active.mask is None else active.mask
    outside = takes_part & (own >= widths)
    if outside.any():
        message = f"shuffle: a lane takes part beyond the {int(widths[outside][0])} that it is for"
        raise report("shuffle", op, message, active, state.batch.lanes[outside])
    whole = np.zeros((state.batch.count, -(-block // WARP), WARP), bool)
    whole.reshape(state.batch.count, -1)[:, :block] = takes_part.reshape(-1, block)
    missing = whole.any(axis=2, keepdims=True) & ~whole & (np.arange(WARP) < int(widths[takes_part].max()))
    if missing.any():
        block_number, warp, lane = (int(part[0]) for part in np.nonzero(missing))
        message = f"shuffle: lane {lane} of warp {warp} is not active, but another one's value would come from it"
        place = (state.batch.first + block_number) * block + min(warp * WARP + lane, block - 1)
        raise report("shuffle", op, message, active, np.array([place]))


def _dynamic_shared_memory(compiler: Compiler, op: ir.Operation) -> Step:
    """What the launch gives on top, as bytes."""
    result = compiler.define(op.results[0])

    def step(state: State) -> None:
        state.frame[result] = state.shared[-1]

    return step


OPS: Table = {
    "gpu.thread_id": _place(lambda batch, axis: batch.thread_id(axis)),
    "gpu.block_id": _place(lambda batch, axis: batch.block_id(axis)),
    "gpu.block_dim": _place(lambda batch, axis: batch.grid.threads[axis]),
    "gpu.grid_dim": _place(lambda batch, axis: batch.grid.blocks[axis]),
    "gpu.cluster_id": _place(lambda batch, axis: batch.block_id(axis) // batch.grid.cluster_size[axis]),
    "gpu.cluster_block_id": _place(lambda batch, axis: batch.block_id(axis) % batch.grid.cluster_size[axis]),
    "gpu.cluster_dim_blocks": _place(lambda batch, axis: batch.grid.cluster_size[axis]),
    "gpu.lane_id": _warp_place(lambda thread: thread % WARP),
    "gpu.subgroup_id": _warp_place(lambda thread: thread // WARP),
    "gpu.barrier": barrier(0),
    "gpu.shuffle": _shuffle,
    "gpu.dynamic_shared_memory": _dynamic_shared_memory,
}
