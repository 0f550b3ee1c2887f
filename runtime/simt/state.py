"""What a running kernel holds: a value a slot, and which lanes take part.

A value is an array whose first axis is the lanes, or has one element that stands for all of them; a vector's own axes
follow. Lanes that don't take part hold anything.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from functools import cached_property
from typing import TYPE_CHECKING

import numpy as np

from ...dialects.mlir import ir
from .grid import Array, Batch

if TYPE_CHECKING:
    from .memory import MemRef
    from .ops_copies import Copy


class Active:
    """The lanes of a batch that take part; `mask` of None: all do."""

    def __init__(self, batch: Batch, mask: Array | None = None) -> None:
        self.batch = batch
        self.mask = mask

    @cached_property
    def numbers(self) -> Array:
        """Their numbers in the batch."""
        return np.arange(self.batch.size) if self.mask is None else np.flatnonzero(self.mask)

    @cached_property
    def lanes(self) -> Array:
        """Their numbers in the launch."""
        return self.batch.lanes if self.mask is None else self.batch.lanes[self.numbers]

    def among(self, condition: Array) -> Active:
        """Those for which a condition holds."""
        mask = condition if self.mask is None else self.mask & condition
        return Active(self.batch, np.broadcast_to(mask, self.batch.size))

    def any(self) -> bool:
        """Whether there is one."""
        return self.mask is None or bool(self.mask.any())

    def pick(self, values: Array) -> Array:
        """The values of these lanes only; one that stands for all stays one."""
        return values if self.mask is None or len(values) == 1 else values[self.numbers]

    def spread(self, picked: Array) -> Array:
        """The reverse: these lanes' values, and 0 for the others."""
        if self.mask is None or len(picked) == 1:
            return picked
        values = np.zeros((self.batch.size, *picked.shape[1:]), picked.dtype)
        values[self.numbers] = picked
        return values

    def choose(self, new: Array, old: Array) -> Array:
        """New values for these lanes, old ones for the others."""
        if self.mask is None or not isinstance(new, np.ndarray):
            return new
        return np.where(self.mask.reshape(-1, *[1] * (new.ndim - 1)), new, old)


@dataclass
class State:
    """A batch of blocks while it runs."""

    frame: list
    active: Active
    granule: int
    """Bytes of the smallest element that the kernel accesses."""
    shared: list[MemRef]
    """Memory that each block has: the function's attributions in order, and last what the launch asked for."""
    remote: list[tuple[ir.Operation, Array, Array]] = field(default_factory=list)
    """Accesses of other blocks' shared memory: the operation, clusters, and how often these had arrived."""
    copies: list[Copy] = field(default_factory=list)
    """Asynchronous copies that no thread has waited for."""
    groups: Array = field(init=False)
    """How many groups of such copies each lane has ended."""

    def __post_init__(self) -> None:
        self.groups = np.zeros(self.batch.size, np.int64)

    @property
    def batch(self) -> Batch:
        """The blocks that run."""
        return self.active.batch

    @contextmanager
    def only(self, active: Active) -> Iterator[None]:
        """Runs what follows for some lanes."""
        before, self.active = self.active, active
        try:
            yield
        finally:
            self.active = before
