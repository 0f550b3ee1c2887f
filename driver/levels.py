"""At which stage a module is, and whether it is in the form that a stage promises."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from functools import partial
from operator import ne

from ..dialects import fusion
from ..dialects.mlir import ir
from ..dialects.walk import find
from ..passes.graph import functions
from ..targets.target import Target
from .errors import Diagnostic, UserError, diagnostic_at

LEVELS = ("torch", "import", "linalg", "region", "segment", "schedule", "kernel", "gpu", "nvvm", "llvm")
"""The forms in order; the last two are alternatives."""

NESTED = ("gpu.module", "builtin.module")
KERNELS = "kernels"
"""The nested module's name."""
ONE_A_CHUNK = "with lines of // ----- between the modules of a file, --split-input-file takes them one by one"


def detect_level(module: ir.Module) -> str:
    """The stage whose result `module` is, judged by the least advanced thing in it."""
    with module.context:
        found = {level for op in module.body.operations if (level := _level_of(op.operation))}
        undecided = "kernel" if any(_is_on_memory(function) for function in functions(module)) else "linalg"
    return min(found, key=LEVELS.index, default=undecided)


def first_illegal(module: ir.Module, allowed: Sequence[str], device: Sequence[str], stage: str) -> Diagnostic | None:
    """The first operation that may not be there: in functions `allowed`, in nested modules `device`."""
    for function in functions(module):
        for op in body_of(function):
            if not _matches(op.name, allowed):
                return diagnostic_at(op.location, f"'{op.name}' can't be in a function after stage {stage}")
    for nested in nested_modules(module):
        for op in find(nested, partial(ne, nested)):
            if not _matches(op.name, device):
                return diagnostic_at(op.location, f"'{op.name}' can't be in a kernel after stage {stage}")
    return None


def check_nested(module: ir.Module, target: Target) -> None:
    """UserError at the first nested module that isn't the kernels of a program for this target."""
    found = _first_misplaced(module, target)
    if found is not None:
        raise UserError("the module can't be compiled", [found])


def _first_misplaced(module: ir.Module, target: Target) -> Diagnostic | None:
    for nested in nested_modules(module):
        if nested.name == "builtin.module" and _symbol(nested) != KERNELS:
            return diagnostic_at(nested.location, f"a module can't stand inside a module; {ONE_A_CHUNK}")
        for inner in nested.regions[0].blocks[0].operations:
            if inner.operation.name in NESTED:
                return diagnostic_at(inner.operation.location, "kernels are in one module, which holds no other")
        for_cpu = nested.name == "builtin.module"
        if for_cpu != (target.kind == "cpu"):
            place = "the CPU" if for_cpu else "a GPU"
            return diagnostic_at(nested.location, f"kernels for {place}, which target {target.name} can't take")
    return None


def body_of(function: ir.Operation) -> Iterator[ir.Operation]:
    """The operations of a function, not those inside them."""
    for block in function.regions[0].blocks:
        for op in block.operations:
            yield op.operation


def nested_modules(module: ir.Module) -> Iterator[ir.Operation]:
    """The modules with kernels."""
    for op in module.body.operations:
        if op.operation.name in NESTED:
            yield op.operation


def _symbol(op: ir.Operation) -> str | None:
    return ir.StringAttr(op.attributes["sym_name"]).value if "sym_name" in op.attributes else None


def _matches(name: str, patterns: Sequence[str]) -> bool:
    return any(name.startswith(pattern) if pattern.endswith(".") else name == pattern for pattern in patterns)


def _level_of(op: ir.Operation) -> str | None:
    """None where the operation doesn't tell."""
    if op.name in NESTED:
        return _level_of_nested(op)
    if op.name != "func.func" or not len(op.regions[0].blocks):
        return None
    levels = {level for inner in body_of(op) if (level := _level_of_inner(inner))}
    return min(levels, key=LEVELS.index, default=_level_of_signature(op))


def _level_of_nested(nested: ir.Operation) -> str:
    names = {op.operation.name for op in nested.regions[0].blocks[0].operations}
    if "llvm.func" not in names:
        return "gpu"
    return "nvvm" if nested.name == "gpu.module" else "llvm"


def _level_of_inner(op: ir.Operation) -> str | None:
    if op.name.startswith("torch."):
        return "torch"
    if op.name.startswith("linalg."):
        return "linalg"
    if fusion.is_op(op, "region"):
        return "region"
    if not fusion.is_op(op, "kernel"):
        return None
    if any(isinstance(value.type, ir.MemRefType) for value in op.operands):
        return "kernel"
    return "schedule" if "schedule" in op.attributes else "segment"


def _level_of_signature(function: ir.Operation) -> str | None:
    """A function that only calls libraries tells by its types whether memory is planned."""
    signature = ir.FunctionType(ir.TypeAttr(function.attributes["function_type"]).value)
    types = [*signature.inputs, *signature.results]
    if any(str(type_).startswith("!torch.") for type_ in types):
        return "torch"
    return None if _is_on_memory(function) else "linalg"


def _is_on_memory(function: ir.Operation) -> bool:
    signature = ir.FunctionType(ir.TypeAttr(function.attributes["function_type"]).value)
    return any(isinstance(type_, ir.MemRefType) for type_ in (*signature.inputs, *signature.results))
