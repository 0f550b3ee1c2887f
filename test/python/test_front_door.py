"""What users meet first: compile, explain, options and torch.compile, their mistakes and what they are told."""

from __future__ import annotations

import logging
import re
from collections.abc import Callable, Iterator
from typing import Any

import pytest
import torch
from mlir_fusion.dialects.mlir import ir
from mlir_fusion.driver.environment import warn_of_unknown
from mlir_fusion.driver.options import Settings
from mlir_fusion.driver.runner import make_context, verify
from torch import Tensor, nn

import mlir_fusion


@pytest.fixture(autouse=True)
def _no_graphs() -> Iterator[None]:
    torch._dynamo.reset()
    yield


class _Told(logging.Handler):
    """What mlir_fusion logs."""

    def __init__(self) -> None:
        super().__init__(logging.WARNING)
        self.text = ""

    def emit(self, record: logging.LogRecord) -> None:
        self.text += record.getMessage() + "\n"


@pytest.fixture
def told() -> Iterator[_Told]:
    handler, logger = _Told(), logging.getLogger("mlir_fusion")
    logger.addHandler(handler)
    yield handler
    logger.removeHandler(handler)


def f(x: Tensor) -> Tensor:
    return (x.exp() + x).cos() * x.sum(-1, keepdim=True)


def loss(x: Tensor, target: Tensor) -> Tensor:
    return (x - target).square().mean()


def nothing(x: Tensor) -> Tensor:
    return x


def test_explain_works_as_often_as_it_is_called():
    counts = [len(mlir_fusion.explain(f, torch.randn(4, 8)).graphs) for _ in range(12)]
    assert counts == [1] * 12


def test_explain_has_no_limit_of_its_own_for_all_uses_together():
    with torch._dynamo.config.patch(accumulated_recompile_limit=4):
        counts = [len(mlir_fusion.explain(f, torch.randn(4, 8)).graphs) for _ in range(6)]
    assert counts == [1] * 6


def test_each_compiled_callable_compiles():
    x = torch.randn(4, 8)
    for _ in range(12):
        fast = mlir_fusion.compile(f, enable_options=["vectorize"])
        torch.testing.assert_close(fast(x), f(x), rtol=1e-5, atol=1e-5)
        assert "fusion.region" in fast.ir()


def test_any_number_of_sizes_is_compiled(told: _Told):
    fast = mlir_fusion.compile(f)
    for rows in range(1, 13):
        x = torch.randn(rows, 8)
        torch.testing.assert_close(fast(x), f(x), rtol=1e-5, atol=1e-5)
    assert fast.ir().count("func.func @main") == 2, "one for the first sizes, one for all"
    assert "PyTorch's limit" not in told.text


def test_one_is_told_where_pytorch_stops_compiling(told: _Told):
    fast = mlir_fusion.compile(f, dynamic=False)
    limit = torch._dynamo.config.recompile_limit
    for rows in range(1, limit):
        fast(torch.randn(rows, 8))
    assert "PyTorch's limit" not in told.text
    fast(torch.randn(limit, 8))
    assert f"f was compiled {limit} times" in told.text


def test_what_compiles_nothing_says_so():
    with pytest.raises(RuntimeError, match="nothing of nothing was compiled"):
        mlir_fusion.explain(nothing, torch.randn(4, 8))


def test_lower_returns_the_callable():
    x = torch.randn(4, 8)
    fast = mlir_fusion.compile(f)
    assert fast.lower(x) is fast
    torch.testing.assert_close(fast.lower(x)(x), f(x), rtol=1e-5, atol=1e-5)


@pytest.mark.parametrize("stage", ["linalg", "region", "kernel", "gpu", "llvm"])
def test_the_text_of_several_graphs_can_be_read_back(stage):
    model = mlir_fusion.compile(nn.Sequential(nn.LayerNorm(8), nn.GELU()), disable_options=["fma"])
    model(torch.randn(4, 8)).sum().backward()
    text = model.ir(stage)
    headings = re.findall(r"^// graph (\d) of 2, (\w+): (.*)$", text, re.MULTILINE)
    settings = "fusion_type=consecutive, target=cpu, fma=false"
    assert headings == [("1", "forward", settings), ("2", "backward", settings)]
    for part in text.split("// -----\n"):
        with make_context():
            verify(ir.Module.parse(part))


def test_a_program_for_a_gpu_is_refused_tensors_on_the_cpu():
    fast = mlir_fusion.compile(f, target="sm_90")
    with pytest.raises(ValueError, match=r"sm_90, a GPU, but the tensors are on the CPU: .*lower\(\*inputs\)"):
        fast(torch.randn(4, 8))
    assert ".entry" in fast.ptx()


def test_explain_takes_the_settings_of_what_is_compiled(monkeypatch):
    x = torch.randn(4, 8)
    fast = mlir_fusion.compile(f, fusion_type="none", target="sm_80")
    report = mlir_fusion.explain(fast, x)
    assert report.fusion_type == "none" and {graph.options.target for graph in report._sources} == {"sm_80"}
    assert mlir_fusion.explain(fast, x, fusion_type="dataflow").fusion_type == "dataflow"
    monkeypatch.setenv("MLIR_FUSION_OPTIONS", "fusion_type=dataflow")
    assert mlir_fusion.explain(fast, x).fusion_type == "dataflow"


def test_explain_takes_methods():
    class Norm:
        scale = 3.0

        @mlir_fusion.compile(fusion_type="dataflow")
        def apply(self, x: Tensor) -> Tensor:
            return x.exp() * self.scale

    report = mlir_fusion.explain(Norm().apply, torch.randn(4))
    assert report.fusion_type == "dataflow" and report.total("ops") == 2


def test_explain_leaves_a_function_its_keywords():
    x = torch.randn(4, 8)
    assert mlir_fusion.explain(loss, x, target=x).total("ops") > 0


def test_what_is_printed_is_a_table():
    x = torch.randn(4, 8)
    report = mlir_fusion.explain(f, x)
    assert repr(report) == str(report) and "module" not in repr(report)
    assert all(name in str(report.compare()) for name in ("consecutive", "dataflow", "none"))
    fast = mlir_fusion.compile(f)
    fast(x)
    assert repr(fast.cache_info()).splitlines()[0].split() == ["stage", "hits", "of", "disk", "misses"]
    assert len(repr(fast.cache_info()).splitlines()) == len(fast.cache_info()) + 1


WRONG: dict[str, tuple[Callable[[], object], type[Exception], str]] = {
    "a number": (lambda: mlir_fusion.compile(3), TypeError, "expected a function or a torch.nn.Module, got 3"),  # pyright: ignore
    "a fusion type": (lambda: mlir_fusion.compile("dataflow"), TypeError, "fusion_type='dataflow'"),  # pyright: ignore
    "a class": (lambda: mlir_fusion.compile(nn.Linear), TypeError, "got the class Linear"),
    "decorated": (lambda: mlir_fusion.compile(fusion_type="none")(3), TypeError, "got 3"),
    "explained": (lambda: mlir_fusion.explain(3, torch.ones(1)), TypeError, "got 3"),  # pyright: ignore
    "a tensor": (lambda: mlir_fusion.compile(f, target=torch.ones(2)), ValueError, r"got a value of type Tensor$"),  # pyright: ignore
    "a dictionary": (
        lambda: mlir_fusion.compile(f, enable_options={"horizontal": False, "max_region_ops": 2}),  # pyright: ignore
        ValueError,
        r"compile: .* got a dictionary; write \['horizontal=false', 'max_region_ops=2'\]",
    ),
    "disabled": (lambda: mlir_fusion.compile(f, disable_options={"fma": 1}), ValueError, "got a dictionary"),  # pyright: ignore
    "a block": (lambda: mlir_fusion.options(enable_options={"fma": 1}), ValueError, "got a dictionary"),
    "no list": (lambda: mlir_fusion.compile(f, enable_options=True), ValueError, "list of names, got True"),  # pyright: ignore
    "numbers": (lambda: mlir_fusion.compile(f, enable_options=[3]), ValueError, "a name or name=value, got 3"),  # pyright: ignore
    "another name": (
        lambda: mlir_fusion.options(enable=["matmul"]),  # pyright: ignore
        ValueError,
        "mlir_fusion.options: unknown option 'enable', did you mean 'enable_options'",
    ),
    "parameter": (lambda: mlir_fusion.options(where="x"), ValueError, "unknown option 'where'"),
    "no type": (lambda: mlir_fusion.options("matmul"), ValueError, r"options\(enable_options=\['matmul'\]\)"),
}


@pytest.mark.parametrize("case", WRONG)
def test_a_mistake_says_what_is_wrong(case):
    call, kind, message = WRONG[case]
    with pytest.raises(kind, match=message):
        call()


@pytest.mark.parametrize(
    ("stage", "kind", "message"),
    [
        (2, TypeError, "expected the name of a stage, got 2"),
        ("ptx", ValueError, "target cpu has no stage 'ptx'; its stages: linalg, region"),
        ("regoin", ValueError, "did you mean 'region'"),
        ("cubin", ValueError, "no text"),
    ],
)
def test_a_stage_that_there_is_not(stage: Any, kind: type[Exception], message: str):
    fast = mlir_fusion.compile(f)
    fast(torch.randn(4, 8))
    with pytest.raises(kind, match=message):
        fast.ir(stage)


def with_torch(**settings: Any) -> Tensor:
    return torch.compile(f, backend="mlir_fusion", **settings)(torch.ones(4, 8))


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"mode": "max-autotune"}, r"mlir_fusion has no modes \(got mode='max-autotune'\)"),
        ({"options": {"horizontl": False}}, "unknown option 'horizontl', did you mean 'horizontal'"),
        ({"options": {"max_region_ops": "many"}}, "option 'max_region_ops' must be a whole number from 1 to"),
        ({"options": {"enable_options": {"fma": True}}}, r"got a dictionary; write \['fma=true'\]"),
    ],
)
def test_a_mistake_in_torch_compile(settings, message):
    with pytest.raises(Exception, match=message):
        with_torch(**settings)


def test_torch_compile_takes_options_by_name():
    assert with_torch(mode="default").shape == (4, 8)
    settings = {"horizontal": False, "max_region_ops": 2, "fusion_type": None, "disable_options": ["fma"]}
    said = Settings.from_keywords(settings, "test")
    assert said.values == {"horizontal": False, "max_region_ops": 2, "fma": False}
    torch.testing.assert_close(with_torch(options=settings), f(torch.ones(4, 8)), rtol=1e-5, atol=1e-5)


def test_an_environment_variable_that_nobody_reads_is_told_once(told: _Told):
    names = ["MLIR_FUSION_OPTION", "MLIR_FUSION_OPTIONS", "MLIR_FUSION_TEST_LONG", "OTHER"]
    warn_of_unknown(names)
    warn_of_unknown(names)
    (line,) = told.text.splitlines()
    assert "MLIR_FUSION_OPTION is read, did you mean 'MLIR_FUSION_OPTIONS'?" in line
