"""Translations of PTX: made once for a driver and a GPU, by a driver that only records."""

from __future__ import annotations

import ctypes
import enum
from pathlib import Path

import pytest
from mlir_fusion.runtime.cubin import cubin_of
from mlir_fusion.runtime.disk_cache import DiskCache


class JitOption(enum.IntEnum):
    CU_JIT_ERROR_LOG_BUFFER = 5
    CU_JIT_ERROR_LOG_BUFFER_SIZE_BYTES = 6


class InputType(enum.IntEnum):
    CU_JIT_INPUT_PTX = 1


class Attribute(enum.IntEnum):
    CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MAJOR = 75
    CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MINOR = 76


class LinkingOnly:
    """Code is the PTX in capitals; `failing` text is refused, as a translator does."""

    CUjit_option, CUjitInputType, CUdevice_attribute = JitOption, InputType, Attribute

    def __init__(self, version: int = 13000) -> None:
        self.version = version
        self.linked: list[bytes] = []
        self.destroyed = 0

    def cuDriverGetVersion(self) -> tuple:  # noqa: N802
        return 0, self.version

    def cuDeviceGetAttribute(self, attribute: int, device: int) -> tuple:  # noqa: N802
        return 0, attribute + device

    def cuLinkCreate(self, count: int, options: list, values: list) -> tuple:  # noqa: N802
        self.log = values[0]
        return 0, "state"

    def cuLinkAddData(self, state, kind, data: bytes, size: int, name, count, options, values) -> tuple:  # noqa: N802
        self.linked.append(data)
        if b"wrong" in data:
            self.log[:5] = b"line\0"
            return (1,)
        self.code = ctypes.create_string_buffer(data.upper(), size)
        return (0,)

    def cuLinkComplete(self, state: object) -> tuple:  # noqa: N802
        return 0, ctypes.addressof(self.code), len(self.code)

    def cuLinkDestroy(self, state: object) -> tuple:  # noqa: N802
        self.destroyed += 1
        return (0,)


def call(what: str, status: int, *values: object) -> tuple:
    if status:
        raise RuntimeError(what)
    return values


def test_code_is_made_once_for_a_driver_and_a_gpu(tmp_path: Path):
    disk, driver = DiskCache(tmp_path, 1 << 20), LinkingOnly()
    for _ in range(2):
        assert cubin_of("ptx", 0, disk, driver, call) == b"PTX\0"
    assert driver.linked == [b"ptx\0"]
    cubin_of("ptx", 1, disk, driver, call)
    newer = LinkingOnly(version=13010)
    cubin_of("ptx", 0, disk, newer, call)
    assert (len(driver.linked), len(newer.linked)) == (2, 1)
    assert (driver.destroyed, newer.destroyed) == (2, 1)


def test_what_the_driver_says_of_wrong_code_is_told_and_nothing_kept(tmp_path: Path):
    disk, driver = DiskCache(tmp_path, 1 << 20), LinkingOnly()
    with pytest.raises(RuntimeError, match=r"^loading the kernels \(line\)$"):
        cubin_of("wrong", 0, disk, driver, call)
    assert driver.destroyed == 1
    assert disk.info().kinds == {}
