"""fusion-expand-copies: writes out asynchronous copies into shared memory, for the GPU.

Upstream lowers `nvgpu.device_async_copy` to addresses that it computes with an index of 64 bits, whatever the module
says; here they have the module's own width until the last addition, which is one of 64-bit pointers.

Must hold before: memory is one-dimensional and contiguous. Before and after:

    nvgpu.device_async_copy %x[%i], %shared[%j], 4 {bypassL1} : memref<64xf32> to memref<64xf32, workgroup>
    %group = nvgpu.device_async_create_group
    nvgpu.device_async_wait %group {numGroups = 1}
 ->
    nvvm.cp.async.shared.global %address_of_j, %address_of_i, 16, cache = cg
    nvvm.cp.async.commit.group
    nvvm.cp.async.wait.group 1
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from ..dialects.mlir import arith, ir, llvm, nvvm
from ..dialects.walk import find
from .errors import PassFailure
from .pass_base import Pass
from .shared_addresses import GLOBAL, pointer, shared_address

DYNAMIC = -(1 << 31)  # an index of llvm.getelementptr that is an operand


@dataclass(frozen=True)
class FusionExpandCopies(Pass):
    """See the module's docstring."""

    name: ClassVar[str] = "fusion-expand-copies"

    def run(self, module: ir.Module) -> None:
        """Rewrites all copies, groups and waits of the GPU modules."""
        found = find(module.operation, lambda op: op.name in _EXPAND)
        for op in found:
            with ir.InsertionPoint(op), op.location:
                _EXPAND[op.name](op)
        # Users of a token come after what makes it
        for op in reversed(found):
            op.erase()


def _copy(op: ir.Operation) -> None:
    if len(op.operands) != 4:
        raise PassFailure(op.location, "an asynchronous copy takes one-dimensional memory and whole elements")
    target, place, source, position = op.operands
    size = ir.IntegerAttr(op.attributes["dstElements"]).value * _bytes(target)
    kind = nvvm.LoadCacheModifierKind
    modifier = kind.CG if "bypassL1" in op.attributes else kind.CA
    nvvm.cp_async_shared_global(shared_address(target, place), _in_global(source, position), size, modifier)


def _end_group(_: ir.Operation) -> None:
    nvvm.cp_async_commit_group()


def _wait(op: ir.Operation) -> None:
    pending = ir.IntegerAttr(op.attributes["numGroups"]).value if "numGroups" in op.attributes else 0
    nvvm.cp_async_wait_group(pending)


_EXPAND = {
    "nvgpu.device_async_copy": _copy,
    "nvgpu.device_async_create_group": _end_group,
    "nvgpu.device_async_wait": _wait,
}


def _in_global(memory: ir.Value, position: ir.Value) -> ir.Value:
    """Where an element of a kernel's argument is."""
    i64, element = ir.IntegerType.get_signless(64), ir.MemRefType(memory.type).element_type
    width = 32 if _has_short_index(memory) else 64
    parts = ir.Type.parse(f"!llvm.struct<(ptr, ptr, i{width}, array<1 x i{width}>, array<1 x i{width}>)>")
    cast = ir.Operation.create("builtin.unrealized_conversion_cast", results=[parts], operands=[memory])
    base = llvm.ExtractValueOp(pointer(), cast.results[0], [1]).result
    here = llvm.AddrSpaceCastOp(pointer(GLOBAL), base).result
    offset = arith.IndexCastUIOp(i64, position).result
    return llvm.GEPOp(pointer(GLOBAL), here, [offset], [DYNAMIC], element, []).result


def _has_short_index(memory: ir.Value) -> bool:
    """Whether the module says that an index has 32 bits."""
    owner = memory.owner.owner if isinstance(memory.owner, ir.Block) else memory.owner
    op: ir.Operation | None = owner.operation
    while op is not None and op.name != "gpu.module":
        op = op.parent.operation if op.parent is not None else None
    return op is not None and "dlti.dl_spec" in op.attributes


def _bytes(memory: ir.Value) -> int:
    return ir.MemRefType(memory.type).element_type.width // 8
