"""The workload suite on a GPU: ours beside eager PyTorch and torch.compile, in percent of the speed of a copy.

    python bench/gpu.py [--only softmax,rope] [--no-peers] [--json bench/results/h200.jsonl]

For each workload: the bytes it must move at least, the time of a copy that moves as many (the ceiling), eager,
torch.compile, and mlir_fusion, in microseconds and percent of that ceiling, all in one run. Correctness comes
first: each result is compared with the same program in f64 and must be as close as eager's, within a factor of 4.
"""

from __future__ import annotations

import argparse
import gc
import json
import platform
import sys
import traceback
from collections.abc import Callable
from dataclasses import asdict, dataclass
from pathlib import Path

import torch

import mlir_fusion

sys.path.insert(0, str(Path(__file__).parent))
from suite import SUITE, nbytes
from timing import copy_microseconds, geometric_mean, microseconds

NOT_MEMORY_BOUND = ("matmul", "tiny")
F64_LIMIT = 2**28  # elements up to which the f64 reference fits
SLACK = 4.0  # times eager's own distance from f64


@dataclass
class Row:
    """One workload's measurements: microseconds, and the distance from f64 relative to the norm."""

    name: str
    megabytes: float
    ceiling: float
    eager: float | None = None
    compiled: float | None = None
    ours: float | None = None
    error: float | None = None
    eager_error: float | None = None
    note: str = ""

    def percent(self, time: float | None) -> float | None:
        """Speed as a share of the ceiling's."""
        return None if time is None else 100 * self.ceiling / time


def flatten(result: object) -> list[torch.Tensor]:
    """The tensors in a result, in order."""
    if isinstance(result, torch.Tensor):
        return [result]
    if isinstance(result, list | tuple):
        return [tensor for part in result for tensor in flatten(part)]
    return []


def upcast(value: object) -> object:
    """The same inputs in f64."""
    if isinstance(value, torch.Tensor):
        return value.double() if value.is_floating_point() else value
    if isinstance(value, list | tuple):
        return type(value)(upcast(part) for part in value)
    return value


def distance(found: object, expected: object) -> float:
    """The largest relative distance (norms) of the tensors of a result from the expected ones."""
    worst = 0.0
    for one, other in zip(flatten(found), flatten(expected), strict=True):
        reference = other.double()
        worst = max(worst, ((one.double() - reference).norm() / reference.norm().clamp_min(1e-30)).item())
    return worst


def measure(name: str, make: Callable, peers: bool) -> Row:
    fn, inputs = make()
    eager_result = fn(*inputs)
    moved = nbytes(inputs) + nbytes(flatten(eager_result))
    row = Row(name, moved / 2**20, copy_microseconds(moved))
    try:
        ours = mlir_fusion.compile(fn, fusion_type="dataflow")
        check(row, fn, inputs, ours(*inputs), eager_result)
        row.ours = microseconds(lambda: ours(*inputs))
    except Exception as error:
        row.note = f"{type(error).__name__}: {str(error).splitlines()[0][:120]}"
        traceback.print_exc()
    if peers:
        row.eager = microseconds(lambda: fn(*inputs))
        torch._dynamo.reset()
        compiled = torch.compile(fn)
        compiled(*inputs)
        row.compiled = microseconds(lambda: compiled(*inputs))
    torch._dynamo.reset()
    return row


def check(row: Row, fn: Callable, inputs: tuple, found: object, eager: object) -> None:
    """Sets the errors, and says so in the note where ours is farther from f64 than it may be."""
    if "dropout" in row.name:
        row.note = "random: not compared"
        return
    if sum(tensor.numel() for tensor in flatten(inputs)) > F64_LIMIT:
        row.error, row.note = distance(found, eager), "compared with eager"
        return
    reference = fn(*upcast(inputs))
    row.error, row.eager_error = distance(found, reference), distance(eager, reference)
    if not row.error <= SLACK * row.eager_error + 1e-7:
        row.note = f"WRONG: {row.error:.1e} from f64, eager {row.eager_error:.1e}"


def show(row: Row) -> str:
    cells = [f"{row.name:40s}{row.megabytes:9.0f}{row.ceiling:9.1f}"]
    for time in (row.eager, row.compiled, row.ours):
        percent = row.percent(time)
        cells.append("         -          " if time is None else f"{time:11.1f} {percent:6.1f}% ")
    error = "" if row.error is None else f"{row.error:.1e}"
    return "".join(cells) + f" {error:8s} {row.note}"


def summary(rows: list[Row]) -> str:
    bound = [row for row in rows if not row.name.startswith(NOT_MEMORY_BOUND)]
    lines = []
    for what in ("eager", "compiled", "ours"):
        percents = [row.percent(getattr(row, what)) for row in bound]
        known = [percent for percent in percents if percent is not None]
        lines.append(f"{what:9s} geometric mean of {len(known)} memory-bound workloads: {geometric_mean(known):.1f}%")
    return "\n".join(lines)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--only", default="", help="parts of names, separated by commas")
    parser.add_argument("--no-peers", action="store_true", help="measure ours alone")
    parser.add_argument("--json", type=Path, help="append the results to this file, one object a line")
    arguments = parser.parse_args()
    wanted = [part for part in arguments.only.split(",") if part]
    versions = {
        "gpu": torch.cuda.get_device_name(),
        "torch": torch.__version__,
        "python": platform.python_version(),
        "copy_ceiling_GBps": 2**32 / copy_microseconds(2**32) / 1e3,
    }
    print(versions)
    print(f"{'workload':40s}{'MiB':>9s}{'copy us':>9s}{'eager':>20s}{'torch.compile':>20s}{'mlir_fusion':>20s}  error")
    rows = []
    for name, make in SUITE:
        if wanted and not any(part in name for part in wanted):
            continue
        torch.manual_seed(0)
        rows.append(measure(name, make, not arguments.no_peers))
        print(show(rows[-1]), flush=True)
        gc.collect()
        torch.cuda.empty_cache()
    print(summary(rows))
    if arguments.json:
        with arguments.json.open("a") as file:
            for entry in (versions, *map(asdict, rows)):
                file.write(json.dumps(entry) + "\n")


if __name__ == "__main__":
    main()
