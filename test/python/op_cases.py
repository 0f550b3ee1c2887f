"""Calls of every operation on the list of compiled ones, for test_frontend_ops.py.

`CASES` has, for each overload, the arguments that it is called with for a dtype: all pairs of special values, random
tensors, 0-d ones, ones without elements or with one, transposed, strided and expanded ones, operands of other dtypes
where PyTorch promotes, and scalars that the dtype doesn't hold.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, field

import torch
from torch import Tensor
from torch._ops import OpOverload

DTYPES = (
    torch.bool,
    torch.uint8,
    torch.int8,
    torch.int16,
    torch.int32,
    torch.int64,
    torch.float16,
    torch.bfloat16,
    torch.float32,
    torch.float64,
)
INTEGERS = (torch.int8, torch.int16, torch.int32, torch.int64, torch.uint8)
SPECIAL = (0.0, -0.0, 1.0, -1.0, 0.5, -0.5, 1.5, 2.5, -2.5, 0.1, -7.3, 3.0, 300.7, -45.0, 1e-3, 1e-40, 3e38, 65000.0)
UNBOUNDED = (float("nan"), float("inf"), float("-inf"))


@dataclass(frozen=True)
class Call:
    """Arguments of an operation."""

    args: tuple
    kwargs: dict[str, object] = field(default_factory=dict)

    def __str__(self) -> str:
        named = (f"{name}={_text(value)}" for name, value in self.kwargs.items())
        return f"({', '.join([*map(_text, self.args), *named])})"


def _text(value: object) -> str:
    if isinstance(value, Tensor):
        return f"{str(value.dtype).removeprefix('torch.')}{list(value.shape)}{'' if value.is_contiguous() else 's'}"
    return f"[{', '.join(map(_text, value))}]" if isinstance(value, list | tuple) else str(value)


Calls = Callable[[torch.dtype], Iterator[Call]]


# -- tensors


def special(dtype: torch.dtype) -> Tensor:
    """The values at which implementations differ."""
    if dtype == torch.bool:
        return torch.tensor([False, True])
    if not dtype.is_floating_point:
        limits = torch.iinfo(dtype)
        low, high = limits.min, limits.max
        values = {low, low + 1, high, high - 1, 0, 1, 2, 3, 5, 8, 100} | ({-1, -2, -3, -7, -100} if low else set())
        return torch.tensor(sorted(values), dtype=dtype)
    limits = torch.finfo(dtype)
    return torch.tensor([*UNBOUNDED, *SPECIAL, limits.max, limits.tiny, limits.tiny / 4, -limits.max]).to(dtype)


def rand(dtype: torch.dtype, *shape: int) -> Tensor:
    """Normally distributed, or integers from -9 to 9."""
    if dtype == torch.bool:
        return torch.rand(shape) < 0.5
    if dtype.is_floating_point:
        return (torch.randn(shape, dtype=torch.float64) * 2).to(dtype)
    return torch.randint(0 if dtype == torch.uint8 else -9, 10, shape, dtype=dtype)


def layouts(dtype: torch.dtype) -> Iterator[Tensor]:
    """Matrices that lie in memory in different ways."""
    yield rand(dtype, 5, 7)
    yield rand(dtype, 7, 5).t()
    yield rand(dtype, 10, 23)[::2, 1:22:3]
    yield rand(dtype, 5, 1).expand(5, 7)


def small(dtype: torch.dtype) -> Iterator[Tensor]:
    """0-d, without elements, with one."""
    yield rand(dtype)
    yield rand(dtype, 0)
    yield rand(dtype, 3, 0)
    yield rand(dtype, 0, 4)
    yield rand(dtype, 1)
    yield rand(dtype, 1, 1)


def tensors(dtype: torch.dtype) -> Iterator[Tensor]:
    yield special(dtype)
    yield from layouts(dtype)
    yield from small(dtype)


# -- arithmetic


def unary(dtype: torch.dtype) -> Iterator[Call]:
    yield from (Call((x,)) for x in tensors(dtype))


def binary(dtype: torch.dtype) -> Iterator[Call]:
    yield from pairs(dtype)
    x = rand(dtype, 6)
    for other in DTYPES:
        if other != dtype:
            yield Call((x, rand(other, 6)))
            yield Call((rand(other, 3, 6), x))
            yield Call((x, rand(other)))
            yield Call((rand(other), x))
            yield Call((special(other)[:, None], special(dtype)))


def pairs(dtype: torch.dtype) -> Iterator[Call]:
    """Two operands of one dtype."""
    x = special(dtype)
    yield Call((x[:, None], x))
    yield from (Call((one, rand(dtype, 7))) for one in layouts(dtype))
    yield Call((rand(dtype, 5, 1), rand(dtype, 1, 7)))
    yield Call((rand(dtype, 5, 7), rand(dtype)))
    yield from (Call((one, one)) for one in small(dtype))
    yield Call((rand(dtype, 0, 4), rand(dtype, 4)))


SCALARS = (0.1, 2, -3, 0, 1.5, -0.7, 300, 1e5, 2**40, float("inf"), float("nan"), True, -0.0)


def with_scalar(dtype: torch.dtype) -> Iterator[Call]:
    for scalar in SCALARS:
        yield Call((special(dtype), scalar))
    yield from (Call((x, scalar)) for x in (rand(dtype, 7, 5).t(), *small(dtype)) for scalar in (0.3, 2))


def with_alpha(calls: Calls) -> Calls:
    """Further calls with `alpha`, which multiplies the second operand."""

    def made(dtype: torch.dtype) -> Iterator[Call]:
        yield from calls(dtype)
        for call in list(calls(dtype))[:6]:
            for alpha in (2, -1, 0.5):
                yield Call(call.args, {"alpha": alpha})

    return made


def _divisible(x: Tensor, y: Tensor) -> Call:
    """No integer is divided by 0, where a processor stops, nor the smallest by -1."""
    if y.dtype.is_floating_point or y.dtype == torch.bool:
        return Call((x, y))
    safe = torch.where((y == 0) | (y == -1), torch.full_like(y, 5), y)
    return Call((x, safe))


def divisions(dtype: torch.dtype) -> Iterator[Call]:
    yield from (_divisible(*call.args) for call in binary(dtype) if torch.bool not in (a.dtype for a in call.args))


def scalar_divisions(dtype: torch.dtype) -> Iterator[Call]:
    yield from (call for call in with_scalar(dtype) if call.args[1] not in (0, False, True))


def powers(dtype: torch.dtype) -> Iterator[Call]:
    yield from (Call((special(dtype), exponent)) for exponent in (0, 1, 2, 3, -1, -2, 0.5, -0.5, 2.7, 5, -3.0))
    yield from (Call((x, 2)) for x in tensors(dtype))


def clamps(dtype: torch.dtype) -> Iterator[Call]:
    for low, high in (
        (1, 5),
        (0.5, 2.5),
        (5, 1),
        (None, 2),
        (-1, None),
        (1.5, 5),
        (float("nan"), 1),
        (1e6, float("inf")),
    ):
        yield Call((special(dtype), low, high))
    yield from (Call((x, -1, 1)) for x in tensors(dtype))


def tensor_clamps(dtype: torch.dtype) -> Iterator[Call]:
    x = special(dtype)
    for low, high in ((rand(dtype), rand(dtype)), (x.flip(0), None), (None, x.roll(3)), (x.roll(1), x.roll(2))):
        yield Call((x, low, high))
    for other in DTYPES:
        yield Call((x, special(other)[:1], None))


def lerps(dtype: torch.dtype) -> Iterator[Call]:
    x = special(dtype)
    yield from (Call((x[:, None], x, weight)) for weight in (0.3, 0.5, 0.7, 0, 1, -2.5))
    yield Call((rand(dtype, 300).abs(), rand(dtype, 300).abs(), 0.3))


def tensor_lerps(dtype: torch.dtype) -> Iterator[Call]:
    x = special(dtype)
    yield Call((x[:, None], x, x.flip(0)))
    yield Call((rand(dtype, 300).abs(), rand(dtype, 300).abs(), torch.rand(300).to(dtype)))
    yield Call((rand(dtype, 7, 5).t(), rand(dtype, 7), rand(dtype)))


# -- reductions


def reductions(dims: tuple[object, ...], sizes: bool = True) -> Calls:
    """Over each of `dims`, kept and not; `sizes` says whether nothing can be reduced."""

    def made(dtype: torch.dtype) -> Iterator[Call]:
        for dim in dims:
            yield Call((rand(dtype, 3, 4, 5), dim))
            yield Call((rand(dtype, 4, 5, 3).permute(2, 0, 1), dim, True))
            yield Call((special(dtype)[:, None].repeat(1, 2)[:, :, None], dim))
            yield from (Call((value.reshape(1, 1, 1), dim)) for value in special(dtype))
            if sizes:
                yield Call((rand(dtype, 3, 0, 5), dim))
                yield Call((rand(dtype, 0, 4, 5), dim))
        yield from (Call((rand(dtype), dim)) for dim in dims if dim in (0, -1, [0], [-1], [], None))

    return made


DIMS = ([0], [-1], [1], [0, 2], [1, -1], [0, 1, 2], [])


def sums(dtype: torch.dtype) -> Iterator[Call]:
    yield from reductions(DIMS)(dtype)
    for other in (torch.float32, torch.float64, torch.int32, torch.float16):
        yield Call((rand(dtype, 3, 4, 5), [1]), {"dtype": other})


def whole(dtype: torch.dtype) -> Iterator[Call]:
    yield from (Call((x,)) for x in tensors(dtype))


def extremal_indices(dtype: torch.dtype) -> Iterator[Call]:
    yield from (Call((x,)) for x in (*layouts(dtype), rand(dtype), rand(dtype, 1), special(dtype)))
    x = rand(dtype, 4, 9)
    yield from (Call((x, dim, keep)) for dim in (0, 1, -1, None) for keep in (False, True))
    yield Call((rand(dtype), 0))
    yield Call((rand(dtype, 0, 4), 1))


# -- moving elements


def moves(*rest: tuple) -> Calls:
    """A 4 x 6 tensor, in rows and transposed, with each of these further arguments."""

    def made(dtype: torch.dtype) -> Iterator[Call]:
        for arguments in rest:
            yield Call((rand(dtype, 4, 6), *arguments))
            yield Call((rand(dtype, 6, 4).t(), *arguments))

    return made


def with_empty(calls: Calls, *rest: tuple) -> Calls:
    """Further calls, of a tensor without elements."""

    def made(dtype: torch.dtype) -> Iterator[Call]:
        yield from calls(dtype)
        yield from (Call((rand(dtype, 0, 6), *arguments)) for arguments in rest)

    return made


def shaped(*calls: tuple[tuple[int, ...], tuple]) -> Calls:
    """A tensor of each shape with the arguments next to it."""

    def made(dtype: torch.dtype) -> Iterator[Call]:
        yield from (Call((rand(dtype, *shape), *arguments)) for shape, arguments in calls)

    return made


def joins(dtype: torch.dtype) -> Iterator[Call]:
    """For cat: other dtypes, tensors without elements, legacy ones that are just skipped."""
    for dim in (0, 1, -1):
        yield Call(([rand(dtype, 4, 6), rand(dtype, 6, 4).t()], dim))
    yield Call(([rand(dtype, 4, 6)],))
    yield Call(([rand(dtype, 4, 2), rand(dtype, 4, 0), rand(dtype, 4, 3)], 1))
    yield Call(([rand(dtype, 0, 3), rand(dtype, 0, 3)],))
    yield Call(([rand(dtype, 0, 3), rand(dtype, 0, 3)], 1))
    yield Call(([rand(dtype, 0), rand(dtype, 4, 3)],))
    yield Call(([rand(dtype, 0), rand(dtype, 0)],))
    for other in DTYPES:
        yield Call(([rand(dtype, 4, 6), rand(other, 2, 6), rand(dtype, 1, 6)],))


def stacks(dtype: torch.dtype) -> Iterator[Call]:
    yield from (Call(([rand(dtype, 4, 6), rand(dtype, 6, 4).t()], dim)) for dim in (0, 1, 2, -1))
    yield Call(([rand(dtype), rand(dtype)],))
    yield Call(([rand(dtype, 0, 3), rand(dtype, 0, 3)], 1))
    yield from (Call(([rand(dtype, 3), rand(other, 3)],)) for other in DTYPES)


def choices(dtype: torch.dtype) -> Iterator[Call]:
    """For where."""
    x, condition = special(dtype), rand(torch.bool, 6)
    yield Call((rand(torch.bool, len(x)), x, x.flip(0)))
    yield Call((rand(torch.bool, 4, 1), rand(dtype, 6, 4).t(), rand(dtype)))
    yield Call((rand(torch.bool), rand(dtype), rand(dtype)))
    yield Call((rand(torch.bool, 0, 3), rand(dtype, 3), rand(dtype)))
    for other in DTYPES:
        yield Call((condition, rand(dtype, 6), rand(other, 6)))
        yield Call((condition, rand(other), rand(dtype, 6)))


def scalar_choices(first: bool, second: bool) -> Calls:
    """For where with a scalar in the first or the second place, or both."""

    def made(dtype: torch.dtype) -> Iterator[Call]:
        x = special(dtype)
        for scalar in (0.1, 2, 300, True, float("nan")):
            yield Call(
                (rand(torch.bool, len(x)), scalar if first else x, (scalar if not first else 7) if second else x)
            )

    return made


def fills(scalar: bool) -> Calls:
    def made(dtype: torch.dtype) -> Iterator[Call]:
        values = (0, 1, 2.5, 0.1, -3, True) if scalar else (rand(other) for other in DTYPES)
        for value in values:
            yield Call((rand(dtype, 7, 5).t(), rand(torch.bool, 5, 7), value))
        value = 1 if scalar else rand(dtype)
        yield Call((rand(dtype, 7), rand(torch.bool, 5, 7), value))
        yield Call((rand(dtype, 0, 3), rand(torch.bool, 3), value))
        yield Call((rand(dtype), rand(torch.bool), value))

    return made


def _indices(high: int, *shape: int, dtype: torch.dtype = torch.int64, low: int = 0) -> Tensor:
    return torch.randint(low, high, shape, dtype=dtype)


def selections(dtype: torch.dtype) -> Iterator[Call]:
    """For index_select."""
    for index in (torch.int64, torch.int32):
        yield Call((rand(dtype, 4, 6), 1, _indices(6, 5, dtype=index)))
        yield Call((rand(dtype, 6, 4).t(), 0, _indices(4, 5, dtype=index)))
    yield Call((rand(dtype, 4, 6), 0, _indices(4)))
    yield Call((rand(dtype, 4, 6), 0, _indices(4, 0)))
    yield Call((rand(dtype, 4, 0), 0, _indices(4, 3)))
    yield Call((rand(dtype), 0, torch.zeros(1, dtype=torch.int64)))
    yield from (Call((rand(dtype, 4, 6), 1, torch.tensor([0, wrong]))) for wrong in (6, -1, -7, 10**8))


def gathers(dtype: torch.dtype) -> Iterator[Call]:
    yield Call((rand(dtype, 4, 6), 1, _indices(6, 4, 3)))
    yield Call((rand(dtype, 6, 4).t(), 0, _indices(4, 2, 5)))
    yield Call((rand(dtype, 4, 6), 1, _indices(6, 0, 3)))
    yield Call((rand(dtype), 0, torch.tensor(0)))
    yield from (Call((rand(dtype, 4, 6), 1, torch.tensor([[0, wrong]]))) for wrong in (6, -1, -7, 10**8))


def lookups(dtype: torch.dtype) -> Iterator[Call]:
    """For embedding."""
    for index in (torch.int64, torch.int32):
        yield Call((rand(dtype, 7, 3), _indices(7, 2, 5, dtype=index)))
    yield Call((rand(dtype, 3, 7).t(), _indices(7, 4), 2))
    yield Call((rand(dtype, 7, 3), _indices(7)))
    yield Call((rand(dtype, 7, 3), _indices(7, 0)))
    yield Call((rand(dtype, 7, 0), _indices(7, 2)))
    yield from (Call((rand(dtype, 4, 6), torch.tensor([0, wrong]))) for wrong in (4, -1, -7, 10**8))


def indexings(dtype: torch.dtype) -> Iterator[Call]:
    """For index."""
    i, j = _indices(4, 3, low=-4), _indices(3, 3, low=-3)
    x = rand(dtype, 4, 3, 5)
    for index in ([i], [i, j], [None, j], [i, None, j], [None, None, i], [i[:, None], j], [i.int()], [_indices(4)]):
        yield Call((x, index))
    yield Call((rand(dtype, 5, 4).t(), [i, None]))
    yield Call((x, [_indices(4, 0)]))
    yield Call((rand(dtype, 4, 0), [i]))
    yield from (Call((x, [None, torch.tensor([0, wrong])])) for wrong in (3, -4, 10**8))


def _insertions(source: tuple[int, ...], *rest: tuple) -> Calls:
    def made(dtype: torch.dtype) -> Iterator[Call]:
        for arguments in rest:
            yield Call((rand(dtype, 5, 6), rand(dtype, *source), *arguments))
            yield Call(
                (
                    rand(dtype, 6, 5).t(),
                    rand(dtype, *reversed(source)).permute(*reversed(range(len(source)))),
                    *arguments,
                )
            )

    return made


def conversions(dtype: torch.dtype) -> Iterator[Call]:
    for other in DTYPES:
        x = special(dtype)
        if dtype.is_floating_point and not other.is_floating_point and other != torch.bool:
            x = rand(dtype, 40).clamp(0 if other == torch.uint8 else -9, 9)  # what does not fit is undefined
        yield Call((x,), {"dtype": other})
        yield from (Call((one,), {"dtype": other}) for one in (rand(torch.bool, 7, 5).t().to(dtype), rand(dtype, 0)))


def pads(dtype: torch.dtype) -> Iterator[Call]:
    for padding in ([1, 2], [-1, 2], [0, 0, -1, -1], [1, 1, 2, 0], [-2, -2], [0, 0], [0, 0, -4, 0]):
        yield Call((rand(dtype, 4, 6), padding))
        yield Call((rand(dtype, 6, 4).t(), padding, 1))
    for value in (2.5, 0.1, -3, float("inf")):
        yield Call((rand(dtype, 4, 6), [1, 2], value))
    yield Call((rand(dtype, 0, 3), [1, 1, 1, 1], 1))


# -- making tensors


def _made(*shapes: tuple, values: tuple = ()) -> Calls:
    def calls(dtype: torch.dtype) -> Iterator[Call]:
        for shape in shapes:
            yield from (Call((list(shape), value), {"dtype": dtype}) for value in values)
            if not values:
                yield Call((list(shape),), {"dtype": dtype})

    return calls


def _made_like(new: bool, values: tuple = ()) -> Calls:
    def calls(dtype: torch.dtype) -> Iterator[Call]:
        for x in (rand(dtype, 7, 5).t(), rand(dtype), rand(dtype, 0, 3)):
            shape = ([3, 2],) if new else ()
            yield from (Call((x, *shape, value)) for value in values)
            if not values:
                yield Call((x, *shape))
                yield Call((x, *shape), {"dtype": torch.float32})

    return calls


def ranges(dtype: torch.dtype) -> Iterator[Call]:
    yield from (
        Call(bounds, {"dtype": dtype}) for bounds in ((0, 5, 1), (5, 0, -2), (0, 0, 1), (-3, 4, 3), (0, 1, 0.25))
    )


def scalar_tensors(dtype: torch.dtype) -> Iterator[Call]:
    yield from (Call((value,), {"dtype": dtype}) for value in (0, 1, 0.1, -2.5, True))


SHAPES = ((2, 3), (), (0, 3), (1,))
VALUES = (0, 1, 2.5, 0.1, True)

_BY_CALLS: list[tuple[str, Calls]] = [
    (
        """neg abs square relu sign reciprocal sqrt rsqrt exp exp2 log log2 log1p expm1 sin cos tanh erf floor ceil
        trunc round sigmoid atan sinh cosh tan asin acos log10 frac erfc logical_not isnan isinf bitwise_not clone
        detach alias lift_fresh_copy""",
        unary,
    ),
    ("maximum minimum div.Tensor atan2 logical_and logical_or logical_xor pow.Tensor_Tensor", binary),
    ("eq.Tensor ne.Tensor lt.Tensor le.Tensor gt.Tensor ge.Tensor mul.Tensor", binary),
    ("bitwise_and.Tensor bitwise_or.Tensor bitwise_xor.Tensor", binary),
    ("add.Tensor sub.Tensor rsub.Tensor", with_alpha(binary)),
    ("add.Scalar sub.Scalar rsub.Scalar", with_alpha(with_scalar)),
    ("mul.Scalar div.Scalar eq.Scalar ne.Scalar lt.Scalar le.Scalar gt.Scalar ge.Scalar", with_scalar),
    ("bitwise_and.Scalar bitwise_or.Scalar bitwise_xor.Scalar", with_scalar),
    ("remainder.Tensor fmod.Tensor", divisions),
    ("remainder.Scalar fmod.Scalar", scalar_divisions),
    ("pow.Tensor_Scalar", powers),
    ("clamp.default", clamps),
    ("clamp.Tensor", tensor_clamps),
    ("sum.dim_IntList", sums),
    ("amax amin", reductions(DIMS, sizes=False)),
    ("any all", whole),
    ("any.dim all.dim", reductions((0, 1, -1))),
    ("any.dims all.dims", reductions((*DIMS, None))),
    ("argmax argmin", extremal_indices),
    ("where.self", choices),
    ("where.ScalarOther", scalar_choices(False, True)),
    ("where.ScalarSelf", scalar_choices(True, False)),
    ("where.Scalar", scalar_choices(True, True)),
    ("masked_fill.Scalar", fills(scalar=True)),
    ("masked_fill.Tensor", fills(scalar=False)),
    ("view reshape _unsafe_view", shaped(((4, 6), ([3, 8],)), ((4, 6), ([-1],)), ((0, 6), ([3, 0],)), ((), ([1, 1],)))),
    ("permute", with_empty(moves(([1, 0],), ([-1, 0],), ([0, 1],)), ([1, 0],))),
    ("transpose.int", with_empty(moves((0, 1), (0, -1), (1, 1)), (0, 1))),
    ("t", with_empty(moves(()), ())),
    (
        "expand",
        shaped(((4, 1), ([4, 5],)), ((4, 1), ([2, -1, 3],)), ((), ([2, 3],)), ((1, 3), ([0, 3],)), ((0, 1), ([0, 4],))),
    ),
    ("unsqueeze", with_empty(moves((0,), (1,), (-1,)), (1,))),
    ("squeeze", shaped(((4, 1, 6), ()), ((1, 1), ()), ((), ()), ((1, 0), ()))),
    ("squeeze.dim", shaped(((4, 1, 6), (1,)), ((4, 1, 6), (0,)), ((1,), (-1,)), ((), (0,)), ((1, 0), (0,)))),
    ("squeeze.dims", shaped(((1, 4, 1, 6), ([0, 2],)), ((1, 4, 1), ([-1, 1],)), ((1, 0), ([0],)))),
    (
        "slice.Tensor",
        with_empty(
            moves((0, 1, 100), (1, -2), (0, None, -1), (1, 0, 6, 4), (0, 3, 1), (1, -100, 2), (1, 1, 5, 2)), (1, 1)
        ),
    ),
    ("select.int", with_empty(moves((0, 1), (1, -1), (0, -4)), (1, 2))),
    ("cat", joins),
    ("stack", stacks),
    ("constant_pad_nd", pads),
    ("embedding", lookups),
    ("index_select", selections),
    ("gather", gathers),
    ("index.Tensor", indexings),
    ("flip", with_empty(moves(([0],), ([0, 1],), ([-1],), ([],)), ([0],))),
    ("unbind.int", with_empty(moves((0,), (1,), (-1,)), (1,))),
    ("split.Tensor", with_empty(moves((2,), (3,), (4, 1), (100, 1)), (2, 1))),
    ("split_with_sizes", with_empty(moves(([1, 3],), ([2, 0, 4], 1), ([4],)), ([2, 4], 1))),
    ("slice_scatter", _insertions((2, 6), (0, 1, 3), (0, -3, -1), (0, 0, 4, 2), (0, 3, 100))),
    ("select_scatter", _insertions((6,), (0, -1), (0, 2))),
    ("tril triu", with_empty(moves((), (1,), (-1,), (-7,), (7,)), (1,))),
    ("_to_copy", conversions),
    ("full", _made(*SHAPES, values=VALUES)),
    ("zeros ones", _made(*SHAPES)),
    ("full_like", _made_like(False, VALUES)),
    ("zeros_like ones_like", _made_like(False)),
    ("new_full", _made_like(True, VALUES)),
    ("new_zeros new_ones", _made_like(True)),
    ("arange.start_step", ranges),
    ("scalar_tensor", scalar_tensors),
]


def overload(name: str) -> OpOverload:
    """`add.Tensor`, or `exp` for `exp.default`."""
    packet, _, which = name.partition(".")
    return getattr(getattr(torch.ops.aten, packet), which or "default")


CASES: dict[OpOverload, Calls] = {overload(name): calls for names, calls in _BY_CALLS for name in names.split()}


# -- operations that are decomposed: of 16-bit floats each rounds once


def of_random(tensors: int, *rest: object, scale: float = 1.0) -> Calls:
    """Positive random tensors, so that nothing cancels."""

    def made(dtype: torch.dtype) -> Iterator[Call]:
        yield Call((*((rand(dtype, 11, 37).abs() + 0.125) * scale for _ in range(tensors)), *rest))

    return made


def of_rows(*rest: object) -> Calls:
    def made(dtype: torch.dtype) -> Iterator[Call]:
        yield Call((rand(dtype, 6, 5), *rest))
        yield Call((rand(dtype, 5, 6).t(), *rest))

    return made


def variances(dtype: torch.dtype) -> Iterator[Call]:
    """With a correction as large as the number of elements, or larger, the variance is infinite."""
    for correction in (0, 1, 4, 5, 6, None, 0.5):
        yield Call((rand(dtype, 6, 5), [1]), {"correction": correction})
    yield Call((rand(dtype, 6, 5), [0, 1]), {"correction": 1, "keepdim": True})
    yield Call((torch.ones(6, 5, dtype=dtype), [1]), {"correction": 5})
    yield Call((rand(dtype), []), {"correction": 0})


_COMPOSITES: list[tuple[str, Calls]] = [
    ("silu gelu sigmoid log_sigmoid_forward hardswish hardsigmoid hardtanh softplus leaky_relu elu celu", of_random(1)),
    ("sigmoid_backward tanh_backward", of_random(2, scale=0.06)),
    ("silu_backward gelu_backward xlogy.Tensor", of_random(2)),
    ("lerp.Scalar", lerps),
    ("lerp.Tensor", tensor_lerps),
    ("threshold_backward", of_random(2, 1.3)),
    ("leaky_relu_backward", of_random(2, 0.1, False)),
    ("threshold", of_random(1, 0.1, 7)),
    ("softplus_backward", of_random(2, 1, 20)),
    ("mse_loss huber_loss smooth_l1_loss", of_random(2, 0)),
    ("var.correction std.correction", variances),
    ("mean.dim", of_rows([1])),
    ("_softmax _log_softmax", of_rows(1, False)),
]
COMPOSITES: dict[OpOverload, Calls] = {overload(name): calls for names, calls in _COMPOSITES for name in names.split()}
