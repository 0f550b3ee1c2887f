"""fusion-segment: splits each region into kernels that a schedule accepts.

A fusion pass decides what belongs together; what one kernel can do is decided here. A region that one family
(other than generic) accepts whole becomes one `fusion.kernel`. Otherwise its operations, in order, each join
the latest kernel that may hold them, or start a new one. Kernels of a region are numbered so that each needs
only earlier ones, hence the result is acyclic and in order by construction. With `matmul-epilogue=false` what reads a
matrix product is in another kernel than the product, but for its rounding.

After fusion-dataflow, which notes the source, the peak of live bytes stays within the source's (keep_peak.py), if that
needs other kernels; and where runs of neighbours in the source, cut the same way, move fewer bytes than the plan that
has been cut, they become the kernels.

Before: fusion.region ops. After: fusion.kernel ops on tensors, without schedules; no regions.

    %s, %t = "fusion.region"(%x) ({            %0 = "fusion.kernel"(%x) ({ sum over rows })
      %0 = sum of %x over rows           ->    %s = "fusion.kernel"(%0) ({ sqrt })
      %1 = sqrt of %0                          %t = "fusion.kernel"(%x) ({ transpose })
      %2 = transpose of %x
      yield %1, %2 })
"""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import dataclass
from typing import ClassVar

from ..dialects import fusion
from ..dialects.mlir import ir
from ..targets.target import TARGETS
from . import generics
from .fusion_report import moved_bytes
from .fusion_schedule import choose_family
from .graph import Graph, build, functions
from .group_plan import neighbours
from .keep_peak import keep_peak, planned_peak
from .kernel_body import KernelBody
from .layouts import layout_of
from .outline import Part, outline
from .pass_base import Pass
from .plan import bytes_moved
from .schedules import FAMILIES, Family, Problem
from .source_order import dissolve, mark_places, restore, unmark_places
from .structured import Generic

NEAREST_KERNELS = 8  # how many of the last kernels an operation may join
NAMED_OPERATIONS = 4
UNREMARKABLE = ("constant", "extf", "truncf", "index_cast")


@dataclass(frozen=True)
class FusionSegment(Pass):
    """See the module's docstring."""

    name: ClassVar[str] = "fusion-segment"
    matmul_epilogue: bool = True

    def run(self, module: ir.Module) -> None:
        names = _Names()
        for function in list(functions(module)):
            source = mark_places(function)
            self._cut(function)
            if source is not None and source.peak_bytes is not None:
                keep_peak(function, source.peak_bytes, _is_surely_pointwise)
                function = self._cheapest(function, source.peak_bytes, source.run_ops)
            unmark_places(function)
            for region in _regions(function):
                _become_kernel(region, names)

    def _cut(self, function: ir.Operation) -> None:
        for region in _regions(function):
            _segment(region, self.matmul_epilogue)

    def _cheapest(self, function: ir.Operation, peak: int, run_ops: int) -> ir.Operation:
        """The function, or the kernels that runs of the source make, if those move fewer bytes within the peak.

        What moves fewer bytes as regions need not as kernels. Runs of one operation would be no fusion at all.
        """
        if run_ops == 1:
            return function
        other = function.clone(ip=ir.InsertionPoint(function))
        restore(other)
        graph, moved = build(other), _moved(function)
        runs = [Part(run) for run in neighbours(graph, run_ops)]
        if bytes_moved(graph, runs) < moved:  # cutting never makes it less
            outline(graph, runs)
            self._cut(other)
            if _moved(other) < moved and planned_peak(other, _is_surely_pointwise) <= peak:
                function, other = other, function
        other.erase()
        return function


def _moved(function: ir.Operation) -> int:
    operations = (op.operation for op in function.regions[0].blocks[0].operations)
    return sum(moved_bytes(op) for op in operations if fusion.is_op(op, "region", "extern"))


def _is_surely_pointwise(region: ir.Operation) -> bool:
    """Whether fusion-schedule will choose the pointwise family, whatever the target."""
    body = KernelBody.of_kernel(region)
    arguments = region.regions[0].blocks[0].arguments
    inputs = {argument: layout_of(value) for argument, value in zip(arguments, region.operands, strict=True)}
    problem = Problem(body, inputs, tuple(layout_of(value) for value in region.results))
    return all(_is_pointwise(choose_family(problem, target)) for target in TARGETS.values())


def _is_pointwise(family: Family | None) -> bool:
    return family is not None and family.name == "pointwise"


def _regions(function: ir.Operation) -> list[ir.Operation]:
    operations = [op.operation for op in function.regions[0].blocks[0].operations]
    return [op for op in operations if fusion.is_op(op, "region")]


def _segment(region: ir.Operation, matmul_epilogue: bool) -> None:
    """Cuts a region until each piece is a kernel."""
    if not len(region.results):
        region.erase()  # pure, and nobody uses what it computes
        return
    graph = build(region)
    groups = _partition(graph, matmul_epilogue)
    if len(groups) == 1:
        return
    outline(graph, [Part(tuple(group)) for group in groups])
    for inner in dissolve(region):
        if fusion.is_op(inner, "region"):
            _segment(inner, matmul_epilogue)


def _partition(graph: Graph, matmul_epilogue: bool) -> list[list[int]]:
    """Groups of nodes, in an order in which each needs only earlier ones."""
    everything = list(range(len(graph.nodes)))
    judge = _Judge(graph)
    cut = set() if matmul_epilogue else _epilogues(graph)
    if not everything or (judge.family(everything) < len(FAMILIES) - 1 and not cut):
        return [everything]
    groups: list[list[int]] = []
    group_of: dict[int, int] = {}
    for node in everything:
        first = max((group_of[before] + ((before, node) in cut) for before in graph.predecessors(node)), default=0)
        candidates = range(len(groups) - 1, max(first, len(groups) - NEAREST_KERNELS) - 1, -1)
        chosen = next((k for k in candidates if judge.may_join(groups[k], node)), len(groups))
        if chosen == len(groups):
            groups.append([])
        groups[chosen].append(node)
        group_of[node] = chosen
    return _merge_neighbours(groups, judge, cut)


def _merge_neighbours(groups: Sequence[list[int]], judge: _Judge, cut: set[tuple[int, int]]) -> list[list[int]]:
    """Joins each group to the one before it where a kernel may hold both: an operation that came between the
    first operations and those that use them, a conversion of weights for instance, had started a group."""
    merged: list[list[int]] = []
    for group in groups:
        while merged and not _is_between(cut, merged[-1], group) and judge.may_merge(merged[-1], group):
            group = sorted([*merged.pop(), *group])
        merged.append(group)
    return merged


def _is_between(cut: set[tuple[int, int]], group: Sequence[int], other: Sequence[int]) -> bool:
    return any((one, two) in cut for one in group for two in other) if cut else False


def why_not_one_kernel(graph: Graph, nodes: Sequence[int], families: Collection[str]) -> str:
    """Why each of these families can't run nodes of a region as one kernel, in words; nothing if they can."""
    body = _Judge(graph)._body(nodes)
    refused = [(one.name, one.refuses(body)) for one in FAMILIES if one.name in families and one is not FAMILIES[-1]]
    return "; ".join(f"{name}: {reason}" for name, reason in refused if reason is not None)


def _epilogues(graph: Graph) -> set[tuple[int, int]]:
    """A matrix product, or the rounding of one, and a node that reads it, rounding apart."""
    products: set[int] = set()
    cut: set[tuple[int, int]] = set()
    for number, node in enumerate(graph.nodes):
        read = products.intersection(graph.makers[value] for value in node.reads)
        rounds = bool(read) and _is_rounding(node.op)
        if rounds or _is_product(node.op):
            products.add(number)
        if not rounds:
            cut.update((product, number) for product in read)
    return cut


def _is_product(op: ir.Operation) -> bool:
    return generics.is_generic(op) and Generic(op).is_product


def _is_rounding(op: ir.Operation) -> bool:
    names = {inner.operation.name for inner in generics.body(op).operations} if generics.is_generic(op) else set()
    return names == {"arith.truncf", "linalg.yield"}


class _Judge:
    """Which family would run a group of nodes."""

    def __init__(self, graph: Graph) -> None:
        self._graph = graph
        self._generics: dict[ir.Operation, Generic] = {}
        self._families: dict[tuple[int, ...], int] = {}

    def may_join(self, group: Sequence[int], node: int) -> bool:
        """Whether a kernel would run the group with the node as well as it runs both apart."""
        return self.may_merge(group, [node])

    def may_merge(self, group: Sequence[int], other: Sequence[int]) -> bool:
        """Whether a kernel would run both groups as well as it runs them apart."""
        together = self.family([*group, *other])
        return together <= max(self.family(group), self.family(other))

    def family(self, group: Sequence[int]) -> int:
        """The number of the first family that accepts the group; len(FAMILIES) if none does."""
        key = tuple(group)
        if key not in self._families:
            body = self._body(group)
            accepted = (k for k, family in enumerate(FAMILIES) if family.refuses(body) is None)
            self._families[key] = next(accepted, len(FAMILIES))
        return self._families[key]

    def _body(self, group: Sequence[int]) -> KernelBody:
        graph, inside = self._graph, set(group)
        made = {graph.values[value] for node in group for value in graph.nodes[node].makes}
        numbers = [value for node in group for value in graph.nodes[node].makes]
        outputs = [
            graph.values[value]
            for value in numbers
            if value in graph.returned or any(reader not in inside for reader in graph.readers[value])
        ]

        def is_input(value: ir.Value) -> bool:
            if isinstance(value, ir.BlockArgument):
                return True
            return value in graph.numbers and value not in made

        return KernelBody(outputs or [graph.values[numbers[-1]]], is_input, self._generics)


def _become_kernel(region: ir.Operation, names: _Names) -> None:
    """Makes `region` a fusion.kernel with the same body."""
    kernel = ir.Operation.create(
        "fusion.kernel",
        results=[result.type for result in region.results],
        operands=list(region.operands),
        attributes={
            "name": ir.StringAttr.get(names.unique(_describe(region))),
            "operandSegmentSizes": ir.DenseI32ArrayAttr.get([len(region.operands), 0]),
        },
        regions=1,
        loc=region.location,
        ip=ir.InsertionPoint(region),
    )
    region.regions[0].blocks[0].append_to(kernel.regions[0])
    for old, new in zip(list(region.results), kernel.results, strict=True):
        old.replace_all_uses_with(new)
    region.erase()


def _describe(region: ir.Operation) -> str:
    """What the kernel computes: the first few different operations of its bodies."""
    found: dict[str, None] = {}
    for op in region.regions[0].blocks[0].operations:
        for block in (block for body in op.operation.regions for block in body.blocks):
            for inner in block.operations:
                dialect, _, mnemonic = inner.operation.name.partition(".")
                if dialect in ("arith", "math") and mnemonic not in UNREMARKABLE:
                    found[mnemonic] = None
    return "_".join(list(found)[:NAMED_OPERATIONS]) or "copy"


class _Names:
    """Hands out names, each once: `exp_0`, `exp_1`."""

    def __init__(self) -> None:
        self._next: dict[str, int] = {}
        self._taken: set[str] = set()

    def unique(self, name: str) -> str:
        number = self._next.get(name, 0)
        while f"{name}_{number}" in self._taken:
            number += 1
        self._next[name] = number + 1
        self._taken.add(f"{name}_{number}")
        return f"{name}_{number}"
