"""What a schedule family is, and the parts that families share.

A family is a module-level object with a name and five answers: whether it accepts a kernel's body (and if
not, why), whether it leaves this one to a later family, which parameters suit a target (and why), how many
blocks of how many threads that makes, and the code. `fusion-segment` asks the first, `fusion-schedule` the
first three, `fusion-to-gpu` and `fusion-to-cpu` the others.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Protocol

from ...dialects.fusion import storage_type
from ...dialects.mlir import ir
from ...targets.target import Target
from ..evaluate import MAX_ALIGNMENT, Buffer, Evaluator, byte_width
from ..indexing import Counter, Form, Index, delinearize, linearize, of
from ..kernel_body import KernelBody, Trace
from ..lanes import Lanes
from ..layouts import Layout
from ..sizes import Extent, meanings
from .machine import Machine

FETCHED_BYTES = (4, 8, 16)  # that an asynchronous copy may have

Parameters = dict[str, int | str]


@dataclass(frozen=True)
class Choice:
    """Parameters of a schedule, and the reason in words."""

    parameters: Parameters
    why: str


@dataclass(frozen=True)
class Launch:
    """Blocks of a grid, threads of a block, and how many blocks make a cluster."""

    blocks: int
    threads: int
    cluster: int = 1


@dataclass(frozen=True)
class Problem:
    """A kernel's body with the layout of its inputs (by argument) and outputs (in order).

    `vectorize`: whether parameters may be chosen by which a thread handles neighbours at once; `persistent`: by which
    blocks stay for several rows.
    """

    body: KernelBody
    inputs: dict[ir.Value, Layout]
    outputs: tuple[Layout, ...]
    vectorize: bool = True
    persistent: bool = True


class Family(Protocol):
    """One way to run a kernel."""

    @property
    def name(self) -> str:
        """What a #fusion.schedule calls it."""
        ...

    @property
    def parameters(self) -> tuple[str, ...]:
        """The parameters that a #fusion.schedule of this family has."""
        ...

    def refuses(self, body: KernelBody) -> str | None:
        """Why the family can't run the body; None where it can."""
        ...

    def declines(self, problem: Problem, target: Target) -> str | None:
        """Why a later family should run a body that this one could, given the layouts and the target."""
        ...

    def choose(self, problem: Problem, target: Target) -> Choice:
        """Parameters for a body that the family accepts."""
        ...

    def launch(self, problem: Problem, parameters: Parameters) -> Launch:
        """The launch that the parameters mean."""
        ...

    def emit(
        self,
        problem: Problem,
        parameters: Parameters,
        machine: Machine,
        evaluator: Evaluator,
        outputs: Sequence[Buffer],
    ) -> None:
        """Emits the kernel's code at the insertion point."""
        ...


def counters(shape: Sequence[Extent]) -> list[Counter]:
    """A counter for each dimension."""
    return [Counter(extent, f"d{number}") for number, extent in enumerate(shape)]


def position(of_counters: Sequence[Counter]) -> Form:
    """The row-major position that counters make."""
    strides: list[Extent] = []
    step: Extent = 1
    for counter in reversed(of_counters):
        strides.append(step)
        step *= max(counter.extent, 1)
    return linearize([of(counter) for counter in of_counters], strides[::-1])


def shape(value: ir.Value) -> list[Extent]:
    """A tensor's sizes."""
    return meanings(ir.ShapedType(value.type).shape)


def elements(value: ir.Value) -> Extent:
    """How many elements a tensor has."""
    return math.prod(shape(value))


def index_at(where: Form, value: ir.Value) -> Index:
    """The index of `value`'s element at a row-major position."""
    return delinearize(where, shape(value))


def element_bytes(value: ir.Value) -> int:
    """Bytes of an element in memory."""
    return byte_width(storage_type(ir.RankedTensorType(value.type).element_type))


def power_of_two(value: int) -> int:
    """The least power of two that is not smaller."""
    return 1 << (value - 1).bit_length()


def widest_vector(problem: Problem) -> int:
    """Elements that make one widest access of the smallest element type read or written, and two of the largest.

    Only tensors as large as the largest of them count.
    """
    if not problem.vectorize:
        return 1
    values = [*problem.inputs, *problem.body.outputs]
    most = max(map(elements, values), default=0)
    sizes = [element_bytes(value) for value in values if elements(value) == most] or [4]
    return max(1, min(MAX_ALIGNMENT // min(sizes), 2 * MAX_ALIGNMENT // max(sizes)))


def is_fetchable(problem: Problem, value: ir.Value, index: Index, lanes: Lanes) -> bool:
    """Whether lanes of an input lie in memory as an asynchronous copy needs them."""
    layout = problem.inputs[value]
    position = linearize(index, layout.strides, layout.offset)
    is_together = lanes.step(position) == 1 and lanes.divisor(position) % lanes.count == 0
    return is_together and lanes.count * element_bytes(value) in FETCHED_BYTES


def accesses(problem: Problem, trace: Trace, requests: Sequence[tuple[ir.Value, Index]]) -> list[Form]:
    """The element offsets of everything read from inputs and written to outputs."""
    reads = [
        linearize(index, problem.inputs[value].strides, problem.inputs[value].offset) for value, index in trace.reads
    ]
    writes = [
        linearize(index, layout.strides, layout.offset)
        for (_, index), layout in zip(requests, problem.outputs, strict=True)
    ]
    return reads + writes
