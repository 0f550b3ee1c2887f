"""The stages down to stage gpu, each taken from the cache where its input and its options were seen before.

    text --fusion--> regions --segment--> kernels --schedule--> schedules --codegen--> host program and GPU code

A stage's key is its input's text, locations included, and the options that affect it or an earlier stage. So
changing a schedule option finds the regions that were made before, and no option can lead to what another value
made. The text of the whole way's end is kept on disk too, with the keys of its kernels.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import cast

from ..dialects.mlir import ir
from ..runtime.disk_cache import DiskCache
from ..targets.target import Target
from .cache import Counts, Memory
from .fingerprint import code_generator, compiler, digest
from .kernel_code import kernel_keys
from .levels import LEVELS, check_nested, detect_level
from .lower import lower
from .options import Affected, Options

Steps = Sequence[tuple[Affected, str]]
STEPS: Steps = (("fusion", "region"), ("segment", "segment"), ("schedule", "schedule"), ("codegen", "gpu"))
"""What options say they affect, and the stage of the compiler that it reaches."""
DISK_KIND = "programs"
MOST_CHARACTERS = 1 << 28


@dataclass(frozen=True)
class Lowered:
    """A program at stage gpu, and what its kernels' code is kept by."""

    text: str
    kernel_keys: dict[str, str]


_texts: Memory[str] = Memory(MOST_CHARACTERS, len)
_programs: Memory[Lowered] = Memory(MOST_CHARACTERS, lambda lowered: len(lowered.text))


def forget_stages() -> None:
    """Makes the process forget what it compiled, as a new one would not know it; for tests."""
    _texts.clear()
    _programs.clear()


def lowered(module: ir.Module, options: Options, counts: Counts, disk: DiskCache | None) -> Lowered:
    """`module`, which is left as it is or changed, at stage gpu."""
    target = Target.parse(options.target)
    with module.context:
        check_nested(module, target)
    level = detect_level(module)
    steps = [step for step in STEPS if LEVELS.index(step[1]) > LEVELS.index(level)]
    text = full_text(module)
    # For the CPU, other machines that share the folder have other code
    key = digest(_key("program", text, options, "codegen"), code_generator(target.kind))

    def make() -> Lowered:
        found = _from_disk(disk, key)
        if found is not None:
            _note_hits(steps, counts, from_disk=True)
            return found
        walked = _walk(module, text, steps, options, counts)
        return Lowered(walked, kernel_keys(ir.Module.parse(walked, module.context), target))

    result, was_there = _programs.get_or_make(key, make)
    if was_there:
        _note_hits(steps, counts, from_disk=False)
    # Also where it was made for one that wanted no disk
    if disk is not None and not disk.has(DISK_KIND, key):
        disk.put(DISK_KIND, key, {"kernels": result.kernel_keys}, result.text.encode())
    return result


def full_text(module: ir.Module) -> str:
    """The module's text, with locations."""
    return module.operation.get_asm(enable_debug_info=True, assume_verified=True)


def _walk(module: ir.Module, text: str, steps: Steps, options: Options, counts: Counts) -> str:
    """The text of the last step's result; only what is not known is computed."""
    place = _Place(module.context, text, module)
    for affected, emit in steps:
        (counts.hit if place.advance(affected, emit, options) else counts.miss)(affected)
    return place.text


@dataclass
class _Place:
    """How far a program is: its text and, where that didn't come from the cache, the module."""

    context: ir.Context
    text: str
    module: ir.Module | None

    def advance(self, affected: Affected, emit: str, options: Options) -> bool:
        """Goes one step; whether its result was there."""
        key = _key(affected, self.text, options, affected)
        self.text, was_there = _texts.get_or_make(key, lambda: self._run(emit, options))
        if was_there:
            self.module = None
        return was_there

    def _run(self, emit: str, options: Options) -> str:
        if self.module is None:
            self.module = ir.Module.parse(self.text, self.context)
        lower(self.module, options, emit)
        return full_text(self.module)


def _key(what: str, text: str, options: Options, affected: Affected) -> str:
    values = options.affecting(affected)
    device = _device_measured_on(options) if values.get("autotune") else ""
    return digest(what, compiler(), repr(values), device, text)


def _device_measured_on(options: Options) -> str:
    from .autotune import device_measured_on  # needs torch, which nothing else here does

    return device_measured_on(options) or ""


def _from_disk(disk: DiskCache | None, key: str) -> Lowered | None:
    entry = disk.get(DISK_KIND, key) if disk is not None else None
    if entry is None:
        return None
    keys = cast(dict[str, str], entry.header["kernels"])
    return Lowered(entry.body.decode(), keys)


def _note_hits(steps: Steps, counts: Counts, from_disk: bool) -> None:
    for affected, _ in steps:
        counts.hit(affected, from_disk)
