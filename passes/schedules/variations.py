"""Other parameters that a family's schedule could have: what autotuning tries besides the family's own choice.

A variation computes the same; sums may be joined in another order, but for the families of `KEEP_ORDER`.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass

from .family import Parameters
from .machine import WARP

BLOCK = 256  # threads of a block that holds several rows
MOST_THREADS = 1024
KEEP_ORDER = ("pointwise", "transpose", "generic")


@dataclass(frozen=True)
class _Numbers:
    """The parameters that are numbers, to be varied one or two at a time."""

    parameters: Parameters

    def __getitem__(self, name: str) -> int:
        return int(self.parameters[name])

    def with_(self, **changes: int) -> Parameters:
        return {**self.parameters, **changes}


def variations(family: str, parameters: Parameters, kind: str) -> list[Parameters]:
    """Parameters that differ from `parameters` and suit every kernel that those suit; `kind` is the target's."""
    vary = (_ON_CPU if kind == "cpu" else _ON_GPU).get(family)
    found: list[Parameters] = []
    for varied in vary(_Numbers(parameters)) if vary else ():
        if varied != parameters and varied not in found:
            found.append(varied)
    return found


def _pointwise(numbers: _Numbers) -> Iterator[Parameters]:
    for vector in _halves(numbers["vector"]):
        for unroll in (1, 2, 4):
            for threads in (128, 256, 512):
                yield numbers.with_(vector=vector, unroll=unroll, threads=threads)


def _generic(numbers: _Numbers) -> Iterator[Parameters]:
    for threads in (32, 64, 128, 256):
        yield numbers.with_(threads=threads)


def _transpose(numbers: _Numbers) -> Iterator[Parameters]:
    vectors = numbers["across"] * numbers["down"] // numbers["vector"]
    for threads in (64, 128, 256, 512):
        if vectors % threads == 0:
            yield numbers.with_(threads=threads)


def _inner_reduction(numbers: _Numbers) -> Iterator[Parameters]:
    """More or fewer threads a row; where the row stays in registers, so that together they hold as much of it."""
    threads, chunks = numbers["threads"], numbers["chunks"]
    if chunks:
        for factor in (2, 4, 8):
            yield _rows(numbers, threads * factor, -(-chunks // factor))
            if threads % factor == 0 and chunks * factor <= 16:
                yield _rows(numbers, threads // factor, chunks * factor)
    elif "cluster" not in numbers.parameters:
        for unroll in (1, 2, 4, 8):
            for more in (threads // 4, threads // 2, threads, threads * 2):
                if WARP <= more <= MOST_THREADS:
                    yield numbers.with_(threads=more, unroll=unroll)


def _rows(numbers: _Numbers, threads: int, chunks: int) -> Parameters:
    threads = min(threads, MOST_THREADS)
    chunks = max(chunks, -(-numbers["threads"] * numbers["chunks"] // threads))
    return numbers.with_(threads=threads, chunks=chunks, rows=BLOCK // threads if threads <= WARP else 1)


def _outer_reduction(numbers: _Numbers) -> Iterator[Parameters]:
    across, down, chunks = numbers["across"], numbers["down"], numbers["chunks"]
    for factor in (2, 4):
        if across * down * factor <= MOST_THREADS:
            yield numbers.with_(down=down * factor, chunks=-(-chunks // factor))
        if down % factor == 0 and across * down // factor >= WARP:
            yield numbers.with_(down=down // factor, chunks=chunks * factor)
    if not chunks:
        for unroll in (1, 2, 4, 8):
            yield numbers.with_(unroll=unroll)


def _vector_and_unroll(numbers: _Numbers) -> Iterator[Parameters]:
    """No narrow vectors: each lane has a sum of its own, and few of them would be less accurate."""
    for vector in _halves(numbers["vector"]):
        for unroll in (1, 2, 4) if 2 * vector >= numbers["vector"] else ():
            yield numbers.with_(vector=vector, unroll=unroll)


def _vector(numbers: _Numbers) -> Iterator[Parameters]:
    for vector in _halves(numbers["vector"]):
        yield numbers.with_(vector=vector)


def _halves(value: int) -> Iterator[int]:
    """A power of two and all smaller ones."""
    while value:
        yield value
        value //= 2


_Vary = Callable[[_Numbers], Iterator[Parameters]]
_ON_GPU: dict[str, _Vary] = {
    "pointwise": _pointwise,
    "transpose": _transpose,
    "inner_reduction": _inner_reduction,
    "outer_reduction": _outer_reduction,
    "generic": _generic,
}
_ON_CPU: dict[str, _Vary] = {
    "pointwise": _vector,
    "inner_reduction": _vector_and_unroll,
    "outer_reduction": _vector_and_unroll,
}
