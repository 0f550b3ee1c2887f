"""Runs random programs for a while: `make fuzz MINUTES=60`.

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

from fuzz_check import check
from fuzz_programs import Program, programs
from hypothesis import HealthCheck, Phase, given, seed, settings

ROUND = 40


def run_round(number: int, until: float, counts: Counter[str]) -> None:
    """ROUND programs, under every variant; raises for the smallest one that is wrong."""

    @seed(number)
    @settings(
        max_examples=ROUND,
        deadline=None,
        database=None,
        suppress_health_check=list(HealthCheck),
        phases=[Phase.generate, Phase.shrink],
    )
    @given(programs())
    def run(program: Program) -> None:
        if time.time() < until or counts["shrinking"]:
            counts["programs"] += not counts["shrinking"]
            counts.update({f"op {step.op}": 1 for step in program.steps})
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
    until, number, counts = time.time() + 60 * minutes, first, Counter()
    while time.time() < until:
        run_round(number, until, counts)
        number += 1
        print(f"{counts['programs']} programs, {counts['findings']} findings", file=sys.stderr, flush=True)
    kinds = sum(name.startswith("op ") for name in counts)
    print(f"{counts['programs']} programs of {kinds} kinds of operations, {counts['findings']} findings")
    return min(counts["findings"], 1)


if __name__ == "__main__":
    warnings.simplefilter("ignore")
    logging.disable(logging.ERROR)
    sys.exit(main(float(sys.argv[1]), int(sys.argv[2]) if len(sys.argv) > 2 else int(time.time())))
