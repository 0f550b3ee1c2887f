"""What the caches of the compiler are made of: counts by stage, and a memory in which each thing is made once.

Keys are digests of contents (fingerprint.py), so an entry can't be stale, and what is evicted is only made again.
"""

from __future__ import annotations

import threading
from collections import OrderedDict
from collections.abc import Callable
from concurrent.futures import Future
from dataclasses import dataclass
from typing import Generic, TypeVar

Made = TypeVar("Made")

STAGES = ("fusion", "segment", "schedule", "codegen", "kernels")
"""What is counted: the stages that options affect, and the machine code of single kernels."""


@dataclass(frozen=True)
class Count:
    """How often a stage's result was there, in this process or on disk, and how often the stage ran."""

    hits: int = 0
    misses: int = 0
    disk_hits: int = 0
    """Those of the hits that came from the disk."""


class CountTable(dict[str, Count]):
    """Counts by stage; printed, a table."""

    def __repr__(self) -> str:
        """A line a stage."""
        lines = [f"{'stage':<10}{'hits':>8}{'of disk':>9}{'misses':>8}"]
        lines += [f"{name:<10}{one.hits:>8}{one.disk_hits:>9}{one.misses:>8}" for name, one in self.items()]
        return "\n".join(lines) + "\n"

    __str__ = __repr__


class Counts:
    """The counts of one compiled program, or of the whole process."""

    def __init__(self) -> None:
        """Nothing has been asked for."""
        self._lock = threading.Lock()
        self._counts: dict[str, Count] = dict.fromkeys(STAGES, Count())

    def hit(self, stage: str, from_disk: bool = False) -> None:
        """A result was there."""
        with self._lock:
            old = self._counts[stage]
            self._counts[stage] = Count(old.hits + 1, old.misses, old.disk_hits + from_disk)

    def miss(self, stage: str) -> None:
        """A stage ran."""
        with self._lock:
            old = self._counts[stage]
            self._counts[stage] = Count(old.hits, old.misses + 1, old.disk_hits)

    def table(self) -> CountTable:
        """By stage."""
        with self._lock:
            return CountTable(self._counts)


class Memory(Generic[Made]):
    """Things by key, made once even by several threads; beyond `limit`, in units of `cost`, the unused go."""

    def __init__(self, limit: int, cost: Callable[[Made], int] = lambda _: 1) -> None:
        """An empty one."""
        self._limit, self._cost = limit, cost
        self._lock = threading.Lock()
        self._entries: OrderedDict[str, Future[Made]] = OrderedDict()
        self._costs: dict[str, int] = {}

    def get_or_make(self, key: str, make: Callable[[], Made]) -> tuple[Made, bool]:
        """What is there, waiting for a thread that is making it, or what `make` makes; and whether it was there."""
        while True:
            with self._lock:
                entry = self._entries.get(key)
                if entry is None:
                    ours: Future[Made] = Future()
                    self._entries[key] = ours
                    break
                self._entries.move_to_end(key)
            if entry.exception() is None:
                return entry.result(), True
        return self._make(key, ours, make), False

    def clear(self) -> None:
        """Forgets everything."""
        with self._lock:
            self._entries.clear()
            self._costs.clear()

    def _make(self, key: str, entry: Future[Made], make: Callable[[], Made]) -> Made:
        try:
            made = make()
        except BaseException as error:
            with self._lock:
                self._entries.pop(key, None)
            entry.set_exception(error)
            raise
        entry.set_result(made)
        with self._lock:
            self._costs[key] = self._cost(made)
            self._evict()
        return made

    def _evict(self) -> None:
        total = sum(self._costs.values())
        for key in list(self._entries):
            if total <= self._limit or len(self._costs) <= 1:
                return
            if key in self._costs:
                total -= self._costs.pop(key)
                del self._entries[key]
