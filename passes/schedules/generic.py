"""Generic: a thread an output element, whatever the kernel's body holds; the last family, it refuses little.

Reductions are loops inside the thread, in order; several outputs are computed side by side. What it does
refuse is waste: a reduction that would be repeated inside another one's loop, or for many elements that share
it, costs more than a kernel of its own. A single operation is always accepted.

    parameters   threads: a block
"""

from __future__ import annotations

import math
from collections.abc import Sequence

from ...targets.target import Target
from ..evaluate import Buffer, Evaluator
from ..indexing import Counter
from ..kernel_body import KernelBody, Request
from .family import Choice, Launch, Parameters, Problem, elements, index_at, position, shape
from .family import counters as counters_of
from .machine import Machine

THREADS = 128
MOST_REPETITION = 4  # times the work of the operations each computed once


class Generic:
    """The family; see the module's docstring."""

    name = "generic"
    parameters = ("threads",)

    def refuses(self, body: KernelBody) -> str | None:
        repeated, once = _work(body)
        operations = {value.owner.operation for value in _computed(body)}
        if len(operations) > 1 and repeated > MOST_REPETITION * once:
            return f"it would repeat work {repeated / max(once, 1):.0f} times"
        return None

    def declines(self, problem: Problem, target: Target) -> None:
        """Nothing later does better."""

    def choose(self, problem: Problem, target: Target) -> Choice:
        return Choice({"threads": THREADS}, "a thread an output element; no other schedule takes it")

    def launch(self, problem: Problem, parameters: Parameters) -> Launch:
        threads = int(parameters["threads"])
        most = max(elements(output) for output in problem.body.outputs)
        return Launch(math.ceil(most / threads), threads)

    def emit(
        self,
        problem: Problem,
        parameters: Parameters,
        machine: Machine,
        evaluator: Evaluator,
        outputs: Sequence[Buffer],
    ) -> None:
        for output, buffer in zip(problem.body.outputs, outputs, strict=True):
            if elements(output) == 0:
                continue
            for (unit,) in machine.units(elements(output), 1):
                with evaluator.scope():
                    counters = counters_of(shape(output))
                    evaluator.binding.bind_digits(counters, unit)
                    evaluator.store(output, index_at(position(counters), output), None, buffer)


def _work(body: KernelBody) -> tuple[int, int]:
    """(element computations as this schedule would do them, the same with each element computed once)."""
    repeated = once = 0
    seen: set[object] = set()
    for output in body.outputs:
        counters = counters_of(shape(output))
        trace = body.trace([(output, index_at(position(counters), output))])
        for request in trace.requests:
            value, _ = request
            if body.is_input(value) or value.owner.name != "linalg.generic":
                continue
            repeated += _points(request, counters, body)
            if value.owner.operation not in seen:
                seen.add(value.owner.operation)
                once += math.prod(body.generic(value.owner.operation).extents)
    return repeated, once


def _points(request: Request, counters: Sequence[Counter], body: KernelBody) -> int:
    """How often a request is computed: for every output element, and every turn of the loops around it."""
    value, index = request
    loops = {atom for form in index for atom in form.atoms() if isinstance(atom, Counter)}
    own = set(body.generic(value.owner.operation).counters.values())
    return math.prod(counter.extent for counter in {*loops, *own, *counters})


def _computed(body: KernelBody) -> list:
    requests = [(output, index_at(position(counters_of(shape(output))), output)) for output in body.outputs]
    found = body.trace(requests).requests
    return [value for value, _ in found if not body.is_input(value) and value.owner.name == "linalg.generic"]
