"""Runs kernels on NVIDIA GPUs through the CUDA driver, on PyTorch's current stream and device.

An image is PTX text, which the driver compiles, or a cubin. It is loaded once a device, into the primary
context, which PyTorch uses too, and serves every program with a kernel in it. cuda-bindings is imported when the
first launch is prepared, so this module imports anywhere; tests hand in a driver of their own (`Driver` lists what
is called).

`MLIR_FUSION_SYNC=1` waits for the end of each kernel, so that the kernel at fault is the one that is named.
"""

from __future__ import annotations

import ctypes
import os
from collections.abc import Callable, Mapping, Sequence
from typing import Protocol

import torch

from . import pytorch
from .cubin import LinkingDriver, cubin_of
from .disk_cache import DiskCache
from .image import Entry, Image
from .launch import Entries, Launch, Queue
from .native import argument_type

LOG_BYTES = 16 * 1024
LIBRARY = "libcuda.so.1"

REMEDIES = {
    "CUDA_ERROR_UNSUPPORTED_PTX_VERSION": "the driver is older than the PTX: update it, or name an older target",
    "CUDA_ERROR_INVALID_PTX": "the PTX is for another generation of GPUs, or wrong: name no target",
    "CUDA_ERROR_NO_BINARY_FOR_GPU": "the kernels are for another generation of GPUs: name no target",
    "CUDA_ERROR_NOT_INITIALIZED": "a process forked from one that uses a GPU can't use it: use spawn",
    "CUDA_ERROR_NO_DEVICE": "there is no GPU: target='cpu' needs none",
}
"""What to do about what the driver says, by its name for it."""

Handle = object


class NodeParameters(Protocol):
    """A kernel launch as a graph's node has it; the names are the driver's."""

    func: Handle
    gridDimX: int  # noqa: N815
    gridDimY: int  # noqa: N815
    gridDimZ: int  # noqa: N815
    blockDimX: int  # noqa: N815
    blockDimY: int  # noqa: N815
    blockDimZ: int  # noqa: N815
    sharedMemBytes: int  # noqa: N815
    kernelParams: int  # noqa: N815


class Driver(LinkingDriver, Protocol):
    """What is used of cuda.bindings.driver: every function returns a tuple that starts with its status."""

    CUjit_option: type
    CUfunction_attribute: type
    CUfunction: type
    CUresult: type

    def cuInit(self, flags: int) -> tuple: ...  # noqa: N802
    def cuDevicePrimaryCtxRetain(self, device: int) -> tuple: ...  # noqa: N802
    def cuCtxGetCurrent(self) -> tuple: ...  # noqa: N802
    def cuCtxSetCurrent(self, context: Handle) -> tuple: ...  # noqa: N802
    def cuModuleLoadDataEx(  # noqa: N802
        self, image: bytes, count: int, options: list, values: list
    ) -> tuple: ...
    def cuModuleGetFunction(self, module: Handle, name: bytes) -> tuple: ...  # noqa: N802
    def cuFuncSetAttribute(self, function: Handle, attribute: object, value: int) -> tuple: ...  # noqa: N802
    def CUDA_KERNEL_NODE_PARAMS(self) -> NodeParameters: ...  # noqa: N802
    def cuGraphCreate(self, flags: int) -> tuple: ...  # noqa: N802
    def cuGraphAddKernelNode(  # noqa: N802
        self, graph: Handle, after: list[Handle], count: int, parameters: NodeParameters
    ) -> tuple: ...
    def cuGraphInstantiate(self, graph: Handle, flags: int) -> tuple: ...  # noqa: N802
    def cuGraphDestroy(self, graph: Handle) -> tuple: ...  # noqa: N802
    def cuGraphExecDestroy(self, executable: Handle) -> tuple: ...  # noqa: N802
    def cuGetErrorName(self, status: object) -> tuple: ...  # noqa: N802
    def cuGetErrorString(self, status: object) -> tuple: ...  # noqa: N802


class CudaLauncher:
    """Launches the kernels of one image, or of several by the program's names for them.

    Safe to use from several threads, streams and devices.
    """

    device_type = "cuda"
    allocate = None
    stretch: Callable[[Sequence[Launch], int], int] | None = None
    prepare = None

    def __init__(
        self, code: str | bytes | Mapping[str, Entry], driver: Driver | None = None, disk: DiskCache | None = None
    ) -> None:
        """`disk` is where the driver's translations of PTX are kept."""
        self._entry_points: Entries | None = None
        self._stretches: list[object] = []
        self._entries = code if isinstance(code, Mapping) else _EveryName(Image(code))
        self._driver = driver
        self._disk = disk
        self.synchronizes = os.environ.get("MLIR_FUSION_SYNC", "0") not in ("", "0")

    def queue(self, device: torch.device) -> Queue:
        """PyTorch's current stream; also gives a thread that has not used CUDA yet its context."""
        index = device.index if device.index is not None else torch.cuda.current_device()
        self._bind_context(index)
        return Queue(index, torch._C._cuda_getCurrentRawStream(index))

    @property
    def entries(self) -> Entries | None:
        """The driver's functions, from its library, which the started driver has loaded."""
        if self._entry_points is None:
            self.loaded_driver()
            self._entry_points = find_entries(self.synchronizes)
        return self._entry_points

    def failure(self, doing: str, what: str, status: int) -> Exception:
        """What the driver says."""
        return RuntimeError(self._message(self.loaded_driver().CUresult(status), f"{doing} {what}"))

    def function(self, launch: Launch, device: int) -> int:
        """The driver's handle of a kernel, which is loaded on this device if it is not yet."""
        for parameter in launch.parameters:
            argument_type(parameter)
        driver, entry = self.loaded_driver(), self._entries[launch.kernel]
        module = self._module(entry.image, device)
        what = f"looking up {launch}"
        (function,) = self.call(what, *driver.cuModuleGetFunction(module, entry.name.encode()))
        if launch.shared_bytes:
            # Together with what the kernel has by itself, even few bytes may be more than it may have without asking
            attribute = driver.CUfunction_attribute.CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES  # pyright: ignore
            status = driver.cuFuncSetAttribute(function, attribute, launch.shared_bytes)
            self.call(f"reserving {launch.shared_bytes} bytes of shared memory for {launch}", *status)
        return int(function)  # pyright: ignore[reportArgumentType]

    def _module(self, image: Image, device: int) -> Handle:
        with image.lock:
            if device not in image.modules:
                self._bind_context(device)
                image.modules[device] = self._load(self._code(image, device))
            return image.modules[device]

    def _code(self, image: Image, device: int) -> str | bytes:
        """What the driver is given: PTX, unless its translation is to be kept."""
        if self._disk is None or isinstance(image.code, bytes):
            return image.code
        return cubin_of(image.code, device, self._disk, self.loaded_driver(), self.call)

    def _load(self, code: str | bytes) -> Handle:
        driver, log = self.loaded_driver(), bytearray(LOG_BYTES)
        image = code.encode() + b"\0" if isinstance(code, str) else code
        options = driver.CUjit_option
        keys = [options.CU_JIT_ERROR_LOG_BUFFER, options.CU_JIT_ERROR_LOG_BUFFER_SIZE_BYTES]  # pyright: ignore
        status, module = driver.cuModuleLoadDataEx(image, len(keys), keys, [log, LOG_BYTES])
        if int(status):
            said = log.split(b"\0", 1)[0].decode(errors="replace").strip()
            raise RuntimeError(self._message(status, "loading the kernels") + (f"\n{said}" if said else ""))
        return module

    def _bind_context(self, device: int) -> None:
        """Makes the primary context current in a thread that has none."""
        driver = self.loaded_driver()
        (current,) = self.call("asking for the context", *driver.cuCtxGetCurrent())
        if not int(current):  # pyright: ignore[reportArgumentType]
            (context,) = self.call("taking the context", *driver.cuDevicePrimaryCtxRetain(device))
            self.call("binding the context", *driver.cuCtxSetCurrent(context))

    def loaded_driver(self) -> Driver:
        """The driver, started."""
        if self._driver is None:
            self._driver = started(import_driver())
        return self._driver

    def call(self, what: str, status: object, *values: object) -> tuple[object, ...]:
        """The values that a driver call returned, or a RuntimeError that says what failed."""
        if int(status):  # pyright: ignore[reportArgumentType]
            raise RuntimeError(self._message(status, what))
        return values

    def _message(self, status: object, what: str) -> str:
        return explain(self.loaded_driver(), status, what)


class _EveryName(dict[str, Entry]):
    """One image, in which each kernel has the name that the program gives it."""

    def __init__(self, image: Image) -> None:
        super().__init__()
        self._image = image

    def __missing__(self, name: str) -> Entry:
        return Entry(self._image, name)


def find_entries(synchronizes: bool) -> Entries:
    """Where the driver and PyTorch have what native code calls; RuntimeError names what is missing."""
    driver, torch_cuda = ctypes.CDLL(LIBRARY), pytorch.torch_library("libtorch_cuda.so")
    return Entries(
        pytorch.address_of(driver, "cuLaunchKernel"),
        pytorch.address_of(driver, "cuCtxGetCurrent"),
        pytorch.address_of(torch_cuda, "aoti_torch_get_current_cuda_stream"),
        pytorch.address_of(driver, "cuCtxSynchronize") if synchronizes else 0,
        pytorch.address_of(driver, "cuGraphExecKernelNodeSetParams_v2"),
        pytorch.address_of(driver, "cuGraphLaunch"),
        pytorch.address_of(driver, "cuStreamIsCapturing"),
    )


def import_driver() -> Driver:
    """cuda-bindings' driver module; RuntimeError with the remedy where it is not installed."""
    try:
        from cuda.bindings import driver  # pyright: ignore[reportAttributeAccessIssue]
    except ImportError as error:
        raise RuntimeError("running on a GPU needs cuda-bindings: pip install 'mlir-fusion[cuda]'") from error
    return driver


def started(driver: Driver) -> Driver:
    """The driver after its start; RuntimeError where there is no GPU that it could drive."""
    try:
        (status,) = driver.cuInit(0)
    except RuntimeError as error:
        # What cuda-bindings raises where there is no library of the driver's
        raise RuntimeError(f"there is no NVIDIA driver ({error}): target='cpu' needs none") from None
    if int(status):
        raise RuntimeError(explain(driver, status, "starting CUDA"))
    return driver


def explain(driver: Driver, status: object, what: str) -> str:
    """What failed, in the driver's words, and what can be done about it."""
    (_, name), (_, text) = driver.cuGetErrorName(status), driver.cuGetErrorString(status)
    remedy = REMEDIES.get(_decoded(name))
    return f"{what} failed: {_decoded(name)}: {_decoded(text)}" + (f"; {remedy}" if remedy else "")


def _decoded(text: object) -> str:
    return text.decode() if isinstance(text, bytes) else str(text)
