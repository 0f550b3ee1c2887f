"""The native code of host functions: what it hands the driver, what it accepts, what it leaves behind when it fails."""

import ctypes
import gc
import sys
import threading
import weakref
from collections.abc import Callable, Iterator, Sequence

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from mlir_fusion.dialects import fusion
from mlir_fusion.dialects.mlir import ir
from mlir_fusion.driver.programs import make_program
from mlir_fusion.runtime import host_words, pytorch
from mlir_fusion.runtime.arguments import same_layout
from mlir_fusion.runtime.launch import Argument, Entries, Launch, Launched, Queue
from mlir_fusion.runtime.program import Program


@pytest.fixture(autouse=True)
def context() -> Iterator[None]:
    with ir.Context() as made, ir.Location.unknown():
        fusion.load(made)
        yield


class Log:
    """Notes launches, and starts them one by one."""

    device_type = "cpu"
    allocate = None
    stretch = None

    def __init__(self) -> None:
        self.log: list[tuple] = []

    def queue(self, device: torch.device) -> Queue:
        return Queue(0, 0)


class Recorder(Log):
    """Kernels are Python functions of addresses; without any, a launch is noted."""

    entries = None
    function = None
    failure = None

    def __init__(self, *kernels: Callable[..., None]) -> None:
        super().__init__()
        self.kernels = {kernel.__name__: kernel for kernel in kernels}

    def prepare(self, launch: Launch) -> Launched:
        def launched(queue: Queue, arguments: Sequence[Argument]) -> None:
            self.log.append((launch.kernel, *arguments))
            if launch.kernel in self.kernels:
                self.kernels[launch.kernel](*arguments)

        return launched


class FakeDriver(Log):
    """A driver's entries that note what they are called with, and answer with a status."""

    prepare = None

    def __init__(self, parameters: int, status: int = 0, waited: int | None = None) -> None:
        super().__init__()
        words, pointer = [ctypes.c_uint] * 7, ctypes.c_void_p
        launch = ctypes.CFUNCTYPE(ctypes.c_int, pointer, *words, pointer, pointer, pointer)
        self.parameters, self.status = parameters, status
        self.called = launch(self.launched)
        self.waits = ctypes.CFUNCTYPE(ctypes.c_int)(lambda: waited or 0)
        address = [ctypes.cast(function, pointer).value or 0 for function in (self.called, self.waits)]
        self.entries = Entries(launch=address[0], synchronize=0 if waited is None else address[1])

    def function(self, launch: Launch, device: int) -> int:
        return 1000 + len(launch.kernel)

    def failure(self, doing: str, what: str, status: int) -> Exception:
        return RuntimeError(f"{doing} {what}: status {status}")

    def launched(self, function: int, *rest: int) -> int:
        *configuration, _stream, pointers, _extra = rest
        array = (ctypes.c_void_p * self.parameters).from_address(pointers)
        self.log.append((function, configuration, [ctypes.c_int64.from_address(at or 0).value for at in array]))
        return self.status


LAUNCHES = """
module attributes {gpu.container_module} {
  gpu.module @kernels {
    gpu.func @relu(%a: memref<16xf32>, %b: memref<16xf32>, %n: index) kernel { gpu.return }
    gpu.func @never(%a: memref<16xf32>) kernel { gpu.return }
  }
  func.func @main(%x: memref<16xf32>, %n: index) -> memref<16xf32> {
    %y = memref.alloc() : memref<16xf32>
    %c0 = arith.constant 0 : index
    %c1 = arith.constant 1 : index
    %c3 = arith.constant 3 : index
    %twice = arith.addi %n, %n : index
    %shared = arith.constant 1024 : i32
    gpu.launch_func @kernels::@relu blocks in (%c3, %c1, %c1) threads in (%c1, %c3, %c1)
        dynamic_shared_memory_size %shared args(%x : memref<16xf32>, %y : memref<16xf32>, %twice : index)
    gpu.launch_func @kernels::@never blocks in (%c3, %c0, %c1) threads in (%c1, %c1, %c1) args(%x : memref<16xf32>)
    return %y : memref<16xf32>
  }
}
"""


def program(text: str, launcher: Recorder | FakeDriver) -> Program:
    return make_program(ir.Module.parse(text), launcher)


def test_the_driver_gets_configuration_addresses_and_numbers_and_nothing_where_there_are_no_blocks() -> None:
    driver = FakeDriver(parameters=3)
    run, x = program(LAUNCHES, driver), torch.randn(16)
    (y,) = run(x, 21)
    assert driver.log == [(1004, [3, 1, 1, 1, 3, 1, 1024], [x.data_ptr(), y.data_ptr(), 42])]


@pytest.mark.parametrize(
    ("driver", "message"),
    [
        (lambda: FakeDriver(3, status=7), r"launching kernel relu \(grid \(3, 1, 1\), .*memref<16xf32>.*: status 7"),
        (lambda: FakeDriver(3, waited=9), r"running kernel relu .*: status 9"),
    ],
)
def test_a_failed_launch_names_the_kernel_and_leaves_nothing(driver: Callable[[], FakeDriver], message: str) -> None:
    run, x = program(LAUNCHES, driver()), torch.randn(16)
    before, tensors = sys.getrefcount(x), count_tensors()
    for _ in range(3):
        with pytest.raises(RuntimeError, match=message):
            run(x, 1)
    assert sys.getrefcount(x) == before and count_tensors() <= tensors
    assert torch.is_grad_enabled()


def count_tensors() -> int:
    gc.collect()
    return sum(issubclass(type(each), torch.Tensor) for each in gc.get_objects())


CALLS = """
func.func private @first(memref<4x4xf32>, memref<4x4xf32>)
func.func private @second(memref<4x4xf32>)
func.func @main(%x: memref<4x4xf32>) -> memref<4x4xf32> {
  %y = memref.alloc() : memref<4x4xf32>
  func.call @first(%x, %y) : (memref<4x4xf32>, memref<4x4xf32>) -> ()
  %z = "fusion.extern"(%y) {op = "aten.cos.default", args = [#fusion.operand<0>]} : (memref<4x4xf32>) -> memref<4x4xf32>
  memref.dealloc %y : memref<4x4xf32>
  func.call @second(%z) : (memref<4x4xf32>) -> ()
  return %z : memref<4x4xf32>
}
"""


def test_an_error_in_a_kernel_or_a_library_comes_through_and_leaves_nothing() -> None:
    def second(address: int) -> None:
        raise ZeroDivisionError("in a kernel")

    for launcher, error in ((Recorder(second), ZeroDivisionError), (Recorder(), None)):
        run, x = program(CALLS, launcher), torch.randn(4, 4)
        before, tensors = sys.getrefcount(x), count_tensors()
        if error is None:
            assert len(run(x)) == 1
        else:
            with pytest.raises(error, match="in a kernel"):
                run(x)
        assert sys.getrefcount(x) == before and count_tensors() <= tensors
        assert [name for name, *_ in launcher.log] == ["first", "second"]


def test_an_argument_that_nobody_else_holds_goes_after_its_last_reader() -> None:
    alive: list[bool] = []

    def first(x: int, y: int) -> None:
        alive.append(watched() is not None)

    def second(z: int) -> None:
        alive.append(watched() is not None)

    run, inputs = program(CALLS, Recorder(first, second)), [torch.randn(4, 4)]
    watched = weakref.ref(inputs[0])
    run.run(inputs)
    assert not inputs and alive == [True, False]


class Subclass(torch.Tensor):
    pass


@pytest.mark.parametrize("offset", [pytorch.tensor_offset(), -1], ids=["at a known place", "asked for"])
def test_every_kind_of_tensor_is_read_where_it_lies(offset: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(host_words, "tensor_offset", lambda: offset)
    launcher = Recorder()
    run, plain = program(CALLS, launcher), torch.randn(4, 4)
    for x in (plain, torch.nn.Parameter(plain.clone()), plain.clone().as_subclass(Subclass)):
        run(x)
        assert launcher.log[-2][1] == x.data_ptr()
    for wrong in (3, None, "x", [plain], type(plain)):
        with pytest.raises(TypeError, match="argument 0: expected a tensor"):
            run(wrong)  # type: ignore[arg-type]


def test_a_tensor_object_holds_its_tensor_where_it_was_looked_for() -> None:
    assert pytorch.tensor_offset() in (16, 24)


def test_gradients_are_off_in_library_calls_and_on_again_afterwards() -> None:
    run, x = program(CALLS, Recorder()), torch.randn(4, 4, requires_grad=True)
    assert torch.is_grad_enabled() and not run(x)[0].requires_grad and torch.is_grad_enabled()
    with torch.no_grad():
        run(x)
        assert not torch.is_grad_enabled()


def test_memory_that_is_not_there_is_said_to_be_for_a_kernel() -> None:
    run = program(
        """
        func.func private @relu(memref<4xf32>, memref<4611686018427387904xi8>)
        func.func @main(%x: memref<4xf32>) {
          %y = memref.alloc() : memref<4611686018427387904xi8>
          func.call @relu(%x, %y) : (memref<4xf32>, memref<4611686018427387904xi8>) -> ()
          return
        }
        """,
        Recorder(),
    )
    with pytest.raises(RuntimeError, match=r"\nThis was for \[4611686018427387904\] of torch.int8 for kernel relu"):
        run(torch.zeros(4))


COPY = """
func.func private @look({memory}, {memory})
func.func @main(%x: {memory}) -> {memory} {{
  %y = memref.alloc() : {memory}
  func.call @look(%x, %y) : ({memory}, {memory}) -> ()
  return %y : {memory}
}}
"""


@st.composite
def layouts(draw: st.DrawFn) -> tuple[list[int], list[int], list[int], int]:
    """A shape with two layouts, and where the tensor of the first starts."""
    shape = draw(st.lists(st.sampled_from([0, 1, 2, 3]), max_size=4))
    strides = [draw(st.permutations(range(len(shape)))) for _ in range(2)]
    made = []
    for order in strides:
        steps, step = [0] * len(shape), 1
        for axis in order:
            steps[axis] = step
            step *= max(shape[axis], 1) + draw(st.sampled_from([0, 0, 0, 1]))
        made.append(steps)
    return shape, made[0], draw(st.sampled_from([made[0], made[1]])), draw(st.sampled_from([0, 0, 4, 1]))


@given(layouts())
@settings(max_examples=120, deadline=None, derandomize=True)
def test_what_lies_as_expected_is_used_and_anything_else_copied(
    case: tuple[list[int], list[int], list[int], int],
) -> None:
    shape, given_strides, expected, start = case
    launcher, tensor = Recorder(), torch.randn(1000).as_strided(shape, given_strides, start)
    sizes = "".join(f"{size}x" for size in shape)
    with ir.Context() as made, ir.Location.unknown():
        fusion.load(made)
        run = program(COPY.format(memory=f"memref<{sizes}f32, strided<{expected}>>"), launcher)
    run(tensor)
    fits = same_layout(shape, given_strides, expected) and tensor.data_ptr() % 16 == 0
    assert (launcher.log[-1][1] == tensor.data_ptr()) == (fits or tensor.numel() == 0)


def test_many_calls_leave_nothing() -> None:
    launcher = Recorder()
    launcher.prepare = lambda launch: lambda queue, arguments: None  # type: ignore[method-assign]
    run, x = program(CALLS, launcher), torch.randn(4, 4)
    run(x)
    before, references = (count_tensors(), sys.getallocatedblocks()), sys.getrefcount(x)
    for _ in range(10_000):
        run(x)
    assert count_tensors() <= before[0] and sys.getrefcount(x) == references
    assert sys.getallocatedblocks() - before[1] < 1000


def test_threads_share_a_program() -> None:
    run, inputs = program(CALLS, Recorder()), [torch.randn(4, 4) for _ in range(4)]
    failures: list[str] = []

    def work(x: torch.Tensor) -> None:
        for _ in range(200):
            if run(x)[0].shape != x.shape:
                failures.append("shape")

    threads = [threading.Thread(target=work, args=(x,)) for x in inputs]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert not failures


def test_a_profiler_sees_each_launch_with_its_kernel_and_source() -> None:
    text = LAUNCHES.replace(", %twice : index)", ', %twice : index) loc(fused["/a/model.py":12:4, "model.py":13:1])')
    driver = FakeDriver(parameters=3)
    run, x = program(text, driver), torch.randn(16)
    names: list[set[str]] = []
    for _ in range(2):
        run(x, 1)
        with torch.profiler.profile() as seen:
            run(x, 1)
        names.append({event.name for event in seen.events()})
    assert all("relu (model.py:12, model.py:13)" in found for found in names)
    assert not any("never" in name for name in names[0])
    assert len(driver.log) == 4
