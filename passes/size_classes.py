"""Sizes that are compared for all values of the dynamic dimensions.

The bytes of a tensor are a number times a product of symbols, one a dynamic dimension. Tensors with the same product
are of one *class*, within which sizes are numbers and can be compared; nothing is known about sizes of different
classes. Class 0 is that of static sizes.

    tensor<?x8xf32> of shape [s0, 8]     32 times s0       class of (s0)
    tensor<?x?xf32> of shape [s0, s0]     4 times s0 * s0  class of (s0, s0)

Two dimensions have the same symbol if the function's arguments say so (`fusion.shape`), or if a linalg.generic
iterates over both in one loop. Any other dynamic dimension is a symbol of its own.
"""

from __future__ import annotations

from dataclasses import dataclass

from ..dialects.mlir import ir
from .graph import NOMINAL_EXTENT, Graph

Symbols = tuple[str, ...]


@dataclass(frozen=True)
class SizeClasses:
    """By value: its class, and its bytes where all symbols are 1."""

    of: list[int]
    bytes: list[int]
    count: int


def size_classes(graph: Graph) -> SizeClasses:
    """The size classes of a graph's values."""
    shapes = _argument_symbols(graph)
    numbers: dict[Symbols, int] = {(): 0}
    classes, sizes = [], []
    for value, size in enumerate(graph.sizes):
        if value not in shapes:
            shapes[value] = _result_symbols(graph, value, shapes)
        key = tuple(sorted(symbol for symbol in shapes[value] if symbol))
        classes.append(numbers.setdefault(key, len(numbers)))
        sizes.append(size // NOMINAL_EXTENT ** len(key))
    return SizeClasses(classes, sizes, len(numbers))


def _argument_symbols(graph: Graph) -> dict[int, Symbols]:
    """By argument: the symbol of each dimension, empty for a static one."""
    function = graph.block.owner
    declared = ir.ArrayAttr(function.attributes["arg_attrs"]) if "arg_attrs" in function.attributes else ()
    known: dict[int, Symbols] = {}
    for number, attributes in enumerate(declared):
        if "fusion.shape" in ir.DictAttr(attributes):
            shape = ir.ArrayAttr(ir.DictAttr(attributes)["fusion.shape"])
            own = _own_symbols(graph, number)
            said = (ir.StringAttr(extent).value if isinstance(extent, ir.StringAttr) else "" for extent in shape)
            known[number] = tuple(text if symbol else "" for text, symbol in zip(said, own, strict=True))
    return known


def _own_symbols(graph: Graph, value: int) -> Symbols:
    """Symbols that no other value has."""
    type_ = graph.values[value].type
    if not isinstance(type_, ir.RankedTensorType):
        return ()
    return tuple(f"%{value}.{dim}" if type_.is_dynamic_dim(dim) else "" for dim in range(type_.rank))


def _result_symbols(graph: Graph, value: int, shapes: dict[int, Symbols]) -> Symbols:
    own = _own_symbols(graph, value)
    if not any(own) or graph.makers[value] < 0:
        return own
    op = graph.nodes[graph.makers[value]].op
    if op.name != "linalg.generic":
        return own
    maps = [ir.AffineMapAttr(attribute).value for attribute in ir.ArrayAttr(op.attributes["indexing_maps"])]
    loops: dict[ir.AffineExpr, str] = {}
    for operand, indexing in zip(op.operands, maps, strict=True):
        if operand in graph.numbers:
            for expression, symbol in zip(indexing.results, shapes[graph.numbers[operand]], strict=True):
                loops.setdefault(expression, symbol)
    place = list(op.results).index(graph.values[value]) - len(op.results)
    return tuple(
        symbol and loops.get(expression, symbol) for expression, symbol in zip(maps[place].results, own, strict=True)
    )
