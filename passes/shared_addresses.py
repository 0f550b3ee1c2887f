"""Addresses in a block's shared memory, and pointer types by NVVM's address spaces."""

from __future__ import annotations

from ..dialects.mlir import arith, ir, llvm, memref

GLOBAL, SHARED, SHARED_OF_CLUSTER = 1, 3, 7


def pointer(space: int = 0) -> ir.Type:
    """A pointer into an address space; 0 is the generic one."""
    return ir.Type.parse(f"!llvm.ptr<{space}>" if space else "!llvm.ptr")


def shared_address(memory: ir.Value, place: ir.Value) -> ir.Value:
    """Where an element of shared memory (one-dimensional, without an offset) is: an address of 32 bits at most."""
    i64, element = ir.IntegerType.get_signless(64), ir.MemRefType(memory.type).element_type
    size = arith.ConstantOp(ir.IndexType.get(), element.width // 8).result
    base = memref.ExtractAlignedPointerAsIndexOp(memory).result
    address = arith.AddIOp(base, arith.MulIOp(place, size).result).result
    return llvm.IntToPtrOp(pointer(SHARED), arith.IndexCastUIOp(i64, address).result).result
