"""PyTorch's semantics beyond values: what aliases what, what is mutated, what a call returns and leaves behind."""

from __future__ import annotations

import copy
from collections.abc import Callable

import pytest
import torch
import torch.nn.functional as F
from torch import Tensor, nn

import mlir_fusion


def compiled_by_us(function: Callable) -> Callable:
    return mlir_fusion.compile(function, target="cpu")


def compiled_by_dynamo(function: Callable) -> Callable:
    return torch.compile(function, backend="mlir_fusion")


@pytest.fixture(params=[compiled_by_us, compiled_by_dynamo], ids=["compile", "torch.compile"])
def compiled(request) -> Callable[[Callable], Callable]:
    torch._dynamo.reset()
    torch.manual_seed(0)
    return request.param


def shares(one: Tensor, other: Tensor) -> bool:
    return one.untyped_storage().data_ptr() == other.untyped_storage().data_ptr()


def equal(found: object, expected: object) -> None:
    """Equal structures of equal values; of tensors also the strides and whether a gradient is kept."""
    assert type(found) is type(expected)
    if isinstance(expected, Tensor):
        assert isinstance(found, Tensor)
        torch.testing.assert_close(found, expected, equal_nan=True)
        assert (found.stride(), found.requires_grad) == (expected.stride(), expected.requires_grad)
    elif isinstance(expected, dict):
        assert isinstance(found, dict) and list(found) == list(expected)
        for key, value in expected.items():
            equal(found[key], value)
    elif isinstance(expected, list | tuple):
        assert isinstance(found, list | tuple) and len(found) == len(expected)
        for one, other in zip(found, expected, strict=True):
            equal(one, other)
    else:
        assert found == expected


def assert_like_eager(compiled: Callable, function: Callable, make: Callable[[], tuple], calls: int = 2) -> None:
    """Values, structure, strides, what is mutated, and what shares memory are as in eager PyTorch, call by call."""
    fast, ours, theirs = compiled(function), make_twice(make)[0], make_twice(make)[1]
    for _ in range(calls):
        found, expected = fast(*ours), function(*theirs)
        equal(found, expected)
        equal(ours, theirs)
        everything = (tensors((ours, found)), tensors((theirs, expected)))
        assert sharing(everything[0]) == sharing(everything[1])


def make_twice(make: Callable[[], tuple]) -> tuple[tuple, tuple]:
    torch.manual_seed(0)
    first = make()
    torch.manual_seed(0)
    return first, make()


def tensors(value: object) -> list[Tensor]:
    if isinstance(value, Tensor):
        return [value]
    values = value.values() if isinstance(value, dict) else value
    return [one for part in values for one in tensors(part)] if isinstance(value, list | tuple | dict) else []


def sharing(values: list[Tensor]) -> list[list[int]]:
    """For each tensor, those before it that share its memory."""
    return [
        [place for place, other in enumerate(values[:number]) if shares(one, other)]
        for number, one in enumerate(values)
    ]


COPIES = {
    "clone": lambda x: (x.clone(), x.clone()),
    "contiguous": lambda x: (x.contiguous(), x.contiguous()),
    "to_channels_last": lambda x: (x.contiguous(memory_format=torch.channels_last), x),
    "clone_of_view": lambda x: (x.permute(0, 2, 3, 1).clone(), x[0]),
    "library": lambda x: ((y := x.sort(1).values), y.clone(), y.contiguous(), y[0]),
    "computed": lambda x: ((y := x.sin()), y.clone(), y.permute(0, 2, 3, 1).clone()),
}


@pytest.mark.parametrize("function", COPIES.values(), ids=COPIES)
@pytest.mark.parametrize("channels_last", [False, True])
def test_what_is_copied_is_new_memory_and_what_is_viewed_is_not(compiled, function, channels_last):
    x = torch.randn(3, 4, 6, 5)
    if channels_last:
        x = x.to(memory_format=torch.channels_last)
    eager, found = (x, *function(x)), (x, *compiled(function)(x))
    assert [one.stride() for one in found] == [one.stride() for one in eager]
    for one, other in zip(found, eager, strict=True):
        torch.testing.assert_close(one, other)
    for number, one in enumerate(eager):
        for other, tensor in enumerate(eager[:number]):
            assert shares(found[number], found[other]) == shares(one, tensor), (number, other)


def overlapping() -> Tensor:
    return torch.randn(9).as_strided((4, 3), (2, 1))


def mutate_twice(x: Tensor, y: Tensor) -> Tensor:
    x.add_(y)
    y.mul_(2).clamp_(min=-1)
    return x * y


def mutate_view(x: Tensor) -> Tensor:
    x[1].mul_(3)
    x[:, ::2].add_(1)
    return x.sum()


def mutate_and_return(x: Tensor) -> tuple[Tensor, Tensor, Tensor]:
    x.relu_()
    return x, x[0], x.t()


def index_put(x: Tensor, i: Tensor) -> Tensor:
    x[i] = 0.5
    return x.cumsum(0)


INPUTS = {
    "in_place": (mutate_twice, lambda: (torch.randn(4, 5), torch.randn(4, 5))),
    "in_place_broadcast": (mutate_twice, lambda: (torch.randn(4, 5), torch.randn(5))),
    "in_place_transposed": (mutate_twice, lambda: (torch.randn(5, 4).t(), torch.randn(4, 5))),
    "in_place_strided": (mutate_twice, lambda: (torch.randn(8, 15)[::2, ::3], torch.randn(4, 5))),
    "in_place_misaligned": (mutate_twice, lambda: (torch.randn(21)[1:].view(4, 5), torch.randn(4, 5))),
    "in_place_of_a_view": (mutate_view, lambda: (torch.randn(4, 5),)),
    "in_place_returned": (mutate_and_return, lambda: (torch.randn(4, 5),)),
    "index_put": (index_put, lambda: (torch.randn(6, 3), torch.tensor([1, 4]))),
    "copy_": (lambda x, y: x.copy_(y), lambda: (torch.randn(3, 4), torch.randn(4))),
    "zero_": (lambda x: x.zero_() + 1, lambda: (torch.randn(3, 4),)),
    "set_dtype": (
        lambda x, y: x.copy_(y * 2),
        lambda: (torch.zeros(3, dtype=torch.int32), torch.tensor([1.5, -2.5, 3])),
    ),
    "in_place_int": (lambda x: x.add_(1), lambda: (torch.arange(7),)),
    "in_place_bool": (lambda x: x.logical_not_(), lambda: (torch.tensor([True, False, True]),)),
    "returns_input": (lambda x: x, lambda: (torch.randn(3),)),
    "returns_input_and_more": (lambda x, y: (x, y + 1, x), lambda: (torch.randn(3), torch.randn(3))),
    "returns_views": (lambda x: (x[1:], x.t(), x.view(-1), x + 1), lambda: (torch.randn(3, 4),)),
    "same_twice": (lambda x: ((y := x * 2), y, y[0], y.view(-1)), lambda: (torch.randn(3, 4),)),
    "view_of_intermediate": (lambda x: (x * 2).t(), lambda: (torch.randn(3, 4),)),
    "same_input_twice": (lambda x: torch.add(x, x), lambda: (torch.randn(3, 4),)),
    "aliased_inputs": (mutate_twice, lambda: ((x := torch.randn(4, 5)), x)),
    "overlapping_views": (lambda x, y: (x.mul_(2), y + 1), lambda: ((x := torch.randn(10))[:6], x[2:8])),
    "non_contiguous": (lambda x: x * 2 + x.sum(0), lambda: (torch.randn(7, 9)[1::2, ::3],)),
    "expanded": (lambda x: (x.exp(), x @ x.mT), lambda: (torch.randn(3, 1).expand(3, 4),)),
    "overlapping": (lambda x: (x.exp(), x.sum(0)), lambda: (overlapping(),)),
    "channels_last": (
        lambda x: (x.relu(), x.mean(1)),
        lambda: (torch.randn(2, 3, 4, 5).to(memory_format=torch.channels_last),),
    ),
    "negative_and_conj": (lambda x: (x.conj() * 2, x.imag + 1), lambda: (torch.randn(3, dtype=torch.complex64),)),
    "complex32": (lambda x: x.chalf().real.float() * 2, lambda: (torch.randn(3),)),
    "expanded_by_library": (lambda x: x.expand(4, 3) * 2, lambda: (torch.randn(3, dtype=torch.complex64),)),
    "returned_expanded": (lambda x: (x * 2).expand(4, 3), lambda: (torch.randn(3, dtype=torch.complex64),)),
    "empty": (lambda x: (x * 2, x.sum(), x.amax(1)), lambda: (torch.randn(0, 3),)),
    "scalar": (lambda x: (x * 2, x.view(1), x.sum()), lambda: (torch.tensor(1.5),)),
    "no_tensor_input": (lambda: torch.arange(5) * 2, lambda: ()),
    "int_and_float_inputs": (lambda x, n, s: x[:n] * s, lambda: (torch.randn(5), 3, 0.5)),
    "none_output": (lambda x: (x + 1, None), lambda: (torch.randn(3),)),
    "number_outputs": (lambda x: (x + 1, x.shape[0], 2.5, "text", True), lambda: (torch.randn(3),)),
    "dict_output": (lambda x: {"a": x + 1, "b": [x * 2, (x.sum(),)]}, lambda: (torch.randn(3),)),
    "nothing": (lambda x: None, lambda: (torch.randn(3),)),
    "dict_input": (lambda d: d["a"] * d["b"][0], lambda: ({"a": torch.randn(3), "b": [torch.randn(3)]},)),
    "constant": (lambda x: (torch.ones(3), x + torch.tensor([1.0, 2.0, 3.0])), lambda: (torch.randn(3),)),
    "constant_only": (lambda x: torch.tensor([1.0, 2.0]), lambda: (torch.randn(3),)),
    "item": (lambda x: x * x.sum().item(), lambda: (torch.ones(3),)),
    "detach": (lambda x: (x.detach(), x.sin().detach()), lambda: (torch.randn(3, requires_grad=True),)),
    "inputs_with_grad": (lambda x: (x, x[0], x * 2), lambda: (torch.randn(3, 2, requires_grad=True),)),
}


@pytest.mark.parametrize(("function", "make"), INPUTS.values(), ids=INPUTS)
def test_inputs_and_outputs(compiled, function, make):
    assert_like_eager(compiled, function, make)


class Tied(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.embedding = nn.Embedding(11, 6)
        self.head = nn.Linear(6, 11, bias=False)
        self.head.weight = self.embedding.weight

    def forward(self, x: Tensor) -> Tensor:
        return self.head(torch.tanh(self.embedding(x)))


class Counting(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.norm = nn.BatchNorm1d(5)
        self.register_buffer("calls", torch.zeros((), dtype=torch.int64))
        self.register_buffer("sums", torch.zeros(5))

    def forward(self, x: Tensor) -> Tensor:
        self.calls += 1
        self.sums.add_(x.detach().sum(0))
        return self.norm(x) * self.calls


def frozen() -> nn.Module:
    module = nn.Sequential(nn.Linear(5, 7), nn.GELU(), nn.Linear(7, 2))
    module[0].requires_grad_(False)
    return module


MODULES = {
    "batch_norm": (
        lambda: nn.Sequential(nn.Conv2d(3, 4, 3), nn.BatchNorm2d(4), nn.ReLU()),
        lambda: torch.randn(2, 3, 6, 6),
    ),
    "batch_norm_no_momentum": (lambda: nn.BatchNorm1d(4, momentum=None), lambda: torch.randn(6, 4)),
    "buffers": (Counting, lambda: torch.randn(6, 5)),
    "tied": (Tied, lambda: torch.randint(0, 11, (3, 4))),
    "frozen": (frozen, lambda: torch.randn(4, 5)),
    "spectral_norm": (lambda: nn.utils.parametrizations.spectral_norm(nn.Linear(5, 4)), lambda: torch.randn(3, 5)),
    "weight_norm": (lambda: nn.utils.parametrizations.weight_norm(nn.Linear(5, 4)), lambda: torch.randn(3, 5)),
    "lstm": (lambda: nn.LSTM(5, 4, batch_first=True), lambda: torch.randn(2, 3, 5)),
    "attention": (
        lambda: nn.TransformerEncoderLayer(8, 2, 16, dropout=0.0, batch_first=True),
        lambda: torch.randn(2, 5, 8),
    ),
}


@pytest.mark.parametrize("training", [True, False], ids=["train", "eval"])
@pytest.mark.parametrize(("make", "inputs"), MODULES.values(), ids=MODULES)
def test_modules_are_trained_as_in_eager(compiled, make, inputs, training):
    module = make().train(training)
    other = copy.deepcopy(module)
    fast = compiled(other)
    for _ in range(3):
        x = inputs()
        expected, found = tensors(module(x)), tensors(fast(x))
        sum((one * one.detach().cos()).sum() for one in expected).backward()
        sum((one * one.detach().cos()).sum() for one in found).backward()
        equal(found, expected)
        equal(dict(other.state_dict()), dict(module.state_dict()))
        for one, reference in zip(other.parameters(), module.parameters(), strict=True):
            equal(one.grad, reference.grad)
        for each in (module, other):
            torch.optim.SGD(each.parameters(), lr=0.1).step()


def test_no_grad_and_inference_mode(compiled):
    module = nn.Linear(5, 3)
    fast, x = compiled(module), torch.randn(4, 5)
    for mode in (torch.no_grad, torch.inference_mode, torch.enable_grad, torch.no_grad):
        with mode():
            found, expected = fast(x), module(x)
        equal(found, expected)
        assert found.is_inference() == expected.is_inference()
    with torch.inference_mode():
        y = torch.randn(4, 5)
        equal(fast(y), module(y))


def test_no_grad_inside(compiled):
    def function(x: Tensor) -> tuple[Tensor, Tensor]:
        with torch.no_grad():
            y = x * 2
        return y, x * y

    x = torch.randn(3, requires_grad=True)
    equal(compiled(function)(x), function(x))


@pytest.mark.parametrize("inside", [False, True], ids=["around", "inside"])
def test_autocast(compiled, inside):
    module, x = nn.Sequential(nn.Linear(8, 16), nn.LayerNorm(16), nn.Linear(16, 4)), torch.randn(3, 8)

    def cast(x: Tensor) -> Tensor:
        with torch.autocast("cpu", dtype=torch.bfloat16):
            return module(x)

    expected = cast(x)
    fast = compiled(cast if inside else module)
    with torch.autocast("cpu", dtype=torch.bfloat16, enabled=not inside):
        found = fast(x)
    assert found.dtype == expected.dtype == torch.bfloat16
    torch.testing.assert_close(found, expected, rtol=2e-2, atol=2e-2)


def test_default_dtype(compiled):
    def function(x: Tensor) -> Tensor:
        return torch.ones(3) * 2 + x + torch.arange(3) / 2

    fast, x = compiled(function), torch.tensor([1, 2, 3])
    equal(fast(x), function(x))
    torch.set_default_dtype(torch.float64)
    try:
        assert function(x).dtype == torch.float64
        equal(fast(x), function(x))
    finally:
        torch.set_default_dtype(torch.float32)
    equal(fast(x), function(x))


def test_random_numbers_come_from_pytorchs_generator(compiled):
    def function(x: Tensor) -> Tensor:
        return F.dropout(x, 0.5) + torch.rand_like(x) + torch.randn(4, 5)

    fast, x = compiled(function), torch.randn(4, 5)
    torch.manual_seed(7)
    first, second, state = fast(x), fast(x), torch.get_rng_state()
    torch.manual_seed(7)
    equal([fast(x), fast(x)], [first, second])
    assert not torch.equal(first, second)
    assert torch.equal(torch.get_rng_state(), state)


def test_dropout_of_the_backward_pass_is_that_of_the_forward_pass(compiled):
    x = torch.ones(64, 64, requires_grad=True)
    y = compiled(lambda x: F.dropout(x, 0.3) * 2)(x)
    y.sum().backward()
    torch.testing.assert_close(x.grad, y.detach())


def test_hooks(compiled):
    seen: list[str] = []
    module = nn.Sequential(nn.Linear(4, 4), nn.ReLU(), nn.Linear(4, 2))
    module[0].register_forward_hook(lambda _, args, output: output * 2)
    module[2].register_forward_pre_hook(lambda _, args: (args[0] + 1,))
    other = copy.deepcopy(module)
    x, y = torch.randn(3, 4, requires_grad=True), torch.randn(3, 4)
    y.copy_(x.detach())
    y.requires_grad_()
    y.register_hook(lambda grad: seen.append("input"))
    other[0].weight.register_hook(lambda grad: seen.append("weight"))
    found, expected = compiled(other)(y), module(x)
    found.register_hook(lambda grad: seen.append("output"))
    equal(found, expected)
    for result in (found, expected):
        result.square().sum().backward()
    equal(y.grad, x.grad)
    assert sorted(seen) == ["input", "output", "weight"]


def test_a_tensor_is_a_subclass(compiled):
    parameter = nn.Parameter(torch.randn(3))
    found = compiled(lambda p: (p * 2, p))(parameter)
    assert type(found[0]) is Tensor and found[1] is parameter


def test_gradients_of_gradients_are_refused(compiled):
    """As by every backend of AOTAutograd: an error, not a wrong number."""
    x = torch.randn(3, requires_grad=True)
    (first,) = torch.autograd.grad(compiled(lambda x: x.sin())(x).sum(), x, create_graph=True)
    with pytest.raises(RuntimeError):
        torch.autograd.grad(first.sum(), x)
