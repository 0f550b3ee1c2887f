"""Programs as templates, from their texts for two sets of sizes."""

import pytest
from mlir_fusion.passes.size_template import AmbiguousError, Examples, NotGeneralError, size_template

EXAMPLES = Examples({"s0": (67, 73), "s1": (79, 89)}, {"half": (33, 36)})


def made(text: str, **sizes: int) -> str:
    return text.format(**sizes)


@pytest.mark.parametrize(
    ("text", "other_value"),
    [
        ("tensor<{a}x64xf32>", {"a": 1000}),
        ('%67 = tensor<{a}x{b}x8xf32> loc("x.py":67:3)', {"a": 7, "b": 5}),
        ("array<i64: {p}, 3>", {"p": 7 * 5 * 4}),
        ("tensor<{n}xf32>", {"n": 2 * 7 + 3}),
        ("tensor<{h}xf32>", {"h": 3}),
        ("arith.constant {a}.0 : f32", {"a": 7}),
    ],
)
def test_numbers_that_are_sizes_become_sizes(text: str, other_value: dict[str, int]) -> None:
    first = {"a": 67, "b": 79, "p": 67 * 79 * 4, "n": 2 * 67 + 3, "h": 33}
    second = {"a": 73, "b": 89, "p": 73 * 89 * 4, "n": 2 * 73 + 3, "h": 36}
    template = size_template(made(text, **first), made(text, **second), EXAMPLES)
    values = {"s0": other_value.get("a", 7), "s1": other_value.get("b", 5), "half": 3}
    assert template.at(values) == made(text, **other_value)


def test_what_numbers_stand_for() -> None:
    one, other = "tensor<67x158xf32> tensor<5293xi8>", "tensor<73x178xf32> tensor<6497xi8>"
    template = size_template(one, other, EXAMPLES)
    assert str(template) == "tensor<[s0]x[2*s1]xf32> tensor<[s0*s1]xi8>"
    assert {number: str(size) for number, size in template.stand_ins.items()} == {67: "s0", 158: "2*s1", 5293: "s0*s1"}


@pytest.mark.parametrize(
    ("one", "other"),
    [
        ("tensor<67xf32>", "tensor<75xf32>"),
        ("arith.addf", "arith.mulf"),
        ("67 67", "73"),
        ("67", "73 73"),
        ("arith.constant 0.125 : f32", "arith.constant 0.25 : f32"),
        ("arith.constant 0x4B97B8E6 : f32", "arith.constant 0x4BA48E88 : f32"),
        ('{name = "a"}', '{name = "b"}'),
        ("tensor<150xf32>", "tensor<100xf32>"),
    ],
)
def test_what_depends_on_sizes_otherwise_is_refused(one: str, other: str) -> None:
    with pytest.raises(NotGeneralError):
        size_template(one, other, EXAMPLES)


def test_a_size_that_is_a_number_of_the_program_is_ambiguous() -> None:
    with pytest.raises(AmbiguousError, match="67"):
        size_template("tensor<67x67xf32>", "tensor<73x67xf32>", EXAMPLES)
