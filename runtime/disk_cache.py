"""Compiled code in a folder, for other processes: `MLIR_FUSION_CACHE_DIR`, or `mlir-fusion` in the user's cache folder.

An entry is a file, named by what it was made from:

    mlir-fusion cache entry 1          what it is, and the format
    9f86d08...                         SHA-256 of what follows
    {"key": "2c26b4...", ...}          a line of JSON
    bytes                              code, or MLIR's text

It is data: reading one runs nothing. It appears whole or not at all (written under another name, then renamed), so
any number of processes may write, and be killed, at once; two that write one key write equally good entries. What
is torn or altered all the same fails its checksum: it is reported, removed, and made anew. A folder that can't be
written, or a full disk, is reported once and costs the cache, nothing else. When the folder grows beyond its limit,
what was used longest ago goes.

(The libraries for this keep pickles, or a database that network file systems corrupt.)
"""

from __future__ import annotations

import hashlib
import json
import logging
import os
import tempfile
import threading
import time
from collections.abc import Iterator, Mapping
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

FOLDER_VARIABLE = "MLIR_FUSION_CACHE_DIR"
MAGIC = b"mlir-fusion cache entry 1\n"
TEMPORARY = ".tmp-"
ABANDONED_SECONDS = 3600
"""A temporary file this old belongs to a process that was killed."""
LOW_WATER = 0.9
"""How full the folder is after the oldest have gone."""
WRITES_PER_SCAN = 16
"""The folder is measured again after this part of its limit was written."""
LOG = logging.getLogger("mlir_fusion.cache")

Header = Mapping[str, object]


@dataclass(frozen=True)
class Entry:
    """What was kept: a few words, and bytes."""

    header: Header
    body: bytes


@dataclass(frozen=True)
class Info:
    """What is in the folder: files and bytes by kind."""

    folder: Path
    kinds: Mapping[str, tuple[int, int]]

    def __str__(self) -> str:
        files, size = (sum(column) for column in zip(*self.kinds.values(), (0, 0), strict=True))
        lines = [f"{self.folder}: {files} entries, {size:,} bytes"]
        lines += [f"  {kind:<10}{count:>8} entries {total:>16,} bytes" for kind, (count, total) in self.kinds.items()]
        return "\n".join(lines) + "\n"


class DiskCache:
    """The entries of a folder, by kind and key. No method raises for what the file system does."""

    def __init__(self, folder: Path, limit: int) -> None:
        """`limit` in bytes."""
        self.folder = folder
        self.limit = limit

    def get(self, kind: str, key: str) -> Entry | None:
        """The entry, or None if there is none or it is not what was written."""
        path = self._path(kind, key)
        try:
            content = path.read_bytes()
        except FileNotFoundError:
            return None
        except OSError as error:
            _report(path.parent, f"can't read the compiled code in {path.parent}: {error.strerror}")
            return None
        try:
            entry = _decode(content, key)
        except ValueError as error:
            _report(path, f"{path}: {error}; it is made again")
            _remove(path)
            return None
        with suppress(OSError):
            os.utime(path)
        return entry

    def has(self, kind: str, key: str) -> bool:
        """Whether there is an entry, good or bad."""
        return self._path(kind, key).exists()

    def put(self, kind: str, key: str, header: Header, body: bytes) -> None:
        """Keeps an entry."""
        content = _encode(key, header, body)
        if len(content) > self.limit:
            return
        path = self._path(kind, key)
        try:
            _write(path, content)
        except OSError as error:
            _report(self.folder, f"can't keep compiled code in {self.folder}, going on without: {error.strerror}")
            return
        if _growth.is_due(self.folder, len(content), self.limit):
            self.trim()

    def trim(self) -> None:
        """Removes what killed processes left behind and, beyond the limit, what was used longest ago."""
        now, files = time.time(), []
        for path, status in _files(self.folder):
            if not path.name.startswith(TEMPORARY):
                files.append((status.st_mtime, status.st_size, path))
            elif now - status.st_mtime > ABANDONED_SECONDS:
                _remove(path)
        total = sum(size for _, size, _ in files)
        if total <= self.limit:
            return
        for _, size, path in sorted(files):
            if total <= self.limit * LOW_WATER:
                break
            _remove(path)
            total -= size

    def clear(self) -> int:
        """Removes all entries; returns how many."""
        paths = [path for path, _ in _files(self.folder)]
        for path in paths:
            _remove(path)
        return sum(not path.name.startswith(TEMPORARY) for path in paths)

    def info(self) -> Info:
        """How much there is."""
        kinds: dict[str, tuple[int, int]] = {}
        for path, status in _files(self.folder):
            if not path.name.startswith(TEMPORARY):
                kind = path.relative_to(self.folder).parts[0]
                count, size = kinds.get(kind, (0, 0))
                kinds[kind] = count + 1, size + status.st_size
        return Info(self.folder, dict(sorted(kinds.items())))

    def _path(self, kind: str, key: str) -> Path:
        return self.folder / kind / key[:2] / key


def cache_folder(environment: Mapping[str, str]) -> Path | None:
    """Where compiled code is kept; None where the user has no folder."""
    named = environment.get(FOLDER_VARIABLE)
    if named:
        return Path(named).absolute()
    base = environment.get("XDG_CACHE_HOME")
    if base and Path(base).is_absolute():
        return Path(base) / "mlir-fusion"
    try:
        return Path.home() / ".cache" / "mlir-fusion"
    except RuntimeError:
        return None


class _Growth:
    """How much this process wrote to each folder since it last measured it."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._written: dict[Path, int] = {}

    def is_due(self, folder: Path, size: int, limit: int) -> bool:
        """Notes a write; whether the folder should be measured now, as after the first write."""
        with self._lock:
            written = self._written.get(folder, limit) + size
            due = written * WRITES_PER_SCAN >= limit
            self._written[folder] = 0 if due else written
            return due


_growth = _Growth()
_reported: set[Path] = set()


def _report(subject: Path, message: str) -> None:
    """Warns, once a process for each subject."""
    if subject not in _reported:
        _reported.add(subject)
        LOG.warning("%s", message)


def _encode(key: str, header: Header, body: bytes) -> bytes:
    rest = json.dumps({"key": key, **header}).encode() + b"\n" + body
    return MAGIC + hashlib.sha256(rest).hexdigest().encode() + b"\n" + rest


def _decode(content: bytes, key: str) -> Entry:
    """ValueError, with the reason, for anything that `_encode` did not write for this key."""
    if not content.startswith(MAGIC):
        raise ValueError("not an entry of this cache")
    digest, _, rest = content[len(MAGIC) :].partition(b"\n")
    if hashlib.sha256(rest).hexdigest().encode() != digest:
        raise ValueError("the checksum is wrong")
    line, _, body = rest.partition(b"\n")
    header = json.loads(line)
    if header.pop("key") != key:
        raise ValueError("it was made from something else")
    return Entry(header, body)


def _write(path: Path, content: bytes) -> None:
    path.parent.mkdir(parents=True, exist_ok=True, mode=0o700)
    descriptor, temporary = tempfile.mkstemp(prefix=TEMPORARY, dir=path.parent)
    try:
        with os.fdopen(descriptor, "wb") as file:
            file.write(content)
        os.replace(temporary, path)
    except BaseException:
        _remove(Path(temporary))
        raise


def _files(folder: Path) -> Iterator[tuple[Path, os.stat_result]]:
    """Every file below a folder, but for those that vanish meanwhile."""
    for parent, _, names in os.walk(folder):
        for name in names:
            path = Path(parent, name)
            with suppress(OSError):
                yield path, path.stat()


def _remove(path: Path) -> None:
    with suppress(OSError):
        path.unlink()
