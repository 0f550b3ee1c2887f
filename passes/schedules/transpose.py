"""Transpose: pointwise kernels that read some inputs along another axis than the one they write along.

    out[j, i] = in[i, j] + other[j, i]

Followed along the output, `in` is read with a stride, a few bytes of each line that memory delivers. So a block
takes a tile of both axes. Its threads load the tile along the input's contiguous axis, a vector each, and leave
it in shared memory; after a barrier they take it up along the output's, and go on as any pointwise kernel does.
What is read in the output's order anyway is loaded before the barrier, so that all loads are in flight at once.

    threads load in[i, j .. j+v]     ->  tile[i, j .. j+v]                 16 bytes an access
    barrier
    threads take tile[i .. i+v, j]   ->  out[j, i .. i+v]                  16 bytes an access

The tile is *swizzled*: vector number j/v of row i lies at (j/v) xor (i/v). Then neither the rows that are written
nor the columns that are read meet in a bank of the shared memory.

Any two axes can be the inner ones, further ones are a batch; axes that all accesses walk in step count as one.

    parameters   vector: elements an access;  across, down: the tile, along the output's and the input's axis;
                 threads: a block
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Sequence
from dataclasses import dataclass

from ...dialects.fusion import storage_type
from ...dialects.mlir import arith, ir, memref, vector
from ...targets.target import Target
from ..evaluate import Buffer, Evaluator, from_storage, to_storage
from ..indexing import Counter, Form, Index, Quotient, Remainder, linearize, of
from ..kernel_body import KernelBody, Request
from ..lanes import Lanes
from .family import Choice, Launch, Parameters, Problem, accesses, element_bytes, power_of_two, widest_vector
from .family import counters as counters_of
from .machine import Machine, both, guarded, number
from .pointwise import Pointwise, in_step, point_counters, point_requests, uses_position

THREADS = 256
SECTOR = 32  # bytes that memory delivers at least
LINE = 128  # bytes that a tile's rows have, if the axes do
LEAST_TILE, MOST_TILE = 32, 64  # elements along an axis

Steps = tuple[ir.Value, int]  # a place in a tile along an axis, and how many elements are taken there at once


@dataclass(frozen=True)
class Plan:
    """What is transposed: the counters of the space, which two are the tile's, what goes through shared memory."""

    counters: tuple[Counter, ...]
    down: int  # the counter along which the staged inputs are contiguous; the outputs are along the last one
    staged: tuple[Request, ...]

    @property
    def inner(self) -> Counter:
        return self.counters[-1]

    @property
    def outer(self) -> Counter:
        return self.counters[self.down]

    @property
    def batch(self) -> list[Counter]:
        return [counter for counter in self.counters if counter not in (self.inner, self.outer)]


@dataclass(frozen=True)
class Tile:
    """A tile's elements: `across` along the outputs' axis, `down` along the staged inputs'."""

    across: int
    down: int
    vector: int

    @property
    def size(self) -> int:
        return self.across * self.down

    @property
    def vectors(self) -> int:
        return self.size // self.vector

    def grid(self, plan: Plan) -> list[int]:
        """How many tiles there are along each axis of the batch, along `down` and along `across`."""
        tiles = math.ceil(plan.outer.extent / self.down), math.ceil(plan.inner.extent / self.across)
        return [*(counter.extent for counter in plan.batch), *tiles]


class Transpose:
    """The family; see the module's docstring."""

    name = "transpose"
    parameters = ("across", "down", "threads", "vector")

    def refuses(self, body: KernelBody) -> str | None:
        return Pointwise().refuses(body)

    def declines(self, problem: Problem, target: Target) -> str | None:
        plan = _plan(problem)
        if plan is None:
            return "nothing is read along another axis than the outputs'"
        bytes_ = max(element_bytes(value) for value, _ in plan.staged)
        if min(plan.inner.extent, plan.outer.extent) * bytes_ < SECTOR:
            return "what is read along another axis is so short that caches hold it"
        return None

    def choose(self, problem: Problem, target: Target) -> Choice:
        plan = _plan(problem)
        assert plan is not None
        inner, outer = plan.inner.extent, plan.outer.extent
        width = math.gcd(widest_vector(problem), inner, outer)
        edge = _edge(max(element_bytes(value) for value, _ in plan.staged)) if width > 1 else LEAST_TILE
        across, down = (max(width, min(edge, power_of_two(extent))) for extent in (inner, outer))
        threads = min(THREADS, across * down // width)
        which = f"{len(plan.staged)} of {len(problem.inputs)} inputs run along another axis"
        why = f"{which}, of {outer}: tiles of {down}x{across}"
        return Choice({"vector": width, "across": across, "down": down, "threads": threads}, why)

    def launch(self, problem: Problem, parameters: Parameters) -> Launch:
        plan = _plan(problem)
        assert plan is not None, "the schedule is for kernels that transpose"
        return Launch(math.prod(_tile(parameters).grid(plan)), int(parameters["threads"]))

    def emit(
        self,
        problem: Problem,
        parameters: Parameters,
        machine: Machine,
        evaluator: Evaluator,
        outputs: Sequence[Buffer],
    ) -> None:
        plan, tile = _plan(problem), _tile(parameters)
        assert plan is not None
        grid = tile.grid(plan)
        shared = [machine.shared_memory(tile.size, _storage(value)) for value, _ in plan.staged]
        for block in machine.blocks(math.prod(grid)):
            with evaluator.scope():
                _Block(problem, plan, tile, machine, evaluator, shared).emit(block, grid, outputs)


class _Block:
    """The code of one tile."""

    def __init__(
        self,
        problem: Problem,
        plan: Plan,
        tile: Tile,
        machine: Machine,
        evaluator: Evaluator,
        shared: Sequence[ir.Value],
    ) -> None:
        self.body, self.plan, self.tile = problem.body, plan, tile
        self.machine, self.evaluator, self.shared = machine, evaluator, shared
        self.reads = _template(problem.body, plan)

    def emit(self, block: ir.Value, grid: Sequence[int], outputs: Sequence[Buffer]) -> None:
        digits = counters_of(grid)
        self.evaluator.binding.bind_digits(digits, block)
        *self.batch, down, across = (self.evaluator.binding.emit(of(digit)) for digit in digits)
        self.first_down = arith.MulIOp(down, number(self.tile.down)).result
        self.first_across = arith.MulIOp(across, number(self.tile.across)).result
        for units in self.machine.spread(self.tile.vectors):
            self._load(units)
        self.machine.barrier()
        for units in self.machine.spread(self.tile.vectors):
            self._store(self._points(units), outputs)

    def _load(self, units: Sequence[ir.Value]) -> None:
        """Vectors of the staged inputs, along their own axis, into shared memory."""
        places = [self._split(unit, self.tile.down) for unit in units]
        loaded = [self._loaded(across, down) for across, down in places]
        if self.machine.holds_all_units:
            self._prefetch(units)
        for (across, down), values in zip(places, loaded, strict=True):
            row = arith.DivUIOp(across, number(self.tile.vector)).result
            start = arith.MulIOp(across, number(self.tile.down)).result
            where = arith.AddIOp(start, self._swizzled(down, row)).result
            for value, memory in zip(values, self.shared, strict=True):
                _store_vector(value, memory, where)

    def _loaded(self, across: ir.Value, down: ir.Value) -> list[ir.Value]:
        """The staged inputs at a row of the tile and a vector of its columns."""
        width = self.tile.vector
        counters, _ = self._bound((across, 1), (arith.MulIOp(down, number(width)).result, width))
        lanes = self._lanes(counters[self.plan.down])
        with self.evaluator.scope():
            found = [self.evaluator.at(value, index, lanes) for value, index in self._staged(counters)]
        return [to_storage(value) for value in found]

    def _points(self, units: Sequence[ir.Value]) -> list[_Point]:
        return [self._point(unit) for unit in units]

    def _point(self, unit: ir.Value) -> _Point:
        """The output's place of a unit: a vector along `across`."""
        down, across = self._split(unit, self.tile.across)
        width = self.tile.vector
        counters, valid = self._bound((arith.MulIOp(across, number(width)).result, width), (down, 1))
        return _Point(down, across, tuple(counters), self._lanes(counters[-1]), valid)

    def _prefetch(self, units: Sequence[ir.Value]) -> None:
        """Loads what is read in the outputs' order, for the same units of the loop that follows the barrier."""
        self.points = self._points(units)
        for point in self.points:
            renamed = _renaming(self.plan.counters, point.counters)
            for value, index in self.reads:
                self.evaluator.at(value, _substituted(index, renamed), point.lanes)

    def _store(self, points: list[_Point], outputs: Sequence[Buffer]) -> None:
        points = self.points if self.machine.holds_all_units else points
        for point in points:
            for (value, index), memory in zip(self._staged(point.counters), self.shared, strict=True):
                self.evaluator.remember(value, index, self._taken(point, value, memory), point.lanes)
        for point in points:
            for value, index in point_requests(self.body, point.counters):
                self.evaluator.at(value, index, point.lanes)
        for point in points:
            with guarded(point.valid):
                for (value, index), buffer in zip(point_requests(self.body, point.counters), outputs, strict=True):
                    self.evaluator.store(value, index, point.lanes, buffer)

    def _taken(self, point: _Point, value: ir.Value, memory: ir.Value) -> ir.Value:
        """A vector along `across`, out of as many rows of the tile."""
        width = self.tile.vector
        row = arith.MulIOp(point.across, number(width * self.tile.down)).result
        chunk = arith.DivUIOp(point.down, number(width)).result
        in_chunk = arith.RemUIOp(point.down, number(width)).result
        first = arith.AddIOp(arith.AddIOp(row, self._swizzled(chunk, point.across)).result, in_chunk).result
        steps = [arith.AddIOp(first, number(lane * self.tile.down)).result for lane in range(width)]
        elements = [memref.LoadOp(memory, [step]).result for step in steps]
        if width == 1:
            return from_storage(elements[0], _element(value))
        stored = vector.FromElementsOp(ir.VectorType.get([width], elements[0].type), elements).result
        return from_storage(stored, _element(value))

    def _swizzled(self, chunk: ir.Value, row: ir.Value) -> ir.Value:
        """Where, in elements, a vector of a row's lies; `row` is in vectors too."""
        chunks = self.tile.down // self.tile.vector
        mixed = arith.XOrIOp(chunk, arith.RemUIOp(row, number(chunks)).result).result
        return arith.MulIOp(mixed, number(self.tile.vector)).result

    def _split(self, unit: ir.Value, extent: int) -> tuple[ir.Value, ir.Value]:
        """(line, vector in the line) of a unit, for lines of `extent` elements."""
        vectors = number(extent // self.tile.vector)
        return arith.DivUIOp(unit, vectors).result, arith.RemUIOp(unit, vectors).result

    def _bound(self, across: Steps, down: Steps) -> tuple[list[Counter], ir.Value | None]:
        """New counters that stand at a place of the tile, and whether it exists; else they stand at the last."""
        plan, binding = self.plan, self.evaluator.binding
        counters = [Counter(counter.extent, counter.label) for counter in plan.counters]
        batch = iter(self.batch)
        valid: ir.Value | None = None
        for counter, old in zip(counters, plan.counters, strict=True):
            if old is plan.inner:
                value, inside = _clamped(across, self.first_across, counter.extent, self.tile.across)
            elif old is plan.outer:
                value, inside = _clamped(down, self.first_down, counter.extent, self.tile.down)
            else:
                value, inside = next(batch), None
            binding.bind(counter, value)
            valid = both(valid, inside)
        return counters, valid

    def _lanes(self, counter: Counter) -> Lanes | None:
        return Lanes(self.tile.vector, (counter,)) if self.tile.vector > 1 else None

    def _staged(self, counters: Sequence[Counter]) -> list[Request]:
        renamed = _renaming(self.plan.counters, counters)
        return [(value, _substituted(index, renamed)) for value, index in self.plan.staged]


@dataclass(frozen=True)
class _Point:
    """A vector of the outputs: its place in the tile, its counters, and whether it exists (None: it does)."""

    down: ir.Value
    across: ir.Value
    counters: tuple[Counter, ...]
    lanes: Lanes | None
    valid: ir.Value | None


def _plan(problem: Problem) -> Plan | None:
    """The two axes that move the most bytes; None where no input runs along another axis."""
    counters = _coarse_counters(problem)
    inner = counters[-1]
    staged: dict[int, list[Request]] = {}
    for value, index in problem.body.trace(point_requests(problem.body, counters)).reads:
        where = linearize(index, problem.inputs[value].strides, problem.inputs[value].offset)
        along = next((k for k, counter in enumerate(counters[:-1]) if where.coefficient(counter) == 1), None)
        if along is not None and _is_strided(where, inner, counters[along]) and _is_inside(value, index):
            staged.setdefault(along, []).append((value, index))
    if not staged:
        return None
    down = max(staged, key=lambda along: sum(element_bytes(value) for value, _ in staged[along]))
    return Plan(tuple(counters), down, tuple(staged[down]))


def _template(body: KernelBody, plan: Plan) -> list[Request]:
    """What is read in the outputs' order."""
    reads = body.trace(point_requests(body, plan.counters)).reads
    return [request for request in reads if request not in plan.staged and _is_inside(*request)]


def _coarse_counters(problem: Problem) -> list[Counter]:
    """Counters of the outputs' space, neighbouring dimensions that all accesses walk in step being one."""
    counters = point_counters(problem.body)
    requests = point_requests(problem.body, counters)
    trace = problem.body.trace(requests)
    if any(uses_position(value, problem.body) for value, _ in trace.requests):
        return counters
    forms = accesses(problem, trace, requests)
    sizes = [counters[0].extent]
    for outer, inner in itertools.pairwise(counters):
        if in_step(forms, outer, inner):
            sizes[-1] *= inner.extent
        else:
            sizes.append(inner.extent)
    return counters_of(sizes)


def _is_strided(where: Form, inner: Counter, outer: Counter) -> bool:
    """Whether neighbours along `inner` lie apart, at a distance that does not depend on the place."""
    nonlinear = (atom for atom, _ in where.terms if isinstance(atom, Quotient | Remainder))
    if any({inner, outer} & set(atom.form.atoms()) for atom in nonlinear):
        return False
    return where.coefficient(inner) not in (0, 1)


def _is_inside(value: ir.Value, index: Index) -> bool:
    """Whether the element exists at every point, though it may not be needed at all of them."""
    extents = ir.ShapedType(value.type).shape
    bounds = [form.bounds for form in index]
    return all(low >= 0 and high < extent for (low, high), extent in zip(bounds, extents, strict=True))


def _clamped(offset: Steps, first: ir.Value, extent: int, tile: int) -> tuple[ir.Value, ir.Value | None]:
    """A place along an axis, and whether it exists: the extent is a multiple of the elements taken at once."""
    value = arith.AddIOp(first, offset[0]).result
    if extent % tile == 0:
        return value, None
    inside = arith.CmpIOp(arith.CmpIPredicate.ult, value, number(extent)).result
    return arith.MinUIOp(value, number(extent - offset[1])).result, inside


def _tile(parameters: Parameters) -> Tile:
    return Tile(int(parameters["across"]), int(parameters["down"]), int(parameters["vector"]))


def _edge(bytes_: int) -> int:
    """Elements along a tile's edge: a line of memory at least."""
    return min(MOST_TILE, max(LEAST_TILE, 2 * LINE // bytes_))


def _renaming(old: Sequence[Counter], new: Sequence[Counter]) -> dict[Counter, Form]:
    return {before: of(after) for before, after in zip(old, new, strict=True)}


def _substituted(index: Index, renamed: dict[Counter, Form]) -> Index:
    return tuple(
        form.substitute(lambda atom: renamed.get(atom) if isinstance(atom, Counter) else None) for form in index
    )


def _store_vector(value: ir.Value, memory: ir.Value, where: ir.Value) -> None:
    if not isinstance(value.type, ir.VectorType):
        memref.StoreOp(value, memory, [where])
        return
    alignment = min(16, ir.VectorType(value.type).shape[0] * ir.VectorType(value.type).element_type.width // 8)
    vector.StoreOp(value, memory, [where], alignment=alignment)


def _element(value: ir.Value) -> ir.Type:
    return ir.RankedTensorType(value.type).element_type


def _storage(value: ir.Value) -> ir.Type:
    return storage_type(_element(value))
