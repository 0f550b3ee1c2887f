"""The page that `explain(...).save` writes: its data, its layout, and that it works in a browser where there is one."""

from __future__ import annotations

import json
import random
import re
import shutil
from collections.abc import Iterator
from pathlib import Path

import pytest
import torch
from mlir_fusion.dialects.mlir import ir
from mlir_fusion.driver.options import Options
from mlir_fusion.driver.page import page
from mlir_fusion.driver.page.anatomy import Anatomy, Box, Node, dissect
from mlir_fusion.driver.page.contents import Program, Texts, describe
from mlir_fusion.driver.page.layout import lay_out, layers_of
from mlir_fusion.driver.page.pieces import body_pieces, nested_pieces, ptx_pieces
from mlir_fusion.driver.runner import make_context
from mlir_fusion.driver.tables import Table
from torch import Tensor

import mlir_fusion

STAGES = {"torch", "linalg", "region", "schedule", "kernel", "gpu", "nvvm", "ptx"}


def block(x: Tensor, w: Tensor, scale: Tensor) -> tuple[Tensor, Tensor]:
    y = torch.nn.functional.gelu(x * scale) @ w
    z = torch.relu(y + x)
    return z.softmax(-1), z.sum(0)


def block_inputs() -> tuple[Tensor, Tensor, Tensor]:
    return torch.randn(6, 33), torch.randn(33, 33), torch.randn(33)


@pytest.fixture(scope="module")
def saved(tmp_path_factory: pytest.TempPathFactory) -> Path:
    report = mlir_fusion.explain(block, *block_inputs(), target="sm_90")
    return report.save(tmp_path_factory.mktemp("page") / "report.html")


def read_data(path: Path) -> dict:
    found = re.search(r'<script type="application/json" id="data">(.*?)</script>', path.read_text("utf-8"), re.DOTALL)
    assert found
    return json.loads(found[1])


def test_each_kernel_has_the_text_of_every_stage(saved: Path):
    data = read_data(saved)
    (graph,) = data["graphs"]
    kernels = [box for box in graph["boxes"] if box["kind"] == "kernel"]
    assert len(kernels) >= 3
    for box in kernels:
        assert set(box["stages"]) == STAGES
        texts = {stage: data["texts"][number] for stage, number in box["stages"].items()}
        assert texts["torch"].count("torch.aten.") >= 1 and "loc(" not in texts["torch"]
        assert texts["linalg"].count("linalg.generic") == box["ops"]
        assert texts["region"].count("fusion.region") == 1 and texts["kernel"].count("fusion.kernel") == 1
        assert f'name = "{box["name"]}"' in texts["kernel"] and "memref<" in texts["kernel"]
        assert texts["gpu"].startswith(("gpu.func @", "#")) and texts["nvvm"].startswith("llvm.func @")
        assert texts["ptx"].count(".entry ") == 1 and texts["ptx"].rstrip().endswith("}")
    assert any(re.match(rf".*{re.escape(Path(__file__).name)}:\d+$", line) for line in kernels[0]["lines"])


def test_every_operation_is_in_a_box_and_edges_go_forward(saved: Path):
    (graph,) = read_data(saved)["graphs"]
    report = mlir_fusion.explain(block, *block_inputs(), target="sm_90")
    assert sum(box["ops"] for box in graph["boxes"]) == report.total("ops")
    assert [box["name"] for box in graph["boxes"] if box["kind"] == "call"] == ["mm"]
    for source, reader in graph["edges"]:
        assert graph["nodes"][source]["box"] <= graph["nodes"][reader]["box"]
    assert [one["name"] for one in graph["timelines"]] == ["consecutive", "dataflow", "none"]


def test_it_says_why_kernels_are_apart(saved: Path):
    (graph,) = read_data(saved)["graphs"]
    reasons = [reason for _, _, reason in graph["apart"]]
    assert any(reason.startswith("one region, but no schedule takes both: ") for reason in reasons)


@pytest.mark.parametrize(
    ("fusion_type", "reason"),
    [
        ("consecutive", "mm stands between them in the source: a library call"),
        ("dataflow", "mm needs the first and the second needs it: a library call"),
        ("none", "fusion type none: each operation is a kernel"),
    ],
)
def test_why_kernels_of_two_regions_are_apart(fusion_type: str, reason: str, tmp_path: Path):
    def around(x: Tensor, w: Tensor) -> Tensor:
        y = x.exp()
        return (y @ w) + y

    report = mlir_fusion.explain(around, torch.randn(5, 5), torch.randn(5, 5), fusion_type=fusion_type)
    (graph,) = read_data(report.save(tmp_path / "report.html"))["graphs"]
    assert [reason for _, _, reason in graph["apart"]] == [reason]


def test_a_program_for_the_cpu_ends_with_llvm(tmp_path: Path):
    report = mlir_fusion.explain(lambda x: x.exp() + 1, torch.randn(5), target="cpu")
    data = read_data(report.save(tmp_path / "report.html"))
    (box,) = data["graphs"][0]["boxes"]
    assert "llvm.func @" in data["texts"][box["stages"]["llvm"]] and "ptx" not in box["stages"]


def test_a_program_that_begins_at_linalg_has_no_torch_stage():
    text = """
    #map = affine_map<(d0) -> (d0)>
    func.func @main(%x: tensor<64xf32>) -> tensor<64xf32> {
      %0 = tensor.empty() : tensor<64xf32>
      %1 = linalg.generic {indexing_maps = [#map, #map], iterator_types = ["parallel"]}
          ins(%x : tensor<64xf32>) outs(%0 : tensor<64xf32>) {
      ^bb0(%a: f32, %b: f32):
        %e = math.exp %a : f32
        %f = arith.negf %e : f32
        linalg.yield %f : f32
      } -> tensor<64xf32>
      %2 = "fusion.extern"(%1) {op = "aten.cos.default", args = [#fusion.operand<0>]}
          : (tensor<64xf32>) -> tensor<64xf32>
      return %2 : tensor<64xf32>
    }"""
    with make_context():
        anatomy = dissect(ir.Module.parse(text), Options(target="sm_90"))
    assert [(box.kind, box.nodes) for box in anatomy.boxes] == [("kernel", (0,)), ("call", (1,))]
    assert anatomy.reads == [(), (0,)] and [node.label for node in anatomy.nodes] == ["exp+negf", "cos"]
    assert set(anatomy.boxes[0].stages) == STAGES - {"torch"}


def test_what_is_computed_again_is_drawn_in_both_kernels(tmp_path: Path):
    def cast_twice(x: Tensor, w: Tensor) -> Tensor:
        y = x.float()
        return y * (y.exp() @ w)

    inputs = torch.randn(8, 8, dtype=torch.float16), torch.randn(8, 8)
    report = mlir_fusion.explain(cast_twice, *inputs, fusion_type="dataflow", target="sm_90")
    (graph,) = read_data(report.save(tmp_path / "report.html"))["graphs"]
    kernels = [number for number, box in enumerate(graph["boxes"]) if box["kind"] == "kernel"]
    first, second = ([node["label"] for node in graph["nodes"] if node["box"] == number] for number in kernels)
    assert first[0] == second[0] and len(first) == len(second) == 2
    # So the second kernel reads nothing of the first, only of the call between them
    boxes = [(graph["nodes"][source]["box"], graph["nodes"][reader]["box"]) for source, reader in graph["edges"]]
    assert (kernels[0], kernels[1]) not in boxes and graph["apart"] == []


def test_pieces_of_a_module():
    text = """#map = affine_map<(d0) -> (d0)>
module {
  func.func @main(%x: tensor<4xf32>) -> tensor<4xf32> {
    %0 = tensor.empty() : tensor<4xf32>
    %1 = linalg.generic {indexing_maps = [#map, #map]} {
    ^bb0(%a: f32, %b: f32):
      linalg.yield %a : f32
    } -> tensor<4xf32>
    return %1 : tensor<4xf32>
  }
  gpu.module @kernels {
    gpu.func @one() {
      gpu.return
    }
    gpu.func @two() {
    ^bb1:
      gpu.return
    }
  }
}
"""
    first, second, last = body_pieces(text)
    assert (first, last) == ("%0 = tensor.empty() : tensor<4xf32>", "return %1 : tensor<4xf32>")
    assert second.splitlines()[0].startswith("#map = ") and second.splitlines()[-1] == "} -> tensor<4xf32>"
    assert [piece.splitlines()[0] for piece in nested_pieces(text, "gpu.module @")] == [
        "gpu.func @one() {",
        "gpu.func @two() {",
    ]
    ptx = ".version 8.0\n// note\n.visible .entry a(\n)\n{\n ret;\n}\n.visible .entry b(\n)\n{\n}\n"
    assert ptx_pieces(ptx) == {
        "a": ".version 8.0\n\n.visible .entry a(\n)\n{\n ret;\n}",
        "b": ".version 8.0\n\n.visible .entry b(\n)\n{\n}",
    }
    assert ptx_pieces("") == {}


def random_anatomy(nodes: int, a_box: int, seed: int = 0) -> Anatomy:
    """A program of kernels of `a_box` operations, each of which reads one or two of the last twenty."""
    chance = random.Random(seed)
    reads = [tuple({chance.randrange(max(0, n - 20), n) for _ in range(1 + n % 2)} if n else ()) for n in range(nodes)]
    with make_context(), ir.Location.unknown():
        fused = ir.Module.create().operation
    boxes = [
        Box("kernel", f"kernel_{start}", tuple(range(start, min(start + a_box, nodes))), region=start, bytes=1, flops=1)
        for start in range(0, nodes, a_box)
    ]
    for box in boxes:
        box.stages = {"ptx": f"// the code of {box.name}"}
    made = [Node(f"add_{number}", "64x64xf32", ("model.py:1",), None) for number in range(nodes)]
    return Anatomy(made, reads, boxes, fused)


def page_of(anatomy: Anatomy, monkeypatch: pytest.MonkeyPatch, title: str = "large") -> str:
    program = Program(title, ir.Module.create, Options(fusion_type="none"), (), Table("", (), ()), {})
    monkeypatch.setattr(page, "contents", lambda one, texts: describe(one, anatomy, texts))
    return page.make_page(title, [program])


@pytest.mark.parametrize(("nodes", "a_box"), [(1, 1), (60, 1), (60, 7), (400, 20)])
def test_nothing_overlaps_and_readers_are_below(nodes: int, a_box: int):
    anatomy = random_anatomy(nodes, a_box)
    drawn = describe(
        Program("", ir.Module.create, Options(fusion_type="none"), (), Table("", (), ()), {}), anatomy, Texts()
    )
    boxes = [(box["x"], box["y"], box["x"] + box["w"], box["y"] + box["h"]) for box in drawn["boxes"]]  # pyright: ignore
    for number, (left, top, right, bottom) in enumerate(boxes):
        for other in boxes[:number]:
            assert right <= other[0] or other[2] <= left or bottom <= other[1] or other[3] <= top
    for node in drawn["nodes"]:  # pyright: ignore
        left, top, right, bottom = boxes[node["box"]]
        assert left < node["x"] and node["x"] + node["w"] < right
        assert top < node["y"] and node["y"] + node["h"] < bottom
    for source, reader in drawn["edges"]:  # pyright: ignore
        one, other = drawn["nodes"][source], drawn["nodes"][reader]  # pyright: ignore
        if one["box"] == other["box"]:
            assert one["y"] + one["h"] < other["y"]


def test_layers():
    assert layers_of([], {}) == []
    assert layers_of([0, 1, 2, 3], {1: [0], 2: [1], 3: [1]}) == [[0], [1], [2, 3]]
    # What reads nothing stands above its reader
    assert layers_of([0, 1, 2, 3], {1: [0], 3: [1, 2]}) == [[0], [1, 2], [3]]
    assert lay_out([], [], []).width == 0


def test_text_of_a_program_cannot_leave_its_element(monkeypatch: pytest.MonkeyPatch):
    anatomy = random_anatomy(1, 1)
    anatomy.boxes[0].stages = {"ptx": "</script><b>@style@"}
    text = page_of(anatomy, monkeypatch, title="<a&b>")
    assert "</script><b>" not in text and "<title>&lt;a&amp;b&gt;</title>" in text


BROWSERS = ("chromium", "chromium-browser", "google-chrome")


@pytest.fixture(scope="module")
def browser() -> Iterator[object]:
    playwright = pytest.importorskip("playwright.sync_api", reason="needs playwright: pip install -e '.[browser]'")
    path = next(filter(None, map(shutil.which, BROWSERS)), None)
    if path is None:
        pytest.skip(f"needs a browser: {', '.join(BROWSERS)}")
    with playwright.sync_playwright() as running:
        launched = running.chromium.launch(executable_path=path, args=["--no-sandbox"])
        yield launched
        launched.close()


def opened(browser, path: Path, complaints: list[str]):
    """The page, once it has drawn itself; what its console says goes to `complaints`, and so does any request."""
    tab = browser.new_page(viewport={"width": 1400, "height": 900})
    tab.on("console", lambda message: complaints.append(message.text))
    tab.on("pageerror", lambda error: complaints.append(str(error)))
    tab.on("request", lambda request: complaints.append(request.url) if request.url.startswith("http") else None)
    tab.goto(path.as_uri())
    tab.wait_for_selector("body[data-ready]")
    return tab


def test_a_browser_opens_it_and_a_click_shows_the_ptx(browser, saved: Path):
    complaints: list[str] = []
    tab = opened(browser, saved, complaints)
    data = read_data(saved)
    kernels = [n for n, box in enumerate(data["graphs"][0]["boxes"]) if box["kind"] == "kernel"]
    assert tab.locator("#world .box").count() == len(data["graphs"][0]["boxes"])
    for number in reversed(kernels):
        box = data["graphs"][0]["boxes"][number]
        tab.locator(f'#world .box[data-box="{number}"] > .name').dispatch_event("click")
        assert tab.locator("#name").inner_text() == box["name"]
        assert tab.locator("#text").inner_text() == data["texts"][box["stages"]["ptx"]]
    tab.locator('#stages [data-stage="linalg"]').click()
    assert "linalg.generic" in tab.locator("#text").inner_text()
    tab.locator("#search").fill("softmax")
    tab.locator("#search").fill("exp")
    assert tab.locator("#found").inner_text() == f"{tab.locator('.node.hit').count()} found" != "0 found"
    tab.locator("#search").press("Enter")
    tab.mouse.move(400, 400)
    before = tab.evaluate("state.k")
    tab.mouse.wheel(0, -400)
    tab.wait_for_function(f"state.k > {before}")
    assert complaints == []


def test_a_browser_takes_2000_operations(browser, tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    path = tmp_path / "large.html"
    path.write_text(page_of(random_anatomy(2000, 4), monkeypatch), "utf-8")
    complaints: list[str] = []
    tab = opened(browser, path, complaints)
    assert tab.locator("#world .node").count() == 2000
    took = """(act) => { const start = performance.now(); eval(act);
      document.getElementById("world").getBoundingClientRect(); return performance.now() - start; }"""
    # A few milliseconds on a machine that is not busy. What grows faster than the graph would take seconds even there
    for act in ("zoom(1.1, 200, 200)", "search('add_17')", "select(300, true)"):
        assert min(tab.evaluate(took, act) for _ in range(3)) < 2000, act
    assert complaints == []
