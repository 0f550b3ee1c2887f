"""`torch.compile(model, backend="mlir_fusion", options={...})`.

Dynamo captures, AOTAutograd functionalises and splits forward from backward, and each graph is compiled by
`GraphCompiler`. Options: `fusion_type` ("dataflow" where nothing is said), `target`, `enable_options` and
`disable_options`.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence

import torch
from functorch.compile import min_cut_rematerialization_partition
from torch import fx
from torch._dynamo.backends.common import aot_autograd
from torch._functorch._aot_autograd.utils import make_boxed_func

from ..driver.options import Options
from ..passes.pass_base import unknown
from .decompositions import decomposition_table
from .graphs import GraphCompiler

SETTINGS = ("fusion_type", "target", "enable_options", "disable_options")
Settings = Mapping[str, object]


def mlir_fusion_backend(
    graph: fx.GraphModule, inputs: Sequence[torch.Tensor], options: Settings | None = None
) -> Callable:
    """The backend that is registered with Dynamo."""
    settings = dict(options or {})
    settings.setdefault("fusion_type", "dataflow")
    return dynamo_backend(make_compiler(settings))(graph, inputs)


def make_compiler(settings: Settings) -> GraphCompiler:
    """The compiler for these settings; ValueError for one that there is not."""
    for name in settings:
        if name not in SETTINGS:
            raise ValueError(f"{unknown('option', name, SETTINGS)}; allowed: {', '.join(SETTINGS)}")
    target = settings.get("target")
    options = Options.from_settings(
        fusion_type=settings.get("fusion_type"),  # pyright: ignore[reportArgumentType]
        target=target,  # pyright: ignore[reportArgumentType]
        enable=settings.get("enable_options") or (),  # pyright: ignore[reportArgumentType]
        disable=settings.get("disable_options") or (),  # pyright: ignore[reportArgumentType]
    )
    return GraphCompiler(options, None if target is None else options.target)


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
