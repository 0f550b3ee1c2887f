"""Rows one after the other: while one is computed and stored, the next is on its way to shared memory.

Fewer blocks than rows are launched, as many as run at once. Each (or each cluster of them) takes every n-th row, whose
last pass asks for a vector of the next row as soon as it is done with one of this row's, and puts it in its place: so
the memory both reads and writes meanwhile. That pays where a row is all that a multiprocessor holds; else other blocks
do as well what is to be done meanwhile.

    ask for the first row
    for row in first, first + n, ...:
        first pass, a turn after the other: wait until this turn's vectors are there; compute
        passes between
        last pass: compute, store; ask for the same vectors of row + n

What registers have room for (`chunks` vectors of a thread) they hold from the first pass on, so that those vectors of
the next row are under way much earlier, while the row is still being reduced.

A thread takes only what it asked for, so nobody waits for others. What can't be copied in this way (elements that do
not lie together, or start anywhere) is read when it is needed, and kept for later passes, as for a single row.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager, nullcontext
from dataclasses import dataclass, replace

from ...dialects.mlir import arith, ir, scf
from ..evaluate import Evaluator
from ..indexing import Atom, Counter
from ..lanes import Lanes
from .family import Problem, is_fetchable
from .machine import Machine, Row, guarded, number
from .shelf import BEFORE, Kept, Shelf
from .walk import Alignment, Stop, Stride, Walk


def fetched_before(
    problem: Problem, kept: Sequence[Kept], column: Counter, width: int, alignment: Alignment | None
) -> list[Kept]:
    """What is kept, where that is possible to be there before the first pass."""
    multiples = () if alignment is None else (alignment.position,)
    lanes = Lanes(width, (column,), aligned=alignment is None and column.extent % width == 0, multiples=multiples)
    return [replace(one, first=BEFORE) if is_fetchable(problem, one.value, one.index, lanes) else one for one in kept]


@dataclass(frozen=True)
class RowPipeline:
    """The rows that `counters` count; what is `kept` of each at a `column` goes on a shelf. Passes 0 to `last` see it.

    What is kept with `first` = BEFORE is fetched before the first pass.
    """

    counters: tuple[Counter, ...]
    count: int
    column: Counter
    kept: Sequence[Kept]
    stride: Stride
    alignment: Alignment | None
    last: int
    machine: Machine
    evaluator: Evaluator

    def run(self, groups: int) -> Iterator[tuple[Row, Walk, Shelf]]:
        """Runs the loop's body for each row of one of `groups` blocks or clusters."""
        first, thread = self.machine.group(self.stride.threads)
        start = self._asked(first, thread)
        shelf = _MovingShelf(self, start.walk)
        if start.walk.kept:
            shelf.fetch(start.walk.kept, start)
        for stops in start.walk.visit_loop():
            shelf.fetch(stops, start)
        loop = scf.ForOp(first, number(self.count), number(groups))
        with ir.InsertionPoint(loop.body), self.evaluator.scope():
            row = loop.induction_variable
            self.evaluator.binding.bind_digits(self.counters, row)
            walk = Walk(self.column.extent, self.stride, thread, self.evaluator, self.alignment)
            shelf.load(walk.edges, BEFORE)
            shelf.load(walk.edges, 0)
            shelf.following = self._asked(arith.AddIOp(row, number(groups)).result, thread)
            yield Row(row, thread, None), walk, shelf
            self.machine.end_row()
            scf.YieldOp([])
        self.machine.end_rows()

    def _asked(self, row: ir.Value, thread: ir.Value) -> _Asked:
        counters = tuple(Counter(counter.extent, counter.label) for counter in self.counters)
        self.evaluator.binding.bind_digits(counters, row)
        places: dict[Atom, Counter] = dict(zip(self.counters, counters, strict=True))
        exists = arith.CmpIOp(arith.CmpIPredicate.ult, row, number(self.count)).result
        alignment = None if self.alignment is None else self.alignment.of_row(places)
        return _Asked(places, exists, Walk(self.column.extent, self.stride, thread, self.evaluator, alignment))


@dataclass(frozen=True)
class _Asked:
    """A row that is asked for, if it exists: the counters that stand for it, and its walk."""

    places: dict[Atom, Counter]
    exists: ir.Value
    walk: Walk

    def stops(self, stops: Sequence[Stop]) -> Sequence[Stop]:
        """Where the thread stands in this row with the same vectors; rows that are aligned by hand start anywhere."""
        return [self.walk.again(stop) for stop in stops] if self.walk.is_aligned else stops


class _MovingShelf(Shelf):
    """A shelf on which vectors of the `following` row take the place of those that are needed no more."""

    following: _Asked

    def __init__(self, pipeline: RowPipeline, walk: Walk) -> None:
        stride, machine, evaluator = pipeline.stride, pipeline.machine, pipeline.evaluator
        super().__init__(pipeline.kept, pipeline.column, walk.chunks, stride.vector, machine, evaluator)
        self._turns, self._last, self._held = walk.iterations, pipeline.last, bool(walk.kept)

    @contextmanager
    def visiting(self, stops: Sequence[Stop], number: int) -> Iterator[None]:
        """What is held in registers makes place in pass 0, the rest in the last one."""
        is_held = self._held and stops[0].is_kept
        if number == 0:
            self._await_turn(is_held)
        with super().visiting(stops, number) if number == 0 or not is_held else nullcontext():
            yield
        if number == (0 if is_held else self._last):
            self.fetch(self.following.stops(stops), self.following)

    def _await_turn(self, is_held: bool) -> None:
        """Waits for the vectors of a turn of pass 0, while those of later turns may be under way.

        Each turn ends a group of nothing, so that as many groups always come after the one that it waits for: the
        groups of later turns and the empty ones of those before, or, of what is held, all groups of the last pass; for
        what comes after that, also the one by which it has made place.
        """
        self._machine.end_fetch()
        self._machine.await_fetched(self._turns + (2 if self._held and not is_held else int(self._held)))

    def fetch(self, stops: Sequence[Stop], row: _Asked) -> None:
        """Asks for the vectors of a row at some stops."""
        with guarded(row.exists), self._evaluator.scope():
            for one, memory in self._pairs(BEFORE):
                for stop in stops:
                    index = one.at({**row.places, self._column: stop.counter})
                    source, position = self._evaluator.place(one.value, index)
                    place = self._machine.own_place(stop.chunk, self._width)
                    self._machine.fetch(source, position, memory, place, self._width)
        self._machine.end_fetch()
