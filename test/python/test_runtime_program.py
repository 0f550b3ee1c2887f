"""The host program, executed on hand-written IR with kernels written in numpy."""

import ctypes
from collections.abc import Callable, Iterator, Sequence

import numpy as np
import pytest
import torch
from mlir_fusion.dialects import fusion
from mlir_fusion.dialects.mlir import ir
from mlir_fusion.driver.programs import make_program
from mlir_fusion.runtime.launch import Argument, Launch, Launched, Queue
from mlir_fusion.runtime.program import Program

Kernel = Callable[..., None]


class NumpyLauncher:
    """Kernels are functions over numpy arrays that lie where the pointers say, base pointers as ABI has it."""

    device_type = "cpu"
    entries = None
    function = None
    stretch = None
    failure = None
    allocate = None

    def __init__(self, **kernels: tuple[Kernel, Sequence[tuple[int, str]]]) -> None:
        self.kernels = kernels
        self.log: list[tuple[Launch, list[Argument]]] = []

    def queue(self, device: torch.device) -> Queue:
        return Queue(0, 0)

    def prepare(self, launch: Launch) -> Launched:
        kernel, buffers = self.kernels[launch.kernel]

        def launched(queue: Queue, arguments: Sequence[Argument]) -> None:
            self.log.append((launch, list(arguments)))
            arrays = [array_at(int(at), *buffer) for at, buffer in zip(arguments, buffers, strict=False)]
            kernel(*arrays, *arguments[len(buffers) :])

        return launched


def array_at(pointer: int, count: int, dtype: str) -> np.ndarray:
    size = count * np.dtype(dtype).itemsize
    return np.frombuffer((ctypes.c_char * size).from_address(pointer), dtype=dtype)


@pytest.fixture(autouse=True)
def context() -> Iterator[None]:
    with ir.Context() as made, ir.Location.unknown():
        fusion.load(made)
        yield


def program(text: str, launcher: NumpyLauncher | None = None, **options: object) -> Program:
    module = ir.Module.parse(text)
    return make_program(module, launcher or NumpyLauncher(), **options)  # type: ignore[arg-type]


def add_one(source: np.ndarray, target: np.ndarray) -> None:
    target[:] = source + 1


def double(source: np.ndarray, target: np.ndarray) -> None:
    target[:] = source * 2


FLOATS = (16, "float32")


def test_kernels_and_a_library_call_over_a_pool() -> None:
    run = program(
        """
        func.func private @add_one(memref<4x4xf32>, memref<4x4xf32>)
        func.func @main(%x: memref<4x4xf32>, %w: memref<4x4xf32>) -> memref<4x4xf32> {
          %pool = memref.alloc() {alignment = 256 : i64} : memref<512xi8>
          %c256 = arith.constant 256 : index
          %a = memref.view %pool[%c256][] : memref<512xi8> to memref<4x4xf32>
          func.call @add_one(%x, %a) : (memref<4x4xf32>, memref<4x4xf32>) -> ()
          %b = "fusion.extern"(%a, %w) {op = "aten.mm.default", args = [#fusion.operand<0>, #fusion.operand<1>]}
              : (memref<4x4xf32>, memref<4x4xf32>) -> memref<4x4xf32>
          memref.dealloc %pool : memref<512xi8>
          func.call @add_one(%b, %b) : (memref<4x4xf32>, memref<4x4xf32>) -> ()
          return %b : memref<4x4xf32>
        }
        """,
        NumpyLauncher(add_one=(add_one, [FLOATS, FLOATS])),
    )
    x, w = torch.randn(4, 4), torch.randn(4, 4, requires_grad=True)
    (result,) = run(x, w)
    torch.testing.assert_close(result, (x + 1) @ w.detach() + 1)
    assert not result.requires_grad
    (again,) = run(x, w)
    assert torch.equal(result, again) and result.data_ptr() != again.data_ptr()


def test_views_reach_kernels_by_base_pointer_and_libraries_as_tensors() -> None:
    launcher = NumpyLauncher(fill=(lambda source, target: target.fill(source[5]), [FLOATS, FLOATS]))
    run = program(
        """
        func.func private @fill(memref<2x3xf32, strided<[4, 1], offset: 5>>, memref<4x4xf32>)
        func.func @main(%x: memref<4x4xf32>) -> (memref<2x3xf32>, memref<4x2xf32, strided<[4, 1], offset: 2>>) {
          %v = memref.reinterpret_cast %x to offset: [5], sizes: [2, 3], strides: [4, 1]
              : memref<4x4xf32> to memref<2x3xf32, strided<[4, 1], offset: 5>>
          %c = "fusion.extern"(%v) {op = "aten.cos.default", args = [#fusion.operand<0>]}
              : (memref<2x3xf32, strided<[4, 1], offset: 5>>) -> memref<2x3xf32>
          %a = memref.alloc() : memref<4x4xf32>
          func.call @fill(%v, %a) : (memref<2x3xf32, strided<[4, 1], offset: 5>>, memref<4x4xf32>) -> ()
          %r = memref.reinterpret_cast %a to offset: [2], sizes: [4, 2], strides: [4, 1]
              : memref<4x4xf32> to memref<4x2xf32, strided<[4, 1], offset: 2>>
          return %c, %r : memref<2x3xf32>, memref<4x2xf32, strided<[4, 1], offset: 2>>
        }
        """,
        launcher,
    )
    x = torch.randn(4, 4)
    cosine, view = run(x)
    torch.testing.assert_close(cosine, x[1:3, 1:].cos())
    assert launcher.log[0][1][0] == x.data_ptr()
    assert view.stride() == (4, 1) and torch.equal(view, x[1, 1].expand(4, 2))


def test_gpu_launches_carry_their_configuration() -> None:
    launcher = NumpyLauncher(double=(double, [FLOATS, FLOATS]), never=(double, [FLOATS, FLOATS]))
    run = program(
        """
        module attributes {gpu.container_module} {
          gpu.module @kernels {
            gpu.func @double(%a: memref<16xf32>, %b: memref<16xf32>) kernel { gpu.return }
            gpu.func @never(%a: memref<16xf32>, %b: memref<16xf32>) kernel { gpu.return }
          }
          func.func @main(%x: memref<16xf32>) -> memref<16xf32> {
            %y = memref.alloc() : memref<16xf32>
            %c0 = arith.constant 0 : index
            %c1 = arith.constant 1 : index
            %c3 = arith.constant 3 : index
            %c256 = arith.constant 256 : index
            %shared = arith.constant 1024 : i32
            gpu.launch_func @kernels::@double blocks in (%c3, %c1, %c1) threads in (%c256, %c1, %c1)
                dynamic_shared_memory_size %shared args(%x : memref<16xf32>, %y : memref<16xf32>)
            gpu.launch_func @kernels::@never blocks in (%c0, %c1, %c1) threads in (%c256, %c1, %c1)
                args(%x : memref<16xf32>, %y : memref<16xf32>)
            return %y : memref<16xf32>
          }
        }
        """,
        launcher,
    )
    x = torch.randn(16)
    (result,) = run(x)
    assert torch.equal(result, x * 2)
    ((launch, arguments),) = launcher.log
    assert (launch.grid, launch.block, launch.shared_bytes) == ((3, 1, 1), (256, 1, 1), 1024)
    assert arguments == [x.data_ptr(), result.data_ptr()]


def test_arguments_and_repeated_values_as_results() -> None:
    run = program(
        """
        func.func @main(%x: memref<4xf32>) -> (memref<4xf32>, memref<4xf32>, memref<4xf32>) {
          %c = "fusion.extern"(%x) {op = "aten.cos.default", args = [#fusion.operand<0>]}
              : (memref<4xf32>) -> memref<4xf32>
          return %c, %x, %c : memref<4xf32>, memref<4xf32>, memref<4xf32>
        }
        """
    )
    x = torch.randn(4)
    first, same, again = run(x)
    assert same is x and again is first and torch.equal(first, x.cos())


def test_booleans_lie_as_bytes_and_come_back_as_booleans() -> None:
    run = program(
        """
        func.func private @flip(memref<4xi8>, memref<4xi8>)
        func.func @main(%m: memref<4xi8> {fusion.dtype = "bool"})
            -> (memref<4xi8> {fusion.dtype = "bool"}, memref<4xi8>) {
          %a = memref.alloc() : memref<4xi8>
          func.call @flip(%m, %a) : (memref<4xi8>, memref<4xi8>) -> ()
          %n = "fusion.extern"(%a) {op = "aten.logical_not.default", args = [#fusion.operand<0>], dtypes = ["bool"]}
              : (memref<4xi8>) -> memref<4xi8>
          return %n, %a : memref<4xi8>, memref<4xi8>
        }
        """,
        NumpyLauncher(flip=(lambda a, b: np.copyto(b, 1 - a), [(4, "int8"), (4, "int8")])),
        result_dtypes=[None, torch.uint8],
    )
    mask = torch.tensor([True, False, True, True])
    same, flipped = run(mask)
    assert torch.equal(same, mask) and flipped.dtype is torch.uint8
    assert flipped.tolist() == [0, 1, 0, 0]


def test_a_constant_is_returned_as_a_copy() -> None:
    run = program(
        """
        memref.global "private" constant @c : memref<2x2xbf16> = dense<[[1.0, -2.5], [0x7FC0, 4.0]]>
        memref.global "private" constant @d : memref<3xi64> = dense<7>
        func.func @main() -> (memref<2x2xbf16>, memref<3xi64>) {
          %c = memref.get_global @c : memref<2x2xbf16>
          %d = memref.get_global @d : memref<3xi64>
          return %c, %d : memref<2x2xbf16>, memref<3xi64>
        }
        """
    )
    floats, integers = run()
    expected = torch.tensor([[1.0, -2.5], [float("nan"), 4.0]], dtype=torch.bfloat16)
    torch.testing.assert_close(floats, expected, equal_nan=True)
    integers.zero_()
    assert run()[1].tolist() == [7, 7, 7]


RESOURCE = """
memref.global "private" constant @c : memref<3xbf16> = dense_resource<"layer/w.1">
func.func @main() -> memref<3xbf16> {
  %c = memref.get_global @c : memref<3xbf16>
  return %c : memref<3xbf16>
}
"""


def test_a_constant_may_be_a_resource() -> None:
    data = '{-# dialect_resources: { builtin: { other: "0x0100000000", "layer/w.1": "0x02000000803F40C00001" } } #-}'
    (values,) = program(RESOURCE + data)()
    assert values.tolist() == [1.0, -3.0, 2.3509887016445750e-38]


def test_a_resource_without_its_values_is_named() -> None:
    with pytest.raises(ValueError, match="does not have the values of dense_resource"):
        program(RESOURCE)()


def test_arguments_that_lie_differently_are_copied() -> None:
    launcher = NumpyLauncher(double=(double, [FLOATS, FLOATS]))
    run = program(DOUBLE, launcher)
    x = torch.randn(4, 4).t()
    assert torch.equal(run(x)[0], x * 2)
    assert launcher.log[-1][1][0] != x.data_ptr()
    misaligned = torch.randn(17)[1:].view(4, 4)
    assert torch.equal(run(misaligned)[0], misaligned * 2)
    assert int(launcher.log[-1][1][0]) % 16 == 0
    aligned = torch.randn(4, 4)
    run(aligned)
    assert launcher.log[-1][1][0] == aligned.data_ptr()


DOUBLE = """
    func.func private @double(memref<4x4xf32>, memref<4x4xf32>)
    func.func @main(%x: memref<4x4xf32> {fusion.name = "hidden"}) -> memref<4x4xf32> {
      %y = memref.alloc() : memref<4x4xf32>
      func.call @double(%x, %y) : (memref<4x4xf32>, memref<4x4xf32>) -> ()
      return %y : memref<4x4xf32>
    }
"""


@pytest.mark.parametrize(
    ("arguments", "error", "message"),
    [
        ([torch.zeros(4, 5)], RuntimeError, r"argument 0 \(hidden\): expected shape \(4, 4\), got \(4, 5\)"),
        ([torch.zeros(4)], RuntimeError, r"expected shape \(4, 4\), got \(4\)"),
        ([torch.zeros(4, 4, dtype=torch.float64)], RuntimeError, "expected dtype torch.float32, got torch.float64"),
        ([3], TypeError, r"argument 0 \(hidden\): expected a tensor, got int"),
        ([], TypeError, "expected 1 arguments, got 0"),
        ([torch.zeros(4, 4, device="meta")], RuntimeError, "compiled for cpu, called with a tensor on meta"),
    ],
)
def test_wrong_arguments_are_named(arguments: list, error: type[Exception], message: str) -> None:
    run = program(DOUBLE, NumpyLauncher(double=(double, [FLOATS, FLOATS])))
    with pytest.raises(error, match=message):
        run(*arguments)


def test_a_call_that_writes_an_argument_writes_the_callers_tensor() -> None:
    run = program(
        """
        func.func @main(%x: memref<4xf32>) -> memref<4xf32> {
          %y = "fusion.extern"(%x) {op = "aten.relu_.default", args = [#fusion.operand<0>], tied = [[0, 0]]}
              : (memref<4xf32>) -> memref<4xf32>
          return %y : memref<4xf32>
        }
        """
    )
    strided = torch.tensor([-1.0, 9.0, 2.0, 9.0, -3.0, 9.0, 4.0, 9.0])[::2]
    (result,) = run(strided)
    assert result is strided and strided.tolist() == [0, 2, 0, 4]


def test_results_that_alias_an_operand_or_lie_differently_are_copied() -> None:
    run = program(
        """
        func.func @main(%x: memref<4x4xf32>) -> (memref<4x4xf32>, memref<4x4xf32>, memref<4x4xf32, strided<[1, 4]>>) {
          %a = "fusion.extern"(%x) {op = "aten.contiguous.default", args = [#fusion.operand<0>]}
              : (memref<4x4xf32>) -> memref<4x4xf32>
          %b = "fusion.extern"(%x) {op = "aten.t.default", args = [#fusion.operand<0>]}
              : (memref<4x4xf32>) -> memref<4x4xf32>
          %c = "fusion.extern"(%x) {op = "aten.cos.default", args = [#fusion.operand<0>]}
              : (memref<4x4xf32>) -> memref<4x4xf32, strided<[1, 4]>>
          return %a, %b, %c : memref<4x4xf32>, memref<4x4xf32>, memref<4x4xf32, strided<[1, 4]>>
        }
        """
    )
    x = torch.randn(4, 4)
    same, turned, cosine = run(x)
    assert torch.equal(same, x) and same.data_ptr() != x.data_ptr()
    assert torch.equal(turned, x.t()) and turned.is_contiguous()
    assert torch.equal(cosine, x.cos()) and cosine.stride() == (1, 4)


@pytest.mark.parametrize(
    ("result", "message"),
    [("memref<5xf32>", r"aten.cos.default: expected shape \(5,\), got \(4,\)"), ("memref<4xf64>", "expected dtype")],
)
def test_a_library_that_returns_something_else_is_reported(result: str, message: str) -> None:
    run = program(
        f"""
        func.func @main(%x: memref<4xf32>) -> {result} {{
          %c = "fusion.extern"(%x) {{op = "aten.cos.default", args = [#fusion.operand<0>]}}
              : (memref<4xf32>) -> {result}
          return %c : {result}
        }}
        """
    )
    with pytest.raises(RuntimeError, match=message):
        run(torch.zeros(4))


def test_memory_is_dropped_at_its_deallocation() -> None:
    """The pool and the tensors in it are gone when the last call runs."""
    seen: list[bool] = []
    run = program(
        """
        func.func private @look(memref<16xf32>)
        func.func @main(%x: memref<16xf32>) -> memref<16xf32> {
          %pool = memref.alloc() : memref<64xi8>
          %c0 = arith.constant 0 : index
          %v = memref.view %pool[%c0][] : memref<64xi8> to memref<16xf32>
          %c = "fusion.extern"(%v) {op = "aten.cos.default", args = [#fusion.operand<0>]}
              : (memref<16xf32>) -> memref<16xf32>
          memref.dealloc %pool : memref<64xi8>
          func.call @look(%x) : (memref<16xf32>) -> ()
          return %c : memref<16xf32>
        }
        """,
        NumpyLauncher(look=(lambda x: seen.append(any(map(is_pool, live_tensors()))), [FLOATS])),
    )
    run(torch.zeros(16))
    assert seen == [False]


def live_tensors() -> list[torch.Tensor]:
    import gc

    return [each for each in gc.get_objects() if type(each) is torch.Tensor]


def is_pool(tensor: torch.Tensor) -> bool:
    return tensor.dtype is torch.int8 and tensor.shape == (64,)


def test_what_the_host_program_cannot_do_is_said_when_it_is_built() -> None:
    with pytest.raises(ValueError, match=r"can't execute 'memref\.copy'"):
        program(
            """
            func.func @main(%x: memref<4xf32>, %y: memref<4xf32>) {
              memref.copy %x, %y : memref<4xf32> to memref<4xf32>
              return
            }
            """
        )
    with pytest.raises(ValueError, match="no function @main"):
        program("func.func private @other()")
