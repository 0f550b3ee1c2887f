"""Where the two things we need of the CUDA toolkit are: libdevice and ptxas.

Neither needs a GPU. libdevice, NVIDIA's mathematical functions as LLVM bitcode, comes with the package
nvidia-nvvm, which is a dependency. ptxas, the assembler, comes with nvidia-cuda-nvcc, which is optional:
without it, the CUDA driver assembles PTX when it loads it. An installed toolkit serves for both."""

from __future__ import annotations

import importlib.util
import os
import shutil
from collections.abc import Iterator
from pathlib import Path

PTXAS_VARIABLE = "MLIR_FUSION_PTXAS"


def find_libdevice() -> Path:
    """The file libdevice.10.bc."""
    name = "nvvm/libdevice/libdevice.10.bc"
    candidates = [*_packaged(name), *(home / name for home in _toolkits())]
    found = next((path for path in candidates if path.is_file()), None)
    if found is None:
        raise FileNotFoundError(
            "libdevice.10.bc, which the GPU's mathematical functions come from, was not found: "
            "install the package nvidia-nvvm, or point CUDA_HOME to a CUDA toolkit"
        )
    return found


def find_ptxas() -> Path | None:
    """The assembler: the one that MLIR_FUSION_PTXAS names, else the package's, else an installed one."""
    named = os.environ.get(PTXAS_VARIABLE)
    if named:
        return Path(named)
    on_path = shutil.which("ptxas")
    candidates = [
        *_packaged("bin/ptxas"),
        *(Path(home) / "bin/ptxas" for home in _cuda_home()),
        *([Path(on_path)] if on_path else []),
        *(home / "bin/ptxas" for home in _toolkits()),
    ]
    return next((path for path in candidates if path.is_file()), None)


def _packaged(name: str) -> Iterator[Path]:
    """Files of NVIDIA's Python packages, which install as `nvidia/cu13/...` or `nvidia/cuda_nvcc/...`."""
    package = importlib.util.find_spec("nvidia")
    folders = package.submodule_search_locations if package else None
    for folder in folders or ():
        yield from sorted(Path(folder).glob(f"*/{name}"), reverse=True)


def _cuda_home() -> list[Path]:
    return [Path(os.environ["CUDA_HOME"])] if os.environ.get("CUDA_HOME") else []


def _toolkits() -> list[Path]:
    return [*_cuda_home(), Path("/usr/local/cuda")]
