"""What the threads of a row have read of it, kept in the block's memory until they need it again.

A schedule goes over its row several times: once for each level of reductions, and once to write. What more than one
of these *passes* reads, the first of them puts on the shelf, as it lies in memory (16-bit floats take 16 bits), and
the others take it from there. A thread only takes what it put there itself, so nobody waits.

What is there before the first pass (row_pipeline.py), all passes take: then `first` is `BEFORE`.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass

from ...dialects.fusion import storage_type
from ...dialects.mlir import ir, memref, vector
from ..access import moves_elements
from ..evaluate import Evaluator, to_storage
from ..indexing import Atom, Counter, Form, Index, of
from ..kernel_body import Request, Trace
from .machine import Machine
from .own_memory import alignment_of, element_of, take
from .walk import Stop

BEFORE = -1


@dataclass(frozen=True)
class Kept:
    """An input's element at a column of the row, and the first pass that reads it."""

    value: ir.Value
    index: Index
    first: int

    def at(self, places: Mapping[Atom, Counter]) -> Index:
        """The index where counters are replaced: the column by that of a stop, the row by that of another row."""

        def replace(atom: Atom) -> Form | None:
            return of(places[atom]) if atom in places else None

        return tuple(form.substitute(replace) for form in self.index)


def reads_of_passes(trace: Trace, passes: Sequence[Sequence[Request]]) -> list[set[Request]]:
    """The inputs' elements that each pass reads in any case, other than through reductions of earlier passes."""
    reductions, reads = set(trace.reductions), set(trace.reads)
    found: list[set[Request]] = []
    for roots in passes:
        pending = [child for root in roots for child in (trace.requests[root] if root in reductions else [root])]
        seen: set[Request] = set()
        while pending:
            request = pending.pop()
            if request in seen or request in reductions:
                continue
            seen.add(request)
            if not _is_choice(request[0], trace.requests[request]):
                pending.extend(trace.requests[request])
        found.append(seen & reads)
    return found


def _is_choice(value: ir.Value, children: Sequence[Request]) -> bool:
    """Whether an element comes from one of several places, so that no one of them need exist."""
    return len(children) > 1 and not isinstance(value, ir.BlockArgument) and moves_elements(value.owner.operation)


class Shelf:
    """Holds `kept` at every stop of a walk of `chunks` vectors a thread."""

    def __init__(
        self, kept: Sequence[Kept], column: Counter, chunks: int, width: int, machine: Machine, evaluator: Evaluator
    ) -> None:
        self._kept, self._column, self._width = kept, column, width
        self._machine, self._evaluator = machine, evaluator
        self._memories = [machine.own_memory(chunks, width, storage_type(element_of(one.value))) for one in kept]

    @contextmanager
    def visiting(self, stops: Sequence[Stop], number: int) -> Iterator[None]:
        """Makes known what pass `number`, which stands there meanwhile, needs of the row at some stops.

        What it is the first to need is read, and put on the shelf; the rest is taken from there.
        """
        for one, memory in zip(self._kept, self._memories, strict=True):
            if one.first < number:
                for stop in stops:
                    self._take(one, memory, stop)
        self.load(stops, number)
        for one, memory in self._pairs(number):
            for stop in stops:
                self._put(memory, stop, self._evaluator.at(one.value, self._at(one, stop), stop.lanes))
        yield

    def load(self, stops: Sequence[Stop], number: int) -> None:
        """Reads what pass `number` is the first to read."""
        for one, _ in self._pairs(number):
            for stop in stops:
                self._evaluator.at(one.value, self._at(one, stop), stop.lanes)

    def _pairs(self, first: int) -> list[tuple[Kept, ir.Value]]:
        """What pass `first` is the first to read, and where it is put."""
        return [pair for pair in zip(self._kept, self._memories, strict=True) if pair[0].first == first]

    def _at(self, one: Kept, stop: Stop) -> Index:
        return one.at({self._column: stop.counter})

    def _put(self, memory: ir.Value, stop: Stop, value: ir.Value) -> None:
        stored, place = to_storage(value), self._machine.own_place(stop.chunk, self._width)
        if stop.lanes is None:
            memref.StoreOp(stored, memory, [place])
        else:
            vector.StoreOp(stored, memory, [place], alignment=alignment_of(stored.type))

    def _take(self, one: Kept, memory: ir.Value, stop: Stop) -> None:
        place = self._machine.own_place(stop.chunk, self._width)
        take(one.value, self._at(one, stop), stop.lanes, memory, place, self._evaluator)
