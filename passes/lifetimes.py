"""How long each tensor's memory is in use, and which tensors share it.

A step is an operation of the function's body. The tensors of one `Storage` lie in the same memory:

    %a = kernel(%x)                    a storage of kind "kernel", written at this step
    %v = fusion.view(%a)               the same storage: whoever reads %v reads it
    %b = kernel(%v)                    last reader of %a's storage
    %c = fusion.extern(%b) {tied ...}  a call that writes %b: its result lives where %b did
    %d = kernel(%c)                    may overwrite %c's storage, if it is pointwise (see in_place.py)

What is returned, or lies in the same memory as something returned, escapes: it lives to the end.
"""

from __future__ import annotations

import functools
from collections.abc import Callable, Set
from dataclasses import dataclass, field
from typing import Literal

from ..dialects import fusion
from ..dialects.mlir import ir
from .in_place import is_pointwise_kernel, refuse_in_place
from .layouts import prescribed_layout
from .memref_types import byte_size, contiguous_memref, is_tensor

Kind = Literal["argument", "constant", "kernel", "extern"]


@dataclass
class Storage:
    """The memory of one or more tensors, from the step that writes it first to the last that reads it."""

    kind: Kind
    start: int
    end: int
    size: int
    tensors: list[ir.Value] = field(default_factory=list)
    escapes: bool = False
    reusable: bool = True
    mixed: bool = False
    """Whether tensors of different types live here, one after the other."""


class Storages:
    """The storage of each tensor of a function body; built once, read by the memory plan.

    `pinned` are tensors whose layout is prescribed: they get a storage of their own. `is_pointwise` says of a kernel,
    or of a region that is to be one, whether its schedule is the pointwise one.
    """

    def __init__(
        self,
        block: ir.Block,
        in_place: bool,
        pinned: Set[ir.Value] = frozenset(),
        is_pointwise: Callable[[ir.Operation], bool] = is_pointwise_kernel,
    ) -> None:
        self._is_pointwise = functools.cache(is_pointwise)
        self.operations = [op.operation for op in block.operations]
        self.of: dict[ir.Value, Storage] = {}
        self._whole: set[ir.Value] = set()
        """Tensors that fill their storage, row by row."""
        self._pinned = pinned
        for argument in block.arguments:
            if is_tensor(argument):
                self._open("argument", argument, -1)
        for step, op in enumerate(self.operations):
            self._define(step, op)
        for step, op in enumerate(self.operations):
            self._use(step, op)
        if in_place:
            for step, op in enumerate(self.operations):
                if fusion.is_op(op, "kernel", "region"):
                    self._reuse(step, op)

    def distinct(self) -> list[Storage]:
        """Every storage once."""
        return list({id(storage): storage for storage in self.of.values()}.values())

    def _open(self, kind: Kind, value: ir.Value, step: int) -> None:
        self.of[value] = Storage(kind, step, step, byte_size(value.type), [value])
        if value not in self._pinned:
            self._whole.add(value)

    def _share(self, value: ir.Value, storage: Storage) -> None:
        self.of[value] = storage
        storage.tensors.append(value)

    def _define(self, step: int, op: ir.Operation) -> None:
        sources = _aliases(op)
        kind: Kind = "constant" if op.name == "arith.constant" else "kernel"
        if fusion.is_op(op, "extern"):
            kind = "extern"
        for number, result in enumerate(op.results):
            if not is_tensor(result):
                continue
            if number in sources:
                self._share(result, self.of[op.operands[sources[number]]])
            else:
                self._open(kind, result, step)
                self.of[result].reusable = not fusion.is_op(op, "extern") or not fusion.extern_effects(op)

    def _use(self, step: int, op: ir.Operation) -> None:
        for operand in op.operands:
            storage = self.of.get(operand)
            if storage is None:
                continue
            storage.end = max(storage.end, step)
            storage.escapes = storage.escapes or op.name == "func.return"

    def _reuse(self, step: int, kernel: ir.Operation) -> None:
        """Lets each output of a kernel take over the storage of an input that dies here."""
        for number, output in enumerate(kernel.results):
            for candidate in dict.fromkeys(kernel.operands):
                if self._may_reuse(step, kernel, candidate, number):
                    self._merge(candidate, output)
                    break

    def _may_reuse(self, step: int, kernel: ir.Operation, candidate: ir.Value, output: int) -> bool:
        storage, result = self.of.get(candidate), kernel.results[output]
        if storage is None or storage.end != step or storage.kind not in ("kernel", "extern"):
            return False
        if storage.escapes or not storage.reusable or not {candidate, result} <= self._whole:
            return False
        inputs = [number for number, operand in enumerate(kernel.operands) if self.of.get(operand) is storage]
        if any(kernel.operands[number] != candidate for number in inputs) or storage.size == 0:
            return False
        one_type = not storage.mixed and contiguous_memref(candidate.type) == contiguous_memref(result.type)
        pooled = storage.kind == "kernel" and not self.of[result].escapes
        return (one_type or pooled) and refuse_in_place(kernel, inputs, output, self._is_pointwise) is None

    def _merge(self, candidate: ir.Value, result: ir.Value) -> None:
        storage, other = self.of[candidate], self.of[result]
        storage.mixed = storage.mixed or contiguous_memref(candidate.type) != contiguous_memref(result.type)
        storage.end, storage.escapes = other.end, other.escapes
        for value in other.tensors:
            self._share(value, storage)


def prescribed_layouts(function: ir.Operation) -> dict[ir.Value, ir.Attribute]:
    """Results of kernels, or of regions to be, that the function must return with a layout of their own."""
    block = function.regions[0].blocks[0]
    kernels = {
        value
        for value in block.operations[len(block.operations) - 1].operands
        if isinstance(value, ir.OpResult) and fusion.is_op(value.owner, "kernel", "region")
    }
    found = {value: prescribed_layout(value) for value in kernels}
    return {value: layout for value, layout in found.items() if layout is not None}


def _aliases(op: ir.Operation) -> dict[int, int]:
    """Result number to the number of the operand in whose memory it lies."""
    if fusion.is_op(op, "view"):
        return {0: 0}
    if fusion.is_op(op, "extern"):
        return {result: operand for operand, result in fusion.tied_operands(op)}
    return {}
