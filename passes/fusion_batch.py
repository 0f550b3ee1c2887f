"""fusion-batch: small kernels that stand side by side and need nothing of each other share one launch.

An optimizer's step over a hundred parameters is a hundred kernels, each too small to fill the card for longer than a
launch takes. Neighbours among them get the same `batch` number; fusion-to-gpu gives each batch one function, whose
blocks are shared out among the kernels. Everything else about a kernel stays its own: body, schedule, memory.

A kernel joins the batch in front of it if
  - its schedule is pointwise, with as many threads a block, and it moves at most SMALL bytes;
  - it reads nothing that the batch makes;
  - no memory dies within the batch before its last kernel, nor does the last one's die that another reads: all of them
    run at once, so the plan, which gives memory that died to later kernels, must find none.
So no buffer lives longer than without batches, and the order of the source stays.

Before: fusion.kernel ops with schedules. After: some of them, neighbours, have a `batch`.

    %a = "fusion.kernel"(%p) ({...}) {name = "sqrt_0", schedule = #fusion.schedule<"pointwise", ...>}
    %b = "fusion.kernel"(%q) ({...}) {name = "sqrt_1", schedule = #fusion.schedule<"pointwise", ...>}
 ->
    %a = "fusion.kernel"(%p) ({...}) {batch = 0 : i64, name = "sqrt_0", ...}
    %b = "fusion.kernel"(%q) ({...}) {batch = 0 : i64, name = "sqrt_1", ...}
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import ClassVar

from ..dialects import fusion
from ..dialects.mlir import ir
from .emit_kernel import kernel_text
from .fusion_report import moved_bytes
from .fusion_schedule import problem_of, schedule_of
from .graph import functions
from .lifetimes import Storage, Storages
from .pass_base import Pass

SMALL = 2**26  # bytes; more take several times as long to move as a kernel takes to start
MOST_POINTERS = 500  # of 8 bytes: parameters of a kernel take at most 4 kB before CUDA 12.1
MOST_BODIES = 16  # different ones in a function, which is compiled as a whole
FREE = ("arith.constant", "fusion.view")


@dataclass(frozen=True)
class FusionBatch(Pass):
    """See the module's docstring."""

    name: ClassVar[str] = "fusion-batch"

    max_kernels: int = 1024
    """Kernels of a batch at most; 1 leaves every kernel a launch of its own."""

    def __post_init__(self) -> None:
        if self.max_kernels < 1:
            raise ValueError(f"max-kernels must be at least 1, got {self.max_kernels}")

    def run(self, module: ir.Module) -> None:
        number = 0
        for function in functions(module):
            storages = Storages(function.regions[0].blocks[0], in_place=False)
            for batch in _batches(storages, self.max_kernels):
                for kernel in batch.kernels:
                    kernel.attributes["batch"] = ir.IntegerAttr.get(ir.IntegerType.get_signless(64), number)
                number += 1


@dataclass
class _Batch:
    """Neighbouring kernels that may run at once."""

    room: int
    kernels: list[ir.Operation] = field(default_factory=list)
    threads: int = 0
    pointers: int = 0
    bodies: set[str] = field(default_factory=set)
    reads: set[int] = field(default_factory=set)
    makes: set[int] = field(default_factory=set)
    is_closed: bool = False

    def accepts(self, kernel: _Kernel) -> bool:
        """Whether the kernel may run with those that are here."""
        return (
            not self.is_closed
            and len(self.kernels) < self.room
            and kernel.threads == self.threads
            and self.pointers + kernel.pointers <= MOST_POINTERS
            and len(self.bodies | {kernel.body}) <= MOST_BODIES
            and not kernel.reads & self.makes
            and not kernel.dying & self.reads
        )

    def add(self, kernel: _Kernel) -> None:
        """Takes the kernel in."""
        self.kernels.append(kernel.op)
        self.threads = kernel.threads
        self.pointers += kernel.pointers
        self.bodies.add(kernel.body)
        self.reads |= kernel.reads
        self.makes |= kernel.makes
        self.is_closed = bool(kernel.dying)


@dataclass(frozen=True)
class _Kernel:
    """What decides whether a kernel may join; memory is told by the numbers of its storages."""

    op: ir.Operation
    threads: int
    pointers: int
    body: str
    reads: set[int]
    makes: set[int]
    dying: set[int]


def _batches(storages: Storages, max_kernels: int) -> Iterator[_Batch]:
    """The batches of a function, those of one kernel left out."""
    batch = _Batch(max_kernels, is_closed=True)
    for step, op in enumerate(storages.operations):
        if op.name in FREE:
            continue
        kernel = _kernel(step, op, storages) if fusion.is_op(op, "kernel") and _is_small(op) else None
        if kernel is not None and batch.accepts(kernel):
            batch.add(kernel)
            continue
        if len(batch.kernels) > 1:
            yield batch
        batch = _Batch(max_kernels, is_closed=True)
        if kernel is not None:
            batch.add(kernel)
    if len(batch.kernels) > 1:
        yield batch


def _is_small(kernel: ir.Operation) -> bool:
    family, _ = schedule_of(kernel)
    return family.name == "pointwise" and 0 < moved_bytes(kernel) <= SMALL


def _kernel(step: int, op: ir.Operation, storages: Storages) -> _Kernel:
    family, parameters = schedule_of(op)
    reads = [storages.of[operand] for operand in op.operands if operand in storages.of]
    makes = [storages.of[result] for result in op.results]
    dying = {id(storage) for storage in (*reads, *makes) if _dies(storage, step)}
    return _Kernel(
        op,
        family.launch(problem_of(op), parameters).threads,
        len(op.operands) + len(op.results),
        kernel_text(op),
        {id(storage) for storage in reads},
        {id(storage) for storage in makes},
        dying,
    )


def _dies(storage: Storage, step: int) -> bool:
    """Whether the memory may be given to another after this step."""
    return storage.kind in ("kernel", "extern") and not storage.escapes and storage.end == step
