"""fusion-select-library: matrix products and convolutions written in linalg become calls of ATen.

Programs from PyTorch don't need it: the frontend keeps such ops as calls before anything is lowered. It
serves linalg written by hand, where `linalg.matmul` into a filled zero is what `aten.mm` computes, and into
another tensor what `aten.addmm` computes. It must run before fusion-normalize, after which a matmul is a
generic like any other.

Left as they are, to be compiled: products of element types that ATen can't mix (bf16 times bf16 into f32) or
of integers (CUDA has none), products that broadcast an operand through their indexing maps, other
contractions, other convolution layouts. With `matmul=on` everything is left; with `auto`, products so small that the
call takes longer than the arithmetic.

Before:

    %0 = tensor.empty() : tensor<8x64xf32>
    %1 = linalg.fill ins(%zero : f32) outs(%0 : tensor<8x64xf32>) -> tensor<8x64xf32>
    %2 = linalg.matmul ins(%a, %b : tensor<8x32xf32>, tensor<32x64xf32>) outs(%1 : tensor<8x64xf32>) -> ...

After:

    %2 = "fusion.extern"(%a, %b) {op = "aten.mm.default", args = [#fusion.operand<0>, #fusion.operand<1>]} :
    ...

An operand that the product reads transposed goes through a `linalg.transpose`, of which fusion-normalize,
knowing how the operand lies in memory, makes a fusion.view.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import ClassVar

from ..dialects import fusion
from ..dialects.mlir import ir, linalg
from . import generics
from .graph import functions
from .pass_base import Pass, check_choice

MATMUL_CHOICES = ("off", "on", "auto")
SMALL_PRODUCT = 1 << 15
"""Multiplications that take no longer than a launch, even a thread an output element."""


@dataclass(frozen=True)
class FusionSelectLibrary(Pass):
    """`matmul`: whether products are compiled ("on"), left to the library ("off"), or by size ("auto")."""

    name: ClassVar[str] = "fusion-select-library"

    matmul: str = "off"

    def __post_init__(self) -> None:
        check_choice("value of option 'matmul'", self.matmul, MATMUL_CHOICES)

    def run(self, module: ir.Module) -> None:
        if self.matmul == "on":
            return
        for op in _calls_in_linalg(module):
            compiled = not _library_takes(op) or (self.matmul == "auto" and is_small(op))
            call = None if compiled else SELECTIONS[op.name](op)
            if call is not None:
                _replace(op, call)


@dataclass(frozen=True)
class Call:
    """A library call: the overload, its tensors, and one entry a schema argument (an int is a tensor's
    number)."""

    overload: str
    tensors: Sequence[Operand]
    arguments: Sequence[ir.Attribute | int]


@dataclass(frozen=True)
class Operand:
    """A tensor, transposed in its last two dimensions or not."""

    value: ir.Value
    transposed: bool = False


def _calls_in_linalg(module: ir.Module) -> list[ir.Operation]:
    return [
        view.operation
        for function in functions(module)
        for block in function.regions[0].blocks
        for view in block.operations
        if view.operation.name in SELECTIONS
    ]


def _library_takes(op: ir.Operation) -> bool:
    """Whether all element types are one and the same floating type."""
    elements = {ir.ShapedType(value.type).element_type for value in op.operands}
    floats = (ir.F16Type, ir.BF16Type, ir.F32Type, ir.F64Type)
    return len(elements) == 1 and isinstance(elements.pop(), floats)


def is_small(op: ir.Operation) -> bool:
    """Whether a product, of static sizes, takes few multiplications."""
    shapes = [ir.ShapedType(value.type) for value in op.operands]
    if op.name not in PRODUCTS or not all(shaped.has_static_shape for shaped in shapes):
        return False
    batch = shapes[0].shape[0] if op.name == "linalg.batch_matmul" else 1
    # Each of m, n and k is in two of the three shapes, the batch in all
    elements = math.prod(size for shaped in shapes for size in shaped.shape)
    return elements <= SMALL_PRODUCT**2 * batch


def _select_product(op: ir.Operation, plain: str, accumulating: str, shapes: tuple[str, str, str]) -> Call | None:
    """mm, bmm or mv; with an initial value addmm, baddbmm or addmv."""
    left, right = _operand(op, 0, shapes[0]), _operand(op, 1, shapes[1])
    if left is None or right is None or _operand(op, 2, shapes[2]) != Operand(op.operands[2]):
        return None
    if _is_zero(op.operands[2]):
        return Call(plain, (left, right), (0, 1))
    one = ir.IntegerAttr.get(ir.IntegerType.get_signless(64), 1)
    return Call(accumulating, (Operand(op.operands[2]), left, right), (0, 1, 2, one, one))


def _select_mm(op: ir.Operation) -> Call | None:
    return _select_product(op, "aten.mm.default", "aten.addmm.default", ("mk", "kn", "mn"))


def _select_bmm(op: ir.Operation) -> Call | None:
    return _select_product(op, "aten.bmm.default", "aten.baddbmm.default", ("bmk", "bkn", "bmn"))


def _select_mv(op: ir.Operation) -> Call:
    return _vector_product(op, Operand(op.operands[0]), op.operands[1])


def _select_vm(op: ir.Operation) -> Call:
    """A vector times a matrix is the transposed matrix times the vector."""
    return _vector_product(op, Operand(op.operands[1], transposed=True), op.operands[0])


def _vector_product(op: ir.Operation, matrix: Operand, vector: ir.Value) -> Call:
    if _is_zero(op.operands[2]):
        return Call("aten.mv.default", (matrix, Operand(vector)), (0, 1))
    one = ir.IntegerAttr.get(ir.IntegerType.get_signless(64), 1)
    return Call("aten.addmv.default", (Operand(op.operands[2]), matrix, Operand(vector)), (0, 1, 2, one, one))


def _select_dot(op: ir.Operation) -> Call | None:
    if not _is_zero(op.operands[2]):
        return None
    return Call("aten.dot.default", (Operand(op.operands[0]), Operand(op.operands[1])), (0, 1))


def _select_convolution(op: ir.Operation) -> Call | None:
    """Into zero, or into a bias that was broadcast along all dimensions but the channels."""
    image, kernel, init = op.operands
    bias = () if _is_zero(init) else _broadcast_bias(init)
    if bias is None:
        return None
    i64 = ir.IntegerType.get_signless(64)
    number = {value: ir.IntegerAttr.get(i64, value) for value in (0, 1)}
    arguments = (
        0,
        1,
        2 if bias else ir.UnitAttr.get(),
        _integers(op, "strides"),
        ir.ArrayAttr.get([number[0], number[0]]),
        _integers(op, "dilations"),
        ir.BoolAttr.get(False),
        ir.ArrayAttr.get([number[0], number[0]]),
        number[1],
    )
    tensors = (Operand(image), Operand(kernel), *map(Operand, bias))
    return Call("aten.convolution.default", tensors, arguments)


PRODUCTS = ("linalg.matmul", "linalg.batch_matmul", "linalg.matvec", "linalg.vecmat", "linalg.dot")
SELECTIONS: dict[str, Callable[[ir.Operation], Call | None]] = {
    "linalg.matmul": _select_mm,
    "linalg.batch_matmul": _select_bmm,
    "linalg.matvec": _select_mv,
    "linalg.vecmat": _select_vm,
    "linalg.dot": _select_dot,
    "linalg.conv_2d_nchw_fchw": _select_convolution,
}


def _operand(op: ir.Operation, number: int, dimensions: str) -> Operand | None:
    """How a product reads an operand; None where its map is no plain or transposed one (it broadcasts).

    `dimensions` names the dimensions of the operand, in order: m, n and k, and b for the batch.
    """
    loops = "bmnk" if "b" in dimensions else "mnk"
    map_ = ir.AffineMapAttr(ir.ArrayAttr(op.attributes["indexing_maps"])[number]).value
    plain = [ir.AffineDimExpr.get(loops.index(name)) for name in dimensions]
    if list(map_.results) == plain:
        return Operand(op.operands[number])
    if list(map_.results) == [*plain[:-2], plain[-1], plain[-2]]:
        return Operand(op.operands[number], transposed=True)
    return None


def _is_zero(init: ir.Value) -> bool:
    scalar = _defining(init, "linalg.fill")
    constant = _defining(scalar.operands[0] if scalar else init, "arith.constant")
    if constant is None:
        return False
    value = constant.attributes["value"]
    if generics.is_splat(value):
        value = ir.DenseElementsAttr(value).get_splat_value()
    return isinstance(value, ir.FloatAttr) and value.value == 0.0


def _broadcast_bias(init: ir.Value) -> tuple[ir.Value] | None:
    broadcast = _defining(init, "linalg.broadcast")
    if broadcast is None or fusion.integers(broadcast.attributes["dimensions"]) != [0, 2, 3]:
        return None
    return (broadcast.operands[0],)


def _defining(value: ir.Value, name: str) -> ir.Operation | None:
    owner = value.owner
    return owner.operation if not isinstance(owner, ir.Block) and owner.operation.name == name else None


def _integers(op: ir.Operation, name: str) -> ir.ArrayAttr:
    i64 = ir.IntegerType.get_signless(64)
    values = [int(value) for value in ir.DenseIntElementsAttr(op.attributes[name])]
    return ir.ArrayAttr.get([ir.IntegerAttr.get(i64, value) for value in values])


def _replace(op: ir.Operation, call: Call) -> None:
    point = ir.InsertionPoint(op)
    operands = [_materialize(operand, op, point) for operand in call.tensors]
    arguments = [fusion.operand(one) if isinstance(one, int) else one for one in call.arguments]
    made = ir.Operation.create(
        "fusion.extern",
        results=[op.results[0].type],
        operands=operands,
        attributes={"op": ir.StringAttr.get(call.overload), "args": ir.ArrayAttr.get(arguments)},
        loc=op.location,
        ip=point,
    )
    op.results[0].replace_all_uses_with(made.results[0])
    op.erase()


def _materialize(operand: Operand, op: ir.Operation, point: ir.InsertionPoint) -> ir.Value:
    if not operand.transposed:
        return operand.value
    shaped = ir.RankedTensorType(operand.value.type)
    order = [*range(shaped.rank - 2), shaped.rank - 1, shaped.rank - 2]
    return _transpose(operand.value, order, op, point)


def _transpose(value: ir.Value, order: list[int], op: ir.Operation, point: ir.InsertionPoint) -> ir.Value:
    output = generics.empty_like(value, ir.ShapedType(value.type).element_type, op.location, point, order)
    with point, op.location:
        return linalg.transpose(value, outs=[output], permutation=order).result[0]
