"""Launchers: the CUDA one against a driver that only records, the native one against a C function."""

import ctypes
import enum
import gc
import re
import threading
from collections.abc import Callable, Sequence
from types import SimpleNamespace
from typing import Any

import pytest
import torch
from mlir_fusion.dialects import fusion
from mlir_fusion.dialects.mlir import ir
from mlir_fusion.driver.programs import make_program
from mlir_fusion.runtime.cuda import CudaLauncher
from mlir_fusion.runtime.cuda_graph import GraphLauncher, NodeParameters
from mlir_fusion.runtime.launch import Entries, Launch, Queue
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
        self.while_launching: threading.Thread | None = None

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

    def CUDA_KERNEL_NODE_PARAMS(self) -> SimpleNamespace:  # noqa: N802
        return SimpleNamespace()

    def cuGraphCreate(self, flags: int) -> tuple:  # noqa: N802
        self.nodes = 0
        return self._answer("graph", 5)

    def cuGraphAddKernelNode(  # noqa: N802
        self, graph: object, after: list, count: int, parameters: SimpleNamespace
    ) -> tuple:
        self.nodes += 1
        self._answer("node", after, *self._read(parameters))
        return Status.ERROR if self.failing == "node" else Status.SUCCESS, self.nodes

    def cuGraphInstantiate(self, graph: object, flags: int) -> tuple:  # noqa: N802
        return self._answer("instantiate", 77)

    def cuGraphDestroy(self, graph: object) -> tuple:  # noqa: N802
        self.nodes = 0
        return self._answer("destroy")

    def cuGraphExecDestroy(self, executable: object) -> tuple:  # noqa: N802
        return self._answer("destroy executable")

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


def test_the_image_is_loaded_once_a_device_into_the_primary_context() -> None:
    driver = RecordingDriver()
    launcher = CudaLauncher(".version 8.0", driver)
    for device in (0, 1, 0):
        for launch in (LAUNCH, LAUNCH):
            assert launcher.function(launch, device) == 1
    loads = [call for call in driver.calls if call[0] == "load"]
    assert loads == [("load", b".version 8.0\0")] * 2
    assert driver.names()[:2] == ["retain", "set_current"]


def test_much_shared_memory_is_asked_for() -> None:
    driver = RecordingDriver()
    CudaLauncher("", driver).function(Launch("relu", LAUNCH.parameters, shared_bytes=100_000), 0)
    assert ("attribute", 8, 100_000) in driver.calls


@pytest.mark.parametrize(
    ("failing", "message"),
    [
        ("load", "loading the kernels failed: .*: unspecified launch failure\nline 3: syntax"),
        ("function", "looking up kernel relu"),
        ("retain", "taking the context failed"),
    ],
)
def test_a_failing_call_says_what_failed_and_why(failing: str, message: str) -> None:
    with pytest.raises(RuntimeError, match=message):
        CudaLauncher("", RecordingDriver(failing)).function(LAUNCH, 0)


def test_a_failed_launch_says_what_the_driver_says() -> None:
    error = CudaLauncher("", RecordingDriver()).failure("launching", str(LAUNCH), 1)
    assert re.match(r"launching kernel relu \(grid \(2, 1, 1\), .* on memref<4xf32>.* failed: CUDA_ERR", str(error))


def test_an_argument_that_c_cannot_take_is_refused() -> None:
    for launcher in (CudaLauncher("", RecordingDriver()), NativeLauncher(SimpleNamespace(address=int))):
        with pytest.raises(TypeError, match=r"vector<4xf32>"):
            launcher.function(Launch("relu", ("vector<4xf32>",)), 0)


class FakeGraphs(GraphLauncher):
    """On the CPU, with entries that note what they are called with."""

    device_type = "cpu"
    capturing = 0

    def __init__(self, driver: RecordingDriver, synchronizes: bool = False) -> None:
        super().__init__("", driver)
        pointer, number = ctypes.c_void_p, ctypes.c_int
        types = {
            "launch": (pointer, *[ctypes.c_uint] * 7, pointer, pointer, pointer),
            "update": (pointer, pointer, ctypes.POINTER(NodeParameters)),
            "launch_graph": (pointer, pointer),
            "is_capturing": (pointer, ctypes.POINTER(number)),
        }
        self.kept = {name: ctypes.CFUNCTYPE(number, *types[name])(getattr(self, f"_{name}")) for name in types}
        self.kept["synchronize"] = ctypes.CFUNCTYPE(number)(lambda: 0)
        addresses = {name: ctypes.cast(function, pointer).value or 0 for name, function in self.kept.items()}
        if not synchronizes:
            del addresses["synchronize"]
        self.made, self.recorded = Entries(**addresses), driver

    @property
    def entries(self) -> Entries:
        return self.made

    def queue(self, device: torch.device) -> Queue:
        return Queue(0, 0)

    def _launch(self, function: int, *rest: int) -> int:
        *configuration, _stream, arguments, _extra = rest
        return int(self.recorded._answer("launch", function, configuration, self.recorded._arguments(arguments))[0])

    def _update(self, executable: int, node: int, parameters: Any) -> int:
        # As the driver does it: nodes live as long as their graph
        assert node <= self.recorded.nodes
        given = parameters.contents
        arguments = self.recorded._arguments(given.arguments)
        return int(self.recorded._answer("update", node, given.function, list(given.sizes), arguments)[0])

    def _launch_graph(self, executable: int, stream: int) -> int:
        thread, self.recorded.while_launching = self.recorded.while_launching, None
        if thread is not None:
            thread.start()
            thread.join()
        return int(self.recorded._answer("launch graph", executable)[0])

    def _is_capturing(self, stream: int, status: Any) -> int:
        status.contents.value = self.capturing
        return 0


TWO = """
module attributes {gpu.container_module} {
  gpu.module @kernels {
    gpu.func @relu(%a: memref<4xf32>, %b: memref<4xf32>) kernel { gpu.return }
    gpu.func @log(%a: memref<4xf32>, %b: memref<4xf32>) kernel { gpu.return }
  }
  func.func @main(%x: memref<4xf32>, %y: memref<4xf32>, %z: memref<4xf32>) {
    %c1 = arith.constant 1 : index
    %c32 = arith.constant 32 : index
    gpu.launch_func @kernels::@relu blocks in (%c1, %c1, %c1) threads in (%c32, %c1, %c1)
        args(%x : memref<4xf32>, %y : memref<4xf32>)
    gpu.launch_func @kernels::@log blocks in (%c32, %c1, %c1) threads in (%c32, %c1, %c1)
        args(%y : memref<4xf32>, %z : memref<4xf32>)
    LIBRARY
    gpu.launch_func @kernels::@log blocks in (%c32, %c1, %c1) threads in (%c32, %c1, %c1)
        args(%y : memref<4xf32>, %z : memref<4xf32>)
    return
  }
}
"""
LIBRARY = (
    '"fusion.extern"(%x) {op = "aten.cos.default", args = [#fusion.operand<0>]} : (memref<4xf32>) -> memref<4xf32>'
)
RELU, LOG = [1, 1, 1, 32, 1, 1, 0], [32, 1, 1, 32, 1, 1, 0]


def program(launcher: FakeGraphs, library: str = "") -> Callable[..., list]:
    with ir.Context() as context, ir.Location.unknown():
        fusion.load(context)
        return make_program(ir.Module.parse(TWO.replace("LIBRARY", library)), launcher)


def tensors() -> list[torch.Tensor]:
    return [torch.zeros(4) for _ in range(3)]


def test_kernels_are_launched_at_once_and_only_what_differs_is_updated() -> None:
    driver = RecordingDriver(types=[ctypes.c_uint64] * 2)
    run, (x, y, z), other = program(FakeGraphs(driver)), tensors(), torch.zeros(4)
    at = {one: tensor.data_ptr() for one, tensor in zip("xyzo", (x, y, z, other), strict=True)}
    run(x, y, z)
    nodes = [entry for entry in driver.calls if entry[0] == "node"]
    assert [entry[1:4] for entry in nodes] == [([], b"relu", RELU), ([1], b"log", LOG), ([2], b"log", LOG)]
    assert driver.calls[-4:] == [
        ("update", 1, 1, RELU, [at["x"], at["y"]]),
        ("update", 2, 2, LOG, [at["y"], at["z"]]),
        ("update", 3, 2, LOG, [at["y"], at["z"]]),
        ("launch graph", 77),
    ]
    driver.calls.clear()
    run(other, y, z)
    assert driver.calls == [("update", 1, 1, RELU, [at["o"], at["y"]]), ("launch graph", 77)]
    driver.calls.clear()
    run(other, y, z)
    assert driver.calls == [("launch graph", 77)]
    driver.calls.clear()
    del run
    gc.collect()
    assert driver.names() == ["destroy executable", "destroy"]


def test_a_library_call_ends_a_stretch_and_a_kernel_alone_is_launched() -> None:
    driver = RecordingDriver(types=[ctypes.c_uint64] * 2)
    run, given = program(FakeGraphs(driver), LIBRARY), tensors()
    for _ in range(2):
        driver.calls.clear()
        run(*given)
    assert [name for name in driver.names() if name != "update"] == ["launch graph", "launch"]
    assert driver.calls[-1] == ("launch", 2, LOG, [given[1].data_ptr(), given[2].data_ptr()])


@pytest.mark.parametrize("why", ["capturing", "synchronizing"])
def test_kernels_are_launched_one_by_one_where_a_graph_does_not_help(why: str) -> None:
    driver = RecordingDriver(types=[ctypes.c_uint64] * 2)
    launcher = FakeGraphs(driver, synchronizes=why == "synchronizing")
    launcher.capturing = int(why == "capturing")
    run, (x, y, z) = program(launcher), tensors()
    run(x, y, z)
    pairs = [[x.data_ptr(), y.data_ptr()], [y.data_ptr(), z.data_ptr()], [y.data_ptr(), z.data_ptr()]]
    assert [entry[3] for entry in driver.calls if entry[0] == "launch"] == pairs
    assert "graph" not in driver.names()


def test_another_thread_that_finds_the_graph_in_use_launches_one_by_one() -> None:
    driver = RecordingDriver(types=[ctypes.c_uint64] * 2)
    run, given = program(FakeGraphs(driver)), tensors()
    run(*given)
    driver.calls.clear()
    driver.while_launching = threading.Thread(target=run, args=given)
    run(*given)
    assert driver.names() == ["launch"] * 3 + ["launch graph"]


@pytest.mark.parametrize(
    ("failing", "message"),
    [
        ("node", "adding kernel relu .* to a graph failed"),
        ("instantiate", "making a graph executable failed"),
        ("update", "updating kernel relu"),
        ("launch graph", "launching 3 kernels at once, the first being kernel relu .* failed"),
    ],
)
def test_a_failing_graph_says_what_failed_and_can_be_launched_later(failing: str, message: str) -> None:
    driver = RecordingDriver(failing, [ctypes.c_uint64] * 2)
    run, (x, y, z) = program(FakeGraphs(driver)), tensors()
    with pytest.raises(RuntimeError, match=message):
        run(x, y, z)
    driver.failing = ""
    driver.calls.clear()
    run(x, y, z)
    written = [entry for entry in driver.calls if entry[0] in ("update", "launch graph")]
    assert written[-1][0] == "launch graph"
    assert failing == "launch graph" or [x.data_ptr(), y.data_ptr()] in [entry[-1] for entry in written]
