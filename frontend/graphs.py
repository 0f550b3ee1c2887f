"""One FX graph, compiled: what AOTAutograd hands over becomes a function on a list of tensors.

A graph is brought into the form that the importer takes (graph_form.py). One with symbols among its sizes is compiled
once for all of them (sized_graph.py); where that can't be done it is traced again, and compiled, for each set of sizes
that it is called with.
"""

from __future__ import annotations

import logging
from collections.abc import Sequence
from dataclasses import dataclass, field, replace

import torch
from torch import fx
from torch.fx.experimental.proxy_tensor import make_fx

from ..driver.build import disk_cache
from ..driver.cache import Counts
from ..driver.launchers import make_launcher
from ..driver.options import Options, Settings
from ..passes.size_template import NotGeneralError
from ..runtime.program import Program
from ..targets.target import Target
from .graph_build import check_device, compile_graph, program_of
from .graph_form import (
    Place,
    Runner,
    constants_to_arguments,
    keep_tensor_outputs,
    left_out,
    left_to_pytorch,
    passed_through,
    put_back,
)
from .importer import Imported, program_device
from .sized_graph import compile_for_all_sizes

log = logging.getLogger("mlir_fusion.frontend")


@dataclass
class CompiledGraph:
    """A compiled graph: its text in the torch dialect, from which every stage can be printed again."""

    text: str
    options: Options
    library: tuple[tuple[str, str], ...]
    kind: str = "forward"
    """Or "backward"."""
    note: str = ""
    """Of a graph with symbols among its sizes: which numbers stand for them, or why it is compiled for these only."""


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

    def compile(self, graph: fx.GraphModule, inputs: Sequence[object], kind: str = "forward", note: str = "") -> Runner:
        """A function from the list of the graph's arguments, which it empties, to the list of its results.

        `kind` is "forward" or "backward", for those who read the result, as is `note`.
        """
        if any(isinstance(value, torch.SymInt) or _is_symbolic(value) for value in inputs):
            return self._for_all_sizes(graph, inputs, kind)
        reason = left_out(graph)
        if reason is not None:
            log.warning("a graph is left to PyTorch: %s", reason)
            return left_to_pytorch(graph)
        returned = keep_tensor_outputs(graph)
        constants = constants_to_arguments(graph)
        run = self._build(graph, self._options(inputs), kind, note)
        is_tensor = [isinstance(value, torch.Tensor) for value in inputs]
        through = passed_through(returned)
        if all(is_tensor) and not constants and all(isinstance(value, Place) for value in returned):
            return run

        def call(arguments: list) -> list:
            tensors = [value for value, is_one in zip(arguments, is_tensor, strict=True) if is_one]
            passed = {number: arguments[number] for number in through}
            arguments.clear()
            tensors += constants
            return put_back(returned, run(tensors), passed)

        return call

    def _for_all_sizes(self, graph: fx.GraphModule, inputs: Sequence[object], kind: str) -> Runner:
        """Compiles a graph of symbolic sizes once, or else, if that can't be, anew for each set of them."""
        if self.dry:
            return self._specialising(graph, kind, "nothing is run")
        options = self._options(inputs)
        try:
            sized = compile_for_all_sizes(
                graph, options, self.counts, lambda: self._specialising(graph, kind, "its memory lies otherwise")
            )
        except NotGeneralError as error:
            log.info("a graph is compiled for each set of sizes: %s", error)
            return self._specialising(graph, kind, str(error))
        self.graphs.append(CompiledGraph(sized.text, options, sized.library, kind, sized.note))
        # A function, not a method: AOTAutograd wants an attribute of it
        return lambda arguments: sized.run(arguments)

    def _options(self, inputs: Sequence[object]) -> Options:
        return self.settings.apply(replace(self.defaults, target=_processor(inputs)))

    def _specialising(self, graph: fx.GraphModule, kind: str, reason: str) -> Runner:
        """Compiles the graph anew for each set of sizes and strides."""
        known: dict[tuple, Runner] = {}

        def call(arguments: list) -> list:
            key = tuple((tuple(a.shape), a.stride()) if isinstance(a, torch.Tensor) else a for a in arguments)
            if key not in known:
                concrete = make_fx(graph, tracing_mode="fake")(*arguments)
                known[key] = self.compile(concrete, list(arguments), kind, f"for these sizes only: {reason}")
            return known[key](arguments)

        return call

    def _build(self, graph: fx.GraphModule, options: Options, kind: str, note: str) -> Runner:
        """A function that runs `graph`, compiled under these options."""
        imported, artifact = compile_graph(graph.graph, options, self.counts)
        self.graphs.append(CompiledGraph(imported.text, options, imported.library, kind, note))
        if self.dry:
            return _returns_zeros(imported)
        program: list[Program] = []

        def run(tensors: list) -> list:
            if not program:
                check_device(options.target, tensors)
                program.append(
                    program_of(artifact.host, make_launcher(artifact.code, options), imported, disk_cache(options))
                )
            return program[0].run(tensors)

        return run


def _processor(inputs: Sequence[object]) -> str:
    """The target that fits where the inputs are."""
    return Target.detect().name if program_device(inputs).type == "cuda" else "cpu"


def _returns_zeros(imported: Imported) -> Runner:
    shapes = [(value.shape, value.dtype, value.device) for value in imported.results]
    return lambda _: [torch.zeros(shape, dtype=dtype, device=device) for shape, dtype, device in shapes]


def _is_symbolic(value: object) -> bool:
    return isinstance(value, torch.Tensor) and any(isinstance(size, torch.SymInt) for size in value.shape)
