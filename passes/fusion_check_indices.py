"""fusion-check-indices: elements are read at computed indices only within bounds, and nothing else is asserted.

Why: torch-mlir reads at indices that a program computes and looks at some of them only (`gather`, not `index_select`);
out of bounds, PyTorch raises. In other places it asserts what PyTorch does not ask for, that no divisor is 0.

Must hold before: the module comes from torch-mlir. In linalg written by hand, assertions mean what their author says
and an index out of bounds is undefined: it is not for this pass.

Holds after: in the body of a `linalg.generic`, an assertion stands in front of each `tensor.extract` for each of its
indices that is not within bounds anyway (a constant, a loop as long as the dimension); there are no others. What is
compared is the number before it becomes an `index`, which may have fewer bits.

Before:

    %2 = arith.index_cast %in : i64 to index
    %e = tensor.extract %x[%2] : tensor<5xf32>

After:

    %2 = arith.index_cast %in : i64 to index
    %n = arith.constant 5 : i64
    %c = arith.cmpi ult, %in, %n : i64
    cf.assert %c, "index out of range"
    %e = tensor.extract %x[%2] : tensor<5xf32>
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from ..dialects.mlir import arith, cf, ir, tensor
from . import generics
from .graph import generic_ops
from .pass_base import Pass


@dataclass(frozen=True)
class FusionCheckIndices(Pass):
    """See the module's docstring."""

    name: ClassVar[str] = "fusion-check-indices"

    def run(self, module: ir.Module) -> None:
        """Rewrites the bodies of all `linalg.generic`s of the module's functions."""
        for generic in generic_ops(module):
            operations = [view.operation for view in generics.body(generic).operations]
            for op in operations:
                if op.name == "cf.assert":
                    op.erase()
                elif op.name == "tensor.extract":
                    _check(op, generic)


def _check(extract: ir.Operation, generic: ir.Operation) -> None:
    """Asserts in front of the read that its indices are within bounds."""
    source, *indices = extract.operands
    for dimension, index in enumerate(indices):
        if _is_within(index, ir.RankedTensorType(source.type).get_dim_size(dimension), generic):
            continue
        number = _before_cast(index)
        extent = _extent(source, dimension, number.type, generic, ir.InsertionPoint(extract))
        with ir.InsertionPoint(extract), extract.location:
            # Unsigned: what is negative is too large
            cf.AssertOp(arith.CmpIOp(arith.CmpIPredicate.ult, number, extent).result, "index out of range")


def _is_within(index: ir.Value, extent: int, generic: ir.Operation) -> bool:
    """Whether the index is within bounds whatever the program computes; a negative extent is a dynamic one."""
    if isinstance(index, ir.BlockArgument):
        return False
    op = index.owner.operation
    if op.name == "arith.constant":
        return 0 <= ir.IntegerAttr(op.attributes["value"]).value < extent
    if op.name != "linalg.index":
        return False
    loop = ir.AffineDimExpr.get(ir.IntegerAttr(op.attributes["dim"]).value)
    return 0 <= _loop_extent(loop, generic) <= extent


def _loop_extent(loop: ir.AffineExpr, generic: ir.Operation) -> int:
    parts = generics.parts(generic)
    for operand, map_ in zip((*parts.inputs, *parts.outputs), parts.maps, strict=True):
        for dimension, expression in enumerate(map_.results):
            if expression == loop and isinstance(operand.type, ir.RankedTensorType):
                return ir.RankedTensorType(operand.type).get_dim_size(dimension)
    raise ValueError(f"no operand has the loop {loop} as a dimension")


def _before_cast(index: ir.Value) -> ir.Value:
    """The number that an index was cast from."""
    if isinstance(index, ir.BlockArgument) or index.owner.operation.name != "arith.index_cast":
        return index
    return index.owner.operation.operands[0]


def _extent(
    source: ir.Value, dimension: int, type_: ir.Type, generic: ir.Operation, point: ir.InsertionPoint
) -> ir.Value:
    """A dimension's extent as a number of that type: a constant, or if dynamic, computed in front of the generic."""
    kind = ir.RankedTensorType(source.type)
    if not kind.is_dynamic_dim(dimension):
        with point, generic.location:
            return arith.ConstantOp(type_, ir.IntegerAttr.get(type_, kind.get_dim_size(dimension))).result
    with ir.InsertionPoint(generic), generic.location:
        extent = tensor.DimOp(source, arith.ConstantOp(ir.IndexType.get(), dimension).result).result
        return extent if extent.type == type_ else arith.IndexCastOp(type_, extent).result
