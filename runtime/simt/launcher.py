"""Runs the kernels of a program with the checker, in this process.

The program's tensors are on the CPU. Memory that it allocates is filled with a pattern and noted, so that a kernel that
reads what nobody has written is found.
"""

from __future__ import annotations

import weakref
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np
import torch

from ...dialects.mlir import ir
from ..launch import Argument, Launch, Launched, Queue
from .elements import Array
from .kernel import Kernel
from .memory import BASE, POISON

NO_QUEUE = Queue(0, 0)


class SimtLauncher:
    """Runs a launch at once; a KernelError is raised from the call of the program."""

    device_type = "cpu"
    entries = None
    function = None
    stretch = None
    failure = None

    def __init__(self, functions: Mapping[str, ir.Operation]) -> None:
        self._functions = functions
        self._kernels: dict[str, Kernel] = {}
        self._memories: dict[int, Unwritten] = {}

    def queue(self, device: torch.device) -> Queue:
        """There is none."""
        return NO_QUEUE

    def allocate(
        self, shape: Sequence[int], strides: Sequence[int], dtype: torch.dtype, device: torch.device
    ) -> torch.Tensor:
        """A tensor with nothing in it."""
        tensor = torch.empty_strided(shape, strides, dtype=dtype, device=device)
        size = tensor.untyped_storage().nbytes()
        tensor.untyped_storage().copy_(torch.full((size,), POISON, dtype=torch.uint8).untyped_storage())
        address = tensor.untyped_storage().data_ptr()
        if size:
            self._memories[address] = Unwritten(address, np.zeros(-(-size // BASE) * BASE, np.uint8))
            weakref.finalize(tensor, self._memories.pop, address, None)
        return tensor

    def prepare(self, launch: Launch) -> Launched:
        """Makes the kernel's steps, once."""
        kernel = self._kernel(launch.kernel).on(launch.parameters)

        def launched(queue: Queue, arguments: Sequence[Argument]) -> None:
            kernel.run(launch.grid, launch.block, arguments, launch.shared_bytes, self._written)

        return launched

    def _kernel(self, name: str) -> Kernel:
        if name not in self._kernels:
            self._kernels[name] = Kernel(self._functions[name])
        return self._kernels[name]

    def _written(self, address: int, size: int) -> Array | None:
        for memory in self._memories.values():
            first = address - memory.address
            if 0 <= first and first + size <= len(memory.written):
                return memory.written[first : first + size]
        return None


@dataclass(frozen=True, eq=False)
class Unwritten:
    """A tensor's memory, and a byte a byte that says what was written."""

    address: int
    written: Array
