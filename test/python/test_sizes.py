"""Sizes as polynomials, and forms over them: what is known for all values of the symbols."""

import math
import random

import pytest
from mlir_fusion.passes.indexing import Counter, Form, constant, delinearize, linearize, of, row_major
from mlir_fusion.passes.sizes import Extent, Size, UndecidedError, common_divisor, divides, symbol, up, value_of

S, T = symbol("s"), symbol("t")
VALUES = [{"s": s, "t": t} for s, t in [(0, 1), (1, 1), (2, 7), (64, 5), (1000, 4097)]]


def random_extent(numbers: random.Random, depth: int = 3) -> tuple[Extent, list[int]]:
    """A size and its values for VALUES, worked out by Python."""
    if depth == 0 or numbers.random() < 0.2:
        leaf = numbers.choice(["s", "t", str(numbers.randrange(1, 9))])
        return (symbol(leaf), [v[leaf] for v in VALUES]) if leaf in "st" else (int(leaf), [int(leaf)] * len(VALUES))
    (one, ones), (other, others) = random_extent(numbers, depth - 1), random_extent(numbers, depth - 1)
    if numbers.random() < 0.5:
        return one + other, [a + b for a, b in zip(ones, others, strict=True)]
    return one * other, [a * b for a, b in zip(ones, others, strict=True)]


@pytest.mark.parametrize("seed", range(50))
def test_arithmetic_is_that_of_the_values(seed: int) -> None:
    numbers = random.Random(seed)
    size, values = random_extent(numbers)
    divisor = numbers.randrange(1, 9)
    for known, value in zip(VALUES, values, strict=True):
        assert value_of(size, known) == value
        assert value_of(size // divisor, known) == value // divisor
        assert value_of(size % divisor, known) == value % divisor
        assert value_of(up(size, divisor), known) == math.ceil(value / divisor)
        assert value % (common_divisor(size) or 1) == 0
        assert not size > value and not size < value, "a comparison is true only if it is for all values"


def test_what_is_equal_for_all_values_is_equal() -> None:
    assert (S + T) * 2 - T * 2 == S * 2 and hash((S + 1) * T) == hash(T + T * S)
    assert S * T // T == S and (S * T + T) // T == S + 1 and S - S == 0
    assert S != 64 and S != T


def test_comparisons() -> None:
    assert S >= 0 and S < S + 1 and S * T + S >= S and S - 1 < S
    assert not S >= 1 and not S < 1 and not S <= T and not T <= S
    assert divides(4, 8 * S) and not divides(4, S) and divides(S, S * T) and not divides(S, T)


@pytest.mark.parametrize("use", [range, math.ceil, lambda size: size / 2, lambda size: size.bit_length(), int])
def test_a_size_is_never_taken_for_a_number(use) -> None:
    with pytest.raises((UndecidedError, TypeError)):
        use(S)


def test_a_negative_quotient_is_refused() -> None:
    with pytest.raises(UndecidedError, match="negative"):
        (S - 3) // 2


def test_an_index_taken_apart_and_put_together_along_unknown_sizes_is_itself() -> None:
    shape: list[Extent] = [S, T, 8]
    counters = [Counter(extent, f"d{k}") for k, extent in enumerate(shape)]
    position = linearize([of(counter) for counter in counters], row_major(shape))
    assert delinearize(position, shape) == tuple(of(counter) for counter in counters)
    assert delinearize(position, [S * T, 8])[1] == of(counters[2])
    assert position // (T * 8) == of(counters[0])


def test_bounds_hold_for_all_values() -> None:
    i = Counter(S, "i")
    assert of(i).bounds == (0, S - 1)
    low, high = (of(i) * -1 + S).bounds
    assert (low, high) == (1, S)
    assert (of(i) * (S - T)).bounds == (-math.inf, math.inf), "the sign of the coefficient is not known"
    assert isinstance((of(i) * T + constant(2)).bounds[1], Size)
    assert Form().bounds == (0, 0)
