"""What fusion-to-gpu and fusion-to-cpu share: finding equal kernels, and emitting a body.

A kernel's text without its name says everything that its code depends on (types, layouts, schedule, body), so
equal texts share one function.
"""

from __future__ import annotations

import itertools
from collections.abc import Sequence
from dataclasses import dataclass, field

from ..dialects import fusion
from ..dialects.mlir import ir, memref
from .bind import Binding
from .evaluate import Buffer, Evaluator
from .fusion_schedule import check_schedule
from .graph import functions
from .layouts import layout_of
from .schedules import Family, Parameters, Problem
from .schedules.machine import Machine


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
        """The size, in elements, of the largest memory that a kernel walks through."""
        return max((span(operand) for kernel in self.all for operand in kernel.operands), default=0)


def kernels_of(module: ir.Module, shared: bool) -> Kernels:
    """The kernels of the module's functions, in order; PassFailure for one that its schedule can't run."""
    symbols = (op.operation.attributes for op in module.body.operations if "sym_name" in op.operation.attributes)
    kernels = Kernels(shared, taken={ir.StringAttr(attributes["sym_name"]).value for attributes in symbols})
    for function in functions(module):
        for op in function.regions[0].blocks[0].operations:
            if fusion.is_op(op, "kernel"):
                kernels.add(op.operation)
    for kernel in kernels.distinct:
        check_schedule(kernel)
    return kernels


def emit_body(
    problem: Problem,
    family: Family,
    parameters: Parameters,
    machine: Machine,
    memories: Sequence[ir.Value],
) -> None:
    """Emits a kernel's code; `memories` are its ins and outs as the function got them."""
    tensors = [*problem.inputs, *problem.body.outputs]
    buffers = [_buffer(memory, tensor) for memory, tensor in zip(memories, tensors, strict=True)]
    inputs = dict(zip(problem.inputs, buffers, strict=False))
    evaluator = Evaluator(problem.body, inputs, Binding(), machine.check)
    family.emit(problem, parameters, machine, evaluator, buffers[len(inputs) :])


def span(memory: ir.Value) -> int:
    """Elements from the base of a memref to its last element."""
    layout = layout_of(memory)
    extents = ir.ShapedType(memory.type).shape
    if 0 in extents:
        return 0
    steps = ((extent - 1) * stride for extent, stride in zip(extents, layout.strides, strict=True))
    return layout.offset + sum(steps) + 1


def _buffer(memory: ir.Value, tensor: ir.Value) -> Buffer:
    """The memref as one dimension, and where the tensor's elements are in it."""
    layout, element = layout_of(memory), ir.RankedTensorType(tensor.type).element_type
    flat = ir.MemRefType.get([span(memory)], ir.MemRefType(memory.type).element_type)
    base = memref.ReinterpretCastOp(
        flat, memory, [], [], [], static_offsets=[0], static_sizes=[span(memory)], static_strides=[1]
    )
    return Buffer(base.result, layout.strides, layout.offset, element)


def kernel_text(kernel: ir.Operation) -> str:
    """The kernel as text, without its name, its batch, and the names of the values around it."""
    alone = kernel.clone(ip=False)
    alone.attributes["name"] = ir.StringAttr.get("")
    if "batch" in alone.attributes:
        del alone.attributes["batch"]
    return alone.get_asm(use_local_scope=True, print_generic_op_form=True, assume_verified=True)
