"""scf and cf: control flow of lanes in lockstep.

Both ways of a branch are taken, each for its lanes, and a loop runs until its last lane is done; what no lane takes is
not run at all.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from ...dialects.mlir import ir
from .compiler import Body, Compiler, Step, Table
from .elements import Array
from .errors import TrapError, threads_text
from .ops_arith import as_unsigned
from .state import Active, State


def _if(compiler: Compiler, op: ir.Operation) -> Step:
    condition = compiler.use(op.operands[0])
    bodies = [compiler.body(region.blocks[0]) for region in op.regions if len(region.blocks)]
    results = [compiler.define(result) for result in op.results]

    def step(state: State) -> None:
        holds, frame = state.frame[condition], state.frame
        if len(holds) == 1:
            chosen = bodies[0] if holds[0] else bodies[1] if len(bodies) > 1 else None
            found = _run(state, chosen, state.active) if chosen else []
        else:
            found = _branch(state, bodies, state.active.among(holds), state.active.among(~holds))
        for result, value in zip(results, found, strict=True):
            frame[result] = value

    return step


def _branch(state: State, bodies: Sequence[Body], then: Active, otherwise: Active) -> list:
    """Runs both ways; the results of each for its lanes."""
    if not then.any():
        return _run(state, bodies[1], otherwise) if len(bodies) > 1 else []
    first = _run(state, bodies[0], then)
    if len(bodies) == 1 or not otherwise.any():
        return first
    second = _run(state, bodies[1], otherwise)
    return [then.choose(one, other) for one, other in zip(first, second, strict=True)]


def _run(state: State, body: Body, active: Active) -> list:
    with state.only(active):
        body.run(state)
    return [state.frame[slot] for slot in body.results]


def _for(compiler: Compiler, op: ir.Operation) -> Step:
    low, high, by, *first = compiler.uses(op.operands)
    body = compiler.body(op.regions[0].blocks[0])
    results = [compiler.define(result) for result in op.results]
    read = as_unsigned if "unsignedCmp" in op.attributes else np.asarray
    number, *carried = body.arguments

    def step(state: State) -> None:
        frame = state.frame
        at, end, stride = frame[low], frame[high], frame[by]
        values = [frame[slot] for slot in first]
        while (active := _still(state, read(at) < read(end))) is not None:
            frame[number] = at
            for slot, value in zip(carried, values, strict=True):
                frame[slot] = value
            values = _merge(active, state, _run(state, body, active), values)
            at = at + stride
        for slot, value in zip(results, values, strict=True):
            frame[slot] = value

    return step


def _still(state: State, goes_on: Array) -> Active | None:
    """The lanes that a loop goes on for; None if there are none."""
    if len(goes_on) == 1:
        return state.active if goes_on[0] else None
    active = state.active.among(goes_on)
    return active if active.any() else None


def _merge(active: Active, state: State, new: Sequence, old: Sequence) -> list:
    """The loop's values: new for lanes that went on, the others keep theirs."""
    if active is state.active:
        return list(new)
    return [active.choose(one, other) for one, other in zip(new, old, strict=True)]


def _while(compiler: Compiler, op: ir.Operation) -> Step:
    first = compiler.uses(op.operands)
    before, after = (compiler.body(region.blocks[0]) for region in op.regions)
    results = [compiler.define(result) for result in op.results]

    def step(state: State) -> None:
        frame, outer = state.frame, state.active
        values, done, active = [frame[slot] for slot in first], None, outer
        while True:
            for slot, value in zip(before.arguments, values, strict=True):
                frame[slot] = value
            condition, *passed = _run(state, before, active)
            done = passed if done is None else _merge(active, state, passed, done)
            active = active.among(condition)
            if not active.any():
                break
            for slot, value in zip(after.arguments, passed, strict=True):
                frame[slot] = value
            values = [active.choose(one, other) for one, other in zip(_run(state, after, active), values, strict=True)]
        for slot, value in zip(results, done, strict=True):
            frame[slot] = value

    return step


def _assert(compiler: Compiler, op: ir.Operation) -> Step:
    condition, message = compiler.use(op.operands[0]), ir.StringAttr(op.attributes["msg"]).value

    def step(state: State) -> None:
        failed = state.active.among(~state.frame[condition])
        if failed.any():
            place = state.batch.grid.place(failed.lanes[0])
            raise TrapError("assertion", op, message, threads_text([place], len(failed.lanes)))

    return step


OPS: Table = {"scf.if": _if, "scf.for": _for, "scf.while": _while, "cf.assert": _assert}
