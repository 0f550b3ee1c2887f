"""What a compilation looked like from inside: each operation, the kernel that it ended up in, and their IR by stage.

`dissect` takes a program through the stages, as `lower` does, and looks at it after each. So that an operation can be
recognised later it gets a name in its location first, which no pass heeds and all keep: `t7` is the seventh operation
in the torch dialect, `n3` the third node of the dependence graph that fusion decides on.

    torch    %9 = torch.aten.exp %8                            loc("t9"("model.py":7:0))
    linalg   %5 = linalg.generic ...                           loc("n4"("t9"("model.py":7:0)))
    kernel   "fusion.kernel"(...) ({ linalg.generic ... })     holds n3 and n4
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field

from ...dialects import fusion
from ...dialects.mlir import ir
from ...passes import generics
from ...passes.arithmetic import flops_of
from ...passes.fusion_report import batch_of, count_ops, moved_bytes
from ...passes.graph import Graph, build, functions
from ...passes.outline import RECOMPUTED
from ...passes.source_lines import lines_in
from ...targets.target import Target
from ..build import BY_KIND, emit_text
from ..levels import LEVELS, detect_level
from ..lower import lower
from ..options import Options
from ..runner import print_module
from .pieces import body_pieces, join_pieces, nested_pieces, ptx_pieces

TORCH_NAME = re.compile(r'"t(\d+)"\(')
NODE_NAME = re.compile(r'"n(\d+)"\(')
LAUNCHED = re.compile(r"^(?:gpu\.launch_func +@\w+::|call )@(\w+)")
DEFINED = re.compile(r"^(?:#.*\n)*(?:gpu\.func|func\.func|llvm\.func) @(\w+)\(")
OWN_NAMESPACES = ("aten", "prim", "prims")
NO_NODES = ("linalg.fill", "fusion.yield")
UNREMARKABLE = ("yield", "constant", "extf", "truncf")
MOST_NAMED = 2


@dataclass(frozen=True)
class Node:
    """An operation that fusion decides on."""

    label: str
    type: str
    lines: tuple[str, ...]
    why_not_fusible: str | None


@dataclass
class Box:
    """A step of the program as it runs: a kernel, a library call or a view."""

    kind: str
    name: str
    nodes: tuple[int, ...]
    recomputed: frozenset[int] = frozenset()
    """Those of the nodes that another kernel computes too, for its own use."""
    region: int | None = None
    operation: str = ""
    """Of a call: its full name."""
    family: str = ""
    why: str = ""
    ops: int = 0
    bytes: int = 0
    flops: int | None = 0
    seconds: float = 0.0
    stages: dict[str, str] = field(default_factory=dict)
    """The text of each stage."""


@dataclass
class Anatomy:
    """A program with one function."""

    nodes: list[Node]
    reads: list[tuple[int, ...]]
    """By node: the nodes whose results it reads."""
    boxes: list[Box]
    """In the order in which they run."""
    fused: ir.Operation
    """The module as it was after the fusion pass."""


def dissect(module: ir.Module, options: Options) -> Anatomy:
    """The anatomy of the first function of `module`, which is left at the last stage."""
    with module.context, ir.Location.unknown():
        return _Dissection(module, options).run()


def regions_of(module: ir.Module, options: Options) -> list[int | None]:
    """By node: the region that the fusion pass of these options puts it in; the module is left at that stage."""
    with module.context, ir.Location.unknown():
        return _Dissection(module, options).regions()


class _Dissection:
    """Takes one module through the stages, and notes what it sees."""

    def __init__(self, module: ir.Module, options: Options) -> None:
        self.module, self.options, self.target = module, options, Target.parse(options.target)
        self.torch: list[tuple[str, str]] = []
        self.nodes: list[Node] = []
        self.reads: list[tuple[int, ...]] = []
        self.of_nodes: dict[str, dict[int, str]] = {}
        """By stage and node: the text of what holds it."""
        self.region_of: dict[int, int] = {}
        self.boxes: list[Box] = []

    def regions(self) -> list[int | None]:
        if LEVELS.index(detect_level(self.module)) < LEVELS.index("import"):
            self._name_torch()
        self._lower("linalg")
        self._name_nodes()
        self._lower("region")
        self._see_regions()
        return [self.region_of.get(node) for node in range(len(self.nodes))]

    def run(self) -> Anatomy:
        self.regions()
        fused = self.module.operation.clone()
        self._lower("schedule")
        self._see_kernels()
        self._lower("kernel")
        launches = self._see_memory()
        for stage in BY_KIND[self.target.kind][3:]:
            if stage != "cubin":
                self._see_code(stage, launches)
        return Anatomy(self.nodes, self.reads, self.boxes, fused)

    def _lower(self, stage: str) -> None:
        lower(self.module, self.options, stage)

    def _body(self) -> list[ir.Operation]:
        function = next(iter(functions(self.module)))
        return [op.operation for op in function.regions[0].blocks[0].operations]

    def _pieces(self) -> list[tuple[ir.Operation, str]]:
        return list(zip(self._body(), body_pieces(print_module(self.module.operation)), strict=True))

    def _name_torch(self) -> None:
        for number, (op, piece) in enumerate(self._pieces()):
            name = ir.StringAttr(op.attributes["name"]).value if op.name == "torch.operator" else op.name
            self.torch.append((_short_name(name), piece))
            op.location = ir.Location.name(f"t{number}", op.location)

    def _name_nodes(self) -> None:
        graph = build(next(iter(functions(self.module))))
        pieces = dict(self._pieces())
        self.of_nodes = {"torch": {}, "linalg": {}, "region": {}}
        for number, node in enumerate(graph.nodes):
            location = str(node.op.location)
            self.of_nodes["linalg"][number] = pieces[node.op]
            named = [self.torch[int(found)] for found in dict.fromkeys(TORCH_NAME.findall(location))]
            if named:
                self.of_nodes["torch"][number] = "\n".join(piece for _, piece in named)
            self.nodes.append(_describe(node.op, [name for name, _ in named], location, node.why_not_fusible))
            self.reads.append(tuple(_makers(graph, number)))
            node.op.location = ir.Location.name(f"n{number}", node.op.location)

    def _see_regions(self) -> None:
        regions = [(op, piece) for op, piece in self._pieces() if fusion.is_op(op, "region")]
        for number, (op, piece) in enumerate(regions):
            for node in nodes_in(op):
                self.region_of.setdefault(node, number)
                self.of_nodes["region"][node] = piece

    def _see_kernels(self) -> None:
        for op, piece in self._pieces():
            nodes = tuple(nodes_in(op))
            if not nodes:
                continue
            box = _box(op, nodes)
            box.region = next((self.region_of[node] for node in nodes if node in self.region_of), None)
            for stage, texts in self.of_nodes.items():
                found = dict.fromkeys(texts[node] for node in nodes if node in texts)
                if found:
                    box.stages[stage] = join_pieces(list(found))
            box.stages["schedule"] = piece
            self.boxes.append(box)

    def _see_memory(self) -> list[list[Box]]:
        """Notes what each step moves; returns the kernels of each launch."""
        steps = iter([box for box in self.boxes if box.kind != "view"])
        launches: list[list[Box]] = []
        last: object = None
        for op, piece in self._pieces():
            if not fusion.is_op(op, "kernel", "extern"):
                continue
            box = next(steps)
            box.stages["kernel"] = piece
            box.ops, box.bytes, box.flops = count_ops(op), moved_bytes(op), flops_of(op)
            box.seconds = self.target.least_seconds(box.bytes, box.flops or 0)
            if box.kind == "kernel":
                batch = batch_of(op)
                if not launches or batch != last:
                    launches.append([])
                launches[-1].append(box)
                last = batch
        return launches

    def _see_code(self, stage: str, launches: Sequence[Sequence[Box]]) -> None:
        """Notes the functions that the launches name; a launch of no threads names none."""
        names = self._launched()
        if stage == "gpu":
            self._lower(stage)
            names = self._launched()
        if len(names) != len(launches):
            return
        texts = self._functions(stage)
        for name, boxes in zip(names, launches, strict=True):
            for box in boxes:
                if name in texts:
                    box.stages[stage] = texts[name]

    def _launched(self) -> list[str]:
        matches = (LAUNCHED.match(piece) for piece in body_pieces(print_module(self.module.operation)))
        return [match[1] for match in matches if match]

    def _functions(self, stage: str) -> dict[str, str]:
        text = str(emit_text(self.module, self.options, stage))
        if stage == "ptx":
            return ptx_pieces(text)
        pieces = nested_pieces(text, "module @" if self.target.kind == "cpu" else "gpu.module @")
        matches = ((DEFINED.match(piece), piece) for piece in pieces)
        return {match[1]: piece for match, piece in matches if match}


def _describe(op: ir.Operation, torch_names: Sequence[str], location: str, why_not_fusible: str | None) -> Node:
    type_ = str(op.results[0].type) if len(op.results) else ""
    shape = type_.removeprefix("tensor<").removesuffix(">")
    return Node(_label(op, torch_names), shape, tuple(lines_in(location)), why_not_fusible)


def _label(op: ir.Operation, torch_names: Sequence[str]) -> str:
    """What PyTorch called it, if this is all of that or a part; else what it computes."""
    if fusion.is_op(op, "extern"):
        return _short_name(ir.StringAttr(op.attributes["op"]).value)
    if fusion.is_op(op, "view"):
        return "view"
    if torch_names and len(torch_names) <= MOST_NAMED:
        return "+".join(torch_names)
    if not generics.is_generic(op):
        return op.name.rpartition(".")[2]
    names = (inner.operation.name.rpartition(".")[2] for inner in generics.body(op).operations)
    return "+".join(list(dict.fromkeys(name for name in names if name not in UNREMARKABLE))[:MOST_NAMED]) or "copy"


def _box(op: ir.Operation, nodes: tuple[int, ...]) -> Box:
    """What a step of the function is, before memory is planned."""
    if fusion.is_op(op, "extern"):
        name = ir.StringAttr(op.attributes["op"]).value
        return Box("call", _short_name(name), nodes, operation=name)
    if not fusion.is_op(op, "kernel"):
        return Box("view", "view", nodes)
    box = Box("kernel", ir.StringAttr(op.attributes["name"]).value, nodes, frozenset(nodes_in(op, RECOMPUTED)))
    schedule = fusion.read_schedule(op.attributes["schedule"])
    if schedule is not None:
        box.family, box.why = schedule.family, schedule.why
    return box


def _short_name(name: str) -> str:
    """`torch.aten.exp`, `aten.exp.default` and `torch.aten.exp.out` are all exp; `mine.f.default` is mine.f."""
    namespace, _, rest = name.removeprefix("torch.").partition(".")
    short = rest.partition(".")[0]
    return short if namespace in OWN_NAMESPACES else f"{namespace}.{short}" if short else namespace


def _makers(graph: Graph, number: int) -> Iterator[int]:
    yield from dict.fromkeys(graph.makers[value] for value in graph.nodes[number].reads if graph.makers[value] >= 0)


def nodes_in(op: ir.Operation, attribute: str = "") -> Iterator[int]:
    """The nodes inside a region or kernel, in order, or of the operation itself; only those with that attribute."""
    inside = [inner.operation for region in op.regions for block in region.blocks for inner in block.operations]
    own = inside if fusion.is_op(op, "region", "kernel") else [op]
    counted = (one for one in own if one.name not in NO_NODES and (not attribute or attribute in one.attributes))
    found = (NODE_NAME.findall(str(one.location)) for one in counted)
    yield from dict.fromkeys(int(number) for numbers in found for number in numbers)
