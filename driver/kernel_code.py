"""Machine code for the kernels of a program, each compiled by itself, and equal ones once.

Two kernels are equal if their functions at stage gpu are but for names and locations (passes/split_kernels.py). Then
they share machine code, also across programs, and what was loaded of it; on disk, also across processes.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import TypeVar

from ..dialects.mlir import ir
from ..passes.split_kernels import alone, kernels_in, text_of
from ..runtime.disk_cache import DiskCache
from ..runtime.disk_cache import Entry as DiskEntry
from ..runtime.image import Entry, Image
from ..targets import cpu, nvptx
from ..targets.lowering import translate
from ..targets.target import Target
from .cache import Counts, Memory
from .fingerprint import code_generator, digest
from .levels import nested_modules
from .lower import lower
from .native_objects import from_header, header_of, kept
from .options import Options

Made = TypeVar("Made", "Entry", "NativeKernel")

DISK_KIND = "kernels"
MOST_KERNELS = 4096


@dataclass(frozen=True, eq=False)
class NativeKernel:
    """A kernel in a library of this process: the code's own name for it need not be the program's."""

    code: cpu.NativeObject
    module: cpu.NativeModule
    name: str


@dataclass(frozen=True)
class PtxCode:
    """The kernels of a program for a GPU, by the program's names."""

    kernels: dict[str, Entry]


@dataclass(frozen=True, eq=False)
class NativeCode:
    """The kernels of a program for the CPU, by the program's names."""

    kernels: dict[str, NativeKernel]

    def address(self, name: str) -> int:
        """Where a kernel is."""
        if name not in self.kernels:
            raise KeyError(f"the program has no kernel {name!r}")
        return self.kernels[name].module.address(self.kernels[name].name)

    def function(self, name: str, n_pointers: int) -> Callable[..., None]:
        """A kernel that takes pointers, as integers."""
        kernel = self.kernels[name]
        return kernel.module.function(kernel.name, n_pointers)


@dataclass(frozen=True, eq=False)
class SimtCode:
    """The kernels of a program for the checker, by the program's names: the `gpu.func`s themselves."""

    kernels: dict[str, ir.Operation]


_images: Memory[Entry] = Memory(MOST_KERNELS)
_natives: Memory[NativeKernel] = Memory(MOST_KERNELS)


def forget_kernels() -> None:
    """Makes the process forget what it compiled, as a new one would not know it; for tests."""
    _images.clear()
    _natives.clear()


def kernel_keys(host: ir.Module, target: Target) -> dict[str, str]:
    """What each kernel's code depends on, by the kernel's name."""
    with host.context:
        return {
            name: digest(text_of(nested, kernel), target.name, code_generator(target.kind))
            for nested in nested_modules(host)
            for name, kernel in kernels_in(nested)
        }


@dataclass
class KernelCompiler:
    """Compiles the kernels of one program, which is at stage gpu."""

    host: ir.Module
    options: Options
    counts: Counts
    disk: DiskCache | None

    def compile(self, keys: dict[str, str]) -> PtxCode | NativeCode | SimtCode:
        """The code of the kernels with these names and keys."""
        if self.target.kind == "simt":
            # Not shared: what it finds is told at each kernel's own location
            return SimtCode({name: op for nested in nested_modules(self.host) for name, op in kernels_in(nested)})
        if self.target.kind == "cpu":
            self._use_conversions()
            return NativeCode({name: self._get(_natives, name, key, self._native) for name, key in keys.items()})
        return PtxCode({name: self._get(_images, name, key, self._image) for name, key in keys.items()})

    @property
    def target(self) -> Target:
        """What is compiled for."""
        return Target.parse(self.options.target)

    def _get(self, memory: Memory[Made], name: str, key: str, make: Callable[[str, str], Made]) -> Made:
        if not self.options.kernel_reuse:
            self.counts.miss("kernels")
            return make(name, "")
        found, was_there = memory.get_or_make(key, lambda: make(name, key))
        if was_there:
            self.counts.hit("kernels")
        # Also where it was made for a program that wanted no disk
        if self.disk and not self.disk.has(DISK_KIND, key):
            self.disk.put(DISK_KIND, key, *_as_entry(found))
        return found

    def _image(self, name: str, key: str) -> Entry:
        entry = self._from_disk(key)
        if entry is None:
            return Entry(Image(nvptx.compile_to_ptx(self._llvm_ir(name), self.target)), name)
        return Entry(Image(entry.body.decode()), str(entry.header["entry"]))

    def _native(self, name: str, key: str) -> NativeKernel:
        entry = self._from_disk(key)
        made = cpu.compile_object(self._llvm_ir(name)) if entry is None else from_header(entry.header, entry.body)
        return NativeKernel(made, cpu.load(made), name if entry is None else str(entry.header["entry"]))

    def _use_conversions(self) -> None:
        """What 16-bit floats need takes as long as several kernels, so it is kept like one."""
        name = cpu.CONVERSIONS_LIBRARY
        if self.disk is not None and not cpu.is_loaded(name):
            cpu.load_shared(name, kept(self.disk, name, "", cpu.compile_conversions), {})

    def _from_disk(self, key: str) -> DiskEntry | None:
        entry = self.disk.get(DISK_KIND, key) if self.disk and key else None
        if entry is not None:
            self.counts.hit("kernels", from_disk=True)
        elif key:
            self.counts.miss("kernels")
        return entry

    def _llvm_ir(self, name: str) -> str:
        with self.host.context:
            places = ((nested, op) for nested in nested_modules(self.host) for op in kernels_in(nested))
            module = next(alone(nested, kernel) for nested, (found, kernel) in places if found == name)
            lower(module, self.options, "llvm" if self.target.kind == "cpu" else "nvvm")
            return translate(next(nested_modules(module)))


def _as_entry(kernel: Entry | NativeKernel) -> tuple[dict[str, object], bytes]:
    """What is kept on disk of a kernel: a header and code."""
    if isinstance(kernel, NativeKernel):
        return {"entry": kernel.name, **header_of(kernel.code)}, kernel.code.code
    text = kernel.image.code
    return {"entry": kernel.name}, text.encode() if isinstance(text, str) else text
