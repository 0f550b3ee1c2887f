"""fusion-schedule: gives each kernel a schedule, with parameters for a target, and says why.

Families are asked in order; the first that accepts the kernel's body, and does not leave it to a later one,
chooses its parameters from shapes, strides, element types and the target's limits. A kernel that has a schedule
already keeps it, so one can write `#fusion.schedule<...>` by hand and run the rest. With `vectorize=false` every
thread handles one element at a time, with `cluster=false` blocks share nothing, and with `persistent=false` each
has its work from the start.

Before: fusion.kernel ops on tensors. After: each has a `schedule`.

    "fusion.kernel"(%x) ({...}) {name = "exp_0"}
 ->
    "fusion.kernel"(%x) ({...}) {name = "exp_0", schedule = #fusion.schedule<"pointwise",
        {threads = 256, unroll = 1, vector = 4}, "4096 points in one dimension: ...">}
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import ClassVar

from ..dialects import fusion
from ..dialects.mlir import ir
from ..targets.target import Target
from .errors import PassFailure
from .graph import kernel_ops
from .kernel_body import KernelBody
from .layouts import layout_of
from .pass_base import Pass, unknown
from .schedules import FAMILIES, Family, Problem, family


@dataclass(frozen=True)
class FusionSchedule(Pass):
    """See the module's docstring."""

    name: ClassVar[str] = "fusion-schedule"
    target: str = "sm_90"
    vectorize: bool = True
    cluster: bool = True
    persistent: bool = True

    def __post_init__(self) -> None:
        Target.parse(self.target)

    def run(self, module: ir.Module) -> None:
        target = Target.parse(self.target)
        if not self.cluster:
            target = replace(target, has_clusters=False)
        for kernel in kernel_ops(module):
            if "schedule" not in kernel.attributes:
                allowed = replace(problem_of(kernel), vectorize=self.vectorize, persistent=self.persistent)
                _schedule(kernel, allowed, target)


def _schedule(kernel: ir.Operation, problem: Problem, target: Target) -> None:
    family = choose_family(problem, target)
    if family is None:
        raise PassFailure(kernel.location, "no schedule takes this kernel; fusion-segment would split it")
    choice = family.choose(problem, target)
    kernel.attributes["schedule"] = fusion.schedule(family.name, choice.parameters, choice.why)


def choose_family(problem: Problem, target: Target) -> Family | None:
    """The first family that accepts the body and does not leave it to a later one."""
    return next((known for known in FAMILIES if _takes(known, problem, target)), None)


def _takes(family: Family, problem: Problem, target: Target) -> bool:
    return family.refuses(problem.body) is None and family.declines(problem, target) is None


def problem_of(kernel: ir.Operation) -> Problem:
    """The body of a kernel on tensors or memrefs, with the layouts of what it reads and writes."""
    body = KernelBody.of_kernel(kernel)
    ins, outs = split_operands(kernel)
    inputs = {
        argument: layout_of(value) for argument, value in zip(kernel.regions[0].blocks[0].arguments, ins, strict=True)
    }
    outputs = [layout_of(value) for value in outs or kernel.results]
    return Problem(body, inputs, tuple(outputs))


def split_operands(kernel: ir.Operation) -> tuple[list[ir.Value], list[ir.Value]]:
    """(ins, outs) of a fusion.kernel."""
    count = ir.DenseI32ArrayAttr(kernel.attributes["operandSegmentSizes"])[0]
    operands = list(kernel.operands)
    return operands[:count], operands[count:]


def check_schedule(kernel: ir.Operation) -> None:
    """PassFailure where the kernel's schedule, which may be written by hand, can't run its body."""
    chosen, _ = schedule_of(kernel)
    reason = chosen.refuses(problem_of(kernel).body)
    if reason is not None:
        raise PassFailure(kernel.location, f"schedule {chosen.name!r} can't run this kernel: {reason}")


def schedule_of(kernel: ir.Operation) -> tuple[Family, dict[str, int | str]]:
    """The family and the parameters that a kernel's attribute names; PassFailure if it has none that we know."""
    attributes = kernel.attributes
    if "schedule" not in attributes:
        raise PassFailure(kernel.location, "the kernel has no schedule: run fusion-schedule first")
    schedule = fusion.read_schedule(attributes["schedule"])
    assert schedule is not None, "the verifier refuses any other attribute"
    name = schedule.family
    names: Sequence[str] = [known.name for known in FAMILIES]
    if name not in names:
        raise PassFailure(kernel.location, f"{unknown('schedule', name, names)}; allowed: {', '.join(names)}")
    chosen = family(name)
    if set(schedule.parameters) != set(chosen.parameters):
        needed, got = ", ".join(chosen.parameters), ", ".join(schedule.parameters) or "none"
        raise PassFailure(kernel.location, f"schedule {name!r} needs the parameters {needed}; got {got}")
    return chosen, schedule.parameters
