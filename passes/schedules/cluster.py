"""Blocks of a cluster: each may write to the others' shared memory, and all may wait for each other."""

from __future__ import annotations

from ...dialects.mlir import arith, ir, llvm, nvvm
from ..shared_addresses import SHARED_OF_CLUSTER, pointer, shared_address


def arrive() -> None:
    """Says that this thread is here, and that what it wrote may be read."""
    nvvm.cluster_arrive(aligned=True)


def wait() -> None:
    """Waits until every thread of the cluster has arrived."""
    nvvm.cluster_wait(aligned=True)


def store(value: ir.Value, memory: ir.Value, place: ir.Value, block: ir.Value) -> None:
    """Writes an element of `memory` (shared, without an offset), but that of another block of the cluster."""
    rank = arith.IndexCastUIOp(ir.IntegerType.get_signless(32), block).result
    llvm.StoreOp(value, nvvm.mapa(pointer(SHARED_OF_CLUSTER), shared_address(memory, place), rank))
