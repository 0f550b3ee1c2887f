"""Pipelines as text: what they mean, that they print back, and where mistakes are."""

import pytest
from hypothesis import given
from hypothesis import strategies as st
from mlir_fusion.dialects.mlir import ir
from mlir_fusion.driver.errors import UserError
from mlir_fusion.driver.options import Options
from mlir_fusion.driver.pipeline import whole_settings
from mlir_fusion.driver.pipeline_text import Nest, PassText, PipelineError, Whole, parse, print_steps, resolve
from mlir_fusion.passes.fusion_consecutive import FusionConsecutive
from mlir_fusion.passes.fusion_normalize import FusionNormalize


def test_passes_of_ours_and_upstreams_mix():
    with ir.Context():
        steps = resolve("builtin.module(cse, func.func(cse,canonicalize{max-iterations=3}),fusion-normalize,cse)")
    assert steps == ("cse,func.func(cse,canonicalize{max-iterations=3})", FusionNormalize(), "cse")


def test_the_whole_pipeline_has_a_name():
    with ir.Context():
        steps = resolve("builtin.module(fusion-pipeline{fusion=dataflow emit=ptx})")
    assert steps == (Whole({"fusion": "dataflow", "emit": "ptx"}),)


def test_options_keep_lists_and_quotes_together():
    with ir.Context():
        assert parse('a{b={x,y z} c="d e"}').elements == (PassText("a", 'b={x,y z} c="d e"'),)


def test_steps_print_back():
    text = "builtin.module(cse,fusion-normalize,fusion-consecutive{max-region-ops=8},fusion-pipeline{emit=ptx})"
    with ir.Context():
        steps = resolve(text)
        assert print_steps(steps) == text
        assert steps[2] == FusionConsecutive(max_region_ops=8)


NAMES = st.from_regex(r"[a-z][a-z0-9\-]{0,8}(\.[a-z]{1,4})?", fullmatch=True)
OPTIONS = st.dictionaries(NAMES, st.sampled_from(["1", "true", "{1,2}", "x"]), max_size=3).map(
    lambda options: " ".join(f"{key}={value}" for key, value in options.items())
)
ELEMENTS = st.recursive(
    st.builds(PassText, NAMES, OPTIONS),
    lambda inner: st.builds(Nest, NAMES, st.lists(inner, max_size=3).map(tuple)),
    max_leaves=6,
)


@given(st.lists(ELEMENTS, max_size=4).map(tuple))
def test_text_survives_parsing(elements: tuple[PassText | Nest, ...]):
    pipeline = Nest("builtin.module", elements)
    assert parse(str(pipeline)) == pipeline


@given(st.text(alphabet='ab(){},= -\n"', max_size=20))
def test_no_text_crashes(text: str):
    try:
        parse(text)
    except PipelineError as error:
        assert "^" in str(error)


@pytest.mark.parametrize(
    ("text", "message", "column"),
    [
        ("builtin.module(fusion-normalise)", "unknown pass 'fusion-normalise', did you mean 'fusion-normalize'?", 15),
        ("builtin.module(cse,canonicalise)", "unknown pass 'canonicalise', did you mean 'canonicalize'?", 19),
        ("func.func(cse,csee)", "unknown pass 'csee', did you mean 'cse'?", 14),
        ("fusion-pipelin", "unknown pass 'fusion-pipelin', did you mean 'fusion-pipeline'?", 0),
        ("nothing-like-it", "unknown pass 'nothing-like-it'", 0),
        (
            "cse,fusion-consecutive{max-region-op=3}",
            "unknown option 'max-region-op', did you mean 'max-region-ops'?; fusion-consecutive has max-region-ops",
            23,
        ),
        ("fusion-consecutive{max-region-ops=x}", "option 'max-region-ops' must be a whole number, got 'x'", 19),
        ("fusion-consecutive{max-region-ops=}", "option 'max-region-ops' must be a whole number, got ''", 19),
        ("fusion-consecutive{max-region-ops}", "option 'max-region-ops' needs a value: max-region-ops=...", 19),
        ("fusion-dataflow{horizontal=}", "option 'horizontal' must be true or false, got ''", 16),
        ("fusion-none{fast=1}", "fusion-none has no options, got 'fast'", 12),
        (
            "canonicalize{max-iteration=3}",
            "unknown option 'max-iteration', did you mean 'max-iterations'?; canonicalize has cse-between-iterations",
            13,
        ),
        ("func.func(fusion-normalize)", "fusion-normalize runs on builtin.module, it can't stand inside func.func", 10),
        ("convert-gpu-to-nvvm", "Can't add pass 'ConvertGpuOpsToNVVMOps' restricted to 'gpu.module'", 0),
        ("builtin.module(cse", "this '(' is never closed", 14),
        ("cse{a", "this '{' is never closed", 3),
        ("builtin.module(cse))", "expected ',' or the end, got ')'", 19),
        ("cse,,cse", "expected the name of a pass, got ','", 4),
        ("cse cse", "expected ',' or the end, got 'c'", 4),
        ("fusion-consecutive{max-region-ops=1 max-region-ops=2}", "option 'max-region-ops' is given twice", 0),
    ],
)
def test_a_mistake_is_located(text: str, message: str, column: int):
    with ir.Context(), pytest.raises(PipelineError) as caught:
        resolve(text)
    first, line, caret = str(caught.value).split("\n")
    assert first.startswith(f"pass pipeline: {message}")
    assert line == f"  {text}"
    assert caret == f"  {' ' * column}^"


def test_settings_of_the_whole_pipeline():
    options, emit = whole_settings({"fusion": "dataflow", "max-region-ops": "3", "emit": "ptx"}, Options())
    assert (options, emit) == (Options(fusion_type="dataflow", max_region_ops=3), "ptx")


def test_a_bare_name_means_the_on_value():
    (whole,) = resolve("fusion-pipeline{matmul fma emit=ptx}")
    assert isinstance(whole, Whole)
    assert whole_settings(whole.settings, Options()) == (Options(matmul="on", fma=True), "ptx")
    assert print_steps((whole,)) == "builtin.module(fusion-pipeline{matmul fma emit=ptx})"
    with pytest.raises(UserError, match=r"'max_region_ops' needs a value: max_region_ops=\.\.\., a whole"):
        whole_settings({"max-region-ops": None}, Options())


def test_an_unknown_setting_of_the_whole_pipeline():
    with pytest.raises(UserError, match="fusion-pipeline: unknown option 'targt', did you mean 'target'"):
        whole_settings({"targt": "sm_90"}, Options())
