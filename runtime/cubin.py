"""PTX to machine code by the CUDA driver, kept on disk: translating it takes longer than all else at a first launch.

The driver that loads PTX translates it too, and forgets the result with the process (or keeps it in a folder that the
administrator may have turned off). Linking gives the same code as bytes. Its key names the driver and the GPU.
"""

from __future__ import annotations

import ctypes
import hashlib
from collections.abc import Callable
from typing import Protocol

from .disk_cache import DiskCache

DISK_KIND = "cubins"
LOG_BYTES = 16 * 1024

Handle = object


class LinkingDriver(Protocol):
    """What is used of cuda.bindings.driver: every function returns a tuple that starts with its status."""

    CUjit_option: type
    CUjitInputType: type
    CUdevice_attribute: type

    def cuDriverGetVersion(self) -> tuple: ...  # noqa: N802
    def cuDeviceGetAttribute(self, attribute: object, device: int) -> tuple: ...  # noqa: N802
    def cuLinkCreate(self, count: int, options: list, values: list) -> tuple: ...  # noqa: N802
    def cuLinkAddData(  # noqa: N802
        self, state: Handle, kind: object, data: bytes, size: int, name: bytes, count: int, options: list, values: list
    ) -> tuple: ...
    def cuLinkComplete(self, state: Handle) -> tuple: ...  # noqa: N802
    def cuLinkDestroy(self, state: Handle) -> tuple: ...  # noqa: N802


Call = Callable[..., tuple]
"""Checks a status: `call(what, status, *values)` gives the values, or raises."""


def cubin_of(ptx: str, device: int, disk: DiskCache, driver: LinkingDriver, call: Call) -> bytes:
    """Machine code for a device whose context is current; from `disk` if it is there."""
    key = _key(ptx, device, driver, call)
    entry = disk.get(DISK_KIND, key)
    if entry is not None:
        return entry.body
    code = _link(ptx.encode() + b"\0", driver, call)
    disk.put(DISK_KIND, key, {}, code)
    return code


def _key(ptx: str, device: int, driver: LinkingDriver, call: Call) -> str:
    (version,) = call("asking for the driver's version", *driver.cuDriverGetVersion())
    kinds = driver.CUdevice_attribute
    capability = [
        call("asking what the GPU is", *driver.cuDeviceGetAttribute(attribute, device))[0]
        for attribute in (
            kinds.CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MAJOR,  # pyright: ignore[reportAttributeAccessIssue]
            kinds.CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MINOR,  # pyright: ignore[reportAttributeAccessIssue]
        )
    ]
    return hashlib.sha256(f"{version} {capability} {ptx}".encode()).hexdigest()


def _link(ptx: bytes, driver: LinkingDriver, call: Call) -> bytes:
    log, options = bytearray(LOG_BYTES), driver.CUjit_option
    keys = [options.CU_JIT_ERROR_LOG_BUFFER, options.CU_JIT_ERROR_LOG_BUFFER_SIZE_BYTES]  # pyright: ignore
    (state,) = call("starting the linker", *driver.cuLinkCreate(len(keys), keys, [log, LOG_BYTES]))
    try:
        kind = driver.CUjitInputType.CU_JIT_INPUT_PTX  # pyright: ignore[reportAttributeAccessIssue]
        status = driver.cuLinkAddData(state, kind, ptx, len(ptx), b"kernels", 0, [], [])
        said = log.split(b"\0", 1)[0].decode(errors="replace").strip()
        call("loading the kernels" + (f" ({said})" if said else ""), *status)
        address, size = call("linking the kernels", *driver.cuLinkComplete(state))
        return ctypes.string_at(int(address), size)
    finally:
        driver.cuLinkDestroy(state)
