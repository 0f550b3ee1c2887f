"""The data that a page shows, from a program and what is asked about it."""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property

from ...dialects import fusion
from ...dialects.mlir import ir
from ...passes.fusion_segment import why_not_one_kernel
from ...passes.graph import Graph, build
from ...targets.target import Target
from ..options import Options
from ..report import FunctionReport
from ..tables import Table
from .anatomy import Anatomy, Node, dissect, nodes_in, regions_of
from .layout import Layout, lay_out
from .separate import kernels_apart

Json = Mapping[str, object]
Edge = tuple[int, int]


@dataclass(frozen=True)
class Program:
    """A program to show: how to parse it anew, how it is compiled, and what is known of it already."""

    title: str
    parse: Callable[[], ir.Module]
    options: Options
    reports: tuple[FunctionReport, ...]
    """Under each fusion type."""
    comparison: Table
    reasons: Mapping[str, str]
    """Why operations are the library's, by name."""


@dataclass
class Texts:
    """Numbers texts, equal ones once."""

    numbers: dict[str, int] = field(default_factory=dict)

    def number(self, text: str) -> int:
        return self.numbers.setdefault(text, len(self.numbers))


def contents(program: Program, texts: Texts) -> Json:
    """What the page shows of one program, which is compiled for it."""
    return describe(program, dissect(program.parse(), program.options), texts)


def describe(program: Program, anatomy: Anatomy, texts: Texts) -> Json:
    """What the page shows of a program with this anatomy."""
    options, target = program.options, Target.parse(program.options.target)
    drawing, regions = _Drawing(anatomy), _Regions(anatomy)
    without_limit = _without_limit(program)
    apart = kernels_apart(anatomy, drawing.box_edges, options, without_limit, regions.why_not_one_kernel)
    own = next((one for one in program.reports if one.fusion_type == options.fusion_type), None)
    return {
        "title": program.title,
        "about": f"fusion type {options.fusion_type}, target {target.name}",
        "width": drawing.layout.width,
        "height": drawing.layout.height,
        "nodes": drawing.nodes(),
        "boxes": [drawing.box(number, texts, program.reasons) for number in range(len(anatomy.boxes))],
        "edges": drawing.edges,
        "apart": [[one.first, one.second, one.reason] for one in apart],
        "comparison": program.comparison._repr_html_(),
        "timelines": [{"name": one.fusion_type, "values": one.timeline} for one in program.reports],
        "eager": own.source_peak_bytes if own else None,
        "limits": {"bandwidth": target.memory_bandwidth * 1e9, "flops": target.f32_tflops * 1e12},
    }


class _Drawing:
    """Instances of nodes in boxes (a recomputed node is in several), and the edges between them."""

    def __init__(self, anatomy: Anatomy) -> None:
        self.anatomy = anatomy
        self.instances = [(box, node) for box, one in enumerate(anatomy.boxes) for node in one.nodes]
        self.numbers = {instance: number for number, instance in enumerate(self.instances)}
        self.edges: list[Edge] = []
        latest: dict[int, int] = {}
        for box, one in enumerate(anatomy.boxes):
            for node in one.nodes:
                self._connect(box, node, latest)
            # A node that is computed again is taken from where it belongs
            latest.update((node, box) for node in one.nodes if node not in one.recomputed)

    def _connect(self, box: int, node: int, latest: Mapping[int, int]) -> None:
        inside = self.anatomy.boxes[box].nodes
        if node in latest and node not in self.anatomy.boxes[box].recomputed:
            # The rest of a reduction in parts
            self._add((latest[node], node), (box, node))
            return
        for read in self.anatomy.reads[node]:
            if read in inside:
                self._add((box, read), (box, node))
            elif read in latest:
                self._add((latest[read], read), (box, node))

    def _add(self, source: Edge, reader: Edge) -> None:
        self.edges.append((self.numbers[source], self.numbers[reader]))

    @cached_property
    def box_edges(self) -> list[Edge]:
        """Pairs of different boxes of which the second reads from the first."""
        pairs = ((self.instances[source][0], self.instances[reader][0]) for source, reader in self.edges)
        return list(dict.fromkeys(pair for pair in pairs if pair[0] != pair[1]))

    @cached_property
    def layout(self) -> Layout:
        boxes = self.anatomy.boxes
        inner: list[dict[int, list[int]]] = [{} for _ in boxes]
        outer: list[list[int]] = [[] for _ in boxes]
        for source, reader in self.edges:
            (from_box, from_node), (to_box, to_node) = self.instances[source], self.instances[reader]
            if from_box == to_box:
                inner[to_box].setdefault(to_node, []).append(from_node)
        for first, second in self.box_edges:
            outer[second].append(first)
        return lay_out([box.nodes for box in boxes], inner, outer)

    def nodes(self) -> list[Json]:
        return [self._node(box, self.anatomy.nodes[node], node) for box, node in self.instances]

    def _node(self, box: int, node: Node, number: int) -> Json:
        place = self.layout.nodes[box][number]
        known = {"box": box, "label": node.label, "type": node.type, "lines": node.lines}
        return {**known, "x": place.x, "y": place.y, "w": place.width, "h": place.height}

    def box(self, number: int, texts: Texts, reasons: Mapping[str, str]) -> Json:
        box, place = self.anatomy.boxes[number], self.layout.boxes[number]
        lines = dict.fromkeys(line for node in box.nodes for line in self.anatomy.nodes[node].lines)
        numbers = ("kind", "name", "region", "family", "why", "ops", "bytes", "flops", "seconds")
        return {
            **{name: getattr(box, name) for name in numbers},
            "reason": reasons.get(box.operation, ""),
            "lines": list(lines),
            "stages": {stage: texts.number(text) for stage, text in box.stages.items()},
            "x": place.x,
            "y": place.y,
            "w": place.width,
            "h": place.height,
        }


class _Regions:
    """The regions as they were before they became kernels, to ask the schedules about their nodes."""

    def __init__(self, anatomy: Anatomy) -> None:
        body = anatomy.fused.regions[0].blocks[0].operations if len(anatomy.fused.regions) else []
        functions = [op.operation for op in body if op.operation.name == "func.func"][:1]
        operations = [op.operation for one in functions for op in one.regions[0].blocks[0].operations]
        self.home = {node: op for op in operations if fusion.is_op(op, "region") for node in nodes_in(op)}
        self.graphs: dict[ir.Operation, tuple[Graph, dict[int, int]]] = {}

    def why_not_one_kernel(self, nodes: Collection[int], families: Collection[str]) -> str:
        """What the schedules say; nothing where a node isn't in one region with the others."""
        homes = {self.home.get(node) for node in nodes}
        region = homes.pop()
        if homes or region is None:
            return ""
        graph, numbers = self._graph(region)
        return why_not_one_kernel(graph, sorted(numbers[node] for node in set(nodes) if node in numbers), families)

    def _graph(self, region: ir.Operation) -> tuple[Graph, dict[int, int]]:
        if region not in self.graphs:
            graph = build(region)
            numbers = {node: number for number, one in enumerate(graph.nodes) for node in nodes_in(one.op)}
            self.graphs[region] = graph, numbers
        return self.graphs[region]


def _without_limit(program: Program) -> Callable[[int, int], bool]:
    """Whether dataflow would fuse two nodes if memory were no matter; it is run again only if that is asked."""
    found: list[Sequence[int | None]] = []

    def ask(one: int, other: int) -> bool:
        if not found:
            found.append(regions_of(program.parse(), program.options.override([], ["memory_aware"], "page")))
        return found[0][one] is not None and found[0][one] == found[0][other]

    return ask
