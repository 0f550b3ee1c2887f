"""Launchers: the CUDA one against a driver that only records, the native one against a C function."""

import ctypes
import enum
import gc
from collections.abc import Sequence
from types import SimpleNamespace

import pytest
from mlir_fusion.runtime.cuda import CudaLauncher
from mlir_fusion.runtime.cuda_graph import GraphLauncher, HoldingQueue
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


HANDLES = {1: b"relu", 2: b"log"}
"""Kernels' names by the driver's handle of them."""


class RecordingDriver:
    """Answers as the driver does, fails where told to, and reads launch parameters where they lie."""

    CUjit_option = JitOption
    CUfunction_attribute = FunctionAttribute
    CUfunction = staticmethod(lambda handle: HANDLES[handle])
    CUresult = Status

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
        status, _ = self._answer("function", name)
        return status, next(handle for handle, known in HANDLES.items() if known == name)

    def cuFuncSetAttribute(self, function: object, attribute: int, value: int) -> tuple:  # noqa: N802
        return self._answer("attribute", int(attribute), value)[:1]

    def cuLaunchKernel(self, function: object, *rest: int) -> tuple:  # noqa: N802
        *configuration, parameters, _ = rest
        return self._answer("launch", function, configuration, self._arguments(parameters))[:1]

    def CUDA_KERNEL_NODE_PARAMS(self) -> SimpleNamespace:  # noqa: N802
        return SimpleNamespace()

    def cuGraphCreate(self, flags: int) -> tuple:  # noqa: N802
        self.nodes = 0
        return self._answer("graph", object())

    def cuGraphAddKernelNode(  # noqa: N802
        self, graph: object, after: list, count: int, parameters: SimpleNamespace
    ) -> tuple:
        self.nodes += 1
        self._answer("node", after, *self._read(parameters))
        return Status.ERROR if self.failing == "node" else Status.SUCCESS, self.nodes

    def cuGraphInstantiate(self, graph: object, flags: int) -> tuple:  # noqa: N802
        return self._answer("instantiate", "executable")

    def cuGraphDestroy(self, graph: object) -> tuple:  # noqa: N802
        self.nodes = 0
        return self._answer("destroy")

    def cuGraphExecDestroy(self, executable: object) -> tuple:  # noqa: N802
        return self._answer("destroy executable")

    def cuGraphExecKernelNodeSetParams(  # noqa: N802
        self, executable: object, node: int, parameters: SimpleNamespace
    ) -> tuple:
        # As the driver does it: nodes live as long as their graph
        assert node <= self.nodes
        return self._answer("update", node, self._read(parameters)[-1])[:1]

    def cuGraphLaunch(self, executable: object, stream: int) -> tuple:  # noqa: N802
        return self._answer("launch graph", executable, stream)[:1]

    def _read(self, parameters: SimpleNamespace) -> tuple:
        """A node's function, configuration and arguments."""
        names = ("gridDimX", "gridDimY", "gridDimZ", "blockDimX", "blockDimY", "blockDimZ", "sharedMemBytes")
        configuration = [getattr(parameters, name) for name in names]
        return parameters.func, configuration, self._arguments(parameters.kernelParams)

    def _arguments(self, address: int) -> list[int]:
        pointers = (ctypes.c_void_p * len(self.types)).from_address(address)
        return [kind.from_address(at or 0).value for kind, at in zip(self.types, pointers, strict=True)]

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


LOG = Launch("log", LAUNCH.parameters, grid=(5, 1, 1), block=(128, 1, 1), shared_bytes=64)


def call(launcher: GraphLauncher, launches: Sequence, stream: int, *arguments: list[int]) -> None:
    queue = launcher._local.pending = HoldingQueue(0, stream)
    for launched, given in zip(launches, arguments, strict=False):
        launched(queue, given)
    launcher.finish()
    launcher.finish()


def test_kernels_are_launched_at_once_and_only_what_differs_is_updated(monkeypatch: pytest.MonkeyPatch) -> None:
    driver = RecordingDriver(types=TYPES)
    inner = CudaLauncher("", driver)
    monkeypatch.setattr(inner, "is_capturing", lambda: False)
    launcher = GraphLauncher(inner)
    launches = [launcher.prepare(LAUNCH), launcher.prepare(LOG)]
    call(launcher, launches, 77, [1, 2, 3], [4, 5, 6])
    assert [entry for entry in driver.calls if entry[0] == "node"] == [
        ("node", [], b"relu", [2, 1, 1, 256, 1, 1, 0], [1, 2, 3]),
        ("node", [1], b"log", [5, 1, 1, 128, 1, 1, 64], [4, 5, 6]),
    ]
    assert driver.calls[-1] == ("launch graph", "executable", 77)
    assert "launch" not in driver.names()
    driver.calls.clear()
    call(launcher, launches, 78, [1, 2, 3], [4, 9, 6])
    assert driver.calls == [("update", 2, [4, 9, 6]), ("launch graph", "executable", 78)]
    driver.calls.clear()
    call(launcher, launches, 78, [1, 2, 3], [4, 9, 6])
    assert driver.calls == [("launch graph", "executable", 78)]
    driver.calls.clear()
    del launcher, launches
    gc.collect()
    assert driver.names() == ["destroy executable", "destroy"]


@pytest.mark.parametrize("why", ["alone", "capturing", "synchronizing"])
def test_kernels_are_launched_one_by_one_where_a_graph_does_not_help(why: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("MLIR_FUSION_SYNC", "1" if why == "synchronizing" else "0")
    driver = RecordingDriver(types=TYPES)
    inner = CudaLauncher("", driver)
    monkeypatch.setattr(inner, "is_capturing", lambda: why == "capturing")
    launcher = GraphLauncher(inner)
    launches = [launcher.prepare(LAUNCH), launcher.prepare(LOG)]
    arguments = [[1, 2, 3], [4, 5, 6]][: 1 if why == "alone" else 2]
    call(launcher, launches, 77, *arguments)
    assert [entry[3] for entry in driver.calls if entry[0] == "launch"] == arguments
    assert "graph" not in driver.names()


@pytest.mark.parametrize(
    ("failing", "message"),
    [
        ("node", "adding kernel relu .* to a graph failed"),
        ("instantiate", "making a graph executable failed"),
        ("update", "updating kernel relu"),
        ("launch graph", "launching 2 kernels at once failed"),
    ],
)
def test_a_failing_graph_says_what_failed_and_can_be_launched_later(
    failing: str, message: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    driver = RecordingDriver("" if failing == "update" else failing, TYPES)
    inner = CudaLauncher("", driver)
    monkeypatch.setattr(inner, "is_capturing", lambda: False)
    launcher = GraphLauncher(inner)
    launches = [launcher.prepare(LAUNCH), launcher.prepare(LOG)]
    if failing == "update":
        call(launcher, launches, 0, [1, 2, 3], [4, 5, 6])
        driver.failing = failing
    with pytest.raises(RuntimeError, match=message):
        call(launcher, launches, 0, [7, 2, 3], [4, 5, 6])
    driver.failing = ""
    call(launcher, launches, 0, [8, 2, 3], [4, 5, 6])
    written = [entry for entry in driver.calls if entry[0] in ("node", "update", "launch graph")]
    assert written[-1][0] == "launch graph"
    assert [8, 2, 3] in [entry[-1] for entry in written]


def test_an_argument_that_c_cannot_take_is_refused() -> None:
    with pytest.raises(TypeError, match=r"vector<4xf32>"):
        CudaLauncher("", RecordingDriver()).prepare(Launch("relu", ("vector<4xf32>",)))
    with pytest.raises(TypeError, match=r"vector<4xf32>"):
        NativeLauncher(SimpleNamespace(address=int)).function(Launch("relu", ("vector<4xf32>",)), 0)
