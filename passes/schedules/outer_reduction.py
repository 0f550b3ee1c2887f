"""Outer reduction: columns are reduced, along an axis that is not the contiguous one, with what is around it.

Column sums, the weight gradients of norms, softmax along a middle axis: each thread holds a vector of neighbouring
columns and walks down their rows, so that a warp's loads are contiguous though the reduction is not.

    threads   x: which vector of columns           rows y, y + Y, y + 2Y, ... are joined in the thread;
              y: which rows                        then the Y threads of a column through shared memory

A block has a *strip* of columns, and all their rows. Several reductions of the same columns, chained or side by
side, share the walk; outputs have a value for each column, or for each element. As in the inner reduction, few rows
are unrolled and stay in registers, many are a loop that each level of reductions runs again.

    parameters   vector: columns a thread; across: threads side by side (x); down: threads below each other (y);
                 chunks: rows of a thread, unrolled, or 0 for a loop; unroll: rows an iteration of that loop
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass

from ...dialects.mlir import arith, ir
from ...targets.target import Target
from ..evaluate import Buffer, Evaluator
from ..indexing import Counter, Form, Index, Quotient, Remainder, delinearize, linearize, of, row_major
from ..kernel_body import KernelBody, Request, Trace
from ..lanes import Lanes
from ..structured import Generic
from .family import (
    Choice,
    Launch,
    Parameters,
    Problem,
    element_bytes,
    elements,
    index_at,
    position,
    power_of_two,
    shape,
    widest_vector,
)
from .family import counters as counters_of
from .machine import WARP, Machine, both, guarded, number
from .partial import Partial
from .walk import Stop, Stride, Walk

THREADS = 256
MOST_THREADS = 1024
CHUNKS = 8  # rows that a thread holds in registers, if there are no more
REGISTERS = 48  # of a thread, for what is loaded at once
NARROW_STRIP = 8  # threads side by side, at least: 128 bytes
MOST_SHARED_BYTES = 32768  # of a block, for partial results: attributions are less than 48 KiB
CPU_VECTOR = 16


@dataclass(frozen=True)
class Columns:
    """The iteration space: counters of the outer dimensions, the columns' counter, how many rows they have."""

    generic: Generic
    outer: tuple[Counter, ...]
    column: Counter
    rows: int

    @property
    def blocks(self) -> int:
        """How many sets of columns there are."""
        return math.prod(counter.extent for counter in self.outer)

    @property
    def count(self) -> int:
        return self.blocks * self.column.extent

    def index(self, value: ir.Value, row: Form) -> Index:
        """The element of an output at a column (and a row, if it has them)."""
        if elements(value) == self.count:
            return index_at(position([*self.outer, self.column]), value)
        generic = self.generic
        last = generic.reduction_dims[-1]
        inner = iter(delinearize(row, generic.reduction_extents))
        outer = iter(self.outer)
        point = [
            next(inner) if dimension in generic.reduction_dims else of(next(outer)) for dimension in range(last + 1)
        ]
        point += delinearize(of(self.column), generic.extents[last + 1 :])
        return index_at(linearize(point, row_major(generic.extents)), value)

    def is_wide(self, output: ir.Value) -> bool:
        """Whether an output has a value for every row of a column."""
        return elements(output) != self.count


class OuterReduction:
    """The family; see the module's docstring."""

    name = "outer_reduction"
    parameters = ("across", "chunks", "down", "unroll", "vector")

    def refuses(self, body: KernelBody) -> str | None:
        columns = _columns(body)
        if columns is None:
            return "it has no reduction that leaves an inner dimension"
        sizes = {columns.count, columns.count * columns.rows}
        if any(elements(output) not in sizes for output in body.outputs):
            return f"an output has neither {columns.count} columns nor {columns.rows} rows a column"
        trace = _trace(body, columns, Counter(columns.rows, "row"))
        return _refused_reduction(body, trace, columns) or _refused_reads(trace, columns)

    def declines(self, problem: Problem, target: Target) -> None:
        """Nothing later does better."""

    def choose(self, problem: Problem, target: Target) -> Choice:
        columns = _columns(problem.body)
        assert columns is not None
        if target.kind == "cpu":
            return _cpu_choice(columns, problem)
        return _gpu_choice(problem, columns, target)

    def launch(self, problem: Problem, parameters: Parameters) -> Launch:
        columns = _columns(problem.body)
        assert columns is not None
        across, down, vector = (int(parameters[name]) for name in ("across", "down", "vector"))
        return Launch(columns.blocks * math.ceil(columns.column.extent / (across * vector)), across * down)

    def emit(
        self,
        problem: Problem,
        parameters: Parameters,
        machine: Machine,
        evaluator: Evaluator,
        outputs: Sequence[Buffer],
    ) -> None:
        columns = _columns(problem.body)
        assert columns is not None
        across, down, vector = (int(parameters[name]) for name in ("across", "down", "vector"))
        strips = math.ceil(columns.column.extent / (across * vector))
        for block in machine.blocks(columns.blocks * strips):
            with evaluator.scope():
                x, y = machine.place(across)
                strip = _strip(columns, block, strips, x, parameters, evaluator)
                stride = Stride(1, down, int(parameters["chunks"]), int(parameters["unroll"]))
                walk = Walk(columns.rows, stride, y, evaluator)
                for level in _trace(problem.body, columns, Counter(columns.rows)).levels():
                    _reduce_level(level, strip, walk, machine, problem.body, evaluator)
                _store_outputs(problem.body.outputs, outputs, strip, y, walk, evaluator)


@dataclass(frozen=True)
class _Strip:
    """A thread's columns: their lanes, whether they exist, and how many threads of a block stand side by side."""

    columns: Columns
    lanes: Lanes | None
    valid: ir.Value | None
    across: int


def _strip(
    columns: Columns, block: ir.Value, strips: int, x: ir.Value, parameters: Parameters, evaluator: Evaluator
) -> _Strip:
    """Binds the counters of a block's columns."""
    across, vector, extent = int(parameters["across"]), int(parameters["vector"]), columns.column.extent
    evaluator.binding.bind_digits(columns.outer, arith.DivUIOp(block, number(strips)).result)
    first = arith.MulIOp(arith.RemUIOp(block, number(strips)).result, number(across)).result
    start = arith.MulIOp(arith.AddIOp(first, x).result, number(vector)).result
    valid: ir.Value | None = None
    if extent % (across * vector):
        if extent % vector == 0:
            valid = arith.CmpIOp(arith.CmpIPredicate.ult, start, number(extent)).result
        start = arith.MinUIOp(start, number(extent - vector)).result
    evaluator.binding.bind(columns.column, start)
    lanes = Lanes(vector, (columns.column,), aligned=extent % vector == 0) if vector > 1 else None
    return _Strip(columns, lanes, valid, across)


def _reduce_level(
    level: Sequence[Request],
    strip: _Strip,
    walk: Walk,
    machine: Machine,
    body: KernelBody,
    evaluator: Evaluator,
) -> None:
    """Computes the reductions of a level, all in one walk, and makes their results known."""
    parts = [Partial(value, index, body.generic(value.owner.operation)) for value, index in level]

    def at(part: Partial, stop: Stop) -> ir.Value:
        return _at(part, stop, strip.lanes, evaluator)

    totals = walk.accumulate(parts, strip.lanes.count if strip.lanes else 1, at)
    combines: list[Callable[[ir.Value, ir.Value], ir.Value]] = [part.combine for part in parts]
    joined = machine.combine_columns(totals, combines, strip.across, walk.stride.threads)
    for part, total in zip(parts, joined, strict=True):
        result = part.with_init(total, strip.lanes, evaluator)
        evaluator.remember(part.value, part.index, result, strip.lanes)


def _at(part: Partial, stop: Stop, lanes: Lanes | None, evaluator: Evaluator) -> ir.Value:
    reduction = delinearize(of(stop.counter), part.generic.reduction_extents)
    return part.expression(reduction, lanes, stop.valid, evaluator)


def _store_outputs(
    values: Sequence[ir.Value],
    buffers: Sequence[Buffer],
    strip: _Strip,
    y: ir.Value,
    walk: Walk,
    evaluator: Evaluator,
) -> None:
    pairs = list(zip(values, buffers, strict=True))
    wide = [(value, buffer) for value, buffer in pairs if strip.columns.is_wide(value)]
    if wide:
        for stops in walk.visit():
            _store_rows(wide, stops, strip, evaluator)
    first = arith.CmpIOp(arith.CmpIPredicate.eq, y, number(0)).result
    for value, buffer in pairs:
        if not strip.columns.is_wide(value):
            index = strip.columns.index(value, Form())
            evaluator.at(value, index, strip.lanes)
            with guarded(both(first, strip.valid)):
                evaluator.store(value, index, strip.lanes, buffer)


def _store_rows(
    wide: Sequence[tuple[ir.Value, Buffer]], stops: Sequence[Stop], strip: _Strip, evaluator: Evaluator
) -> None:
    """Computes all before it stores any, so that nothing waits for a store."""
    todo = [
        (value, strip.columns.index(value, of(stop.counter)), stop, buffer) for stop in stops for value, buffer in wide
    ]
    for value, index, _, _ in todo:
        evaluator.at(value, index, strip.lanes)
    for value, index, stop, buffer in todo:
        with guarded(both(stop.valid, strip.valid)):
            evaluator.store(value, index, strip.lanes, buffer)


def _columns(body: KernelBody) -> Columns | None:
    """The space that the first reduction sets: the dimensions inside of those it reduces are columns."""
    requests = [(output, index_at(position(counters_of(shape(output))), output)) for output in body.outputs]
    reductions = body.trace(requests).reductions
    if not reductions:
        return None
    generic = body.generic(reductions[0][0].owner.operation)
    inner = generic.reduction_dims[-1] + 1
    parallel = [d for d in range(generic.rank) if d not in generic.reduction_dims]
    outer = counters_of([generic.extents[d] for d in parallel if d < inner])
    extent = math.prod(generic.extents[inner:])
    if extent <= 1 or 0 in generic.extents:
        return None
    return Columns(generic, tuple(outer), Counter(extent, "column"), math.prod(generic.reduction_extents))


def _trace(body: KernelBody, columns: Columns, row: Counter) -> Trace:
    def point(generic: Generic) -> Sequence[Form] | None:
        if math.prod(generic.reduction_extents) != columns.rows:
            return None
        return delinearize(of(row), generic.reduction_extents)

    return body.trace([(output, columns.index(output, of(row))) for output in body.outputs], point)


def _refused_reduction(body: KernelBody, trace: Trace, columns: Columns) -> str | None:
    for value, index in trace.reductions:
        generic = body.generic(value.owner.operation)
        if math.prod(generic.reduction_extents) != columns.rows:
            return f"its reductions run over {columns.rows} and {math.prod(generic.reduction_extents)} elements"
        if generic.combiner(ir.OpResult(value).result_number) is None:
            return "a reduction's partial results can't be joined"
        atoms = {atom for form in index for atom in form.atoms() if not isinstance(atom, Quotient | Remainder)}
        if not atoms <= {*columns.outer, columns.column} or columns.column not in atoms:
            return "a reduction is needed at a place that is not a column"
    return None


def _refused_reads(trace: Trace, columns: Columns) -> str | None:
    """What has a value for each element must be contiguous along the columns."""
    lanes = Lanes(1, (columns.column,))
    for value, index in trace.reads:
        step = lanes.step(linearize(index, row_major(shape(value))))
        if step not in (0, 1) and elements(value) >= columns.count * columns.rows:
            return "it reads along an axis that is not the columns'"
    return None


def _cpu_choice(columns: Columns, problem: Problem) -> Choice:
    extent = columns.column.extent
    width = min(CPU_VECTOR, 1 << extent.bit_length() - 1) if problem.vectorize else 1
    parameters: Parameters = {"vector": width, "across": 1, "down": 1, "chunks": 0, "unroll": 1}
    return Choice(parameters, f"one thread walks {columns.rows} rows, {width} columns at a time")


def _gpu_choice(problem: Problem, columns: Columns, target: Target) -> Choice:
    extent, rows = columns.column.extent, columns.rows
    width = math.gcd(widest_vector(problem), extent)
    vectors = extent // width
    enough = 2 * target.multiprocessors
    across = min(WARP, power_of_two(vectors))
    while across > NARROW_STRIP and columns.blocks * math.ceil(vectors / across) < enough:
        across //= 2
    full = columns.blocks * math.ceil(vectors / across) >= enough
    down = min((THREADS if full else MOST_THREADS) // across, power_of_two(rows))
    if full and across * down < THREADS:
        # Few rows: columns make up for them, so that a block is worth its start
        across = min(THREADS // down, power_of_two(vectors))
    while down > WARP // across and _joined_bytes(problem, columns, width, across, down) > MOST_SHARED_BYTES:
        down //= 2
    down = max(down, WARP // across)
    at_once = _rows_at_once(problem, columns, width)
    chunks = math.ceil(rows / down)
    why = f"{rows} rows of {extent} columns: {across} threads side by side with {width} columns each, {down} down"
    if chunks <= at_once:
        return Choice(_parameters(width, across, down, chunks, 1), f"{why}, the rows in registers")
    unroll = min(at_once, 1 << chunks.bit_length() - 1)
    return Choice(_parameters(width, across, down, 0, unroll), f"{why}, {unroll} rows in flight")


def _joined_bytes(problem: Problem, columns: Columns, width: int, across: int, down: int) -> int:
    """Shared memory in which the threads of a column leave what their reductions have come to."""
    reductions = _trace(problem.body, columns, Counter(columns.rows)).reductions
    slots = across * down // max(across, WARP)
    return slots * across * width * sum(element_bytes(value) for value, _ in reductions)


def _parameters(width: int, across: int, down: int, chunks: int, unroll: int) -> Parameters:
    return {"vector": width, "across": across, "down": down, "chunks": chunks, "unroll": unroll}


def _rows_at_once(problem: Problem, columns: Columns, width: int) -> int:
    """How many rows of a thread registers hold: a power of two, at most CHUNKS."""
    trace = _trace(problem.body, columns, Counter(columns.rows))
    read = {value for value, _ in trace.reads if elements(value) >= columns.count * columns.rows}
    registers = max(1, width * sum(element_bytes(value) for value in read) // 4)
    return max(1, min(CHUNKS, 1 << (REGISTERS // registers).bit_length() - 1)) if registers <= REGISTERS else 1
