"""Makes one of equal operations, unless their result would then be held where there is no room for it.

A program that computes the same before and after a call holds neither result during the call. One computation for
both is held there, and no later pass gets below the peak that this may make:

    %a = exp(%x)                                     %a = exp(%x)                      held from here
    %b = fusion.extern(%a)        needs no %a   ->   %b = fusion.extern(%a)
    %c = exp(%x)                                     ...
    %d = fusion.extern(%b, %c)                       %d = fusion.extern(%b, %a)        to here

So an operation stands for an equal one behind it if its result is still needed there anyway, or if with it the bytes
live in between stay within the peak that the program has. With dynamic sizes only the former is asked. MLIR's `cse`,
which knows nothing of memory, is kept from doing the same by `number`.

Needs a function of nodes and free operations; one of several blocks is left alone.
"""

from __future__ import annotations

from collections.abc import Iterable

import numpy as np

from ..dialects.mlir import ir
from . import graph, legality
from .generics import is_generic
from .graph import Graph, used_values
from .peak import last_uses, profile_of
from .plan import kept_memories, memory_sizes, source_steps
from .size_classes import size_classes

NUMBER = "fusion.number"


def number(operations: Iterable[ir.Operation]) -> None:
    """Makes operations different, so that none is taken for another, until `unnumber`."""
    for place, op in enumerate(operations):
        op.attributes[NUMBER] = ir.IntegerAttr.get(ir.IntegerType.get_signless(64), place)


def unnumber(operations: Iterable[ir.Operation]) -> None:
    """Takes back what `number` did."""
    for op in operations:
        del op.attributes[NUMBER]


def share_equal(function: ir.Operation) -> None:
    """Lets operations of a function's body stand for equal ones behind them, and erases those."""
    if len(function.regions[0].blocks) == 1:
        while _share(function):
            pass


def _share(function: ir.Operation) -> bool:
    """Whether one pass over the body found something to share; what it estimates is on the safe side."""
    source = graph.build(function)
    room = _Room(source)
    known: dict[object, list[ir.Operation]] = {}
    found = False
    for op in [view.operation for view in source.block.operations]:
        if not (is_generic(op) or legality.is_free(op)):
            continue
        alike = known.setdefault((op.name, *op.operands), [])
        equal = next((other for other in reversed(alike) if _are_equal(op, other)), None)
        if equal is None or (is_generic(op) and not room.takes(equal, op)):
            alike.append(op)
            continue
        for old, new in zip(op.results, equal.results, strict=True):
            old.replace_all_uses_with(new)
        op.erase()
        found = True
    return found


def _are_equal(one: ir.Operation, other: ir.Operation) -> bool:
    """Whether two operations of the same operands compute the same."""
    return used_values(one) == used_values(other) and _text(one) == _text(other)


def _text(op: ir.Operation) -> str:
    """An operation without the names of the values around it, which only one that stands alone is printed without."""
    alone = op.clone(ip=False)
    return alone.get_asm(use_local_scope=True, print_generic_op_form=True, assume_verified=True)


class _Room:
    """The bytes that are live at each node, and how long each memory is."""

    def __init__(self, source: Graph) -> None:
        self._graph = source
        self._sizes = memory_sizes(source)
        steps, kept = source_steps(source), kept_memories(source)
        self._last = last_uses(steps, kept)
        self._live = np.array(profile_of(steps, self._sizes, kept), dtype=np.int64)
        self._most = int(self._live.max(initial=0))
        self._is_static = size_classes(source).count == 1

    def takes(self, first: ir.Operation, second: ir.Operation) -> bool:
        """Whether what `first` makes may be held until nobody needs what `second` makes; if so, it is."""
        numbers, last = self._graph.numbers, self._last
        place = self._graph.makers[numbers[second.results[0]]]
        pairs = [(numbers[one], numbers[other]) for one, other in zip(first.results, second.results, strict=True)]
        freed = [value for value, _ in pairs if last[value] < place]
        between = self._live[min((last[value] + 1 for value in freed), default=place) : place]
        held = sum(self._sizes[value] for value in freed)
        if between.size and (not self._is_static or int(between.max()) + held > self._most):
            return False
        between += held
        last.update((value, max(last[value], last[again])) for value, again in pairs)
        return True
