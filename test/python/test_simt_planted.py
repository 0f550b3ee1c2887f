"""Bugs planted in the kernels of correct schedules: the checker reports every one, and nothing where there is none.

Each bug is a change to the GPU code of a program that a family of schedules runs: a barrier dropped, an index shifted,
a mask that lets more through, a tail without a guard, a wrong number of lanes.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import dataclass

import pytest
import torch
from gpu_code import constant_like, find, gpu_module, is_shared, run
from mlir_fusion.dialects.mlir import arith, ir, scf
from mlir_fusion.passes.schedules import FAMILIES
from mlir_fusion.runtime.simt.errors import KernelError
from programs import Program, rand
from test_programs import flatten

import mlir_fusion


def drop_barrier(module: ir.Module) -> None:
    """The last one."""
    find(module, "gpu.barrier")[-1].erase()


def drop_wait(module: ir.Module) -> None:
    """Blocks of a cluster don't wait, the last time they do, for what they write to each other."""
    find(module, "nvvm.cluster.wait")[-1].erase()


def skip_barrier(module: ir.Module) -> None:
    """Thread 0 goes past the last barrier."""
    (*_, barrier) = find(module, "gpu.barrier")
    (thread, *_) = find(module, "gpu.thread_id")
    with ir.InsertionPoint(barrier), barrier.location:
        zero = constant_like(thread.results[0], 0)
        thread_id = thread.clone(ip=ir.InsertionPoint(barrier)).results[0]
        branch = scf.IfOp(arith.CmpIOp(arith.CmpIPredicate.ne, thread_id, zero).result)
        with ir.InsertionPoint(branch.then_block):
            scf.YieldOp([])
        barrier.move_before(branch.then_block.operations[0])


def shift(op: ir.Operation, by: int) -> None:
    """The last index of a load or a store, by some elements."""
    last = len(op.operands) - 1
    with ir.InsertionPoint(op), op.location:
        moved = arith.AddIOp(op.operands[last], constant_like(op.operands[last], by)).result
    op.operands[last] = moved


def shift_store(by: int) -> Callable[[ir.Module], None]:
    """The last store to global memory."""
    return lambda module: shift(_accesses(module, "store", lambda op: not is_shared(op.operands[1]))[-1], by)


def shift_load(by: int) -> Callable[[ir.Module], None]:
    """The first load of global memory."""
    return lambda module: shift(_accesses(module, "load", lambda op: not is_shared(op.operands[0]))[0], by)


def shift_shared_store(by: int) -> Callable[[ir.Module], None]:
    """The first store to shared memory."""
    return lambda module: shift(_accesses(module, "store", lambda op: is_shared(op.operands[1]))[0], by)


def drop_guard(module: ir.Module) -> None:
    """What a store to global memory stands under is always run."""
    stores = _accesses(module, "store", lambda op: not is_shared(op.operands[1]))
    guard = next(op.parent.operation for op in stores if op.parent.operation.name == "scf.if")
    with ir.InsertionPoint(guard), guard.location:
        guard.operands[0] = constant_like(guard.operands[0], 1)


def loosen_guard(module: ir.Module) -> None:
    """The comparison that a store's guard is lets one more through."""
    stores = _accesses(module, "store", lambda op: not is_shared(op.operands[1]))
    guard = next(op.parent.operation for op in stores if op.parent.operation.name == "scf.if")
    compare = guard.operands[0].owner.operation
    with compare.context:
        i64 = ir.IntegerType.get_signless(64)
        compare.attributes["predicate"] = ir.IntegerAttr.get(i64, int(arith.CmpIPredicate.ule))


def drop_clamp(module: ir.Module) -> None:
    """The indices that are kept within bounds no longer are."""
    for clamp in find(module, "arith.minui"):
        clamp.results[0].replace_all_uses_with(clamp.operands[0])


def fewer_lanes(module: ir.Module) -> None:
    """Shuffles are told that half a warp takes part."""
    for shuffle in find(module, "gpu.shuffle"):
        with ir.InsertionPoint(shuffle), shuffle.location:
            shuffle.operands[2] = constant_like(shuffle.operands[2], 16)


def fewer_threads(module: ir.Module) -> None:
    """Blocks have half the threads."""
    launch = find(module, "gpu.launch_func")[0]
    with ir.InsertionPoint(launch), launch.location:
        threads = launch.operands[3].owner.attributes["value"].value  # pyright: ignore
        launch.operands[3] = constant_like(launch.operands[3], threads // 2)


def partial_warp(module: ir.Module) -> None:
    """Blocks lack the last thread."""
    launch = find(module, "gpu.launch_func")[0]
    with ir.InsertionPoint(launch), launch.location:
        threads = launch.operands[3].owner.attributes["value"].value  # pyright: ignore
        launch.operands[3] = constant_like(launch.operands[3], threads - 1)


def _accesses(module: ir.Module, kind: str, accepts: Callable[[ir.Operation], bool]) -> list[ir.Operation]:
    found = [*find(module, f"memref.{kind}", accepts), *find(module, f"vector.{kind}", accepts)]
    assert found, f"no {kind}"
    return found


@dataclass(frozen=True)
class Bug:
    """A change to a program's GPU code, and what the checker may call it."""

    program: str
    change: Callable[[ir.Module], None]
    kinds: set[str]

    def __str__(self) -> str:
        return f"{self.program}-{getattr(self.change, '__name__', 'change')}-{'-'.join(sorted(self.kinds))}"


def rows_and_columns(x: torch.Tensor) -> tuple[torch.Tensor, ...]:
    y = x.relu()
    return y, y.amax(1), y.amax(0)


PROGRAMS = {
    program.name: program
    for program in (
        Program("pointwise", lambda x, y: torch.relu(x) + y * 2, lambda: (rand(7, 143), rand(7, 143))),
        Program("pointwise_vector", lambda x, y: torch.relu(x) + y * 2, lambda: (rand(7, 144), rand(7, 144))),
        Program("pointwise_strided", lambda x: x * 2, lambda: (rand(20, 40)[::2, 3:34:3],)),
        Program("transpose", lambda x, y: x.t() + y, lambda: (rand(131, 71), rand(71, 131))),
        Program("transpose_vector", lambda x, y: x.t() * y, lambda: (rand(128, 192), rand(192, 128))),
        Program("inner_reduction_warp", lambda x: torch.softmax(x, -1), lambda: (rand(15, 100),)),
        Program("inner_reduction_block", lambda x: torch.softmax(x, -1), lambda: (rand(3, 4096),)),
        Program("inner_reduction_loop", lambda x: torch.softmax(x, -1), lambda: (rand(2, 50257),)),
        Program("inner_reduction_cluster", lambda x: torch.softmax(x, -1), lambda: (rand(2, 32768),)),
        Program("outer_reduction", lambda x: x.sum(0), lambda: (rand(333, 24),)),
        Program("row_and_column", rows_and_columns, lambda: (rand(800, 33),)),
        Program("generic", lambda x: x[:, ::2].sum(-1), lambda: (rand(13, 50),)),
    )
}

BUGS = [
    # Pointwise
    Bug("pointwise", drop_guard, {"bounds"}),
    Bug("pointwise", loosen_guard, {"bounds"}),
    Bug("pointwise", shift_store(1), {"alignment", "bounds", "incomplete"}),
    Bug("pointwise", shift_load(1), {"bounds"}),
    Bug("pointwise", fewer_threads, {"incomplete"}),
    Bug("pointwise_vector", shift_store(1), {"alignment", "bounds"}),
    Bug("pointwise_vector", shift_load(2), {"alignment", "bounds"}),
    Bug("pointwise_strided", shift_load(40), {"bounds"}),
    Bug("pointwise_strided", drop_guard, {"bounds"}),
    # Transposition through shared memory
    Bug("transpose", drop_barrier, {"race", "uninitialised"}),
    Bug("transpose", skip_barrier, {"barrier"}),
    Bug("transpose", drop_clamp, {"bounds"}),
    Bug("transpose_vector", shift_shared_store(4096), {"bounds"}),
    Bug("transpose_vector", shift_shared_store(1), {"alignment", "bounds"}),
    Bug("transpose_vector", fewer_threads, {"uninitialised", "incomplete"}),
    # Rows shared by a warp, by a block, in registers and in a loop
    Bug("inner_reduction_warp", fewer_lanes, {"shuffle"}),
    Bug("inner_reduction_warp", partial_warp, {"shuffle"}),
    Bug("inner_reduction_warp", shift_load(1), {"alignment", "bounds"}),
    Bug("inner_reduction_warp", drop_clamp, {"bounds"}),
    Bug("inner_reduction_block", drop_barrier, {"race", "uninitialised"}),
    Bug("inner_reduction_block", skip_barrier, {"barrier"}),
    Bug("inner_reduction_block", fewer_threads, {"uninitialised", "incomplete"}),
    Bug("inner_reduction_block", shift_shared_store(1), {"bounds", "uninitialised"}),
    Bug("inner_reduction_loop", shift_store(-1), {"bounds", "race", "incomplete"}),
    Bug("inner_reduction_cluster", drop_wait, {"race", "uninitialised"}),
    Bug("inner_reduction_cluster", fewer_threads, {"uninitialised", "incomplete"}),
    # Columns
    Bug("outer_reduction", drop_barrier, {"race", "uninitialised"}),
    Bug("outer_reduction", shift_shared_store(4), {"bounds", "race", "uninitialised"}),
    Bug("outer_reduction", drop_clamp, {"bounds"}),
    Bug("outer_reduction", fewer_lanes, {"shuffle"}),
    Bug("outer_reduction", fewer_threads, {"uninitialised", "incomplete"}),
    # Both in one kernel
    Bug("row_and_column", drop_barrier, {"race", "uninitialised"}),
    Bug("row_and_column", fewer_threads, {"uninitialised", "incomplete"}),
    # A thread an element
    Bug("generic", drop_guard, {"bounds"}),
    Bug("generic", shift_load(2), {"bounds"}),
]


@pytest.fixture(autouse=True)
def seed() -> None:
    torch.manual_seed(0)


@pytest.mark.parametrize("name", PROGRAMS)
def test_the_unbroken_program_is_clean(name: str) -> None:
    program = PROGRAMS[name]
    inputs = list(program.make())
    exact = program.function(*(tensor.double() for tensor in inputs))
    for found, wanted in zip(run(gpu_module(program.function, inputs), *inputs), flatten(exact), strict=True):
        torch.testing.assert_close(found.double(), wanted, rtol=1e-5, atol=1e-5)


@pytest.mark.parametrize("bug", BUGS, ids=str)
def test_a_planted_bug_is_found(bug: Bug) -> None:
    program = PROGRAMS[bug.program]
    inputs = list(program.make())
    module = gpu_module(program.function, inputs)
    bug.change(module)
    assert module.operation.verify()
    with pytest.raises(KernelError) as raised:
        run(module, *inputs)
    assert raised.value.kind in bug.kinds
    assert re.match(r'"[^"]+":\d+:\d+: error: ', str(raised.value))


def test_every_family_is_among_the_programs() -> None:
    """A schedule that the checker can't run may not be a default."""
    used = [name for program in PROGRAMS.values() for name in _families(program)]
    assert {family.name for family in FAMILIES} <= set(used)


def _families(program: Program) -> list[str]:
    torch._dynamo.reset()
    compiled = mlir_fusion.compile(program.function, target="simt")
    return re.findall(r'#fusion.schedule<"(\w+)"', compiled.lower(*program.make()).ir("kernel"))
