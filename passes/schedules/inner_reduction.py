"""Inner reduction: rows are reduced along the axis that is contiguous in memory, with what is around it.

Softmax, layer and RMS norm, mean, max, any: reductions of the same rows, chained or side by side, in one
kernel. The threads of a row (a part of a warp, a warp, or a block) walk its columns a vector at a time:

    for each level of reductions (those of a level need only earlier levels):
        for each chunk of columns: compute the expressions, join them to vector accumulators
        join the lanes, then the threads (warp shuffles; shared memory between warps)
    for each chunk of columns: compute and store the outputs

The row is read once where it fits on chip (`row`): in registers, the chunks unrolled; or in shared memory, put there
by the first walk, the chunks a loop; for long rows in that of a cluster's blocks, which share the row. Otherwise each
level reads it again from memory, where it mostly still is in the cache. Sums keep one accumulator a lane and are
joined as a tree, which is as accurate as PyTorch's own.

    parameters   vector; threads: of a row in a block; rows: of a block; cluster: blocks that share a row;
                 row: where it is kept, "registers", "shared" or "memory";
                 chunks: unrolled, the others are a loop; unroll: chunks an iteration of that loop;
                 groups: blocks or clusters that take rows in turn (row_pipeline.py), 0 if each has one row;
                 aligned: 1 if vectors start where the row's memory is aligned, whatever is left at its edges
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass

from ...dialects.mlir import arith, ir
from ...targets.target import Target
from ..evaluate import Buffer, Evaluator
from ..indexing import Counter, Form, Index, Loaded, delinearize, linearize, of, row_major
from ..kernel_body import KernelBody, Request, Trace
from ..lanes import Lanes
from ..sizes import Extent, Size, UndecidedError, divides
from ..structured import Generic
from .family import (
    Choice,
    Launch,
    Parameters,
    Problem,
    accesses,
    element_bytes,
    elements,
    index_at,
    position,
    power_of_two,
    shape,
    widest_vector,
)
from .family import counters as counters_of
from .machine import CLUSTERS, REGISTERS, WARP, Machine, Row, both, guarded, number
from .partial import Partial, join_lanes
from .row_pipeline import RowPipeline, fetched_before
from .shelf import BEFORE, Kept, Shelf, reads_of_passes
from .walk import Alignment, Stop, Stride, Walk

BLOCK = 256  # threads of a block that holds several rows, or the registers of one
CHUNKS = 4  # vectors of a row that a thread holds in registers, before more threads share the row
WALKED = 16  # vectors of a row that a thread walks at least, if it keeps none
THREAD_BYTES = 128  # of a row that a thread has in shared memory
SHARED_BYTES = (
    32768  # of a row's part in a block: then several blocks run beside each other, one reads while one computes
)
RESERVED_BYTES = 4096  # of shared memory, for partial results
FEWEST_ALONE, MOST_ALONE = 256, 512  # threads of a block that has a multiprocessor for itself
NOTHING = 0.02  # share of a row that is walked in vain without harm
OTHER_BYTES = 256  # of shared memory: what is left over between pieces
OTHER_REGISTERS = 48  # of a thread, besides those for vectors that it holds
LEAST_ALIGNED = 8  # vectors of a row, for its edges to be worth their own way
CPU_VECTOR = 16


@dataclass(frozen=True)
class Rows:
    """The iteration space: counters of the rows, how many columns, and the reduction that set them."""

    generic: Generic
    counters: tuple[Counter, ...]
    columns: Extent

    @property
    def count(self) -> Extent:
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
    parameters = ("aligned", "chunks", "cluster", "groups", "row", "rows", "threads", "unroll", "vector")

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
        per_block, cluster = int(parameters["rows"]), int(parameters["cluster"])
        groups = int(parameters["groups"]) or math.ceil(rows.count / per_block)
        return Launch(groups * cluster, int(parameters["threads"]) * per_block, cluster)

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
        _refuse_unknown(rows, parameters)
        column = Counter(rows.columns, "column")
        trace = _trace(problem.body, rows, column)
        levels = trace.levels()
        kept = _kept(problem, rows, trace, column) if parameters["row"] == "shared" else []
        stride, groups = _stride(parameters), int(parameters["groups"])
        alignment = _alignment(problem, rows, trace, column, stride.vector) if parameters["aligned"] else None

        def compute(row: Row, walk: Walk, shelf: Shelf) -> None:
            for level, requests in enumerate(levels):
                _reduce_level(requests, level, walk, shelf, machine, problem.body, evaluator)
            store = _Store(rows, row, walk, shelf, len(levels), evaluator)
            store.store(problem.body.outputs, outputs)

        if groups:
            kept = fetched_before(problem, kept, column, stride.vector, alignment)
            last = len(levels) if any(map(rows.is_wide, problem.body.outputs)) else len(levels) - 1
            pipeline = RowPipeline(rows.counters, rows.count, column, kept, stride, alignment, last, machine, evaluator)
            for row, walk, shelf in pipeline.run(groups):
                compute(row, walk, shelf)
            return
        for row in machine.rows(rows.count, int(parameters["rows"]), int(parameters["threads"])):
            evaluator.binding.bind_digits(rows.counters, row.number)
            with evaluator.scope():
                walk = Walk(rows.columns, stride, row.thread, evaluator, alignment)
                shelf = Shelf(kept, column, walk.chunks, stride.vector, machine, evaluator)
                shelf.load(walk.edges, 0)
                compute(row, walk, shelf)


def _refuse_unknown(rows: Rows, parameters: Parameters) -> None:
    """UndecidedError for what has to know how many rows or columns there are."""
    if parameters["groups"] and isinstance(rows.count, Size):
        raise UndecidedError(f"whether there are as many as {parameters['groups']} rows")
    is_walked = parameters["row"] == "memory" and not parameters["chunks"] and not parameters["aligned"]
    if isinstance(rows.columns, Size) and not (is_walked and divides(int(parameters["vector"]), rows.columns)):
        raise UndecidedError(f"the number of columns, {rows.columns}")


def _reduce_level(
    requests: Sequence[Request],
    level: int,
    walk: Walk,
    shelf: Shelf,
    machine: Machine,
    body: KernelBody,
    evaluator: Evaluator,
) -> None:
    """Computes the reductions of a level, all in one walk, and makes their results known."""
    parts = [Partial(value, index, body.generic(value.owner.operation)) for value, index in requests]

    def visiting(stops: Sequence[Stop]) -> AbstractContextManager[None]:
        return shelf.visiting(stops, level)

    def at(part: Partial, stop: Stop) -> ir.Value:
        return _at(part, stop, evaluator)

    totals = walk.accumulate(parts, walk.stride.vector, at, visiting)
    for part, total in zip(parts, totals, strict=True):
        joined = join_lanes(total, part.combine)
        for edge in walk.edges:
            joined = part.combine(joined, _at(part, edge, evaluator))
        result = machine.combine(joined, part.combine, walk.stride.threads)
        evaluator.remember(part.value, part.index, part.with_init(result, None, evaluator))


def _at(part: Partial, stop: Stop, evaluator: Evaluator) -> ir.Value:
    reduction = delinearize(of(stop.counter), part.generic.reduction_extents)
    return part.expression(reduction, stop.lanes, stop.valid, evaluator)


@dataclass(frozen=True)
class _Store:
    """The last pass over a row: computes the outputs and stores them."""

    rows: Rows
    row: Row
    walk: Walk
    shelf: Shelf
    number: int
    evaluator: Evaluator

    def store(self, values: Sequence[ir.Value], buffers: Sequence[Buffer]) -> None:
        pairs = list(zip(values, buffers, strict=True))
        wide = [(value, buffer) for value, buffer in pairs if self.rows.is_wide(value)]
        if wide:
            for stops in self.walk.visit():
                with self.shelf.visiting(stops, self.number):
                    self._store_columns(wide, stops)
            self._store_columns(wide, self.walk.edges)
        first = arith.CmpIOp(arith.CmpIPredicate.eq, self.row.thread, number(0)).result
        for value, buffer in pairs:
            if not self.rows.is_wide(value):
                index = self.rows.index(value, Form())
                self.evaluator.at(value, index)
                with guarded(both(first, self.row.inside)):
                    self.evaluator.store(value, index, None, buffer)

    def _store_columns(self, wide: Sequence[tuple[ir.Value, Buffer]], stops: Sequence[Stop]) -> None:
        """Computes all before it stores any, so that nothing waits for a store."""
        todo = [
            (value, self.rows.index(value, of(stop.counter)), stop, buffer) for stop in stops for value, buffer in wide
        ]
        for value, index, stop, _ in todo:
            self.evaluator.at(value, index, stop.lanes)
        for value, index, stop, buffer in todo:
            with guarded(both(stop.store_guard, self.row.inside)):
                self.evaluator.store(value, index, stop.lanes, buffer)


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


def _alignment(problem: Problem, rows: Rows, trace: Trace, column: Counter, width: int) -> Alignment | None:
    """The position in memory that most bytes of a row have, up to whole vectors; None if nothing is contiguous."""
    lanes, weights = Lanes(1, (column,)), dict[Form, int]()
    requests = rows.requests(problem.body.outputs, of(column))
    accessed = [value for value, _ in trace.reads] + problem.body.outputs
    for value, where in zip(accessed, accesses(problem, trace, requests), strict=True):
        if elements(value) < rows.count * rows.columns or lanes.step(where) != 1:
            continue
        same = next((other for other in weights if _are_aligned_alike(where, other, width)), where)
        weights[same] = weights.get(same, 0) + element_bytes(value)
    return Alignment(max(weights, key=weights.__getitem__), column) if weights else None


def _are_aligned_alike(one: Form, other: Form, width: int) -> bool:
    distance = one - other
    return not distance.terms and distance.constant % width == 0


def _kept(problem: Problem, rows: Rows, trace: Trace, column: Counter) -> list[Kept]:
    """What more than one pass reads of a row: contiguous, and its own."""
    wide = [request for request in rows.requests(problem.body.outputs, of(column)) if rows.is_wide(request[0])]
    reads = reads_of_passes(trace, [*trace.levels(), wide])
    lanes = Lanes(1, (column,))
    kept = []
    for value, index in trace.reads:
        passes = [number for number, found in enumerate(reads) if (value, index) in found]
        position = linearize(index, problem.inputs[value].strides)
        is_own = elements(value) >= rows.count * rows.columns and lanes.step(position) == 1
        if len(passes) > 1 and is_own and not any(isinstance(atom, Loaded) for atom in position.atoms()):
            kept.append(Kept(value, index, passes[0]))
    return kept


def _cpu_choice(columns: int, widest: int) -> Choice:
    width = min(widest, 1 << columns.bit_length() - 1)
    unroll = 2 if columns >= 8 * width else 1
    parameters = _parameters(_Vectors(width, columns // width), 1, "memory", unroll=unroll)
    return Choice(parameters, f"one thread walks rows of {columns} columns, {width} at a time")


@dataclass(frozen=True)
class _Vectors:
    """How a row is cut into vectors: how wide they are, how many, and whether they start where memory is aligned."""

    width: int
    count: int
    aligned: bool = False


def _vectors(problem: Problem, rows: Rows) -> _Vectors:
    """The widest vectors, unless those that divide the row are nearly as wide."""
    widest, columns = widest_vector(problem), rows.columns
    dividing = math.gcd(widest, columns)
    if 2 * dividing >= widest or columns < LEAST_ALIGNED * widest:
        return _Vectors(dividing, columns // dividing)
    column = Counter(columns, "column")
    if _alignment(problem, rows, _trace(problem.body, rows, column), column, widest) is None:
        return _Vectors(dividing, columns // dividing)
    return _Vectors(widest, math.ceil(columns / widest), True)


def _gpu_choice(problem: Problem, rows: Rows, target: Target) -> Choice:
    vectors = _vectors(problem, rows)
    columns, width = rows.columns, vectors.width
    threads = min(power_of_two(vectors.count), WARP)
    while threads < target.max_threads_per_block and not _fits(problem, rows, vectors.count, threads, width):
        threads *= 2
    fits = _fits(problem, rows, vectors.count, threads, width)
    shared = None if fits and threads <= BLOCK else _shared_choice(problem, rows, vectors, target)
    if shared is not None:
        return shared
    if fits:
        per_block = max(1, BLOCK // threads) if threads <= WARP else 1
        chunks = math.ceil(vectors.count / threads)
        why = f"{columns} columns stay in registers: {threads} threads with {chunks} vectors of {width} each"
        return Choice(_parameters(vectors, threads, "registers", rows=per_block, chunks=chunks), why)
    threads = max(BLOCK, min(power_of_two(math.ceil(vectors.count / WALKED)), target.max_threads_per_block))
    unroll = 4 if vectors.count >= 8 * threads else 1
    why = f"{columns} columns are more than the chip holds, or needed once: {threads} threads walk them at each level"
    return Choice(_parameters(vectors, threads, "memory", unroll=unroll), why)


def _shared_choice(problem: Problem, rows: Rows, vectors: _Vectors, target: Target) -> Choice | None:
    """A row kept in the shared memory of as few blocks as leave room for others beside them; None if it can't be."""
    column = Counter(rows.columns, "column")
    trace = _trace(problem.body, rows, column)
    kept = _kept(problem, rows, trace, column)
    size = vectors.width * sum(element_bytes(one.value) for one in kept)
    if not size:
        return None
    clusters = CLUSTERS if target.has_clusters else CLUSTERS[:1]
    cluster = next((c for c in clusters if vectors.count * size <= c * SHARED_BYTES), clusters[-1])
    limit = target.shared_memory_per_block - RESERVED_BYTES
    if 2 * math.ceil(vectors.count / cluster) * size > limit:
        alignment = _alignment(problem, rows, trace, column, vectors.width) if vectors.aligned else None
        moving = fetched_before(problem, kept, column, vectors.width, alignment)
        moves = problem.persistent and all(one.first == BEFORE for one in moving)
        joined = sum(element_bytes(value) for value, _ in trace.reductions)
        return _alone_choice(_Alone(rows, vectors, size, joined, moves), target)
    cut = _cut(math.ceil(vectors.count / cluster), size, cluster, target)
    if cut.places * size > limit:
        return None
    return Choice(
        _parameters(vectors, cut.threads, "shared", cluster=cluster, unroll=cut.unroll), cut.why(rows, vectors)
    )


@dataclass(frozen=True)
class _Cut:
    """How a row is cut: among the blocks of a cluster, their threads, vectors of a thread that come at once."""

    vectors: int
    cluster: int
    threads: int
    unroll: int

    @property
    def chunks(self) -> int:
        """The vectors of a thread."""
        return math.ceil(self.vectors / (self.threads * self.cluster))

    @property
    def places(self) -> int:
        """How many vectors a block walks, some of them in vain."""
        return math.ceil(self.chunks / self.unroll) * self.unroll * self.threads

    def why(self, rows: Rows, vectors: _Vectors) -> str:
        where = "block" if self.cluster == 1 else f"cluster of {self.cluster} blocks"
        threads = f"{self.threads} threads with {self.chunks} vectors of {vectors.width} each"
        return f"{rows.columns} columns stay in the shared memory of a {where}: {threads}"


def _cut(part: int, size: int, cluster: int, target: Target) -> _Cut:
    """So that a thread has THREAD_BYTES, and few vectors are walked in vain."""
    threads = max(WARP, min(power_of_two(math.ceil(part * size / THREAD_BYTES)), target.max_threads_per_block))
    cuts = [_Cut(part * cluster, cluster, threads, unroll) for unroll in ((4, 2, 1) if cluster == 1 else (2, 1))]
    return next(cut for cut in cuts if 5 * (-cut.chunks % cut.unroll) <= cut.chunks)


@dataclass(frozen=True)
class _Alone:
    """Rows of which a block's part has a multiprocessor for itself; `size` bytes are kept of a vector.

    `joined`: bytes that a warp leaves for others; `moves`: whether rows can be taken in turn.
    """

    rows: Rows
    vectors: _Vectors
    size: int
    joined: int
    moves: bool

    def cut(self, cluster: int) -> _Cut:
        """So that hardly any vectors are walked in vain: as many at once, by as many threads, as then can be."""
        part = self.vectors.count / cluster
        cuts = (
            _Cut(self.vectors.count, cluster, threads, unroll)
            for unroll in (7, 4, 2, 1)
            for threads in range(MOST_ALONE, FEWEST_ALONE - 1, -WARP)
        )
        return min(cuts, key=lambda cut: round(cut.places / part / NOTHING))

    def fits(self, cut: _Cut, target: Target) -> bool:
        joined = self.joined * cut.cluster * cut.threads // WARP
        return cut.places * self.size + joined + OTHER_BYTES <= target.shared_memory_per_block

    def is_busy(self, cluster: int, target: Target) -> float:
        """The share of the time that all clusters that run at once have a row."""
        at_once = target.clusters_at_once(cluster)
        return self.rows.count / (math.ceil(self.rows.count / at_once) * at_once)

    def held(self, cut: _Cut) -> int:
        """How many of a thread's vectors stay in registers: up to half of them, whole turns left for the loop."""
        registers = REGISTERS // cut.threads - OTHER_REGISTERS
        # Once widened, an element takes a register
        most = min(cut.chunks // 2, registers // self.vectors.width)
        return max(0, cut.chunks - math.ceil((cut.chunks - most) / cut.unroll) * cut.unroll)


def _alone_choice(alone: _Alone, target: Target) -> Choice | None:
    """As few blocks as hold a row, if so many leave none idle; they take rows in turn."""
    sizes = range(CLUSTERS[-1], CLUSTERS[-1] // 2, -1) if target.has_clusters else [1]
    cuts = [cut for cut in map(alone.cut, sizes) if alone.fits(cut, target)]
    if not cuts:
        return None
    cut = max(cuts, key=lambda cut: alone.is_busy(cut.cluster, target))
    groups = target.clusters_at_once(cut.cluster)
    parameters, why = _parameters(alone.vectors, cut.threads, "shared", cluster=cut.cluster, unroll=cut.unroll), ""
    if alone.moves and alone.rows.count > groups:
        parameters |= {"groups": groups, "chunks": alone.held(cut)}
        what = "blocks, one a multiprocessor," if cut.cluster == 1 else "clusters, all that there is room for,"
        why = f"; {groups} {what} take rows in turn, and hold {parameters['chunks']} of the vectors in registers"
    return Choice(parameters, cut.why(alone.rows, alone.vectors) + why)


def _stride(parameters: Parameters) -> Stride:
    vector, threads, cluster = (int(parameters[name]) for name in ("vector", "threads", "cluster"))
    return Stride(vector, threads * cluster, int(parameters["chunks"]), int(parameters["unroll"]))


def _parameters(
    vectors: _Vectors,
    threads: int,
    row: str,
    rows: int = 1,
    chunks: int = 0,
    unroll: int = 1,
    cluster: int = 1,
    groups: int = 0,
) -> Parameters:
    return {
        "vector": vectors.width,
        "aligned": int(vectors.aligned),
        "threads": threads,
        "row": row,
        "rows": rows,
        "chunks": chunks,
        "unroll": unroll,
        "cluster": cluster,
        "groups": groups,
    }


def _fits(problem: Problem, rows: Rows, vectors: int, threads: int, width: int) -> bool:
    """Whether a thread can hold its part of the row: few vectors, and registers for what is kept."""
    chunks = math.ceil(vectors / threads)
    trace = _trace(problem.body, rows, Counter(rows.columns))
    read = {value for value, _ in trace.reads if elements(value) >= rows.count * rows.columns}
    kept = 1 + sum(element_bytes(value) / 4 for value in read)
    registers = chunks * width * kept + 24
    return chunks <= CHUNKS and registers * max(threads, BLOCK) <= REGISTERS
