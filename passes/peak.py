"""How many bytes are live while a program runs, for any order of its steps.

A *step* is what runs at once: a kernel or a library call. It reads memories and writes memories, all of
which are live while it runs. Memories are numbers, with their sizes in bytes; one that no step writes first
is an input (an argument, a weight, a constant) and costs nothing. A memory is live from the step that makes
it to its last use, or to the end if it is kept (a result of the program). Views are no steps of interest:
whoever touches a view touches the memory that it is in, which is how that stays alive.

    steps   c = kernel(a)     d = call(c)      e = kernel(a, c)       a is an input, d and e are kept
    live    c                 c + d            c + d + e

A kernel may besides write over what it reads last; fusion-plan-memory decides that and it only lowers the
peak, so it is not counted here.
"""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import dataclass


@dataclass(frozen=True)
class Step:
    """What one kernel or call touches (reads, or writes in place) and makes."""

    touches: tuple[int, ...]
    makes: tuple[int, ...]


def profile_of(steps: Sequence[Step], sizes: Sequence[int], kept: Collection[int] = ()) -> list[int]:
    """The live bytes at each step."""
    last = last_uses(steps, kept)
    live, profile = 0, []
    for position, step in enumerate(steps):
        live += sum(sizes[memory] for memory in step.makes)
        profile.append(live)
        touched = dict.fromkeys((*step.touches, *step.makes))
        live -= sum(sizes[memory] for memory in touched if last.get(memory) == position)
    return profile


def peak_of(steps: Sequence[Step], sizes: Sequence[int], kept: Collection[int] = ()) -> int:
    """The most bytes live at any step."""
    return max(profile_of(steps, sizes, kept), default=0)


def last_uses(steps: Sequence[Step], kept: Collection[int]) -> dict[int, int]:
    """The last step to touch each memory that some step makes; past the end for what is kept."""
    last: dict[int, int] = {}
    for position, step in enumerate(steps):
        last.update(dict.fromkeys(step.makes, position))
        last.update((memory, position) for memory in step.touches if memory in last)
    last.update((memory, len(steps)) for memory in kept if memory in last)
    return last
