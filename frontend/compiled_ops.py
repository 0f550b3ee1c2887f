"""What we compile ourselves; every other operation is a library call.

The decision falls here, on ATen overloads, before torch-mlir lowers anything. An overload is on the list for
the dtypes of its tensors (operands and results) for which torch-mlir's lowering was compared with eager
PyTorch, NaN, infinities, negative zero and the integers' corner cases included: `test/python/
test_frontend_ops.py` goes through the list. What differs for some dtype is not on the list for it, and
simply stays with the library.

    library_reason(node) -> None, or the sentence that `explain` prints

Matrix products are the library's unless the option `matmul` says otherwise.
"""

from __future__ import annotations

from collections.abc import Iterator, Set

import torch
from torch import fx
from torch._ops import OpOverload

from ..passes.fusion_select_library import SMALL_PRODUCT

FLOATS = frozenset({torch.float16, torch.bfloat16, torch.float32, torch.float64})
SIGNED = frozenset({torch.int8, torch.int16, torch.int32, torch.int64})
BOOL = frozenset({torch.bool})
NUMBERS = FLOATS | SIGNED  # not uint8: torch-mlir crashes on its arithmetic
EVERY = NUMBERS | BOOL

_LIST = {
    # Arithmetic
    NUMBERS: """
        add.Tensor add.Scalar sub.Tensor sub.Scalar mul.Tensor mul.Scalar neg.default abs.default
        maximum.default minimum.default clamp.default clamp.Tensor sum.dim_IntList
        amax.default amin.default square.default rsub.Scalar rsub.Tensor relu.default sign.default
    """,
    FLOATS: """
        div.Tensor div.Scalar reciprocal.default sqrt.default rsqrt.default exp.default exp2.default
        log.default log2.default log1p.default expm1.default sin.default cos.default tanh.default erf.default
        floor.default ceil.default trunc.default round.default sigmoid.default atan.default atan2.default
        pow.Tensor_Scalar pow.Tensor_Tensor remainder.Scalar remainder.Tensor fmod.Tensor fmod.Scalar
        lerp.Scalar lerp.Tensor sinh.default cosh.default tan.default asin.default acos.default log10.default
        frac.default erfc.default
    """,
    # (argmax and argmin of floats are not here: torch-mlir's don't find a NaN)
    SIGNED: """
        argmax.default argmin.default
        remainder.Scalar remainder.Tensor fmod.Tensor fmod.Scalar div.Tensor_mode div.Scalar_mode
    """,
    # Comparisons and logic
    EVERY: """
        eq.Tensor eq.Scalar ne.Tensor ne.Scalar lt.Tensor lt.Scalar le.Tensor le.Scalar
        gt.Tensor gt.Scalar ge.Tensor ge.Scalar where.self where.ScalarOther where.ScalarSelf where.Scalar
        logical_not.default logical_and.default logical_or.default logical_xor.default
        _to_copy.default clone.default detach.default alias.default lift_fresh_copy.default
        full.default full_like.default zeros.default zeros_like.default ones.default ones_like.default
        scalar_tensor.default new_full.default new_zeros.default new_ones.default arange.start_step
        view.default reshape.default _unsafe_view.default permute.default transpose.int t.default
        expand.default unsqueeze.default squeeze.default squeeze.dim squeeze.dims slice.Tensor select.int
        cat.default constant_pad_nd.default embedding.default index_select.default gather.default
        any.default any.dim any.dims all.default all.dim all.dims masked_fill.Scalar masked_fill.Tensor
        isnan.default isinf.default flip.default stack.default unbind.int split.Tensor
        split_with_sizes.default slice_scatter.default select_scatter.default tril.default triu.default
        index.Tensor bitwise_not.default
        bitwise_and.Tensor bitwise_or.Tensor bitwise_xor.Tensor bitwise_and.Scalar bitwise_or.Scalar
        bitwise_xor.Scalar
    """,
}


def _overloads(names: str) -> Iterator[OpOverload]:
    for name in names.split():
        packet, overload = name.split(".")
        if hasattr(torch.ops.aten, packet):
            yield getattr(getattr(torch.ops.aten, packet), overload)


def _table() -> dict[OpOverload, frozenset[torch.dtype]]:
    table: dict[OpOverload, frozenset[torch.dtype]] = {}
    for dtypes, names in _LIST.items():
        for overload in _overloads(names):
            table[overload] = table.get(overload, frozenset()) | dtypes
    return table


COMPILED: dict[OpOverload, frozenset[torch.dtype]] = _table()


def _strange_device(node: fx.Node, device: torch.device) -> str | None:
    operands = (tensor for operand in node.all_input_nodes for tensor in tensor_values(operand.meta.get("val")))
    for tensor in (*operands, *tensor_values(node.meta.get("val"))):
        if tensor.device != device:
            return f"{node.target} has a tensor on {tensor.device}, and the program is for {device}"
    return None


# The products that the option `matmul` is about, with the number of the left matrix among their arguments
PRODUCTS: dict[OpOverload, int] = {
    torch.ops.aten.mm.default: 0,
    torch.ops.aten.bmm.default: 0,
    torch.ops.aten.addmm.default: 1,
}


def _is_product_to_compile(node: fx.Node, matmul: str) -> bool:
    if matmul == "off" or node.target not in PRODUCTS or node.kwargs or not set(_dtypes(node)) <= FLOATS:
        return False
    left = node.args[PRODUCTS[node.target]]  # pyright: ignore[reportArgumentType]
    assert isinstance(left, fx.Node)
    multiplications = node.meta["val"].numel() * left.meta["val"].shape[-1]
    return matmul == "on" or multiplications <= SMALL_PRODUCT


def library_reason(
    node: fx.Node, device: torch.device, matmul: str = "off", refused: Set[str] = frozenset()
) -> str | None:
    """Why the call is a library's, or None if we compile it for `device`.

    `matmul` is the option's value; `refused` has operations that turned out not to lower.
    """
    target = node.target
    if not isinstance(target, OpOverload):
        return f"{target} is no operator overload"
    if str(target) in refused:
        return f"{target} of these operands is not lowered by torch-mlir"
    elsewhere = _strange_device(node, device)
    if elsewhere is not None:
        return elsewhere
    if _is_product_to_compile(node, matmul):
        return None
    if target not in COMPILED:
        return f"{target} is not on the list of compiled operations"
    for dtype in _dtypes(node):
        if dtype not in COMPILED[target] | BOOL:
            return f"{target} of {str(dtype).removeprefix('torch.')} is left to the library"
    return None


def tensor_values(value: object) -> Iterator[torch.Tensor]:
    """The tensors in a node's `meta["val"]`, in order."""
    if isinstance(value, torch.Tensor):
        yield value
    elif isinstance(value, list | tuple):
        for element in value:
            yield from tensor_values(element)


def _dtypes(node: fx.Node) -> Iterator[torch.dtype]:
    for operand in node.all_input_nodes:
        yield from (tensor.dtype for tensor in tensor_values(operand.meta.get("val")))
    yield from (tensor.dtype for tensor in tensor_values(node.meta.get("val")))
