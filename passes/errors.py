"""How a pass refuses the user's program."""

from __future__ import annotations

from ..dialects.mlir import ir


class PassFailure(Exception):  # noqa: N818, for MLIR calls it so (signalPassFailure)
    """A fault in the user's program: becomes the MLIR diagnostic `location: error: message`."""

    def __init__(self, location: ir.Location, message: str) -> None:
        """`location` is the operation that can't be compiled."""
        super().__init__(message)
        self.location = location
        self.message = message
