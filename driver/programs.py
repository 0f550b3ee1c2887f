"""From a compiled program's host function to something that can be called.

The host function is compiled as kernels of the CPU are, but hardly optimised: it is a list of calls. What it calls are
the runtime's helpers, loaded once a process; both are kept on disk, like kernels. Apart from build.py because it needs
torch, which fusion-opt does not import.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cache

from ..dialects.mlir import ir, passmanager
from ..passes.fusion_host_to_llvm import FusionHostToLlvm
from ..runtime import host_helpers, pytorch
from ..runtime.disk_cache import DiskCache
from ..runtime.host_function import Dtypes, HostFunction, find_function, read_host_function
from ..runtime.launch import Launcher
from ..runtime.program import Program
from ..targets import cpu
from ..targets.lowering import translate
from .native_objects import kept

HELPERS = "helpers"
TO_LLVM = "builtin.module(convert-arith-to-llvm,convert-func-to-llvm,convert-index-to-llvm,reconcile-unrealized-casts)"


@dataclass(frozen=True)
class HostObjects:
    """Object code of a host function, and of what it calls; for every processor of this architecture."""

    function: cpu.NativeObject
    helpers: cpu.NativeObject


def make_program(
    host: ir.Module,
    launcher: Launcher,
    result_dtypes: Dtypes = None,
    argument_dtypes: Dtypes = None,
    entry: str = "main",
    disk: DiskCache | None = None,
) -> Program:
    """The function `entry` of `host`, ready to be called; ValueError for what it can't have.

    `argument_dtypes` and `result_dtypes` say what MLIR's types don't (uint8, for one).
    """
    with host.context:
        function = read_host_function(host, result_dtypes, argument_dtypes, entry)
    return load_program(function, launcher, compile_host(host, entry, launcher.stretch is not None, disk))


def load_program(function: HostFunction, launcher: Launcher, compiled: HostObjects) -> Program:
    """The same of a function that was read, and compiled, perhaps by another process."""
    if not cpu.is_loaded(HELPERS):
        where = pytorch.symbols(host_helpers.SYMBOLS_OF_PYTHON, host_helpers.SYMBOLS_OF_TORCH)
        cpu.load_shared(HELPERS, compiled.helpers, where)
    return Program(function, launcher, cpu.load(compiled.function, needs=(HELPERS,)))


def compile_host(
    host: ir.Module, entry: str = "main", holds: bool = False, disk: DiskCache | None = None
) -> HostObjects:
    """Compiles the function `entry`, for a launcher that holds launches back or not."""
    with host.context:
        found = find_function(host, entry)
        function = kept(disk, "hosts", f"{found} {holds}", lambda: _compile(found, entry, holds))
    return HostObjects(function, kept(disk, HELPERS, "", _compile_helpers))


@cache
def _compile_helpers() -> cpu.NativeObject:
    return cpu.compile_portable(host_helpers.helpers(), is_optimized=True)


def _compile(function: ir.Operation, entry: str, holds: bool) -> cpu.NativeObject:
    with function.location:
        module = ir.Module.create()
        function.clone(ip=ir.InsertionPoint(module.body))
        FusionHostToLlvm(entry, holds).run(module)
        passmanager.PassManager.parse(TO_LLVM).run(module.operation)
    return cpu.compile_portable(translate(module.operation), is_optimized=False)
