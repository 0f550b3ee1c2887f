"""A program's memory for native code: words, lists and Python objects, laid out as host_helpers.py says."""

from __future__ import annotations

import ctypes
import functools
import struct
from collections.abc import Callable, Sequence

import torch

from . import pytorch
from .arguments import ScalarArgument, TensorArgument
from .host_function import Allocation, HostFunction, Library
from .host_helpers import ARGUMENT, FLOAT32, FLOAT64, INTEGER, LAUNCHING, RUNNING, STARTING, TENSOR, UPDATING
from .launch import Argument, Launch, Launched, Launcher
from .library_results import settle

DOING = {LAUNCHING: "launching", RUNNING: "running", UPDATING: "updating", STARTING: "launching"}
KINDS = {"f32": FLOAT32, "f64": FLOAT64}
FORMATS = {"f32": "f", "f64": "d"}


class Memory:
    """Keeps what native code points at for as long as it lives."""

    def __init__(self) -> None:
        self._kept: list[object] = []

    def words(self, values: Sequence[int]) -> int:
        """The address of these words; 0 for none."""
        if not values:
            return 0
        array = (ctypes.c_int64 * len(values))(*values)
        self._kept.append(array)
        return ctypes.addressof(array)

    def object(self, value: object) -> int:
        """A Python object's address."""
        self._kept.append(value)
        return id(value)

    def objects(self, values: Sequence[object]) -> int:
        """The address of a list of objects."""
        return self.words([self.object(value) for value in values])


def program_words(function: HostFunction, launcher: Launcher, memory: Memory) -> dict[str, int]:
    """What native code reads of a program, by name, but for its devices and stretches."""
    entries = launcher.entries
    prepare, failure = launcher.prepare, launcher.failure
    launchers = [_in_python(launcher, prepare(launch), launch) for launch in function.launches] if prepare else []
    allocations = [part for one in function.allocations for part in _allocation(one, launcher)]
    return {
        "n_arguments": len(function.arguments),
        "arguments": memory.words([word for one in function.arguments for word in _argument(one, memory)]),
        "device_type": pytorch.DEVICE_TYPES[launcher.device_type],
        "allocations": memory.objects(allocations),
        "libraries": memory.objects([_library(one, launcher.device_type) for one in function.libraries]),
        "launchers": memory.objects(launchers),
        "on_failure": memory.object(_failing(function, failure)) if failure else 0,
        "on_allocation": memory.object(_allocating(function, launcher)),
        "without_gradients": int(bool(function.libraries)),
        "launch": entries.launch if entries else 0,
        "current_stream": entries.current_stream if entries else 0,
        "current_context": entries.current_context if entries else 0,
        "synchronize": entries.synchronize if entries else 0,
        "update": entries.update if entries else 0,
        "launch_graph": entries.launch_graph if entries else 0,
        "is_capturing": entries.is_capturing if entries else 0,
        "tensor_offset": tensor_offset(),
        "tensor_type": id(torch.Tensor),
    }


tensor_offset = functools.cache(pytorch.tensor_offset)


def current_device(kind: str) -> torch.device:
    """PyTorch's current device of a kind."""
    return torch.device("cuda", torch.cuda.current_device()) if kind == "cuda" else torch.device(kind)


def _argument(argument: TensorArgument | ScalarArgument, memory: Memory) -> list[int]:
    if isinstance(argument, ScalarArgument):
        values = {"kind": KINDS.get(argument.type, INTEGER)}
    else:
        is_known = min(argument.strides, default=0) >= 0
        values = {
            "kind": TENSOR,
            "dtype": pytorch.dtype_number(argument.dtype),
            "is_anywhere": int(argument.is_anywhere),
            "rank": len(argument.shape),
            "sizes": memory.words(argument.shape),
            # Of a scalar there are none to compare, whatever is said
            "strides": memory.words(argument.strides) if is_known else 0,
            "offset_bytes": argument.offset_bytes,
        }
    return [values.get(name, 0) for name in ARGUMENT]


def _allocation(allocation: Allocation, launcher: Launcher) -> list[object]:
    """A function and its operands."""
    own = launcher.allocate
    if own is None:
        return [pytorch.allocator(launcher.device_type), allocation.shape, allocation.strides, allocation.dtype]

    def allocate(shape: Sequence[int], strides: Sequence[int], dtype: torch.dtype) -> torch.Tensor:
        return own(shape, strides, dtype, current_device(launcher.device_type))

    return [allocate, allocation.shape, allocation.strides, allocation.dtype]


def _allocating(function: HostFunction, launcher: Launcher) -> Callable[[int], torch.Tensor]:
    """Tries again where an allocation failed; an error then says what it was for."""

    def allocate(number: int) -> torch.Tensor:
        made = function.allocations[number]
        try:
            allocate, *operands = _allocation(made, launcher)
            return allocate(*operands)  # pyright: ignore[reportCallIssue]
        except torch.OutOfMemoryError as error:
            raise torch.OutOfMemoryError(f"{error}\nThis was for {made}") from None
        except RuntimeError as error:
            raise RuntimeError(f"{error}\nThis was for {made}") from None

    return allocate


def _failing(function: HostFunction, failure: Callable[[str, str, int], Exception]) -> Callable[[int, int, int], None]:
    """Raises for a status, the number of a launch (or a stretch), and what was being done."""

    def fail(status: int, number: int, doing: int) -> None:
        if doing == STARTING:
            what = f"{len(function.stretches[number])} kernels at once, the first being {function.stretches[number][0]}"
        else:
            what = str(function.launches[number])
        raise failure(DOING[doing], what, status)

    return fail


def _in_python(launcher: Launcher, launched: Launched, launch: Launch) -> Callable[..., None]:
    """A launch as a function of words."""
    readers = [_reader(parameter) for parameter in launch.parameters]

    def run(*words: int) -> None:
        queue = launcher.queue(current_device(launcher.device_type))
        launched(queue, [reader(word) for reader, word in zip(readers, words, strict=True)])

    return run


def _reader(parameter: str) -> Callable[[int], Argument]:
    if parameter not in FORMATS:
        return int
    return lambda word: struct.unpack_from(FORMATS[parameter], struct.pack("q", word))[0]


def _library(library: Library, kind: str) -> Callable[..., object]:
    """A library call as a function of the objects of its operands; one result is returned as it is."""
    calls = {}

    def call(*objects: object) -> object:
        device = current_device(kind)
        if device not in calls:
            calls[device] = library.call.on(device)
        operands = [operand.of(value) for operand, value in zip(library.operands, objects, strict=True)]
        results = settle(library.name, calls[device](operands), operands, library.outputs)
        return results[0] if len(results) == 1 else tuple(results)

    return call
