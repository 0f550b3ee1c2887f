"""What a thread has put into places of its own in the block's memory, taken from there again."""

from __future__ import annotations

from ...dialects.mlir import ir, memref, vector
from ..evaluate import Evaluator, from_storage
from ..indexing import Index
from ..lanes import Lanes
from .machine import ALIGNMENT


def element_of(tensor: ir.Value) -> ir.Type:
    """A tensor's element type."""
    return ir.RankedTensorType(tensor.type).element_type


def take(
    value: ir.Value, index: Index, lanes: Lanes | None, memory: ir.Value, place: ir.Value, evaluator: Evaluator
) -> None:
    """Makes what is at a place of `memory` known as the element (or the lanes) of `value` at an index."""
    if lanes is None:
        stored = memref.LoadOp(memory, [place]).result
    else:
        type_ = ir.VectorType.get([lanes.count], ir.MemRefType(memory.type).element_type)
        stored = vector.LoadOp(type_, memory, [place], alignment=alignment_of(type_)).result
    evaluator.remember(value, index, from_storage(stored, element_of(value)), lanes)


def alignment_of(type_: ir.VectorType) -> int:
    """Bytes that a thread's place for such a vector is aligned to."""
    return min(ALIGNMENT, type_.shape[0] * type_.element_type.width // 8)
