"""`torch.compile(model, backend="mlir_fusion", options={...})`.

Dynamo captures, AOTAutograd functionalises and splits forward from backward, and each graph is compiled by
`GraphCompiler`. Options: `fusion_type` ("dataflow" where nothing is said), `target`, `enable_options` and
`disable_options`. PyTorch tells a backend nothing before the first call, so here the `mlir_fusion.options` blocks are
those around the call, and like the environment they are looked at in each.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence

import torch
from torch import fx
from torch._dynamo.backends.common import aot_autograd

from ..driver.options import Options, Settings
from ..driver.scope import blocks_around, capture, read_environment
from ..passes.pass_base import unknown
from .decompositions import decomposition_table
from .graphs import GraphCompiler
from .partition import partition
from .variants import Variants, compile_variant

SETTINGS = ("fusion_type", "target", "enable_options", "disable_options")


def mlir_fusion_backend(
    graph: fx.GraphModule, inputs: Sequence[torch.Tensor], options: Mapping[str, object] | None = None
) -> Callable:
    """The backend that is registered with Dynamo."""
    said = read_settings("torch.compile(options=)", options or {})
    return _Graph(graph, inputs, said, GraphCompiler(Options(fusion_type="dataflow"), said)).call


class _Graph:
    """A graph of Dynamo's, compiled once for each set of options that it is called under.

    Each has its own forward and backward pass. The first is made at once, so that what is wrong with options or graph
    is told there; for another one Dynamo goes through the graph again, with the inputs of that call.
    """

    def __init__(
        self, graph: fx.GraphModule, inputs: Sequence[torch.Tensor], said: Settings, compiler: GraphCompiler
    ) -> None:
        self._said, around = said, _around()
        first = capture(said).settings_now()

        def make(settings: Settings) -> Callable:
            backend = dynamo_backend(compiler.under(settings))
            return backend(graph, inputs) if settings == first else compile_variant(graph, backend, None)

        self._variants = Variants(make)
        self._current = around, self._variants.get(first)

    def call(self, *arguments: object) -> object:
        """The graph's results, under the options of now."""
        around, run = self._current
        if around != (now := _around()):
            run = self._variants.get(capture(self._said).settings_now())
            self._current = now, run
        return run(*arguments)


def _around() -> tuple[object, ...]:
    """What may change from call to call."""
    return blocks_around(), read_environment()


def read_settings(where: str, said: Mapping[str, object]) -> Settings:
    """What is said in one place; ValueError for what there is not."""
    for name in said:
        if name not in SETTINGS:
            raise ValueError(f"{where}: {unknown('option', name, SETTINGS)}; allowed: {', '.join(SETTINGS)}")
    return Settings.read(
        said.get("enable_options") or (),  # pyright: ignore[reportArgumentType]
        said.get("disable_options") or (),  # pyright: ignore[reportArgumentType]
        where,
        fusion_type=said.get("fusion_type"),  # pyright: ignore[reportArgumentType]
        target=said.get("target"),  # pyright: ignore[reportArgumentType]
    )


def dynamo_backend(compiler: GraphCompiler) -> Callable:
    """A backend for torch.compile whose graphs `compiler` compiles."""

    def compile_graph(graph: fx.GraphModule, inputs: Sequence[object]) -> Callable:
        run = compiler.compile(graph, inputs)
        # AOTAutograd hands such a function its only list of the arguments, so that they can be freed on the way
        run._boxed_call = True  # pyright: ignore[reportFunctionMemberAccess]
        return run

    return aot_autograd(
        fw_compiler=compile_graph,
        bw_compiler=compile_graph,
        inference_compiler=compile_graph,
        partition_fn=partition,
        decompositions=decomposition_table(),
    )
