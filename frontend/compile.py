"""`mlir_fusion.compile`: a PyTorch function or module, compiled.

    fast = mlir_fusion.compile(model)                                   # what is not said has a default
    fast = mlir_fusion.compile(model, fusion_type="dataflow", target="sm_90a")

    @mlir_fusion.compile(fusion_type="dataflow")
    def f(x): ...

What comes back is called like the original; a module stays a module, with the same parameters. It can also be asked
what was compiled: `fast.ir(stage)`, `fast.ptx()`.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, Protocol

import torch

from ..dialects.mlir import ir, register_torch
from ..driver.build import emit_text
from ..driver.runner import make_context
from ..targets.target import Target
from .backend import dynamo_backend, make_compiler
from .graphs import CompiledGraph, GraphCompiler


class Compiled(Protocol):
    """What `compile` returns."""

    def __call__(self, *args: Any, **kwargs: Any) -> Any: ...

    def ir(self, stage: str = "region") -> str:
        """The MLIR text of every graph compiled so far, at a stage; RuntimeError before the first call."""
        ...

    def ptx(self) -> str:
        """The PTX of every graph compiled so far; ValueError for a program compiled for the CPU."""
        ...

    def lower(self, *args: Any, **kwargs: Any) -> Compiled:
        """Compiles for these arguments and runs nothing: no GPU is needed."""
        ...


def compile(
    function: Callable | torch.nn.Module | None = None,
    *,
    fusion_type: str | None = None,
    target: str | None = None,
    dynamic: bool | None = None,
    enable_options: Sequence[str] = (),
    disable_options: Sequence[str] = (),
) -> Any:
    """Compiles a function or a module; without one, a decorator.

    `fusion_type` is "consecutive" (the default), "dataflow" or "none"; `target` a GPU ("sm_90a") or "cpu", by default
    where the inputs are. Raises ValueError for a value that is not allowed. Compilation happens at the first call
    with new shapes or dtypes.
    """
    settings = {
        "fusion_type": fusion_type,
        "target": target,
        "enable_options": enable_options,
        "disable_options": disable_options,
    }
    compiler = make_compiler(settings)

    def decorate(decorated: Callable | torch.nn.Module) -> Any:
        compiled = torch.compile(decorated, backend=dynamo_backend(compiler), dynamic=dynamic or False)
        _attach(compiled, _Inspection(decorated, compiler, settings))
        return compiled

    return decorate if function is None else decorate(function)


class _Inspection:
    """The methods of `Compiled` besides the call."""

    def __init__(self, original: Callable, compiler: GraphCompiler, settings: dict[str, Any]) -> None:
        self._original, self._compiler, self._settings = original, compiler, settings

    def ir(self, stage: str = "region") -> str:
        return "".join(str(_text_of(graph, stage)) for graph in self._graphs())

    def ptx(self) -> str:
        for graph in self._graphs():
            if Target.parse(graph.options.target).kind != "gpu":
                raise ValueError(f"compiled for {graph.options.target}: name a GPU, compile(..., target='sm_90')")
        return self.ir("ptx")

    def lower(self, *args: Any, **kwargs: Any) -> _Inspection:
        trace(self._original, self._compiler, args, kwargs)
        return self

    def _graphs(self) -> list[CompiledGraph]:
        if not self._compiler.graphs:
            raise RuntimeError("nothing is compiled yet: call it, or lower(*inputs), first")
        return self._compiler.graphs


def trace(function: Callable, compiler: GraphCompiler, args: Sequence[Any], kwargs: dict[str, Any]) -> None:
    """Compiles `function` for these arguments with `compiler`, without running what was compiled."""
    before, compiler.dry = compiler.dry, True
    try:
        torch.compile(function, backend=dynamo_backend(compiler), dynamic=False)(*args, **kwargs)
    finally:
        compiler.dry = before


def _text_of(graph: CompiledGraph, stage: str) -> str | bytes:
    context = make_context()
    register_torch(context)
    with context:
        module = ir.Module.parse(graph.text)
    return emit_text(module, graph.options, stage)


def _attach(compiled: object, inspection: _Inspection) -> None:
    """A function takes attributes; a module would make them its original's, so they go past its own setter."""
    for name in ("ir", "ptx", "lower"):
        object.__setattr__(compiled, name, getattr(inspection, name))
