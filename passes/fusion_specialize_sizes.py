"""fusion-specialize-sizes: gives dynamic sizes numbers, so that a report can say what a program costs for them.

The sizes of arguments are expressions of symbols (`fusion.shape`); with a number for each symbol, the sizes of all
tensors follow, one operation after the other. Nothing else changes: what a fusion pass decided for all sizes stays.

The sizes of a library call's results follow for matmuls and tied operands, or are those of the function's result that
they are; for others, `result_shapes` on the call says them, one entry a result.

Before, with sizes={s0=64}:                               After:

    func.func @main(%x: tensor<?x8xf32>                   func.func @main(%x: tensor<64x8xf32>
                        {fusion.shape = ["s0", 8]})                           {fusion.shape = ["s0", 8]})
      %d = tensor.dim %x, %c0
      %e = tensor.empty(%d) : tensor<?x8xf32>               %e = tensor.empty() : tensor<64x8xf32>
      %y = linalg.exp ins(%x) outs(%e)                      %y = linalg.exp ins(%x) outs(%e)
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import ClassVar

from ..dialects.mlir import ir
from . import graph, source_order
from .errors import PassFailure
from .pass_base import Pass, unknown
from .plan import source_peak
from .size_expressions import evaluate, symbols_of
from .size_inference import Sizes

SHAPE = "fusion.shape"
Extent = int | str


@dataclass(frozen=True)
class FusionSpecializeSizes(Pass):
    """See the module's docstring."""

    name: ClassVar[str] = "fusion-specialize-sizes"
    sizes: tuple[str, ...] = ()

    def __post_init__(self) -> None:
        parse_sizes(self.sizes)

    def run(self, module: ir.Module) -> None:
        numbers = parse_sizes(self.sizes)
        functions = list(graph.functions(module))
        known = set().union(*(_symbols(function) for function in functions))
        for name in numbers.keys() - known:
            listed = ", ".join(sorted(known)) or "none"
            raise PassFailure(
                module.operation.location, f"{unknown('size', name, known)}; the program's sizes: {listed}"
            )
        for function in functions:
            _specialize(function, numbers)


def parse_sizes(texts: Sequence[str]) -> dict[str, int]:
    """`s0=128` and so on, as numbers; ValueError for anything else."""
    numbers: dict[str, int] = {}
    for text in texts:
        name, _, number = (part.strip() for part in text.partition("="))
        if not name.isidentifier() or not number.isdecimal():
            raise ValueError(f"a size is written NAME=NUMBER, with a whole number of 0 or more; got {text!r}")
        if name in numbers:
            raise ValueError(f"size {name!r} is given twice")
        numbers[name] = int(number)
    return numbers


def is_dynamic(module: ir.Module) -> bool:
    """Whether a function takes or returns tensors whose sizes are not known."""
    signatures = (ir.TypeAttr(function.attributes["function_type"]).value for function in graph.functions(module))
    types = [type_ for one in map(ir.FunctionType, signatures) for type_ in (*one.inputs, *one.results)]
    return any(isinstance(type_, ir.RankedTensorType) and not type_.has_static_shape for type_ in types)


def _specialize(function: ir.Operation, numbers: dict[str, int]) -> None:
    missing = sorted(_symbols(function) - numbers.keys())
    if missing:
        wanted = ",".join(f"{name}=..." for name in missing)
        raise PassFailure(function.location, f"the program has dynamic sizes; give them: --sizes={wanted}")
    block = function.regions[0].blocks[0]
    for number, (argument, shape) in enumerate(zip(block.arguments, _shapes(function, "arg_attrs"), strict=True)):
        _set_shape(argument, _extents(shape, numbers), function, f"argument {number}")
    terminator = block.operations[len(block.operations) - 1].operation
    returned = zip(terminator.operands, _shapes(function, "res_attrs"), strict=True)
    said = {value: _extents(shape, numbers) for value, shape in returned if shape is not None}
    Sizes(numbers, {value: shape for value, shape in said.items() if shape is not None}).infer(block)
    types = [argument.type for argument in block.arguments], [value.type for value in terminator.operands]
    function.attributes["function_type"] = ir.TypeAttr.get(ir.FunctionType.get(*types))
    source_order.add_peak(function, lambda source: source_peak(graph.build(source)))


def _symbols(function: ir.Operation) -> set[str]:
    """The symbols in the shapes of a function's arguments and results, and of its calls' results."""
    shapes = [*_shapes(function, "arg_attrs"), *_shapes(function, "res_attrs"), *_shapes_of_calls(function)]
    texts = {extent for shape in shapes for extent in shape or () if isinstance(extent, str)}
    try:
        return set().union(*map(symbols_of, texts))
    except ValueError as error:
        raise PassFailure(function.location, str(error)) from None


def _shapes(function: ir.Operation, which: str) -> Iterator[list[Extent] | None]:
    """What `fusion.shape` says of each argument or result."""
    signature = ir.FunctionType(ir.TypeAttr(function.attributes["function_type"]).value)
    count = len(signature.inputs if which == "arg_attrs" else signature.results)
    entries = list(ir.ArrayAttr(function.attributes[which])) if which in function.attributes else [None] * count
    for entry in entries:
        notes = ir.DictAttr(entry) if entry is not None else {}
        yield read_shape(notes[SHAPE]) if SHAPE in notes else None


def _shapes_of_calls(function: ir.Operation) -> Iterator[list[Extent]]:
    for view in function.regions[0].blocks[0].operations:
        if "result_shapes" in view.attributes:
            yield from map(read_shape, ir.ArrayAttr(view.attributes["result_shapes"]))


def read_shape(attribute: ir.Attribute) -> list[Extent]:
    """The entries of a `fusion.shape`."""
    extents = list(ir.ArrayAttr(attribute))
    return [extent.value for extent in extents if isinstance(extent, ir.StringAttr | ir.IntegerAttr)]


def _extents(shape: Sequence[Extent] | None, numbers: dict[str, int]) -> list[int] | None:
    if shape is None:
        return None
    return [extent if isinstance(extent, int) else evaluate(extent, numbers) for extent in shape]


def _set_shape(value: ir.Value, shape: list[int] | None, function: ir.Operation, what: str) -> None:
    type_ = value.type
    if not isinstance(type_, ir.RankedTensorType) or (shape is None and type_.has_static_shape):
        return
    if shape is None:
        raise PassFailure(function.location, f"{what} has a dynamic size: say it with {SHAPE} = [...], got {type_}")
    for dimension, extent in enumerate(shape):
        if not type_.is_dynamic_dim(dimension) and type_.get_dim_size(dimension) != extent:
            raise PassFailure(function.location, f"{what} is {type_}, but {SHAPE} makes dimension {dimension} {extent}")
    value.set_type(ir.RankedTensorType.get(shape, type_.element_type, type_.encoding))
