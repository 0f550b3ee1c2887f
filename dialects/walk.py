"""Finding operations inside others, however deep."""

from __future__ import annotations

from collections.abc import Callable

from .mlir import ir


def find(root: ir.Operation, wanted: Callable[[ir.Operation], bool]) -> list[ir.Operation]:
    """The operations in `root`, itself included, that are wanted; what is inside an operation comes before it."""
    found: list[ir.Operation] = []

    def visit(op: ir.Operation) -> ir.WalkResult:
        if wanted(op):
            found.append(op)
        return ir.WalkResult.ADVANCE

    root.walk(visit)
    return found
