"""Blocks of a cluster: each may write to the others' shared memory, and all may wait for each other."""

from __future__ import annotations

from ...dialects.mlir import arith, ir, llvm, memref, nvvm

SHARED, SHARED_OF_CLUSTER = 3, 7  # NVVM's address spaces


def arrive() -> None:
    """Says that this thread is here, and that what it wrote may be read."""
    nvvm.cluster_arrive(aligned=True)


def wait() -> None:
    """Waits until every thread of the cluster has arrived."""
    nvvm.cluster_wait(aligned=True)


def store(value: ir.Value, memory: ir.Value, place: ir.Value, block: ir.Value) -> None:
    """Writes an element of `memory` (shared, without an offset), but that of another block of the cluster."""
    i32, i64 = ir.IntegerType.get_signless(32), ir.IntegerType.get_signless(64)
    size = arith.ConstantOp(ir.IndexType.get(), value.type.width // 8).result
    base = memref.ExtractAlignedPointerAsIndexOp(memory).result
    address = arith.AddIOp(base, arith.MulIOp(place, size).result).result
    here = llvm.IntToPtrOp(_pointer(SHARED), arith.IndexCastUIOp(i64, address).result).result
    there = nvvm.mapa(_pointer(SHARED_OF_CLUSTER), here, arith.IndexCastUIOp(i32, block).result)
    llvm.StoreOp(value, there)


def _pointer(space: int) -> ir.Type:
    return ir.Type.parse(f"!llvm.ptr<{space}>")
