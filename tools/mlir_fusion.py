"""mlir-fusion: runs a program of MLIR text, and looks after options and caches.

    mlir-fusion run program.mlir --target=cpu                     each result's shape and checksum
    mlir-fusion run program.mlir --target=simt                    the GPU's kernels, checked for races and the like
    mlir-fusion run program.mlir --target=cpu --compare=none      how far each is from the unfused program's
    mlir-fusion options [--markdown]                              every option: the table, or docs/options.md
    mlir-fusion cache info|clear                                  the folder of compiled code
    mlir-fusion bisect script.py [arguments]                      which fusion and which pass make a script fail

`run` calls `@main` with random tensors: equal seeds give equal ones. Torch is imported only when something runs.
"""

from __future__ import annotations

import argparse
import os
import sys
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

from ..driver.build import disk_cache
from ..driver.environment import VARIABLES
from ..driver.errors import UserError
from ..driver.options import FUSION_TYPES, Options, print_markdown, print_table, split_names
from ..driver.runner import make_context, verify
from ..passes.pass_base import check_choice, unknown
from ..runtime.disk_cache import FOLDER_VARIABLE
from ..targets.target import TARGETS as ALL_TARGETS
from ..targets.target import Target
from .bisect import bisect
from .command import Parser, run_command, version_text, whole_number
from .source import Chunk, read_chunks, write_output

NAME = "mlir-fusion"
TARGETS = ("cpu", "simt", "cuda")
CACHE_ACTIONS = ("info", "clear")
COMMANDS = ("run", "options", "cache", "bisect")


def main(argv: Sequence[str] | None = None) -> int:
    """The command; returns its exit status."""
    return run_command(NAME, lambda: _run(sys.argv[1:] if argv is None else argv))


def _run(argv: Sequence[str]) -> int:
    # What follows a script is the script's
    if list(argv[:1]) == ["bisect"] and len(argv) > 1 and not argv[1].startswith("-"):
        return _bisect(argv[1], argv[2:])
    if list(argv) == ["--version"]:
        write_output(None, version_text(NAME) + "\n")
        return 0
    if not argv:
        raise UserError(f"a command is needed: {', '.join(COMMANDS)}; --help says more")
    if not argv[0].startswith("-") and argv[0] not in COMMANDS:
        raise UserError(f"{unknown('command', argv[0], COMMANDS)}; allowed: {', '.join(COMMANDS)}")
    given = _parser().parse(list(argv))
    return given.command(given)


def _run_program(given: argparse.Namespace) -> int:
    try:
        options = _options(given.target, given.fusion, given.enable, given.disable)
        if given.compare is not None:
            check_choice("value of --compare", given.compare, FUSION_TYPES)
    except ValueError as error:
        raise UserError(str(error)) from None
    others = [] if given.compare is None else [replace(options, fusion_type=given.compare)]
    chunk = read_chunks(given.file, split=False)[0]
    try:
        write_output(None, _execute(chunk, [options, *others], given.seed))
    except UserError as error:
        raise chunk.located(error) from None
    return 0


def _execute(chunk: Chunk, variants: Sequence[Options], seed: int) -> str:
    with make_context():
        module = chunk.parse()
        verify(module)
    # Only now, since it takes seconds
    from . import execute

    return execute.run(module, variants, seed)


def _print_options(given: argparse.Namespace) -> int:
    write_output(None, PAGE.format(print_markdown(), _variables()) if given.markdown else print_table())
    return 0


PAGE = """# Options

Made by `mlir-fusion options --markdown`. Where options are set, lowest first: the entry point's defaults;
`with mlir_fusion.options(...)` and the arguments of `compile`, captured when it returns; the environment
(`MLIR_FUSION_ENABLE=a,b`, `MLIR_FUSION_DISABLE=c`, `MLIR_FUSION_OPTIONS=name=value,...`), read at every call; the
call's own `_enable_options` and `_disable_options`. A later level wins. (PyTorch tells a backend nothing before the
first call: for `torch.compile(backend="mlir_fusion")` the blocks that count are those around a call.) *Affects* is
the first stage that an option changes; the results of earlier stages are reused.

{}
The default target is where the inputs are (`mlir_fusion.compile`, `torch.compile`), sm_90 (`fusion-opt`) or the CPU
(`mlir-fusion run`).

## Environment variables

{}"""


def _variables() -> str:
    lines = ["| variable | meaning |", "|---|---|", *(f"| {name} | {meaning} |" for name, meaning in VARIABLES.items())]
    return "\n".join(lines) + "\n"


def _cache(given: argparse.Namespace) -> int:
    try:
        check_choice("action", given.action, CACHE_ACTIONS)
    except ValueError as error:
        raise UserError(str(error)) from None
    cache = disk_cache(Options())
    if cache is None:
        raise UserError(f"there is no folder for compiled code; {FOLDER_VARIABLE} names one")
    output = str(cache.info()) if given.action == "info" else f"{cache.clear()} entries removed from {cache.folder}\n"
    write_output(None, output)
    return 0


def _bisect(script: str, arguments: Sequence[str]) -> int:
    if not Path(script).is_file():
        raise UserError(f"can't read {script!r}: no such file")
    write_output(None, bisect(Path(script), arguments))
    return 0


def _parser() -> Parser:
    parser = Parser(prog=NAME, description="Runs programs; looks after options and caches.", allow_abbrev=False)
    parser.add_argument("--version", action="store_true", help="print the version")
    commands = parser.add_subparsers(metavar="COMMAND", required=True, parser_class=Parser)
    _add_run(commands.add_parser("run", help="call @main with random tensors", allow_abbrev=False))
    options = commands.add_parser("options", help="list all options", allow_abbrev=False)
    options.add_argument("--markdown", action="store_true", help="as the page docs/options.md")
    options.set_defaults(command=_print_options)
    cache = commands.add_parser("cache", help="the folder of compiled code", allow_abbrev=False)
    cache.add_argument("action", metavar="ACTION", help=", ".join(CACHE_ACTIONS))
    cache.set_defaults(command=_cache)
    script = commands.add_parser("bisect", help="find what makes a script fail", allow_abbrev=False)
    script.add_argument("script", metavar="SCRIPT", help="a Python script, and its arguments")
    return parser


def _add_run(run: argparse.ArgumentParser) -> None:
    run.set_defaults(command=_run_program)
    add = run.add_argument
    add("file", nargs="?", default="-", metavar="FILE", help="the input; by default -, standard input")
    add("--target", default="cpu", metavar="NAME", help=f"{', '.join(TARGETS)} (default: cpu)")
    add("--fusion", metavar="TYPE", help=f"{', '.join(FUSION_TYPES)} (default: {Options().fusion_type})")
    add("--seed", type=whole_number, default=0, metavar="N", help="of the random tensors (default: 0)")
    add("--compare", metavar="TYPE", help="compare with the program under this fusion type, such as none")
    add("--enable", action="append", default=[], metavar="OPT,...", help="options on, or OPT=VALUE")
    add("--disable", action="append", default=[], metavar="OPT,...", help="options off")


def _options(target: str, fusion_type: str | None, enable: Sequence[str], disable: Sequence[str]) -> Options:
    if target in ALL_TARGETS and target not in TARGETS:
        raise ValueError(f"--target={target} names what to compile for; run takes cpu or cuda, the GPU that is there")
    check_choice("value of --target", target, TARGETS)
    if fusion_type is not None:
        check_choice("value of --fusion", fusion_type, FUSION_TYPES)
    options = Options(target=_target(target).name).override_from_environment(os.environ)
    said = [] if fusion_type is None else [f"fusion_type={fusion_type}"]
    on = [name for text in enable for name in split_names(text)]
    off = [name for text in disable for name in split_names(text)]
    return options.override([*said, *on], off, "command line")


def _target(name: str) -> Target:
    if name != "cuda":
        return Target.parse(name)
    target = Target.detect()
    if target.kind != "gpu":
        raise UserError("no CUDA device that mlir-fusion can compile for; targets cpu and simt need none")
    return target


if __name__ == "__main__":
    sys.exit(main())
