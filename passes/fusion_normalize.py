"""fusion-normalize: brings a function into the one form that all later passes are written for.

What torch-mlir emits, or a person writes, says the same thing in many ways: `linalg.transpose`, a generic
that transposes, a view; sums in bf16; operands that nobody reads. After this pass

  - each *node* of a function is a `linalg.generic` (no other linalg op but `linalg.fill`), a `tensor.concat`,
    `tensor.pad` or `tensor.insert_slice`, or an op of the fusion dialect; all else is *free*: `tensor.empty`,
    `linalg.fill`, reshapes, slices, casts, constants and scalar arithmetic, which later passes clone into
    their users;
  - what `fusion.extern`, `fusion.view` and `func.return` use is an argument, a node's result or a table of
    constants, never a free op's result. Chains of reshapes, slices, transposes and broadcasts in front of
    them are one `fusion.view` of the tensor that owns the memory, where strides can say it, and a copy where
    they can't;
  - a generic reads each input, reads it once, and has no dead result next to a live one
    (passes/tidy_generics.py);
  - 16-bit floats are computed in f32 within a body and rounded at its end (passes/narrow_floats.py, which also
    says what `fma` and `fast-math` allow).

Of equal operations one is left, where that holds no more than the program did (share_equal.py). Running it again
changes nothing. Before:

    %t = linalg.transpose ins(%w : tensor<64x32xf32>) outs(%e : tensor<32x64xf32>) permutation = [1, 0]
    %m = "fusion.extern"(%x, %t) {op = "aten.mm.default", ...} : (...) -> tensor<8x64xf32>
    %r = linalg.exp ins(%m : tensor<8x64xf32>) outs(%f : tensor<8x64xf32>) -> tensor<8x64xf32>

After:

    %t = "fusion.view"(%w) {offset = 0, sizes = [32, 64], strides = [1, 32]} : (...) -> tensor<32x64xf32>
    %m = "fusion.extern"(%x, %t) {op = "aten.mm.default", ...} : (...) -> tensor<8x64xf32>
    %r = linalg.generic {...} ins(%m) outs(%f) { math.exp } -> tensor<8x64xf32>

Copies put in front of a view are identity generics, which MLIR's canonicalize erases: don't run it between
this pass and the fusion pass without running this one again.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import ClassVar

from ..dialects import fusion
from ..dialects.mlir import ir, linalg, passmanager
from . import generics, graph, views
from .decompose_softmax import decompose_softmax
from .drop_empty import drop_empty
from .errors import PassFailure
from .invert_divisors import invert_divisors
from .memory_operands import MemoryOperands
from .merge_roundings import merge_roundings
from .narrow_extremes import narrow_extremes
from .narrow_floats import FAST_MATH, Precision, widen
from .overwritten import pin, separate_overwritten, unpin
from .pass_base import Pass, check_choice
from .share_equal import number, share_equal, unnumber
from .simplify_math import simplify
from .softmax_exponentials import mark_exponentials
from .tidy_generics import tidy

FREE = frozenset(
    {
        "linalg.fill",
        "tensor.cast",
        "tensor.collapse_shape",
        "tensor.dim",
        "tensor.empty",
        "tensor.expand_shape",
        "tensor.extract_slice",
        "tensor.from_elements",
        "tensor.splat",
    }
)
INSTEAD = (
    "what can: linalg on tensors, changes of their shape, arith and math; "
    "what a library executes is written as fusion.extern"
)
SCALAR_DIALECTS = frozenset({"arith", "math"})
OTHERS = frozenset({"func.return", "cf.assert"})

TO_GENERICS = "builtin.module(convert-elementwise-to-linalg,canonicalize,func.func(linalg-generalize-named-ops))"
SIMPLIFY = "builtin.module(canonicalize)"
SHARE = "builtin.module(cse)"


@dataclass(frozen=True)
class FusionNormalize(Pass):
    """Generalises linalg, computes 16-bit floats in f32, and turns view-like ops into fusion.view."""

    name: ClassVar[str] = "fusion-normalize"
    fma: bool = True
    fast_math: str = "auto"

    def __post_init__(self) -> None:
        check_choice("value of option 'fast-math'", self.fast_math, FAST_MATH)

    def run(self, module: ir.Module) -> None:
        for function in graph.functions(module):
            for block in function.regions[0].blocks:
                graph.reject_memory(block)
            decompose_softmax(function)
            pin(function)
        _run(TO_GENERICS, module)
        for function in graph.functions(module):
            _erase_unused_calls(function)
        for op in list(_operations(module)):
            _restore_fill(op)
        _reject_unknown(module)
        for function in graph.functions(module):
            drop_empty(function)
        _clean(module)
        _rewrite_generics(module, Precision(self.fma, self.fast_math))
        _clean(module)
        for op in graph.generic_ops(module):
            narrow_extremes(op)
        for op in graph.generic_ops(module):
            mark_exponentials(op, self.fast_math != "off")
        for op in graph.generic_ops(module):
            invert_divisors(op)
        for function in graph.functions(module):
            unpin(function)
            separate_overwritten(function)
            MemoryOperands(function).rewrite()
            _erase_dead(function)


def _run(pipeline: str, module: ir.Module) -> None:
    passmanager.PassManager.parse(pipeline).run(module.operation)


def _clean(module: ir.Module) -> None:
    """Simplifies, and makes one of equal operations: of what takes memory, only where there is room for it."""
    _run(SIMPLIFY, module)
    number(graph.generic_ops(module))
    _run(SHARE, module)
    unnumber(graph.generic_ops(module))
    for function in graph.functions(module):
        share_equal(function)


def _operations(module: ir.Module) -> Iterator[ir.Operation]:
    for function in graph.functions(module):
        for block in function.regions[0].blocks:
            yield from (view.operation for view in block.operations)


def _restore_fill(op: ir.Operation) -> None:
    """A fill, which generalisation does not spare, is a fill again."""
    if not generics.is_generic(op) or len(op.results) != 1:
        return
    parts, block = generics.parts(op), generics.body(op)
    if len(parts.inputs) != 1 or isinstance(parts.inputs[0].type, ir.RankedTensorType):
        return
    if len(block.operations) != 1 or generics.yield_of(op).operands[0] != block.arguments[0]:
        return
    with ir.InsertionPoint(op), op.location:
        op.results[0].replace_all_uses_with(linalg.fill(parts.inputs[0], outs=[parts.outputs[0]]))
    op.erase()


def _reject_unknown(module: ir.Module) -> None:
    for op in _operations(module):
        dialect = op.name.partition(".")[0]
        if not (op.name in FREE | views.NODES | OTHERS or dialect in SCALAR_DIALECTS or dialect == "fusion"):
            raise PassFailure(op.location, f"'{op.name}' can't be compiled; {INSTEAD}")


def _rewrite_generics(module: ir.Module, precision: Precision) -> None:
    """Users before producers, so that a use that goes away makes its producer's result dead in time."""
    for function in graph.functions(module):
        merge_roundings(function)
    for op in reversed(list(_operations(module))):
        if generics.is_generic(op):
            tidied = tidy(op)
            simplify(tidied)
            widen(tidied, precision)


def _erase_unused_calls(function: ir.Operation) -> None:
    """Removes calls without effects that nothing uses (MLIR takes them for impure), with what only they use."""
    for block in function.regions[0].blocks:
        graph.erase_unused(block, _is_pure)


def _is_pure(op: ir.Operation) -> bool:
    if fusion.is_op(op, "extern"):
        return not fusion.extern_effects(op) and not fusion.tied_operands(op)
    return op.name.startswith(("linalg.", "tensor.", "arith."))


def _erase_dead(function: ir.Operation) -> None:
    """Removes free ops, views and copies that nothing uses now."""
    for block in function.regions[0].blocks:
        graph.erase_unused(block, _is_removable)


def _is_removable(op: ir.Operation) -> bool:
    is_scalar = op.name.partition(".")[0] in SCALAR_DIALECTS
    return op.name in FREE or is_scalar or fusion.is_op(op, "view") or views.is_copy(op)
