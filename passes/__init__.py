"""IR to IR: one pass a file, and `PASSES`, the registry, in the order in which the pipeline runs them."""

from __future__ import annotations

import importlib
import importlib.util

from .pass_base import Pass

# While the passes are being written: those that exist
_NAMES = (
    "FusionImportExtern",
    "FusionSelectLibrary",
    "FusionNormalize",
    "FusionNone",
    "FusionConsecutive",
    "FusionDataflow",
    "FusionSegment",
    "FusionSchedule",
    "FusionPlanMemory",
    "FusionReport",
    "FusionToGpu",
    "FusionToCpu",
    "FusionExpandMath",
)


def _module(name: str) -> str:
    return "".join("_" + letter.lower() if letter.isupper() else letter for letter in name).lstrip("_")


def _existing() -> list[type[Pass]]:
    found = []
    for name in _NAMES:
        try:
            module = importlib.import_module(f".{_module(name)}", __name__)
            found.append(getattr(module, name))
        except (ImportError, AttributeError, SyntaxError, NameError):
            continue
    return found


PASSES: dict[str, type[Pass]] = {cls.name: cls for cls in _existing()}
