"""A program for all sizes: its kernels are compiled once, its memory is planned for each set of sizes.

    a module for each of two sets of sizes
      |  fusion, fusion-segment                 each by itself
    a template: text with sizes in it           passes/size_template.py
      |  fusion-schedule, fusion-plan-memory    for the first set
    kernels that take the sizes as arguments    passes/sized_kernels.py
      |  the same from the second set, which must be the same code
    machine code
      |  at a call: the template at its sizes, fusion-plan-memory, launches
    the host function for these sizes

What a kernel computes may depend on its sizes in no other way than through its arguments, so code that is emitted with
other numbers standing in for the sizes has to be equal, or the program is refused (NotGeneralError). Passes that decide
by sizes are left out: fusion-split-reductions and fusion-batch.
"""

from __future__ import annotations

import threading
from collections.abc import Mapping
from dataclasses import dataclass, field, replace

from ..dialects.mlir import ir
from ..passes.fusion_batch import FusionBatch
from ..passes.fusion_split_reductions import FusionSplitReductions
from ..passes.graph import functions
from ..passes.size_template import Examples, NotGeneralError, SizeTemplate, size_template
from ..passes.sized_kernels import SizedKernels, launch_kernels, make_kernels, name_of
from ..passes.sizes import Size, value_of
from ..targets.target import Target
from .build import disk_cache
from .cache import Counts
from .kernel_code import KernelCompiler, NativeCode, PtxCode, SimtCode, kernel_keys
from .levels import nested_modules
from .lower import remaining_stages, run
from .options import Options
from .runner import QUIET

DECIDE_BY_SIZE = (FusionSplitReductions, FusionBatch)


@dataclass(frozen=True)
class SizedProgram:
    """Compiled kernels, and what makes the host function for a set of sizes."""

    template: SizeTemplate
    kernels: SizedKernels
    code: PtxCode | NativeCode | SimtCode
    options: Options
    module: ir.Module
    """What the kernels were compiled from; the checker runs its functions."""
    _lock: threading.Lock = field(default_factory=threading.Lock)

    def host(self, values: Mapping[str, int]) -> ir.Module:
        """The host function for these values of the symbols; OtherLayoutError where its kernels don't fit."""
        with self._lock, self.module.context, ir.Location.unknown():
            module = ir.Module.parse(self.template.at(values))
            _advance(module, self.options, "kernel", skipped="schedule")
            launch_kernels(module, self.kernels, values, Target.parse(self.options.target))
            return module


def build_sized(
    first: ir.Module, second: ir.Module, examples: Examples, options: Options, counts: Counts | None = None
) -> SizedProgram:
    """Compiles a program that was made for two sets of sizes, of which `examples` says what they are.

    Raises NotGeneralError where one program can't serve all sizes, AmbiguousError where other examples may do.
    """
    counts = counts or Counts()
    for module in (first, second):
        _advance(module, options, "segment")
    template = size_template(_text(first), _text(second), examples)
    target = Target.parse(options.target)
    kernels = _emit(first, options, template.stand_ins)
    others = {value_of(size, _values(examples, 1)): size for size in template.stand_ins.values()}
    _emit(second, options, others, kernels)
    if _kernel_texts(first) != _kernel_texts(second):
        raise NotGeneralError("the code of its kernels depends on its sizes")
    keys = kernel_keys(first, target)
    code = KernelCompiler(first, options, counts, disk_cache(options)).compile(keys)
    return SizedProgram(template, kernels, code, options, first)


def _text(module: ir.Module) -> str:
    """The generic form: in the other one, values are named after constants."""
    return module.operation.get_asm(enable_debug_info=True, print_generic_op_form=True, assume_verified=True)


def _values(examples: Examples, which: int) -> dict[str, int]:
    return {name: pair[which] for name, pair in {**examples.symbols, **examples.computed}.items()}


def _emit(
    module: ir.Module, options: Options, stand_ins: Mapping[int, Size], known: SizedKernels | None = None
) -> SizedKernels:
    """Adds the functions of the kernels, which are at stage segment, under schedules that are known or chosen."""
    with module.context, ir.Location.unknown():
        if known is not None:
            for kernel in _kernels(module):
                kernel.attributes["schedule"] = known.kernels[name_of(kernel)].schedule
        _advance(module, options, "kernel", skipped="schedule" if known else "")
        return make_kernels(module, Target.parse(options.target), stand_ins)


def _kernels(module: ir.Module) -> list[ir.Operation]:
    operations = (op.operation for function in functions(module) for op in function.regions[0].blocks[0].operations)
    return [op for op in operations if op.name == "fusion.kernel"]


def _advance(module: ir.Module, options: Options, emit: str, skipped: str = "") -> None:
    """Takes the module to a stage, without what decides by sizes, and without one stage more."""
    for stage in remaining_stages(module, options, emit):
        passes = tuple(step for step in stage.passes if not isinstance(step, DECIDE_BY_SIZE))
        if stage.name != skipped:
            run(module, replace(stage, passes=passes), replace(QUIET, verify_each=options.verify_each))


def _kernel_texts(module: ir.Module) -> list[str]:
    """The kernels' code, without places in the source."""
    return [
        nested.get_asm(use_local_scope=True, print_generic_op_form=True, assume_verified=True)
        for nested in nested_modules(module)
    ]
