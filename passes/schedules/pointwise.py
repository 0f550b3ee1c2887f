"""Pointwise: every output element from input elements, no reduction; a vector of neighbours a thread.

Dimensions that every access walks through in step count as one, so a contiguous kernel of any rank is a loop
over one dimension. The vector is as wide as the widest access of the smallest element type allows and divides
the merged innermost dimension; where everything is one dimension, a scalar tail does what remains.

    parameters   vector: elements a thread handles at once;  unroll: vectors a thread;  threads: a block
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

from ...dialects.mlir import arith, ir
from ...targets.target import Target
from ..evaluate import Buffer, Evaluator
from ..indexing import Counter, Form, Quotient, Remainder
from ..kernel_body import KernelBody, Request
from ..lanes import Lanes
from ..sizes import Extent, UndecidedError, divides
from .family import Choice, Launch, Parameters, Problem, accesses, element_bytes, elements, index_at, position, shape
from .family import counters as counters_of
from .family import widest_vector as widest
from .machine import Machine, number

THREADS = 256  # of a block, or half as many with several vectors each
BYTES_IN_FLIGHT = 32  # that a thread has asked for at once, if one vector of each input is not more
MOST_REQUESTS = 4  # elements computed for each operation and point, before sharing would be cheaper


@dataclass(frozen=True)
class Space:
    """The points of a pointwise kernel: sizes without the ones, of which the last `merged` count as one."""

    sizes: tuple[Extent, ...]
    merged: int

    @property
    def count(self) -> Extent:
        return math.prod(self.sizes)

    @property
    def inner(self) -> Extent:
        """The size of the merged innermost dimension."""
        return math.prod(self.sizes[len(self.sizes) - self.merged :])

    @property
    def is_flat(self) -> bool:
        return self.merged == len(self.sizes)


class Pointwise:
    """The family; see the module's docstring."""

    name = "pointwise"
    parameters = ("threads", "unroll", "vector")

    def refuses(self, body: KernelBody) -> str | None:
        counts = {elements(output) for output in body.outputs}
        if len(counts) != 1:
            return "its outputs have different numbers of elements"
        trace = body.trace(point_requests(body, point_counters(body)))
        if trace.reductions:
            return "it has a reduction"
        operations = {value.owner for value, _ in trace.requests if not body.is_input(value)}
        if len(trace.requests) - len(trace.reads) > MOST_REQUESTS * max(len(operations), 8):
            return "it would compute the same elements many times"
        return None

    def declines(self, problem: Problem, target: Target) -> None:
        """Nothing later does better."""

    def choose(self, problem: Problem, target: Target) -> Choice:
        space = _space(problem)
        vector = widest(problem) if space.is_flat else math.gcd(widest(problem), space.inner)
        vector = min(vector, 1 << max(space.count, 1).bit_length() - 1)
        unroll = _unroll(problem, space.count // vector, vector, target)
        dimension = "one dimension" if space.is_flat else f"an inner dimension of {space.inner}"
        why = f"{space.count} points in {dimension}: {vector} elements an access, {unroll} in flight a thread"
        threads = THREADS if unroll == 1 else THREADS // 2
        return Choice({"vector": vector, "unroll": unroll, "threads": threads}, why)

    def launch(self, problem: Problem, parameters: Parameters) -> Launch:
        count, vector = elements(problem.body.outputs[0]), int(parameters["vector"])
        threads, unroll = int(parameters["threads"]), int(parameters["unroll"])
        units = max(count // vector, count % vector)
        return Launch(math.ceil(units / (threads * unroll)), threads)

    def emit(
        self,
        problem: Problem,
        parameters: Parameters,
        machine: Machine,
        evaluator: Evaluator,
        outputs: Sequence[Buffer],
    ) -> None:
        space, vector = _space(problem), int(parameters["vector"])
        if not space.is_flat and not divides(vector, space.inner):
            raise UndecidedError(f"whether {space.inner} is a multiple of {vector}")
        vectors, rest = divmod(space.count, vector)
        if vectors:
            for units in machine.units(vectors, int(parameters["unroll"])):
                starts = [arith.MulIOp(unit, number(vector)).result for unit in units]
                _emit_points(problem, space, vector, starts, evaluator, outputs)
        if rest:
            for units in machine.units(rest, 1):
                starts = [arith.AddIOp(unit, number(space.count - rest)).result for unit in units]
                _emit_points(problem, space, 1, starts, evaluator, outputs)


def _emit_points(
    problem: Problem,
    space: Space,
    vector: int,
    starts: Sequence[ir.Value],
    evaluator: Evaluator,
    outputs: Sequence[Buffer],
) -> None:
    """Loads come first and stores last, so that the loads of all points are in flight at once."""
    with evaluator.scope():
        stores = []
        for start in starts:
            counters = counters_of(space.sizes)
            evaluator.binding.bind_digits(counters, start)
            run = tuple(counters[len(counters) - space.merged :])
            lanes = Lanes(vector, run) if vector > 1 else None
            stores += [(value, index, lanes) for value, index in point_requests(problem.body, counters)]
        for value, index, lanes in stores:
            evaluator.load_ahead(value, index, lanes)
        for value, index, lanes in stores:
            evaluator.at(value, index, lanes)
        for (value, index, lanes), buffer in zip(stores, [*outputs] * len(starts), strict=True):
            evaluator.store(value, index, lanes, buffer)


def point_counters(body: KernelBody) -> list[Counter]:
    """A counter for each dimension of the outputs that is not 1."""
    return counters_of([extent for extent in shape(body.outputs[0]) if extent != 1] or [1])


def point_requests(body: KernelBody, counters: Sequence[Counter]) -> list[Request]:
    """The outputs' elements at a point."""
    where = position(counters)
    return [(output, index_at(where, output)) for output in body.outputs]


def _space(problem: Problem) -> Space:
    body = problem.body
    counters = point_counters(body)
    requests = point_requests(body, counters)
    trace = body.trace(requests)
    forms = accesses(problem, trace, requests)
    sizes = tuple(counter.extent for counter in counters)
    if any(uses_position(value, body) for value, _ in trace.requests):
        return Space(sizes, 1)
    merged = 1
    while merged < len(counters) and in_step(forms, counters[-merged - 1], counters[-merged]):
        merged += 1
    return Space(sizes, merged)


def uses_position(value: ir.Value, body: KernelBody) -> bool:
    """Whether an element depends on where it is, beyond the addresses of what it reads."""
    if body.is_input(value) or not isinstance(value.type, ir.RankedTensorType):
        return False
    op = value.owner.operation
    if op.name in ("tensor.concat", "tensor.pad", "tensor.insert_slice"):
        return True
    if op.name != "linalg.generic":
        return False
    return any(inner.operation.name == "linalg.index" for inner in body.generic(op).body.operations)


def in_step(forms: Sequence[Form], outer: Counter, inner: Counter) -> bool:
    """Whether every address walks `inner` and then `outer` as if they were one dimension."""
    return all(
        form.coefficient(outer) == form.coefficient(inner) * inner.extent
        and not any(
            isinstance(atom, Quotient | Remainder) and {outer, inner} & set(atom.form.atoms()) for atom, _ in form.terms
        )
        for form in forms
    )


def _unroll(problem: Problem, vectors: int, vector: int, target: Target) -> int:
    """Several vectors a thread where few bytes are read for each, the card stays full and no vector is left over."""
    count = elements(problem.body.outputs[0])
    read = sum(vector * element_bytes(value) for value in problem.inputs if elements(value) >= count)
    for unroll in (4, 2):
        is_full = vectors // (THREADS * unroll) >= 8 * target.multiprocessors
        if unroll * read <= BYTES_IN_FLIGHT and vectors % (THREADS * unroll) == 0 and is_full:
            return unroll
    return 1
