"""What profilers are shown of a program: a range for each launch, named after the kernel and where it comes from.

`torch.profiler` gets its ranges, and so does `torch.autograd.profiler.emit_nvtx`, which hands them on as NVTX.
With `MLIR_FUSION_NVTX=1` in the environment there are NVTX ranges without either, for Nsight Systems.
"""

from __future__ import annotations

import os
import re
import threading
from collections.abc import Sequence

import torch
from torch.autograd import profiler

SOURCE = re.compile(r'"([^"<>]+)":(\d+):\d+')
MOST_SOURCES = 3
_always = os.environ.get("MLIR_FUSION_NVTX", "0") not in ("", "0") and torch.cuda.is_available()


def is_profiling() -> bool:
    """Whether somebody looks now."""
    return _always or profiler._is_profiler_enabled


def source_of(location: str) -> str:
    """Lines of the user's program that an operation's location names: `model.py:12, model.py:13`."""
    found = dict.fromkeys(f"{os.path.basename(file)}:{line}" for file, line in SOURCE.findall(location))
    more = ", ..." if len(found) > MOST_SOURCES else ""
    return ", ".join(list(found)[:MOST_SOURCES]) + more


class LaunchRecorder:
    """Called when a launch begins and when it has ended, by its number."""

    def __init__(self, titles: Sequence[str]) -> None:
        self._titles = titles
        self._open = threading.local()

    def __call__(self, number: int, begins: int) -> None:
        """A range is closed by the thread that opened it."""
        ranges: list[profiler.record_function] = self._open.__dict__.setdefault("ranges", [])
        if begins:
            ranges.append(profiler.record_function(self._titles[number]))
            ranges[-1].__enter__()
            if _always:
                torch.cuda.nvtx.range_push(self._titles[number])
        elif ranges:
            if _always:
                torch.cuda.nvtx.range_pop()
            ranges.pop().__exit__(None, None, None)
