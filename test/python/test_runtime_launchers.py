"""Launchers: the CUDA one against a driver that only records, the native one against a C function."""

import ctypes
import enum
from collections.abc import Sequence

import pytest
import torch
from mlir_fusion.runtime.cuda import CudaLauncher
from mlir_fusion.runtime.launch import Launch, Queue
from mlir_fusion.runtime.native import NativeLauncher

LAUNCH = Launch("relu", ("memref<4xf32>", "memref<4xf32>", "i32"), grid=(2, 1, 1), block=(256, 1, 1))


class Status(enum.IntEnum):
    SUCCESS = 0
    ERROR = 1


class JitOption(enum.IntEnum):
    CU_JIT_ERROR_LOG_BUFFER = 5
    CU_JIT_ERROR_LOG_BUFFER_SIZE_BYTES = 6


class FunctionAttribute(enum.IntEnum):
    CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES = 8


class RecordingDriver:
    """Answers as the driver does, fails where told to, and reads launch parameters where they lie."""

    CUjit_option = JitOption
    CUfunction_attribute = FunctionAttribute

    def __init__(self, failing: str = "", types: Sequence[type] = ()) -> None:
        self.failing = failing
        self.types = types
        self.calls: list[tuple] = []
        self.context = 0

    def _answer(self, name: str, *values: object) -> tuple:
        self.calls.append((name, *values))
        return Status.ERROR if name == self.failing else Status.SUCCESS, *values

    def cuInit(self, flags: int) -> tuple:  # noqa: N802
        return self._answer("init")

    def cuCtxGetCurrent(self) -> tuple:  # noqa: N802
        return Status.SUCCESS, self.context

    def cuDevicePrimaryCtxRetain(self, device: int) -> tuple:  # noqa: N802
        return self._answer("retain", 100 + device)

    def cuCtxSetCurrent(self, context: int) -> tuple:  # noqa: N802
        self.context = context
        return self._answer("set_current")[:1]

    def cuCtxSynchronize(self) -> tuple:  # noqa: N802
        return self._answer("synchronize")

    def cuModuleLoadDataEx(self, image: bytes, count: int, options: list, values: list) -> tuple:  # noqa: N802
        if self.failing == "load":
            values[0][:14] = b"line 3: syntax"
        return self._answer("load", image)

    def cuModuleGetFunction(self, module: object, name: bytes) -> tuple:  # noqa: N802
        return self._answer("function", name)

    def cuFuncSetAttribute(self, function: object, attribute: int, value: int) -> tuple:  # noqa: N802
        return self._answer("attribute", int(attribute), value)[:1]

    def cuLaunchKernel(self, function: object, *rest: int) -> tuple:  # noqa: N802
        *configuration, parameters, _ = rest
        pointers = (ctypes.c_void_p * len(self.types)).from_address(parameters)
        values = [kind.from_address(at or 0).value for kind, at in zip(self.types, pointers, strict=True)]
        return self._answer("launch", function, configuration, values)[:1]

    def cuGetErrorName(self, status: int) -> tuple:  # noqa: N802
        return Status.SUCCESS, b"CUDA_ERROR_LAUNCH_FAILED"

    def cuGetErrorString(self, status: int) -> tuple:  # noqa: N802
        return Status.SUCCESS, b"unspecified launch failure"

    def names(self) -> list[str]:
        return [call[0] for call in self.calls]


TYPES = (ctypes.c_uint64, ctypes.c_uint64, ctypes.c_int32)


def test_a_launch_passes_its_configuration_the_stream_and_the_arguments() -> None:
    driver = RecordingDriver(types=TYPES)
    launched = CudaLauncher(".version 8.0", driver).prepare(LAUNCH)
    launched(Queue(device=0, stream=77), [4096, 8192, -3])
    assert driver.calls[-1] == ("launch", b"relu", [2, 1, 1, 256, 1, 1, 0, 77], [4096, 8192, -3])
    launched(Queue(device=0, stream=78), [1, 2, 3])
    assert driver.calls[-1] == ("launch", b"relu", [2, 1, 1, 256, 1, 1, 0, 78], [1, 2, 3])
    assert driver.names().count("load") == 1 and driver.names().count("function") == 1


def test_the_image_is_loaded_once_a_device_into_the_primary_context() -> None:
    driver = RecordingDriver(types=TYPES)
    launcher = CudaLauncher(".version 8.0", driver)
    for device in (0, 1, 0):
        for launch in (LAUNCH, LAUNCH):
            launcher.prepare(launch)(Queue(device, 0), [0, 0, 0])
    loads = [call for call in driver.calls if call[0] == "load"]
    assert loads == [("load", b".version 8.0\0")] * 2
    assert driver.names()[:2] == ["retain", "set_current"]


def test_much_shared_memory_is_asked_for() -> None:
    driver = RecordingDriver(types=TYPES)
    greedy = Launch("relu", LAUNCH.parameters, shared_bytes=100_000)
    CudaLauncher("", driver).prepare(greedy)(Queue(0, 0), [0, 0, 0])
    assert ("attribute", 8, 100_000) in driver.calls


@pytest.mark.parametrize(
    ("failing", "message"),
    [
        ("launch", r"launching kernel relu \(grid \(2, 1, 1\), .* on memref<4xf32>.* failed: CUDA_ERROR_LAUNCH"),
        ("load", "loading the kernels failed: .*: unspecified launch failure\nline 3: syntax"),
        ("function", "looking up kernel relu"),
        ("retain", "taking the context failed"),
    ],
)
def test_a_failing_call_says_what_failed_and_why(failing: str, message: str) -> None:
    launched = CudaLauncher("", RecordingDriver(failing, TYPES)).prepare(LAUNCH)
    with pytest.raises(RuntimeError, match=message):
        launched(Queue(0, 0), [0, 0, 0])


def test_synchronising_names_the_kernel_at_fault(monkeypatch: pytest.MonkeyPatch) -> None:
    silent = CudaLauncher("", RecordingDriver("synchronize", TYPES)).prepare(LAUNCH)
    silent(Queue(0, 0), [0, 0, 0])
    monkeypatch.setenv("MLIR_FUSION_SYNC", "1")
    launched = CudaLauncher("", RecordingDriver("synchronize", TYPES)).prepare(LAUNCH)
    with pytest.raises(RuntimeError, match=r"running kernel relu .* failed"):
        launched(Queue(0, 0), [0, 0, 0])


def test_native_kernels_get_pointers_and_scalars() -> None:
    seen: list[tuple] = []
    kind = ctypes.CFUNCTYPE(None, ctypes.c_void_p, ctypes.c_float, ctypes.c_int64)
    function = kind(lambda pointer, real, integer: seen.append((pointer, real, integer)))

    class Code:
        def address(self, name: str) -> int:
            assert name == "scale"
            return ctypes.cast(function, ctypes.c_void_p).value or 0

    launcher = NativeLauncher(Code())
    launched = launcher.prepare(Launch("scale", ("memref<4xf32, strided<[2]>>", "f32", "index")))
    launched(launcher.queue(torch.device("cpu")), [1 << 40, 0.5, 1 << 33])
    assert seen == [(1 << 40, 0.5, 1 << 33)]


def test_an_argument_that_c_cannot_take_is_refused() -> None:
    with pytest.raises(TypeError, match=r"vector<4xf32>"):
        CudaLauncher("", RecordingDriver()).prepare(Launch("relu", ("vector<4xf32>",)))
