"""Options: levels, values, and what is said about mistakes."""

from threading import Event, Thread

import pytest
from mlir_fusion.driver.options import Options, Settings, declarations
from mlir_fusion.driver.scope import capture, options


def test_what_says_nothing_changes_nothing():
    assert Options.from_settings() == Options()
    assert Options().override_from_environment({}) == Options()


def test_settings_and_a_name_or_a_value_enable():
    options = Options.from_settings(
        "dataflow", "cpu", enable=["matmul", "max_region_ops=7"], disable=["horizontal", "memory-aware"]
    )
    assert options == Options("dataflow", "cpu", False, False, max_region_ops=7, matmul="on")


def test_disabling_means_the_off_value():
    assert Options(fusion_type="dataflow", matmul="auto").override(disable=["fusion_type", "matmul"]) == Options("none")


def test_later_levels_win():
    environment = {"MLIR_FUSION_OPTIONS": "max_region_ops=5", "MLIR_FUSION_ENABLE": "matmul=auto,horizontal"}
    captured = Options.from_settings(disable=["horizontal"], enable=["max_region_ops=3"])
    effective = captured.override_from_environment(environment)
    assert effective == Options(horizontal=True, max_region_ops=5, matmul="auto")
    assert effective.override(disable=["matmul"]).matmul == "off"


@pytest.mark.parametrize(
    ("enable", "disable", "message"),
    [
        (["horizontl"], [], r"options: unknown option 'horizontl', did you mean 'horizontal'\?; allowed: fusion_type"),
        (["matmul=maybe"], [], "options: unknown value of matmul 'maybe'; allowed: off, on, auto"),
        (["max_region_ops"], [], "options: option 'max_region_ops' needs a value"),
        (["max_region_ops=0"], [], "options: option 'max_region_ops' must be a whole number from 1 to 1000000, got 0"),
        (
            ["max_region_ops=x"],
            [],
            "options: option 'max_region_ops' must be a whole number from 1 to 1000000, got 'x'",
        ),
        (["horizontal=perhaps"], [], "options: option 'horizontal' must be true or false, got 'perhaps'"),
        ([], ["target"], "options: option 'target' can't be disabled"),
        (["horizontal"], ["horizontal"], "options: option 'horizontal' is given twice, as True and as False"),
        ([3], [], "options: an option is given as a name or name=value, got 3"),
        ("horizontal", [], "options: options are given as a list of names, got the string 'horizontal'"),
    ],
)
def test_a_mistake_names_the_option_and_what_is_allowed(enable: list[str], disable: list[str], message: str):
    with pytest.raises(ValueError, match=f"^{message}"):
        Options().override(enable, disable)


def test_a_mistake_in_the_environment_names_the_variable():
    with pytest.raises(ValueError, match=r"^MLIR_FUSION_DISABLE: unknown option 'nothing'"):
        Options().override_from_environment({"MLIR_FUSION_DISABLE": "nothing"})


def test_a_wrong_fusion_type_names_the_nearest():
    with pytest.raises(ValueError, match=r"'dataflw', did you mean 'dataflow'\?; allowed: consecutive, dataflow, none"):
        Options.from_settings(fusion_type="dataflw")


def test_values_have_the_declared_type():
    with pytest.raises(ValueError, match="option 'horizontal' must be true or false, got 1"):
        Options(horizontal=1)  # pyright: ignore[reportArgumentType]


def test_the_environment_is_one_level():
    message = "MLIR_FUSION_DISABLE: option 'fma' is given twice, as True by MLIR_FUSION_ENABLE and as False"
    with pytest.raises(ValueError, match=f"^{message}$"):
        Options().override_from_environment({"MLIR_FUSION_ENABLE": "fma", "MLIR_FUSION_DISABLE": "fma"})
    with pytest.raises(ValueError, match=r"^MLIR_FUSION_OPTIONS: expected name=value, got 'fma'$"):
        Options().override_from_environment({"MLIR_FUSION_OPTIONS": "fma"})


def test_the_fusion_type_that_an_argument_and_a_list_name_is_one_level_too():
    with pytest.raises(ValueError, match="'fusion_type' is given twice, as 'dataflow' and as 'none'"):
        Options.from_settings(fusion_type="dataflow", enable=["fusion_type=none"])


def test_each_level_wins_over_those_below(monkeypatch):
    monkeypatch.setenv("MLIR_FUSION_OPTIONS", "max_region_ops=5")
    with options(max_region_ops=2, horizontal=False), options(disable_options=["fma"], max_region_ops=3):
        captured = capture(Settings.read(["horizontal"]))
    assert captured.settings_now().values == {"horizontal": True, "fma": False, "max_region_ops": 5}
    call = Settings.read(["max_region_ops=9", "fma"])
    assert captured.settings_now(call).values == {"horizontal": True, "fma": True, "max_region_ops": 9}
    monkeypatch.setenv("MLIR_FUSION_OPTIONS", "fusion_type=none")
    expected = Options(fusion_type="none", max_region_ops=3, fma=False)
    assert captured.settings_now().apply(Options(fusion_type="dataflow")) == expected
    assert capture().settings == Settings()


def test_a_block_ends_even_if_it_fails_and_may_be_entered_again():
    block = options(fma=False)
    for _ in range(2):
        with pytest.raises(KeyError), block, block:
            raise KeyError
        assert capture().settings == Settings()


def test_a_block_holds_in_its_own_thread_only():
    block, seen = options(fma=False), []
    inside, looked = Event(), Event()

    def enter():
        with block:
            inside.set()
            looked.wait(10)
            seen.append(capture().settings.values)

    thread = Thread(target=enter)
    thread.start()
    inside.wait(10)
    with options(fma=True):
        seen.append(capture().settings.values)
        looked.set()
        thread.join()
        assert seen == [{"fma": True}, {"fma": False}]
        assert capture().settings.values == {"fma": True}


def test_an_unknown_option_in_a_block_names_it():
    with pytest.raises(ValueError, match=r"^mlir_fusion.options: unknown option 'fuma', did you mean 'fma'\?"):
        options(fuma=True)


@pytest.mark.parametrize("declaration", declarations(), ids=lambda declaration: declaration.name)
def test_on_and_off_are_values_that_an_option_takes(declaration):
    for value in (declaration.on, declaration.off):
        if value is not None:
            assert getattr(Options(**{declaration.name: value}), declaration.name) == value
    assert declaration.help


def test_differences_enable_the_same_options():
    options = Options("dataflow", "cpu", horizontal=False, max_region_ops=9)
    changed = [f"{name}={value}" for name, value in options.differences().items()]
    assert Options().override(changed) == options
