"""What compiled code depends on besides its input and the options: us, and the packages that we use.

It is a part of every cache key, so a cache can't outlive an upgrade, nor a change to this package's own source: that
is hashed as it is, not by its version, which stays the same while someone works on it.
"""

from __future__ import annotations

import hashlib
import platform
from collections.abc import Iterable
from functools import cache
from importlib import metadata
from pathlib import Path

import llvmlite.binding as llvmlite

from ..targets import cpu
from ..targets.toolkit import find_libdevice

PACKAGES = ("torch-mlir", "llvmlite", "torch")
FOLDERS = ("dialects", "driver", "frontend", "passes", "runtime", "targets")


def digest(*parts: str) -> str:
    """A key: equal for equal parts, different for different ones."""
    state = hashlib.sha256()
    for part in parts:
        data = part.encode()
        state.update(len(data).to_bytes(8, "little"))
        state.update(data)
    return state.hexdigest()


@cache
def compiler() -> str:
    """What turns a program into kernels: this package's source, and the packages' versions."""
    return digest(_source(), *(f"{name} {package_version(name)}" for name in PACKAGES))


def versions() -> dict[str, str]:
    """What the text of a compiled program, and the code in it, belong to."""
    return {name: package_version(name) for name in ("mlir-fusion", "torch-mlir")}


@cache
def code_generator(kind: str) -> str:
    """What turns kernels of a kind of target into machine code, which for the CPU means this machine."""
    if kind == "cpu":
        return digest(compiler(), platform.machine(), llvmlite.get_host_cpu_name(), cpu.host_features())
    if kind == "simt":
        return compiler()
    return digest(compiler(), hashlib.sha256(find_libdevice().read_bytes()).hexdigest())


def _source() -> str:
    root = Path(__file__).parent.parent
    files = sorted(path for folder in _packages(root) for path in folder.rglob("*.py"))
    return digest(*(part for path in files for part in (path.name, path.read_text())))


def _packages(root: Path) -> Iterable[Path]:
    return (root / name for name in FOLDERS)


def package_version(package: str) -> str:
    """Of an installed package; "none" if it is not installed."""
    try:
        return metadata.version(package)
    except metadata.PackageNotFoundError:
        return "none"
