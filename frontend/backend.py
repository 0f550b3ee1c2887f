"""`torch.compile(model, backend="mlir_fusion", options={...})`.

Dynamo captures, AOTAutograd functionalises and splits forward from backward, and each graph is compiled by
`GraphCompiler`. Options: `fusion_type` ("dataflow" where nothing is said), `target`, `enable_options` and
`disable_options`. They are captured, with the `mlir_fusion.options` blocks around, when Dynamo calls the backend:
it tells us nothing before.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence

import torch
from functorch.compile import min_cut_rematerialization_partition
from torch import fx
from torch._dynamo.backends.common import aot_autograd
from torch._functorch._aot_autograd.utils import make_boxed_func

from ..driver.options import Options, Settings
from ..driver.scope import capture
from ..passes.pass_base import unknown
from .decompositions import decomposition_table
from .graphs import GraphCompiler

SETTINGS = ("fusion_type", "target", "enable_options", "disable_options")


def mlir_fusion_backend(
    graph: fx.GraphModule, inputs: Sequence[torch.Tensor], options: Mapping[str, object] | None = None
) -> Callable:
    """The backend that is registered with Dynamo."""
    compiler = make_compiler("torch.compile(options=)", options or {}, Options(fusion_type="dataflow"))
    return dynamo_backend(compiler)(graph, inputs)


def make_compiler(where: str, said: Mapping[str, object], defaults: Options) -> GraphCompiler:
    """The compiler for what was said and what holds around; ValueError for what there is not."""
    for name in said:
        if name not in SETTINGS:
            raise ValueError(f"{where}: {unknown('option', name, SETTINGS)}; allowed: {', '.join(SETTINGS)}")
    settings = Settings.read(
        said.get("enable_options") or (),  # pyright: ignore[reportArgumentType]
        said.get("disable_options") or (),  # pyright: ignore[reportArgumentType]
        where,
        fusion_type=said.get("fusion_type"),  # pyright: ignore[reportArgumentType]
        target=said.get("target"),  # pyright: ignore[reportArgumentType]
    )
    return GraphCompiler(capture(defaults, settings))


def dynamo_backend(compiler: GraphCompiler) -> Callable:
    """A backend for torch.compile whose graphs `compiler` compiles."""

    def compile_graph(graph: fx.GraphModule, inputs: Sequence[object]) -> Callable:
        return make_boxed_func(_unboxed(compiler.compile(graph, inputs)))

    return aot_autograd(
        fw_compiler=compile_graph,
        bw_compiler=compile_graph,
        inference_compiler=compile_graph,
        partition_fn=min_cut_rematerialization_partition,
        decompositions=decomposition_table(),
    )


def _unboxed(run: Callable[[list], list]) -> Callable[..., list]:
    return lambda *arguments: run(list(arguments))
