"""The command line of fusion-opt: flags, their checks, and help made from the registries."""

from __future__ import annotations

import argparse
import logging
import os
from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from ..driver.build import EMITS
from ..driver.environment import VARIABLES
from ..driver.errors import UserError
from ..driver.options import FUSION_TYPES, Options, declarations, split_names
from ..driver.pipeline_text import is_pass
from ..driver.runner import Instruments
from ..passes import PASSES
from ..passes.fusion_specialize_sizes import parse_sizes
from ..passes.pass_base import BOOLEANS, check_choice, print_value
from ..targets.target import TARGETS
from .command import Parser

LOG = logging.getLogger("mlir_fusion.tools")
REPORTS = ("json", "table")


@dataclass(frozen=True)
class Arguments:
    """A checked command line."""

    file: str
    output: str | None
    options: Options
    emit: str | None
    pass_pipeline: str | None
    report: str | None
    sizes: tuple[str, ...]
    split_input: bool
    verify_diagnostics: bool
    allow_unregistered: bool
    list_passes: bool
    version: bool
    instruments: Instruments


def parse_arguments(argv: Sequence[str]) -> Arguments:
    """The checked command line; UserError in one line for whatever is wrong with it."""
    parser = _parser()
    _check_no_pass(argv, parser.flags())
    given = parser.parse([_two_dashes(argument, parser.flags()) for argument in argv])
    try:
        _check(given)
        return _arguments(given)
    except ValueError as error:
        raise UserError(str(error)) from None


def _check_no_pass(argv: Sequence[str], flags: Sequence[str]) -> None:
    """UserError for the name of a pass as a flag, as mlir-opt takes it."""
    for argument in argv:
        name = argument.partition("=")[0].lstrip("-")
        if argument.startswith("-") and name and f"--{name}" not in flags and is_pass(name):
            raise UserError(f"{name} is a pass, no flag: --pass-pipeline='builtin.module({name})' runs it")


def list_passes() -> str:
    """A line a pass: name, options with their defaults, what it does."""
    lines = []
    for name, cls in PASSES.items():
        fields = cls.option_fields().items()
        options = " ".join(f"{key}={print_value(field.default)}" for key, field in fields)
        lines.append(f"{name}{{{options}}}" if options else name)
        lines.append(f"    {cls.summary()}")
    return "\n".join(lines) + "\n"


def _parser() -> Parser:
    parser = Parser(
        prog="fusion-opt",
        description="Compiles MLIR: linalg on tensors, or any later stage, to fused kernels.",
        epilog=_epilog(),
        formatter_class=argparse.RawDescriptionHelpFormatter,
        allow_abbrev=False,
    )
    add = parser.add_argument
    add("file", nargs="?", default="-", metavar="FILE", help="the input; by default -, standard input")
    add("-o", dest="output", metavar="FILE", help="the output; by default -, standard output")
    add("--fusion", metavar="TYPE", help=f"{', '.join(FUSION_TYPES)} (default: {Options().fusion_type})")
    add("--emit", metavar="STAGE", help=f"{', '.join(EMITS)} (default: region)")
    add("--target", metavar="NAME", help=f"{', '.join(TARGETS)} (default: {Options().target})")
    add(
        "--enable",
        action="append",
        default=[],
        metavar="OPT,...",
        help="options on, or OPT=VALUE",
    )
    add("--disable", action="append", default=[], metavar="OPT,...", help="options off")
    add("--pass-pipeline", metavar="TEXT", help="run these passes instead: builtin.module(a,b{x=1},...)")
    add("--report", metavar="FORMAT", help="print what fusion achieved instead of IR: json, table")
    add("--sizes", metavar="NAME=N,...", help="with --report: the numbers of dynamic sizes, such as s0=128")
    _add_mlir_flags(parser)
    return parser


def _add_mlir_flags(parser: Parser) -> None:
    group = parser.add_argument_group("as in mlir-opt")
    flag = group.add_argument
    flag("--split-input-file", action="store_true", help="cut the input at lines of // -----")
    flag("--verify-diagnostics", action="store_true", help="check comments like // expected-error {{text}}")
    flag("--allow-unregistered-dialect", action="store_true", help="take operations of unknown dialects")
    flag("--mlir-print-ir-before-all", action="store_true", help="print the IR before each pass")
    flag("--mlir-print-ir-after-all", action="store_true", help="print the IR after each pass")
    flag("--mlir-print-ir-tree-dir", metavar="DIR", help="write the IR after each pass to a file in DIR")
    flag("--mlir-print-op-generic", action="store_true", help="print operations in generic form")
    flag("--mlir-timing", action="store_true", help="print how long each pass took")
    flag(
        "--verify-each",
        nargs="?",
        const="true",
        default="true",
        metavar="BOOL",
        help="verify after each pass",
    )
    flag("--list-passes", action="store_true", help="list our passes with their options")
    flag("--version", action="store_true", help="print the version")


def _epilog() -> str:
    lines = ["options for --enable and --disable:"]
    for option in declarations():
        choices = f" ({', '.join(option.choices)})" if option.choices else ""
        lines.append(f"  {option.name}={print_value(option.default)}".ljust(30) + option.help + choices)
    lines += ["", "passes (upstream ones too, in --pass-pipeline):"]
    lines += [f"  {name}" for name in PASSES]
    lines += ["  fusion-pipeline{fusion= target= emit= ...}: all of it", "", "environment:"]
    lines += [f"  {name}".ljust(26) + meaning for name, meaning in VARIABLES.items()]
    return "\n".join(lines)


def _check(given: argparse.Namespace) -> None:
    _check_no_file(given)
    if given.pass_pipeline is not None:
        for flag in INSTEAD:
            if getattr(given, flag):
                raise ValueError(f"--{flag} and --pass-pipeline can't be given together: {INSTEAD[flag]}")
    if given.report and given.emit:
        raise ValueError("--report and --emit can't be given together: a report is printed instead of IR")
    if given.emit is not None:
        check_choice("value of --emit", given.emit, EMITS)
    if given.report is not None:
        check_choice("value of --report", given.report, REPORTS)
    if given.fusion is not None:
        check_choice("value of --fusion", given.fusion, FUSION_TYPES)
    if given.target is not None:
        check_choice("value of --target", given.target, TARGETS)
    if given.verify_each is not None:
        check_choice("value of --verify-each", given.verify_each, BOOLEANS)


def _check_no_file(given: argparse.Namespace) -> None:
    """ValueError where a flag took the input file as its value."""
    for flag in ("fusion", "emit", "report", "target", "enable", "disable", "pass_pipeline"):
        value = getattr(given, flag)
        for text in value if isinstance(value, list) else [value]:
            if text is not None and text.endswith(".mlir"):
                name = flag.replace("_", "-")
                raise ValueError(f"--{name} took the file {text!r} as its value: write --{name}=VALUE, then the file")


INSTEAD = {
    "fusion": "write the fusion pass, or fusion-pipeline{fusion=...}, in the pipeline",
    "emit": "the pipeline says how far to go",
    "report": "write fusion-report in the pipeline",
    "sizes": "write fusion-specialize-sizes{sizes={...}} in the pipeline",
    "target": "write fusion-schedule{target=...} or fusion-pipeline{target=...} in the pipeline",
    "enable": "write pass options in the pipeline",
    "disable": "write pass options in the pipeline",
}


def _arguments(given: argparse.Namespace) -> Arguments:
    options = _options(given)
    if options.autotune:
        LOG.warning("autotune: fusion-opt runs no kernels; schedules stay as chosen")
        options = replace(options, autotune=False)
    instruments = Instruments(
        before_all=given.mlir_print_ir_before_all,
        after_all=given.mlir_print_ir_after_all,
        tree=_folder(given.mlir_print_ir_tree_dir),
        timing=given.mlir_timing,
        generic=given.mlir_print_op_generic,
        verify_each=options.verify_each,
    )
    return Arguments(
        file=given.file,
        output=given.output,
        options=options,
        emit=given.emit,
        pass_pipeline=given.pass_pipeline,
        report=given.report,
        sizes=_sizes(given),
        split_input=given.split_input_file,
        verify_diagnostics=given.verify_diagnostics,
        allow_unregistered=given.allow_unregistered_dialect,
        list_passes=given.list_passes,
        version=given.version,
        instruments=instruments,
    )


def _options(given: argparse.Namespace) -> Options:
    """This command's defaults, then the environment, then the command line."""
    options = Options(verify_each=True).override_from_environment(os.environ)
    said = {"fusion_type": given.fusion, "target": given.target, "verify_each": given.verify_each}
    values = [f"{name}={value}" for name, value in said.items() if value is not None]
    enable = [name for text in given.enable for name in split_names(text)]
    disable = [name for text in given.disable for name in split_names(text)]
    return options.override([*values, *enable], disable, "command line")


def _sizes(given: argparse.Namespace) -> tuple[str, ...]:
    if given.sizes is None:
        return ()
    if not given.report:
        raise ValueError("--sizes is for --report: IR is compiled for all sizes")
    sizes = tuple(part.strip() for part in given.sizes.split(","))
    parse_sizes(sizes)
    return sizes


def _folder(text: str | None) -> Path | None:
    """A folder that can be written to, made if need be: MLIR ends the process where it can't write."""
    if text is None:
        return None
    path = Path(text)
    try:
        path.mkdir(parents=True, exist_ok=True)
    except FileExistsError:
        raise UserError(f"can't write the IR to {text!r}: it is not a folder") from None
    except OSError as error:
        raise UserError(f"can't write the IR to {text!r}: {error.strerror}") from None
    if not os.access(path, os.W_OK):
        raise UserError(f"can't write the IR to {text!r}: permission denied")
    return path


def _two_dashes(argument: str, flags: Sequence[str]) -> str:
    """MLIR's tools take -split-input-file as well."""
    name = argument.partition("=")[0]
    return f"-{argument}" if f"-{name}" in flags else argument
