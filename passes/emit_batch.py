"""The code of a batch: kernels that share one launch, each with blocks of its own.

    if block < 96:                      24 equal kernels of 4 blocks each: one body
      kernel, block = block / 4, block % 4
      x, y = switch kernel { 0: (%x0, %y0); 1: (%x1, %y1); ... }
      body(x, y, block)
    else: ...                           other kernels

Equal kernels share a body, so that what is compiled depends on how many different ones there are. A block takes one
way through this, so its threads stay together.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

from ..dialects.mlir import arith, ir, scf
from .schedules.machine import number

Emit = Callable[[Sequence[ir.Value], ir.Value], None]


@dataclass(frozen=True)
class Share:
    """Equal kernels of a batch: the arguments of each, the blocks of each, and what emits one on a block."""

    arguments: Sequence[Sequence[ir.Value]]
    blocks: int
    emit: Emit

    @property
    def all_blocks(self) -> int:
        """The blocks of all of them."""
        return len(self.arguments) * self.blocks


def emit_batch(shares: Sequence[Share], block: ir.Value) -> None:
    """Emits what block number `block` of the batch does, at the insertion point."""
    share, *others = shares
    if not others:
        _emit_share(share, block)
        return
    mine = arith.CmpIOp(arith.CmpIPredicate.ult, block, number(share.all_blocks)).result
    choice = scf.IfOp(mine, has_else=True)
    with ir.InsertionPoint(choice.then_block):
        _emit_share(share, block)
        scf.YieldOp([])
    with ir.InsertionPoint(choice.else_block):
        emit_batch(others, arith.SubIOp(block, number(share.all_blocks)).result)
        scf.YieldOp([])


def _emit_share(share: Share, block: ir.Value) -> None:
    if len(share.arguments) == 1:
        share.emit(share.arguments[0], block)
        return
    kernel = arith.DivUIOp(block, number(share.blocks)).result
    share.emit(_switch(kernel, share.arguments), arith.RemUIOp(block, number(share.blocks)).result)


def _switch(kernel: ir.Value, arguments: Sequence[Sequence[ir.Value]]) -> list[ir.Value]:
    """The arguments of kernel number `kernel`."""
    *others, last = arguments
    switch = ir.Operation.create(
        "scf.index_switch",
        results=[value.type for value in last],
        operands=[kernel],
        attributes={"cases": ir.DenseI64ArrayAttr.get(list(range(len(others))))},
        regions=1 + len(others),
    )
    for region, values in zip(switch.regions, [last, *others], strict=True):
        with ir.InsertionPoint(region.blocks.append()):
            scf.YieldOp(values)
    return list(switch.results)
