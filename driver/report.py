"""What fusion achieved, by numbers: `fusion-opt --report`, and `mlir_fusion.explain` in Python.

The numbers come from several stages. After each, `fusion-report` notes in the IR what that stage shows; here
they are read off at the end. `None` is what the input, being past that stage, can't tell any more.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import asdict, dataclass, field, replace

from ..dialects.mlir import ir
from ..passes.fusion_report import ATTRIBUTE, FusionReport, read_report
from ..passes.fusion_specialize_sizes import FusionSpecializeSizes, is_dynamic
from ..passes.graph import functions
from ..passes.pass_base import Pass
from ..targets.target import Target
from .levels import LEVELS, detect_level
from .lower import remaining_stages, run
from .options import Options
from .runner import QUIET, Instruments, run_stage

BYTES = ("peak_bytes", "source_peak_bytes", "workspace_bytes")
"""What is held at once."""
REPORTED = ("linalg", "region", "kernel")
"""The stages that show something new."""


@dataclass(frozen=True)
class KernelReport:
    """One launch."""

    name: str
    ops: int
    bytes: int
    schedule: str
    why: str
    """Why the schedule has the parameters that it has."""
    flops: int
    seconds: float
    """What the target's data sheet allows at best for these bytes and flops."""
    lines: tuple[str, ...] = field(compare=False)
    """Of the source, `file:line`."""


@dataclass(frozen=True)
class CallReport:
    """One call of a library."""

    op: str
    bytes: int
    flops: int | None
    """None where the shapes alone don't tell."""
    seconds: float
    lines: tuple[str, ...] = field(compare=False)


@dataclass(frozen=True)
class FunctionReport:
    """One function; the terms are those of passes/fusion_report.py."""

    function: str
    fusion_type: str
    ops: int | None
    regions: int | None
    kernels: int
    extern_calls: int
    bytes_moved: int
    peak_bytes: int
    source_peak_bytes: int | None
    workspace_bytes: int
    kernel_list: tuple[KernelReport, ...]
    call_list: tuple[CallReport, ...]
    timeline: tuple[int, ...]
    """The bytes live at each launch and call, in order."""

    @property
    def seconds(self) -> float:
        """What the target's data sheet allows at best, one launch or call after the other."""
        return sum(one.seconds for one in (*self.kernel_list, *self.call_list))

    @property
    def flops(self) -> int:
        """Of kernels, and of those calls whose number is known."""
        return sum(one.flops or 0 for one in (*self.kernel_list, *self.call_list))


def report(
    module: ir.Module, options: Options, instruments: Instruments = QUIET, sizes: Sequence[str] = ()
) -> tuple[FunctionReport, ...]:
    """Takes the module to stage kernel, and reports on each function.

    `sizes` are the numbers of dynamic sizes, such as "s0=128": fusion decides for all sizes, and these are then put in.
    UserError if some are missing.
    """
    quiet = replace(instruments, tree=None)
    specialize = (FusionSpecializeSizes(tuple(sizes)),) if sizes or is_dynamic(module) else ()
    if LEVELS.index(detect_level(module)) > LEVELS.index("linalg"):
        # What the input shows is gone after the next stage
        run_stage(module, "report", (*specialize, FusionReport()), quiet)
    for number, stage in enumerate(remaining_stages(module, options, "kernel")):
        run(module, stage, instruments.numbered(number, stage.name))
        if stage.name == "linalg":
            specialize = (FusionSpecializeSizes(tuple(sizes)),) if sizes or is_dynamic(module) else ()
            _count_source(module, (*specialize, FusionReport()), quiet)
        elif stage.name in REPORTED:
            run_stage(module, "report", (*specialize, FusionReport()), quiet)
            specialize = ()
    return tuple(_read(function, options) for function in functions(module))


def _count_source(module: ir.Module, passes: Sequence[Pass], instruments: Instruments) -> None:
    """Notes what the source shows, for the sizes given, and leaves the module for all sizes."""
    if len(passes) == 1:
        run_stage(module, "report", passes, instruments)
        return
    with module.context, ir.Location.unknown():
        copy = ir.Module.create()
        for op in module.body.operations:
            copy.body.append(op.operation.clone())
    run_stage(copy, "report", passes, instruments)
    for function, counted in zip(functions(module), functions(copy), strict=True):
        function.attributes[ATTRIBUTE] = counted.attributes[ATTRIBUTE]


def print_json(reports: tuple[FunctionReport, ...]) -> str:
    """One object a line."""
    return "".join(json.dumps(asdict(one)) + "\n" for one in reports)


def _read(function: ir.Operation, options: Options) -> FunctionReport:
    with function.context:
        facts = read_report(function)
        target = Target.parse(options.target)
        return FunctionReport(
            function=ir.StringAttr(function.attributes["sym_name"]).value,
            fusion_type=options.fusion_type,
            ops=_integer(facts.get("ops")),
            regions=_integer(facts.get("regions")),
            kernels=_integer(facts.get("kernels")) or 0,
            extern_calls=_integer(facts.get("extern_calls")) or 0,
            bytes_moved=_integer(facts.get("bytes_moved")) or 0,
            peak_bytes=_integer(facts.get("peak_bytes")) or 0,
            source_peak_bytes=_integer(facts.get("source_peak_bytes")),
            workspace_bytes=_integer(facts.get("workspace_bytes")) or 0,
            kernel_list=tuple(_kernel(entry, target) for entry in _entries(facts.get("kernel_list"))),
            call_list=tuple(_call(entry, target) for entry in _entries(facts.get("call_list"))),
            timeline=tuple(ir.DenseI64ArrayAttr(facts["timeline"])) if "timeline" in facts else (),
        )


def _entries(attribute: ir.Attribute | None) -> list[ir.DictAttr]:
    return [] if attribute is None else [ir.DictAttr(entry) for entry in ir.ArrayAttr(attribute)]


def _kernel(entry: ir.DictAttr, target: Target) -> KernelReport:
    moved, flops = ir.IntegerAttr(entry["bytes"]).value, ir.IntegerAttr(entry["flops"]).value
    return KernelReport(
        name=ir.StringAttr(entry["name"]).value,
        ops=ir.IntegerAttr(entry["ops"]).value,
        bytes=moved,
        schedule=ir.StringAttr(entry["schedule"]).value,
        why=ir.StringAttr(entry["why"]).value,
        flops=flops,
        seconds=target.least_seconds(moved, flops),
        lines=_lines(entry),
    )


def _call(entry: ir.DictAttr, target: Target) -> CallReport:
    moved, flops = ir.IntegerAttr(entry["bytes"]).value, _integer(entry["flops"] if "flops" in entry else None)
    # In f32 PyTorch leaves the matrix units alone, unless it is told to round to TF32
    is_narrow = ir.StringAttr(entry["dtype"]).value in ("f16", "bf16")
    seconds = target.least_seconds(moved, flops or 0, on_matrix_units=is_narrow)
    return CallReport(ir.StringAttr(entry["op"]).value, moved, flops, seconds, _lines(entry))


def _lines(entry: ir.DictAttr) -> tuple[str, ...]:
    return tuple(ir.StringAttr(line).value for line in ir.ArrayAttr(entry["lines"]))


def _integer(attribute: ir.Attribute | None) -> int | None:
    return None if attribute is None else ir.IntegerAttr(attribute).value
