"""Takes a module from the stage that it is at to another one, and asserts what each stage promises."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from ..dialects.mlir import ir
from ..passes.pass_base import nearest
from ..targets.target import Target
from .errors import Diagnostic, UserError
from .levels import LEVELS, check_nested, detect_level, first_illegal
from .options import Options
from .runner import QUIET, Instruments, run_stage
from .stages import Stage, stages

WRITTEN = ("import", "linalg")
"""Stages of what programs are written in, in any form that has a meaning."""


def lower(module: ir.Module, options: Options, emit: str, instruments: Instruments | None = None) -> ir.Module:
    """Takes `module`, in place, from the stage that it is at to stage `emit`."""
    shown = instruments or replace(QUIET, verify_each=options.verify_each)
    for number, stage in enumerate(remaining_stages(module, options, emit)):
        run(module, stage, shown.numbered(number, stage.name))
        if stage.name == "schedule" and options.autotune:
            from .autotune import tune  # needs torch, which nothing else here does

            tune(module, options)
    return module


def run(module: ir.Module, stage: Stage, instruments: Instruments) -> None:
    """Runs one stage and asserts the form that it promises."""

    def illegal() -> Diagnostic | None:
        found = first_illegal(module, stage.allowed, stage.device, stage.name)
        if found and stage.name in WRITTEN:
            # Nothing has been built yet: the program itself holds what can't be compiled
            raise UserError("the program can't be compiled", [found])
        return found

    run_stage(module, stage.name, stage.passes, instruments, illegal)


def remaining_stages(module: ir.Module, options: Options, emit: str) -> list[Stage]:
    """The stages that lead from where `module` is to `emit`; UserError if it is past that."""
    plan = stages(options)
    check_stage(emit, options.target, [stage.name for stage in plan])
    with module.context:
        check_nested(module, Target.parse(options.target))
    level = detect_level(module)
    _check_level(module, level, plan)
    first = _after("import" if level == "linalg" else level, plan)
    last = _after(emit, plan)
    if first > last:
        raise UserError(f"the module is at stage {level!r} already, past {emit!r}")
    return list(plan[first:last])


def _check_level(module: ir.Module, level: str, plan: Sequence[Stage]) -> None:
    """UserError where the module isn't in the form of the stage that it is at: somebody wrote it so."""
    reached = next((stage for stage in plan if stage.name == level), None)
    if reached is None or level in WRITTEN:
        return
    with module.context:
        found = first_illegal(module, reached.allowed, reached.device, level)
    if found is not None:
        raise UserError("the program can't be compiled", [found])


def check_stage(stage: str, target: str, known: Sequence[str]) -> None:
    """UserError unless the target has this stage: what it is called may be another target's."""
    if stage not in known:
        near = nearest(stage, known)
        raise UserError(f"target {target} has no stage {stage!r}{near}; its stages: {', '.join(known)}")


def _after(level: str, plan: tuple[Stage, ...]) -> int:
    """The number of the first stage after `level`."""
    rank = LEVELS.index(level)
    return sum(1 for stage in plan if LEVELS.index(stage.name) <= rank)
