"""fusion-dataflow against the best there is, on small random programs, and on the programs that broke others.

`MLIR_FUSION_TEST_LONG` (make test-long) tries many more.
"""

from __future__ import annotations

import os

import numpy as np
import pytest
from fusion_optimum import fewest_bytes
from mlir_fusion.dialects import fusion
from mlir_fusion.dialects.mlir import ir
from mlir_fusion.passes import graph
from mlir_fusion.passes.fusion_consecutive import consecutive_runs
from mlir_fusion.passes.fusion_dataflow import FusionDataflow
from mlir_fusion.passes.graph import Graph
from mlir_fusion.passes.outline import Part
from mlir_fusion.passes.plan import bytes_moved, plan_peak, source_peak
from mlir_fusion.passes.reuse import reusing_peak
from random_graphs import Program, parallel_paths, random_program, text

LONG = "MLIR_FUSION_TEST_LONG" in os.environ
SMALL_PROGRAMS = 2000 if LONG else 120
PROGRAMS = 2000 if LONG else 120
MIB = 1 << 20


def build(program: Program) -> tuple[ir.Module, Graph]:
    """The graph of a program, and the module that has to live as long."""
    context = ir.Context()
    fusion.load(context)
    with context, ir.Location.unknown():
        module = ir.Module.parse(text(program))
        return module, graph.build(module.body.operations[0].operation)


def small_program(seed: int) -> Program:
    rng = np.random.default_rng(seed)
    return random_program(rng, int(rng.integers(2, 11)), calls=float(rng.choice([0.1, 0.3, 0.4])))


def consecutive(dependences: Graph) -> list[Part]:
    return [Part(run) for run in consecutive_runs(dependences, 256)]


def regions(dependences: Graph, parts: list[Part]) -> int:
    return sum(dependences.nodes[part.nodes[0]].fusible for part in parts)


def test_within_five_percent_of_the_optimum() -> None:
    ratios = []
    for seed in range(SMALL_PROGRAMS):
        _module, dependences = build(small_program(seed))
        moved = bytes_moved(dependences, FusionDataflow(recompute=False).plan(dependences))
        best = fewest_bytes(dependences, source_peak(dependences), moved)
        ratios.append(moved / best if best else 1.0)
    assert np.mean(ratios) <= 1.05


def test_never_more_bytes_than_consecutive_within_its_peak() -> None:
    compared = 0
    for seed in range(PROGRAMS):
        rng = np.random.default_rng(seed)
        calls = float(rng.choice([0.05, 0.2, 0.4]))
        _module, dependences = build(random_program(rng, int(rng.integers(2, 60)), calls))
        runs = consecutive(dependences)
        if plan_peak(dependences, runs) <= source_peak(dependences):
            compared += 1
            ours = FusionDataflow().plan(dependences)
            assert bytes_moved(dependences, ours) <= bytes_moved(dependences, runs), seed
    assert compared > PROGRAMS // 4


def test_any_sizes_stay_within_the_peak_and_near_the_optimum() -> None:
    ratios = []
    for seed in range(SMALL_PROGRAMS):
        rng = np.random.default_rng(seed)
        _module, dependences = build(random_program(rng, int(rng.integers(2, 9)), calls=0.3))
        sizes = rng.choice([1, 2, 4, 8, 16, 64], len(dependences.sizes))
        dependences.sizes[:] = [int(sizes[memory]) for memory in dependences.memory]
        parts = FusionDataflow(recompute=False).plan(dependences)
        moved, peak = bytes_moved(dependences, parts), source_peak(dependences)
        assert reusing_peak(dependences, parts) <= peak, seed
        assert reusing_peak(dependences, FusionDataflow().plan(dependences)) <= peak, seed
        ratios.append(moved / fewest_bytes(dependences, peak, moved) if moved else 1.0)
    assert np.mean(ratios) <= 1.05


def test_recomputation_never_moves_more_bytes() -> None:
    fewer = 0
    for seed in range(PROGRAMS):
        rng = np.random.default_rng(seed)
        _module, dependences = build(random_program(rng, int(rng.integers(2, 60)), calls=0.3))
        once = bytes_moved(dependences, FusionDataflow(recompute=False).plan(dependences))
        again = bytes_moved(dependences, FusionDataflow().plan(dependences))
        assert again <= once, seed
        fewer += again < once
    assert fewer > 0


@pytest.mark.parametrize("shared", [False, True], ids=["own inputs", "one input"])
@pytest.mark.parametrize("paths", [4, 10, 20])
def test_parallel_paths_stay_within_their_memory(paths: int, shared: bool) -> None:
    _module, dependences = build(parallel_paths(paths, shared))
    parts = FusionDataflow().plan(dependences)
    assert source_peak(dependences) == 0.75 * MIB
    assert plan_peak(dependences, parts) <= 0.75 * MIB
    assert regions(dependences, parts) <= regions(dependences, consecutive(dependences))


def test_parallel_paths_need_memory_awareness() -> None:
    _module, dependences = build(parallel_paths(10, shared=True))
    parts = FusionDataflow(memory_aware=False, recompute=False).plan(dependences)
    assert plan_peak(dependences, parts) > 2 * MIB


@pytest.mark.parametrize("ops", [1, 2])
def test_deep_programs_need_no_recursion(ops: int) -> None:
    program = Program(arguments=1)
    value = 0
    for _ in range(5000):
        value = program.add("scale" if ops == 1 else "add", *[value] * ops)
    program.returns = (value,)
    _module, dependences = build(program)
    parts = FusionDataflow(max_region_ops=1_000_000).plan(dependences)
    assert len(parts) == 1
