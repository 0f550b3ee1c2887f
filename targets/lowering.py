"""From MLIR's llvm dialect to LLVM IR text, and one rewrite that the way there needs.

The pipelines of upstream passes that get a module into the llvm dialect are in driver/stages.py.
"""

from __future__ import annotations

from collections.abc import Callable

from ..dialects.mlir import arith, ir, llvm, math
from .llvm import CodegenError

# What a module may hold when it is translated: these dialects, and the modules themselves
TRANSLATABLE = ("llvm", "nvvm", "gpu.module", "builtin.module")


def translate(module: ir.Operation) -> str:
    """LLVM IR of a `gpu.module` or a `builtin.module` in the llvm and nvvm dialects.

    The bindings' translation ends the process when it meets another op, so that is looked for first.
    """
    leftover = _find(module, lambda op: not _is_translatable(op.name))
    if leftover:
        names = ", ".join(sorted({op.name for op in leftover}))
        raise CodegenError(f"{leftover[0].location}: no translation to LLVM IR for: {names}")
    return llvm.translate_module_to_llvmir(module)


def expand_expm1(module: ir.Operation) -> None:
    """Rewrites `math.expm1`, for `convert-math-to-llvm` makes it `exp(x) - 1`, which is 0 for a small x.

    Near zero, expm1(x) = 2 t / (1 - t) with t = tanh(x / 2), which loses nothing there.
    """
    for op in _find(module, lambda op: op.name == "math.expm1"):
        with ir.InsertionPoint(op), op.location:
            op.results[0].replace_all_uses_with(_expm1(op.operands[0]))
        op.erase()


def _expm1(x: ir.Value) -> ir.Value:
    one, half = _splat(x.type, 1.0), _splat(x.type, 0.5)
    t = math.tanh(arith.mulf(x, half))
    near = arith.divf(arith.addf(t, t), arith.subf(one, t))
    far = arith.subf(math.exp(x), one)
    is_near = arith.cmpf(arith.CmpFPredicate.OLT, math.absf(x), half)
    return arith.select(is_near, near, far)


def _splat(shape: ir.Type, value: float) -> ir.Value:
    if not isinstance(shape, ir.ShapedType):
        return arith.constant(shape, ir.FloatAttr.get(shape, value))
    element = ir.FloatAttr.get(shape.element_type, value)
    return arith.constant(shape, ir.DenseElementsAttr.get_splat(shape, element))


def _find(module: ir.Operation, wanted: Callable[[ir.Operation], bool]) -> list[ir.Operation]:
    found = []

    def visit(op: ir.Operation) -> ir.WalkResult:
        if wanted(op):
            found.append(op)
        return ir.WalkResult.ADVANCE

    module.walk(visit)
    return found


def _is_translatable(name: str) -> bool:
    return name in TRANSLATABLE or name.partition(".")[0] in TRANSLATABLE
