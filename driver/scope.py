"""Where options are set, and which of it holds for a call.

    with mlir_fusion.options(disable_options=["horizontal"]):       for what is compiled inside, in this thread
        fast = mlir_fusion.compile(model, enable_options=["matmul"])     captured with it when compile returns
    os.environ["MLIR_FUSION_DISABLE"] = "vectorize"                 read at every call
    fast(x, _disable_options=["matmul"])                            this call

Lowest first: the entry point's own defaults, what was captured, the environment, the call. A later level wins, so
it can switch off what an earlier one switched on. What one thread sets with `with` no other thread sees.
"""

from __future__ import annotations

import ctypes
import os
from collections.abc import Iterable
from contextvars import ContextVar
from dataclasses import dataclass
from functools import reduce
from typing import Self

from .options import NAMES, VARIABLES, Settings, Value

_NOTHING = Settings()
_NAMES = tuple(variable.encode() for variable in VARIABLES)
_getenv = ctypes.PyDLL(None).getenv
_getenv.restype, _getenv.argtypes = ctypes.c_char_p, [ctypes.c_char_p]
_blocks: ContextVar[tuple[Settings, ...]] = ContextVar("mlir_fusion_options", default=())


class options:  # noqa: N801 - a context manager, used as a function is
    """A block whose settings hold for whatever is compiled in it; an inner block wins over an outer one."""

    def __init__(
        self,
        fusion_type: str | None = None,
        target: str | None = None,
        enable_options: Iterable[str] = (),
        disable_options: Iterable[str] = (),
        **values: Value,
    ) -> None:
        """Options may be given by name too: `options(max_region_ops=8)`. ValueError for what isn't right."""
        if fusion_type in NAMES:
            raise ValueError(
                f"mlir_fusion.options: {fusion_type!r} is no fusion type but an option: "
                f"options(enable_options=[{fusion_type!r}]), or options({fusion_type}=...)"
            )
        said = {"fusion_type": fusion_type, "target": target, **values}
        lists = {"enable_options": enable_options, "disable_options": disable_options}
        self._settings = Settings.from_keywords({**said, **lists}, "mlir_fusion.options")

    def __enter__(self) -> Self:
        """Puts the settings on top of those around."""
        _blocks.set((*_blocks.get(), self._settings))
        return self

    def __exit__(self, *_: object) -> None:
        """Those around hold again."""
        _blocks.set(_blocks.get()[:-1])


@dataclass(frozen=True)
class Captured:
    """The settings that hold for an entry point from now on."""

    settings: Settings

    def settings_now(self, call: Settings = _NOTHING) -> Settings:
        """All that is said for a call that happens now; ValueError for what the environment gets wrong."""
        return self.settings.then(Settings.from_environment(os.environ)).then(call)


def capture(settings: Settings = _NOTHING) -> Captured:
    """What holds here: the `with` blocks around, then `settings`."""
    return Captured(reduce(Settings.then, blocks_around(), _NOTHING).then(settings))


def blocks_around() -> tuple[Settings, ...]:
    """What the `with` blocks around say, the outermost first."""
    return _blocks.get()


def read_environment() -> tuple[bytes | None, ...]:
    """What the environment says now, to be compared with what it said before; asked at every call, so of libc."""
    return tuple(map(_getenv, _NAMES))
