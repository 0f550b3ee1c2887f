"""LLVM IR to native code in this process.

    text of LLVM 24 -> module of LLVM 22 -> O3 for the host -> object code -> a library of the JIT

Each module becomes a library with its own names, so that two modules may both define `main`; what a library
does not define itself is looked up among the 16-bit conversions (`conversions.py`), then in the process,
which has the C library's mathematical functions. A missing symbol is an exception.

One feature of the host stays unused: AVX-512's conversion to bfloat flushes subnormal numbers.
"""

from __future__ import annotations

import ctypes
import itertools
import threading
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import cache

import llvmlite.binding as llvmlite

from . import llvm
from .conversions import CONVERSIONS

FLUSHING_FEATURES = ("avx512bf16", "avxneconvert")

CONVERSIONS_LIBRARY = "conversions"

_numbers = itertools.count()
_lock = threading.Lock()
_shared: dict[str, llvmlite.ResourceTracker] = {}


@dataclass(frozen=True)
class NativeObject:
    """Object code for this machine, and the names that it defines and needs."""

    code: bytes
    defined: tuple[str, ...]
    needed: tuple[str, ...]


@dataclass(frozen=True, eq=False)
class NativeModule:
    """Machine code and the names in it. The code lives as long as this object, or a function of it, does."""

    library: llvmlite.ResourceTracker

    def address(self, name: str) -> int:
        """Where a function is."""
        try:
            return self.library[name]
        except KeyError:
            raise KeyError(f"the module defines no function {name!r}") from None

    def function(self, name: str, n_pointers: int) -> Callable[..., None]:
        """A function that takes pointers (as integers) and returns nothing; it does not hold the GIL."""
        callee = ctypes.CFUNCTYPE(None, *[ctypes.c_void_p] * n_pointers)(self.address(name))
        return _Function(self, callee)


@dataclass(frozen=True, eq=False)
class _Function:
    module: NativeModule
    callee: Callable[..., None]

    def __call__(self, *pointers: int) -> None:
        self.callee(*pointers)


def jit(llvm_ir: str) -> NativeModule:
    """Compiles a module for this machine, and loads it."""
    return load(compile_object(llvm_ir))


def compile_object(llvm_ir: str) -> NativeObject:
    """Compiles a module for this machine; the result can be kept, and loaded by another process on it."""
    llvm.initialize()
    return _compile_object(llvm_ir, host_machine(), is_optimized=True)


def compile_portable(llvm_ir: str, is_optimized: bool) -> NativeObject:
    """Compiles a module for every machine with a processor of this architecture."""
    llvm.initialize()
    target = llvmlite.Target.from_triple(llvmlite.get_process_triple())
    # A long list of calls takes LLVM's better instruction selection time that is quadratic in its length
    machine = target.create_target_machine(opt=2 if is_optimized else 0, reloc="pic", jit=True)
    return _compile_object(llvm_ir, machine, is_optimized)


def _compile_object(llvm_ir: str, machine: llvmlite.TargetMachine, is_optimized: bool) -> NativeObject:
    module = llvm.parse(llvm_ir, llvmlite.create_context())
    defined = tuple(function.name for function in module.functions if _is_exported(function))
    needed = tuple(function.name for function in module.functions if function.is_declaration)
    return NativeObject(_compile(module, machine, is_optimized), defined, needed)


def load(compiled: NativeObject, needs: Sequence[str] = (CONVERSIONS_LIBRARY,)) -> NativeModule:
    """Makes object code a library of this process, which may use the libraries that it `needs`."""
    llvm.initialize()
    with _lock:
        if CONVERSIONS_LIBRARY in needs:
            _load_conversions()
        try:
            return NativeModule(_link(f"module_{next(_numbers)}", compiled, needs))
        except RuntimeError as error:
            missing = [name for name in compiled.needed if _is_unknown(name)]
            raise llvm.CodegenError(f"can't link the compiled module; not found: {missing}: {error}") from error


def load_shared(name: str, compiled: NativeObject, imports: Mapping[str, int]) -> None:
    """Makes object code the library `name` of this process, unless there is one; `imports` says where things are."""
    llvm.initialize()
    with _lock:
        if name not in _shared:
            _shared[name] = _link(name, compiled, (), imports)


def is_loaded(name: str) -> bool:
    """Whether this process has a library of this name."""
    return name in _shared


def host_machine() -> llvmlite.TargetMachine:
    """This machine, with everything it has but what would change results."""
    return llvmlite.Target.from_triple(llvmlite.get_process_triple()).create_target_machine(
        cpu=llvmlite.get_host_cpu_name(), features=host_features(), opt=3, reloc="pic", jit=True
    )


def host_features() -> str:
    """What this machine has and code may use, as LLVM spells it."""
    features = llvmlite.get_host_cpu_features()
    features.update({name: False for name in FLUSHING_FEATURES if name in features})
    return features.flatten()


def _compile(module: llvmlite.ModuleRef, machine: llvmlite.TargetMachine, is_optimized: bool) -> bytes:
    llvm.retarget(module, machine)
    if is_optimized:
        llvm.optimize(module, machine)
    return machine.emit_object(module)


@cache
def _engine() -> llvmlite.LLJIT:
    return llvmlite.create_lljit_compiler(host_machine(), use_jit_link=True, suppress_errors=True)


def compile_conversions() -> NativeObject:
    """The library `conversions`, which kernels may use; it can be kept, and handed to `load_shared`."""
    return compile_object(CONVERSIONS)


def _load_conversions() -> None:
    if CONVERSIONS_LIBRARY not in _shared:
        _shared[CONVERSIONS_LIBRARY] = _link(CONVERSIONS_LIBRARY, compile_conversions(), ())


def _link(
    library: str, compiled: NativeObject, needs: Sequence[str], imports: Mapping[str, int] | None = None
) -> llvmlite.ResourceTracker:
    builder = llvmlite.JITLibraryBuilder().add_object_img(compiled.code)
    for needed in needs:
        builder.add_jit_library(needed)
    builder.add_current_process()
    for name, address in (imports or {}).items():
        builder.import_symbol(name, address)
    for name in compiled.defined:
        builder.export_symbol(name)
    return builder.link(_engine(), library)


def _is_exported(function: llvmlite.ValueRef) -> bool:
    return not function.is_declaration and function.linkage == llvmlite.Linkage.external


def _is_unknown(name: str) -> bool:
    return not name.startswith("llvm.") and llvmlite.address_of_symbol(name) is None
