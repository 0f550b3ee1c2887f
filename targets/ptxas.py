"""PTX to a cubin by NVIDIA's assembler, and what it says about each kernel.

Optional: the CUDA driver assembles PTX too. ptxas is better at telling what is wrong, needs no GPU, and
reports the registers a kernel takes and what it spills, which is how one sees that a schedule asked for too
much."""

from __future__ import annotations

import re
import shlex
import shutil
import subprocess
import tempfile
from dataclasses import dataclass
from pathlib import Path

from .llvm import CodegenError
from .target import Target
from .toolkit import PTXAS_VARIABLE, find_ptxas


class AssemblerError(CodegenError):
    """ptxas refused the PTX, or there is no ptxas."""


@dataclass(frozen=True)
class Resources:
    """What one kernel takes: registers a thread, the rest in bytes."""

    registers: int
    stack: int
    spill_stores: int
    spill_loads: int
    shared: int


def assemble(ptx: str, target: Target) -> bytes:
    """The cubin."""
    cubin, _ = _run(ptx, target)
    return cubin


def resource_usage(ptx: str, target: Target) -> dict[str, Resources]:
    """What each kernel takes, by its name."""
    _, log = _run(ptx, target, "-v")
    return parse_resource_usage(log)


KERNEL = re.compile(r"Compiling entry function '(?P<name>[^']+)'")
STACK = re.compile(
    r"(?P<stack>\d+) bytes stack frame, (?P<stores>\d+) bytes spill stores, (?P<loads>\d+) bytes spill loads"
)
REGISTERS = re.compile(r"Used (?P<registers>\d+) registers")
SHARED = re.compile(r"(?P<shared>\d+) bytes smem")


def parse_resource_usage(log: str) -> dict[str, Resources]:
    """Reads what `ptxas -v` prints: a paragraph a kernel, headed by its name."""
    headings = list(KERNEL.finditer(log))
    ends = [heading.start() for heading in headings[1:]] + [len(log)]
    return {
        heading["name"]: _parse_kernel(log[heading.end() : end]) for heading, end in zip(headings, ends, strict=True)
    }


def _parse_kernel(paragraph: str) -> Resources:
    # The kernel's own properties come first; those of functions it calls follow
    stack = STACK.search(paragraph)
    registers = REGISTERS.search(paragraph)
    shared = SHARED.search(paragraph)
    if stack is None or registers is None:
        raise AssemblerError(f"can't read what ptxas -v says about a kernel:\n{paragraph}")
    return Resources(
        registers=int(registers["registers"]),
        stack=int(stack["stack"]),
        spill_stores=int(stack["stores"]),
        spill_loads=int(stack["loads"]),
        shared=int(shared["shared"]) if shared else 0,
    )


def _run(ptx: str, target: Target, *flags: str) -> tuple[bytes, str]:
    """Assembles in a folder that stays if ptxas fails; the cubin and what ptxas said."""
    ptxas = find_ptxas()
    if ptxas is None:
        raise AssemblerError(
            f"ptxas was not found: install the package nvidia-cuda-nvcc, or set {PTXAS_VARIABLE} or CUDA_HOME"
        )
    try:
        folder = Path(tempfile.mkdtemp(prefix="mlir-fusion-ptxas-"))
        source, cubin = folder / "kernels.ptx", folder / "kernels.cubin"
        source.write_text(ptx)
    except OSError as error:
        raise AssemblerError(f"ptxas reads files, but none can be written: {error}") from error
    command = [str(ptxas), f"-arch={target.ptx_chip}", *flags, str(source), "-o", str(cubin)]
    try:
        done = subprocess.run(command, capture_output=True, text=True, check=False)
    except OSError as error:
        raise AssemblerError(f"can't run {ptxas}: {error}") from error
    if done.returncode != 0:
        raise AssemblerError(
            f"ptxas failed:\n{done.stderr.strip()}\nThe PTX is in {source}. To repeat:\n  {shlex.join(command)}"
        )
    code = cubin.read_bytes()
    shutil.rmtree(folder)
    return code, done.stderr + done.stdout
