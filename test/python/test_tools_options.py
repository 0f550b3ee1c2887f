"""The options page, the folder of compiled code, and bisecting."""

from __future__ import annotations

import os
from collections.abc import Mapping
from pathlib import Path

import pytest
from mlir_fusion.driver.environment import VARIABLES
from mlir_fusion.driver.errors import UserError
from mlir_fusion.driver.options import Options, Value, declarations
from mlir_fusion.passes import PASSES
from mlir_fusion.runtime.disk_cache import DiskCache
from mlir_fusion.tools.bisect import Verdict, best_located, describe, find, optional_parts
from mlir_fusion.tools.mlir_fusion import main

LONG = "MLIR_FUSION_TEST_LONG" in os.environ
ROOT = Path(__file__).resolve().parents[2]

# Exits with status 1 if two things come together: fewer than three regions, and vectors
SCRIPT = """
import os, sys
from mlir_fusion.dialects.mlir import ir
from mlir_fusion.driver.build import emit_text
from mlir_fusion.driver.options import Options
from mlir_fusion.driver.runner import make_context

PROGRAM = '''
func.func @main(%a: tensor<64xf32>) -> tensor<64xf32> {
  %0 = tensor.empty() : tensor<64xf32>
  %b = linalg.exp ins(%a : tensor<64xf32>) outs(%0 : tensor<64xf32>) -> tensor<64xf32>
  %c = linalg.log ins(%b : tensor<64xf32>) outs(%0 : tensor<64xf32>) -> tensor<64xf32>
  %d = linalg.exp ins(%c : tensor<64xf32>) outs(%0 : tensor<64xf32>) -> tensor<64xf32>
  %e = linalg.log ins(%d : tensor<64xf32>) outs(%0 : tensor<64xf32>) -> tensor<64xf32>
  return %e : tensor<64xf32>
}
'''
options = Options(fusion_type=sys.argv[1]).override_from_environment(os.environ)
with make_context():
    text = emit_text(ir.Module.parse(PROGRAM), options, "kernel")
sys.exit(text.count('"fusion.kernel"') < 3 and "vector = 4" in text)
"""


def test_the_page_of_options_is_up_to_date(capfd):
    """`mlir-fusion options --markdown > docs/options.md` makes it so."""
    assert main(["options", "--markdown"]) == 0
    assert capfd.readouterr().out == (ROOT / "docs" / "options.md").read_text()


def test_the_folder_is_described_and_cleared(tmp_path: Path, monkeypatch, capfd):
    monkeypatch.setenv("MLIR_FUSION_CACHE_DIR", str(tmp_path))
    DiskCache(tmp_path, 1 << 20).put("kernels", "0" * 64, {}, b"code")
    assert main(["cache", "info"]) == 0
    assert capfd.readouterr().out.startswith(f"{tmp_path}: 1 entries, ")
    assert main(["cache", "clear"]) == 0
    assert capfd.readouterr().out == f"1 entries removed from {tmp_path}\n"
    assert main(["cache", "clean"]) == 1
    assert "unknown action 'clean', did you mean 'clear'?" in capfd.readouterr().err


def test_the_optional_parts_come_in_the_order_of_the_pipeline():
    parts = [(part.option, part.passes) for part in optional_parts(Options(matmul="on"))]
    assert dict(parts) == {
        "matmul": ("fusion-select-library",),
        "matmul_epilogue": ("fusion-segment",),
        "fma": ("fusion-normalize",),
        "fast_math": ("fusion-normalize",),
        "vectorize": ("fusion-schedule",),
        "cluster": ("fusion-schedule",),
        "persistent": ("fusion-schedule",),
        "horizontal": ("fusion-batch",),
        "index32": ("fusion-to-gpu",),
        "kernel_reuse": ("fusion-to-cpu", "fusion-to-gpu"),
    }
    order = list(PASSES)
    assert sorted(parts, key=lambda part: order.index(part[1][0])) == parts
    assert "fma" not in [part.option for part in optional_parts(Options(fma=False))]


PARTS = optional_parts(Options())
OFF = {part.option: part.off for part in PARTS}


@pytest.mark.parametrize("guilty", [None, *(part.option for part in PARTS)])
@pytest.mark.parametrize("fusions", [0, 1, 2, 7, 8, 1000])
def test_what_is_found_is_what_is_guilty(fusions: int, guilty: str | None):
    tried = []

    def fails(changes: Mapping[str, Value]) -> bool:
        tried.append(changes)
        enough = changes.get("optimization_fuel", 1 << 30)
        assert isinstance(enough, int)
        return enough >= fusions and (guilty is None or guilty not in changes)

    verdict = find(PARTS, fails)
    assert verdict.fusions == fusions
    assert (verdict.part.option if verdict.part else None) == guilty
    assert fails(verdict.changes)
    assert len(tried) < 30


def test_a_script_that_succeeds_is_not_bisected():
    with pytest.raises(UserError, match="the script succeeds"):
        find(PARTS, lambda _: False)


def test_a_script_that_does_not_always_fail_is_told():
    with pytest.raises(UserError, match="does not always do the same"):
        find(PARTS, lambda changes: not changes)


def test_notes_that_know_the_source_are_shown():
    known, unknown, text = ('a at loc("f.py":3:0)', "a at loc(unknown)", 'a at loc("-":1:2)')
    assert best_located([unknown, known, text, known]) == [known]
    assert best_located([unknown, unknown]) == [unknown]


def test_one_fusion_is_one():
    assert describe(Verdict({"optimization_fuel": 1}, 1, None), []).startswith(
        "It fails with 1 fusion, and not with 0."
    )


def test_a_verdict_in_words():
    text = describe(Verdict({"optimization_fuel": 2, "fma": False}, 2, PARTS[0]), ["the last fusion: x"])
    assert text.splitlines() == [
        "It fails with 2 fusions, and not with 1.",
        "the last fusion: x",
        "The first pass that makes it fail: fusion-normalize, by option fma.",
        "To repeat: MLIR_FUSION_OPTIONS=optimization_fuel=2,fma=false",
    ]


@pytest.mark.parametrize("fusion_type", ["consecutive", "dataflow"] if LONG else ["dataflow"])
def test_a_script_is_bisected(fusion_type: str, tmp_path: Path, monkeypatch, capfd):
    script = tmp_path / "script.py"
    script.write_text(SCRIPT)
    assert main(["bisect", str(script), fusion_type]) == 0
    lines = capfd.readouterr().out.splitlines()
    assert lines[0] == "It fails with 2 fusions, and not with 1."
    assert lines[1].startswith("the last fusion: linalg.generic at ")
    assert "joins the region of linalg.generic at " in lines[1]
    assert lines[2] == "The first pass that makes it fail: fusion-schedule, by option vectorize."
    monkeypatch.setenv("MLIR_FUSION_DISABLE", "vectorize")
    assert main(["bisect", str(script), fusion_type]) == 1
    assert "the script succeeds" in capfd.readouterr().err


def test_every_option_is_on_the_page():
    page = (ROOT / "docs" / "options.md").read_text()
    assert all(f"| {option.name} |" in page for option in declarations())


def test_every_environment_variable_is_on_the_page():
    page = (ROOT / "docs" / "options.md").read_text()
    assert all(f"| {name} | {meaning} |" in page for name, meaning in VARIABLES.items())
