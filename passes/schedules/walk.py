"""A thread's way along the elements that a reduction joins: unrolled once, or as a loop each time it is walked.

The threads that share the elements take turns, a vector each: thread t of n stands at vector t, t + n, t + 2n. With
`chunks` > 0 so many of those are unrolled, and what was loaded at one is still known when the walk is walked again;
the others, if there are any, are a loop of `unroll` at a time. Where the elements end before the turn does, a thread
stands at the last vector again and is told that it is not to count.

Rows of an odd width start anywhere in memory. Their vectors can start where the memory is aligned (`Alignment`): then a
few elements at both *edges* of the row remain, one for each of the first threads.

    | 3 edge elements | vectors of 8, each aligned ........................ | 2 edge elements |
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass, replace

from ...dialects.mlir import arith, ir, scf, vector
from ..evaluate import Evaluator
from ..indexing import Atom, Counter, Form, of
from ..lanes import Lanes
from ..reduction_loops import SHORTEST, chain
from ..sizes import Extent, divides, up
from .machine import number
from .partial import Partial


@dataclass(frozen=True)
class Stop:
    """Elements that a thread handles at once; `valid` tells which of them exist, None if all do.

    `chunk` is which of the thread's vectors they are, `is_kept` whether that one is not in a loop.
    """

    chunk: ir.Value
    counter: Counter
    lanes: Lanes | None
    valid: ir.Value | None
    is_kept: bool = False

    @property
    def store_guard(self) -> ir.Value | None:
        """Lanes that overlap the vector before store the same again; only whole vectors are left out."""
        is_mask = self.valid is not None and isinstance(self.valid.type, ir.VectorType)
        return None if is_mask else self.valid


@dataclass(frozen=True)
class Alignment:
    """Where `column` of the row lies in memory, as a form: a vector starts where that is a multiple of its width."""

    position: Form
    column: Counter

    def at(self, column: Form) -> Form:
        """The position of another column."""
        return self.position.substitute(lambda atom: column if atom == self.column else None)

    def of_row(self, counters: Mapping[Atom, Counter]) -> Alignment:
        """The same for the row that other counters count."""
        position = self.position.substitute(lambda atom: of(counters[atom]) if atom in counters else None)
        return Alignment(position, self.column)


@dataclass(frozen=True)
class Stride:
    """How the elements are walked: in vectors, by so many threads, unrolled or in a loop."""

    vector: int
    threads: int
    chunks: int
    unroll: int


@dataclass(frozen=True)
class _Aligned:
    """The vectors of a row that start where memory is aligned: before which element, and how many."""

    alignment: Alignment
    head: ir.Value
    vectors: ir.Value


class Walk:
    """Walks `extent` elements as thread number `thread`.

    `kept` are the stops that are not in a loop; `edges` those that are not walked with the others.
    """

    def __init__(
        self,
        extent: Extent,
        stride: Stride,
        thread: ir.Value,
        evaluator: Evaluator,
        alignment: Alignment | None = None,
    ) -> None:
        self.extent, self.stride = extent, stride
        self._thread, self._evaluator = thread, evaluator
        self._aligned = None if alignment is None else self._align(alignment)
        self._kept = [replace(self._stop(number(0), each, each), is_kept=True) for each in range(stride.chunks)]
        self.edges = [] if self._aligned is None else self._edges(self._aligned)

    @property
    def chunks(self) -> Extent:
        """How many vectors a thread stands at, at most."""
        return self.stride.chunks + self.iterations * self.stride.unroll

    def accumulate(
        self,
        parts: Sequence[Partial],
        width: int,
        at: Callable[[Partial, Stop], ir.Value],
        around: Callable[[Sequence[Stop]], AbstractContextManager[None]] = lambda _: nullcontext(),
    ) -> list[ir.Value]:
        """What each of `parts`, in vectors of `width`, comes to over all stops, where it has the values `at`.

        What is computed for stops that come at once stands inside `around`. A loop of many turns is two (see
        reduction_loops.py).
        """

        def nothing() -> list[ir.Value]:
            return [part.start(width) for part in parts]

        def turn(stops: Sequence[Stop], so_far: Sequence[ir.Value]) -> list[ir.Value]:
            with around(stops):
                for stop in stops:
                    so_far = _joined(parts, so_far, [at(part, stop) for part in parts])
            return list(so_far)

        so_far = turn(self._kept, nothing()) if self._kept else nothing()
        count = number(self.iterations)
        if self.iterations <= SHORTEST:
            return self._loop(number(0), count, so_far, turn) if self.iterations else so_far
        chunk = number(chain(self.iterations))
        outer = scf.ForOp(number(0), count, chunk, so_far)
        with ir.InsertionPoint(outer.body), self._evaluator.scope():
            end = arith.MinUIOp(arith.AddIOp(outer.induction_variable, chunk).result, count).result
            sums = self._loop(outer.induction_variable, end, nothing(), turn)
            scf.YieldOp(_joined(parts, list(outer.inner_iter_args), sums))
        return list(outer.results)

    def _loop(
        self,
        first: ir.Value,
        end: ir.Value,
        start: Sequence[ir.Value],
        turn: Callable[[Sequence[Stop], Sequence[ir.Value]], list[ir.Value]],
    ) -> list[ir.Value]:
        loop = scf.ForOp(first, end, number(1), list(start))
        with ir.InsertionPoint(loop.body), self._evaluator.scope():
            scf.YieldOp(turn(self.stops(loop.induction_variable), list(loop.inner_iter_args)))
        return list(loop.results)

    @property
    def is_aligned(self) -> bool:
        """Whether its vectors start where the row's memory is aligned."""
        return self._aligned is not None

    def again(self, stop: Stop) -> Stop:
        """Where this walk stands with the vector that is another one's `stop`."""
        return self._stop(stop.chunk, 0, self.chunks - 1)

    @property
    def kept(self) -> list[Stop]:
        """The stops that are unrolled."""
        return self._kept

    def visit(self) -> Iterator[list[Stop]]:
        """Runs the loop's body for all stops, several at once."""
        yield from self.visit_loop()
        if self._kept:
            yield self._kept

    def visit_loop(self) -> Iterator[list[Stop]]:
        """Those that are not unrolled."""
        if not self.iterations:
            return
        loop = scf.ForOp(number(0), number(self.iterations), number(1))
        with ir.InsertionPoint(loop.body), self._evaluator.scope():
            yield self.stops(loop.induction_variable)
            scf.YieldOp([])

    @property
    def iterations(self) -> Extent:
        """How often the loop runs, where there is one."""
        stride = self.stride
        looped = up(self.extent, stride.vector * stride.threads) - stride.chunks
        return max(0, up(looped, stride.unroll)) if stride.chunks else up(looped, stride.unroll)

    def stops(self, iteration: ir.Value) -> list[Stop]:
        """The stops of an iteration of the loop."""
        unroll, first = self.stride.unroll, self.stride.chunks
        base = arith.MulIOp(iteration, number(unroll)).result
        base = arith.AddIOp(base, number(first)).result if first else base
        last = first + (self.iterations - 1) * unroll
        return [self._stop(base, step, last + step) for step in range(unroll)]

    def _stop(self, base: ir.Value, step: int, furthest: Extent) -> Stop:
        """Chunk base + step; `furthest` is the last chunk it can be."""
        chunk = arith.AddIOp(base, number(step)).result
        place = arith.AddIOp(arith.MulIOp(chunk, number(self.stride.threads)).result, self._thread).result
        end = (furthest + 1) * self.stride.threads * self.stride.vector
        if self._aligned is not None:
            return self._aligned_stop(self._aligned, chunk, place, end)
        width = self.stride.vector
        start = arith.MulIOp(place, number(width)).result
        counter = Counter(self.extent, "column")
        lanes = Lanes(width, (counter,), aligned=divides(width, self.extent)) if width > 1 else None
        if end <= self.extent:
            self._evaluator.binding.bind(counter, start)
            return Stop(chunk, counter, lanes, None)
        clamped = arith.MinUIOp(start, number(self.extent - width)).result
        self._evaluator.binding.bind(counter, clamped)
        return Stop(chunk, counter, lanes, self._validity(start, clamped))

    def _align(self, alignment: Alignment) -> _Aligned:
        width = number(self.stride.vector)
        misaligned = arith.RemUIOp(self._evaluator.binding.emit(alignment.at(Form())), width).result
        head = arith.RemUIOp(arith.SubIOp(width, misaligned).result, width).result
        vectors = arith.DivUIOp(arith.SubIOp(number(self.extent), head).result, width).result
        return _Aligned(alignment, head, vectors)

    def _aligned_stop(self, aligned: _Aligned, chunk: ir.Value, place: ir.Value, end: Extent) -> Stop:
        """`end` is where the last vector that it can be would end, did the row start where memory is aligned."""
        width, counter, valid = self.stride.vector, Counter(self.extent, "column"), None
        if not end + width - 1 <= self.extent:
            valid = arith.CmpIOp(arith.CmpIPredicate.ult, place, aligned.vectors).result
            place = arith.MinUIOp(place, arith.SubIOp(aligned.vectors, number(1)).result).result
        start = arith.AddIOp(arith.MulIOp(place, number(width)).result, aligned.head).result
        self._evaluator.binding.bind(counter, start)
        lanes = Lanes(width, (counter,), aligned=False, multiples=(aligned.alignment.at(of(counter)),))
        return Stop(chunk, counter, lanes, valid)

    def _edges(self, aligned: _Aligned) -> list[Stop]:
        """What is before the first vector and behind the last one, an element a thread."""
        most = 2 * (self.stride.vector - 1)
        return [self._edge(aligned, first) for first in range(0, most, self.stride.threads)]

    def _edge(self, aligned: _Aligned, first: int) -> Stop:
        walked = arith.MulIOp(aligned.vectors, number(self.stride.vector)).result
        place = arith.AddIOp(self._thread, number(first)).result
        is_before = arith.CmpIOp(arith.CmpIPredicate.ult, place, aligned.head).result
        column = arith.SelectOp(is_before, place, arith.AddIOp(place, walked).result).result
        valid = arith.CmpIOp(arith.CmpIPredicate.ult, column, number(self.extent)).result
        counter = Counter(self.extent, "column")
        self._evaluator.binding.bind(counter, arith.SelectOp(valid, column, number(0)).result)
        return Stop(number(0), counter, None, valid)

    def _validity(self, start: ir.Value, clamped: ir.Value) -> ir.Value:
        """A vector past the end stands at the last whole one: lanes that belong to another are not valid."""
        width = self.stride.vector
        if divides(width, self.extent):
            return arith.CmpIOp(arith.CmpIPredicate.ult, start, number(self.extent)).result
        type_ = ir.VectorType.get([width], ir.IndexType.get())
        numbers = ir.DenseElementsAttr.get(
            [ir.IntegerAttr.get(ir.IndexType.get(), lane) for lane in range(width)], type_
        )
        overlap = vector.BroadcastOp(type_, arith.SubIOp(start, clamped).result).result
        lane = arith.ConstantOp(type_, numbers).result
        return arith.CmpIOp(arith.CmpIPredicate.uge, lane, overlap).result


def _joined(parts: Sequence[Partial], left: Sequence[ir.Value], right: Sequence[ir.Value]) -> list[ir.Value]:
    return [part.combine(one, other) for part, one, other in zip(parts, left, right, strict=True)]
