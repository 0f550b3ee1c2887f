"""The option cuda_graphs on a GPU: the same results, whatever changes from call to call."""

import ctypes
import threading
from dataclasses import replace

import pytest
import torch
import torch.nn.functional as F
from mlir_fusion.runtime import cuda

import mlir_fusion

OPTIONS = ["cuda_graphs", "fusion_type=none"]


def f(x: torch.Tensor) -> torch.Tensor:
    """Several kernels under fusion type none."""
    y = F.gelu(x, approximate="tanh")
    return (y.exp() + 1).log() * y.sum(-1, keepdim=True)


def mutating(x: torch.Tensor) -> torch.Tensor:
    x.mul_(2)
    return x.exp() + x.sum(-1, keepdim=True)


@pytest.fixture
def launched(monkeypatch) -> list[int]:
    """The stream of each graph that was launched."""
    torch._dynamo.reset()
    seen: list[int] = []
    kind = ctypes.CFUNCTYPE(ctypes.c_int, ctypes.c_void_p, ctypes.c_void_p)
    plain = cuda.find_entries(False)
    driver = kind(plain.launch_graph)

    def launch(executable: int, stream: int) -> int:
        seen.append(stream or 0)
        return driver(executable, stream)

    noting = kind(launch)
    address = ctypes.cast(noting, ctypes.c_void_p).value or 0
    monkeypatch.setattr(cuda, "find_entries", lambda synchronizes: replace(plain, launch_graph=address))
    monkeypatch.setattr(cuda, "noting_launches", noting, raising=False)
    return seen


def test_addresses_may_change_and_results_are_kept(launched: list[int]):
    fast = mlir_fusion.compile(f, enable_options=OPTIONS)
    inputs = [torch.randn(64, 130, device="cuda") for _ in range(6)]
    results = [fast(x) for x in inputs * 2]
    for x, y in zip(inputs * 2, results, strict=True):
        torch.testing.assert_close(y, f(x), rtol=1e-5, atol=1e-5)
    assert len({y.data_ptr() for y in results}) == len(results)
    assert len(launched) == len(results)


def test_without_the_option_there_is_no_graph(launched: list[int]):
    fast = mlir_fusion.compile(f, enable_options=OPTIONS)
    x = torch.randn(64, 130, device="cuda")
    for _ in range(2):
        torch.testing.assert_close(fast(x, _disable_options=["cuda_graphs"]), f(x), rtol=1e-5, atol=1e-5)
        assert not launched
    fast(x)
    assert launched


def test_library_calls_lie_between_graphs(launched: list[int]):
    w = torch.randn(130, 130, device="cuda") / 12

    def g(x: torch.Tensor) -> torch.Tensor:
        return f(f(x) @ w)

    fast, x = mlir_fusion.compile(g, enable_options=OPTIONS), torch.randn(64, 130, device="cuda")
    for _ in range(3):
        torch.testing.assert_close(fast(x), g(x), rtol=1e-3, atol=1e-2)
    assert len(launched) == 6


def test_mutated_inputs_and_backward(launched: list[int]):
    fast = mlir_fusion.compile(mutating, enable_options=OPTIONS)
    for _ in range(3):
        x = torch.randn(32, 64, device="cuda")
        like = x.clone()
        torch.testing.assert_close(fast(x), mutating(like), rtol=1e-5, atol=1e-5)
        assert torch.equal(x, like)
    fast = mlir_fusion.compile(f, enable_options=OPTIONS)
    for _ in range(3):
        x = torch.randn(32, 64, device="cuda", requires_grad=True)
        (grad,) = torch.autograd.grad(fast(x).sum(), x)
        (like,) = torch.autograd.grad(f(x).sum(), x)
        torch.testing.assert_close(grad, like, rtol=1e-4, atol=1e-4)
    assert launched


def test_while_the_caller_captures_kernels_are_launched_one_by_one(launched: list[int]):
    fast, x = mlir_fusion.compile(f, enable_options=OPTIONS), torch.randn(64, 130, device="cuda")
    fast(x)
    count = len(launched)
    graph = torch.cuda.CUDAGraph()
    with torch.cuda.graph(graph):
        y = fast(x)
    assert len(launched) == count
    x.copy_(torch.randn_like(x))
    graph.replay()
    torch.testing.assert_close(y, f(x), rtol=1e-5, atol=1e-5)


def test_two_threads_on_two_streams(launched: list[int]):
    fast = mlir_fusion.compile(f, enable_options=OPTIONS)
    fast(torch.randn(512, 1024, device="cuda"))
    failures: list[BaseException] = []

    def work(seed: int) -> None:
        try:
            stream = torch.cuda.Stream()
            with torch.cuda.stream(stream):
                for _ in range(50):
                    x = torch.randn(512, 1024, device="cuda")
                    torch.testing.assert_close(fast(x), f(x), rtol=1e-4, atol=1e-4)
        except BaseException as failure:
            failures.append(failure)

    threads = [threading.Thread(target=work, args=(seed,)) for seed in range(2)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert not failures


def test_memory_is_as_before_after_many_calls(launched: list[int]):
    fast, x = mlir_fusion.compile(f, enable_options=OPTIONS), torch.randn(64, 130, device="cuda")
    fast(x)
    before = torch.cuda.memory_allocated()
    for _ in range(1000):
        fast(x)
    assert torch.cuda.memory_allocated() == before
    assert len(launched) == 1001
