"""Draws of random numbers become `fusion.random`: compiled, fused with what uses them, the same on every target.

A graph that draws gets one seed from PyTorch's generator, by a library call that keeps its place among the others; each
draw has offsets of its own below it, reserved in the order of the source, whether it is used or not. So the same
`torch.manual_seed` repeats a program's numbers, on the CPU and on a GPU alike; which they are is not what eager PyTorch
would draw, unless the option `eager_random` leaves them to the library.

    native_dropout(x, p, True)   ->   keep = random(seed, 0, x.shape, "uniform") >= p
                                      x * (keep * (1 / (1 - p))), keep

What the library keeps: draws from a generator of the caller's own, of f64 and integers, and results that don't lie row
by row. Forward and backward agree as in eager PyTorch: the backward pass reads the mask of the forward pass.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

import torch
from torch import Tensor, fx
from torch._guards import detect_fake_mode
from torch.fx.node import map_arg

from .common_dtype import NARROW
from .compiled_ops import tensor_values

aten = torch.ops.aten
DTYPES = (torch.float32, *NARROW)
RESERVED = 2**44  # counters of a draw, of four numbers each: more than any tensor has, whatever its size
LEAST_SEED, MOST_SEED = -(2**63), 2**63 - 1


# What `fusion.random` computes; the seed is int64, 0-d. It is only compiled, so that it has no function to run
torch.library.define(
    "mlir_fusion::random",
    "(Tensor seed, SymInt offset, SymInt[] size, str kind, ScalarType dtype) -> Tensor",
    tags=torch.Tag.pt2_compliant_tag,
)


@torch.library.register_fake("mlir_fusion::random")
def _(seed: Tensor, offset: int, size: Sequence[int], kind: str, dtype: torch.dtype) -> Tensor:
    return seed.new_empty(size, dtype=dtype)


RANDOM = torch.ops.mlir_fusion.random.default


def draw_random_numbers(graph: fx.Graph, device: torch.device) -> None:
    """Rewrites the draws of a program for `device`, in place."""
    draws = [node for node in graph.nodes if node.target in _REWRITES and _can_be_compiled(node, device)]
    if not draws:
        return
    builder = _Builder(graph, device, next(iter(draws)))
    for node in draws:
        with graph.inserting_before(node):
            results = _REWRITES[node.target](builder, node)
        _replace(node, results)
    graph.lint()


def _can_be_compiled(node: fx.Node, device: torch.device) -> bool:
    if node.kwargs.get("generator") is not None:
        return False
    result = _first_value(node)
    if result.device != device or result.dtype not in DTYPES or not result.is_contiguous() or not result.numel():
        return False
    if node.target is aten.native_dropout.default:
        return node.args[2] is not False and 0 < node.args[1] < 1 and _is_row_major(node.args[0])  # pyright: ignore
    return all(_is_row_major(operand) for operand in node.all_input_nodes)


def _is_row_major(operand: object) -> bool:
    return isinstance(operand, fx.Node) and operand.meta["val"].is_contiguous()


def _replace(node: fx.Node, results: Sequence[fx.Node]) -> None:
    if not isinstance(node.meta["val"], tuple | list):
        node.replace_all_uses_with(results[0])
    else:
        for user in list(node.users):
            user.replace_all_uses_with(results[user.args[1]])  # pyright: ignore[reportArgumentType, reportCallIssue]
            node.graph.erase_node(user)
    node.graph.erase_node(node)


@dataclass
class _Builder:
    """Adds calls to a graph at its insertion point, with the fake tensors that they give."""

    graph: fx.Graph
    device: torch.device
    first: fx.Node
    draws: int = 0
    seed: fx.Node | None = None

    def call(self, target: Callable, *args: object, **kwargs: object) -> fx.Node:
        """A node that calls an overload."""
        node = self.graph.call_function(target, args, kwargs)  # pyright: ignore[reportArgumentType]
        values = [map_arg(given, lambda operand: operand.meta["val"]) for given in (node.args, node.kwargs)]
        mode = detect_fake_mode(_first_value(self.first))
        assert mode is not None, "a graph that is compiled has fake tensors"
        with mode:
            node.meta["val"] = target(*values[0], **values[1])  # pyright: ignore
        return node

    def draw(self, size: Sequence[int], kind: str = "uniform", dtype: torch.dtype = torch.float32) -> fx.Node:
        """So many numbers, below the graph's seed, at offsets that no other draw has."""
        if self.seed is None:
            self.seed = self.call(
                aten.randint.low, LEAST_SEED, MOST_SEED, [], dtype=torch.int64, device=self.device, pin_memory=False
            )
        node = self.call(RANDOM, self.seed, self.draws * RESERVED, list(size), kind, dtype)
        self.draws += 1
        return node

    def number(self, value: float) -> fx.Node:
        """A 0-d f32 tensor."""
        return self.call(aten.full.default, [], value, dtype=torch.float32, device=self.device, pin_memory=False)

    def to(self, node: fx.Node, dtype: torch.dtype) -> fx.Node:
        """The same in another dtype."""
        return node if node.meta["val"].dtype == dtype else self.call(aten._to_copy.default, node, dtype=dtype)

    def scaled(self, node: fx.Node, factor: float, term: float) -> fx.Node:
        """node * factor + term, in f32; what changes nothing is left out."""
        if factor != 1:
            node = self.call(aten.mul.Tensor, node, self.number(factor))
        return node if term == 0 else self.call(aten.add.Tensor, node, self.number(term))


def _first_value(node: fx.Node) -> Tensor:
    """The fake tensor of a node's first result."""
    return next(tensor_values(node.meta["val"]))


def _shape(node: fx.Node) -> list[int]:
    return list(_first_value(node).shape)


def _dropout(builder: _Builder, node: fx.Node) -> list[fx.Node]:
    """In f32, rounded once, as PyTorch's kernels do."""
    x, p = node.args[:2]
    assert isinstance(x, fx.Node) and isinstance(p, float | int)
    keep = builder.call(aten.ge.Tensor, builder.draw(_shape(node)), builder.number(p))
    factor = builder.scaled(builder.to(keep, torch.float32), 1 / (1 - p), 0)
    wide = builder.call(aten.mul.Tensor, builder.to(x, torch.float32), factor)
    return [builder.to(wide, x.meta["val"].dtype), keep]


def _uniform(builder: _Builder, node: fx.Node, low: float, high: float) -> list[fx.Node]:
    """A number that is rounded up to the end of the range, which is not in it, is its start instead."""
    dtype = node.meta["val"].dtype
    drawn = builder.draw(_shape(node), dtype=dtype)
    if (low, high) == (0, 1):
        return [drawn]
    value = builder.to(builder.scaled(builder.to(drawn, torch.float32), high - low, low), dtype)
    ends = [builder.to(builder.number(end), dtype) for end in (low, high)]
    return [builder.call(aten.where.self, builder.call(aten.lt.Tensor, value, ends[1]), value, ends[0])]


def _normal(builder: _Builder, node: fx.Node, mean: float, deviation: float) -> list[fx.Node]:
    drawn = builder.draw(_shape(node), "normal")
    return [builder.to(builder.scaled(drawn, deviation, mean), node.meta["val"].dtype)]


def _below(builder: _Builder, node: fx.Node, probability: fx.Node) -> list[fx.Node]:
    is_below = builder.call(aten.lt.Tensor, builder.draw(_shape(node)), builder.to(probability, torch.float32))
    return [builder.to(is_below, node.meta["val"].dtype)]


def _argument(node: fx.Node, place: int, name: str, default: float) -> float:
    value = node.args[place] if len(node.args) > place else node.kwargs.get(name, default)
    assert isinstance(value, float | int)
    return value


_REWRITES: dict[Callable, Callable[[_Builder, fx.Node], list[fx.Node]]] = {
    aten.native_dropout.default: _dropout,
    aten.rand.default: lambda builder, node: _uniform(builder, node, 0, 1),
    aten.rand_like.default: lambda builder, node: _uniform(builder, node, 0, 1),
    aten.uniform.default: lambda builder, node: _uniform(
        builder, node, _argument(node, 1, "from", 0.0), _argument(node, 2, "to", 1.0)
    ),
    aten.randn.default: lambda builder, node: _normal(builder, node, 0, 1),
    aten.randn_like.default: lambda builder, node: _normal(builder, node, 0, 1),
    aten.normal_functional.default: lambda builder, node: _normal(
        builder, node, _argument(node, 1, "mean", 0.0), _argument(node, 2, "std", 1.0)
    ),
    aten.bernoulli.default: lambda builder, node: _below(builder, node, node.args[0]),  # pyright: ignore
    aten.bernoulli.p: lambda builder, node: _below(builder, node, builder.number(_argument(node, 1, "p", 0.5))),
}
