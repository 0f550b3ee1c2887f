"""The bytes that are live in each slot of `Groups`, kept up to date as groups move and merge.

`allows` is the memory-aware question: with these two groups as one in that slot, and those others moved,
does the profile stay within the limit? The limit is the peak of the source order, where the profile starts,
so whatever is merged, the plan's peak never exceeds the source's: there is nothing to undo.

Only memories that the moved groups touch change. Each is live over an interval of slots: from its maker to
its last user, or past the end if it is returned; a value that only its own group uses is no memory at all.
The profile is a numpy array, to which an interval is added or from which it is taken at once.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence

import numpy as np

from .ceiling import Ceiling
from .graph import Graph
from .groups import Groups

Interval = tuple[int, int]
Change = tuple[int, Interval | None, Interval | None]


class LiveProfile:
    """Live bytes by size class and slot, below the ceiling everywhere."""

    def __init__(self, groups: Groups, ceiling: Ceiling) -> None:
        self.groups = groups
        self.ceiling = ceiling
        self.sizes = ceiling.classes.bytes
        self.aliases = _aliases(groups.graph)
        self.kept = {groups.graph.memory[value] for value in groups.graph.returned}
        self.intervals: list[Interval | None] = [None] * len(self.sizes)
        self.bytes = np.zeros((ceiling.classes.count if ceiling.decides else 1, len(groups.at)), dtype=np.int64)
        self.rebuild()

    def rebuild(self) -> None:
        """Takes all intervals anew from the slots."""
        changes = np.zeros((self.bytes.shape[0], self.bytes.shape[1] + 1), dtype=np.int64)
        for memory, size in enumerate(self.sizes):
            interval = self._interval(memory, {}, ()) if self._counts(memory) else None
            self.intervals[memory] = interval
            if interval is not None:
                row = self._row(memory)
                changes[row, interval[0]] += size
                changes[row, interval[1] + 1] -= size
        self.bytes[:] = np.cumsum(changes, axis=1)[:, :-1]

    def peak(self) -> int:
        return int(self.bytes.max(initial=0))

    def allows(self, first: int, second: int, slots: Mapping[int, int]) -> bool:
        """Whether two groups may be one, with groups moved to `slots`; if so the profile is changed to that."""
        return self._try(self._changes((first, second), slots))

    def allows_readers(self, gained: Mapping[int, Collection[int]], lost: int) -> bool:
        """Whether memories may have gained these readers and one may have lost some; if so the profile follows."""
        slot = self.groups.slot
        changes = [(lost, self.intervals[lost], self._interval(lost, {}, ()))] if self._counts(lost) else []
        for memory, readers in gained.items():
            old = self.intervals[memory]
            if self._counts(memory) and old is not None and memory != lost:
                changes.append((memory, old, (old[0], max(old[1], *(slot[reader] for reader in readers)))))
        return self._try([change for change in changes if change[1] != change[2]])

    def _try(self, changes: Sequence[Change]) -> bool:
        """Makes changes, unless the profile would exceed its limit."""
        for change in changes:
            self._apply(change)
        grown = [part for _, old, new in changes for part in _grown(old, new)]
        if not grown:
            return True
        low, high = min(start for start, _ in grown), max(end for _, end in grown)
        if self.ceiling.admits(self.bytes[:, low : high + 1]):
            return True
        for memory, old, new in changes:
            self._apply((memory, new, old))
        return False

    def _counts(self, memory: int) -> bool:
        """Whether a memory is one that the program allocates."""
        return bool(self.aliases[memory]) and self.sizes[memory] > 0

    def _changes(self, pair: tuple[int, int], slots: Mapping[int, int]) -> list[Change]:
        graph, groups = self.groups.graph, self.groups
        memories: set[int] = set()
        for group in (group for group, slot in slots.items() if slot != groups.slot[group]):
            memories.update(graph.memory[value] for value in groups.reads[group])
            memories.update(graph.memory[value] for value in groups.escaping[group])
        found = []
        for memory in memories:
            if self._counts(memory):
                old, new = self.intervals[memory], self._interval(memory, slots, pair)
                if old != new:
                    found.append((memory, old, new))
        return found

    def _apply(self, change: Change) -> None:
        """Changes the profile where the old and the new interval differ."""
        memory, old, new = change
        self.intervals[memory] = new
        if old is None or new is None:
            low, high = old or new or (0, -1)
            self._add(memory, low, high + 1, 1 if old is None else -1)
            return
        self._add(memory, new[0], old[0], 1)
        self._add(memory, old[0], new[0], -1)
        self._add(memory, old[1] + 1, new[1] + 1, 1)
        self._add(memory, new[1] + 1, old[1] + 1, -1)

    def _add(self, memory: int, start: int, end: int, times: int) -> None:
        if start < end:
            self.bytes[self._row(memory), start:end] += times * self.sizes[memory]

    def _row(self, memory: int) -> int:
        return self.ceiling.classes.of[memory] if self.ceiling.decides else 0

    def _interval(self, memory: int, slots: Mapping[int, int], pair: Sequence[int]) -> Interval | None:
        """Where a memory is live once groups are in `slots` and the `pair` is one group."""
        groups = self.groups
        slot = groups.slot
        maker = groups.of[groups.graph.makers[memory]]
        start = slots[maker] if maker in slots else slot[maker]
        if memory in self.kept:
            return start, len(groups.at) - 1
        own = pair if maker in pair else (maker,)
        if slots:
            known = self._last_user_if_simple(memory, slots, own)
            if known is not None:
                return start, known
        last = -1
        for user in self._users(memory):
            if user not in own:
                last = max(last, slots[user] if user in slots else slot[user])
        if last < 0:
            return None if groups.graph.nodes[groups.graph.makers[memory]].fusible else (start, start)
        return start, last

    def _users(self, memory: int) -> Iterable[int]:
        """The groups that use a memory, through whatever alias."""
        groups, aliases = self.groups, self.aliases[memory]
        if len(aliases) == 1:
            return groups.readers[memory]
        users = [reader for value in aliases for reader in groups.readers[value]]
        return users + [groups.of[groups.graph.makers[value]] for value in aliases[1:]]

    def _last_user_if_simple(self, memory: int, slots: Mapping[int, int], own: Sequence[int]) -> int | None:
        """A shortcut, without looking at all users, for a memory whose last one stays or moves to a later slot."""
        groups, old = self.groups, self.intervals[memory]
        readers = groups.readers[memory]
        if old is None or not readers or len(self.aliases[memory]) > 1:
            return None
        last = old[1]
        few, many = (slots, readers) if len(slots) < len(readers) else (readers, slots)
        for group in few:
            if group in many:
                if groups.slot[group] == old[1] and (slots[group] < old[1] or group in own):
                    return None
                last = max(last, slots[group])
        return last


def _grown(old: Interval | None, new: Interval | None) -> Iterator[Interval]:
    """The slots of `new` that are not in `old`."""
    if new is None:
        return
    if old is None or old[1] < new[0] or new[1] < old[0]:
        yield new
        return
    if new[0] < old[0]:
        yield new[0], old[0] - 1
    if old[1] < new[1]:
        yield old[1] + 1, new[1]


def _aliases(graph: Graph) -> list[list[int]]:
    """By memory: the values in it, first the one it was made for; none if the program does not allocate it."""
    aliases: list[list[int]] = [[] for _ in graph.values]
    for value, memory in enumerate(graph.memory):
        if graph.is_intermediate(memory):
            aliases[memory].append(value)
    return aliases
