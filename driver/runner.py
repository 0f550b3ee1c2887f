"""Runs passes, ours and upstream's, through MLIR's pass manager.

Our passes are added to the pass manager as callables, so that printing after each pass, printing to a folder
and timing see them like any other. One pass manager runs one stage. What goes wrong is told in one of two
ways (`errors.py`): as the user's fault, a `UserError` with MLIR's diagnostics; or as ours, a `InternalError`
with the IR that led to it and the command that repeats it.
"""

from __future__ import annotations

import os
import shlex
import sys
import tempfile
import traceback
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path

from ..dialects import fusion
from ..dialects.mlir import ir, passmanager, register_torch
from ..passes.errors import PassFailure
from ..passes.pass_base import Pass
from .errors import Diagnostic, InternalError, UserError, diagnostics_of

ROOT = "builtin.module"


@dataclass(frozen=True)
class Instruments:
    """What to show while passes run; all of it goes to standard error or into `tree`."""

    before_all: bool = False
    after_all: bool = False
    tree: Path | None = None
    timing: bool = False
    generic: bool = False
    verify_each: bool = True

    def numbered(self, number: int, name: str) -> Instruments:
        """The same for one of several stages, whose printed IR goes to a folder of its own."""
        return replace(self, tree=self.tree / f"{number}-{name}") if self.tree else self

    def announce(self, stage: str) -> None:
        """Says which stage the next table of times is about; MLIR prints one a pass manager."""
        if self.timing:
            print(f"stage {stage}:", file=sys.stderr, flush=True)


QUIET = Instruments()


def make_context() -> ir.Context:
    """A context that knows the fusion dialect, and the torch dialect for what comes before it.

    One thread: our functions are few, starting a thread pool costs more than it gives, and diagnostics and
    printed IR come in order.
    """
    context = ir.Context()
    context.enable_multithreading(False)
    fusion.load(context)
    register_torch(context)
    return context


def run_stage(
    module: ir.Module,
    stage: str,
    passes: Sequence[Pass | str],
    instruments: Instruments = QUIET,
    illegal: Callable[[], Diagnostic | None] = lambda: None,
) -> None:
    """Runs a stage of the compiler: whatever its passes don't refuse with a `PassFailure` is a fault of ours.

    So is what `illegal` finds afterwards.
    """
    with module.context, ir.Location.unknown():
        before = module.operation.clone()
        progress = _Progress()
        instruments.announce(stage)
        try:
            _manager(module, passes, progress, instruments).run(module.operation)
        except ir.MLIRError as error:
            diagnostics = diagnostics_of(error)
            if progress.user_fault:
                raise UserError(f"{progress.current} failed", diagnostics) from None
            reason = "\n".join(map(str, diagnostics)) or "the pass failed and didn't say why"
            raise bug(stage, progress.where(passes), reason, before, passes, error) from error
        except Exception as error:
            reason = f"{type(error).__name__}: {error}"
            raise bug(stage, progress.current, reason, before, passes, error) from error
        found = illegal()
        if found is not None:
            raise bug(stage, str(passes[-1]), str(found), before, passes)


def run_pipeline(module: ir.Module, passes: Sequence[Pass | str], instruments: Instruments = QUIET) -> None:
    """Runs passes that the user chose: what upstream passes refuse is the user's fault too."""
    with module.context, ir.Location.unknown():
        before = module.operation.clone()
        progress = _Progress()
        try:
            _manager(module, passes, progress, instruments).run(module.operation)
        except ir.MLIRError as error:
            where = progress.current if progress.user_fault else progress.where(passes)
            raise UserError(f"{where} failed", diagnostics_of(error)) from None
        except Exception as error:
            reason = f"{type(error).__name__}: {error}"
            raise bug("pass-pipeline", progress.current, reason, before, passes, error) from error


@dataclass
class _Progress:
    """Which of our passes runs, and whether it refused the program."""

    current: str = ""
    user_fault: bool = False
    started: list[Pass] = field(default_factory=list)

    def wrap(self, step: Pass, module: ir.Module) -> Callable[[ir.Operation, passmanager.ExternalPass], None]:
        """The pass as the pass manager calls it."""

        def run(_: ir.Operation, handle: passmanager.ExternalPass) -> None:
            self.current = step.name
            self.started.append(step)
            try:
                step.run(module)
            except PassFailure as failure:
                self.user_fault = True
                failure.location.emit_error(failure.message)
                handle.signal_pass_failure()
                return
            _emit_faults(module, handle, inside_bodies=False, allow_unknown=True)

        return run

    def where(self, passes: Sequence[Pass | str]) -> str:
        """The pass that failed, as far as one can tell: MLIR doesn't say which upstream pass it was."""
        rest = list(passes)
        if self.started:
            rest = rest[rest.index(self.started[-1]) + 1 :]
        upstream = rest[0] if rest and isinstance(rest[0], str) else ""
        return " or ".join(filter(None, (self.current, upstream)))


def verify(module: ir.Module, allow_unknown: bool = False) -> None:
    """Verifies the fusion ops of a module that was just parsed; UserError with what is wrong."""

    def check(_: ir.Operation, handle: passmanager.ExternalPass) -> None:
        _emit_faults(module, handle, inside_bodies=True, allow_unknown=allow_unknown)

    with module.context, ir.Location.unknown():
        manager = passmanager.PassManager(ROOT)
        manager.add(check, name="Verify", argument="verify")
        try:
            manager.run(module.operation)
        except ir.MLIRError as error:
            raise UserError("the module is not valid", diagnostics_of(error)) from None


def _emit_faults(module: ir.Module, handle: passmanager.ExternalPass, inside_bodies: bool, allow_unknown: bool) -> None:
    for fault in fusion.faults(module.operation, inside_bodies, allow_unknown):
        fault.location.emit_error(fault.message)
        handle.signal_pass_failure()


def _manager(
    module: ir.Module, passes: Sequence[Pass | str], progress: _Progress, instruments: Instruments
) -> passmanager.PassManager:
    manager = passmanager.PassManager(ROOT)
    manager.enable_verifier(instruments.verify_each)
    if instruments.timing:
        manager.enable_timing()
    if instruments.before_all or instruments.after_all:
        manager.enable_ir_printing(
            print_before_all=instruments.before_all,
            print_after_all=instruments.after_all,
            print_module_scope=True,
            print_generic_op_form=instruments.generic,
        )
    if instruments.tree:
        manager.enable_ir_printing(
            print_generic_op_form=instruments.generic, tree_printing_dir_path=str(instruments.tree)
        )
    for step in passes:
        if isinstance(step, Pass):
            manager.add(progress.wrap(step, module), name=type(step).__name__, argument=step.name)
        else:
            manager.add(step)
    return manager


def bug(
    stage: str,
    pass_name: str,
    reason: str,
    before: ir.Operation,
    passes: Sequence[Pass | str],
    error: Exception | None = None,
) -> InternalError:
    """A fault of ours, with what is needed to repeat it written down."""
    folder = dump_folder(f"bug-{stage}")
    source = folder / "input.mlir"
    source.write_text(print_module(before, generic=False))
    if error is not None:
        (folder / "traceback.txt").write_text("".join(traceback.format_exception(error)))
    pipeline = f"{ROOT}({','.join(map(str, passes))})"
    command = f"fusion-opt {shlex.quote(str(source))} --pass-pipeline={shlex.quote(pipeline)}"
    return InternalError(stage, pass_name, reason, folder, command)


def dump_folder(name: str) -> Path:
    """A new folder, in MLIR_FUSION_DUMP where that is set."""
    parent = os.environ.get("MLIR_FUSION_DUMP")
    if parent:
        Path(parent).mkdir(parents=True, exist_ok=True)
    return Path(tempfile.mkdtemp(prefix=f"mlir-fusion-{name}-", dir=parent or None))


def print_module(operation: ir.Operation, generic: bool = False, locations: bool = False) -> str:
    """The text of a module, with a newline at its end."""
    text = operation.get_asm(print_generic_op_form=generic, assume_verified=False, enable_debug_info=locations)
    return text.rstrip("\n") + "\n"
