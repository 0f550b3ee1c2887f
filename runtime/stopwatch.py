"""How long something takes on a device, the time that Python needs to start it apart."""

from __future__ import annotations

import time
from collections.abc import Callable

import torch

LAUNCHES = 10
"""Of a GPU, in one measurement: single ones are too short for its clock."""
MEASUREMENTS = 5
CPU_SECONDS = 0.01
"""How long is measured on the CPU."""


def seconds(run: Callable[[], object], device_type: str) -> float:
    """The least of several times; `run` is called some times more, to be warm."""
    return _seconds_on_gpu(run) if device_type == "cuda" else _seconds_on_cpu(run)


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
