"""A compiled program in one file: what `mlir_fusion.export` writes and `mlir_fusion.load` runs.

    mlir-fusion package 1              what it is, and the format
    9f86d08...                         SHA-256 of the next line
    {"sections": {...}, ...}           a line of JSON: what was compiled for what, and where each section is
    sections                           the host program's text, kernels' code, and, last, the weights

It is data: reading one runs nothing. Each section's place, size and (but for weights) checksum are in the JSON, so that
a file that was cut off or altered is refused before anything of it is used.
"""

from __future__ import annotations

import hashlib
import json
import mmap
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

MAGIC = b"mlir-fusion package "
FORMAT = 1
WEIGHTS = "weights"
ALIGNMENT = 64
"""Bytes; of a section's place in the file."""


class PackageError(ValueError):
    """A file that is not a package that this version can use."""


@dataclass(frozen=True)
class Package:
    """What a file holds: words, and bytes by name."""

    header: Mapping[str, object]
    sections: Mapping[str, bytes | memoryview]


def write(path: str | Path, package: Package) -> None:
    """Writes the file; OSError where that can't be done."""
    places, start = {}, 0
    for name, content in package.sections.items():
        checksum = "" if name == WEIGHTS else hashlib.sha256(content).hexdigest()
        places[name] = {"start": start, "size": len(content), "sha256": checksum}
        start = _aligned(start + len(content))
    line = json.dumps({**package.header, "sections": places}).encode() + b"\n"
    head = MAGIC + f"{FORMAT}\n".encode() + hashlib.sha256(line).hexdigest().encode() + b"\n" + line
    with open(path, "wb") as file:
        file.write(head.ljust(_aligned(len(head)), b"\n"))
        first = file.tell()
        for name, content in package.sections.items():
            file.write(b"\0" * (first + places[name]["start"] - file.tell()))
            file.write(content)


def read(path: str | Path) -> Package:
    """What the file holds; PackageError, with the reason, where it is not a whole package of this format."""
    with open(path, "rb") as file:
        if not file.read(1):
            raise PackageError(f"{path}: the file is empty")
        content = memoryview(mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_COPY))
    head, first = _head(path, content)
    header = json.loads(head)
    sections: dict[str, bytes | memoryview] = {}
    for name, place in header.pop("sections").items():
        start = first + place["start"]
        part = content[start : start + place["size"]]
        if len(part) != place["size"]:
            raise PackageError(f"{path}: the file ends in its section '{name}': it was cut off")
        if place["sha256"] and hashlib.sha256(part).hexdigest() != place["sha256"]:
            raise PackageError(f"{path}: the checksum of section '{name}' is wrong: the file was altered")
        sections[name] = part
    return Package(header, sections)


def _head(path: str | Path, content: memoryview) -> tuple[bytes, int]:
    """The line of JSON, and where the first section starts."""
    if bytes(content[: len(MAGIC)]) != MAGIC:
        raise PackageError(f"{path}: this is no file of mlir_fusion.export")
    lines, end = [], 0
    for _ in range(3):
        stop = content.obj.find(b"\n", end)  # pyright: ignore[reportAttributeAccessIssue]
        if stop < 0:
            raise PackageError(f"{path}: the file ends in its head: it was cut off")
        lines.append(bytes(content[end : stop + 1]))
        end = stop + 1
    version = lines[0][len(MAGIC) :].decode(errors="replace").strip()
    if version != str(FORMAT):
        raise PackageError(
            f"{path}: format {version}, this version of mlir_fusion reads format {FORMAT}: export it again"
        )
    if hashlib.sha256(lines[2]).hexdigest() != lines[1].decode(errors="replace").strip():
        raise PackageError(f"{path}: the checksum of its head is wrong: the file was altered")
    return lines[2], _aligned(end)


def _aligned(place: int) -> int:
    return -(-place // ALIGNMENT) * ALIGNMENT
