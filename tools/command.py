"""How a command line ends: a status, and never a traceback."""

from __future__ import annotations

import argparse
import ctypes
import os
import signal
import sys
import tempfile
import time
import traceback
from collections.abc import Callable
from contextlib import suppress
from typing import NoReturn

from ..driver.errors import InternalError, UserError
from ..driver.fingerprint import PACKAGES, package_version
from ..passes.pass_base import unknown
from ..targets.llvm import CodegenError

INTERRUPTED = 130
PR_SET_PDEATHSIG = 1
"""Linux's: the signal that a process gets when the one that forked it ends."""
MOMENT = 0.2
"""Seconds, in which a process that was interrupted ends."""


def run_command(name: str, body: Callable[[], int]) -> int:
    """The status of `body`; whatever it raises is told on standard error, and the status is 1."""
    try:
        return body()
    except UserError as error:
        complain(name, error)
    except BrokenPipeError:
        # Whoever read our output has gone: keep the interpreter from flushing into the closed pipe
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
    except KeyboardInterrupt:
        return INTERRUPTED
    except (InternalError, CodegenError) as error:
        print(f"{name}: error: {error}", file=sys.stderr)
    except Exception as error:
        print(f"{name}: error: internal error: {_keep_traceback(name, error)}", file=sys.stderr)
    return 1


def run_isolated(name: str, command: Callable[[], int]) -> int:
    """The status of `command`, which runs in a forked process: MLIR and LLVM end theirs on some inputs.

    That is then an error like any other, and the status is 1.
    """
    child = os.fork()
    if child == 0:
        _run_child(command)
    status = _wait(child)
    if status >= 0:
        return status
    ending = signal.Signals(-status).name
    print(f"{name}: error: MLIR or LLVM can't take this input: it ended the process ({ending})", file=sys.stderr)
    return 1


def _wait(child: int) -> int:
    """Its status, less than 0 for a signal; an interrupt is its to tell."""
    while True:
        try:
            return os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])
        except KeyboardInterrupt:
            # A terminal interrupts both, whoever knows our number only us
            time.sleep(MOMENT)
            os.kill(child, signal.SIGINT)


def _run_child(command: Callable[[], int]) -> NoReturn:
    """Ends with the command's status, or with the process that waits for it."""
    ctypes.CDLL(None).prctl(PR_SET_PDEATHSIG, signal.SIGKILL)
    status = 1
    try:
        status = command()
    except SystemExit as ended:
        # --help, after which argparse ends the command
        status = int(ended.code or 0)
    finally:
        with suppress(BrokenPipeError):
            sys.stdout.flush()
            sys.stderr.flush()
        os._exit(status)


def complain(name: str, error: UserError) -> None:
    """Diagnostics as MLIR prints them, or one line."""
    print(error if error.diagnostics else f"{name}: error: {error}", file=sys.stderr)


def version_text(name: str) -> str:
    """The command's version, and those of the packages that do the work."""
    versions = {package: package_version(package) for package in ("mlir-fusion", *PACKAGES)}
    ours, *others = (f"{package} {version}" for package, version in versions.items())
    return f"{name}: {ours} ({', '.join(others)})"


def whole_number(text: str) -> int:
    """The type of a flag that takes a whole number."""
    try:
        return int(text)
    except ValueError:
        raise argparse.ArgumentTypeError(f"must be a whole number, got {text!r}") from None


class Parser(argparse.ArgumentParser):
    """Argparse, but an error is one line and status 1, and names what may have been meant."""

    def parse(self, argv: list[str]) -> argparse.Namespace:
        """The arguments; UserError for what is unknown or left over."""
        return self.parse_known_args(argv)[0]

    def parse_known_args(self, args=None, namespace=None):  # pyright: ignore[reportIncompatibleMethodOverride]
        """Argparse's, by which a command's parser is called too: what is left over is this parser's to explain."""
        given, rest = super().parse_known_args(args, namespace)
        if rest:
            self.error(self._unexpected(rest[0]))
        return given, rest

    def error(self, message: str) -> NoReturn:
        """What argparse calls for a bad command line."""
        raise UserError(message)

    def flags(self) -> list[str]:
        """The long flags."""
        return [flag for action in self._actions for flag in action.option_strings if flag.startswith("--")]

    def _unexpected(self, argument: str) -> str:
        name = argument.partition("=")[0]
        if name.startswith("-"):
            return unknown("flag", name, self.flags())
        takes = " ".join(str(action.metavar) for action in self._actions if not action.option_strings)
        return f"{self.prog} takes {takes or 'flags only'}, got {argument!r} as well"


def _keep_traceback(name: str, error: Exception) -> str:
    """What went wrong in a line, and where the rest of it is."""
    try:
        with tempfile.NamedTemporaryFile("w", prefix=f"{name}-", suffix=".traceback.txt", delete=False) as file:
            file.write("".join(traceback.format_exception(error)))
    except OSError as full:
        return f"{type(error).__name__}: {error}; its traceback can't be kept: {full.strerror}"
    return f"{type(error).__name__}: {error}; the traceback is in {file.name}"
