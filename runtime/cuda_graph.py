"""Launches several kernels at once: CUDA graphs, built from the launches themselves and never captured.

The launches of a call are held back until a library call, or the end. Each such stretch of two or more kernels is an
executable graph, made when it is first needed: a chain, so that the kernels run in the order of the program. Each call
tells it just the arguments that differ (host_helpers.py), so nothing is copied, addresses may change from call to call,
and the results are new tensors each time. What the driver was told affects only launches to come, and it runs launches
of one executable one after the other, on whatever streams they are.
"""

from __future__ import annotations

import ctypes
import weakref
from collections.abc import Sequence
from dataclasses import dataclass

from .cuda import CudaLauncher, Driver, Handle
from .cuda import NodeParameters as DriverParameters
from .host_helpers import SIZES, STRETCH
from .launch import Launch


class GraphLauncher(CudaLauncher):
    """Launches a stretch at a time. Safe to use from several threads, streams and devices."""

    def stretch(self, launches: Sequence[Launch], device: int) -> int:
        """A graph that has run nothing yet; RuntimeError says what the driver refused."""
        made = _build(self, launches, device)
        self._stretches.append(made)
        return ctypes.addressof(made.words)


class NodeParameters(ctypes.Structure):
    """The driver's CUDA_KERNEL_NODE_PARAMS."""

    _fields_ = (
        ("function", ctypes.c_void_p),
        ("sizes", ctypes.c_uint32 * SIZES),
        ("arguments", ctypes.c_void_p),
        ("extra", ctypes.c_void_p),
        ("kernel", ctypes.c_void_p),
        ("context", ctypes.c_void_p),
    )


@dataclass(eq=False)
class Stretch:
    """An executable graph, and the memory that native code reads and writes of it."""

    words: ctypes.Array
    kept: list[object]
    """What the words point at."""


def _build(launcher: CudaLauncher, launches: Sequence[Launch], device: int) -> Stretch:
    """A chain of the kernels. What is known of them is nothing: no launch has no sizes."""
    known = (ctypes.c_int64 * sum(SIZES + len(launch.parameters) for launch in launches))()
    kept: list[object] = [known]
    parameters, first = [], ctypes.addressof(known)
    for launch in launches:
        places = [first + 8 * (SIZES + number) for number in range(len(launch.parameters))]
        arguments = (ctypes.c_void_p * max(len(places), 1))(*places)
        sizes = (ctypes.c_uint32 * SIZES)(*launch.grid, *launch.block, launch.shared_bytes)
        function = launcher.function(launch, device)
        parameters.append(NodeParameters(function, sizes, ctypes.addressof(arguments)))
        kept += [arguments, parameters[-1]]
        first += 8 * (SIZES + len(launch.parameters))
    graph, nodes = _chain(launcher, launches, parameters)
    made = _instantiated(launcher, graph, nodes, parameters, known)
    made.kept += kept
    return made


def _chain(
    launcher: CudaLauncher, launches: Sequence[Launch], parameters: Sequence[NodeParameters]
) -> tuple[Handle, list[Handle]]:
    driver, call = launcher.loaded_driver(), launcher.call
    (graph,) = call("starting a graph", *driver.cuGraphCreate(0))
    nodes: list[Handle] = []
    try:
        for launch, node in zip(launches, parameters, strict=True):
            what, before = f"adding {launch} to a graph", nodes[-1:]
            nodes += call(what, *driver.cuGraphAddKernelNode(graph, before, len(before), _for_driver(driver, node)))
    except BaseException:
        driver.cuGraphDestroy(graph)
        raise
    return graph, nodes


def _for_driver(driver: Driver, parameters: NodeParameters) -> DriverParameters:
    """The same as an object of cuda-bindings."""
    node = driver.CUDA_KERNEL_NODE_PARAMS()
    node.func = driver.CUfunction(parameters.function)
    node.gridDimX, node.gridDimY, node.gridDimZ, node.blockDimX, node.blockDimY, node.blockDimZ = parameters.sizes[:6]
    node.sharedMemBytes, node.kernelParams = parameters.sizes[6], parameters.arguments
    return node


def _instantiated(
    launcher: CudaLauncher,
    graph: Handle,
    nodes: Sequence[Handle],
    parameters: Sequence[NodeParameters],
    known: ctypes.Array,
) -> Stretch:
    driver = launcher.loaded_driver()
    try:
        (executable,) = launcher.call("making a graph executable", *driver.cuGraphInstantiate(graph, 0))
    except BaseException:
        driver.cuGraphDestroy(graph)
        raise
    places = (ctypes.c_int64 * len(nodes))(*map(int, nodes))  # pyright: ignore[reportArgumentType]
    lists = (ctypes.c_int64 * len(nodes))(*map(ctypes.addressof, parameters))
    values = {
        "executable": int(executable),  # pyright: ignore[reportArgumentType]
        "nodes": ctypes.addressof(places),
        "parameters": ctypes.addressof(lists),
        "known": ctypes.addressof(known),
    }
    words = (ctypes.c_int64 * len(STRETCH))(*(values.get(name, 0) for name in STRETCH))
    made = Stretch(words, [places, lists])
    weakref.finalize(made, _destroy, driver, graph, executable).atexit = False
    return made


def _destroy(driver: Driver, graph: Handle, executable: Handle) -> None:
    """Not before: updates of the executable name the graph's nodes."""
    driver.cuGraphExecDestroy(executable)
    driver.cuGraphDestroy(graph)
