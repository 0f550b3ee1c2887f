"""Random programs of view-like ops, as MLIR text, for tests: a chain from an argument to the result."""

from __future__ import annotations

import math
import random


class ViewChain:
    """Writes a chain op by op; `shape` is that of the last value."""

    def __init__(self, seed: int, length: int) -> None:
        self.random = random.Random(seed)
        self.shape = [self.random.choice([1, 2, 3, 4, 6]) for _ in range(self.random.randint(1, 4))]
        self.argument_shape = list(self.shape)
        self.lines: list[str] = []
        self.value = "%x"
        self.names = 0
        for _ in range(length):
            self.random.choice(STEPS)(self)

    def text(self) -> str:
        """A module whose @main returns the last value."""
        body = "\n".join(f"  {line}" for line in self.lines)
        source, result = _tensor(self.argument_shape), _tensor(self.shape)
        return f"func.func @main(%x: {source}) -> {result} {{\n{body}\n  return {self.value} : {result}\n}}\n"

    def step(self, operation: str, shape: list[int]) -> None:
        """Appends an op whose text names the result's type `{result}` and the last value `{value}`."""
        self.names += 1
        name = f"%v{self.names}"
        types = {"source": _tensor(self.shape), "result": _tensor(shape), "value": self.value, "name": name}
        self.lines += operation.format(**types).split("\n")
        self.value, self.shape = name, shape

    def transpose(self) -> None:
        order = self.random.sample(range(len(self.shape)), len(self.shape))
        self._copy(f"linalg.transpose ins({{value}} : {{source}}) outs({{name}}e : {{result}}) permutation = {order}",
                   [self.shape[dimension] for dimension in order])  # fmt: skip

    def broadcast(self) -> None:
        if len(self.shape) > 3:
            return
        place = self.random.randint(0, len(self.shape))
        shape = [*self.shape[:place], 2, *self.shape[place:]]
        self._copy(f"linalg.broadcast ins({{value}} : {{source}}) outs({{name}}e : {{result}}) dimensions = [{place}]",
                   shape)  # fmt: skip

    def expand(self) -> None:
        divisible = [place for place, size in enumerate(self.shape) if size % 2 == 0]
        if not divisible or len(self.shape) > 4:
            return
        place = self.random.choice(divisible)
        shape = [*self.shape[:place], 2, self.shape[place] // 2, *self.shape[place + 1 :]]
        groups = _groups(len(shape), place)
        self.step(
            f"{{name}} = tensor.expand_shape {{value}} {groups} output_shape {shape} : {{source}} into {{result}}",
            shape,
        )

    def collapse(self) -> None:
        if len(self.shape) < 2:
            return
        place = self.random.randrange(len(self.shape) - 1)
        shape = [*self.shape[:place], math.prod(self.shape[place : place + 2]), *self.shape[place + 2 :]]
        groups = _groups(len(self.shape), place)
        self.step(f"{{name}} = tensor.collapse_shape {{value}} {groups} : {{source}} into {{result}}", shape)

    def take(self) -> None:
        steps = [self.random.choice([1, 1, 2]) for _ in self.shape]
        offsets = [self.random.randrange(size) for size in self.shape]
        sizes = [
            self.random.randint(1, (size - offset - 1) // step + 1)
            for size, offset, step in zip(self.shape, offsets, steps, strict=True)
        ]
        self.step(
            f"{{name}} = tensor.extract_slice {{value}}{offsets} {sizes} {steps} : {{source}} to {{result}}", sizes
        )

    def _copy(self, operation: str, shape: list[int]) -> None:
        self.step(f"{{name}}e = tensor.empty() : {{result}}\n{{name}} = {operation}", shape)


STEPS = (ViewChain.transpose, ViewChain.broadcast, ViewChain.expand, ViewChain.collapse, ViewChain.take)


def _tensor(shape: list[int]) -> str:
    return f"tensor<{''.join(f'{size}x' for size in shape)}f32>"


def _groups(rank: int, place: int) -> list[list[int]]:
    """All dimensions by themselves, but `place` and the next one together."""
    before = [[dimension] for dimension in range(place)]
    return [*before, [place, place + 1], *([dimension] for dimension in range(place + 2, rank))]
