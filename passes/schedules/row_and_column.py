"""Rows and columns: reductions along rows, and partial ones of columns, in one walk over the rows.

The backward of layer and RMS norm: each row is reduced (with what depends on that stored for every element), and
the columns of all rows are summed. fusion-split-reductions has cut the rows into parts; a block walks the rows of a
part, and its threads hold on to their columns:

    for each iteration: load some rows, those of the next iteration with `ahead`; with `stages`, take them from where
                        they were copied to meanwhile (ring.py)
                        for each level of row reductions: join columns, lanes, threads (one barrier)
                        compute and store what is stored for every element or row
                        add what the columns' reductions take of these rows to vectors that stay in registers
    join the columns of the threads below each other through shared memory, and store the part's

So everything is read once, no atomic operation is needed, and a second kernel joins the parts.

    parameters   vector: columns a thread holds side by side; across: threads of a row in a block; cluster: blocks that
                 share rows, if a block can't hold one; chunks: vectors a thread;
                 down: rows that are under way in a block at once; unroll: how many of those a thread has;
                 ahead: 1 if the next ones are loaded meanwhile; stages: for how many iterations' rows there is shared
                 memory, 0 if they are loaded to registers
"""

from __future__ import annotations

import math
from collections import Counter as Counts
from collections.abc import Callable, Sequence
from dataclasses import dataclass

from ...dialects.mlir import arith, ir, scf
from ...targets.target import Target
from ..evaluate import Buffer, Evaluator
from ..indexing import Atom, Counter, Form, Index, Loaded, Quotient, Remainder, delinearize, linearize, of, row_major
from ..kernel_body import KernelBody, Request, Trace
from ..lanes import Lanes
from ..reduction_split import is_partial
from ..structured import Generic
from .family import (
    Choice,
    Launch,
    Parameters,
    Problem,
    element_bytes,
    elements,
    index_at,
    is_fetchable,
    power_of_two,
    shape,
    widest_vector,
)
from .family import counters as counters_of
from .machine import CLUSTERS, REGISTERS, WARP, Machine, both, guarded, number
from .partial import Partial, join_lanes
from .ring import Fetched, Ring
from .walk import Stop, Stride, Walk

THREADS = 512
MOST_REGISTERS = 128  # of a thread, if so many are to fit a multiprocessor
MOST_STAGES = 4
OTHER_BYTES = 2048  # of shared memory: partial results, and what the hardware keeps of each block
RESERVED = 8  # for what does not grow with the columns
WAYS = ((2, 1), (1, 1), (1, 0))  # of having loads under way: rows of a thread at once, and whether the next are, too
CPU_VECTOR = 16


@dataclass(frozen=True)
class Space:
    """The iteration space: counters of the parts, of a part's rows, and of the columns."""

    outer: tuple[Counter, ...]
    row: Counter
    column: Counter

    @property
    def parts(self) -> int:
        return math.prod(counter.extent for counter in self.outer)

    @property
    def counters(self) -> tuple[Counter, ...]:
        return (*self.outer, self.row, self.column)

    def index(self, value: ir.Value) -> Index | None:
        """The element of an output at a point; None for an output of another size."""
        for kept in (self.counters, self.counters[:-1], (*self.outer, self.column)):
            extents = [counter.extent for counter in kept]
            if elements(value) == math.prod(extents):
                return index_at(linearize([of(counter) for counter in kept], row_major(extents)), value)
        return None

    def reduces_rows(self, generic: Generic) -> bool:
        """Whether a generic joins the columns of each row."""
        first = generic.rank - len(generic.reduction_dims)
        is_inner = generic.reduction_dims == list(range(first, generic.rank))
        return is_inner and math.prod(generic.reduction_extents) == self.column.extent

    def point(self, generic: Generic) -> Sequence[Form]:
        """Where a reduction stands at a point of the space."""
        along = self.column if self.reduces_rows(generic) else self.row
        return delinearize(of(along), generic.reduction_extents)


@dataclass(frozen=True)
class Plan:
    """What a kernel computes: levels of row reductions, the columns' reductions, other outputs, and what is read for
    certain, wherever the program stands."""

    space: Space
    levels: list[list[Request]]
    columns: list[Request]
    others: list[Request]
    reads: list[Request]


class RowAndColumn:
    """The family; see the module's docstring."""

    name = "row_and_column"
    parameters = ("across", "ahead", "chunks", "cluster", "down", "stages", "unroll", "vector")

    def refuses(self, body: KernelBody) -> str | None:
        found = _plan(body)
        return found if isinstance(found, str) else None

    def declines(self, problem: Problem, target: Target) -> str | None:
        plan = _accepted(problem.body)
        if 2 * plan.space.parts < target.multiprocessors and not plan.levels:
            return f"{plan.space.parts} parts are too few blocks"
        return None

    def choose(self, problem: Problem, target: Target) -> Choice:
        return _cpu_choice(problem) if target.kind == "cpu" else _gpu_choice(problem, target)

    def launch(self, problem: Problem, parameters: Parameters) -> Launch:
        cluster, threads = int(parameters["cluster"]), int(parameters["across"]) * int(parameters["down"])
        return Launch(_accepted(problem.body).space.parts * cluster, threads, cluster)

    def emit(
        self,
        problem: Problem,
        parameters: Parameters,
        machine: Machine,
        evaluator: Evaluator,
        outputs: Sequence[Buffer],
    ) -> None:
        plan = _accepted(problem.body)
        buffers = dict(zip(problem.body.outputs, outputs, strict=True))
        for block in machine.blocks(plan.space.parts):
            with evaluator.scope():
                evaluator.binding.bind_digits(plan.space.outer, block)
                _Part(problem, plan, parameters, machine, evaluator, buffers).emit()


class _Part:
    """The code of a block."""

    def __init__(
        self,
        problem: Problem,
        plan: Plan,
        parameters: Parameters,
        machine: Machine,
        evaluator: Evaluator,
        buffers: dict[ir.Value, Buffer],
    ) -> None:
        across, down, chunks, vector, unroll, ahead, stages = (
            int(parameters[name]) for name in ("across", "down", "chunks", "vector", "unroll", "ahead", "stages")
        )
        body = problem.body
        self.body, self.plan, self.machine, self.evaluator, self.buffers = body, plan, machine, evaluator, buffers
        self.across, self.down, self.vector, self.is_ahead = across, down, vector, ahead > 0
        self.x, self.y = machine.place(across)
        side_by_side = Stride(vector, across * int(parameters["cluster"]), chunks, 1)
        self.columns = Walk(plan.space.column.extent, side_by_side, self.x, evaluator).kept
        self.rows = Walk(plan.space.row.extent, Stride(1, down, 0, unroll), self.y, evaluator)
        of_rows = [request for request in plan.reads if plan.space.row in _atoms(request)]
        self.fetched = [one for one in of_rows if stages and is_fetchable(problem, *one, _lanes(plan.space, vector))]
        self.row_reads = [request for request in of_rows if request not in self.fetched]
        counts = Counts(value for value, _ in self.fetched for _ in range(unroll * chunks))
        self.ring = Ring(counts, vector, stages, machine, evaluator) if self.fetched else None

    def emit(self) -> None:
        """Walks the rows, and stores what the columns have come to."""
        for request in self.plan.reads:
            if self.plan.space.row not in _atoms(request):
                self._read(request, None)
        starts = [self._column_part(request, None, stop).start(self.vector) for request, stop in self._totals()]
        for (request, stop), total in zip(self._totals(), self._walk(starts), strict=True):
            part = self._column_part(request, None, stop)
            result = part.with_init(total, stop.lanes, self.evaluator)
            self.evaluator.remember(part.value, part.index, result, stop.lanes)
            first = arith.CmpIOp(arith.CmpIPredicate.eq, self.y, number(0)).result if self.down > 1 else None
            with guarded(both(first, stop.store_guard)):
                self.evaluator.store(part.value, part.index, stop.lanes, self.buffers[part.value])

    def _walk(self, starts: Sequence[ir.Value]) -> list[ir.Value]:
        """The loop over the rows; what the columns have come to in all threads below each other."""
        count, iterations = len(starts), self.rows.iterations
        ahead = self._read_rows(self.rows.stops(number(0))) if self.is_ahead else []
        if self.ring:
            self.ring.start(iterations, self._vectors)
        loop = scf.ForOp(number(0), number(iterations), number(1), [number(0), *starts, *ahead])
        with ir.InsertionPoint(loop.body), self.evaluator.scope():
            turn, *carried = loop.inner_iter_args
            if self.ring:
                self.ring.advance(loop.induction_variable, iterations, self._vectors)
            stops = self.rows.stops(loop.induction_variable)
            if self.is_ahead:
                self._remember_rows(stops, carried[count:])
                following = arith.AddIOp(loop.induction_variable, number(1)).result
                ahead = self._read_rows(self.rows.stops(arith.MinUIOp(following, number(iterations - 1)).result))
            else:
                self._read_rows(stops)
            totals = self._step(loop.induction_variable, stops, carried[:count], turn)
            scf.YieldOp([arith.XOrIOp(turn, number(1)).result, *totals, *ahead])
        combines: list[Callable[[ir.Value, ir.Value], ir.Value]] = [
            self._column_part(request, None, stop).combine for request, stop in self._totals()
        ]
        return self.machine.combine_columns(list(loop.results)[1 : count + 1], combines, self.across, self.down)

    def _step(
        self, iteration: ir.Value, rows: Sequence[Stop], totals: Sequence[ir.Value], turn: ir.Value
    ) -> list[ir.Value]:
        """What some rows need and add."""
        for level in self.plan.levels:
            self._reduce(level, iteration, rows, turn)
        self._take(iteration, rows)
        self._store(rows)
        for row in rows:
            totals = [
                self._column_part(request, row, stop).combine(total, self._taken(request, row, stop))
                for (request, stop), total in zip(self._totals(), totals, strict=True)
            ]
        return list(totals)

    def _read_rows(self, rows: Sequence[Stop]) -> list[ir.Value]:
        """Loads all that is read of some rows, so that all of it is under way at once."""
        return [value for row in rows for request in self.row_reads for value in self._read(request, row)]

    def _read(self, request: Request, row: Stop | None) -> list[ir.Value]:
        reads = [(self._at(request, row, stop), stop) for stop in self._stops(request)]
        return [self.evaluator.at(value, index, stop.lanes) for (value, index), stop in reads]

    def _remember_rows(self, rows: Sequence[Stop], loaded: Sequence[ir.Value]) -> None:
        """Makes what the iteration before has loaded the answer for these rows."""
        places = [(request, row, stop) for row in rows for request in self.row_reads for stop in self._stops(request)]
        for (request, row, stop), known in zip(places, loaded, strict=True):
            value, index = self._at(request, row, stop)
            self.evaluator.remember(value, index, known, stop.lanes)

    def _stops(self, request: Request) -> list[Stop]:
        """Where a thread needs a request: at all its columns, or once."""
        return self.columns if self.plan.space.column in _atoms(request) else self.columns[:1]

    def _vectors(self, iteration: ir.Value) -> list[Fetched]:
        """What the ring has of an iteration's rows."""
        return self._vectors_of(self.rows.stops(iteration))

    def _vectors_of(self, rows: Sequence[Stop]) -> list[Fetched]:
        found, seen = [], Counts[ir.Value]()
        for request in self.fetched:
            for row in rows:
                for stop in self.columns:
                    value, index = self._at(request, row, stop)
                    found.append(Fetched(value, index, stop.lanes, seen[value]))
                    seen[value] += 1
        return found

    def _take(self, iteration: ir.Value, rows: Sequence[Stop]) -> None:
        """Takes what the ring has of some rows: again after each barrier, rather than hold it in registers."""
        if self.ring:
            self.ring.take(iteration, self._vectors_of(rows))

    def _reduce(self, level: Sequence[Request], iteration: ir.Value, rows: Sequence[Stop], turn: ir.Value) -> None:
        """The reductions of a level, of all rows, with one barrier."""
        parts = [self._partial(self._at(request, row, None)) for row in rows for request in level]
        with self.evaluator.scope():
            self._take(iteration, rows)
            totals = [self._joined_columns(part) for part in parts]
        results = self.machine.combine_rows(totals, [part.combine for part in parts], self.across, self.down, turn)
        for part, result in zip(parts, results, strict=True):
            self.evaluator.remember(part.value, part.index, part.with_init(result, None, self.evaluator))

    def _joined_columns(self, part: Partial) -> ir.Value:
        total = part.start(self.vector)
        for stop in self.columns:
            point = delinearize(of(stop.counter), part.generic.reduction_extents)
            total = part.combine(total, part.expression(point, stop.lanes, stop.valid, self.evaluator))
        return join_lanes(total, part.combine)

    def _store(self, rows: Sequence[Stop]) -> None:
        """Computes all before it stores any."""
        todo = [
            (self._at(request, row, stop), row, stop)
            for row in rows
            for request in self.plan.others
            for stop in (self.columns if self.plan.space.column in _atoms(request) else [None])
        ]
        for (value, index), _, stop in todo:
            self.evaluator.at(value, index, stop.lanes if stop else None)
        first = arith.CmpIOp(arith.CmpIPredicate.eq, self.x, number(0)).result
        for (value, index), row, stop in todo:
            with guarded(both(row.valid, stop.store_guard if stop else first)):
                self.evaluator.store(value, index, stop.lanes if stop else None, self.buffers[value])

    def _taken(self, request: Request, row: Stop, stop: Stop) -> ir.Value:
        """What the reduction of some columns takes of a row; nothing of one that does not exist."""
        part = self._column_part(request, row, stop)
        point = delinearize(of(row.counter), part.generic.reduction_extents)
        value = part.expression(point, stop.lanes, None, self.evaluator)
        if row.valid is None:
            return value
        return arith.SelectOp(row.valid, value, part.start(self.vector)).result

    def _totals(self) -> list[tuple[Request, Stop]]:
        """The results that stay in registers: a vector for each reduction of columns and each of a thread's columns."""
        return [(request, stop) for request in self.plan.columns for stop in self.columns]

    def _column_part(self, request: Request, row: Stop | None, stop: Stop) -> Partial:
        return self._partial(self._at(request, row, stop))

    def _partial(self, request: Request) -> Partial:
        value, index = request
        return Partial(value, index, self.body.generic(value.owner.operation))

    def _at(self, request: Request, row: Stop | None, column: Stop | None) -> Request:
        """A request where a row and a column stand."""
        space = self.plan.space
        now: dict[Atom, Form] = {}
        if row is not None:
            now[space.row] = of(row.counter)
        if column is not None:
            now[space.column] = of(column.counter)
        value, index = request
        return value, tuple(form.substitute(now.get) for form in index)


def _atoms(request: Request) -> set[Atom]:
    """The counters that an element's place depends on, and indices that are read."""
    return {atom for form in request[1] for atom in form.atoms() if not isinstance(atom, Quotient | Remainder)}


def _lanes(space: Space, width: int) -> Lanes:
    """A vector of neighbouring columns."""
    return Lanes(width, (space.column,), aligned=space.column.extent % width == 0)


def _is_certain(read: Request) -> bool:
    """Whether the element is known without another one, and exists at every point."""
    value, index = read
    inside = all(
        form.bounds[0] >= 0 and form.bounds[1] < extent for form, extent in zip(index, shape(value), strict=True)
    )
    return inside and not any(isinstance(atom, Loaded) for atom in _atoms(read))


def _accepted(body: KernelBody) -> Plan:
    plan = _plan(body)
    assert isinstance(plan, Plan), plan
    return plan


def _plan(body: KernelBody) -> Plan | str:
    """What is computed in which space, or why this family can't."""
    columns = [output for output in body.outputs if is_partial(output)]
    if not columns:
        return "it has no partial result of columns"
    space = _space(body.generic(columns[0].owner.operation))
    if space is None:
        return "its partial results are not of columns"
    indices = [space.index(output) for output in body.outputs]
    if any(index is None for index in indices):
        return f"an output has neither {space.row.extent} rows nor {space.column.extent} columns a part"
    requests = [(output, index) for output, index in zip(body.outputs, indices, strict=True) if index is not None]
    trace = body.trace(requests, lambda generic: space.point(generic) if _fits(generic, space) else None)
    refused = _refused_reductions(body, trace, space, requests) or _refused_reads(trace, space)
    if refused:
        return refused
    partial = [request for request in requests if is_partial(request[0])]
    others = [request for request in requests if not is_partial(request[0])]
    levels = [[request for request in level if request not in partial] for level in trace.levels()]
    levels, reads = [level for level in levels if level], [read for read in trace.reads if _is_certain(read)]
    plan = Plan(space, levels, partial, others, reads)
    if not others and not levels:
        return "it has nothing of rows"
    if _registers(plan, math.ceil(space.column.extent / (THREADS * CLUSTERS[-1])), 1, 0) > MOST_REGISTERS:
        return f"{space.column.extent} columns are more than its threads hold"
    return plan


def _space(generic: Generic) -> Space | None:
    """Parts, then rows that are reduced, then columns."""
    reduced = generic.reduction_dims
    if reduced != list(range(reduced[0], reduced[-1] + 1)) or reduced[0] == 0 or reduced[-1] == generic.rank - 1:
        return None
    outer = counters_of(generic.extents[: reduced[0]])
    rows, columns = math.prod(generic.reduction_extents), math.prod(generic.extents[reduced[-1] + 1 :])
    return Space(tuple(outer), Counter(rows, "row"), Counter(columns, "column"))


def _fits(generic: Generic, space: Space) -> bool:
    return space.reduces_rows(generic) or math.prod(generic.reduction_extents) == space.row.extent


def _refused_reductions(body: KernelBody, trace: Trace, space: Space, outputs: Sequence[Request]) -> str | None:
    needed = {child for children in trace.requests.values() for child in children}
    for request in trace.reductions:
        generic = body.generic(request[0].owner.operation)
        if generic.combiner(ir.OpResult(request[0]).result_number) is None:
            return "a reduction's partial results can't be joined"
        if space.reduces_rows(generic):
            if not _atoms(request) <= {*space.outer, space.row}:
                return "a reduction is needed at a place that is not a row"
        elif request not in outputs or request in needed or not is_partial(request[0]):
            return "a reduction that is not of rows is used in the kernel"
        elif not _fits(generic, space) or _space_sizes(generic) != _sizes(space):
            return "its partial results are of different rows or columns"
    return None


def _space_sizes(generic: Generic) -> tuple[int, ...] | None:
    space = _space(generic)
    return None if space is None else _sizes(space)


def _sizes(space: Space) -> tuple[int, ...]:
    return space.parts, space.row.extent, space.column.extent


def _refused_reads(trace: Trace, space: Space) -> str | None:
    lanes = Lanes(1, (space.column,))
    for value, index in trace.reads:
        if lanes.step(linearize(index, row_major(shape(value)))) not in (0, 1):
            return "it reads along an axis that is not the columns'"
    return None


def _cpu_choice(problem: Problem) -> Choice:
    columns = _accepted(problem.body).space.column.extent
    width = min(CPU_VECTOR, 1 << columns.bit_length() - 1) if problem.vectorize else 1
    parameters: Parameters = {"vector": width, "across": 1, "down": 1, "chunks": math.ceil(columns / width)}
    parameters |= {"cluster": 1, "unroll": 1, "ahead": 0, "stages": 0}
    return Choice(parameters, f"one thread walks the rows, {columns} columns {width} at a time")


def _gpu_choice(problem: Problem, target: Target) -> Choice:
    plan = _accepted(problem.body)
    columns, rows = plan.space.column.extent, plan.space.row.extent
    width = math.gcd(widest_vector(problem), columns)
    vectors = columns // width
    cluster = _cluster(plan, vectors, width, target)
    chunks = math.ceil(vectors / (THREADS * cluster))
    if vectors > THREADS // 2 and _is_held_twice(plan, width):
        chunks = max(chunks, 2)
    across = _side_by_side(math.ceil(vectors / (chunks * cluster)))
    down = max(WARP // across, min(THREADS // across, power_of_two(rows)), 1)
    parameters: Parameters = {"vector": width, "across": across, "down": down, "chunks": chunks, "cluster": cluster}
    blocks = "" if cluster == 1 else f" in each of {cluster} blocks"
    why = f"{columns} columns stay with {across} threads{blocks}, {chunks} vectors of {width} each"
    ways = [way for way in WAYS if way[0] * down <= rows and _registers(plan, chunks * width, *way) <= MOST_REGISTERS]
    unroll, ahead = ways[0] if ways else (1, 0)
    stages = 0 if ahead else _stages(problem, plan, parameters, target)
    if stages > 1:
        parameters |= {"unroll": 1, "ahead": 1, "stages": min(stages, math.ceil(rows / down) + 1)}
        return Choice(parameters, f"{why}; {down} rows at once, those of {stages - 1} iterations under way")
    parameters |= {"unroll": unroll, "ahead": ahead, "stages": 0}
    return Choice(parameters, f"{why}; {down} x {unroll} rows at once")


def _cluster(plan: Plan, vectors: int, width: int, target: Target) -> int:
    """The fewest blocks whose threads have registers for a row, if blocks can share one."""
    clusters = CLUSTERS if target.has_clusters else CLUSTERS[:1]
    chunks = [math.ceil(vectors / (THREADS * cluster)) for cluster in clusters]
    enough = [_registers(plan, each * width, 1, 0) <= MOST_REGISTERS for each in chunks]
    return next((cluster for cluster, fits in zip(clusters, enough, strict=True) if fits), clusters[-1])


def _side_by_side(vectors: int) -> int:
    """Threads for so many vectors: whole warps, or a part of one that divides it."""
    return math.ceil(vectors / WARP) * WARP if vectors > WARP else power_of_two(vectors)


def _is_held_twice(plan: Plan, width: int) -> bool:
    """Whether threads with two vectors of 16-bit floats have no registers for the next ones.

    Two rows at once, each with half the threads and more under way in shared memory, are then faster than one.
    """
    is_narrow = all(element_bytes(value) == 2 for value, _ in _wide_reads(plan))
    return is_narrow and _registers(plan, 2 * width, 1, 1) > MOST_REGISTERS


def _stages(problem: Problem, plan: Plan, parameters: Parameters, target: Target) -> int:
    """For how many iterations' rows there is shared memory, beside as many other blocks as registers allow."""
    width, across, down, chunks = (int(parameters[name]) for name in ("vector", "across", "down", "chunks"))
    lanes = _lanes(plan.space, width)
    wide = [read[0] for read in _wide_reads(plan) if is_fetchable(problem, *read, lanes)]
    if not wide:
        return 0
    registers = RESERVED + chunks * width * (len(plan.columns) + len(wide) + 2)
    blocks = max(1, REGISTERS // (across * down * registers))
    elements_at_once = across * down * chunks * width
    per_iteration = elements_at_once * sum(element_bytes(value) for value in wide)
    joined = elements_at_once * sum(element_bytes(value) for value, _ in plan.columns) if down > 1 else 0
    return min(MOST_STAGES, (target.shared_memory_per_block // blocks - OTHER_BYTES - joined) // per_iteration)


def _registers(plan: Plan, columns: int, unroll: int, ahead: int) -> int:
    """About how many 32-bit registers a thread needs that has so many columns."""
    wide = {read[0] for read in _wide_reads(plan)}
    loaded = ahead * sum(element_bytes(value) for value in wide) / 4
    return RESERVED + math.ceil(columns * (len(plan.columns) + 1 + unroll * (len(wide) + 2 + loaded)))


def _wide_reads(plan: Plan) -> list[Request]:
    """The reads that differ for each row and column."""
    return [read for read in plan.reads if {plan.space.row, plan.space.column} <= _atoms(read)]
