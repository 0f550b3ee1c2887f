"""A GPU kernel's code, and where it was loaded: shared by all programs that launch it."""

from __future__ import annotations

import threading
from dataclasses import dataclass, field


@dataclass(frozen=True, eq=False)
class Image:
    """PTX text or a cubin, loaded once a device."""

    code: str | bytes
    modules: dict[int, object] = field(default_factory=dict)
    """The driver's handle of it, by device."""
    lock: threading.Lock = field(default_factory=threading.Lock)


@dataclass(frozen=True)
class Entry:
    """A kernel in an image: the code's own name for it, which need not be the program's."""

    image: Image
    name: str
