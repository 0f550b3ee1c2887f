"""What is compiled for one set of options after another, each kept as it was compiled."""

from __future__ import annotations

import inspect
import threading
from collections.abc import Callable
from types import FunctionType
from typing import Any

import torch

from ..driver.options import Settings


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
    if ISOLATES:
        options: dict[str, Any] = {"isolate_recompiles": True}
        return torch.compile(function, backend=backend, dynamic=dynamic, **options)
    return torch.compile(with_own_code(function), backend=backend, dynamic=dynamic)


def with_own_code(function: Callable | torch.nn.Module) -> Callable:
    """A function that calls `function`; Dynamo, which counts by code object, knows no other with its code."""

    def call(*args: Any, **kwargs: Any) -> Any:
        return function(*args, **kwargs)

    return FunctionType(call.__code__.replace(), call.__globals__, call.__name__, None, call.__closure__)
