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
import inspect
import threading
from collections.abc import Callable, Sequence
from typing import Any, Protocol

import torch

from ..dialects.mlir import ir, register_torch
from ..driver.build import emit_text
from ..driver.cache import Count
from ..driver.options import Options, Settings
from ..driver.runner import make_context
from ..driver.scope import read_environment
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
    compiler = make_compiler("compile", settings, Options())

    def decorate(decorated: Callable | torch.nn.Module) -> Any:
        calls = _Calls(decorated, compiler, dynamic or False)
        compiled = _with_calls(decorated, calls)
        _attach(compiled, _Inspection(decorated, compiler))
        return compiled

    return decorate if function is None else decorate(function)


class _Calls:
    """Calls of a compiled function; those with options of their own have graphs of their own.

    So the backward pass of a call has the options of its forward pass, whenever and in whatever thread it runs.
    """

    def __init__(self, original: Callable, compiler: GraphCompiler, dynamic: bool) -> None:
        self._original, self._compiler, self._dynamic = original, compiler, dynamic
        self.plain = torch.compile(original, backend=dynamo_backend(compiler), dynamic=dynamic)
        self._checked: tuple[str | None, ...] = ()
        self._variants: dict[tuple, Any] = {}
        self._lock = threading.Lock()

    def __call__(
        self,
        plain: Callable,
        args: tuple[Any, ...],
        kwargs: dict[str, Any],
        enable: Sequence[str],
        disable: Sequence[str],
    ) -> Any:
        """Calls `plain`, or what is compiled for these options."""
        if (environment := read_environment()) != self._checked:
            # Here and not where Dynamo would wrap what is raised
            self._compiler.captured.settings_now()
            self._checked = environment
        if not enable and not disable:
            return plain(*args, **kwargs)
        return self._variant(Settings.read(enable, disable, "call"))(*args, **kwargs)

    def _variant(self, call: Settings) -> Callable:
        key = tuple(sorted(call.values.items()))
        with self._lock:
            if key not in self._variants:
                backend = dynamo_backend(self._compiler.for_call(call))
                self._variants[key] = torch.compile(self._original, backend=backend, dynamic=self._dynamic, **_ISOLATED)
            return self._variants[key]


# Where torch has it: variants don't count as recompilations of one another
_ISOLATED: dict[str, Any] = (
    {"isolate_recompiles": True} if "isolate_recompiles" in inspect.signature(torch.compile).parameters else {}
)


def _with_calls(original: Callable | torch.nn.Module, calls: _Calls) -> Any:
    """What torch.compile gives, but taking `_enable_options` and `_disable_options`."""
    compiled = calls.plain
    plain = compiled.forward if isinstance(original, torch.nn.Module) else compiled  # pyright: ignore

    @functools.wraps(original.forward if isinstance(original, torch.nn.Module) else original)
    def call(
        *args: Any, _enable_options: Sequence[str] = (), _disable_options: Sequence[str] = (), **kwargs: Any
    ) -> Any:
        return calls(plain, args, kwargs, _enable_options, _disable_options)

    if isinstance(original, torch.nn.Module):
        object.__setattr__(compiled, "forward", call)
        return compiled
    object.__setattr__(call, "_torchdynamo_orig_callable", original)
    return call


class _Inspection:
    """The methods of `Compiled` besides the call."""

    def __init__(self, original: Callable, compiler: GraphCompiler) -> None:
        self._original, self._compiler = original, compiler

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

    def cache_info(self) -> dict[str, Count]:
        return self._compiler.counts.table()

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
    for name in ("ir", "ptx", "lower", "cache_info"):
        object.__setattr__(compiled, name, getattr(inspection, name))
