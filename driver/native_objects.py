"""Object code that is kept on disk."""

from __future__ import annotations

from collections.abc import Callable, Mapping

from ..runtime.disk_cache import DiskCache
from ..targets.cpu import NativeObject
from .fingerprint import code_generator, digest


def kept(disk: DiskCache | None, kind: str, source: str, make: Callable[[], NativeObject]) -> NativeObject:
    """What `make` makes of `source`, or what it made of it in another process on such a machine."""
    if disk is None:
        return make()
    key = digest(kind, source, code_generator("cpu"))
    entry = disk.get(kind, key)
    if entry is not None:
        return from_header(entry.header, entry.body)
    made = make()
    disk.put(kind, key, header_of(made), made.code)
    return made


def header_of(made: NativeObject) -> dict[str, object]:
    """What is kept of it besides its code."""
    return {"defined": made.defined, "needed": made.needed}


def from_header(header: Mapping[str, object], code: bytes) -> NativeObject:
    """What was kept."""
    defined, needed = (tuple(map(str, header[which])) for which in ("defined", "needed"))  # pyright: ignore
    return NativeObject(code, defined, needed)
