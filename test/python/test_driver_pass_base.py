"""Passes as text: options from fields, printing and parsing, and what is said about mistakes."""

from dataclasses import dataclass
from typing import ClassVar

import pytest
from hypothesis import given
from hypothesis import strategies as st
from mlir_fusion.dialects.mlir import ir
from mlir_fusion.driver.pipeline_text import resolve
from mlir_fusion.passes import PASSES
from mlir_fusion.passes.pass_base import Pass, check_choice


@dataclass(frozen=True)
class Example(Pass):
    """A pass with an option of each type."""

    name: ClassVar[str] = "example"

    is_on: bool = True
    max_ops: int = 4
    mode: str = "off"
    tile_sizes: tuple[int, ...] = ()

    def run(self, module: ir.Module) -> None:
        """Does nothing."""


def test_defaults_are_not_printed():
    assert str(Example()) == "example"


def test_options_print_in_the_order_of_the_fields():
    assert str(Example(tile_sizes=(8, 4), is_on=False)) == "example{is-on=false tile-sizes={8,4}}"


@given(st.booleans(), st.integers(), st.sampled_from(["off", "on"]), st.lists(st.integers()))
def test_options_survive_text(is_on: bool, max_ops: int, mode: str, sizes: list[int]):
    one = Example(is_on, max_ops, mode, tuple(sizes))
    assert Example.from_options(one.options()) == one


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"max-op": "3"}, "unknown option 'max-op', did you mean 'max-ops'?; example has is-on, max-ops, mode, tile"),
        ({"max-ops": "many"}, "option 'max-ops' must be a whole number, got 'many'"),
        ({"max-ops": ""}, "option 'max-ops' must be a whole number, got ''"),
        ({"max-ops": None}, "option 'max-ops' needs a value: max-ops=..."),
        ({"is-on": "maybe"}, "option 'is-on' must be true or false, got 'maybe'"),
        ({"tile-sizes": "{4,x}"}, "option 'tile-sizes' must be a whole number, got 'x'"),
    ],
)
def test_a_wrong_option_names_what_is_allowed(options: dict[str, str | None], message: str):
    with pytest.raises(ValueError, match="^" + message.replace("?", r"\?").replace("{", r"\{")):
        Example.from_options(options)


def test_a_choice_names_the_allowed_values_and_the_nearest():
    with pytest.raises(ValueError, match=r"^unknown mode 'of', did you mean 'off'\?; allowed: on, off$"):
        check_choice("mode", "of", ["on", "off"])


@pytest.mark.parametrize("cls", PASSES.values(), ids=PASSES.keys())
def test_every_pass_prints_and_parses(cls: type[Pass]):
    options = {key: _other(field.default) for key, field in cls.option_fields().items()}
    options = {key: text for key, text in options.items() if text is not None}
    one = cls.from_options(options)
    with ir.Context():
        assert resolve(f"builtin.module({one})") == (one,)
        assert resolve(f"builtin.module({cls()})") == (cls(),)
    assert cls.summary()


def _other(default: object) -> str | None:
    """Another value than the default, where any will do."""
    if isinstance(default, bool):
        return str(not default).lower()
    return str(default + 1) if isinstance(default, int) else None
