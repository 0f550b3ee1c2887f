"""An order of steps with a low peak of live bytes: list scheduling by what a step adds to the live bytes.

Among the steps whose predecessors have run, the next is the one that adds least: what it makes, less what dies with
it because nobody else is left to use it. Of equals, the one that became ready last, which finishes what was begun
before beginning something else:

    two chains of a big and a small value      a1 -> b1, a2 -> b2
    source order   a1 a2 b1 b2                 both big values are live at once
    this order     a1 b1 a2 b2                 b1 frees a1, so it comes before a2

That is not always the best order, which is hard to find; who calls compares the peaks and keeps the better order.
What a step adds changes when it becomes the last user of something; its entry in the heap is then made anew, so all
of it costs n log n.
"""

from __future__ import annotations

import heapq
from collections.abc import Collection, Sequence

from .peak import Step


def low_peak_order(
    steps: Sequence[Step],
    predecessors: Sequence[Collection[int]],
    sizes: Sequence[int],
    kept: Collection[int],
) -> list[int]:
    """The numbers of the steps in a valid order."""
    return _Scheduler(steps, predecessors, sizes, kept).run()


class _Scheduler:
    """One run of list scheduling."""

    def __init__(
        self,
        steps: Sequence[Step],
        predecessors: Sequence[Collection[int]],
        sizes: Sequence[int],
        kept: Collection[int],
    ) -> None:
        self.steps = steps
        self.sizes = sizes
        self.missing = [len(set(before)) for before in predecessors]
        self.successors: list[list[int]] = [[] for _ in steps]
        for number, before in enumerate(predecessors):
            for other in set(before):
                self.successors[other].append(number)
        self.users: dict[int, set[int]] = {memory: set() for step in steps for memory in step.makes}
        for number, step in enumerate(steps):
            for memory in (*step.touches, *step.makes):
                if memory in self.users and memory not in kept:
                    self.users[memory].add(number)
        self.ready: dict[int, int] = {}
        self.heap: list[tuple[int, int, int]] = []

    def run(self) -> list[int]:
        order: list[int] = []
        for number, missing in enumerate(self.missing):
            if missing == 0:
                self._make_ready(number, -number)
        while self.heap:
            adds, _, number = heapq.heappop(self.heap)
            if number in self.ready and self._adds(number) == adds:
                order.append(number)
                self._finish(number, len(order))
        return order

    def _make_ready(self, number: int, age: int) -> None:
        self.ready[number] = age
        heapq.heappush(self.heap, (self._adds(number), -age, number))

    def _adds(self, number: int) -> int:
        """By how much the live bytes are more after a step than before it."""
        step = self.steps[number]
        dying = {memory for memory in (*step.touches, *step.makes) if self.users.get(memory) == {number}}
        return sum(self.sizes[m] for m in step.makes) - sum(self.sizes[m] for m in dying)

    def _finish(self, number: int, time: int) -> None:
        del self.ready[number]
        step = self.steps[number]
        for memory in dict.fromkeys((*step.touches, *step.makes)):
            users = self.users.get(memory)
            if users:
                users.discard(number)
                last = next(iter(users)) if len(users) == 1 else None
                if last is not None and last in self.ready:
                    self._make_ready(last, self.ready[last])
        for other in self.successors[number]:
            self.missing[other] -= 1
            if self.missing[other] == 0:
                self._make_ready(other, time)
