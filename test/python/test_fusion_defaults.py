"""Which fusion type each way in uses where nothing is said, and that each can be told another."""

from __future__ import annotations

import pytest
import torch
from mlir_fusion.driver import stages
from mlir_fusion.driver.options import Options

import mlir_fusion

TYPES = ("consecutive", "dataflow", "none")


def crossing(a: torch.Tensor, b: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
    """Two operations with a library call between them that the second does not need."""
    c = a + b
    return c @ b, a - c


@pytest.fixture
def compiled(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """The fusion types of what is compiled, as it is."""
    found: list[str] = []
    choose = stages._fusion_pass

    def spy(options: Options):
        found.append(options.fusion_type)
        return choose(options)

    monkeypatch.setattr(stages, "_fusion_pass", spy)
    monkeypatch.setenv("MLIR_FUSION_DISABLE", "disk_cache")
    torch._dynamo.reset()
    return found


def inputs(extent: int) -> tuple[torch.Tensor, torch.Tensor]:
    return torch.randn(extent, extent), torch.randn(extent, extent)


def test_compile_uses_consecutive(compiled: list[str]) -> None:
    mlir_fusion.compile(crossing)(*inputs(5))
    assert set(compiled) == {"consecutive"}


def test_the_backend_uses_dataflow(compiled: list[str]) -> None:
    torch.compile(crossing, backend="mlir_fusion")(*inputs(6))
    assert set(compiled) == {"dataflow"}


@pytest.mark.parametrize("fusion_type", TYPES)
def test_either_takes_a_fusion_type(compiled: list[str], fusion_type: str) -> None:
    mlir_fusion.compile(crossing, fusion_type=fusion_type)(*inputs(7))
    assert set(compiled) == {fusion_type}
    compiled.clear()
    torch._dynamo.reset()
    torch.compile(crossing, backend="mlir_fusion", options={"fusion_type": fusion_type})(*inputs(9))
    assert set(compiled) == {fusion_type}


@pytest.mark.parametrize(("fusion_type", "regions"), [("consecutive", 2), ("dataflow", 1)])
def test_the_report_tells_them_apart(fusion_type: str, regions: int) -> None:
    found = mlir_fusion.explain(crossing, *inputs(8), fusion_type=fusion_type)
    (graph,) = found.graphs
    assert (graph.fusion_type, graph.regions, graph.extern_calls, graph.ops) == (fusion_type, regions, 1, 3)
    assert graph.source_peak_bytes == 3 * 8 * 8 * 4


def test_explain_reports_dynamic_inputs_for_the_sizes_given() -> None:
    a, b = inputs(8)
    torch._dynamo.mark_dynamic(a, 0)
    (dynamic,) = mlir_fusion.explain(lambda x, y: torch.relu(x @ y) + 1, a, b, fusion_type="dataflow").graphs
    (static,) = mlir_fusion.explain(lambda x, y: torch.relu(x @ y) + 1, *inputs(8), fusion_type="dataflow").graphs
    assert dynamic == static


@pytest.mark.parametrize("fusion_type", ["consecutive", "dataflow"])
def test_what_a_program_computes_twice_is_not_held_in_between(fusion_type: str) -> None:
    """PyTorch holds three buffers at most; one result of the equal operations, held for all, would be a fourth."""

    def paths(x: torch.Tensor, weight: torch.Tensor, total: torch.Tensor) -> torch.Tensor:
        for _ in range(4):
            total = torch.addmm(total, torch.relu(torch.relu(x) @ weight), weight)
        return total

    tensors = [torch.randn(16, 16) for _ in range(3)]
    (graph,) = mlir_fusion.explain(paths, *tensors, fusion_type=fusion_type).graphs
    assert graph.peak_bytes <= 3 * 16 * 16 * 4
    assert graph.source_peak_bytes == 3 * 16 * 16 * 4
