"""Rows one after the other: while one is computed, the next is on its way.

Fewer blocks than rows are launched, as many as run at once. Each (or each cluster of them) takes every n-th row, and
asks for the next one before it computes, so that the memory is not idle meanwhile. That pays where a row is all that
a multiprocessor holds; else other blocks do as well what is to be done meanwhile, and better.

    next = load(first row)
    for row in first, first + n, ...:
        put next on the shelf
        next = load(row + n)            in registers, on its way
        compute row from the shelf
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace

from ...dialects.mlir import arith, ir, scf
from ..evaluate import Evaluator
from ..indexing import Atom, Counter
from .machine import Machine, Row, number
from .shelf import BEFORE, Kept, Shelf
from .walk import Alignment, Stride, Walk


@dataclass(frozen=True)
class RowPipeline:
    """The rows that `counters` count; what is `kept` of each at a `column` goes on a shelf."""

    counters: tuple[Counter, ...]
    count: int
    column: Counter
    kept: Sequence[Kept]
    stride: Stride
    alignment: Alignment | None
    machine: Machine
    evaluator: Evaluator

    def run(self, groups: int) -> Iterator[tuple[Row, Walk, Shelf]]:
        """Runs the loop's body for each row of one of `groups` blocks or clusters."""
        first, thread = self.machine.group(self.stride.threads)
        before = [replace(one, first=BEFORE) for one in self.kept]
        shelf = Shelf(before, self.column, self._chunks, self.stride.vector, self.machine, self.evaluator)
        loop = scf.ForOp(first, number(self.count), number(groups), self._fetch(first, thread))
        with ir.InsertionPoint(loop.body), self.evaluator.scope():
            row = loop.induction_variable
            self.evaluator.binding.bind_digits(self.counters, row)
            walk = Walk(self.column.extent, self.stride, thread, self.evaluator, self.alignment)
            shelf.fill(self._all_stops(thread).kept, walk.edges, list(loop.inner_iter_args))
            after = arith.MinUIOp(arith.AddIOp(row, number(groups)).result, number(self.count - 1)).result
            fetched = self._fetch(after, thread)
            yield Row(row, thread, None), walk, shelf
            self.machine.end_row()
            scf.YieldOp(fetched)
        self.machine.end_rows()

    @property
    def _chunks(self) -> int:
        """How many vectors of a row a thread has."""
        per_turn = self.stride.vector * self.stride.threads * self.stride.unroll
        return -(-self.column.extent // per_turn) * self.stride.unroll

    def _all_stops(self, thread: ir.Value, alignment: Alignment | None = None) -> Walk:
        stride = replace(self.stride, chunks=self._chunks, unroll=1)
        return Walk(self.column.extent, stride, thread, self.evaluator, alignment)

    def _fetch(self, row: ir.Value, thread: ir.Value) -> list[ir.Value]:
        """Everything that is kept of a row, on its way."""
        counters = tuple(Counter(counter.extent, counter.label) for counter in self.counters)
        self.evaluator.binding.bind_digits(counters, row)
        places: dict[Atom, Counter] = dict(zip(self.counters, counters, strict=True))
        with self.evaluator.scope():
            alignment = None if self.alignment is None else self.alignment.of_row(places)
            walk = self._all_stops(thread, alignment)
            return [
                self.evaluator.at(one.value, one.at({**places, self.column: stop.counter}), stop.lanes)
                for one in self.kept
                for stop in (*walk.kept, *walk.edges)
            ]
