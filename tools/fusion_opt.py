"""fusion-opt: the compiler on MLIR text, from any stage to any later one.

    fusion-opt program.mlir --fusion=dataflow                  what shares a kernel
    fusion-opt program.mlir --emit=ptx --target=sm_90          the code of the kernels
    fusion-opt program.mlir --pass-pipeline='builtin.module(fusion-normalize,canonicalize)'
    fusion-opt program.mlir --report=json                      how many kernels, bytes, and the peak

Standard output is the result; diagnostics go to standard error, and the status is then 1. Output appears
whole or not at all. Torch is never imported: starting takes half a second.
"""

from __future__ import annotations

import sys
import time
from collections.abc import Sequence
from dataclasses import dataclass, field

from ..dialects.mlir import ir
from ..driver.build import emit_text
from ..driver.errors import Diagnostic, UserError, diagnostic
from ..driver.pipeline import run_steps
from ..driver.pipeline_text import Step, resolve
from ..driver.report import print_json, report
from ..driver.report_tables import print_tables
from ..driver.runner import make_context, verify
from .arguments import Arguments, list_passes, parse_arguments
from .command import complain, run_command, run_isolated, version_text
from .expected import compare, read_expectations
from .source import Chunk, read_chunks, write_output

NAME = "fusion-opt"
SEPARATOR = "// -----\n"


def main(argv: Sequence[str] | None = None) -> int:
    """The command; returns its exit status. As it is installed, without arguments, it has a process of its own."""
    if argv is None:
        return run_isolated(NAME, lambda: main(sys.argv[1:]))
    return run_command(NAME, lambda: _run(parse_arguments(argv)))


def _run(arguments: Arguments) -> int:
    if arguments.version:
        write_output(arguments.output, version_text(NAME) + "\n")
        return 0
    if arguments.list_passes:
        write_output(arguments.output, list_passes())
        return 0
    steps = _resolve(arguments.pass_pipeline)
    chunks = read_chunks(arguments.file, arguments.split_input)
    session = _Session(arguments, steps)
    start = time.perf_counter()
    outputs = [session.process(chunk) for chunk in chunks]
    if arguments.instruments.timing:
        # Not the sum of the tables: reading, checking between stages, LLVM and printing take time too
        print(f"in all: {time.perf_counter() - start:.4f} seconds", file=sys.stderr)
    if session.has_failed:
        return 1
    if any(isinstance(output, bytes) for output in outputs):
        write_output(arguments.output, _only(outputs))
        return 0
    separator = "" if arguments.report else SEPARATOR
    write_output(arguments.output, separator.join(str(text) for text in outputs if text is not None))
    return 0


@dataclass
class _Session:
    """One run of the command over the chunks of its input."""

    arguments: Arguments
    steps: tuple[Step, ...] | None
    has_failed: bool = False
    diagnostics: list[Diagnostic] = field(default_factory=list)

    def process(self, chunk: Chunk) -> str | bytes | None:
        """The output for a chunk; None where there is none, after telling why."""
        if not self.arguments.verify_diagnostics:
            return self._process(chunk)
        self.diagnostics = []
        output = self._process(chunk)
        text = chunk.text.decode(errors="replace")
        problems = compare(read_expectations(text), self.diagnostics, chunk.name)
        for problem in problems:
            print(problem, file=sys.stderr)
        self.has_failed |= bool(problems)
        return output

    def _process(self, chunk: Chunk) -> str | bytes | None:
        context = make_context()
        if self.arguments.verify_diagnostics:
            context.emit_error_diagnostics = True
        handler = context.attach_diagnostic_handler(lambda info: self._receive(info, chunk))
        try:
            with context, ir.Location.unknown():
                module = chunk.parse()
                verify(module, self.arguments.allow_unregistered)
                return self._transform(module)
        except UserError as error:
            self._fail(error, chunk)
            return None
        finally:
            handler.detach()

    def _transform(self, module: ir.Module) -> str | bytes:
        arguments = self.arguments
        if self.steps is not None:
            return run_steps(module, self.steps, arguments.options, arguments.instruments)
        if arguments.report:
            found = report(module, arguments.options, arguments.instruments, arguments.sizes)
            return print_json(found) if arguments.report == "json" else print_tables(found, arguments.options)
        return emit_text(module, arguments.options, arguments.emit, arguments.instruments)

    def _receive(self, info: ir.Diagnostic, chunk: Chunk) -> bool:
        """A diagnostic of MLIR's that is in no exception: a warning, or any where they are to be verified."""
        found = chunk.named(diagnostic(info))
        if self.arguments.verify_diagnostics:
            self.diagnostics.append(found)
        else:
            print(found, file=sys.stderr)
        return True

    def _fail(self, error: UserError, chunk: Chunk) -> None:
        located = chunk.located(error)
        if self.arguments.verify_diagnostics and (located.diagnostics or self.diagnostics):
            self.diagnostics += located.diagnostics
            return
        self.has_failed = True
        complain(NAME, located)


def _resolve(pipeline: str | None) -> tuple[Step, ...] | None:
    if pipeline is None:
        return None
    with make_context():
        return resolve(pipeline)


def _only(outputs: Sequence[str | bytes | None]) -> str | bytes:
    if len(outputs) != 1 or outputs[0] is None:
        raise UserError("a cubin is made of one module, so --split-input-file can't be given")
    return outputs[0]


if __name__ == "__main__":
    sys.exit(main())
