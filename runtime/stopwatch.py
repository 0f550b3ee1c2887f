"""How long something takes on a device, the time that Python needs to start it apart; and inputs to try it with."""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from contextlib import AbstractContextManager

import torch
from torch.utils._python_dispatch import _disable_current_modes

from ..dialects.mlir import ir
from .dtypes import dtype_of

Inputs = list[torch.Tensor]

LAUNCHES = 10
"""Of a GPU, in one measurement: single ones are too short for its clock."""
MEASUREMENTS = 5
CPU_SECONDS = 0.01
"""How long is measured on the CPU."""


def seconds(run: Callable[[], object], device_type: str) -> float:
    """The least of several times; `run` is called some times more, to be warm."""
    return _seconds_on_gpu(run) if device_type == "cuda" else _seconds_on_cpu(run)


def outside_tracing() -> AbstractContextManager[object]:
    """Where tensors have memory, though PyTorch traces around."""
    return _disable_current_modes()


def gpu_name() -> str | None:
    """The product name of the current CUDA device; None where there is none, or where it only records a graph."""
    if not torch.cuda.is_available() or torch.cuda.is_current_stream_capturing():
        return None
    return torch.cuda.get_device_name()


def random_inputs(
    places: Sequence[tuple[Sequence[int], Sequence[int]]], elements: Sequence[ir.Type], device: str
) -> Inputs:
    """Tensors of these shapes and strides: floats are normal, integers, which may be indices, are 0.

    The generator is their own, so that PyTorch's is left as it is.
    """
    generator = torch.Generator(device)
    inputs = []
    for (shape, strides), element in zip(places, elements, strict=True):
        value = torch.empty_strided(shape, strides, dtype=dtype_of(element), device=device)
        is_float = value.dtype.is_floating_point or value.dtype.is_complex
        inputs.append(value.normal_(generator=generator) if is_float else value.zero_())
    return inputs


def _seconds_on_gpu(run: Callable[[], object]) -> float:
    """The launches are captured as a graph, so that the GPU does not wait for us in between."""
    run()
    torch.cuda.synchronize()
    graph = torch.cuda.CUDAGraph()
    with torch.cuda.graph(graph):
        for _ in range(LAUNCHES):
            run()
    graph.replay()
    times = []
    for _ in range(MEASUREMENTS):
        start, end = (torch.cuda.Event(enable_timing=True) for _ in range(2))
        start.record()
        graph.replay()
        end.record()
        end.synchronize()
        times.append(start.elapsed_time(end) / 1000 / LAUNCHES)
    return min(times)


def _seconds_on_cpu(run: Callable[[], object]) -> float:
    run()
    times, begin = [], time.perf_counter()
    while not times or time.perf_counter() - begin < CPU_SECONDS:
        start = time.perf_counter()
        run()
        times.append(time.perf_counter() - start)
    return min(times)
