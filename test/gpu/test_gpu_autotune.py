"""The option autotune on a GPU: each variation computes the same, and what is measured to be fastest is kept."""

import pytest
import torch
import torch.nn.functional as F
from mlir_fusion.driver import autotune

import mlir_fusion


def softmax(x: torch.Tensor) -> torch.Tensor:
    return (x * 2).softmax(-1)


def columns(x: torch.Tensor) -> torch.Tensor:
    return x.exp().sum(0)


def gelu(x: torch.Tensor) -> torch.Tensor:
    return F.gelu(x, approximate="tanh") + 1


def turned(x: torch.Tensor) -> torch.Tensor:
    return (x.t() * 2).contiguous()


FUNCTIONS = (softmax, columns, gelu, turned)
SHAPES = ((100, 130), (1000, 1024), (64, 40000))


@pytest.fixture(autouse=True)
def _nothing_measured(tmp_path, monkeypatch) -> None:
    monkeypatch.setenv("MLIR_FUSION_CACHE_DIR", str(tmp_path))
    torch._dynamo.reset()
    autotune.forget_measurements()


@pytest.mark.parametrize("shape", SHAPES, ids=str)
@pytest.mark.parametrize("function", FUNCTIONS, ids=lambda function: function.__name__)
def test_each_variation_computes_the_same(function, shape, monkeypatch):
    x = torch.randn(shape, device="cuda")
    expected, wrong = function(x.double()), []
    tried: list[object] = []

    def note(_, alone, parameters) -> float:
        tried.append(parameters)
        return 1.0

    monkeypatch.setattr(autotune._Tuner, "_seconds", note)
    mlir_fusion.compile(function, enable_options=["autotune"])(x)
    for number, parameters in enumerate(tried):
        torch._dynamo.reset()
        autotune.forget_measurements()
        calls = iter(range(10_000))
        monkeypatch.setattr(
            autotune._Tuner, "_seconds", lambda *_, calls=calls, number=number: 0.0 if next(calls) == number else 1.0
        )
        fast = mlir_fusion.compile(function, enable_options=["autotune"], disable_options=["disk_cache"])
        y = fast(x).double()
        if not torch.allclose(y, expected, rtol=1e-4, atol=1e-4 * float(expected.abs().max())):
            wrong.append(parameters)
    # A row that lies in shared memory has one schedule
    assert tried or (function, shape) == (softmax, (64, 40000))
    assert not wrong


@pytest.mark.parametrize("function", FUNCTIONS, ids=lambda function: function.__name__)
def test_what_is_tuned_is_right_and_found_again(function, monkeypatch):
    x = torch.randn(4096, 1024, device="cuda", dtype=torch.float16)
    state = torch.cuda.get_rng_state()
    tuned = mlir_fusion.compile(function, enable_options=["autotune"])
    torch.testing.assert_close(tuned(x).double(), function(x.double()), rtol=4e-3, atol=4e-3 * 4096)
    assert torch.equal(torch.cuda.get_rng_state(), state)
    monkeypatch.setattr(autotune, "seconds", lambda *_: pytest.fail("measured again"))
    torch._dynamo.reset()
    autotune.forget_measurements()
    again = mlir_fusion.compile(function, enable_options=["autotune"])
    again(x)
    assert again.ir("kernel") == tuned.ir("kernel")
