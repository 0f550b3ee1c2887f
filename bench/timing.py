"""How device time is measured: CUDA events around one call, the L2 cache flushed before it, the median of many."""

from __future__ import annotations

import statistics
from collections.abc import Callable, Iterable

import torch

FLUSHED_BYTES = 256 * 2**20
HEAD_START = 400_000  # cycles that the device waits, so that the host has issued the call before the clock starts
MILLISECONDS = 150  # of device time for one measurement
FEWEST, MOST = 7, 100  # repetitions


def microseconds(call: Callable[[], object]) -> float:
    """Median device time of a call, in microseconds, after warming up."""
    flush = torch.empty(FLUSHED_BYTES, dtype=torch.int8, device="cuda")
    for _ in range(3):
        call()
    first = _once(call, flush)
    count = max(FEWEST, min(MOST, int(MILLISECONDS * 1e3 / max(first, 1.0))))
    return statistics.median(_once(call, flush) for _ in range(count))


def _once(call: Callable[[], object], flush: torch.Tensor) -> float:
    start, end = (torch.cuda.Event(enable_timing=True) for _ in range(2))
    flush.zero_()
    torch.cuda._sleep(HEAD_START)
    start.record()
    call()
    end.record()
    end.synchronize()
    return start.elapsed_time(end) * 1e3


def copy_microseconds(moved_bytes: int) -> float:
    """The time of a device-to-device copy that reads and writes `moved_bytes` together: the ceiling."""
    source = torch.empty(max(moved_bytes // 2, 16), dtype=torch.int8, device="cuda")
    target = torch.empty_like(source)
    return microseconds(lambda: target.copy_(source))


def geometric_mean(values: Iterable[float]) -> float:
    """The geometric mean; nan for no values."""
    found = list(values)
    return statistics.geometric_mean(found) if found else float("nan")
