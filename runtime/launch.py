"""What the host program asks of whoever runs kernels: the CUDA driver, native code, or a test."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
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
    source: str = field(default="", compare=False)
    """The lines of the user's program that it computes."""

    @property
    def title(self) -> str:
        """For profilers: the kernel and its source."""
        return f"{self.kernel} ({self.source})" if self.source else self.kernel

    def __str__(self) -> str:
        """For messages: the kernel, its launch configuration and the shapes it works on."""
        return f"kernel {self.kernel} (grid {self.grid}, block {self.block}) on {', '.join(self.parameters)}"


Argument = int | float
Launched = Callable[[Queue, Sequence[Argument]], None]


@dataclass(frozen=True)
class Entries:
    """Functions that native code calls, by address; 0 for what a processor doesn't have."""

    launch: int = 0
    """The driver's cuLaunchKernel."""
    current_context: int = 0
    """The driver's cuCtxGetCurrent."""
    current_stream: int = 0
    """PyTorch's aoti_torch_get_current_cuda_stream."""
    synchronize: int = 0
    """The driver's cuCtxSynchronize, where every launch is waited for."""
    update: int = 0
    """The driver's cuGraphExecKernelNodeSetParams."""
    launch_graph: int = 0
    """The driver's cuGraphLaunch."""
    is_capturing: int = 0
    """The driver's cuStreamIsCapturing."""


class Launcher(Protocol):
    """Runs kernels by name: from native code, which `entries`, `function` and `failure` are for, or in Python.

    What is for the other way is None, as is whatever a launcher has no need of.
    """

    device_type: str
    """"cuda" or "cpu": where tensors have to be."""

    @property
    def entries(self) -> Entries | None:
        """What native code launches with."""
        ...

    @property
    def allocate(
        self,
    ) -> Callable[[Sequence[int], Sequence[int], torch.dtype, torch.device], torch.Tensor] | None:
        """Makes a new tensor for what kernels write; None where PyTorch's will do."""
        ...

    def queue(self, device: torch.device) -> Queue:
        """Where kernels go that are launched in this thread now."""
        ...

    @property
    def function(self) -> Callable[[Launch, int], int] | None:
        """Gives what native code launches on a device: a driver's handle, or an address."""
        ...

    @property
    def stretch(self) -> Callable[[Sequence[Launch], int], int] | None:
        """Makes what starts launches on a device at once: the address of its words (host_helpers.STRETCH), good as long
        as this. None where kernels start one by one."""
        ...

    @property
    def failure(self) -> Callable[[str, str, int], Exception] | None:
        """What is raised for a status that is not 0, by what was being done, and to what."""
        ...

    @property
    def prepare(self) -> Callable[[Launch], Launched] | None:
        """Does what can be done ahead; the function that it returns is called once a launch."""
        ...


def is_pointer(parameter: str) -> bool:
    """Whether an argument of this MLIR type is passed as a pointer."""
    return parameter.startswith("memref<")
