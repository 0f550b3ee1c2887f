"""Takes out operations that have nothing to do: no elements to compute, or none to reduce.

    %s = linalg.generic {parallel, reduction} ins(%x : tensor<3x0xf32>) outs(%zero : tensor<3xf32>)
    %y = linalg.generic {parallel} ins(%e : tensor<0xf32>) outs(...)
    ->
    %s is %zero                   a reduction over no elements is what it starts from
    %y is tensor.empty            no element, whatever it computes

So no schedule meets an extent of 0, but for the kernel that stands for a result without elements, and is never run.
"""

from __future__ import annotations

from collections.abc import Iterable

from ..dialects.mlir import ir, tensor
from . import generics

MAKERS = ("linalg.fill", "tensor.concat", "tensor.pad", "tensor.insert_slice", "tensor.extract_slice", "tensor.splat")


def drop_empty(function: ir.Operation) -> None:
    """Rewrites one function whose linalg operations are generics."""
    for block in function.regions[0].blocks:
        for op in [view.operation for view in block.operations]:
            if generics.is_generic(op):
                if any(0 in ir.ShapedType(value.type).shape for value in _tensors(op.operands)):
                    _become_starting_values(op)
            elif op.name in MAKERS:
                for result in _tensors(op.results):
                    _replace_if_empty(result, op)


def _become_starting_values(op: ir.Operation) -> None:
    """A generic over no points: each result is what it starts from, which is nothing if it has no elements."""
    for result, start in zip(op.results, generics.parts(op).outputs, strict=True):
        if not _replace_if_empty(result, op):
            result.replace_all_uses_with(start)
    op.erase()


def _replace_if_empty(result: ir.Value, op: ir.Operation) -> bool:
    shaped = ir.RankedTensorType(result.type)
    if not shaped.has_static_shape or 0 not in shaped.shape:
        return False
    with ir.InsertionPoint(op), op.location:
        result.replace_all_uses_with(tensor.EmptyOp(list(shaped.shape), shaped.element_type).result)
    return True


def _tensors(values: Iterable[ir.Value]) -> list[ir.Value]:
    return [value for value in values if isinstance(value.type, ir.RankedTensorType)]
