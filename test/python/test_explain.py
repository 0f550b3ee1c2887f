"""What `mlir_fusion.explain` tells: arithmetic, times, lines of the source, memory over time; as text and as HTML."""

from __future__ import annotations

import pytest
import torch
import torch.nn.functional as F
from mlir_fusion.dialects.mlir import ir
from mlir_fusion.driver.runner import make_context
from mlir_fusion.driver.tables import Table, bars, seconds_text
from mlir_fusion.frontend.explain import Explanation
from mlir_fusion.passes.arithmetic import flops_of
from mlir_fusion.passes.source_lines import lines_in
from mlir_fusion.targets.target import Target
from torch import Tensor, nn

import mlir_fusion


def scaled_softmax(x: Tensor, scale: Tensor) -> Tensor:
    y = x * scale
    return y.softmax(-1)


def first_line() -> int:
    return scaled_softmax.__code__.co_firstlineno


@pytest.fixture(scope="module")
def explained() -> Explanation:
    return mlir_fusion.explain(scaled_softmax, torch.randn(6, 33), torch.randn(33), target="sm_90")


def test_kernels_know_their_source_lines(explained: Explanation):
    (graph,) = explained.graphs
    (kernel,) = graph.kernel_list
    assert kernel.lines == tuple(f"{__file__}:{first_line() + offset}" for offset in (1, 2))
    assert kernel.schedule == "inner_reduction" and "33 columns" in kernel.why


def test_arithmetic_and_times(explained: Explanation):
    (graph,) = explained.graphs
    (kernel,) = graph.kernel_list
    # A product, a maximum, a difference, an exponential, a sum and a quotient an element
    assert graph.flops == kernel.flops == 6 * 6 * 33
    assert kernel.bytes == 4 * (6 * 33 + 33 + 6 * 33)
    assert graph.seconds == kernel.seconds == kernel.bytes / (Target.parse("sm_90").memory_bandwidth * 1e9)


def test_the_printed_tables(explained: Explanation):
    text = str(explained)
    assert text.startswith("forward graph, fusion type consecutive, target sm_90\n")
    assert f"test_explain.py:{first_line() + 1}, {first_line() + 2}" in text
    assert "launch by launch, 792 at most\n  █\n" in text
    assert explained.graphs[0].kernel_list[0].why in text


def test_the_notebooks_tables(explained: Explanation):
    html = explained._repr_html_()
    assert html.count("<table>") == html.count("</table>") == 2
    assert ">inner_reduction</td>" in html and "1,188" in html


def test_a_comparison_has_the_columns_asked_for(explained: Explanation):
    table = explained.compare("dataflow", "none")
    assert table.headings == ("", "dataflow", "none")
    rows = {name: values for name, *values in table.rows}
    assert rows["kernels"] == ["1", "6"] and rows["ops"] == ["6", "6"]
    assert 'style="text-align:right">6</td>' in table._repr_html_()
    with pytest.raises(ValueError, match="unknown fusion type 'dataflw', did you mean 'dataflow'"):
        explained.compare("dataflw")


def test_timelines_end_at_what_is_returned():
    def three(x: Tensor, w: Tensor) -> Tensor:
        return torch.relu(torch.relu(x @ w) @ w)

    (graph,) = mlir_fusion.explain(three, torch.randn(8, 8), torch.randn(8, 8), fusion_type="none").graphs
    assert len(graph.timeline) == graph.kernels + graph.extern_calls == 4
    assert max(graph.timeline) == graph.peak_bytes and graph.timeline[0] == 8 * 8 * 4


class Calls(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.convolve = nn.Conv2d(4, 6, 3)
        self.spread = nn.ConvTranspose2d(6, 2, 2, stride=2)

    def forward(self, x: Tensor, q: Tensor, k: Tensor) -> tuple[Tensor, Tensor, Tensor]:
        return self.spread(self.convolve(x)), F.scaled_dot_product_attention(q, k, k), torch.fft.rfft(x).real


def test_flops_of_library_calls():
    model = Calls().eval()
    with torch.no_grad():
        report = mlir_fusion.explain(model, torch.randn(3, 4, 8, 8), torch.randn(1, 2, 5, 16), torch.randn(1, 2, 7, 16))
    found = [(call.op, call.flops) for call in report.graphs[0].call_list]
    convolutions = [flops for name, flops in found if name == "aten.convolution.default"]
    # By definition: a product and a sum for each element of the result (of the input, transposed) and of its filter
    assert convolutions == [2 * (3 * 6 * 6 * 6) * (4 * 3 * 3), 2 * (3 * 6 * 6 * 6) * (2 * 2 * 2)]
    assert [flops for name, flops in found if "dot_product" in name] == [2 * 2 * (2 * 5 * 16) * 7]
    assert [flops for name, flops in found if "fft" in name] == [None]
    assert "unknown" in str(report)


@pytest.mark.parametrize(
    ("body", "flops"),
    [
        ("%r = math.fma %a, %a, %a : f32", 2),
        ("%c = math.absf %a : f32\n %r = arith.maximumf %c, %a : f32", 2),
        ("%b = arith.extf %a : f32 to f64\n %r = arith.truncf %b : f64 to f32", 0),
        ("%i = arith.fptosi %a : f32 to i32\n %j = arith.addi %i, %i : i32\n %r = arith.sitofp %j : i32 to f32", 0),
    ],
)
def test_what_counts_as_arithmetic(body: str, flops: int):
    text = f"""
    #map = affine_map<(d0, d1) -> (d0, d1)>
    func.func @f(%x: tensor<3x5xf32>) -> tensor<3x5xf32> {{
      %0 = tensor.empty() : tensor<3x5xf32>
      %1 = linalg.generic {{indexing_maps = [#map, #map], iterator_types = ["parallel", "parallel"]}}
          ins(%x : tensor<3x5xf32>) outs(%0 : tensor<3x5xf32>) {{
      ^bb0(%a: f32, %o: f32):
        {body}
        linalg.yield %r : f32
      }} -> tensor<3x5xf32>
      return %1 : tensor<3x5xf32>
    }}"""
    with make_context(), ir.Location.unknown():
        module = ir.Module.parse(text)
        operations = list(module.body.operations[0].operation.regions[0].blocks[0].operations)
        assert flops_of(operations[1].operation) == flops * 3 * 5


@pytest.mark.parametrize(
    ("location", "lines"),
    [
        ("loc(unknown)", []),
        ('loc("a.py":7:0)', ["a.py:7"]),
        ('loc("name"("a.py":7:3))', ["a.py:7"]),
        ('loc(callsite("a.py":7:0 at "b.py":8:0))', ["a.py:7"]),
        ('loc(callsite("a.py":7:0 at callsite("b.py":8:0 at "c.py":9:0)))', ["a.py:7"]),
        ('loc(fused[callsite("a.py":7:0 at "b.py":8:0), "c.py":9:0])', ["a.py:7", "c.py:9"]),
        ('loc(fused["-":0:0, "a at b.py":9:0])', ["a at b.py:9"]),
    ],
)
def test_lines_of_locations(location: str, lines: list[str]):
    assert list(lines_in(location)) == lines


def test_long_cells_are_folded_and_numbers_are_not():
    table = Table("", ("name", "number"), (("x " * 200, "1,234,567"),), frozenset({1}))
    assert "1,234,567" in str(table) and len(str(table).splitlines()) > 3


@pytest.mark.parametrize(
    ("seconds", "text"), [(2.0, "2 s"), (1.5e-3, "1.5 ms"), (20.3e-9, "20.3 ns"), (4e-11, "0.04 ns"), (0.0, "0 ns")]
)
def test_times(seconds: float, text: str):
    assert seconds_text(seconds) == text


def test_bars_show_the_highest_of_each_stretch():
    assert bars([]) == bars([0, 0]) == ""
    assert bars([0, 7]) == "▁█"
    many = [0] * 1000
    many[500] = 3
    assert len(bars(many)) == 64 and bars(many).count("█") == 1
