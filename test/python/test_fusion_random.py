"""The two fusion passes on random programs: nothing lost, repeated or reordered; same values; peak kept.

300 programs with fixed seeds; 20,000 with `MLIR_FUSION_TEST_LONG` (make test-long).
"""

import os
from collections import Counter

import numpy as np
import pytest
from ir_interpreter import Interpreter
from mlir_fusion.dialects import fusion
from mlir_fusion.dialects.mlir import ir
from mlir_fusion.driver.options import Options
from mlir_fusion.driver.report import FunctionReport, report
from mlir_fusion.passes import graph
from mlir_fusion.passes.fusion_consecutive import FusionConsecutive
from mlir_fusion.passes.fusion_dataflow import FusionDataflow
from mlir_fusion.passes.fusion_none import FusionNone
from mlir_fusion.passes.fusion_normalize import FusionNormalize
from mlir_fusion.passes.plan import source_peak
from mlir_fusion.passes.reuse import reusing_peak
from random_graphs import Program, parallel_paths, random_program, text

LONG = "MLIR_FUSION_TEST_LONG" in os.environ
COUNT = 20_000 if LONG else 300
CHUNKS = 10
FREE = ("tensor.empty", "linalg.fill", "arith.constant", "func.return", "fusion.yield")
PASSES = [
    FusionNone(),
    FusionConsecutive(),
    FusionDataflow(),
    FusionDataflow(memory_aware=False),
    FusionDataflow(horizontal=False),
    FusionDataflow(max_region_ops=3),
]


@pytest.mark.parametrize("chunk", range(CHUNKS))
def test_random_programs(chunk: int) -> None:
    for seed in range(chunk * COUNT // CHUNKS, (chunk + 1) * COUNT // CHUNKS):
        largest = 200 if seed % 10 == 0 else 40
        fusion_pass = PASSES[seed % len(PASSES)] if seed % 2 else FusionDataflow()
        check(program_of(seed, largest), fusion_pass, f"seed {seed}, {fusion_pass}")


@pytest.mark.parametrize("fusion_pass", PASSES, ids=str)
def test_the_crossing_program(fusion_pass: FusionNone | FusionConsecutive | FusionDataflow) -> None:
    """Two merges that are legal, each alone, and close a cycle together; partitioners that miss it lose operations."""
    program = Program(arguments=3)
    y, a = program.add("scale", 0), program.add("scale", 1)
    o = program.add("mm", y, 2)
    b = program.add("add", a, o)
    c = program.add("mm", a, 2)
    program.returns = (b, program.add("add", y, c))
    check(program, fusion_pass, str(fusion_pass))


def test_random_programs_as_normalised() -> None:
    """Values only: equal operations become one, and what a call overwrites is kept apart."""
    for seed in range(COUNT // 10):
        program = program_of(seed, 40)
        with context(), ir.Location.unknown():
            source, fused = (ir.Module.parse(text(program)) for _ in range(2))
            FusionNormalize().run(fused)
            assert not list(fusion.faults(fused.operation)), f"seed {seed}"
            PASSES[seed % len(PASSES)].run(fused)
            check_values(program, source, fused, f"seed {seed}")


@pytest.mark.parametrize("target", ["sm_90", "cpu"])
def test_peak_of_the_plan_as_it_runs(target: str) -> None:
    """The report's peak, after kernels are made of the regions and memory is planned."""
    kernels = 0
    for seed in range(COUNT // 10 if LONG else 40):
        program = program_of(seed, 40)
        program.extent = 4 if seed % 2 else 16
        found = report_of(program, "dataflow", target)
        assert found.source_peak_bytes is not None
        assert found.peak_bytes <= found.source_peak_bytes, f"seed {seed}"
        kernels += found.kernels
    assert kernels > 0


def test_kernels_move_no_more_bytes_than_consecutives() -> None:
    """What moves fewest bytes as regions need not as kernels: on the first seeds it did not."""
    compared = fewer = 0
    for seed in (39, 385, 620, 721, *range(COUNT // 10 if LONG else 40)):
        rng = np.random.default_rng(seed)
        ops, calls = int(rng.integers(2, 11)), float(rng.choice([0.1, 0.3, 0.4]))
        program = random_program(rng, ops, calls, effects=seed % 4 == 2, reshaping=0.4)
        runs, ours = report_of(program, "consecutive"), report_of(program, "dataflow")
        if runs.peak_bytes <= (runs.source_peak_bytes or 0):
            compared += 1
            assert ours.bytes_moved <= runs.bytes_moved, f"seed {seed}"
            fewer += ours.bytes_moved < runs.bytes_moved
    assert compared > fewer > 0


@pytest.mark.parametrize("shared", [False, True], ids=["own inputs", "one input"])
@pytest.mark.parametrize("paths", [4, 10, 20])
def test_parallel_paths_as_they_run(paths: int, shared: bool) -> None:
    """As reported: one input's first operations are equal, but there is no room to keep one's result for all."""
    program = parallel_paths(paths, shared)
    ours, runs = report_of(program, "dataflow"), report_of(program, "consecutive")
    assert ours.peak_bytes <= 3 * 256 * 256 * 4
    assert ours.source_peak_bytes == 3 * 256 * 256 * 4
    assert ours.kernels <= runs.kernels


def report_of(program: Program, fusion_type: str, target: str = "sm_90") -> FunctionReport:
    with context(), ir.Location.unknown():
        return report(ir.Module.parse(text(program)), Options(fusion_type=fusion_type, target=target))[0]


def program_of(seed: int, largest: int) -> Program:
    rng = np.random.default_rng(seed)
    ops, calls = int(rng.integers(2, largest + 1)), float(rng.choice([0.1, 0.3, 0.5]))
    return random_program(rng, ops, calls, reshaping=float(rng.choice([0.0, 0.2])))


def context() -> ir.Context:
    made = ir.Context()
    fusion.load(made)
    return made


def check(program: Program, fusion_pass: FusionNone | FusionConsecutive | FusionDataflow, where: str) -> None:
    with context(), ir.Location.unknown():
        source = ir.Module.parse(text(program))
        fused = ir.Module.parse(text(program))
        fusion_pass.run(fused)
        assert fused.operation.verify(), where
        assert not list(fusion.faults(fused.operation)), where
        check_body(source, fused, where)
        check_values(program, source, fused, where)
        if isinstance(fusion_pass, FusionDataflow):
            check_peak(program, fusion_pass, where)


def check_body(source: ir.Module, fused: ir.Module, where: str) -> None:
    """Every operation once, and the return last."""
    assert count(source) == count(fused), where
    names = [op.operation.name for op in body(fused).operations]
    assert set(names[:-1]) <= {"fusion.region", "fusion.extern", "fusion.view"}, where
    assert names[-1] == "func.return", where


def check_values(program: Program, source: ir.Module, fused: ir.Module, where: str) -> None:
    rng = np.random.default_rng(0)
    shape = (program.extent, program.extent)
    inputs = [rng.standard_normal(shape).astype(np.float32) for _ in range(program.arguments)]
    plain, other = Interpreter(), Interpreter()
    expected, got = plain.run(main(source), inputs), other.run(main(fused), inputs)
    assert plain.log == other.log, where
    for one, two in zip(expected, got, strict=True):
        np.testing.assert_array_equal(one, two, where)


def check_peak(program: Program, fusion_pass: FusionDataflow, where: str) -> None:
    module = ir.Module.parse(text(program))
    dependences = graph.build(main(module))
    parts = fusion_pass.plan(dependences)
    assert all(len(part.nodes) <= fusion_pass.max_region_ops for part in parts), where
    if fusion_pass.memory_aware:
        assert reusing_peak(dependences, parts) <= source_peak(dependences), where


def main(module: ir.Module) -> ir.Operation:
    return module.body.operations[0].operation


def body(module: ir.Module) -> ir.Block:
    return main(module).regions[0].blocks[0]


def count(module: ir.Module) -> Counter[str]:
    """How often each kind of node occurs, recomputed ones apart."""
    counts: Counter[str] = Counter()
    for op in body(module).operations:
        inner = op.operation.regions[0].blocks[0].operations if op.operation.name == "fusion.region" else [op]
        counts.update(kind(nested.operation) for nested in inner)
    del counts[""]
    return counts


def kind(op: ir.Operation) -> str:
    """What distinguishes an operation, or nothing for one that is not counted."""
    if op.name in FREE or "fusion.recomputed" in op.attributes:
        return ""
    if op.name == "fusion.extern":
        return str(op.attributes["op"])
    body = [inner.operation.name for body in op.regions for block in body.blocks for inner in block.operations]
    return " ".join([op.name, str(op.attributes["indexing_maps"]) if body else "", *body])
