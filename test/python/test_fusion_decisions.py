"""The pure parts of the fusion passes: peaks, orders, groups, sizes and what is legal, on small graphs."""

from __future__ import annotations

import pytest
from mlir_fusion.dialects import fusion
from mlir_fusion.dialects.mlir import ir
from mlir_fusion.passes import graph
from mlir_fusion.passes.fusion_consecutive import FusionConsecutive
from mlir_fusion.passes.fusion_dataflow import FusionDataflow
from mlir_fusion.passes.graph import Graph
from mlir_fusion.passes.groups import Between, Groups
from mlir_fusion.passes.legality import why_not_fusible, why_not_this_size
from mlir_fusion.passes.memory_order import low_peak_order
from mlir_fusion.passes.outline import Part
from mlir_fusion.passes.peak import Step, peak_of, profile_of
from mlir_fusion.passes.plan import bytes_moved, plan_peak, source_peak
from mlir_fusion.passes.size_classes import size_classes
from random_graphs import Program, text

TENSOR_BYTES = 4 * 4 * 4


@pytest.fixture
def modules():
    """Modules that have to outlive the graphs made of them."""
    return []


def build(source: str, modules: list[ir.Module]) -> Graph:
    context = ir.Context()
    fusion.load(context)
    with context, ir.Location.unknown():
        modules.append(ir.Module.parse(source))
        return graph.build(modules[-1].body.operations[0].operation)


def crossing() -> Program:
    """y = p + p; a = q + q; o = y @ w; b = a + o; c = a @ w; x = y + c."""
    program = Program(arguments=3)
    y = program.add("add", 0, 0)
    a = program.add("add", 1, 1)
    o = program.add("mm", y, 2)
    b = program.add("add", a, o)
    c = program.add("mm", a, 2)
    x = program.add("add", y, c)
    program.returns = (b, x)
    return program


def test_peak_counts_what_a_step_reads_and_makes() -> None:
    steps = [Step((), (0,)), Step((0,), (1,)), Step((1,), (2,))]
    assert profile_of(steps, [4, 8, 16]) == [4, 12, 24]
    assert profile_of(steps, [4, 8, 16], kept={0}) == [4, 12, 28]


def test_peak_leaves_out_inputs_and_frees_what_nobody_uses() -> None:
    assert peak_of([Step((9,), (0,)), Step((9,), (1,))], [4, 8] + [100] * 8) == 8
    assert peak_of([], []) == 0


def test_order_finishes_a_path_before_it_begins_the_next() -> None:
    big_then_small = [Step((), (0,)), Step((), (1,)), Step((0,), (2,)), Step((1,), (3,))]
    order = low_peak_order(big_then_small, [(), (), (0,), (1,)], [10, 10, 1, 1], kept={2, 3})
    assert peak_of(big_then_small, [10, 10, 1, 1], {2, 3}) == 21
    assert peak_of([big_then_small[step] for step in order], [10, 10, 1, 1], {2, 3}) == 12


def test_merge_that_closes_a_cycle_is_seen(modules: list[ir.Module]) -> None:
    groups = Groups(build(text(crossing()), modules))
    y, a, o, b, c, x = range(6)
    assert isinstance(groups.between(y, x), Between)
    assert groups.surroundings(y, x, 100) == ({o, b}, {a, c})
    groups.move({a: 0, c: 1, o: 4, y: 2, b: 5, x: 3})
    groups.merge(y, x)
    assert groups.between(a, b) in (y, o, c)


def test_calls_on_a_path_separate_for_good(modules: list[ir.Module]) -> None:
    program = Program(arguments=1)
    first = program.add("add", 0, 0)
    last = program.add("add", program.add("mm", first, first), first)
    program.returns = (last,)
    groups = Groups(build(text(program), modules))
    assert groups.separated(0, 2)
    assert groups.separated(2, 0)
    assert not groups.separated(0, 1)


def test_bytes_and_peak_of_a_plan(modules: list[ir.Module]) -> None:
    program = Program(arguments=1)
    middle = program.add("scale", 0)
    program.returns = (program.add("scale", middle),)
    dependences = build(text(program), modules)
    assert source_peak(dependences) == 2 * TENSOR_BYTES
    assert bytes_moved(dependences, [Part((0,)), Part((1,))]) == 4 * TENSOR_BYTES
    assert bytes_moved(dependences, [Part((0, 1))]) == 2 * TENSOR_BYTES
    assert plan_peak(dependences, [Part((0, 1))]) == TENSOR_BYTES


def test_views_take_no_bytes_and_keep_their_source_alive(modules: list[ir.Module]) -> None:
    program = Program(arguments=1)
    source = program.add("scale", 0)
    view = program.add("view", source)
    other = program.add("scale", 0)
    program.returns = (program.add("add", view, other),)
    dependences = build(text(program), modules)
    assert source_peak(dependences) == 3 * TENSOR_BYTES
    assert bytes_moved(dependences, [Part((1,))]) == 0


def test_effects_keep_their_order_and_writes_wait_for_readers(modules: list[ir.Module]) -> None:
    program = Program(arguments=1)
    value = program.add("scale", 0)
    program.add("draw", 0)
    program.add("scale", value)
    program.add("note", value, makes=0)
    program.returns = (program.add("shift", value),)
    nodes = build(text(program), modules).nodes
    assert nodes[3].after == (1, 2)
    assert nodes[4].after == (3,)


def test_reasons_name_what_is_in_the_way(modules: list[ir.Module]) -> None:
    nodes = build(text(crossing()), modules).nodes
    assert why_not_fusible(nodes[0].op) is None
    assert why_not_fusible(nodes[2].op) == "a library call"
    assert why_not_this_size(2, 2) is None
    assert why_not_this_size(3, 2) == "3 operations are more than max-region-ops=2"


def test_size_classes_follow_what_arguments_and_loops_say(modules: list[ir.Module]) -> None:
    shaped = 'tensor<?x8xf32> {fusion.shape = ["s0", 8]}'
    dependences = build(
        f"""
        #id = affine_map<(i, j) -> (i, j)>
        func.func @main(%a: {shaped}, %b: {shaped}, %c: tensor<?x8xf32>, %e: tensor<?x8xf16>) -> tensor<?x8xf16> {{
          %d = linalg.generic {{indexing_maps = [#id, #id], iterator_types = ["parallel", "parallel"]}}
              ins(%a : tensor<?x8xf32>) outs(%e : tensor<?x8xf16>) {{
          ^bb0(%i: f32, %o: f16):
            %r = arith.truncf %i : f32 to f16
            linalg.yield %r : f16
          }} -> tensor<?x8xf16>
          return %d : tensor<?x8xf16>
        }}""",
        modules,
    )
    a, b, c, e, d = range(5)
    classes = size_classes(dependences)
    assert classes.of[a] == classes.of[b] == classes.of[d]
    assert len({classes.of[a], classes.of[c], classes.of[e], 0}) == 4
    assert (classes.bytes[a], classes.bytes[d]) == (32, 16)


@pytest.mark.parametrize("fusion_pass", [FusionConsecutive, FusionDataflow])
@pytest.mark.parametrize("value", [0, -3, 1_000_001])
def test_region_sizes_out_of_range_are_refused(
    fusion_pass: type[FusionConsecutive] | type[FusionDataflow], value: int
) -> None:
    with pytest.raises(ValueError, match=f"max-region-ops must be from 1 to 1000000, got {value}"):
        fusion_pass(max_region_ops=value)


def test_passes_print_as_they_are_written() -> None:
    written = FusionDataflow(horizontal=False, memory_aware=False, max_region_ops=8, recompute=False)
    assert str(FusionDataflow()) == "fusion-dataflow"
    assert FusionDataflow.from_options(written.options()) == written
    assert str(FusionConsecutive(max_region_ops=8)) == "fusion-consecutive{max-region-ops=8}"
