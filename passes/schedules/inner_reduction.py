"""Inner reduction: rows are reduced along the axis that is contiguous in memory, with what is around it.

Softmax, layer and RMS norm, mean, max, any: reductions of the same rows, chained or side by side, in one
kernel. The threads of a row (a part of a warp, a warp, or a block) walk its columns a vector at a time:

    for each level of reductions (those of a level need only earlier levels):
        for each chunk of columns: compute the expressions, join them to vector accumulators
        join the lanes, then the threads (warp shuffles; shared memory between warps)
    for each chunk of columns: compute and store the outputs

With `chunks` > 0 the chunks are unrolled and what they loaded stays in registers, so the row is read once;
with `chunks` = 0 they are a loop, and each level reads the row again. Sums keep one accumulator a lane and
are joined as a tree, which is as accurate as PyTorch's own.

    parameters   vector; threads: of a row; rows: of a block; chunks: unrolled, or 0 for a loop;
                 unroll: chunks an iteration of that loop
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

from ...dialects.mlir import arith, ir
from ...targets.target import Target
from ..evaluate import Buffer, Evaluator
from ..indexing import Counter, Form, Index, delinearize, linearize, of, row_major
from ..kernel_body import KernelBody, Request, Trace
from ..lanes import Lanes
from ..structured import Generic
from .family import Choice, Launch, Parameters, Problem, element_bytes, elements, index_at, position, shape
from .family import counters as counters_of
from .family import widest_vector as widest
from .machine import WARP, Machine, Row, both, guarded, number
from .partial import Partial, join_lanes
from .walk import Stop, Stride, Walk

BLOCK = 256  # threads of a block that holds several rows
CHUNKS = 4  # vectors of a row that a thread holds, before more threads share the row
REGISTERS = 65536  # 32-bit registers of a multiprocessor, for one block at most
CPU_VECTOR = 16


@dataclass(frozen=True)
class Rows:
    """The iteration space: counters of the rows, how many columns, and the reduction that set them."""

    generic: Generic
    counters: tuple[Counter, ...]
    columns: int

    @property
    def count(self) -> int:
        return math.prod(counter.extent for counter in self.counters)

    def index(self, value: ir.Value, column: Form) -> Index:
        """The element of an output at a row (and column, if it has them)."""
        if elements(value) == self.count:
            return index_at(position(self.counters), value)
        inner = iter(delinearize(column, self.generic.reduction_extents))
        outer = iter(self.counters)
        point = [
            next(inner) if dimension in self.generic.reduction_dims else of(next(outer))
            for dimension in range(self.generic.rank)
        ]
        return index_at(linearize(point, row_major(self.generic.extents)), value)

    def requests(self, outputs: Sequence[ir.Value], column: Form) -> list[Request]:
        """The outputs' elements at a column."""
        return [(output, self.index(output, column)) for output in outputs]

    def is_wide(self, output: ir.Value) -> bool:
        """Whether an output has a value for every column, not one a row."""
        return elements(output) != self.count


class InnerReduction:
    """The family; see the module's docstring."""

    name = "inner_reduction"
    parameters = ("chunks", "rows", "threads", "unroll", "vector")

    def refuses(self, body: KernelBody) -> str | None:
        rows = _rows(body)
        if rows is None:
            return "it has no reduction"
        sizes = {rows.count, rows.count * rows.columns}
        if any(elements(output) not in sizes for output in body.outputs):
            return f"an output has neither {rows.count} rows nor {rows.columns} columns a row"
        column = Counter(rows.columns, "column")
        trace = _trace(body, rows, column)
        return _refused_reduction(body, trace, rows) or _refused_reads(body, trace, column)

    def declines(self, problem: Problem, target: Target) -> None:
        """Nothing later does better."""

    def choose(self, problem: Problem, target: Target) -> Choice:
        rows = _rows(problem.body)
        assert rows is not None
        if target.kind == "cpu":
            return _cpu_choice(rows.columns, CPU_VECTOR if problem.vectorize else 1)
        return _gpu_choice(problem, rows, target)

    def launch(self, problem: Problem, parameters: Parameters) -> Launch:
        rows = _rows(problem.body)
        assert rows is not None
        per_block = int(parameters["rows"])
        return Launch(math.ceil(rows.count / per_block), int(parameters["threads"]) * per_block)

    def emit(
        self,
        problem: Problem,
        parameters: Parameters,
        machine: Machine,
        evaluator: Evaluator,
        outputs: Sequence[Buffer],
    ) -> None:
        rows = _rows(problem.body)
        assert rows is not None
        levels = _trace(problem.body, rows, Counter(rows.columns)).levels()
        per_block, threads = int(parameters["rows"]), int(parameters["threads"])
        for row in machine.rows(rows.count, per_block, threads):
            evaluator.binding.bind_digits(rows.counters, row.number)
            with evaluator.scope():
                walk = Walk(rows.columns, _stride(parameters), row.thread, evaluator)
                for level in levels:
                    _reduce_level(level, walk, machine, problem.body, evaluator)
                _store_outputs(problem.body.outputs, outputs, rows, row, walk, evaluator)


def _reduce_level(
    level: Sequence[Request], walk: Walk, machine: Machine, body: KernelBody, evaluator: Evaluator
) -> None:
    """Computes the reductions of a level, all in one walk, and makes their results known."""
    parts = [Partial(value, index, body.generic(value.owner.operation)) for value, index in level]

    def step(stop: Stop, carried: Sequence[ir.Value]) -> list[ir.Value]:
        return [part.combine(so_far, _at(part, stop, evaluator)) for part, so_far in zip(parts, carried, strict=True)]

    totals = walk.accumulate([part.start(walk.stride.vector) for part in parts], step)
    for part, total in zip(parts, totals, strict=True):
        result = machine.combine(join_lanes(total, part.combine), part.combine, walk.stride.threads)
        evaluator.remember(part.value, part.index, part.with_init(result, None, evaluator))


def _at(part: Partial, stop: Stop, evaluator: Evaluator) -> ir.Value:
    reduction = delinearize(of(stop.counter), part.generic.reduction_extents)
    return part.expression(reduction, stop.lanes, stop.valid, evaluator)


def _store_outputs(
    values: Sequence[ir.Value],
    buffers: Sequence[Buffer],
    rows: Rows,
    row: Row,
    walk: Walk,
    evaluator: Evaluator,
) -> None:
    pairs = list(zip(values, buffers, strict=True))
    wide = [(value, buffer) for value, buffer in pairs if rows.is_wide(value)]
    if wide:
        for stops in walk.visit():
            _store_columns(wide, stops, rows, row, evaluator)
    first = arith.CmpIOp(arith.CmpIPredicate.eq, row.thread, number(0)).result
    for value, buffer in pairs:
        if not rows.is_wide(value):
            index = rows.index(value, Form())
            evaluator.at(value, index)
            with guarded(both(first, row.inside)):
                evaluator.store(value, index, None, buffer)


def _store_columns(
    wide: Sequence[tuple[ir.Value, Buffer]], stops: Sequence[Stop], rows: Rows, row: Row, evaluator: Evaluator
) -> None:
    """Computes all before it stores any, so that nothing waits for a store."""
    todo = [(value, rows.index(value, of(stop.counter)), stop, buffer) for stop in stops for value, buffer in wide]
    for value, index, stop, _ in todo:
        evaluator.at(value, index, stop.lanes)
    for value, index, stop, buffer in todo:
        with guarded(both(stop.store_guard, row.inside)):
            evaluator.store(value, index, stop.lanes, buffer)


def _rows(body: KernelBody) -> Rows | None:
    """The space that the first reduction sets: its parallel dimensions are rows."""
    requests = [(output, index_at(position(counters_of(shape(output))), output)) for output in body.outputs]
    reductions = body.trace(requests).reductions
    if not reductions:
        return None
    generic = body.generic(reductions[0][0].owner.operation)
    parallel = [e for d, e in enumerate(generic.extents) if d not in generic.reduction_dims]
    return Rows(generic, tuple(counters_of(parallel)), math.prod(generic.reduction_extents))


def _trace(body: KernelBody, rows: Rows, column: Counter) -> Trace:
    def point(generic: Generic) -> Sequence[Form] | None:
        if math.prod(generic.reduction_extents) != rows.columns:
            return None
        return delinearize(of(column), generic.reduction_extents)

    return body.trace(rows.requests(body.outputs, of(column)), point)


def _refused_reduction(body: KernelBody, trace: Trace, rows: Rows) -> str | None:
    if rows.columns == 0 or rows.count == 0:
        return "it has no rows or no columns"
    for value, index in trace.reductions:
        generic = body.generic(value.owner.operation)
        if math.prod(generic.reduction_extents) != rows.columns:
            return f"its reductions run over {rows.columns} and {math.prod(generic.reduction_extents)} elements"
        if generic.combiner(ir.OpResult(value).result_number) is None:
            return "a reduction's partial results can't be joined"
        if not {atom for form in index for atom in form.atoms()} <= set(rows.counters):
            return "a reduction is needed at a place that is not a row"
    return None


def _refused_reads(body: KernelBody, trace: Trace, column: Counter) -> str | None:
    """Most of what is read along the columns must be contiguous."""
    lanes = Lanes(1, (column,))
    contiguous = strided = 0
    for value, index in trace.reads:
        step = lanes.step(linearize(index, row_major(shape(value))))
        contiguous += element_bytes(value) * (step == 1)
        strided += element_bytes(value) * (step not in (0, 1))
    return "it reduces along an axis that is not contiguous" if strided > contiguous else None


def _cpu_choice(columns: int, widest: int) -> Choice:
    width = min(widest, 1 << columns.bit_length() - 1)
    unroll = 2 if columns >= 8 * width else 1
    parameters: Parameters = {"vector": width, "threads": 1, "rows": 1, "chunks": 0, "unroll": unroll}
    return Choice(parameters, f"one thread walks rows of {columns} columns, {width} at a time")


def _gpu_choice(problem: Problem, rows: Rows, target: Target) -> Choice:
    columns = rows.columns
    width = math.gcd(widest(problem), columns)
    vectors = columns // width
    threads = min(_power_of_two(vectors), WARP)
    while threads < target.max_threads_per_block and not _fits(problem, rows, vectors, threads, width):
        threads *= 2
    per_block = max(1, BLOCK // threads) if threads <= WARP else 1
    if _fits(problem, rows, vectors, threads, width):
        chunks = math.ceil(vectors / threads)
        why = f"{columns} columns stay in registers: {threads} threads with {chunks} vectors of {width} each"
        return Choice(_parameters(width, threads, per_block, chunks, 1), why)
    unroll = 4 if vectors >= 8 * threads else 1
    why = f"{columns} columns are more than registers hold: {threads} threads walk them at each level"
    return Choice(_parameters(width, threads, per_block, 0, unroll), why)


def _stride(parameters: Parameters) -> Stride:
    vector, threads, chunks, unroll = (int(parameters[name]) for name in ("vector", "threads", "chunks", "unroll"))
    return Stride(vector, threads, chunks, unroll)


def _parameters(width: int, threads: int, rows: int, chunks: int, unroll: int) -> Parameters:
    return {"vector": width, "threads": threads, "rows": rows, "chunks": chunks, "unroll": unroll}


def _fits(problem: Problem, rows: Rows, vectors: int, threads: int, width: int) -> bool:
    """Whether a thread can hold its part of the row: few vectors, and registers for what is kept."""
    chunks = math.ceil(vectors / threads)
    trace = _trace(problem.body, rows, Counter(rows.columns))
    read = {value for value, _ in trace.reads if elements(value) >= rows.count * rows.columns}
    kept = 1 + sum(element_bytes(value) / 4 for value in read)
    registers = chunks * width * kept + 24
    return chunks <= CHUNKS and registers * max(threads, BLOCK) <= REGISTERS


def _power_of_two(value: int) -> int:
    """The least power of two that is not smaller."""
    return 1 << (value - 1).bit_length()
