"""A compiler for PyTorch on MLIR: see README.md.

The public names are imported when they are first used: the command lines import this package too, and must not
import torch.
"""

from __future__ import annotations

import importlib
import importlib.metadata

_PUBLIC = {
    "compile": ".frontend.compile",
    "explain": ".frontend.explain",
    "export": ".frontend.export",
    "list_options": ".driver.options",
    "load": ".frontend.load",
    "mlir_fusion_backend": ".frontend.backend",
    "options": ".driver.scope",
}

__all__ = ["compile", "explain", "export", "list_options", "load", "mlir_fusion_backend", "options"]  # pyright: ignore[reportUnsupportedDunderAll]


def __getattr__(name: str) -> object:
    if name == "__version__":
        return importlib.metadata.version("mlir-fusion")
    if name not in _PUBLIC:
        raise AttributeError(f"module 'mlir_fusion' has no attribute {name!r}")
    return getattr(importlib.import_module(_PUBLIC[name], __name__), name)


def __dir__() -> list[str]:
    return sorted([*__all__, "__version__"])
