"""From an FX graph in the importer's form to a program that can be called."""

from __future__ import annotations

import logging
import re
from collections.abc import Callable, Sequence
from typing import TypeVar

import torch
from torch import fx

from ..dialects.mlir import ir
from ..driver.build import Artifact, build
from ..driver.cache import Counts
from ..driver.errors import InternalError
from ..driver.options import Options
from ..driver.programs import make_program
from ..runtime.disk_cache import DiskCache
from ..runtime.launch import Launcher
from ..runtime.program import Program
from ..targets.target import Target
from .importer import Imported, import_graph, program_device
from .random_numbers import draw_random_numbers

log = logging.getLogger("mlir_fusion.frontend")

NOT_LOWERED = re.compile(r"failed to legalize operation 'torch\.(\w+\.\w+)(?:\.(\w+))?'")

Built = TypeVar("Built")


def compile_graph(graph: fx.Graph, options: Options, counts: Counts | None = None) -> tuple[Imported, Artifact]:
    """Imports and compiles; an operation that torch-mlir turns out not to lower is left to the library."""
    if not options.eager_random:
        draw_random_numbers(graph, program_device([node.meta.get("val") for node in graph.nodes]))

    def attempt(refused: frozenset[str]) -> tuple[Imported, Artifact]:
        imported = import_graph(graph, options.matmul, refused)
        return imported, build(imported.module, options, counts)

    return without_refused(attempt)


def without_refused(attempt: Callable[[frozenset[str]], Built]) -> Built:
    """What `attempt` builds when it leaves to the library the operations that torch-mlir turned out not to lower."""
    refused: frozenset[str] = frozenset()
    while True:
        try:
            return attempt(refused)
        except InternalError as error:
            found = NOT_LOWERED.search(error.reason) if error.stage == "import" else None
            name = f"{found[1]}.{found[2] or 'default'}" if found else ""
            if not name or name in refused:
                raise
            log.warning("%s of these operands is left to the library: torch-mlir doesn't lower it", name)
            refused |= {name}


def check_device(target: str, inputs: Sequence[object]) -> None:
    """ValueError where a program is for another kind of processor than its tensors are on."""
    kind, device = Target.parse(target).kind, program_device(inputs).type
    if kind == "gpu" and device == "cpu" and inputs:
        advice = "move them to the GPU" if torch.cuda.is_available() else "this machine has no GPU for PyTorch"
        raise ValueError(
            f"compiled for {target}, a GPU, but the tensors are on the CPU: {advice}; "
            "lower(*inputs) compiles without running, and ir() and ptx() then show what would run"
        )
    if kind == "cpu" and device == "cuda":
        raise ValueError("compiled for the CPU, but the tensors are on a GPU: leave the target out, or name a GPU")


def program_of(host: ir.Module, launcher: Launcher, imported: Imported, disk: DiskCache | None) -> Program:
    """The host function, ready to be called."""
    return make_program(host, launcher, imported.result_dtypes, imported.argument_dtypes, disk=disk)
