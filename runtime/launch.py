"""What the host program asks of whoever runs kernels: the CUDA driver, native code, or a test."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import NamedTuple, Protocol

import torch


class Queue(NamedTuple):
    """Where a call's kernels go: PyTorch's current stream of a device; (0, 0) on the CPU."""

    device: int
    stream: int


@dataclass(frozen=True)
class Launch:
    """One launch as the program states it; the arguments come with each call."""

    kernel: str
    parameters: tuple[str, ...]
    """MLIR types of the arguments: a memref is passed as a pointer, a scalar as itself."""
    grid: tuple[int, int, int] = (1, 1, 1)
    block: tuple[int, int, int] = (1, 1, 1)
    shared_bytes: int = 0
    is_checked: bool = False
    """Whether the kernel returns an i32 that is not 0 if an index was out of range (CPU only)."""

    def __str__(self) -> str:
        """For messages: the kernel, its launch configuration and the shapes it works on."""
        return f"kernel {self.kernel} (grid {self.grid}, block {self.block}) on {', '.join(self.parameters)}"


Argument = int | float
Launched = Callable[[Queue, Sequence[Argument]], None]


class Launcher(Protocol):
    """Runs kernels by name."""

    device_type: str
    """"cuda" or "cpu": where tensors have to be."""

    @property
    def finish(self) -> Callable[[Queue], None] | None:
        """Starts what was held back of a call; None where every launch starts at once."""
        ...

    def queue(self, device: torch.device) -> Queue:
        """Where the kernels of the call that is starting go."""
        ...

    def allocate(
        self, shape: Sequence[int], strides: Sequence[int], dtype: torch.dtype, device: torch.device
    ) -> torch.Tensor:
        """A new tensor for what kernels write."""
        ...

    def prepare(self, launch: Launch) -> Launched:
        """Does what can be done ahead; the function that is returned is called once a launch."""
        ...


def new_tensor(shape: Sequence[int], strides: Sequence[int], dtype: torch.dtype, device: torch.device) -> torch.Tensor:
    """PyTorch's: what a launcher's `allocate` is that needs nothing else."""
    return torch.empty_strided(shape, strides, dtype=dtype, device=device)


def is_pointer(parameter: str) -> bool:
    """Whether an argument of this MLIR type is passed as a pointer."""
    return parameter.startswith("memref<")
