"""What we compile ourselves; every other operation is a library call.

The decision falls here, on ATen overloads, before torch-mlir lowers anything. An overload is on the list for
the dtypes of its tensors (operands and results) for which torch-mlir's lowering was compared with eager
PyTorch, NaN, infinities, negative zero and the integers' corner cases included: `test/python/
test_frontend_ops.py` goes through the list. What differs for some dtype is not on the list for it, and
simply stays with the library. So do operands of different dtypes (decompositions.py promotes them beforehand),
scalars that the dtype doesn't hold, tensors without elements, and reductions of 0-d tensors.

    library_reason(node) -> None, or the sentence that `explain` prints

Matrix products are the library's unless the option `matmul` says otherwise.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Set

import torch
from torch import fx
from torch._ops import OpOverload

from ..passes.fusion_select_library import SMALL_PRODUCT
from ..runtime.dtypes import DTYPES, dtype_name

aten = torch.ops.aten

FLOATS = frozenset({torch.float16, torch.bfloat16, torch.float32, torch.float64})
SIGNED = frozenset({torch.int8, torch.int16, torch.int32, torch.int64})
WIDE = frozenset({torch.int32, torch.int64})
BOOL = frozenset({torch.bool})
NUMBERS = FLOATS | SIGNED  # not uint8: torch-mlir crashes on its arithmetic
EVERY = NUMBERS | BOOL

_LIST = {
    # Arithmetic
    NUMBERS: """
        add.Tensor add.Scalar sub.Tensor sub.Scalar mul.Tensor mul.Scalar neg.default abs.default
        maximum.default minimum.default clamp.default clamp.Tensor sum.dim_IntList
        amax.default amin.default rsub.Scalar rsub.Tensor relu.default sign.default
    """,
    FLOATS: """
        div.Tensor div.Scalar reciprocal.default sqrt.default rsqrt.default exp.default exp2.default
        log.default log2.default log1p.default expm1.default sin.default cos.default tanh.default erf.default
        floor.default ceil.default trunc.default round.default sigmoid.default atan.default atan2.default
        pow.Tensor_Scalar pow.Tensor_Tensor remainder.Scalar remainder.Tensor
        sinh.default cosh.default tan.default asin.default acos.default log10.default frac.default erfc.default
    """,
    # (Not of floats: torch-mlir's argmax and argmin don't find a NaN. Not fmod: it rounds the quotient)
    SIGNED: "argmax.default argmin.default",
    # (torch-mlir crashes on a range of int8)
    FLOATS | WIDE: "arange.start_step",
    # (not by a tensor: a processor stops at a division by 0, where PyTorch raises)
    WIDE: "remainder.Scalar",
    # Comparisons and logic
    EVERY: """
        eq.Tensor ne.Tensor lt.Tensor le.Tensor gt.Tensor ge.Tensor where.self
        logical_not.default logical_and.default logical_or.default logical_xor.default
        _to_copy.default clone.default detach.default alias.default lift_fresh_copy.default
        full.default full_like.default zeros.default zeros_like.default ones.default ones_like.default
        scalar_tensor.default
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

# Arguments that say where or whether, by their number, and the dtypes that they may have
_SELECTORS: dict[OpOverload, tuple[int, frozenset[torch.dtype]]] = {
    aten.embedding.default: (1, WIDE),
    aten.index_select.default: (2, WIDE),
    aten.gather.default: (2, frozenset({torch.int64})),
    aten.index.Tensor: (1, frozenset({torch.int64})),
    aten.where.self: (0, BOOL),
    aten.masked_fill.Scalar: (1, BOOL),
    aten.masked_fill.Tensor: (1, BOOL),
}

# Their results have another dtype than their operands
_CONVERSIONS = frozenset(
    overload
    for overload in COMPILED
    if overload._opname in ("_to_copy", "argmax", "argmin")
    or overload._opname.endswith("_like")
    or overload._opname.startswith(("new_", "logical_", "is", "any", "all"))
    or overload._opname in ("eq", "ne", "lt", "le", "gt", "ge")
)
_REDUCTIONS = ("sum", "amax", "amin", "any", "all", "argmax", "argmin")


def _strange_device(node: fx.Node, device: torch.device) -> str | None:
    operands = (tensor for operand in node.all_input_nodes for tensor in tensor_values(operand.meta.get("val")))
    for tensor in (*operands, *tensor_values(node.meta.get("val"))):
        if tensor.device != device:
            return f"it has a tensor on {tensor.device}, and the program is for {device}"
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


def _why_no_product(node: fx.Node, matmul: str) -> str:
    if matmul == "off":
        return "a matrix product; the option matmul compiles it (on: always, auto: if it is small)"
    if node.kwargs or not set(_dtypes(node)) <= FLOATS:
        return f"a matrix product is compiled without scale factors, of {_dtype_names(FLOATS)}"
    return "a large matrix product; the option matmul=on compiles it"


def _dtype_names(dtypes: frozenset[torch.dtype]) -> str:
    return ", ".join(sorted(map(dtype_name, dtypes)))


def library_reason(
    node: fx.Node, device: torch.device, matmul: str = "off", refused: Set[str] = frozenset()
) -> str | None:
    """Why the call is a library's, or None if we compile it for `device`.

    `matmul` is the option's value; `refused` has operations that turned out not to lower.
    """
    target = node.target
    if not isinstance(target, OpOverload):
        return "it is no operator overload"
    if str(target) in refused:
        return "torch-mlir does not lower it for these operands"
    elsewhere = _strange_device(node, device)
    if elsewhere is not None:
        return elsewhere
    if _is_product_to_compile(node, matmul):
        return None
    if target in PRODUCTS:
        return _why_no_product(node, matmul)
    if target not in COMPILED:
        return "mlir-fusion has no kernel for it"
    return _shape_reason(node, target) or _dtype_reason(node, target) or _scalar_reason(node, target)


def _shape_reason(node: fx.Node, target: OpOverload) -> str | None:
    operands = _operands(node.args)
    if any(tensor.numel() == 0 for tensor in (*operands, *tensor_values(node.meta.get("val")))):
        return "it has a tensor without elements"
    if target._opname in _REDUCTIONS and operands[0].dim() == 0:
        return "it reduces a 0-d tensor"
    if target in (aten.any.dims, aten.all.dims) and [] in node.args:
        return "it reduces over no dimensions"
    return None


def _dtype_reason(node: fx.Node, target: OpOverload) -> str | None:
    place, selecting = _SELECTORS.get(target, (None, BOOL))
    data = [argument for number, argument in enumerate(node.args) if number != place]
    dtypes = {tensor.dtype for tensor in _operands(data)}
    results = {tensor.dtype for tensor in tensor_values(node.meta.get("val"))}
    selectors = _operands([node.args[place]]) if place is not None else []
    for given, allowed in ((dtypes | results, COMPILED[target]), ({tensor.dtype for tensor in selectors}, selecting)):
        for dtype in given - allowed:
            return f"kernels for it don't take {dtype_name(dtype)}, only {_dtype_names(allowed)}"
    if len(dtypes) > 1 or (dtypes and dtypes != results and target not in _CONVERSIONS):
        return "it has tensors of different dtypes"
    return None


def _scalar_reason(node: fx.Node, target: OpOverload) -> str | None:
    """PyTorch refuses, or converts, a number that is none of the tensors' dtype."""
    dtype = next((tensor.dtype for tensor in (*_operands(node.args), *tensor_values(node.meta.get("val")))), None)
    if dtype is None or target._opname == "pow":
        return None
    for value in _numbers(node, target):
        if not holds(dtype, value):
            return f"it has a number, {value}, that is no {dtype_name(dtype)}"
    return None


def holds(dtype: torch.dtype, value: object) -> bool:
    """Whether the number is one of the dtype: not rounded to an integer, and not too large."""
    if isinstance(value, bool):
        return True
    if dtype.is_floating_point and isinstance(value, int | float):
        return not math.isfinite(value) or abs(value) <= torch.finfo(dtype).max
    if dtype == torch.bool or not isinstance(value, int):
        return False
    return torch.iinfo(dtype).min <= value <= torch.iinfo(dtype).max


def _numbers(node: fx.Node, target: OpOverload) -> Iterator[object]:
    """The numbers among the arguments that work on elements, unlike dimensions and sizes."""
    for number, argument in enumerate(target._schema.arguments):
        value = node.args[number] if number < len(node.args) else node.kwargs.get(argument.name)
        is_operand = "number" in str(argument.type) or "Tensor" in str(argument.type)
        if is_operand and isinstance(value, int | float):
            yield value


def _operands(arguments: object) -> list[torch.Tensor]:
    """The tensors among a node's arguments."""
    nodes: list[fx.Node] = []
    fx.map_arg(arguments, nodes.append)  # pyright: ignore[reportArgumentType]
    return [tensor for node in nodes for tensor in tensor_values(node.meta.get("val"))]


def unusual_tensor(graph: fx.Graph) -> torch.Tensor | None:
    """The first tensor that MLIR's types can't describe: one of an unusual dtype, or not strided."""
    tensors = (tensor for node in graph.nodes for tensor in tensor_values(node.meta.get("val")))
    return next((one for one in tensors if one.layout != torch.strided or one.dtype not in DTYPES.values()), None)


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
