"""The option autotune: variations compute the same, the fastest is kept, and measured once."""

from __future__ import annotations

import logging
import os
from pathlib import Path
from typing import Any

import pytest
import torch
import torch.nn.functional as F
from mlir_fusion.dialects import fusion
from mlir_fusion.dialects.mlir import ir
from mlir_fusion.driver import autotune
from mlir_fusion.driver.build import emit_text
from mlir_fusion.driver.levels import body_of
from mlir_fusion.driver.lower import lower
from mlir_fusion.driver.options import Options
from mlir_fusion.driver.runner import make_context
from mlir_fusion.passes.graph import functions
from mlir_fusion.passes.schedules.variations import KEEP_ORDER, variations
from torch import Tensor

import mlir_fusion


def softmax(x: Tensor) -> Tensor:
    return (x * 2).softmax(-1)


def columns(x: Tensor) -> Tensor:
    return x.exp().sum(0)


def gelu(x: Tensor) -> Tensor:
    return F.gelu(x.half(), approximate="tanh").float() + x


def turned(x: Tensor) -> Tensor:
    return (x.t() * 2).contiguous()


def running(x: Tensor) -> Tensor:
    return x.cumsum(-1) + 1


LONG = "MLIR_FUSION_TEST_LONG" in os.environ
FUNCTIONS = (softmax, columns, gelu)


@pytest.fixture(autouse=True)
def _nothing_measured(cold: Path) -> None:
    torch._dynamo.reset()
    autotune.forget_measurements()


@pytest.fixture
def measured(monkeypatch) -> list[int]:
    """Candidates that were measured, one entry each; the last of a kernel's is the fastest."""
    seen: list[int] = []

    def seconds(run: Any, device_type: str) -> float:
        run()
        seen.append(len(seen))
        return 1 / len(seen)

    monkeypatch.setattr(autotune, "seconds", seconds)
    monkeypatch.setattr(autotune, "MOST_SECONDS", 1000.0)
    return seen


def schedules(text: str) -> list[str]:
    return [line.split("#fusion.schedule<")[1] for line in text.splitlines() if "#fusion.schedule<" in line]


@pytest.mark.parametrize("function", FUNCTIONS, ids=lambda function: function.__name__)
def test_the_fastest_is_kept_and_computes_the_same(function: Any, measured: list[int]):
    x = torch.randn(24, 72)
    plain, tuned = mlir_fusion.compile(function), mlir_fusion.compile(function, enable_options=["autotune"])
    torch.testing.assert_close(plain(x), function(x), rtol=2e-3, atol=2e-3)
    random = torch.random.get_rng_state()
    torch.testing.assert_close(tuned(x), plain(x), rtol=1e-5, atol=1e-5)
    assert torch.equal(torch.random.get_rng_state(), random)
    assert len(measured) > 1
    assert schedules(tuned.ir("kernel")) != schedules(plain.ir("kernel"))
    assert "the fastest measured; else: " in tuned.ir("kernel")


def test_what_was_measured_is_kept_in_the_process_and_on_disk(measured: list[int], cold: Path):
    x = torch.randn(24, 72)
    first = mlir_fusion.compile(gelu, enable_options=["autotune"])
    first(x)
    count = len(measured)
    for renew in (lambda: None, autotune.forget_measurements):
        torch._dynamo.reset()
        renew()
        again = mlir_fusion.compile(gelu, enable_options=["autotune"])
        again(x)
        assert schedules(again.ir("kernel")) == schedules(first.ir("kernel"))
        assert len(measured) == count > 1
    assert list((cold / "schedules").iterdir())


def test_without_the_disk_nothing_of_it_is_kept_there(measured: list[int], cold: Path):
    mlir_fusion.compile(softmax, enable_options=["autotune"], disable_options=["disk_cache"])(torch.randn(24, 72))
    assert measured
    assert not cold.exists()


def test_no_more_than_the_time_allowed_is_spent(monkeypatch, measured: list[int]):
    monkeypatch.setattr(autotune, "MOST_SECONDS", 0.0)
    mlir_fusion.compile(softmax, enable_options=["autotune"])(torch.randn(24, 72))
    assert len(measured) == 1


def test_what_can_not_be_measured_is_not_taken(monkeypatch, measured: list[int], cold: Path, caplog):
    """The first of the variations stands for one that needs more registers than there are."""
    plain, refused = autotune._Tuner._seconds, []

    def seconds(tuner: Any, alone: Any, candidate: Any) -> float:
        if len(measured) == 1 and not refused:
            refused.append(candidate)
            raise RuntimeError("too many resources requested for launch")
        return plain(tuner, alone, candidate)

    monkeypatch.setattr(autotune._Tuner, "_seconds", seconds)
    x = torch.randn(24, 72)
    torch.testing.assert_close(mlir_fusion.compile(gelu, enable_options=["autotune"])(x), gelu(x), rtol=2e-3, atol=2e-3)
    assert refused and len(measured) > 1
    assert "too many resources" in caplog.text


def test_without_memory_the_schedule_stays_and_nothing_is_kept(monkeypatch, measured: list[int], cold: Path):
    def refuse(*_: object) -> None:
        raise torch.OutOfMemoryError("CUDA out of memory")

    tuned, plain = mlir_fusion.compile(gelu, enable_options=["autotune"]), mlir_fusion.compile(gelu)
    x = torch.randn(24, 72)
    with monkeypatch.context() as patch:
        patch.setattr(autotune, "_inputs_of", refuse)
        torch.testing.assert_close(tuned(x), plain(x))
    assert schedules(tuned.ir("kernel")) == schedules(plain.ir("kernel"))
    assert not measured
    assert not (cold / "schedules").exists()


def test_a_little_faster_is_not_enough(monkeypatch):
    times = iter([1.0, *[autotune.ENOUGH + 0.01] * 100])
    monkeypatch.setattr(autotune, "seconds", lambda *_: next(times))
    tuned, plain = mlir_fusion.compile(gelu, enable_options=["autotune"]), mlir_fusion.compile(gelu)
    x = torch.randn(24, 72)
    tuned(x), plain(x)
    assert schedules(tuned.ir("kernel")) == schedules(plain.ir("kernel"))


def test_deterministic_sums_are_not_tuned(measured: list[int]):
    tuned = mlir_fusion.compile(softmax, enable_options=["autotune", "deterministic"])
    tuned(torch.randn(24, 72))
    assert not measured
    mlir_fusion.compile(gelu, enable_options=["autotune", "deterministic"])(torch.randn(24, 72))
    assert measured


def without_heading(text: str) -> str:
    """The text of a graph, without the comment that names the options."""
    return text.partition("\n")[2]


def test_what_is_compiled_for_a_gpu_that_is_not_here_keeps_its_schedule(caplog: pytest.LogCaptureFixture):
    if torch.cuda.is_available():
        pytest.skip("there is one")
    with caplog.at_level(logging.WARNING):
        fast = mlir_fusion.compile(softmax, target="sm_90", enable_options=["autotune"]).lower(torch.randn(24, 72))
        plain = mlir_fusion.compile(softmax, target="sm_90").lower(torch.randn(24, 72))
    assert "no device for sm_90 here to measure on" in caplog.text
    assert without_heading(fast.ir("kernel")) == without_heading(plain.ir("kernel"))


@pytest.mark.parametrize("function", [*FUNCTIONS, turned, running], ids=lambda function: function.__name__)
def test_each_variation_for_a_gpu_compiles(function: Any):
    fast = mlir_fusion.compile(function, target="sm_90", fusion_type="dataflow").lower(torch.randn(96, 1024))
    text = fast.ir("linalg")
    with make_context():
        module = lower(ir.Module.parse(text), Options(fusion_type="dataflow"), "schedule")
        (kernel,) = [op for one in functions(module) for op in body_of(one) if fusion.is_op(op, "kernel")]
        schedule = fusion.read_schedule(kernel.attributes["schedule"])
        assert schedule is not None
        varied = variations(schedule.family, schedule.parameters, "gpu")
        assert len(varied) > 1 and schedule.parameters not in varied
        for parameters in varied if LONG else varied[::4]:
            assert parameters.keys() == schedule.parameters.keys()
            kernel.attributes["schedule"] = fusion.schedule(schedule.family, parameters, "")
            assert ".visible .entry" in str(emit_text(ir.Module.parse(str(module)), Options(), "ptx"))


def test_families_that_keep_the_order_of_sums():
    assert set(KEEP_ORDER) == {"pointwise", "transpose", "generic"}
