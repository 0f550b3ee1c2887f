"""Runs a pipeline that was given as text: `--pass-pipeline`, with `fusion-pipeline` as the whole of ours."""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping
from itertools import groupby

from ..dialects.mlir import ir
from ..passes.pass_base import Pass, unknown
from .errors import UserError
from .options import Options, declarations
from .pipeline_text import WHOLE, Step, Whole
from .runner import Instruments, run_pipeline
from .stages import lower


def run_steps(module: ir.Module, steps: tuple[Step, ...], instruments: Instruments) -> None:
    """Runs each step with exactly the options written in it."""
    runs = [(is_whole, list(run)) for is_whole, run in groupby(steps, lambda step: isinstance(step, Whole))]
    for number, (_, run) in enumerate(runs):
        many = len(runs) > 1 and instruments.tree
        shown = dataclasses.replace(instruments, tree=many / str(number)) if many else instruments
        for step in run:
            if isinstance(step, Whole):
                options, emit = whole_settings(step.settings, Options())
                lower(module, options, emit, shown)
        passes = [step for step in run if isinstance(step, Pass | str)]
        if passes:
            run_pipeline(module, passes, shown)


def whole_settings(settings: Mapping[str, str], defaults: Options) -> tuple[Options, str]:
    """`fusion=dataflow target=sm_90 emit=ptx horizontal=false` as options and the stage to reach."""
    names = {"fusion": "fusion_type", **{d.name.replace("_", "-"): d.name for d in declarations()}}
    enable, emit = [], "region"
    for key, value in settings.items():
        if key == "emit":
            emit = value
        elif key in names:
            enable.append(f"{names[key]}={value}")
        else:
            known = ["emit", *names]
            raise UserError(f"{WHOLE}: {unknown('option', key, known)}; allowed: {', '.join(known)}")
    try:
        return defaults.override(enable, where=WHOLE), emit
    except ValueError as error:
        raise UserError(str(error)) from None
