"""The environment variables that are read, and what becomes of one that nobody reads."""

from __future__ import annotations

import functools
import logging
from collections.abc import Iterable

from ..passes.pass_base import nearest

log = logging.getLogger("mlir_fusion.options")

PREFIX = "MLIR_FUSION_"
VARIABLES = {
    "MLIR_FUSION_ENABLE": "options on: names, or name=value, separated by commas",
    "MLIR_FUSION_DISABLE": "options off: names, separated by commas",
    "MLIR_FUSION_OPTIONS": "options by value: name=value, separated by commas",
    "MLIR_FUSION_CACHE_DIR": "the folder for compiled code (default: mlir-fusion in the user's cache)",
    "MLIR_FUSION_DUMP": "the folder in which the IR of an internal error is written down (default: a temporary one)",
    "MLIR_FUSION_PTXAS": "the assembler to use (default: the one of the Python package, or else an installed one)",
    "MLIR_FUSION_SYNC": "1: wait for the end of each kernel, so that an error names the kernel at fault",
    "MLIR_FUSION_NVTX": "1: an NVTX range for each launch, also where PyTorch's profiler does not look",
}
TESTS = ("MLIR_FUSION_TEST_LONG", "MLIR_FUSION_RANDOM_GRAPHS")
"""What only the project's tests read."""


def warn_of_unknown(names: Iterable[str]) -> None:
    """Warns, once, of each variable that looks like one of ours but is none: it has no effect."""
    for name in names:
        if name.startswith(PREFIX) and name not in VARIABLES and name not in TESTS:
            _warn(name)


@functools.cache
def _warn(name: str) -> None:
    near = nearest(name, VARIABLES)
    log.warning("no environment variable %s is read%s; there are: %s", name, near, ", ".join(VARIABLES))
