"""Host time of a call: graphs of several kernels, and calls with several tensors.

    python bench/overhead.py [--no-peers]

For each graph, microseconds of host time a call: eager PyTorch, torch.compile, torch.compile with CUDA graphs,
mlir_fusion, and mlir_fusion with the option cuda_graphs. Kernels are so small that the GPU waits for the host; time is
that from the first call of a block of calls until the last one has returned, the median of several blocks.

In the same run, what the driver takes by itself: launches from a loop of native code, and a graph of as many kernels.
"""

from __future__ import annotations

import argparse
import ctypes
import functools
import statistics
import time
from collections.abc import Callable

import torch
from mlir_fusion.runtime.cuda_graph import GraphLauncher
from mlir_fusion.runtime.host_helpers import STRETCH
from mlir_fusion.runtime.launch import Launch
from mlir_fusion.targets import cpu

import mlir_fusion

KERNELS = (1, 2, 10, 50)
TENSORS = (1, 8, 64)
BLOCKS, CALLS = 7, 50

PTX = """
.version 7.0
.target sm_80
.address_size 64
.visible .entry nothing(.param .u64 x) { ret; }
"""
LOOPS = """
define void @launches(ptr %launch, ptr %function, ptr %arguments, i64 %count) {
entry:
  br label %loop
loop:
  %i = phi i64 [ 0, %entry ], [ %next, %loop ]
  call i32 %launch(ptr %function, i32 1, i32 1, i32 1, i32 32, i32 1, i32 1, i32 0, ptr null, ptr %arguments, ptr null)
  %next = add i64 %i, 1
  %is_end = icmp eq i64 %next, %count
  br i1 %is_end, label %end, label %loop
end:
  ret void
}

define void @updates(ptr %update, ptr %executable, ptr %nodes, ptr %parameters, i64 %count) {
entry:
  br label %loop
loop:
  %i = phi i64 [ 0, %entry ], [ %next, %loop ]
  %node_place = getelementptr ptr, ptr %nodes, i64 %i
  %node = load ptr, ptr %node_place
  %place = getelementptr ptr, ptr %parameters, i64 %i
  %one = load ptr, ptr %place
  call i32 %update(ptr %executable, ptr %node, ptr %one)
  %next = add i64 %i, 1
  %is_end = icmp eq i64 %next, %count
  br i1 %is_end, label %end, label %loop
end:
  ret void
}
"""
"""What the driver takes by itself."""


def raw(count: int) -> tuple[float, float, float]:
    """A native loop of launches; a graph of as many kernels as it is; the same, every kernel's parameters updated."""
    code, launcher = cpu.jit(LOOPS), GraphLauncher(PTX)
    entries, launch = launcher.entries, Launch("nothing", ("memref<4xf32>",), block=(32, 1, 1))
    assert entries is not None
    cell = ctypes.c_int64(0)
    arguments = (ctypes.c_void_p * 1)(ctypes.addressof(cell))
    launches, updates = code.function("launches", 4), code.function("updates", 5)
    address = launcher.stretch([launch] * max(count, 2), 0)
    words = dict(zip(STRETCH, (ctypes.c_int64 * len(STRETCH)).from_address(address), strict=True))
    start = ctypes.CFUNCTYPE(ctypes.c_int, ctypes.c_void_p, ctypes.c_void_p)(entries.launch_graph)
    function, executable = launcher.function(launch, 0), words["executable"]
    operands = executable, words["nodes"], words["parameters"]
    plain = microseconds(lambda: launches(entries.launch, function, ctypes.addressof(arguments), count))
    replay = microseconds(lambda: start(executable, None))

    def updated() -> None:
        updates(entries.update, *operands, max(count, 2))
        start(executable, None)

    return plain, replay, microseconds(updated)


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
        plain, replay, updated = raw(count)
        driver = f"the driver alone: {plain:.1f} launched, {replay:.1f} as a graph, {updated:.1f} with all updated"
        print(f"{count} kernels, {driver}", flush=True)
    for count in KERNELS:
        print(row(f"{count} kernels", *chain(count), "none", peers), flush=True)
    for count in TENSORS:
        print(row(f"{count} tensors", *sums(count), "dataflow", peers), flush=True)


if __name__ == "__main__":
    main()
