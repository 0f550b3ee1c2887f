"""One FX graph, compiled: what AOTAutograd hands over becomes a function on a list of tensors.

A graph is brought into the form that the importer takes: tensor constants become further arguments, sizes are
numbers, and what is not a tensor among the results is put back after the call. Sizes that are symbols are
specialised: a graph with symbols is traced again, and compiled, for each set of sizes it is called with.
"""

from __future__ import annotations

import logging
import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace

import torch
from torch import fx
from torch.fx.experimental.proxy_tensor import make_fx

from ..driver.build import Artifact, build, disk_cache
from ..driver.cache import Counts
from ..driver.errors import InternalError
from ..driver.launchers import make_launcher
from ..driver.options import Options, Settings
from ..driver.programs import make_program
from ..runtime.program import Program
from ..targets.target import Target
from .compiled_ops import unusual_tensor
from .importer import Imported, import_graph, output_nodes, program_device

log = logging.getLogger("mlir_fusion.frontend")

NOT_LOWERED = re.compile(r"failed to legalize operation 'torch\.(\w+\.\w+)(?:\.(\w+))?'")

Runner = Callable[[list], list]


@dataclass
class CompiledGraph:
    """A compiled graph: its text in the torch dialect, from which every stage can be printed again."""

    text: str
    options: Options
    library: tuple[tuple[str, str], ...]
    kind: str = "forward"
    """Or "backward"."""


@dataclass
class GraphCompiler:
    """Compiles graphs under one set of options and keeps what `ir()` and `explain` print.

    Where no target is said, it is the processor that the inputs are on. A dry one builds everything and runs nothing.
    """

    defaults: Options
    settings: Settings
    """What is said on all levels."""
    dry: bool = False
    graphs: list[CompiledGraph] = field(default_factory=list)
    counts: Counts = field(default_factory=Counts)

    def under(self, settings: Settings, dry: bool = False) -> GraphCompiler:
        """The same for other settings; what it compiles is noted here too."""
        return replace(self, settings=settings, dry=dry)

    def compile(self, graph: fx.GraphModule, inputs: Sequence[object], kind: str = "forward") -> Runner:
        """A function from the list of the graph's arguments, which it empties, to the list of its results.

        `kind` is "forward" or "backward", for those who read the result.
        """
        if any(isinstance(value, torch.SymInt) or _is_symbolic(value) for value in inputs):
            return self._specialising(graph, kind)
        reason = _left_out(graph)
        if reason is not None:
            log.warning("a graph is left to PyTorch: it calls %s", reason)
            return _left_to_pytorch(graph)
        unusual = unusual_tensor(graph.graph)
        if unusual is not None:
            log.warning("a graph is left to PyTorch: it has a tensor of %s, %s", unusual.dtype, unusual.layout)
            return _left_to_pytorch(graph)
        returned, kept = _keep_tensor_outputs(graph)
        constants = _constants_to_arguments(graph)
        run = self._build(graph, self.settings.apply(replace(self.defaults, target=_processor(inputs))), kind)
        is_tensor = [isinstance(value, torch.Tensor) for value in inputs]
        through = {number: value for number, value in enumerate(returned) if isinstance(value, _Argument)}
        if all(is_tensor) and not constants and len(kept) == len(returned):
            return run

        def call(arguments: list) -> list:
            tensors = [value for value, is_one in zip(arguments, is_tensor, strict=True) if is_one]
            passed = {number: arguments[source.number] for number, source in through.items()}
            arguments.clear()
            tensors += constants
            results = run(tensors)
            return [
                results[kept[number]] if number in kept else passed.get(number, value)
                for number, value in enumerate(returned)
            ]

        return call

    def _specialising(self, graph: fx.GraphModule, kind: str) -> Runner:
        """Compiles the graph anew for each set of sizes and strides."""
        known: dict[tuple, Runner] = {}

        def call(arguments: list) -> list:
            key = tuple((tuple(a.shape), a.stride()) if isinstance(a, torch.Tensor) else a for a in arguments)
            if key not in known:
                concrete = make_fx(graph, tracing_mode="fake")(*arguments)
                known[key] = self.compile(concrete, list(arguments), kind)
            return known[key](arguments)

        return call

    def _build(self, graph: fx.GraphModule, options: Options, kind: str) -> Runner:
        """A function that runs `graph`, compiled under these options."""
        imported, artifact = compile_graph(graph.graph, options, self.counts)
        self.graphs.append(CompiledGraph(imported.text, options, imported.library, kind))
        if self.dry:
            return _returns_zeros(imported)
        program: list[Program] = []

        def run(tensors: list) -> list:
            if not program:
                _check_device(options.target, tensors)
                program.append(_program(imported, artifact, options))
            return program[0].run(tensors)

        return run


def compile_graph(graph: fx.Graph, options: Options, counts: Counts | None = None) -> tuple[Imported, Artifact]:
    """Imports and compiles; an operation that torch-mlir turns out not to lower is left to the library."""
    refused: frozenset[str] = frozenset()
    while True:
        imported = import_graph(graph, options.matmul, refused)
        try:
            return imported, build(imported.module, options, counts)
        except InternalError as error:
            found = NOT_LOWERED.search(error.reason) if error.stage == "import" else None
            name = f"{found[1]}.{found[2] or 'default'}" if found else ""
            if not name or name in refused:
                raise
            log.warning("%s of these operands is left to the library: torch-mlir doesn't lower it", name)
            refused |= {name}


def _processor(inputs: Sequence[object]) -> str:
    """The target that fits where the inputs are."""
    return Target.detect().name if program_device(inputs).type == "cuda" else "cpu"


def _check_device(target: str, inputs: Sequence[object]) -> None:
    """ValueError where a program is for another kind of processor than its tensors are on."""
    kind, device = Target.parse(target).kind, program_device(inputs).type
    if kind == "gpu" and device == "cpu" and inputs:
        advice = "move them to the GPU" if torch.cuda.is_available() else "this machine has no GPU for PyTorch"
        raise ValueError(
            f"compiled for {target}, a GPU, but the tensors are on the CPU: {advice}; "
            "lower(*inputs) compiles without running, and ir() and ptx() then show what would run"
        )
    if kind == "cpu" and device == "cuda":
        raise ValueError("compiled for the CPU, but the tensors are on a GPU: leave the target out, or name a GPU")


def _program(imported: Imported, artifact: Artifact, options: Options) -> Program:
    launcher = make_launcher(artifact.code, options)
    dtypes = imported.result_dtypes, imported.argument_dtypes
    return make_program(artifact.host, launcher, *dtypes, disk=disk_cache(options))


def _returns_zeros(imported: Imported) -> Runner:
    shapes = [(value.shape, value.dtype, value.device) for value in imported.results]
    return lambda _: [torch.zeros(shape, dtype=dtype, device=device) for shape, dtype, device in shapes]


def _constants_to_arguments(graph: fx.GraphModule) -> list[torch.Tensor]:
    """Makes each tensor that the graph holds a further argument, and drops arguments that are no tensors."""
    placeholders = graph.graph.find_nodes(op="placeholder")
    for node in placeholders:
        if not isinstance(node.meta.get("val"), torch.Tensor):
            graph.graph.erase_node(node)
    values: list[torch.Tensor] = []
    for node in graph.graph.find_nodes(op="get_attr"):
        value = getattr(graph, str(node.target))
        with graph.graph.inserting_before(_first_operation(graph.graph)):
            argument = graph.graph.placeholder(f"constant_{len(values)}")
        argument.meta["val"] = node.meta.get("val", value)
        node.replace_all_uses_with(argument)
        graph.graph.erase_node(node)
        values.append(value)
    return values


def _first_operation(graph: fx.Graph) -> fx.Node:
    return next(node for node in graph.nodes if node.op != "placeholder")


@dataclass(frozen=True)
class _Argument:
    """A result that is an argument and no tensor (a process group, for one), by its number."""

    number: int


def _keep_tensor_outputs(graph: fx.GraphModule) -> tuple[list, dict[int, int]]:
    """Leaves the tensors among the results; returns all results, and the place of each tensor in what is left."""
    places = {node: number for number, node in enumerate(graph.graph.find_nodes(op="placeholder"))}
    returned = [
        _Argument(places[value]) if value in places and not isinstance(value.meta.get("val"), torch.Tensor) else value
        for value in output_nodes(graph.graph)
    ]
    tensors = [(number, node) for number, node in enumerate(returned) if isinstance(node, fx.Node)]
    (output,) = graph.graph.find_nodes(op="output")
    output.args = (tuple(node for _, node in tensors),)
    return returned, {number: place for place, (number, _) in enumerate(tensors)}


def _left_out(graph: fx.GraphModule) -> str | None:
    """The first operation that takes functions, such as `torch.cond`, or an object that is an argument of the graph."""
    for node in graph.graph.nodes:
        if isinstance(node.target, torch._ops.HigherOrderOperator):
            return f"{node.target}, which takes functions"
        opaque = [one for one in node.all_input_nodes if one.op == "placeholder" and _is_opaque(one)]
        if opaque and node.op != "output":
            return f"{node.target}, which takes the object {opaque[0]}"
    return None


def _is_opaque(node: fx.Node) -> bool:
    return not isinstance(node.meta.get("val"), torch.Tensor | int | float | bool | None)


def _left_to_pytorch(graph: fx.GraphModule) -> Runner:
    def call(arguments: list) -> list:
        inputs = list(arguments)
        arguments.clear()
        return list(graph(*inputs))

    return call


def _is_symbolic(value: object) -> bool:
    return isinstance(value, torch.Tensor) and any(isinstance(size, torch.SymInt) for size in value.shape)
