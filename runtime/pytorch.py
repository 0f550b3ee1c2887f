"""What native code needs of this process's interpreter and PyTorch: addresses, numbers of dtypes, places of handles.

A tensor object holds its `at::Tensor` right behind the object's header in every PyTorch this was tried on (2.11, 2.13);
others had a word in between. It is looked for at both places and has to be the one that `tensor._cdata` names, for a
tensor, a parameter and an object of a subclass; where it is not found, native code asks each tensor for `_cdata`.
"""

from __future__ import annotations

import ctypes
import os
import sys
from collections.abc import Callable, Iterable

import torch

from .dtypes import dtype_name

HEADER_BYTES = object.__basicsize__
WORD_BYTES = 8
DTYPE_NUMBERS = (
    *(torch.uint8, torch.int8, torch.int16, torch.int32, torch.int64, torch.float16, torch.float32, torch.float64),
    *(torch.complex32, torch.complex64, torch.complex128, torch.bool),
)
"""In the order of PyTorch's own enumeration; the others are asked for by name."""
DEVICE_TYPES = {"cpu": 0, "cuda": 1}
METH_O = 8


class MethodDefinition(ctypes.Structure):
    """CPython's PyMethodDef."""

    _fields_ = (
        ("name", ctypes.c_char_p),
        ("function", ctypes.c_void_p),
        ("flags", ctypes.c_int),
        ("text", ctypes.c_char_p),
    )


def symbols(of_python: Iterable[str], of_torch: Iterable[str]) -> dict[str, int]:
    """Where the interpreter and PyTorch's CPU library have these functions; RuntimeError names one that is missing."""
    library = torch_library("libtorch_cpu.so")
    found = {name: address_of(ctypes.pythonapi, name) for name in of_python}
    return found | {name: address_of(library, name) for name in of_torch}


def torch_library(name: str) -> ctypes.CDLL:
    """A library of the torch wheel; it is loaded already."""
    return ctypes.CDLL(os.path.join(os.path.dirname(torch.__file__), "lib", name))


def address_of(library: ctypes.CDLL, name: str) -> int:
    """Where a library has a function; RuntimeError where it has none."""
    try:
        return ctypes.cast(getattr(library, name), ctypes.c_void_p).value or 0
    except AttributeError:
        raise RuntimeError(f"{library._name or sys.executable} has no {name}; torch is {torch.__version__}") from None


def tensor_offset() -> int:
    """How many bytes into a tensor object its `at::Tensor` lies; -1 where that can't be told."""

    class Subclass(torch.Tensor):
        """Of another size than a tensor: it has attributes."""

    plain = torch.zeros(1)
    examples = (plain, torch.nn.Parameter(plain.clone()), plain.clone().as_subclass(Subclass))
    places = (HEADER_BYTES, HEADER_BYTES + WORD_BYTES)
    return next((place for place in places if all(_is_at(place, example) for example in examples)), -1)


def _is_at(place: int, tensor: torch.Tensor) -> bool:
    return ctypes.c_void_p.from_address(id(tensor) + place).value == tensor._cdata


def dtype_number(dtype: torch.dtype) -> int:
    """The number that PyTorch's C interface has for a dtype."""
    if dtype in DTYPE_NUMBERS:
        return DTYPE_NUMBERS.index(dtype)
    name = dtype_name(dtype)
    return int(getattr(torch_library("libtorch_cpu.so"), f"aoti_torch_dtype_{name}")())


def allocator(device_type: str) -> Callable[[tuple[int, ...], tuple[int, ...], torch.dtype], torch.Tensor]:
    """The function by which torch.compile's programs allocate on the current device: sizes, strides, dtype."""
    guards = torch._C._dynamo.guards  # pyright: ignore[reportAttributeAccessIssue]
    return guards._empty_strided_cuda if device_type == "cuda" else guards._empty_strided_cpu


def native_method(definition: MethodDefinition, program: int) -> Callable[[list], list | None]:
    """A Python function of one argument that is native code; it is handed a capsule with `program`, an address.

    The caller keeps the definition, the code and what is at the address for as long as it keeps the function.
    """
    api = ctypes.pythonapi
    api.PyCapsule_New.restype = ctypes.py_object
    api.PyCapsule_New.argtypes = [ctypes.c_void_p, ctypes.c_char_p, ctypes.c_void_p]
    api.PyCMethod_New.restype = ctypes.py_object
    api.PyCMethod_New.argtypes = [
        ctypes.POINTER(MethodDefinition),
        ctypes.py_object,
        ctypes.c_void_p,
        ctypes.c_void_p,
    ]
    return api.PyCMethod_New(ctypes.byref(definition), api.PyCapsule_New(program, None, None), None, None)


def method_definition(name: str, address: int) -> MethodDefinition:
    """Native code at an address as a function that takes one object."""
    return MethodDefinition(name.encode(), address, METH_O, b"A compiled program: takes the list of its arguments.")
