"""Clusters: blocks that wait for each other, and write to each other's shared memory by pointer.

A pointer to shared memory is a number, the same in every block; nvvm.mapa says whose is meant. Memory `n` of a block
(its attributions in order, then what the launch asked for) lies in a window of its own.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from ...dialects.mlir import ir
from .compiler import Compiler, Step, Table
from .elements import Array, element_named
from .errors import KernelError
from .memory import Access, MemRef, report, store
from .ops_gpu import barrier
from .state import Active, State

WINDOW = 1 << 20
CLUSTER = 1
"""The level of a cluster's scope."""


@dataclass(frozen=True, eq=False)
class Pointer:
    """A place in the shared memory of a block, which is given by its number in the batch."""

    address: Array
    block: Array


def check_end(state: State) -> None:
    """Raises if a block may end while another one of its cluster still writes to its memory."""
    for op, clusters, arrived in state.remote:
        if (arrived >= state.batch.grid.scopes[CLUSTER].waited[clusters]).any():
            message = "race: the block whose memory this is may have ended: its cluster doesn't wait afterwards"
            raise KernelError("race", op, message)


def _address(compiler: Compiler, op: ir.Operation) -> Step:
    """The number of a pointer to a memref's first element."""
    source, result = compiler.use(op.operands[0]), compiler.define(op.results[0])
    dtype = element_named(f"i{compiler.index_bits}").register

    def step(state: State) -> None:
        memory: MemRef = state.frame[source]
        number = next(k for k, shared in enumerate(state.shared) if shared.segment is memory.segment)
        own = len(memory.segment.data) // state.batch.count
        inside = memory.base + memory.offset - state.batch.block_numbers() * own
        state.frame[result] = ((number + 1) * WINDOW + memory.segment.address + inside).astype(dtype)

    return step


def _pointer(compiler: Compiler, op: ir.Operation) -> Step:
    source, result = compiler.use(op.operands[0]), compiler.define(op.results[0])

    def step(state: State) -> None:
        address = np.broadcast_to(state.frame[source].astype(np.int64), state.batch.size)
        state.frame[result] = Pointer(address, state.batch.block_numbers())

    return step


def _map(compiler: Compiler, op: ir.Operation) -> Step:
    """The same place in the memory of a block of the cluster, by its number there."""
    (source, rank), result = compiler.uses(op.operands), compiler.define(op.results[0])

    def step(state: State) -> None:
        size, ranks = state.batch.grid.cluster, np.broadcast_to(state.frame[rank], state.batch.size)
        beyond = state.active.among((ranks < 0) | (ranks >= size))
        if beyond.any():
            message = f"out of bounds: block {int(ranks[beyond.numbers[0]])} of a cluster of {size}"
            raise report("bounds", op, message, state.active, beyond.lanes)
        pointer: Pointer = state.frame[source]
        block = state.batch.block_numbers() // size * size + ranks
        state.frame[result] = Pointer(pointer.address, np.clip(block, 0, state.batch.count - 1))

    return step


def _store(compiler: Compiler, op: ir.Operation) -> Step:
    value, target = compiler.uses(op.operands)
    element, access = compiler.memory_element(op.operands[0]), Access(op, (), None)

    def step(state: State) -> None:
        pointer: Pointer = state.frame[target]
        _note_remote(state, op, pointer)
        numbers = pointer.address // WINDOW - 1
        for number in np.unique(numbers[state.active.numbers]):
            active = state.active.among(numbers == number)
            if not 0 <= number < len(state.shared):
                raise report("bounds", op, "out of bounds: no shared memory is there", active, active.lanes)
            shared = state.shared[number]
            own = len(shared.segment.data) // state.batch.count
            offset = pointer.address % WINDOW - shared.segment.address
            memory = MemRef(shared.segment, pointer.block * own, shared.limit, offset, (), (), element)
            store(state, access, memory, [], state.frame[value], active)

    return step


def _note_remote(state: State, op: ir.Operation, pointer: Pointer) -> None:
    """Other blocks' memory is there once their cluster has waited, and until it does so again for the last time."""
    remote: Active = state.active.among(pointer.block != state.batch.block_numbers())
    if not remote.any():
        return
    scope = state.batch.grid.scopes[CLUSTER]
    clusters = np.unique(remote.lanes // scope.size)
    if (scope.waited[clusters] == 0).any():
        message = "race: the block whose memory this is may not have started: its cluster hasn't waited yet"
        raise report("race", op, message, state.active, remote.lanes)
    state.remote.append((op, clusters, scope.arrived[clusters]))


OPS: Table = {
    "memref.extract_aligned_pointer_as_index": _address,
    "llvm.inttoptr": _pointer,
    "llvm.store": _store,
    "nvvm.mapa": _map,
    "nvvm.cluster.arrive": barrier(CLUSTER, waits=False),
    "nvvm.cluster.wait": barrier(CLUSTER, arrives=False),
}
