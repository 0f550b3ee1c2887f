"""Runs the GPU programs under compute-sanitizer's four tools and prints a table.

    python test/gpu/sanitize.py [--tools memcheck,racecheck] [-k softmax]

Each tool runs this file again, as `--programs`, which compiles and calls every program of test/python/programs.py
and a few larger ones under fusion type dataflow. What counts is the tool's own summary of errors. Calls of the driver
that return an error are not among them: the driver's own bindings ask it for functions that it does not have, and
the runtime raises whatever its calls return.
"""

from __future__ import annotations

import argparse
import re
import subprocess
import sys
from collections import Counter
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parent.parent / "python"))

TOOLS = ("memcheck", "racecheck", "initcheck", "synccheck")
SUMMARY = re.compile(r"(?:ERROR|RACECHECK) SUMMARY: (\d+)")

HEADING = re.compile(r"=+ ((?:Program hit|Invalid|Uninitialized|Error|Warning|Barrier|Misaligned|Race).*)")


def run_programs(only: str) -> int:
    """Compiles and calls the programs; returns how many."""
    import torch
    import torch.nn.functional as F
    from programs import PROGRAMS, Program, rand

    import mlir_fusion

    larger = [
        Program("softmax_1024x4096", lambda x: torch.softmax(x, -1), lambda: (rand(1024, 4096, dtype=torch.bfloat16),)),
        Program("gelu_512x8192", lambda x, b: F.gelu(x + b), lambda: (rand(512, 8192), rand(8192))),
        Program("softmax_9x65536", lambda x: torch.softmax(x, -1), lambda: (rand(9, 65536),)),
        Program("columns_4096x512", lambda x: x.sum(0), lambda: (rand(4096, 512),)),
        Program("transpose_1000x777", lambda x: x.t().contiguous() + 1, lambda: (rand(1000, 777),)),
    ]
    count = 0
    for program in [*PROGRAMS, *larger]:
        if only in program.name:
            torch._dynamo.reset()
            inputs = [tensor.cuda() for tensor in program.make()]
            mlir_fusion.compile(program.function, fusion_type="dataflow")(*inputs)
            torch.cuda.synchronize()
            count += 1
    return count


def run_tool(tool: str, only: str) -> tuple[str, str]:
    """(errors found, the kinds of error and the log's last lines) of one tool."""
    api_errors = ["--report-api-errors", "no"] if tool == "memcheck" else []
    command = ["compute-sanitizer", "--tool", tool, *api_errors, sys.executable, __file__, "--programs", "-k", only]
    done = subprocess.run(command, capture_output=True, text=True)
    lines = (done.stdout + done.stderr).splitlines()
    found = SUMMARY.findall("\n".join(lines))
    kinds = Counter(match[1] for line in lines if (match := HEADING.match(line)))
    log = "\n".join([*(f"{count:6d} x {kind}" for kind, count in kinds.items()), *lines[-12:]])
    return (found[-1] if found else f"no summary, exit {done.returncode}"), log


def main() -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--tools", default=",".join(TOOLS))
    parser.add_argument("-k", dest="only", default="", help="part of the programs' names")
    parser.add_argument("--programs", action="store_true", help="run the programs, with no tool")
    arguments = parser.parse_args()
    if arguments.programs:
        print(f"{run_programs(arguments.only)} programs ran")
        return
    failed = False
    for tool in arguments.tools.split(","):
        errors, log = run_tool(tool, arguments.only)
        failed |= errors != "0"
        print(f"{tool:12s} errors: {errors}", flush=True)
        if errors != "0":
            print(log, flush=True)
    sys.exit(failed)


if __name__ == "__main__":
    main()
