"""The loops of a reduction that one thread walks alone.

    for i in 0 .. 1000000: s += x[i]                          an error of rounding a turn, along one chain
 ->
    for c in 0 .. 1000000 step 1024:
      for i in c .. min(c + 1024, 1000000): t += x[i]         t starts from nothing
      s += t                                                  two chains of about 1000 turns

The error of a chain of additions grows with its length (N. Higham, Accuracy and Stability of Numerical Algorithms,
section 4.2, on blocked summation), so a long loop becomes two, and an inner dimension sums up for itself. Results
that can't be joined are carried through all loops in the order of the source.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass

from ..dialects.mlir import arith, ir, scf, vector
from .bind import Binding
from .indexing import Counter
from .lanes import Lanes
from .sizes import Extent, Size
from .structured import Combiner

SHORTEST = 64  # turns; a shorter loop is one chain
CHAIN = 256  # turns of a chain, of a loop whose length is not known
Step = Callable[[Sequence[ir.Value]], list[ir.Value]]


@dataclass(frozen=True)
class ReductionLoops:
    """Loops around `step`, which takes the results so far and gives the next; `combiners`, if they can be joined."""

    step: Step
    combiners: Sequence[Combiner] | None
    binding: Binding
    scope: Callable[[], AbstractContextManager[None]]
    lanes: Lanes | None

    def run(self, counters: Sequence[Counter], carried: Sequence[ir.Value]) -> list[ir.Value]:
        """The results after all values of `counters`, the last the innermost."""
        if not counters:
            return self.step(carried)
        counter, *inner = counters
        if self.combiners is None or counter.extent <= SHORTEST:
            return self._loop(counter, self._number(0), self._number(counter.extent), inner, carried)
        chunk, extent = chain(counter.extent), self._number(counter.extent)
        outer = scf.ForOp(self._number(0), extent, self._number(chunk), self._widened(carried))
        with ir.InsertionPoint(outer.body), self.scope():
            end = arith.AddIOp(outer.induction_variable, self._number(chunk)).result
            end = arith.MinUIOp(end, extent).result
            sums = self._loop(counter, outer.induction_variable, end, inner, self._nothing())
            scf.YieldOp(self._joined(list(outer.inner_iter_args), sums))
        return list(outer.results)

    def _loop(
        self, counter: Counter, first: ir.Value, end: ir.Value, inner: Sequence[Counter], carried: Sequence[ir.Value]
    ) -> list[ir.Value]:
        loop = scf.ForOp(first, end, self._number(1), self._widened(carried))
        with ir.InsertionPoint(loop.body), self.scope(), self.binding.bound(counter, loop.induction_variable):
            so_far = list(loop.inner_iter_args)
            if inner and self.combiners is not None:
                scf.YieldOp(self._joined(so_far, self.run(inner, self._nothing())))
            else:
                scf.YieldOp(self._widened(self.run(inner, so_far)))
        return list(loop.results)

    def _nothing(self) -> list[ir.Value]:
        assert self.combiners is not None
        return self._widened([arith.ConstantOp(one.element_type, one.neutral).result for one in self.combiners])

    def _joined(self, left: Sequence[ir.Value], right: Sequence[ir.Value]) -> list[ir.Value]:
        assert self.combiners is not None
        triples = zip(self.combiners, left, self._widened(right), strict=True)
        return [combiner.join(one, other) for combiner, one, other in triples]

    def _widened(self, values: Sequence[ir.Value]) -> list[ir.Value]:
        """Vectors, where there are lanes: what a loop carries has one type."""
        if self.lanes is None:
            return list(values)
        return [self._vector(value, self.lanes.count) for value in values]

    def _vector(self, value: ir.Value, width: int) -> ir.Value:
        if isinstance(value.type, ir.VectorType):
            return value
        return vector.BroadcastOp(ir.VectorType.get([width], value.type), value).result

    def _number(self, value: Extent) -> ir.Value:
        return self.binding.number(value)


def chain(turns: Extent) -> int:
    """How many turns of a long loop are one chain: a power of two near the root."""
    return CHAIN if isinstance(turns, Size) else 1 << (turns.bit_length() + 1) // 2
