"""Runs kernels that were compiled to native code for the CPU.

A kernel is a C function whose arguments are base pointers and scalars, in the order of its MLIR signature.
It returns nothing, or, if it checks indices, an int that is not 0 where one was out of range.
"""

from __future__ import annotations

import ctypes
from typing import Protocol

import torch

from .launch import Entries, Launch, Queue, is_pointer

SCALARS: dict[str, type] = {
    "index": ctypes.c_int64,
    "i64": ctypes.c_int64,
    "i32": ctypes.c_int32,
    "i16": ctypes.c_int16,
    "i8": ctypes.c_int8,
    "i1": ctypes.c_bool,
    "f32": ctypes.c_float,
    "f64": ctypes.c_double,
}

NO_QUEUE = Queue(0, 0)


class NativeCode(Protocol):
    """Machine code in this process."""

    def address(self, name: str) -> int:
        """The address of a function."""
        ...


class NativeLauncher:
    """Calls the kernels of native code; a call returns when the kernel has ended."""

    device_type = "cpu"
    entries = Entries()
    allocate = None
    stretch = None
    prepare = None

    def __init__(self, code: NativeCode) -> None:
        self._code = code

    def queue(self, device: torch.device) -> Queue:
        """There is none on the CPU."""
        return NO_QUEUE

    def function(self, launch: Launch, device: int) -> int:
        """A kernel's address; TypeError where it takes something that C can't pass."""
        for parameter in launch.parameters:
            argument_type(parameter)
        return self._code.address(launch.kernel)

    def failure(self, doing: str, what: str, status: int) -> Exception:
        """A kernel that checks indices says that one was out of range."""
        return IndexError(f"index out of range in {what}")


def argument_type(parameter: str) -> type:
    """The C type in which an argument of this MLIR type is passed; TypeError if it can't be."""
    if is_pointer(parameter):
        return ctypes.c_void_p
    if parameter not in SCALARS:
        raise TypeError(f"a kernel can't take an argument of type {parameter}")
    return SCALARS[parameter]
