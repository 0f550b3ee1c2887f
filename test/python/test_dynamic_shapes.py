"""Programs with symbolic sizes: compiled once, right for every size; those that can't be are compiled for each."""

from collections.abc import Callable, Sequence

import pytest
import torch
from mlir_fusion.frontend.compile import Compiled
from torch import Tensor

import mlir_fusion

Shapes = Sequence[tuple[int, ...]]


def compiled(function: Callable, target: str = "cpu") -> Compiled:
    torch._dynamo.reset()
    return mlir_fusion.compile(function, dynamic=True, target=target, fusion_type="dataflow")


def graphs(fast: Compiled) -> list[str]:
    """The lines that say what each compiled graph is."""
    return [line for line in fast.ir("linalg").splitlines() if line.startswith("// graph")]


def check(fast: Callable, function: Callable, inputs: Sequence[Tensor], tolerance: float = 1e-5) -> None:
    """Compares the results, and for inputs that have gradients those, with the function's on f64."""
    exact_inputs = [each.detach().double().requires_grad_(each.requires_grad) for each in inputs]
    results, exact = list(fast(*inputs)), list(function(*exact_inputs))
    if any(each.requires_grad for each in inputs):
        sum(each.square().sum() for each in results).backward()
        sum(each.square().sum() for each in exact).backward()
        results += [each.grad for each in inputs]
        exact += [each.grad for each in exact_inputs]
    for one, other in zip(results, exact, strict=True):
        assert one.shape == other.shape and one.dtype == torch.float32
        torch.testing.assert_close(one.double(), other, rtol=tolerance, atol=tolerance)


def inputs_of(shapes: Shapes, requires_grad: bool = False) -> list[Tensor]:
    return [torch.randn(shape, requires_grad=requires_grad) for shape in shapes]


def pointwise(x: Tensor, y: Tensor) -> tuple[Tensor, ...]:
    return (x * 2 + y).relu(), torch.cat([x, y]), (x + y).t() + 1, x[1:, ::2] - 1


def reductions(x: Tensor, w: Tensor) -> tuple[Tensor, ...]:
    y = torch.nn.functional.layer_norm(x, (x.shape[-1],), w)
    scores = torch.softmax(torch.tril(x @ x.transpose(-1, -2)) / 8, -1)
    return y, scores.mean(), x.amax(0), torch.nn.functional.pad(x, (1, 2)).sum(1), x.reshape(-1)[: x.shape[1] // 2]


SIZES = [(3, 8), (7, 5), (64, 64), (6, 1000), (4097, 3)]


@pytest.mark.parametrize("target", ["cpu", "simt"])
def test_pointwise_programs_compile_once(target: str) -> None:
    fast = compiled(pointwise, target)
    check(fast, pointwise, inputs_of([SIZES[0]] * 2))
    kernels = fast.cache_info()["kernels"]
    for size in SIZES[1:]:
        check(fast, pointwise, inputs_of([size, size]))
    assert len(graphs(fast)) == 1 and fast.cache_info()["kernels"] == kernels
    assert "for all sizes" in graphs(fast)[0]


@pytest.mark.parametrize("target", ["cpu", "simt"])
def test_reductions_compile_once(target: str) -> None:
    fast = compiled(reductions, target)
    for rows, length, columns in [(3, 8, 16), (2, 9, 5), (5, 70, 2), (2, 4, 300)]:
        check(fast, reductions, inputs_of([(rows, length, columns), (columns,)]), 1e-4)
    assert len(graphs(fast)) == 1


def test_training_steps_compile_once() -> None:
    def loss(x: Tensor, w: Tensor, b: Tensor) -> tuple[Tensor]:
        return (torch.nn.functional.gelu(torch.nn.functional.layer_norm(x @ w, b.shape, b)).mean(),)

    fast = compiled(loss)
    for batch, length, columns in [(2, 5, 8), (3, 16, 7), (4, 2, 130)]:
        shapes = [(batch, length, columns), (columns, columns), (columns,)]
        check(fast, loss, inputs_of(shapes, requires_grad=True), 1e-4)
    assert [line.split(":")[0] for line in graphs(fast)] == [
        "// graph 1 of 2, forward",
        "// graph 2 of 2, backward",
    ]


def test_sizes_0_and_1_are_right() -> None:
    fast = compiled(pointwise)
    for size in [(3, 8), (1, 8), (3, 1), (1, 1), (0, 8), (3, 0), (0, 0), (2, 9)]:
        check(fast, pointwise, inputs_of([size, size]))


def test_inputs_lie_as_they_may() -> None:
    def function(x: Tensor, y: Tensor) -> tuple[Tensor, ...]:
        return x * 2 + y, (x + y).sum(-1)

    fast = compiled(function)
    for rows, columns in [(6, 10), (3, 64), (33, 7)]:
        x, y = torch.randn(columns, rows).t(), torch.randn(rows, 2 * columns)[:, ::2]
        check(fast, function, [x, y])
        check(fast, function, [x.contiguous(), y])
        check(fast, function, [x.contiguous(), y[:1].expand(rows, -1)])
    assert len(graphs(fast)) <= 3, "one for each way to lie in memory"


class Block(torch.nn.Module):
    """A transformer's block, with a position embedding that is as long as sequences may be."""

    def __init__(self) -> None:
        super().__init__()
        self.positions = torch.nn.Parameter(torch.randn(64, 16))
        self.norm = torch.nn.LayerNorm(16)
        self.qkv = torch.nn.Linear(16, 48)
        self.out = torch.nn.Linear(16, 16)

    def forward(self, x: Tensor) -> tuple[Tensor]:
        x = x + self.positions[: x.shape[1]]
        q, k, v = self.qkv(self.norm(x)).unflatten(-1, (3, 2, 8)).permute(2, 0, 3, 1, 4)
        mixed = torch.nn.functional.scaled_dot_product_attention(q, k, v, is_causal=True)
        return (x + self.out(mixed.transpose(1, 2).flatten(2)).relu(),)


def test_a_model_called_with_20_sizes_compiles_at_most_twice() -> None:
    torch.manual_seed(0)
    torch._dynamo.reset()
    model, exact = Block(), Block().double()
    exact.load_state_dict(model.state_dict())
    fast = mlir_fusion.compile(model)
    with torch.no_grad():
        for number in range(20):
            x = torch.randn(2 + number % 5, 2 + (number * 7) % 62, 16)
            torch.testing.assert_close(fast(x)[0].double(), exact(x.double())[0], rtol=1e-5, atol=1e-5)
    assert len(graphs(fast)) <= 2 and "for all sizes" in graphs(fast)[-1]


def test_an_argument_of_another_size_than_the_others_say_is_refused_by_name() -> None:
    fast = compiled(lambda x, y: (x + y,))
    fast(torch.randn(3, 4), torch.randn(3, 4))
    with pytest.raises(RuntimeError, match=r"(size|shape)"):
        fast(torch.randn(3, 4), torch.randn(3, 5))


def test_what_computes_with_its_sizes_is_compiled_for_each() -> None:
    def function(x: Tensor) -> tuple[Tensor]:
        return (x * (x.shape[0] / 3),)

    fast = compiled(function)
    for rows in (3, 7, 20):
        check(fast, function, [torch.randn(rows, 5)])
    assert len(graphs(fast)) == 3 and all("for these sizes only" in line for line in graphs(fast))
