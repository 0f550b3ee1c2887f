"""Puts what one ATen op was decomposed into back into one linalg body, where it ends in a rounding to 16 bits.

PyTorch computes an op on bf16 or f16 in f32 and rounds its result once. A decomposed op therefore arrives as an
extension, f32 operations, and a truncation, each a linalg.generic of its own. `merge_roundings` finds, for each
truncation, the elementwise generics whose results serve nothing else, and makes one generic of them:

    %1 = linalg.generic ins(%x) { extf }           %4 = linalg.generic ins(%x) {
    %2 = linalg.generic ins(%1) { exp }       ->       %a = extf %in ; %b = exp %a ; %c = addf %a, %b
    %3 = linalg.generic ins(%1, %2) { addf }           %d = truncf %c ; linalg.yield %d }
    %4 = linalg.generic ins(%3) { truncf }

This is not fusion, which happens to whole ops and is the fusion passes' business: it restores the op. It matters
because only a whole body shows that its result is rounded, so that its f32 steps may use the hardware's faster
functions (narrow_floats.py), under every fusion type alike.
"""

from __future__ import annotations

from collections.abc import Sequence

from ..dialects.mlir import ir
from . import generics
from .generics import Parts

Cone = list[ir.Operation]


def merge_roundings(function: ir.Operation) -> None:
    """Merges the cone of each truncation to 16 bits in a function's blocks."""
    for block in function.regions[0].blocks:
        for op in [view.operation for view in block.operations if _is_rounding(view.operation)]:
            cone = _cone_of(op)
            if len(cone) > 1:
                _merge(cone)


def _is_rounding(op: ir.Operation) -> bool:
    if not _is_elementwise(op) or len(op.operands) != 2:
        return False
    operations = [view.operation for view in generics.body(op).operations]
    narrow = isinstance(operations[-1].operands[0].type, ir.F16Type | ir.BF16Type)
    return len(operations) == 2 and operations[0].name == "arith.truncf" and narrow


def _is_elementwise(op: ir.Operation) -> bool:
    """One result, at whose every point only that point's elements and the body's arithmetic count."""
    if not generics.is_generic(op) or len(op.results) != 1:
        return False
    parts = generics.parts(op)
    if not parts.all_parallel or parts.maps[-1] != ir.AffineMap.get_identity(parts.loops):
        return False
    plain = all(
        view.operation.name.partition(".")[0] in ("arith", "math", "linalg") for view in generics.body(op).operations
    )
    return plain and next(iter(generics.body(op).arguments[len(parts.inputs)].uses), None) is None


def _cone_of(root: ir.Operation) -> Cone:
    """`root` and the elementwise producers that only the cone uses, in order."""
    cone = [root]
    inside = {root}
    pending = [root]
    while pending:
        parts = generics.parts(pending.pop())
        for value, indexing in zip(parts.inputs, parts.maps, strict=False):
            producer = None if isinstance(value, ir.BlockArgument) else value.owner.operation
            if producer is None or producer in inside or not _may_enter(producer, parts, indexing):
                continue
            if all(use.owner.operation in inside for use in value.uses) and _reads_plainly(value):
                inside.add(producer)
                cone.append(producer)
                pending.append(producer)
    return sorted(cone, key=_Position(root.block))


def _may_enter(producer: ir.Operation, consumer: Parts, indexing: ir.AffineMap) -> bool:
    """Whether `producer` computes, in f32 or the like, the very points that its consumer reads."""
    if indexing != ir.AffineMap.get_identity(consumer.loops) or not _is_elementwise(producer):
        return False
    return generics.parts(producer).loops == consumer.loops and not _is_narrow(producer)


def _is_narrow(op: ir.Operation) -> bool:
    """Whether the result is rounded to 16 bits: then it ends an op of its own."""
    return isinstance(ir.ShapedType(op.results[0].type).element_type, ir.F16Type | ir.BF16Type)


def _reads_plainly(value: ir.Value) -> bool:
    """Whether every use is an input of a generic, read at the point itself."""
    for use in value.uses:
        parts = generics.parts(use.owner.operation)
        if use.operand_number >= len(parts.inputs):
            return False
        if parts.maps[use.operand_number] != ir.AffineMap.get_identity(parts.loops):
            return False
    return True


class _Position:
    """Sorts operations by their place in a block."""

    def __init__(self, block: ir.Block) -> None:
        self._places = {view.operation: place for place, view in enumerate(block.operations)}

    def __call__(self, op: ir.Operation) -> int:
        return self._places[op]


def _merge(cone: Cone) -> None:
    """One generic in place of the last one of the cone; the others go."""
    root = cone[-1]
    made = {op.results[0] for op in cone}
    inputs: dict[tuple[ir.Value, ir.AffineMap], int] = {}
    for op in cone:
        parts = generics.parts(op)
        for value, indexing in zip(parts.inputs, parts.maps, strict=False):
            if value not in made:
                inputs.setdefault((value, indexing), len(inputs))
    last = generics.parts(root)
    maps = (*(indexing for _, indexing in inputs), last.maps[-1])
    parts = Parts(tuple(value for value, _ in inputs), last.outputs, maps, last.iterators)

    def body(arguments: Sequence[ir.Value]) -> Sequence[ir.Value]:
        return [_copy_bodies(cone, {key: arguments[number] for key, number in inputs.items()})]

    merged = generics.build(parts, body, root.location, ir.InsertionPoint(root))
    root.results[0].replace_all_uses_with(merged.results[0])
    for op in reversed(cone):
        op.erase()


def _copy_bodies(cone: Cone, outside: dict[tuple[ir.Value, ir.AffineMap], ir.Value]) -> ir.Value:
    """Repeats the bodies one after the other; returns what the last one yields."""
    results: dict[ir.Value, ir.Value] = {}
    value: ir.Value | None = None
    for op in cone:
        parts, block = generics.parts(op), generics.body(op)
        local: dict[ir.Value, ir.Value] = {}
        for argument, source, indexing in zip(block.arguments, parts.inputs, parts.maps, strict=False):
            local[argument] = results[source] if source in results else outside[source, indexing]
        for inner in [view.operation for view in block.operations][:-1]:
            copy = inner.clone()
            for number, operand in enumerate(inner.operands):
                copy.operands[number] = local.get(operand, operand)
            local.update(zip(inner.results, copy.results, strict=True))
        yielded = generics.yield_of(op).operands[0]
        value = results[op.results[0]] = local.get(yielded, yielded)
    assert value is not None
    return value
