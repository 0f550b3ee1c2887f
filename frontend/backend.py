"""`torch.compile(model, backend="mlir_fusion", options={...})`.

Dynamo captures, AOTAutograd functionalises and splits forward from backward, and each graph is compiled by
`GraphCompiler`. Options: each by its name (`fusion_type` is "dataflow" where nothing is said), and the lists
`enable_options` and `disable_options`. PyTorch tells a backend nothing before the first call, so here the
`mlir_fusion.options` blocks are those around the call, and like the environment they are looked at in each.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence

import torch
from torch import fx
from torch._dynamo.backends.common import aot_autograd

from ..driver.options import Options, Settings
from ..driver.scope import blocks_around, capture, read_environment
from .decompositions import decomposition_table
from .graphs import GraphCompiler
from .partition import partition
from .variants import Variants, compile_variant


def mlir_fusion_backend(
    graph: fx.GraphModule,
    inputs: Sequence[torch.Tensor],
    options: Mapping[str, object] | None = None,
    mode: str | None = None,
) -> Callable:
    """The backend that is registered with Dynamo; ValueError for options that there are not, and for any mode."""
    if mode is not None:
        raise ValueError(
            f"mlir_fusion has no modes (got mode={mode!r}): what it does is set by "
            "torch.compile(options={...}), such as {'fusion_type': 'dataflow'}; mlir_fusion.list_options() lists all"
        )
    said = Settings.from_keywords(options or {}, "torch.compile(options=)")
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


def dynamo_backend(compiler: GraphCompiler) -> Callable:
    """A backend for torch.compile whose graphs `compiler` compiles."""

    def compile_forward(graph: fx.GraphModule, inputs: Sequence[object]) -> Callable:
        return _boxed(compiler.compile(graph, inputs, "forward"))

    def compile_backward(graph: fx.GraphModule, inputs: Sequence[object]) -> Callable:
        return _boxed(compiler.compile(graph, inputs, "backward"))

    return aot_autograd(
        fw_compiler=compile_forward,
        bw_compiler=compile_backward,
        inference_compiler=compile_forward,
        partition_fn=partition,
        decompositions=decomposition_table(),
    )


def _boxed(run: Callable) -> Callable:
    """AOTAutograd hands such a function its only list of the arguments, so that they can be freed on the way."""
    run._boxed_call = True  # pyright: ignore[reportFunctionMemberAccess]
    return run
