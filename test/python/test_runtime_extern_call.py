"""How `args` of fusion.extern are read, and which overload a name means."""

import math
from collections.abc import Iterator

import pytest
import torch
from mlir_fusion.dialects import fusion
from mlir_fusion.dialects.mlir import ir
from mlir_fusion.runtime.extern_call import constant_text, fill, place, read_entry, read_text, resolve_overload

CPU = torch.device("cpu")


@pytest.fixture(autouse=True)
def context() -> Iterator[None]:
    with ir.Context() as made, ir.Location.unknown():
        fusion.load(made)
        yield


def read(text: str) -> object:
    (value,) = fill([place(read_entry(ir.Attribute.parse(text)), CPU)], ["first", "second"])  # type: ignore
    return value


@pytest.mark.parametrize(
    ("text", "value"),
    [
        ("unit", None),
        ("true", True),
        ("3 : i64", 3),
        ("-1 : i64", -1),
        ("1.5 : f64", 1.5),
        ("0xFFF0000000000000 : f64", -math.inf),
        ('"mean"', "mean"),
        ('"dtype:bfloat16"', torch.bfloat16),
        ('"layout:strided"', torch.strided),
        ('"memory_format:channels_last"', torch.channels_last),
        ('"device:cuda:1"', torch.device("cuda", 1)),
        ('"device:program"', CPU),
        ('"str:dtype:float32"', "dtype:float32"),
        ("#fusion.operand<1>", "second"),
        ("[1 : i64, unit, #fusion.operand<0>, [true]]", [1, None, "first", [True]]),
    ],
)
def test_entries(text: str, value: object) -> None:
    got = read(text)
    assert got == value and type(got) is type(value)


@pytest.mark.parametrize(
    "value",
    [
        *("sum", "dtype:float32", "str:", torch.float8_e5m2, torch.device("cuda", 1), torch.strided),
        *(torch.preserve_format, 1.5 - 2j, 3j, "complex:1j", complex("inf-infj")),
    ],
)
def test_what_is_written_reads_back(value: str | complex | torch.dtype) -> None:
    assert read_text(constant_text(value)) == value


def test_a_complex_number_among_the_arguments_of_a_library_call() -> None:
    x = torch.randn(3, 3, dtype=torch.complex64)

    def f(x: torch.Tensor) -> torch.Tensor:
        return torch.addmm(x, x, x, beta=0.5j, alpha=2 + 1j)

    torch.testing.assert_close(torch.compile(f, backend="mlir_fusion")(x), f(x))


def test_an_entry_that_means_nothing_is_refused() -> None:
    with pytest.raises(ValueError, match="no dtype called 'float33'"):
        read('"dtype:float33"')
    with pytest.raises(ValueError, match="'1k' is no complex number"):
        read('"complex:1k"')
    with pytest.raises(ValueError, match="can't hold"):
        read("{a = 1 : i64}")


def test_overloads_by_name() -> None:
    assert resolve_overload("aten.mm") is torch.ops.aten.mm.default
    assert resolve_overload("aten.add.Scalar") is torch.ops.aten.add.Scalar
    with pytest.raises(ValueError, match=r"no operator 'aten\.nonsense\.default'"):
        resolve_overload("aten.nonsense.default")
    with pytest.raises(ValueError, match="no operator"):
        resolve_overload("mylib.nonsense")
