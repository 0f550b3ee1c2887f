"""What is compiled for one set of options after another, each kept as it was compiled."""

from __future__ import annotations

import inspect
import logging
import threading
from collections import Counter
from collections.abc import Callable, Sequence
from types import FunctionType
from typing import Any

import torch
from torch import fx
from torch._guards import CompileContext

from ..driver.options import Settings

log = logging.getLogger("mlir_fusion.frontend")


class Variants:
    """A callable for each set of settings; made when it is first needed, once even by several threads."""

    def __init__(self, make: Callable[[Settings], Callable]) -> None:
        """None so far."""
        self._make = make
        self._known: dict[tuple, Callable] = {}
        self._lock = threading.Lock()

    def get(self, settings: Settings) -> Callable:
        """The one for these settings."""
        key = tuple(sorted(settings.values.items()))
        with self._lock:
            if key not in self._known:
                self._known[key] = self._make(settings)
            return self._known[key]


ISOLATES = "isolate_recompiles" in inspect.signature(torch.compile).parameters


def compile_variant(function: Callable | torch.nn.Module, backend: Callable, dynamic: bool | None) -> Callable:
    """torch.compile, such that variants of one function don't count as recompilations of one another."""
    told = _telling_of_limit(backend, getattr(function, "__qualname__", type(function).__name__))
    if ISOLATES:
        options: dict[str, Any] = {"isolate_recompiles": True}
        return torch.compile(function, backend=told, dynamic=dynamic, **options)
    return torch.compile(with_own_code(function), backend=told, dynamic=dynamic)


def _telling_of_limit(backend: Callable, name: str) -> Callable:
    """The backend, but it warns when PyTorch compiles a function for the last time."""
    compiled: Counter[int | None] = Counter()

    def compile_graph(graph: fx.GraphModule, inputs: Sequence[object]) -> Callable:
        compilation = CompileContext.current_compile_id()
        frame = compilation.frame_id if compilation else None
        compiled[frame] += 1
        limit = torch._dynamo.config.recompile_limit
        if compiled[frame] == limit:
            log.warning(
                "%s was compiled %d times, for other sizes or other Python values each; that is PyTorch's limit, so "
                "for others it runs uncompiled from now on. dynamic=None takes any number of sizes; "
                "torch._dynamo.config.recompile_limit is the limit",
                name,
                limit,
            )
        return backend(graph, inputs)

    return compile_graph


def with_own_code(function: Callable | torch.nn.Module) -> Callable:
    """A function that calls `function`; Dynamo, which counts by code object, knows no other with its code."""

    def call(*args: Any, **kwargs: Any) -> Any:
        return function(*args, **kwargs)

    return FunctionType(call.__code__.replace(), call.__globals__, call.__name__, None, call.__closure__)
