"""Finds what makes a script fail: the first fusion, then the first optional pass. `mlir-fusion bisect` runs it.

The script is run again and again, each time in a new process whose environment sets options. First with fewer and
fewer fusions (`optimization_fuel`): there is one, N, with which it fails while with N - 1 it succeeds. Then, with
these N, the optional parts of the passes are switched off and, in the order of the pipeline, on again, until it
fails. Which options are parts of which passes is asked of driver/stages.py.
"""

from __future__ import annotations

import os
import subprocess
import sys
import tempfile
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from ..driver.errors import UserError
from ..driver.options import VARIABLES, Options, Settings, Value, declarations
from ..driver.stages import stages
from ..passes import PASSES
from ..passes.pass_base import Pass, print_value

FUEL = "optimization_fuel"
MOST_FUSIONS = 1 << 20
FUSION_PASSES = ("fusion-consecutive", "fusion-dataflow", "fusion-none")

# Runs a script as python does, with what the fusion pass says of its last fusion written to a file
RUN_SCRIPT = """
import logging, os, runpy, sys
log, *sys.argv = sys.argv[1:]
sys.path[0] = os.path.dirname(os.path.abspath(sys.argv[0]))
logger = logging.getLogger("mlir_fusion.fuel")
logger.addHandler(logging.FileHandler(log))
logger.setLevel(logging.INFO)
runpy.run_path(sys.argv[0], run_name="__main__")
"""

Changes = Mapping[str, Value]
"""Options that differ from what the script has without us."""
Fails = Callable[[Changes], bool]


@dataclass(frozen=True)
class Part:
    """An optional part of a pass, and the option that switches it."""

    option: str
    off: Value
    passes: tuple[str, ...]


@dataclass(frozen=True)
class Verdict:
    """The least that fails, and what it has that the next lesser doesn't."""

    changes: Changes
    fusions: int
    part: Part | None
    """None if the fusions alone, or what is not optional, do."""


def find(parts: Sequence[Part], fails: Fails) -> Verdict:
    """What makes `fails` true; UserError if it is not true of no changes."""
    if not fails({}):
        raise UserError("the script succeeds, so there is nothing to find")
    fusions = _first_fusion(fails)

    def with_parts(count: int) -> Changes:
        return {FUEL: fusions, **{part.option: part.off for part in parts[count:]}}

    count = _least(0, len(parts), lambda count: fails(with_parts(count)))
    return Verdict(with_parts(count), fusions, parts[count - 1] if count else None)


def optional_parts(options: Options) -> list[Part]:
    """The options that switch a part of a pass other than the fusion pass, on now, in the pipeline's order."""
    found = []
    for option in declarations():
        if option.off is None or getattr(options, option.name) == option.off:
            continue
        passes = tuple(_different_passes(options, replace(options, **{option.name: option.off})))
        if passes and not any(name in FUSION_PASSES for name in passes):
            found.append(Part(option.name, option.off, passes))
    order = list(PASSES)
    return sorted(found, key=lambda part: min(map(order.index, part.passes)))


def bisect(script: Path, arguments: Sequence[str]) -> str:
    """The verdict on a script, in words."""
    settings = Settings.from_environment(os.environ)
    with tempfile.TemporaryDirectory(prefix="mlir-fusion-bisect-") as folder:
        log = Path(folder, "fuel.log")

        def fails(changes: Changes) -> bool:
            log.unlink(missing_ok=True)
            command = [sys.executable, "-c", RUN_SCRIPT, str(log), str(script), *arguments]
            environment = _environment(settings.then(Settings(changes)))
            done = subprocess.run(command, env=environment, capture_output=True, check=False)
            print(f"{_text(changes) or 'as it is'}: {'fails' if done.returncode else 'succeeds'}", file=sys.stderr)
            return done.returncode != 0

        verdict = find(optional_parts(settings.apply(Options())), fails)
        fails(verdict.changes)
        notes = best_located(log.read_text().splitlines()) if log.exists() else []
    return describe(verdict, notes)


def best_located(notes: Sequence[str]) -> list[str]:
    """The notes, once each; without those that know no source where others do, for the same program."""
    located = [note for note in notes if "loc(unknown)" not in note and 'loc("-"' not in note]
    return sorted(set(located or notes))


def describe(verdict: Verdict, notes: Sequence[str]) -> str:
    """What was found, and how to see it again."""
    lines = ["It fails without any fusion."]
    if verdict.fusions:
        lines = [f"It fails with {_fusions(verdict.fusions)}, and not with {verdict.fusions - 1}.", *notes]
    if verdict.part is not None:
        passes = " or ".join(verdict.part.passes)
        lines.append(f"The first pass that makes it fail: {passes}, by option {verdict.part.option}.")
    elif verdict.fusions:
        lines.append("The first pass that makes it fail is the fusion pass: no optional part of another one is needed.")
    else:
        lines.append("No optional part of a pass is needed for that.")
    return "\n".join([*lines, f"To repeat: MLIR_FUSION_OPTIONS={_text(verdict.changes)}"]) + "\n"


def _fusions(number: int) -> str:
    return "1 fusion" if number == 1 else f"{number} fusions"


def _first_fusion(fails: Fails) -> int:
    """The least number of fusions that fail."""
    if fails({FUEL: 0}):
        return 0
    enough = 1
    while not fails({FUEL: enough}):
        enough *= 2
        if enough > MOST_FUSIONS:
            raise UserError(
                "the script failed, but succeeds with any number of fusions: it does not always do the same"
            )
    return _least(enough // 2 + 1, enough, lambda fusions: fails({FUEL: fusions}))


def _least(low: int, high: int, fails: Callable[[int], bool]) -> int:
    """The least number from `low` to `high` that fails; `high` does."""
    while low < high:
        middle = (low + high) // 2
        if fails(middle):
            high = middle
        else:
            low = middle + 1
    return low


def _different_passes(one: Options, other: Options) -> Iterator[str]:
    """The passes whose options differ, on the CPU or a GPU."""
    seen: dict[str, None] = {}
    for target in ("cpu", "sm_90"):
        pairs = zip(stages(replace(one, target=target)), stages(replace(other, target=target)), strict=True)
        for before, after in pairs:
            for step, changed in zip(before.passes, after.passes, strict=True):
                if step != changed and isinstance(step, Pass):
                    seen[step.name] = None
    yield from seen


def _environment(settings: Settings) -> Mapping[str, str]:
    """This process's, but with these settings, and no code from disk: a fusion pass that doesn't run says nothing."""
    environment = {name: value for name, value in os.environ.items() if name not in VARIABLES}
    environment["MLIR_FUSION_OPTIONS"] = _text({**settings.values, "disk_cache": False})
    return environment


def _text(changes: Changes) -> str:
    return ",".join(f"{name}={print_value(value)}" for name, value in changes.items())
