"""vector: a vector's axes follow the lanes' one."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from ...dialects.mlir import ir
from .compiler import Compiler, Step, Table, computed, unsupported
from .elements import Array, from_bits, to_bits
from .memory import Access, load, store
from .state import State

DYNAMIC = -(2**63)
COMBINES = {
    "add": np.add,
    "mul": np.multiply,
    "minsi": np.minimum,
    "maxsi": np.maximum,
    "and": np.bitwise_and,
    "or": np.bitwise_or,
    "xor": np.bitwise_xor,
    "maximumf": np.maximum,
    "minimumf": np.minimum,
    "maxnumf": np.fmax,
    "minnumf": np.fmin,
}


def access_of(op: ir.Operation, moved: ir.Value) -> Access:
    """How an operation that loads or stores `moved` accesses memory."""
    vector = tuple(ir.VectorType(moved.type).shape) if isinstance(moved.type, ir.VectorType) else ()
    alignment = op.attributes["alignment"].value if "alignment" in op.attributes else None
    return Access(op, vector, alignment)


def _load(compiler: Compiler, op: ir.Operation) -> Step:
    memory, *indices = compiler.uses(op.operands)
    compiler.memory_element(op.operands[0])
    result, access = compiler.define(op.results[0]), access_of(op, op.results[0])

    def step(state: State) -> None:
        frame = state.frame
        frame[result] = load(state, access, frame[memory], [frame[slot] for slot in indices], state.active)

    return step


def _store(compiler: Compiler, op: ir.Operation) -> Step:
    value, memory, *indices = compiler.uses(op.operands)
    compiler.memory_element(op.operands[1])
    access = access_of(op, op.operands[0])

    def step(state: State) -> None:
        frame = state.frame
        store(state, access, frame[memory], [frame[slot] for slot in indices], frame[value], state.active)

    return step


def _broadcast(compiler: Compiler, op: ir.Operation) -> Step:
    shape, source = tuple(ir.VectorType(op.results[0].type).shape), op.operands[0].type
    own = tuple(ir.VectorType(source).shape) if isinstance(source, ir.VectorType) else ()
    axes = (1,) * (len(shape) - len(own)) + own
    return computed(compiler, op, lambda x: np.broadcast_to(x.reshape(-1, *axes), (len(x), *shape)))


def _positions(op: ir.Operation) -> tuple[int, ...]:
    positions = tuple(ir.DenseI64ArrayAttr(op.attributes["static_position"]))
    if DYNAMIC in positions:
        raise unsupported(op, f"no {op.name} at a position that varies", "ops_vector.py")
    return positions


def _extract(compiler: Compiler, op: ir.Operation) -> Step:
    where = (slice(None), *_positions(op))
    return computed(compiler, op, lambda x: x[where])


def _insert(compiler: Compiler, op: ir.Operation) -> Step:
    where = (slice(None), *_positions(op))

    def insert(value: Array, vector: Array) -> Array:
        result = np.array(np.broadcast_to(vector, (max(len(value), len(vector)), *vector.shape[1:])))
        result[where] = value
        return result

    return computed(compiler, op, insert)


def _from_elements(compiler: Compiler, op: ir.Operation) -> Step:
    shape = tuple(ir.VectorType(op.results[0].type).shape)
    return computed(compiler, op, lambda *values: _stack(values).reshape(-1, *shape))


def _stack(values: Sequence[Array]) -> Array:
    return np.stack(np.broadcast_arrays(*values), axis=1)


def _to_elements(compiler: Compiler, op: ir.Operation) -> Step:
    (vector,), results = compiler.uses(op.operands), [compiler.define(result) for result in op.results]

    def step(state: State) -> None:
        flat = state.frame[vector].reshape(len(state.frame[vector]), -1)
        for number, result in enumerate(results):
            state.frame[result] = flat[:, number]

    return step


def _bitcast(compiler: Compiler, op: ir.Operation) -> Step:
    source, target = compiler.element(op.operands[0]), compiler.element(op.results[0])
    return computed(compiler, op, lambda x: from_bits(target, to_bits(source, x).view(f"u{target.size}")))


def _shape_cast(compiler: Compiler, op: ir.Operation) -> Step:
    shape = tuple(ir.VectorType(op.results[0].type).shape)
    return computed(compiler, op, lambda x: x.reshape(-1, *shape))


def _shuffle(compiler: Compiler, op: ir.Operation) -> Step:
    mask = np.array(ir.DenseI64ArrayAttr(op.attributes["mask"]))

    def shuffle(a: Array, b: Array) -> Array:
        count = max(len(a), len(b))
        both = [np.broadcast_to(value, (count, *value.shape[1:])) for value in (a, b)]
        return np.concatenate(both, axis=1)[:, mask]

    return computed(compiler, op, shuffle)


def _extract_slice(compiler: Compiler, op: ir.Operation) -> Step:
    offsets, sizes, strides = (
        [ir.IntegerAttr(entry).value for entry in ir.ArrayAttr(op.attributes[name])]
        for name in ("offsets", "sizes", "strides")
    )
    where = tuple(
        slice(offset, offset + (size - 1) * stride + 1, stride)
        for offset, size, stride in zip(offsets, sizes, strides, strict=True)
    )
    return computed(compiler, op, lambda x: x[(slice(None), *where)])


def _reduction(compiler: Compiler, op: ir.Operation) -> Step:
    kind = str(op.attributes["kind"]).partition("<")[2].strip("<>")
    if kind not in COMBINES:
        raise unsupported(op, f"no vector.reduction <{kind}>", "ops_vector.py")
    combine = COMBINES[kind]

    def reduce(vector: Array, *first: Array) -> Array:
        result = combine.reduce(vector, axis=1)
        return combine(first[0], result) if first else result

    return computed(compiler, op, reduce)


OPS: Table = {
    "vector.load": _load,
    "vector.store": _store,
    "vector.broadcast": _broadcast,
    "vector.splat": _broadcast,
    "vector.extract": _extract,
    "vector.insert": _insert,
    "vector.from_elements": _from_elements,
    "vector.to_elements": _to_elements,
    "vector.bitcast": _bitcast,
    "vector.shape_cast": _shape_cast,
    "vector.shuffle": _shuffle,
    "vector.extract_strided_slice": _extract_slice,
    "vector.reduction": _reduction,
}
# A scalar moves as a vector of no axes does
MEMORY_OPS: Table = {"memref.load": _load, "memref.store": _store}
