"""Runs a pipeline that was given as text: `--pass-pipeline`, with `fusion-pipeline` as the whole of ours."""

from __future__ import annotations

from collections.abc import Mapping
from itertools import groupby

from ..dialects.mlir import ir
from ..passes.pass_base import unknown
from .build import MACHINE_CODE, emit_text
from .errors import UserError
from .lower import lower
from .options import Options, declarations
from .pipeline_text import WHOLE, Step, Whole
from .runner import Instruments, print_module, run_pipeline


def run_steps(module: ir.Module, steps: tuple[Step, ...], defaults: Options, instruments: Instruments) -> str | bytes:
    """Runs each step, and gives the program's text afterwards.

    A pass has exactly the options written in it; `defaults`, which the environment may have changed, only
    reach `fusion-pipeline`. That may end in machine code, if nothing follows.
    """
    runs = [list(run) for _, run in groupby(steps, lambda step: isinstance(step, Whole))]
    output: str | bytes | None = None
    for number, run in enumerate(runs):
        shown = instruments.numbered(number, "passes") if len(runs) > 1 else instruments
        for step in run:
            if output is not None:
                raise UserError(f"{WHOLE} ends in machine code here, so nothing can follow it")
            if isinstance(step, Whole):
                output = _run_whole(module, step, defaults, shown)
        passes = [step for step in run if not isinstance(step, Whole)]
        if passes:
            run_pipeline(module, passes, shown)
    return print_module(module.operation, instruments.generic) if output is None else output


def _run_whole(module: ir.Module, step: Whole, defaults: Options, instruments: Instruments) -> str | bytes | None:
    options, emit = whole_settings(step.settings, defaults)
    if emit in MACHINE_CODE:
        return emit_text(module, options, emit, instruments)
    lower(module, options, emit, instruments)
    return None


def whole_settings(settings: Mapping[str, str | None], defaults: Options) -> tuple[Options, str]:
    """`fusion=dataflow target=sm_90 emit=ptx horizontal=false` as options and the stage to reach.

    A name alone, which has None here, means the option's on-value, as with --enable.
    """
    names = {"fusion": "fusion_type", **{d.name.replace("_", "-"): d.name for d in declarations()}}
    enable, emit = [], "region"
    for key, value in settings.items():
        if key == "emit":
            emit = value or ""
        elif key in names:
            enable.append(names[key] if value is None else f"{names[key]}={value}")
        else:
            known = ["emit", *names]
            raise UserError(f"{WHOLE}: {unknown('option', key, known)}; allowed: {', '.join(known)}")
    try:
        return defaults.override(enable, where=WHOLE), emit
    except ValueError as error:
        raise UserError(str(error)) from None
