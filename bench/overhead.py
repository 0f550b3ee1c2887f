"""Host time of a call: graphs of several kernels, and calls with several tensors.

    python bench/overhead.py [--no-peers]

For each graph, microseconds of host time a call: eager PyTorch, torch.compile, torch.compile with CUDA graphs,
mlir_fusion, and mlir_fusion with the option cuda_graphs. Kernels are so small that the GPU waits for the host; time is
that from the first call of a block of calls until the last one has returned, the median of several blocks.
"""

from __future__ import annotations

import argparse
import functools
import statistics
import time
from collections.abc import Callable

import torch

import mlir_fusion

KERNELS = (1, 2, 10, 50)
TENSORS = (1, 8, 64)
BLOCKS, CALLS = 7, 50


def chain(count: int) -> tuple[Callable, tuple]:
    """As many kernels under fusion type none, where fusion would leave one."""

    def fn(x: torch.Tensor) -> torch.Tensor:
        for _ in range(count):
            x = torch.sin(x)
        return x

    return fn, (torch.randn(1024, device="cuda"),)


def sums(count: int) -> tuple[Callable, tuple]:
    """One kernel of as many tensors."""

    def fn(*tensors: torch.Tensor) -> torch.Tensor:
        total = tensors[0] * 2
        for tensor in tensors[1:]:
            total = total + tensor
        return total

    return fn, tuple(torch.randn(1024, device="cuda") for _ in range(count))


def microseconds(call: Callable[[], object]) -> float:
    """Host time of a call."""
    for _ in range(5):
        call()
    times = []
    for _ in range(BLOCKS):
        torch.cuda.synchronize()
        start = time.perf_counter()
        for _ in range(CALLS):
            call()
        times.append((time.perf_counter() - start) / CALLS * 1e6)
        torch.cuda.synchronize()
    return statistics.median(times)


def ours(fn: Callable, fusion_type: str, *options: str) -> Callable:
    return mlir_fusion.compile(fn, fusion_type=fusion_type, enable_options=list(options))


def with_graphs(fn: Callable) -> Callable:
    compiled = torch.compile(fn, mode="reduce-overhead")

    def call(*arguments: torch.Tensor) -> object:
        torch.compiler.cudagraph_mark_step_begin()
        return compiled(*arguments)

    return call


def row(name: str, fn: Callable, inputs: tuple, fusion_type: str, peers: bool) -> str:
    makers: list[Callable[[], Callable]] = [lambda: ours(fn, fusion_type), lambda: ours(fn, fusion_type, "cuda_graphs")]
    if peers:
        makers = [lambda: fn, lambda: torch.compile(fn), lambda: with_graphs(fn), *makers]
    cells = [f"{name:24s}"]
    for make in makers:
        torch._dynamo.reset()
        cells.append(f"{microseconds(functools.partial(make(), *inputs)):12.1f}")
    return "".join(cells)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--no-peers", action="store_true", help="measure ours alone")
    peers = not parser.parse_args().no_peers
    columns = ("eager", "compile", "c. graphs") if peers else ()
    print(f"{'':24s}" + "".join(f"{column:>12s}" for column in (*columns, "ours", "o. graphs")))
    for count in KERNELS:
        print(row(f"{count} kernels", *chain(count), "none", peers), flush=True)
    for count in TENSORS:
        print(row(f"{count} tensors", *sums(count), "dataflow", peers), flush=True)


if __name__ == "__main__":
    main()
