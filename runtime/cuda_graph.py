"""Launches several kernels at once: CUDA graphs, built from the launches themselves and never captured.

The launches of a call are held back until a library call, or the end. Each such stretch of two or more kernels is an
executable graph, made when it is first needed: a chain, so that the kernels run in the order of the program. A later
call tells it just the arguments that differ, so nothing is copied, addresses may change from call to call, and the
results are new tensors each time. What the driver was told affects only launches to come, and it runs launches of
one executable one after the other, on whatever streams they are.

Kernels are launched one by one where that is all there is, while the caller itself captures, and under
`MLIR_FUSION_SYNC=1`, which names the kernel at fault.
"""

from __future__ import annotations

import threading
import weakref
from collections.abc import Sequence
from dataclasses import dataclass

import torch

from .cuda import CudaLauncher, Driver, Handle, NodeParameters, Packs
from .launch import Argument, Launch, Launched, Queue

Held = tuple[int, Sequence[Argument]]
"""A launch, by number, and its arguments."""


class HoldingQueue(Queue):
    """A queue, and what of a call was held back."""

    held: list[Held]

    def __new__(cls, device: int, stream: int) -> HoldingQueue:
        """Nothing is held back."""
        made = super().__new__(cls, device, stream)
        made.held = []
        return made


class GraphLauncher:
    """Launches what `launcher` does, a stretch at a time. Safe to use from several threads, streams and devices."""

    entries = None
    allocate = None

    def __init__(self, launcher: CudaLauncher) -> None:
        """`launcher` says where kernels are, and launches the single ones."""
        self.device_type = launcher.device_type
        self._launcher = launcher
        self._launches: list[_Kernel] = []
        self._stretches: dict[tuple[int, ...], _Stretch] = {}
        self._lock = threading.Lock()
        self._local = threading.local()

    def queue(self, device: torch.device) -> HoldingQueue:
        """PyTorch's current stream, with what this thread's call has held back."""
        pending = getattr(self._local, "pending", None)
        if pending is None:
            pending = self._local.pending = HoldingQueue(*self._launcher.queue(device))
        return pending

    def function(self, launch: Launch, device: int) -> int:
        """The driver's handle."""
        return self._launcher.function(launch, device)

    def failure(self, launch: Launch, status: int) -> Exception:
        """What the driver says."""
        return self._launcher.failure(launch, status)

    def prepare(self, launch: Launch) -> Launched:
        """The function that is returned holds the launch back."""
        number = len(self._launches)
        self._launches.append(_Kernel(launch, self._launcher.prepare(launch), Packs(launch)))

        def launched(queue: Queue, arguments: Sequence[Argument]) -> None:
            assert isinstance(queue, HoldingQueue)
            queue.held.append((number, arguments))

        return launched

    def finish(self) -> None:
        """Starts what was held back in this thread."""
        queue, self._local.pending = getattr(self._local, "pending", None), None
        if queue is None:
            return
        held = queue.held
        if len(held) < 2 or self._launcher.synchronizes or self._launcher.is_capturing():
            for number, arguments in held:
                self._launches[number].launched(queue, arguments)
            return
        numbers = (queue.device, *(number for number, _ in held))
        with self._lock:
            if numbers not in self._stretches:
                self._stretches[numbers] = _Stretch.build(self._launcher, self._launches, held, queue.device)
            self._stretches[numbers].launch(queue, [arguments for _, arguments in held])


@dataclass(frozen=True)
class _Kernel:
    """A launch of the program, and how it is done alone."""

    launch: Launch
    launched: Launched
    packs: Packs


@dataclass
class _Stretch:
    """An executable graph, with the parameters that it knows; on one device."""

    launcher: CudaLauncher
    executable: Handle
    kernels: list[_Kernel]
    nodes: list[Handle]
    parameters: list[NodeParameters]
    known: list[list[Argument]]

    @staticmethod
    def build(launcher: CudaLauncher, launches: Sequence[_Kernel], held: Sequence[Held], device: int) -> _Stretch:
        """A chain of the kernels that are held back; nothing is launched."""
        driver, call = launcher.loaded_driver(), launcher.call
        kernels = [launches[number] for number, _ in held]
        (graph,) = call("starting a graph", *driver.cuGraphCreate(0))
        try:
            nodes: list[Handle] = []
            functions = [driver.CUfunction(launcher.function(kernel.launch, device)) for kernel in kernels]
            parameters = [_parameters(driver, *pair) for pair in zip(functions, kernels, strict=True)]
            for kernel, node, (_, arguments) in zip(kernels, parameters, held, strict=True):
                node.kernelParams = kernel.packs.fill(arguments)
                what, before = f"adding {kernel.launch} to a graph", nodes[-1:]
                nodes += call(what, *driver.cuGraphAddKernelNode(graph, before, len(before), node))
            (executable,) = call("making a graph executable", *driver.cuGraphInstantiate(graph, 0))
        except BaseException:
            driver.cuGraphDestroy(graph)
            raise
        made = _Stretch(launcher, executable, kernels, nodes, parameters, [list(arguments) for _, arguments in held])
        weakref.finalize(made, _destroy, driver, graph, executable).atexit = False
        return made

    def launch(self, queue: Queue, arguments: Sequence[Sequence[Argument]]) -> None:
        """Tells the driver what differs from last time, and launches."""
        driver, call = self.launcher.loaded_driver(), self.launcher.call
        for number, given in enumerate(arguments):
            if self.known[number] != list(given):
                kernel, node = self.kernels[number], self.parameters[number]
                node.kernelParams = kernel.packs.fill(given)
                status = driver.cuGraphExecKernelNodeSetParams(self.executable, self.nodes[number], node)
                call(f"updating {kernel.launch}", *status)
                self.known[number] = list(given)
        call(f"launching {len(self.kernels)} kernels at once", *driver.cuGraphLaunch(self.executable, queue.stream))


def _destroy(driver: Driver, graph: Handle, executable: Handle) -> None:
    """Not before: updates of the executable name the graph's nodes."""
    driver.cuGraphExecDestroy(executable)
    driver.cuGraphDestroy(graph)


def _parameters(driver: Driver, function: Handle, kernel: _Kernel) -> NodeParameters:
    """A kernel as a node of a graph is given it, but for its arguments."""
    node, launch = driver.CUDA_KERNEL_NODE_PARAMS(), kernel.launch
    node.func = function
    node.gridDimX, node.gridDimY, node.gridDimZ = launch.grid
    node.blockDimX, node.blockDimY, node.blockDimZ = launch.block
    node.sharedMemBytes = launch.shared_bytes
    return node
