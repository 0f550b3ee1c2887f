"""Kernels for all sizes: each takes the values of the symbols as further arguments, and a launch gives them.

`make_kernels` emits the functions, from a program at stage kernel in which numbers stand in for sizes. `launch_kernels`
puts the launches into that program for sizes that are known, at the same stage; how many blocks a launch has is worked
out there, from the same schedule.

    "fusion.kernel"(%x, %y) ({...}) {name = "exp_0", ...} : (memref<67x8xf32>, memref<67x8xf32>), where 67 is s0
 ->
    gpu.func @exp_0(%a: memref<1xf32>, %b: memref<1xf32>, %s0: index) kernel {...}
 and, for s0 = 1000,
    gpu.launch_func @kernels::@exp_0 blocks in (%c8, %c1, %c1) threads in (%c256, %c1, %c1) args(%x, %y, %c1000)

A schedule that would have to know a size is replaced by `generic`, which needs to know none.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass

from ..dialects import fusion
from ..dialects.mlir import func, ir
from ..targets.target import Target
from . import fusion_to_cpu, fusion_to_gpu
from .emit_kernel import kernels_of
from .fusion_schedule import problem_of, schedule_of
from .graph import kernel_ops
from .kernel_body import KernelBody
from .layouts import Layout, layout_of
from .schedules import FAMILIES, Parameters
from .schedules.machine import number
from .size_template import NotGeneralError
from .sizes import Size, UndecidedError, meanings, standing_in, symbols_in_force, value_of

GENERIC = FAMILIES[-1]
ROW_THREADS = 256


@dataclass(frozen=True)
class SizedKernel:
    """A kernel's function, and what its launches have in common."""

    function: str
    schedule: ir.Attribute
    layouts: tuple[Layout, ...]
    """Of what it reads and writes."""
    shared_bytes: int = 0
    is_checked: bool = False
    """Whether it returns an i32 that is not 0 if an index was out of range (CPU only)."""


@dataclass(frozen=True)
class SizedKernels:
    """By the program's names of its kernels; the functions take the symbols in this order."""

    kernels: Mapping[str, SizedKernel]
    symbols: tuple[str, ...]


class OtherLayoutError(Exception):
    """For these sizes a kernel's operands lie in memory as its function does not expect."""


def name_of(kernel: ir.Operation) -> str:
    """What the program calls a kernel."""
    return ir.StringAttr(kernel.attributes["name"]).value


def make_kernels(module: ir.Module, target: Target, stand_ins: Mapping[int, Size]) -> SizedKernels:
    """Adds the functions to the module, which is at stage kernel, in a module of their own."""
    found = kernels_of(module, shared=True)
    functions = {name_of(kernel): found.name(kernel) for kernel in found.all}
    made: dict[str, SizedKernel] = {}
    if functions:
        make = _on_cpu(module, stand_ins) if target.kind == "cpu" else _on_gpu(module, stand_ins)
        made = {name_of(kernel): _make(kernel, make, target) for kernel in found.distinct}
    with standing_in(stand_ins):
        symbols = tuple(symbols_in_force())
    return SizedKernels({name: made[function] for name, function in functions.items()}, symbols)


Make = Callable[[ir.Operation], SizedKernel]


def _make(kernel: ir.Operation, make: Make, target: Target) -> SizedKernel:
    """The kernel's function under the first schedule that serves all sizes."""
    for schedule in _schedules(kernel, target):
        kernel.attributes["schedule"] = schedule
        try:
            return make(kernel)
        except UndecidedError as error:
            undecided = str(error)
    raise NotGeneralError(f"{name_of(kernel)} has to know {undecided}")


def _schedules(kernel: ir.Operation, target: Target) -> Iterator[ir.Attribute]:
    """The kernel's own, then such as know less of its sizes, then the one that knows nothing."""
    family, parameters = schedule_of(kernel)
    yield kernel.attributes["schedule"]
    if family.name in FOR_ALL_SIZES:
        yield fusion.schedule(family.name, {**parameters, **FOR_ALL_SIZES[family.name](target)}, "for all sizes")
    choice = GENERIC.choose(problem_of(kernel), target)
    yield fusion.schedule(GENERIC.name, choice.parameters, choice.why)


def _walked_rows(target: Target) -> Parameters:
    """Rows of any length: a block walks one, an element a thread, and reads it again for each reduction."""
    threads = 1 if target.kind == "cpu" else ROW_THREADS
    once = dict.fromkeys(("vector", "unroll", "rows", "cluster"), 1)
    return {**once, "threads": threads, "row": "memory", "chunks": 0, "aligned": 0, "groups": 0}


FOR_ALL_SIZES: dict[str, Callable[[Target], Parameters]] = {
    "pointwise": lambda _: {"vector": 1},
    "inner_reduction": _walked_rows,
}


def _on_gpu(module: ir.Module, stand_ins: Mapping[int, Size]) -> Make:
    """Emits `gpu.func`s; an index has 64 bits, whatever the sizes."""
    block = fusion_to_gpu.kernel_module(module, index32=False)

    def make(kernel: ir.Operation) -> SizedKernel:
        launch = fusion_to_gpu.launch_alone(kernel)
        with standing_in(stand_ins), _no_leftovers(block):
            _refuse_unknown(kernel)
            shared = fusion_to_gpu.make_function(launch, name_of(kernel), block)
            return SizedKernel(name_of(kernel), kernel.attributes["schedule"], _layouts(kernel), shared)

    return make


def _on_cpu(module: ir.Module, stand_ins: Mapping[int, Size]) -> Make:
    """Emits functions of loops."""
    block = fusion_to_cpu.kernel_module(module)

    def make(kernel: ir.Operation) -> SizedKernel:
        with standing_in(stand_ins), _no_leftovers(block):
            _refuse_unknown(kernel)
            returned = fusion_to_cpu.make_function(kernel, name_of(kernel), block)
            schedule = kernel.attributes["schedule"]
            return SizedKernel(name_of(kernel), schedule, _layouts(kernel), is_checked=bool(returned))

    return make


def _refuse_unknown(kernel: ir.Operation) -> None:
    """UndecidedError where a family is not written for sizes that it doesn't know."""
    family, _ = schedule_of(kernel)
    if family.name in (*FOR_ALL_SIZES, GENERIC.name):
        return
    values = [*kernel.operands, *KernelBody.of_kernel(kernel).outputs]
    shapes = [meanings(ir.ShapedType(value.type).shape) for value in values]
    if any(isinstance(extent, Size) for extents in shapes for extent in extents):
        raise UndecidedError(f"its sizes, for the schedule {family.name}")


@contextmanager
def _no_leftovers(block: ir.Block) -> Iterator[None]:
    """Takes away the function that could not be finished."""
    before = len(block.operations)
    try:
        yield
    except UndecidedError:
        for number in reversed(range(before, len(block.operations))):
            block.operations[number].operation.erase()
        raise


def _layouts(kernel: ir.Operation) -> tuple[Layout, ...]:
    return tuple(layout_of(operand) for operand in kernel.operands)


def launch_kernels(module: ir.Module, kernels: SizedKernels, values: Mapping[str, int], target: Target) -> None:
    """Replaces the kernels of a program at stage kernel, whose sizes are those for `values`, by their launches.

    OtherLayoutError if one works on memory that lies in another way than its function takes.
    """
    for kernel in kernel_ops(module):
        made = kernels.kernels[name_of(kernel)]
        _check_layouts(kernel, made, values)
        kernel.attributes["schedule"] = made.schedule
        with ir.InsertionPoint(kernel), kernel.location:
            symbols = [number(values[name]) for name in kernels.symbols]
            launch = _call if target.kind == "cpu" else _launch
            launch(kernel, made, [*kernel.operands, *symbols])
        kernel.erase()


def _check_layouts(kernel: ir.Operation, made: SizedKernel, values: Mapping[str, int]) -> None:
    for operand, expected in zip(kernel.operands, made.layouts, strict=True):
        found, extents = layout_of(operand), ir.ShapedType(operand.type).shape
        steps = zip(extents, found.strides, expected.strides, strict=True)
        same = all(extent < 2 or stride == value_of(known, values) for extent, stride, known in steps)
        if 0 not in extents and (not same or found.offset != value_of(expected.offset, values)):
            raise OtherLayoutError(f"{name_of(kernel)} works on {operand.type}")


def _launch(kernel: ir.Operation, made: SizedKernel, operands: Sequence[ir.Value]) -> None:
    family, parameters = schedule_of(kernel)
    launch = family.launch(problem_of(kernel), parameters)
    fusion_to_gpu.emit_launch(made.function, launch.blocks, launch.threads, operands, made.shared_bytes)


def _call(kernel: ir.Operation, made: SizedKernel, operands: Sequence[ir.Value]) -> None:
    results = [ir.IntegerType.get_signless(32)] if made.is_checked else []
    func.CallOp(results, made.function, list(operands))
