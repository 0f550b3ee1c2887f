"""The CUDA launcher on a real driver, with PTX written by hand."""

import contextlib
import os
import re
import subprocess
import sys
import threading
from pathlib import Path

import pytest
import torch
from mlir_fusion.dialects import fusion
from mlir_fusion.dialects.mlir import ir
from mlir_fusion.driver.programs import make_program
from mlir_fusion.runtime.cuda import CudaLauncher
from mlir_fusion.runtime.program import Program

ADD = """
.version 7.0
.target sm_80
.address_size 64
.visible .entry add(.param .u64 source, .param .u64 target, .param .f32 amount, .param .u64 count)
{
  .reg .pred %p; .reg .b32 %r<4>; .reg .f32 %f<3>; .reg .b64 %d<6>;
  ld.param.u64 %d0, [source]; ld.param.u64 %d1, [target]; ld.param.f32 %f0, [amount]; ld.param.u64 %d2, [count];
  mov.u32 %r0, %ctaid.x; mov.u32 %r1, %ntid.x; mov.u32 %r2, %tid.x;
  mad.lo.s32 %r3, %r0, %r1, %r2;
  cvt.u64.u32 %d3, %r3;
  setp.ge.u64 %p, %d3, %d2;
  @%p bra END;
  shl.b64 %d3, %d3, 2;
  add.s64 %d4, %d0, %d3; add.s64 %d5, %d1, %d3;
  ld.global.f32 %f1, [%d4]; add.f32 %f2, %f1, %f0; st.global.f32 [%d5], %f2;
END:
  ret;
}
"""
COUNT = 100_000
HOST = """
module attributes {gpu.container_module} {
  gpu.module @kernels {
    gpu.func @add(%a: memref<100000xf32>, %b: memref<100000xf32>, %c: f32, %d: index) kernel { gpu.return }
  }
  func.func @main(%x: memref<100000xf32>, %amount: f32) -> memref<100000xf32> {
    %y = memref.alloc() : memref<100000xf32>
    %n = arith.constant 100000 : index
    %one = arith.constant 1 : index
    %blocks = arith.constant 391 : index
    %threads = arith.constant THREADS : index
    %shared = arith.constant SHARED : i32
    gpu.launch_func @kernels::@add blocks in (%blocks, %one, %one) threads in (%threads, %one, %one)
        dynamic_shared_memory_size %shared
        args(%x : memref<100000xf32>, %y : memref<100000xf32>, %amount : f32, %n : index)
    return %y : memref<100000xf32>
  }
}
"""


def adds(ptx: str = ADD, threads: int = 256, shared: int = 0) -> Program:
    """A program that adds a number to a tensor."""
    with ir.Context() as context, ir.Location.unknown():
        fusion.load(context)
        host = ir.Module.parse(HOST.replace("THREADS", str(threads)).replace("SHARED", str(shared)))
        return make_program(host, CudaLauncher(ptx))


def test_a_kernel_runs_after_what_is_on_the_current_stream() -> None:
    add, source = adds(), torch.randn(COUNT, device="cuda")
    assert torch.equal(add(source, 1.5)[0], source + 1.5)
    stream = torch.cuda.Stream()
    stream.wait_stream(torch.cuda.current_stream())
    with torch.cuda.stream(stream):
        torch.cuda._sleep(10_000_000)
        late = source * 2
        (result,) = add(late, -1.0)
    stream.synchronize()
    assert torch.equal(result, source * 2 - 1)


def test_much_shared_memory_can_be_had() -> None:
    source = torch.randn(COUNT, device="cuda")
    assert torch.equal(adds(shared=100_000)(source, 1.0)[0], source + 1)


def test_threads_share_a_program() -> None:
    add, source = adds(), torch.randn(COUNT, device="cuda")
    results: list[torch.Tensor] = [source] * 8

    def work(number: int) -> None:
        for _ in range(200):
            (results[number],) = add(source, float(number))

    threads = [threading.Thread(target=work, args=(number,)) for number in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    torch.cuda.synchronize()
    for number, result in enumerate(results):
        assert torch.equal(result, source + float(number))


def test_what_is_on_another_device_or_of_another_kind_is_refused() -> None:
    add = adds()
    with pytest.raises(RuntimeError, match="compiled for cuda, called with a tensor on cpu"):
        add(torch.zeros(COUNT), 1.0)
    with pytest.raises(RuntimeError, match=r"expected dtype torch\.float32, got torch\.float64"):
        add(torch.zeros(COUNT, dtype=torch.float64, device="cuda"), 1.0)


def test_broken_ptx_is_reported_with_what_the_driver_says() -> None:
    add = adds(ADD.replace("ret;", "rot;"))
    with pytest.raises(RuntimeError, match=r"loading the kernels failed: CUDA_ERROR_INVALID_PTX: .*\n.*line"):
        add(torch.zeros(COUNT, device="cuda"), 1.0)


def test_an_impossible_launch_names_the_kernel_and_leaves_the_device_usable() -> None:
    source = torch.ones(COUNT, device="cuda")
    with pytest.raises(RuntimeError, match=r"launching kernel add .*\(4096, 1, 1\).*CUDA_ERROR_INVALID_VALUE"):
        adds(threads=4096)(source, 1.0)
    assert torch.equal(adds()(source, 1.0)[0], source + 1)


def test_synchronising_names_the_kernel_at_fault() -> None:
    """In a process of its own, for a fault leaves CUDA unusable."""
    broken = ADD.replace("cvt.u64.u32 %d3, %r3;", "cvt.u64.u32 %d3, %r3; mov.u64 %d0, 64;")
    code = f"""
import sys; sys.path.insert(0, {str(Path(__file__).parent)!r})
import test_gpu_launcher as here, torch
try:
    here.adds({broken!r})(torch.zeros(here.COUNT, device="cuda"), 1.0)
except RuntimeError as error:
    print(error)
"""
    environment = {**os.environ, "MLIR_FUSION_SYNC": "1"}
    said = subprocess.run([sys.executable, "-c", code], env=environment, capture_output=True, text=True).stdout
    assert re.search(r"running kernel add \(grid .* on memref<100000xf32>.* failed: CUDA_ERROR_ILLEGAL_ADDRESS", said)


def test_many_calls_leave_memory_and_files_as_they_were() -> None:
    add, source = adds(), torch.randn(COUNT, device="cuda")
    add(source, 1.0)
    torch.cuda.synchronize()
    before = torch.cuda.memory_allocated(), len(os.listdir("/proc/self/fd"))
    for _ in range(10_000):
        add(source, 1.0)
    torch.cuda.synchronize()
    assert (torch.cuda.memory_allocated(), len(os.listdir("/proc/self/fd"))) == before


def test_a_full_card_is_reported_with_the_kernel_and_used_again_afterwards() -> None:
    add, source = adds(), torch.randn(COUNT, device="cuda")
    add(source, 1.0)
    torch.cuda.empty_cache()
    hogs: list[torch.Tensor] = []
    try:
        # Down to what the allocator hands out of its smallest segments
        for size in (2**30, 2**25, 2**21, 2**19, 2**15, 512):
            with contextlib.suppress(torch.OutOfMemoryError):
                while True:
                    hogs.append(torch.empty(size, dtype=torch.int8, device="cuda"))
        with pytest.raises(torch.OutOfMemoryError, match=r"This was for \[100000\] of torch.float32 for kernel add"):
            add(source, 1.0)
    finally:
        hogs.clear()
    assert torch.equal(add(source, 1.0)[0], source + 1)
