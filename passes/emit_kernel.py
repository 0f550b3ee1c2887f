"""What fusion-to-gpu and fusion-to-cpu share: finding equal kernels, and emitting a body.

A kernel's text without its name says everything that its code depends on (types, layouts, schedule, body), so
equal texts share one function.
"""

from __future__ import annotations

import itertools
from collections.abc import Sequence
from dataclasses import dataclass, field

from ..dialects.mlir import ir, memref
from .bind import Binding
from .evaluate import Buffer, Evaluator
from .fusion_schedule import check_schedule
from .graph import kernel_ops
from .layouts import Layout, layout_of
from .schedules import Family, Parameters, Problem
from .schedules.machine import Machine
from .sizes import Extent, Size, emit, meanings, symbol_values, symbols_in_force


@dataclass
class Kernels:
    """The kernels of a module, and one name for all that are equal, if they are to be shared."""

    shared: bool = True
    all: list[ir.Operation] = field(default_factory=list)
    distinct: list[ir.Operation] = field(default_factory=list)
    _names: dict[str, str] = field(default_factory=dict)
    _texts: dict[ir.Operation, str] = field(default_factory=dict)
    taken: set[str] = field(default_factory=set)
    """Names of functions, and of kernels so far."""

    def add(self, kernel: ir.Operation) -> None:
        """Notes a kernel; the first of equal ones gives them its name."""
        text = kernel_text(kernel) if self.shared else str(len(self.all))
        self.all.append(kernel)
        self._texts[kernel] = text
        if text not in self._names:
            self._names[text] = self._unique(ir.StringAttr(kernel.attributes["name"]).value)
            self.distinct.append(kernel)

    def name(self, kernel: ir.Operation) -> str:
        """The function that runs a kernel."""
        return self._names[self._texts[kernel]]

    def _unique(self, name: str) -> str:
        """The name, which kernels written by hand may share, or with a number behind it."""
        numbered = (f"{name}_{number}" for number in itertools.count(1))
        found = name if name not in self.taken else next(other for other in numbered if other not in self.taken)
        self.taken.add(found)
        return found

    @property
    def most_elements(self) -> int:
        """The size, in elements, of the largest memory that a kernel walks through, where sizes are numbers."""
        spans = (span(layout_of(memory), memory) for kernel in self.all for memory in kernel.operands)
        return max((each for each in spans if isinstance(each, int)), default=0)


def kernels_of(module: ir.Module, shared: bool) -> Kernels:
    """The kernels of the module's functions, in order; PassFailure for one that its schedule can't run."""
    symbols = (op.operation.attributes for op in module.body.operations if "sym_name" in op.operation.attributes)
    kernels = Kernels(shared, taken={ir.StringAttr(attributes["sym_name"]).value for attributes in symbols})
    for kernel in kernel_ops(module):
        kernels.add(kernel)
    for kernel in kernels.distinct:
        check_schedule(kernel)
    return kernels


def emit_body(
    problem: Problem,
    family: Family,
    parameters: Parameters,
    machine: Machine,
    arguments: Sequence[ir.Value],
) -> None:
    """Emits a kernel's code; `arguments` are the function's, as `parameter_types` has them."""
    tensors = [*problem.inputs, *problem.body.outputs]
    layouts = [*problem.inputs.values(), *problem.outputs]
    with symbol_values(dict(zip(symbols_in_force(), arguments[len(tensors) :], strict=True))):
        buffers = [_buffer(*one) for one in zip(arguments, layouts, tensors, strict=False)]
        inputs = dict(zip(problem.inputs, buffers, strict=False))
        evaluator = Evaluator(problem.body, inputs, Binding(), machine.check)
        family.emit(problem, parameters, machine, evaluator, buffers[len(inputs) :])


def parameter_types(kernel: ir.Operation) -> list[ir.Type]:
    """What the kernel's function takes: memrefs, and then the values of the symbols, if there are any.

    Memory whose size is not known is a bare pointer like any other, so its type says one element.
    """
    types = [_parameter_type(operand) for operand in kernel.operands]
    return types + [ir.IndexType.get()] * len(symbols_in_force())


def _parameter_type(memory: ir.Value) -> ir.Type:
    if isinstance(span(layout_of(memory), memory), int):
        return memory.type
    return ir.MemRefType.get([1], ir.MemRefType(memory.type).element_type)


def span(layout: Layout, value: ir.Value) -> Extent:
    """Elements from the base of what lies like this to its last element."""
    extents = meanings(ir.ShapedType(value.type).shape)
    if 0 in extents:
        return 0
    steps = ((extent - 1) * stride for extent, stride in zip(extents, layout.strides, strict=True))
    return layout.offset + sum(steps) + 1


def _buffer(memory: ir.Value, layout: Layout, tensor: ir.Value) -> Buffer:
    """The memref as one dimension, and where the tensor's elements are in it."""
    size, element = span(layout, tensor), ir.RankedTensorType(tensor.type).element_type
    static = size if isinstance(size, int) else ir.ShapedType.get_dynamic_size()
    base = memref.ReinterpretCastOp(
        ir.MemRefType.get([static], ir.MemRefType(memory.type).element_type),
        memory,
        [],
        [emit(size)] if isinstance(size, Size) else [],
        [],
        static_offsets=[0],
        static_sizes=[static],
        static_strides=[1],
    )
    return Buffer(base.result, layout.strides, layout.offset, element)


def kernel_text(kernel: ir.Operation) -> str:
    """The kernel as text, without its name, its batch, and the names of the values around it."""
    alone = kernel.clone(ip=False)
    alone.attributes["name"] = ir.StringAttr.get("")
    if "batch" in alone.attributes:
        del alone.attributes["batch"]
    return alone.get_asm(use_local_scope=True, print_generic_op_form=True, assume_verified=True)
