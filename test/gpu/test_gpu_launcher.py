"""The CUDA launcher on a real driver, with PTX written by hand."""

import threading

import pytest
import torch
from mlir_fusion.runtime.cuda import CudaLauncher
from mlir_fusion.runtime.launch import Launch, Queue

pytestmark = pytest.mark.skipif(not torch.cuda.is_available(), reason="needs a GPU")

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
LAUNCH = Launch("add", (f"memref<{COUNT}xf32>", f"memref<{COUNT}xf32>", "f32", "index"), (391, 1, 1), (256, 1, 1))


def add(launcher: CudaLauncher, source: torch.Tensor, amount: float, launch: Launch = LAUNCH) -> torch.Tensor:
    target = torch.empty_like(source)
    queue = launcher.queue(source.device)
    launcher.prepare(launch)(queue, [source.data_ptr(), target.data_ptr(), amount, COUNT])
    return target


def test_a_kernel_runs_after_what_is_on_the_current_stream() -> None:
    launcher = CudaLauncher(ADD)
    source = torch.randn(COUNT, device="cuda")
    assert torch.equal(add(launcher, source, 1.5), source + 1.5)
    stream = torch.cuda.Stream()
    stream.wait_stream(torch.cuda.current_stream())
    with torch.cuda.stream(stream):
        torch.cuda._sleep(10_000_000)
        late = source * 2
        result = add(launcher, late, -1.0)
        assert launcher.queue(source.device) == Queue(source.device.index, stream.cuda_stream)
    stream.synchronize()
    assert torch.equal(result, source * 2 - 1)


def test_much_shared_memory_can_be_had() -> None:
    source = torch.randn(COUNT, device="cuda")
    greedy = Launch("add", LAUNCH.parameters, LAUNCH.grid, LAUNCH.block, shared_bytes=100_000)
    assert torch.equal(add(CudaLauncher(ADD), source, 1.0, greedy), source + 1)


def test_threads_share_a_launcher() -> None:
    launcher = CudaLauncher(ADD)
    source = torch.randn(COUNT, device="cuda")
    launched = launcher.prepare(LAUNCH)
    targets = [torch.empty_like(source) for _ in range(8)]

    def work(number: int) -> None:
        for _ in range(200):
            arguments = [source.data_ptr(), targets[number].data_ptr(), float(number), COUNT]
            launched(launcher.queue(source.device), arguments)

    threads = [threading.Thread(target=work, args=(number,)) for number in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    torch.cuda.synchronize()
    for number, target in enumerate(targets):
        assert torch.equal(target, source + float(number))


def test_broken_ptx_is_reported_with_what_the_driver_says() -> None:
    source = torch.zeros(COUNT, device="cuda")
    with pytest.raises(RuntimeError, match=r"loading the kernels failed: CUDA_ERROR_INVALID_PTX: .*\n.*line"):
        add(CudaLauncher(ADD.replace("ret;", "rot;")), source, 1.0)


def test_an_impossible_launch_names_the_kernel_and_leaves_the_device_usable() -> None:
    source = torch.ones(COUNT, device="cuda")
    launcher = CudaLauncher(ADD)
    impossible = Launch("add", LAUNCH.parameters, (1, 1, 1), (4096, 1, 1))
    with pytest.raises(RuntimeError, match=r"launching kernel add .*\(4096, 1, 1\).*CUDA_ERROR_INVALID_VALUE"):
        add(launcher, source, 1.0, impossible)
    assert torch.equal(add(launcher, source, 1.0), source + 1)
