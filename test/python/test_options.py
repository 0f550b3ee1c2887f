"""Options through the front door: levels, calls, threads, what is compiled and what is not."""

from __future__ import annotations

import functools
import threading
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest
import torch
from mlir_fusion.dialects.mlir import ir, register_torch
from mlir_fusion.driver.cached_stages import full_text
from mlir_fusion.driver.lower import lower
from mlir_fusion.driver.options import Declaration, Options, declarations
from mlir_fusion.driver.runner import make_context
from mlir_fusion.frontend import graph_build, sized_graph, variants
from torch import Tensor, nn

import mlir_fusion


def f(x: Tensor) -> Tensor:
    return (x.exp() + x).cos() * x.sum(-1, keepdim=True)


@pytest.fixture(autouse=True)
def _no_graphs() -> Iterator[None]:
    torch._dynamo.reset()
    yield


@dataclass
class Built:
    """What was compiled, in order: under which options, and for fixed sizes from what, and the host program."""

    options: list[Options] = field(default_factory=list)
    texts: list[str] = field(default_factory=list)
    hosts: list[str] = field(default_factory=list)


@pytest.fixture
def built(monkeypatch) -> Built:
    seen, plain = Built(), graph_build.build

    def build(module: Any, options: Options, counts: Any) -> Any:
        seen.options.append(options)
        seen.texts.append(full_text(module))
        artifact = plain(module, options, counts)
        seen.hosts.append(full_text(artifact.host))
        return artifact

    plain_sized = sized_graph.build_sized

    def build_sized(first: Any, second: Any, examples: Any, options: Options, counts: Any) -> Any:
        seen.options.append(options)
        return plain_sized(first, second, examples, options, counts)

    monkeypatch.setattr(graph_build, "build", build)
    monkeypatch.setattr(sized_graph, "build_sized", build_sized)
    return seen


def fusions(fast: Any) -> list[str]:
    """The fusion types of the graphs compiled so far."""
    return [graph.options.fusion_type for graph in graphs(fast)]


def graphs(fast: Any) -> list[Any]:
    return fast.ir.__self__._compiler.graphs


def check(fast: Any, *shape: int, **options: Any) -> None:
    x = torch.randn(shape)
    torch.testing.assert_close(fast(x, **options), f(x), rtol=1e-5, atol=1e-5)


def alternatives(option: Declaration) -> tuple[str, str]:
    """Two values, to be switched between."""
    if isinstance(option.default, bool):
        return f"{option.name}=true", f"{option.name}=false"
    if option.name == "target":
        return "target=cpu", "target=sm_90"
    if option.choices:
        return f"{option.name}={option.choices[0]}", f"{option.name}={option.choices[-1]}"
    return f"{option.name}=3", f"{option.name}=1"


def g(x: Tensor) -> Tensor:
    """With something for most options: a product, what follows it, sums and siblings."""
    y = (x @ x.t()).relu()
    return f(x).sum(0) + y.exp().sum() * y.amax() + x.cos().mean(0)


@pytest.mark.parametrize("option", declarations(), ids=lambda option: option.name)
def test_one_callable_under_two_values_of_an_option_in_turn(option: Declaration, built: Built):
    """With the same inputs and with new shapes, in both orders; what runs is what is compiled without any cache."""
    for first, second in (alternatives(option), alternatives(option)[::-1]):
        fast = mlir_fusion.compile(g, dynamic=False, fusion_type="dataflow", enable_options=["matmul"])
        for shape in ((4, 8), (3, 16)):
            x = torch.randn(shape)
            for value in (first, second, first):
                if value == "target=sm_90":
                    with pytest.raises((RuntimeError, ValueError), match=r"cuda|a GPU, but the tensors are on the CPU"):
                        fast(x, _enable_options=[value])
                else:
                    torch.testing.assert_close(fast(x, _enable_options=[value]), g(x), rtol=1e-4, atol=1e-4)
        values = [getattr(graph.options, option.name) for graph in graphs(fast)]
        assert len(values) == 4 and values[0] != values[1] and values[:2] == values[2:]
    if option.name != "autotune":
        for options, text, host in zip(built.options, built.texts, built.hosts, strict=True):
            assert host == without_caches(text, options)


@functools.cache
def without_caches(text: str, options: Options) -> str:
    context = make_context()
    register_torch(context)
    with context:
        return full_text(lower(ir.Module.parse(text), options, "gpu"))


def test_the_environment_is_read_at_every_call(monkeypatch):
    fast = mlir_fusion.compile(f)
    check(fast, 4, 8)
    monkeypatch.setenv("MLIR_FUSION_OPTIONS", "fusion_type=dataflow")
    check(fast, 4, 8)
    check(fast, 4, 8, _enable_options=["fusion_type=none"])
    monkeypatch.delenv("MLIR_FUSION_OPTIONS")
    check(fast, 4, 8)
    assert fusions(fast) == ["consecutive", "dataflow", "none"]


def test_the_environment_is_read_at_every_call_of_what_torch_compiled(monkeypatch):
    fast = torch.compile(f, backend="mlir_fusion", options={"disable_options": ["vectorize"]})  # pyright: ignore
    check(fast, 4, 8)
    monkeypatch.setenv("MLIR_FUSION_ENABLE", "nothing")
    with pytest.raises(ValueError, match="MLIR_FUSION_ENABLE: unknown option 'nothing'"):
        fast(torch.randn(4, 8))
    monkeypatch.setenv("MLIR_FUSION_ENABLE", "vectorize")
    check(fast, 4, 8)


def test_what_torch_compiled_follows_the_environment_and_the_blocks_around_its_calls(monkeypatch, built: Built):
    options = {"enable_options": ["max_region_ops=7"]}
    fast = torch.compile(f, backend="mlir_fusion", dynamic=False, options=options)  # pyright: ignore
    for _ in range(2):
        check(fast, 4, 8)
        with mlir_fusion.options("none"):
            check(fast, 4, 8)
        monkeypatch.setenv("MLIR_FUSION_OPTIONS", "fusion_type=consecutive")
        check(fast, 4, 8)
        with mlir_fusion.options("none"):
            check(fast, 3, 16)
        monkeypatch.delenv("MLIR_FUSION_OPTIONS")
    assert [options.fusion_type for options in built.options] == ["dataflow", "none", "consecutive", "consecutive"]
    assert {options.max_region_ops for options in built.options} == {7}


def test_two_things_that_torch_compiled_share_no_graph_of_other_options(built: Built):
    for fusion_type in ("none", "dataflow"):
        with mlir_fusion.options(fusion_type):
            check(torch.compile(f, backend="mlir_fusion"), 4, 8)
    assert [options.fusion_type for options in built.options] == ["none", "dataflow"]


@pytest.mark.parametrize("dynamic", [False, True])
@pytest.mark.parametrize("entry", ["compile", "torch.compile"])
def test_a_backward_pass_has_the_options_of_its_forward_pass(entry: str, dynamic: bool, monkeypatch, built: Built):
    fast = (
        mlir_fusion.compile(f, fusion_type="dataflow", dynamic=dynamic)
        if entry == "compile"
        else torch.compile(f, backend="mlir_fusion", dynamic=dynamic)
    )
    inputs, results = [], []
    for rows, setting in ((4, "none"), (4, "consecutive"), (5, "none"), (5, "dataflow")):
        monkeypatch.setenv("MLIR_FUSION_OPTIONS", f"fusion_type={setting}")
        inputs.append(torch.randn(rows, 8, requires_grad=True))
        results.append(fast(inputs[-1]))
    monkeypatch.setenv("MLIR_FUSION_OPTIONS", "fusion_type=dataflow,max_region_ops=5")
    for x, y in reversed(list(zip(inputs, results, strict=True))):
        expected = f(x)
        torch.testing.assert_close(y, expected)
        grads = [torch.autograd.grad(result.sum(), x)[0] for result in (y, expected)]
        torch.testing.assert_close(*grads)
    assert all(options.max_region_ops != 5 for options in built.options)
    kinds = [options.fusion_type for options in built.options]
    expected = {"none": 2 if dynamic else 4, "consecutive": 2, "dataflow": 2}
    assert {kind: kinds.count(kind) for kind in kinds} == expected


def test_more_sets_of_options_than_dynamo_recompiles_for(built: Built):
    fast = mlir_fusion.compile(f)
    for most in range(1, 12):
        check(fast, 4, 8, _enable_options=[f"max_region_ops={most}"])
    assert [options.max_region_ops for options in built.options] == list(range(1, 12))


def test_without_isolated_recompilations_variants_have_code_of_their_own(monkeypatch, built: Built):
    """As where PyTorch is older."""
    monkeypatch.setattr(variants, "ISOLATES", False)
    for function in (f, nn.Sequential(nn.GELU(), nn.Softmax(-1))):
        built.options.clear()
        fast, x = mlir_fusion.compile(function), torch.randn(4, 8)
        for most in range(1, 12):
            torch.testing.assert_close(fast(x, _enable_options=[f"max_region_ops={most}"]), function(x))
        assert [options.max_region_ops for options in built.options] == list(range(1, 12))


def test_a_runtime_option_compiles_nothing(monkeypatch):
    fast = mlir_fusion.compile(f)
    check(fast, 4, 8)
    before = fast.cache_info()
    monkeypatch.setenv("MLIR_FUSION_DISABLE", "disk_cache")
    check(fast, 4, 8)
    after = fast.cache_info()
    assert {stage: count.misses for stage, count in after.items()} == {
        stage: count.misses for stage, count in before.items()
    }
    assert after["kernels"].hits > before["kernels"].hits


def test_a_schedule_option_reuses_the_regions(cold: Path):
    fast = mlir_fusion.compile(f)
    check(fast, 4, 8)
    first = {stage: (count.hits, count.misses) for stage, count in fast.cache_info().items()}
    assert [first[stage] for stage in ("fusion", "segment", "schedule", "codegen")] == [(0, 1)] * 4
    check(fast, 4, 8, _disable_options=["vectorize"])
    second = {stage: (count.hits, count.misses) for stage, count in fast.cache_info().items()}
    assert [second[stage] for stage in ("fusion", "segment")] == [(1, 1)] * 2
    assert [second[stage] for stage in ("schedule", "codegen")] == [(0, 2)] * 2


def test_settings_are_captured_when_compile_returns():
    with mlir_fusion.options("dataflow", max_region_ops=7):
        fast = mlir_fusion.compile(f, enable_options=["max_region_ops=9"])
    with mlir_fusion.options("none"):
        check(fast, 4, 8)
    (graph,) = graphs(fast)
    assert (graph.options.fusion_type, graph.options.max_region_ops) == ("dataflow", 9)


def test_a_module_takes_options_with_a_call_and_the_backward_pass_has_them_too():
    model = nn.Sequential(nn.Linear(8, 8), nn.GELU())
    fast = mlir_fusion.compile(model)
    x = torch.randn(4, 8)
    fast(x, _enable_options=["fusion_type=dataflow"]).sum().backward()
    assert fusions(fast) == ["dataflow", "dataflow"]
    assert all(parameter.grad is not None for parameter in model.parameters())
    torch.testing.assert_close(fast(x), model(x))
    assert dict(fast.named_parameters()).keys() == {f"_orig_mod.{name}" for name, _ in model.named_parameters()}


@pytest.mark.parametrize("dtype", [torch.float32, torch.float64, torch.float16, torch.bfloat16])
def test_matmuls_are_compiled_where_the_option_says_so(dtype: torch.dtype):
    def products(x: Tensor, w: Tensor, b: Tensor, large: Tensor) -> tuple[Tensor, Tensor, Tensor, Tensor]:
        stacked = torch.stack((x, x + 1))
        return torch.addmm(b, x, w.t()).relu(), x @ w, torch.bmm(stacked, stacked.transpose(1, 2)), large @ large

    inputs = [torch.randn(shape).to(dtype) for shape in ((8, 8), (8, 8), (8,), (48, 48))]
    fast = mlir_fusion.compile(products)
    exact = products(*(value.double() for value in inputs))
    tolerance = {torch.float64: 1e-12, torch.float32: 1e-5, torch.float16: 1e-2, torch.bfloat16: 1e-1}[dtype]
    for matmul in ("off", "auto", "on"):
        for one, like in zip(fast(*inputs, _enable_options=[f"matmul={matmul}"]), exact, strict=True):
            torch.testing.assert_close(one.double(), like, rtol=tolerance, atol=tolerance)
    assert [len(graph.library) for graph in graphs(fast)] == [4, 1, 0]


def test_threads_do_not_see_each_other(monkeypatch):
    fast = mlir_fusion.compile(f)
    check(fast, 4, 8)
    failures: list[BaseException] = []

    def call(fusion_type: str) -> None:
        try:
            with mlir_fusion.options(fusion_type):
                mine = mlir_fusion.compile(f)
            for _ in range(3):
                check(fast, 4, 8, _enable_options=[f"fusion_type={fusion_type}"])
                check(mine, 4, 8)
            assert set(fusions(mine)) == {fusion_type}
        except BaseException as failure:
            failures.append(failure)

    threads = [threading.Thread(target=call, args=(kind,)) for kind in ("consecutive", "dataflow", "none")]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert not failures


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (
            lambda: mlir_fusion.compile(f, enable_options=["fuma"]),
            r"compile: unknown option 'fuma', did you mean 'fma'\?",
        ),
        (
            lambda: mlir_fusion.compile(f)(torch.ones(2, 2), _disable_options=["fuma"]),
            r"call: unknown option 'fuma', did you mean 'fma'\?",
        ),
        (
            lambda: mlir_fusion.compile(f)(torch.ones(2, 2), _enable_options=["fma"], _disable_options=["fma"]),
            "call: option 'fma' is given twice, as True and as False",
        ),
        (lambda: mlir_fusion.options(horizontl=True), "mlir_fusion.options: unknown option 'horizontl'"),
        (
            lambda: mlir_fusion.compile(f, enable_options=["max_region_ops=0"]),
            "compile: option 'max_region_ops' must be a whole number from 1 to 1000000, got 0",
        ),
    ],
)
def test_a_mistake_is_told_with_where_it_is(call: Any, message: str):
    with pytest.raises(ValueError, match=f"^{message}"):
        call()


def test_a_mistake_in_the_environment_is_told_by_the_call(monkeypatch):
    fast = mlir_fusion.compile(f)
    monkeypatch.setenv("MLIR_FUSION_DISABLE", "vectorise")
    with pytest.raises(ValueError, match=r"^MLIR_FUSION_DISABLE: unknown option 'vectorise', did you mean 'vectorize'"):
        fast(torch.ones(2, 2))
    monkeypatch.delenv("MLIR_FUSION_DISABLE")
    check(fast, 4, 8)


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"enable_options": ["fuma"]}, r"torch.compile\(options=\): unknown option 'fuma', did you mean 'fma'\?"),
        (
            {"fusion_typ": "none"},
            r"torch.compile\(options=\): unknown option 'fusion_typ', did you mean 'fusion_type'\?",
        ),
        ({"fusion_type": "nome"}, r"unknown value of fusion_type 'nome', did you mean 'none'\?"),
        ({"enable_options": ["max_region_ops=0"]}, "must be a whole number from 1 to 1000000, got 0"),
        ({"enable_options": ["fma"], "disable_options": ["fma"]}, "option 'fma' is given twice"),
    ],
)
def test_torch_compile_tells_a_mistake_in_its_options(options: dict[str, Any], message: str):
    with pytest.raises(Exception, match=message):
        torch.compile(f, backend="mlir_fusion", options=options)(torch.ones(2, 2))


def test_torch_compile_tells_a_mistake_in_the_environment_at_the_first_call(monkeypatch):
    monkeypatch.setenv("MLIR_FUSION_ENABLE", "fuma")
    with pytest.raises(Exception, match=r"MLIR_FUSION_ENABLE: unknown option 'fuma', did you mean 'fma'\?"):
        torch.compile(f, backend="mlir_fusion")(torch.ones(2, 2))


def test_the_list_of_options_is_a_table():
    lines = str(mlir_fusion.list_options()).splitlines()
    assert lines[0].split() == ["option", "default", "values", "affects", "meaning"]
    assert [line.split()[0] for line in lines[1:]] == [option.name for option in declarations()]
