"""Runs random programs for a while, of PyTorch and of linalg in turn: `make fuzz MINUTES=60`.

    python fuzz.py MINUTES [SEED]

Each round has a seed of its own, from the clock where none is given. What is found is shrunk, printed (the program is
an entry for test_fuzz_found.py) and counted; the status is 1 if there was anything.
"""

from __future__ import annotations

import logging
import sys
import time
import warnings
from collections import Counter
from collections.abc import Callable, Sequence
from typing import Protocol

import fuzz_check
import fuzz_programs
import linalg_check
import linalg_programs
from hypothesis import HealthCheck, Phase, given, seed, settings
from hypothesis.strategies import SearchStrategy

ROUND = 40


class Named(Protocol):
    """A step of a program of either kind."""

    @property
    def name(self) -> str:
        """The operation."""
        ...


class Drawn(Protocol):
    """A program of either kind."""

    @property
    def steps(self) -> Sequence[Named]:
        """Its operations."""
        ...


def run_round(
    number: int, until: float, counts: Counter[str], drawn: SearchStrategy, check: Callable[[Drawn], None]
) -> None:
    """ROUND programs, under every variant; prints the smallest one that is wrong."""

    @seed(number)
    @settings(
        max_examples=ROUND,
        deadline=None,
        database=None,
        suppress_health_check=list(HealthCheck),
        phases=[Phase.generate, Phase.shrink],
    )
    @given(drawn)
    def run(program: Drawn) -> None:
        if time.time() < until or counts["shrinking"]:
            counts["programs"] += not counts["shrinking"]
            counts.update({f"op {step.name}": 1 for step in program.steps})
            try:
                check(program)
            except BaseException:
                counts["shrinking"] = 1
                raise

    try:
        run()
    except BaseException as error:
        if isinstance(error, KeyboardInterrupt):
            raise
        counts["findings"] += 1
        notes = "\n".join(getattr(error, "__notes__", []))
        print(f"seed {number}: {type(error).__name__}: {str(error)[:2000]}\n{notes}", flush=True)
    counts["shrinking"] = 0


def main(minutes: float, first: int) -> int:
    """Rounds until the time is up."""
    until, number, counts = time.time() + 60 * minutes, first, {"PyTorch": Counter(), "linalg": Counter()}
    while time.time() < until:
        run_round(number, until, counts["PyTorch"], fuzz_programs.programs(), fuzz_check.check)
        run_round(number, until, counts["linalg"], linalg_programs.programs(), linalg_check.check)
        number += 1
        print(_summary(counts), file=sys.stderr, flush=True)
    print(_summary(counts))
    return min(sum(each["findings"] for each in counts.values()), 1)


def _summary(counts: dict[str, Counter[str]]) -> str:
    lines = []
    for level, each in counts.items():
        kinds = sum(name.startswith("op ") for name in each)
        lines.append(f"{each['programs']} {level} programs of {kinds} kinds of operations, {each['findings']} findings")
    return "; ".join(lines)


if __name__ == "__main__":
    warnings.simplefilter("ignore")
    logging.disable(logging.ERROR)
    sys.exit(main(float(sys.argv[1]), int(sys.argv[2]) if len(sys.argv) > 2 else int(time.time())))
