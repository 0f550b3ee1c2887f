"""Who runs a compiled program's kernels, for the options that affect the runtime.

Apart from build.py because it needs torch, which fusion-opt does not import.
"""

from __future__ import annotations

from ..runtime.cuda import CudaLauncher
from ..runtime.cuda_graph import GraphLauncher
from ..runtime.launch import Launcher
from ..runtime.native import NativeLauncher
from .build import disk_cache
from .kernel_code import NativeCode, PtxCode, SimtCode
from .options import Options


def make_launcher(code: PtxCode | NativeCode | SimtCode, options: Options) -> Launcher:
    """The launcher of a program's kernels."""
    if isinstance(code, NativeCode):
        return NativeLauncher(code)
    if isinstance(code, SimtCode):
        # Only now: most programs need no checker
        from ..runtime.simt.launcher import SimtLauncher

        return SimtLauncher(code.kernels)
    kind = GraphLauncher if options.cuda_graphs else CudaLauncher
    return kind(code.kernels, disk=disk_cache(options))
