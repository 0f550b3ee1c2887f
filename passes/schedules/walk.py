"""A thread's way along the elements that a reduction joins: unrolled once, or as a loop each time it is walked.

The threads that share the elements take turns, a vector each: thread t of n stands at vector t, t + n, t + 2n. With
`chunks` > 0 those are unrolled, and what was loaded at one is still known when the walk is walked again; with
`chunks` = 0 they are a loop of `unroll` at a time. Where the elements end before the turn does, a thread stands at
the last vector again and is told that it is not to count.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass

from ...dialects.mlir import arith, ir, scf, vector
from ..evaluate import Evaluator
from ..indexing import Counter
from ..lanes import Lanes
from .machine import number


@dataclass(frozen=True)
class Stop:
    """Elements that a thread handles at once; `valid` tells which of them exist, None if all do."""

    counter: Counter
    lanes: Lanes | None
    valid: ir.Value | None

    @property
    def store_guard(self) -> ir.Value | None:
        """Lanes that overlap the vector before store the same again; only whole vectors are left out."""
        is_mask = self.valid is not None and isinstance(self.valid.type, ir.VectorType)
        return None if is_mask else self.valid


@dataclass(frozen=True)
class Stride:
    """How the elements are walked: in vectors, by so many threads, unrolled or in a loop."""

    vector: int
    threads: int
    chunks: int
    unroll: int


class Walk:
    """Walks `extent` elements as thread number `thread`."""

    def __init__(self, extent: int, stride: Stride, thread: ir.Value, evaluator: Evaluator) -> None:
        self.extent, self.stride = extent, stride
        self._thread, self._evaluator = thread, evaluator
        self._kept = [self._stop(number(0), chunk, chunk) for chunk in range(stride.chunks)]

    def accumulate(
        self, first: Sequence[ir.Value], step: Callable[[Stop, Sequence[ir.Value]], list[ir.Value]]
    ) -> list[ir.Value]:
        """Folds `step` over the stops, starting from `first`."""
        if self._kept:
            carried = list(first)
            for stop in self._kept:
                carried = step(stop, carried)
            return carried
        loop = scf.ForOp(number(0), number(self.iterations), number(1), list(first))
        with ir.InsertionPoint(loop.body), self._evaluator.scope():
            carried = list(loop.inner_iter_args)
            for stop in self.stops(loop.induction_variable):
                carried = step(stop, carried)
            scf.YieldOp(carried)
        return list(loop.results)

    @property
    def kept(self) -> list[Stop]:
        """The stops, where they are unrolled."""
        return self._kept

    def visit(self) -> Iterator[list[Stop]]:
        """Runs the loop's body for all stops, several at once."""
        if self._kept:
            yield self._kept
            return
        loop = scf.ForOp(number(0), number(self.iterations), number(1))
        with ir.InsertionPoint(loop.body), self._evaluator.scope():
            yield self.stops(loop.induction_variable)
            scf.YieldOp([])

    @property
    def iterations(self) -> int:
        """How often the loop runs, where there is one."""
        return math.ceil(self.extent / (self.stride.vector * self.stride.threads * self.stride.unroll))

    def stops(self, iteration: ir.Value) -> list[Stop]:
        """The stops of an iteration of the loop."""
        unroll = self.stride.unroll
        base = arith.MulIOp(iteration, number(unroll)).result
        last = (self.iterations - 1) * unroll
        return [self._stop(base, step, last + step) for step in range(unroll)]

    def _stop(self, base: ir.Value, step: int, furthest: int) -> Stop:
        """Chunk base + step; `furthest` is the last chunk it can be."""
        width, threads = self.stride.vector, self.stride.threads
        chunk = arith.AddIOp(base, number(step)).result
        place = arith.AddIOp(arith.MulIOp(chunk, number(threads)).result, self._thread).result
        start = arith.MulIOp(place, number(width)).result
        counter = Counter(self.extent, "column")
        lanes = Lanes(width, (counter,), aligned=self.extent % width == 0) if width > 1 else None
        if (furthest + 1) * threads * width <= self.extent:
            self._evaluator.binding.bind(counter, start)
            return Stop(counter, lanes, None)
        clamped = arith.MinUIOp(start, number(self.extent - width)).result
        self._evaluator.binding.bind(counter, clamped)
        return Stop(counter, lanes, self._validity(start, clamped))

    def _validity(self, start: ir.Value, clamped: ir.Value) -> ir.Value:
        """A vector past the end stands at the last whole one: lanes that belong to another are not valid."""
        width = self.stride.vector
        if self.extent % width == 0:
            return arith.CmpIOp(arith.CmpIPredicate.ult, start, number(self.extent)).result
        type_ = ir.VectorType.get([width], ir.IndexType.get())
        numbers = ir.DenseElementsAttr.get(
            [ir.IntegerAttr.get(ir.IndexType.get(), lane) for lane in range(width)], type_
        )
        overlap = vector.BroadcastOp(type_, arith.SubIOp(start, clamped).result).result
        lane = arith.ConstantOp(type_, numbers).result
        return arith.CmpIOp(arith.CmpIPredicate.uge, lane, overlap).result
