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
import sys
from collections.abc import Callable, Sequence
from typing import Any, Protocol
from weakref import WeakKeyDictionary

import torch

from ..dialects.mlir import ir, register_torch
from ..driver.build import emit_text
from ..driver.cache import CountTable
from ..driver.options import FUSION_TYPES, Options, Settings, shown
from ..driver.runner import make_context
from ..driver.scope import Captured, capture, read_environment
from ..targets.target import Target
from .backend import dynamo_backend
from .graphs import CompiledGraph, GraphCompiler
from .variants import Variants, compile_variant

SEPARATOR = "// -----\n"


class Compiled(Protocol):
    """What `compile` returns."""

    def __call__(self, *args: Any, **kwargs: Any) -> Any: ...

    def ir(self, stage: str = "region") -> str:
        """The text of every graph compiled so far, at a stage, with a comment in front of each that says which.

        Lines of `// -----` stand between them: `fusion-opt --split-input-file` reads it. TypeError or ValueError for
        what is no stage of the target, RuntimeError before the first call.
        """
        ...

    def ptx(self) -> str:
        """The PTX of every graph compiled so far; ValueError for a program compiled for the CPU."""
        ...

    def lower(self, *args: Any, **kwargs: Any) -> Compiled:
        """Compiles for these arguments and runs nothing: no GPU is needed."""
        ...

    def cache_info(self) -> CountTable:
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
    where the inputs are; `enable_options` and `disable_options` name options (`mlir_fusion.list_options()`).
    `dynamic` is torch.compile's: None takes any number of sizes, False only as many as PyTorch recompiles for. Raises
    ValueError for a value that is not allowed, TypeError for what is no function and no module. Compilation happens
    at the first call with new shapes or dtypes.
    """
    if function is not None:
        check_callable("compile", function)
    settings = {
        "fusion_type": fusion_type,
        "target": target,
        "enable_options": enable_options,
        "disable_options": disable_options,
    }
    captured = capture(Settings.from_keywords(settings, "compile"))

    def decorate(decorated: Callable | torch.nn.Module) -> Any:
        check_callable("compile", decorated)
        compiler = GraphCompiler(Options(), captured.settings)
        compiled = _with_calls(decorated, _Calls(decorated, captured, compiler, dynamic))
        _attach(compiled, _Inspection(compiled, decorated, captured, compiler))
        _captured[compiled] = captured
        return compiled

    return decorate if function is None else decorate(function)


_captured: WeakKeyDictionary[Any, Captured] = WeakKeyDictionary()


def captured_by(compiled: Callable) -> Captured | None:
    """The settings of what `compile` returned; None for anything else."""
    return _captured.get(compiled)


def check_callable(where: str, function: object) -> None:
    """TypeError unless it can be compiled."""
    if isinstance(function, str):
        raise TypeError(f"{where}: expected a function or a torch.nn.Module, got {function!r}; {_named(function)}")
    if isinstance(function, type):
        raise TypeError(f"{where}: expected a function or a torch.nn.Module, got the class {function.__name__}")
    if not callable(function):
        raise TypeError(f"{where}: expected a function or a torch.nn.Module, got {shown(function)}")


def _named(text: str) -> str:
    return f"a fusion type is given by name, fusion_type={text!r}" if text in FUSION_TYPES else "settings have names"


class _Calls:
    """Finds what is compiled for the options of a call: what was captured, the environment of now, the call's own.

    Each set of options has graphs of its own, so the backward pass of a call has the options of its forward pass,
    whenever and in whatever thread it runs, and what is compiled later for other shapes has them too.
    """

    def __init__(
        self, original: Callable | torch.nn.Module, captured: Captured, compiler: GraphCompiler, dynamic: bool | None
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

    def __init__(
        self, compiled: Compiled, original: Callable | torch.nn.Module, captured: Captured, compiler: GraphCompiler
    ) -> None:
        self._compiled, self._original, self._captured, self._compiler = compiled, original, captured, compiler

    def ir(self, stage: str = "region") -> str:
        if not isinstance(stage, str):
            raise TypeError(f"ir: expected the name of a stage, got {shown(stage)}")
        if stage == "cubin":
            raise ValueError("a cubin is no text: ir('ptx') gives the text that it is made of")
        graphs = self._graphs()
        texts = [_heading(number, len(graphs), graph) + _text_of(graph, stage) for number, graph in enumerate(graphs)]
        return SEPARATOR.join(texts)

    def ptx(self) -> str:
        for graph in self._graphs():
            if Target.parse(graph.options.target).kind != "gpu":
                raise ValueError(f"compiled for {graph.options.target}: name a GPU, compile(..., target='sm_90')")
        return self.ir("ptx")

    def lower(self, *args: Any, **kwargs: Any) -> Compiled:
        trace(self._original, self._compiler.under(self._captured.settings_now()), args, kwargs)
        return self._compiled

    def cache_info(self) -> CountTable:
        return self._compiler.counts.table()

    def _graphs(self) -> list[CompiledGraph]:
        if not self._compiler.graphs:
            raise RuntimeError("nothing is compiled yet: call it, or lower(*inputs), first")
        return self._compiler.graphs


def trace(function: Callable, compiler: GraphCompiler, args: Sequence[Any], kwargs: dict[str, Any]) -> None:
    """Compiles `function` for these arguments with `compiler`, without running what was compiled.

    RuntimeError if there was nothing to compile.
    """
    before = len(compiler.graphs)
    backend = dynamo_backend(compiler.under(compiler.settings, dry=True))
    # Compiling for these arguments is all that is asked for, however often it was before
    with torch._dynamo.config.patch(accumulated_recompile_limit=sys.maxsize):
        compile_variant(function, backend, dynamic=False)(*args, **kwargs)
    if len(compiler.graphs) == before:
        name = getattr(function, "__qualname__", type(function).__name__)
        raise RuntimeError(
            f"nothing of {name} was compiled: PyTorch found no tensor operations in it that it could take"
        )


def _heading(number: int, count: int, graph: CompiledGraph) -> str:
    """Which graph it is, as a comment."""
    options = {"fusion_type": graph.options.fusion_type, "target": graph.options.target, **graph.options.differences()}
    settings = ", ".join(f"{name}={value}" for name, value in options.items())
    note = f"; {graph.note}" if graph.note else ""
    return f"// graph {number + 1} of {count}, {graph.kind}: {settings}{note}\n"


def _text_of(graph: CompiledGraph, stage: str) -> str:
    context = make_context()
    register_torch(context)
    with context:
        module = ir.Module.parse(graph.text)
    return str(emit_text(module, graph.options, stage))


def _attach(compiled: object, inspection: _Inspection) -> None:
    """A function takes attributes; a module would make them its original's, so they go past its own setter."""
    for name in ("ir", "ptx", "lower", "cache_info"):
        object.__setattr__(compiled, name, getattr(inspection, name))
