"""A compiled program: the host function as native code, and what it reads.

The host function is MLIR: allocations, views, launches, library calls, in order.

    func.func @main(%x: memref<64x64xf32>, %w: memref<64x64xf32>) -> memref<64x64xf32> {
      %a = memref.alloc() : memref<64x64xf32>
      gpu.launch_func @kernels::@relu blocks in (...) threads in (...) args(%x, %a)
      %b = "fusion.extern"(%a, %w) {op = "aten.mm.default", ...}
      memref.dealloc %a
      return %b
    }

It is compiled (driver/programs.py), and a call of it is one call of native code: that checks the arguments, allocates
and launches, and comes back to Python for library calls only. Where an argument is not as expected, a device is new,
or a thread is, the native code has done nothing and returns None; then Python sets right what it can, and calls again.
"""

from __future__ import annotations

import contextlib
import ctypes
import functools
from collections.abc import Callable, Mapping, Sequence
from typing import Protocol

import torch

from . import pytorch
from .host_function import HostFunction, Result
from .host_helpers import MOST_DEVICES, PROGRAM
from .host_words import Memory, current_device, program_words
from .launch import Launch, Launcher
from .profiling import LaunchRecorder, is_profiling

WORD = 8
"""Bytes."""
Value = torch.Tensor | int | float


class Code(Protocol):
    """The native code of a host function."""

    def address(self, name: str) -> int:
        """Where a function is."""
        ...


class Program:
    """A host function, ready to be called with tensors. Safe to use from several threads, streams and devices."""

    def __init__(self, function: HostFunction, launcher: Launcher, code: Code) -> None:
        """`code` has the function under the name `main`."""
        self._function, self._launcher, self._code = function, launcher, code
        self._memory = Memory()
        self._devices = (ctypes.c_int64 * MOST_DEVICES)()
        self._stretches: dict[int, ctypes.Array] = {}
        own = {"devices": ctypes.addressof(self._devices)}
        if launcher.stretch is not None:
            own["on_stretch"] = self._memory.object(_adding(function, launcher.stretch, self._stretches))
        values = program_words(function, launcher, self._memory) | own
        words = self._memory.words([values.get(name, 0) for name in PROGRAM])
        self._on_launch = ctypes.c_int64.from_address(words + WORD * PROGRAM.index("on_launch"))
        self._profiling = self._memory.object(LaunchRecorder([launch.title for launch in function.launches]))
        self._definition = pytorch.method_definition("call", code.address("main"))
        self._native = pytorch.native_method(self._definition, words)
        self._repairs = _repairs(function)

    def __call__(self, *inputs: Value) -> list[Value]:
        """The function's results; new tensors but for what aliases an argument."""
        return self.run(list(inputs))

    def run(self, inputs: list[Value]) -> list[Value]:
        """Like a call, but empties the list: an argument that nobody else holds is freed after its last reader."""
        if is_profiling() is not bool(self._on_launch.value):
            self._on_launch.value = 0 if self._on_launch.value else self._profiling
        results = self._native(inputs)
        if results is None:
            results = self._run_prepared(inputs)
        if self._repairs:
            self._repair(results)
        return results

    def _run_prepared(self, inputs: list[Value]) -> list[Value]:
        """Once more, after the arguments, the device and the thread were seen to; raises for a wrong argument."""
        arguments = self._function.arguments
        if len(inputs) != len(arguments):
            raise TypeError(f"expected {len(arguments)} arguments, got {len(inputs)}")
        device = self._device(inputs)
        with torch.cuda.device(device) if device.type == "cuda" else contextlib.nullcontext():
            self._load(device)
            admitted = [argument.admit(value, device) for argument, value in zip(arguments, inputs, strict=True)]
            kept = {number: inputs[number] for number in self._kept()}
            copies = {number: admitted[number] for number in self._function.written_arguments}
            inputs.clear()
            results = self._native(admitted)
        if results is None:
            raise RuntimeError("the program's native code refuses arguments that it was compiled for")
        for number, tensor in copies.items():
            if tensor is not kept[number]:
                kept[number].copy_(tensor)  # pyright: ignore
        for number, source in enumerate(self._function.results):
            if source.argument is not None:
                results[number] = kept[source.argument]
        return results

    def _kept(self) -> set[int]:
        """The arguments that the caller sees again: written, or returned."""
        returned = {source.argument for source in self._function.results if source.argument is not None}
        return returned | set(self._function.written_arguments)

    def _repair(self, results: list[Value]) -> None:
        made: dict[int, Value] = {}
        for number, (first, repair) in self._repairs.items():
            if first not in made:
                made[first] = repair(results[number])
            results[number] = made[first]

    def _device(self, inputs: Sequence[Value]) -> torch.device:
        """Where the first tensor is that kernels read, or else the current one."""
        kind = self._launcher.device_type
        for argument, value in zip(self._function.arguments, inputs, strict=True):
            if isinstance(value, torch.Tensor) and not argument.is_anywhere:
                if value.device.type != kind:
                    raise RuntimeError(f"{argument.name}: compiled for {kind}, called with a tensor on {value.device}")
                return value.device
        return current_device(kind)

    def _load(self, device: torch.device) -> None:
        """Sees to it that native code finds kernels and constants of this device, and the thread its context."""
        self._launcher.queue(device)
        number, native = device.index or 0, self._launcher.function
        if self._devices[number]:
            return
        functions = [native(launch, number) for launch in self._function.launches] if native else []
        constants = self._memory.objects([constant.to(device) for constant in self._function.constants])
        self._stretches[number] = (ctypes.c_int64 * len(self._function.stretches))()
        places = self._memory.words(functions), constants, ctypes.addressof(self._stretches[number])
        self._devices[number] = self._memory.words(places)


def _adding(
    function: HostFunction,
    make: Callable[[Sequence[Launch], int], int],
    stretches: Mapping[int, ctypes.Array],
) -> Callable[[int, int], None]:
    """Makes what starts several kernels at once, at their first call on a device."""

    def add(device: int, number: int) -> None:
        stretches[device][number] = make(function.stretches[number], device)

    return add


def _repairs(function: HostFunction) -> dict[int, tuple[int, Callable[[Value], Value]]]:
    """What is done to results that are not returned as they are, by number, with the first that is the same."""
    return {
        number: (result.first, functools.partial(_repaired, result))
        for number, result in enumerate(function.results)
        if result.is_constant or result.view is not None or result.dtype is not result.made_with
    }


def _repaired(result: Result, value: Value) -> Value:
    if not isinstance(value, torch.Tensor):
        return value
    tensor = value if result.view is None else result.view(value)
    if result.dtype is not None and tensor.dtype is not result.dtype:
        tensor = tensor.view(result.dtype)
    return tensor.clone() if result.is_constant else tensor
