"""mlir-fusion: runs a program of MLIR text.

    mlir-fusion run program.mlir --target=cpu                     each result's shape and checksum
    mlir-fusion run program.mlir --target=cpu --compare=none      how far each is from the unfused program's

`@main` is called with random tensors: equal seeds give equal ones. Torch is imported only when something runs.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Sequence
from dataclasses import replace

from ..driver.errors import UserError
from ..driver.options import FUSION_TYPES, Options, split_names
from ..driver.runner import make_context, verify
from ..passes.pass_base import check_choice
from ..targets.target import Target
from .command import Parser, run_command
from .source import read_chunks, write_output

NAME = "mlir-fusion"
TARGETS = ("cpu", "cuda")


def main(argv: Sequence[str] | None = None) -> int:
    """The command; returns its exit status."""
    return run_command(NAME, lambda: _run(sys.argv[1:] if argv is None else argv))


def _run(argv: Sequence[str]) -> int:
    given = _parser().parse(list(argv))
    try:
        options = _options(given.target, given.fusion, given.enable, given.disable)
        if given.compare is not None:
            check_choice("value of --compare", given.compare, FUSION_TYPES)
    except ValueError as error:
        raise UserError(str(error)) from None
    chunk = read_chunks(given.file, split=False)[0]
    context = make_context()
    with context:
        module = chunk.parse()
        verify(module)
    # Only now, since it takes seconds
    from . import execute

    others = [] if given.compare is None else [replace(options, fusion_type=given.compare)]
    write_output(None, execute.run(module, [options, *others], given.seed))
    return 0


def _parser() -> Parser:
    parser = Parser(prog=NAME, description="Runs programs of MLIR text.", allow_abbrev=False)
    commands = parser.add_subparsers(metavar="COMMAND", required=True, parser_class=Parser)
    run = commands.add_parser("run", help="call @main with random tensors", allow_abbrev=False)
    add = run.add_argument
    add("file", nargs="?", default="-", metavar="FILE", help="the input; by default -, standard input")
    add("--target", default="cpu", metavar="NAME", help=f"{', '.join(TARGETS)} (default: cpu)")
    add("--fusion", metavar="TYPE", help=f"{', '.join(FUSION_TYPES)} (default: {Options().fusion_type})")
    add("--seed", type=int, default=0, metavar="N", help="of the random tensors (default: 0)")
    add("--compare", metavar="TYPE", help="compare with the program under this fusion type, such as none")
    add("--enable", action="append", default=[], metavar="OPT,...", help="options on, or OPT=VALUE")
    add("--disable", action="append", default=[], metavar="OPT,...", help="options off")
    return parser


def _options(target: str, fusion_type: str | None, enable: Sequence[str], disable: Sequence[str]) -> Options:
    check_choice("value of --target", target, TARGETS)
    if fusion_type is not None:
        check_choice("value of --fusion", fusion_type, FUSION_TYPES)
    options = Options(target=_target(target).name).override_from_environment(os.environ)
    said = [] if fusion_type is None else [f"fusion_type={fusion_type}"]
    on = [name for text in enable for name in split_names(text)]
    off = [name for text in disable for name in split_names(text)]
    return options.override([*said, *on], off, "command line")


def _target(name: str) -> Target:
    if name == "cpu":
        return Target.parse("cpu")
    target = Target.detect()
    if target.kind != "gpu":
        raise UserError("no CUDA device that mlir-fusion can compile for; --target=cpu runs without one")
    return target


if __name__ == "__main__":
    sys.exit(main())
