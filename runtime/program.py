"""Executes the host function of a compiled module.

The host function is MLIR: allocations, views, launches, library calls, in order.

    func.func @main(%x: memref<64x64xf32>, %w: memref<64x64xf32>) -> memref<64x64xf32> {
      %a = memref.alloc() : memref<64x64xf32>
      gpu.launch_func @kernels::@relu blocks in (...) threads in (...) args(%x, %a)
      %b = "fusion.extern"(%a, %w) {op = "aten.mm.default", ...}
      memref.dealloc %a
      return %b
    }

`Program` walks it once and keeps a list of steps, Python functions over a *frame*: a list with a slot for
each value that is a tensor. A call checks its arguments, copies the frame's template, and runs the steps; it
touches no IR. steps.py has the steps.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import torch

from ..dialects.mlir import ir
from .arguments import ScalarArgument, TensorArgument
from .dtypes import dtype_named, dtype_of
from .launch import Launcher
from .steps import DEVICE, QUEUE, Planner, memref_strides

Value = torch.Tensor | int | float


class Program:
    """A host function, ready to be called with tensors.

    `argument_dtypes` and `result_dtypes` say what MLIR's types don't (uint8, for one); where absent, or None
    for one of them, the attribute `fusion.dtype` and then the element type decide.
    """

    def __init__(
        self,
        host: ir.Module,
        launcher: Launcher,
        result_dtypes: Sequence[torch.dtype | None] | None = None,
        argument_dtypes: Sequence[torch.dtype | None] | None = None,
        entry: str = "main",
    ) -> None:
        function = find_function(host, entry)
        self._launcher = launcher
        self._arguments = _read_arguments(function, argument_dtypes)
        planner = Planner(host, launcher, function)
        self._steps = planner.steps
        self._frame = planner.frame_template()
        self._results = planner.results
        self._written = planner.written_arguments
        returned = (source.argument for source in self._results if source.argument is not None)
        self._kept = tuple({*self._written, *returned})
        self._first = planner.first_argument
        self._has_library_calls = planner.has_library_calls
        self._result_dtypes = _read_result_dtypes(function, result_dtypes)

    def __call__(self, *inputs: Value) -> list[Value]:
        """The function's results; new tensors but for what aliases an argument."""
        return self.run(list(inputs))

    def run(self, inputs: list[Value]) -> list[Value]:
        """Like a call, but empties the list: an argument that nobody else holds is freed after its last reader."""
        if len(inputs) != len(self._arguments):
            raise TypeError(f"expected {len(self._arguments)} arguments, got {len(inputs)}")
        if self._has_library_calls and torch.is_grad_enabled():
            with torch.no_grad():
                return self._run(inputs)
        return self._run(inputs)

    def _run(self, inputs: list[Value]) -> list[Value]:
        device = self._device(inputs)
        if device.type == "cuda" and device.index != torch.cuda.current_device():
            with torch.cuda.device(device):
                return self._run_on(device, inputs)
        return self._run_on(device, inputs)

    def _run_on(self, device: torch.device, inputs: list[Value]) -> list[Value]:
        frame = self._frame.copy()
        frame[DEVICE] = device
        slot = self._first
        for argument, value in zip(self._arguments, inputs, strict=True):
            frame[slot] = value if argument.fits(value, device) else argument.admit(value, device)
            slot += 1
        value = None
        given = {number: inputs[number] for number in self._kept}
        inputs.clear()
        admitted = [frame[self._first + number] for number in self._written] if self._written else []
        frame[QUEUE] = self._launcher.queue(device)
        for step in self._steps:
            step(frame)
        for number, tensor in zip(self._written, admitted, strict=True):
            if tensor is not given[number]:
                given[number].copy_(tensor)  # pyright: ignore[reportAttributeAccessIssue]
        return [self._result(frame, number, given) for number in range(len(self._results))]

    def _result(self, frame: list, number: int, given: Mapping[int, Value]) -> Value:
        source, dtype = self._results[number], self._result_dtypes[number]
        value: Value = given[source.argument] if source.argument is not None else frame[source.slot]
        if dtype is None or not isinstance(value, torch.Tensor):
            return value
        if value.dtype is not dtype:
            value = value.view(dtype)
        return value.clone() if source.is_shared else value

    def _device(self, inputs: Sequence[Value]) -> torch.device:
        """Where the first tensor is that kernels read, or else the first of the right kind."""
        kind = self._launcher.device_type
        for argument, value in zip(self._arguments, inputs, strict=True):
            if isinstance(value, torch.Tensor) and not argument.is_anywhere:
                if value.device.type != kind:
                    raise RuntimeError(f"{argument.name}: compiled for {kind}, called with a tensor on {value.device}")
                return value.device
        devices = (value.device for value in inputs if isinstance(value, torch.Tensor))
        found = next((device for device in devices if device.type == kind), None)
        if found is None and kind == "cuda":
            return torch.device("cuda", torch.cuda.current_device())
        return found or torch.device(kind)


def find_function(host: ir.Module, entry: str) -> ir.Operation:
    """The function with this name; ValueError if the module has none."""
    for op in host.body.operations:
        operation = op.operation
        if operation.name == "func.func" and ir.StringAttr(operation.attributes["sym_name"]).value == entry:
            return operation
    raise ValueError(f"the module has no function @{entry}")


def _read_arguments(
    function: ir.Operation, dtypes: Sequence[torch.dtype | None] | None
) -> list[TensorArgument | ScalarArgument]:
    arguments = list(function.regions[0].blocks[0].arguments)
    notes = _notes(function, "arg_attrs", len(arguments))
    given = dtypes or [None] * len(arguments)
    return [
        _read_argument(number, value, note, dtype)
        for number, (value, note, dtype) in enumerate(zip(arguments, notes, given, strict=True))
    ]


def _read_argument(
    number: int, value: ir.Value, note: dict[str, str], dtype: torch.dtype | None
) -> TensorArgument | ScalarArgument:
    memory = value.type
    name = f"argument {number}" + (f" ({note['fusion.name']})" if "fusion.name" in note else "")
    if not isinstance(memory, ir.MemRefType):
        return ScalarArgument(name)
    shape = tuple(extent if extent >= 0 else -1 for extent in memory.shape)
    is_anywhere = all(use.owner.operation.name in ("fusion.extern", "func.return") for use in value.uses)
    return TensorArgument(name, shape, memref_strides(memory), dtype or _noted_dtype(memory, note), is_anywhere)


def _read_result_dtypes(
    function: ir.Operation, dtypes: Sequence[torch.dtype | None] | None
) -> list[torch.dtype | None]:
    types = list(ir.FunctionType(ir.TypeAttr(function.attributes["function_type"]).value).results)
    notes = _notes(function, "res_attrs", len(types))
    given = dtypes or [None] * len(types)
    return [
        (dtype or _noted_dtype(memory, note)) if isinstance(memory, ir.MemRefType) else None
        for memory, note, dtype in zip(types, notes, given, strict=True)
    ]


def _noted_dtype(memory: ir.MemRefType, note: dict[str, str]) -> torch.dtype:
    return dtype_named(note["fusion.dtype"]) if "fusion.dtype" in note else dtype_of(memory.element_type)


def _notes(function: ir.Operation, name: str, count: int) -> list[dict[str, str]]:
    """The string attributes of a function's arguments or results, one dictionary each."""
    if name not in function.attributes:
        return [{} for _ in range(count)]
    return [
        {named.name: named.attr.value for named in ir.DictAttr(entry) if isinstance(named.attr, ir.StringAttr)}
        for entry in ir.ArrayAttr(function.attributes[name])
    ]
