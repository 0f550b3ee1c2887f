"""Rows on their way to a block's own memory, several iterations before they are needed.

Registers hold little of what is under way. A thread copies its vectors of the next rows to places of its own in shared
memory instead, without waiting; `stages` iterations have places there, which they take in turn:

    fetch iterations 0 .. stages - 2
    for iteration:
        wait until this iteration's rows are there
        fetch iteration + stages - 1, to where the iteration before had its own
        take what is needed, as often as it is needed

Every thread takes only what it fetched itself, so none waits for another.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

from ...dialects.fusion import storage_type
from ...dialects.mlir import arith, ir
from ..evaluate import Evaluator
from ..indexing import Index
from ..lanes import Lanes
from .machine import Machine, guarded, number
from .own_memory import element_of, take


@dataclass(frozen=True)
class Fetched:
    """A vector of an input: its place among a thread's vectors of an iteration, in the memory for this input."""

    value: ir.Value
    index: Index
    lanes: Lanes | None
    place: int


class Ring:
    """Memory for `stages` iterations, in each of which a thread has `counts` vectors of each input."""

    def __init__(
        self, counts: dict[ir.Value, int], width: int, stages: int, machine: Machine, evaluator: Evaluator
    ) -> None:
        self._counts, self._width, self._stages = counts, width, stages
        self._machine, self._evaluator = machine, evaluator
        self._memories = {
            value: machine.own_memory(stages * count, width, storage_type(element_of(value)))
            for value, count in counts.items()
        }

    def start(self, iterations: int, vectors: Callable[[ir.Value], Sequence[Fetched]]) -> None:
        """Fetches the first iterations, of which `vectors` says what they need."""
        for iteration in range(self._stages - 1):
            if iteration < iterations:
                self._fetch(number(iteration), vectors(number(iteration)))
            self._machine.end_fetch()

    def advance(self, iteration: ir.Value, iterations: int, vectors: Callable[[ir.Value], Sequence[Fetched]]) -> None:
        """Waits for an iteration's vectors, and fetches those of the one that takes the place of the last."""
        self._machine.await_fetched(self._stages - 2)
        later = arith.AddIOp(iteration, number(self._stages - 1)).result
        with guarded(arith.CmpIOp(arith.CmpIPredicate.ult, later, number(iterations)).result), self._evaluator.scope():
            self._fetch(later, vectors(later))
        self._machine.end_fetch()

    def take(self, iteration: ir.Value, vectors: Sequence[Fetched]) -> None:
        """Makes vectors of an iteration known."""
        for one in vectors:
            memory, place = self._memories[one.value], self._place(iteration, one)
            take(one.value, one.index, one.lanes, memory, place, self._evaluator)

    def _fetch(self, iteration: ir.Value, vectors: Sequence[Fetched]) -> None:
        for one in vectors:
            source, position = self._evaluator.place(one.value, one.index)
            self._machine.fetch(source, position, self._memories[one.value], self._place(iteration, one), self._width)

    def _place(self, iteration: ir.Value, one: Fetched) -> ir.Value:
        stage = arith.RemUIOp(iteration, number(self._stages)).result
        first = arith.MulIOp(stage, number(self._counts[one.value])).result
        return self._machine.own_place(arith.AddIOp(first, number(one.place)).result, self._width)
