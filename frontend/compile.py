"""`mlir_fusion.compile`: a PyTorch function or module, compiled.

    fast = mlir_fusion.compile(model)                                   # what is not said has a default
    fast = mlir_fusion.compile(model, fusion_type="dataflow", target="sm_90a")

    @mlir_fusion.compile(fusion_type="dataflow")
    def f(x): ...

What comes back is called like the original; a module stays a module, with the same parameters. A call may have
options of its own, `fast(x, _disable_options=["vectorize"])`. It can also be asked what was compiled: `fast.ir(stage)`,
`fast.ptx()`, and what of it was there already: `fast.cache_info()`.
"""

from __future__ import annotations

import functools
from collections.abc import Callable, Sequence
from typing import Any, Protocol

import torch

from ..dialects.mlir import ir, register_torch
from ..driver.build import emit_text
from ..driver.cache import Count
from ..driver.options import Options, Settings
from ..driver.runner import make_context
from ..driver.scope import Captured, capture, read_environment
from ..targets.target import Target
from .backend import dynamo_backend, read_settings
from .graphs import CompiledGraph, GraphCompiler
from .variants import Variants, compile_variant


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

    def cache_info(self) -> dict[str, Count]:
        """How often the result of each stage was there already, and how often the stage ran."""
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
    where the inputs are; `enable_options` and `disable_options` name options (`mlir_fusion.list_options()`). Raises
    ValueError for a value that is not allowed. Compilation happens at the first call with new shapes or dtypes.
    """
    settings = {
        "fusion_type": fusion_type,
        "target": target,
        "enable_options": enable_options,
        "disable_options": disable_options,
    }
    captured = capture(read_settings("compile", settings))

    def decorate(decorated: Callable | torch.nn.Module) -> Any:
        compiler = GraphCompiler(Options(), captured.settings)
        compiled = _with_calls(decorated, _Calls(decorated, captured, compiler, dynamic or False))
        _attach(compiled, _Inspection(decorated, captured, compiler))
        return compiled

    return decorate if function is None else decorate(function)


class _Calls:
    """Finds what is compiled for the options of a call: what was captured, the environment of now, the call's own.

    Each set of options has graphs of its own, so the backward pass of a call has the options of its forward pass,
    whenever and in whatever thread it runs, and what is compiled later for other shapes has them too.
    """

    def __init__(
        self, original: Callable | torch.nn.Module, captured: Captured, compiler: GraphCompiler, dynamic: bool
    ) -> None:
        self._captured = captured
        self._variants = Variants(
            lambda settings: compile_variant(original, dynamo_backend(compiler.under(settings)), dynamic)
        )
        self._last: tuple[object, Callable] | None = None

    def find(self, enable: Sequence[str], disable: Sequence[str]) -> Callable:
        """What runs a call with these options of its own; ValueError for what is wrong on any level."""
        environment, last = read_environment(), self._last
        if not enable and not disable and last is not None and last[0] == environment:
            return last[1]
        call = Settings.read(enable, disable, "call")
        found = self._variants.get(self._captured.settings_now(call))
        if not call.values:
            self._last = environment, found
        return found


def _with_calls(original: Callable | torch.nn.Module, calls: _Calls) -> Any:
    """What is called like the original, but takes `_enable_options` and `_disable_options`; a module stays one."""
    is_module = isinstance(original, torch.nn.Module)

    @functools.wraps(original.forward if is_module else original)
    def call(
        *args: Any, _enable_options: Sequence[str] = (), _disable_options: Sequence[str] = (), **kwargs: Any
    ) -> Any:
        return calls.find(_enable_options, _disable_options)(*args, **kwargs)

    if not is_module:
        object.__setattr__(call, "_torchdynamo_orig_callable", original)
        return call
    compiled = torch.compile(original, backend="eager")
    object.__setattr__(compiled, "forward", call)
    return compiled


class _Inspection:
    """The methods of `Compiled` besides the call."""

    def __init__(self, original: Callable | torch.nn.Module, captured: Captured, compiler: GraphCompiler) -> None:
        self._original, self._captured, self._compiler = original, captured, compiler

    def ir(self, stage: str = "region") -> str:
        return "".join(str(_text_of(graph, stage)) for graph in self._graphs())

    def ptx(self) -> str:
        for graph in self._graphs():
            if Target.parse(graph.options.target).kind != "gpu":
                raise ValueError(f"compiled for {graph.options.target}: name a GPU, compile(..., target='sm_90')")
        return self.ir("ptx")

    def lower(self, *args: Any, **kwargs: Any) -> _Inspection:
        trace(self._original, self._compiler.under(self._captured.settings_now()), args, kwargs)
        return self

    def cache_info(self) -> dict[str, Count]:
        return self._compiler.counts.table()

    def _graphs(self) -> list[CompiledGraph]:
        if not self._compiler.graphs:
            raise RuntimeError("nothing is compiled yet: call it, or lower(*inputs), first")
        return self._compiler.graphs


def trace(function: Callable, compiler: GraphCompiler, args: Sequence[Any], kwargs: dict[str, Any]) -> None:
    """Compiles `function` for these arguments with `compiler`, without running what was compiled."""
    backend = dynamo_backend(compiler.under(compiler.settings, dry=True))
    compile_variant(function, backend, dynamic=False)(*args, **kwargs)


def _text_of(graph: CompiledGraph, stage: str) -> str | bytes:
    context = make_context()
    register_torch(context)
    with context:
        module = ir.Module.parse(graph.text)
    return emit_text(module, graph.options, stage)


def _attach(compiled: object, inspection: _Inspection) -> None:
    """A function takes attributes; a module would make them its original's, so they go past its own setter."""
    for name in ("ir", "ptx", "lower", "cache_info"):
        object.__setattr__(compiled, name, getattr(inspection, name))
