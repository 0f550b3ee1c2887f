"""Random PyTorch programs: what one is, how it runs, and a hypothesis strategy that makes them.

A program is data (its `repr` is Python, so that one can be kept as a test): inputs, steps over numbered values,
outputs. It is well-typed because each step was run while it was drawn, and tame because a step that gives a number
that is not finite, or a large one, is left out.

A value is *exact* if any correct compiler gets the same bits as eager PyTorch: what moves, compares or selects, integer
arithmetic, single IEEE operations in f32 and f64. Steps with jumps (comparisons, rounding, remainders) take exact
operands only, so that programs differ by rounding alone.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field

import torch
import torch.nn.functional as F
from hypothesis import strategies as st
from torch import Tensor

DTYPES = {name: getattr(torch, name) for name in "float32 float64 float16 bfloat16 int64 int32 bool".split()}
SIZES = (1, 2, 3, 5, 7, 8, 16, 17, 32, 33, 64, 100, 257, 1025)
LAYOUTS = ("contiguous", "contiguous", "contiguous", "transposed", "strided", "offset", "expanded", "flipped_axes")
MOST_ELEMENTS = 1 << 13
LARGEST = 1e3
MOST_STEPS = 12
Attributes = tuple


@dataclass(frozen=True)
class Input:
    """A tensor with random numbers, and how it lies in memory."""

    shape: tuple[int, ...]
    dtype: str
    layout: str = "contiguous"

    def make(self, generator: torch.Generator) -> Tensor:
        """The tensor; integers are small."""
        dtype = DTYPES[self.dtype]
        if self.layout == "expanded" and self.shape:
            narrow = _numbers((*self.shape[:-1], 1), dtype, generator)
            return narrow.expand(self.shape)
        if self.layout == "transposed" and len(self.shape) >= 2:
            return _numbers((*self.shape[:-2], self.shape[-1], self.shape[-2]), dtype, generator).mT
        if self.layout == "flipped_axes":
            return _numbers(self.shape[::-1], dtype, generator).permute(tuple(range(len(self.shape)))[::-1])
        if self.layout == "strided" and self.shape:
            return _numbers((*self.shape[:-1], 2 * self.shape[-1] + 1), dtype, generator)[..., 1::2]
        if self.layout == "offset" and self.shape:
            return _numbers((self.shape[0] + 1, *self.shape[1:]), dtype, generator)[1:]
        return _numbers(self.shape, dtype, generator)


def _numbers(shape: Sequence[int], dtype: torch.dtype, generator: torch.Generator) -> Tensor:
    if dtype.is_floating_point:
        return torch.randn(shape, generator=generator, dtype=torch.float64).to(dtype)
    if dtype == torch.bool:
        return torch.randint(0, 2, shape, generator=generator).bool()
    return torch.randint(-9, 10, shape, generator=generator).to(dtype)


@dataclass(frozen=True)
class Step:
    """An operation (a key of OPS) on values by number."""

    op: str
    operands: tuple[int, ...]
    attributes: Attributes = ()

    @property
    def name(self) -> str:
        """The operation."""
        return self.op


@dataclass(frozen=True)
class Program:
    """See the module's docstring. Inputs are values 0, 1, ...; each step makes the next one."""

    inputs: tuple[Input, ...]
    steps: tuple[Step, ...]
    outputs: tuple[int, ...]
    seed: int = 0

    def make_inputs(self) -> list[Tensor]:
        """The same tensors each time."""
        generator = torch.Generator().manual_seed(self.seed)
        return [one.make(generator) for one in self.inputs]

    def function(self) -> Callable[..., tuple[Tensor, ...]]:
        """The program as a function of its inputs."""
        steps, outputs = self.steps, self.outputs

        def run(*inputs: Tensor) -> tuple[Tensor, ...]:
            values = list(inputs)
            for step in steps:
                values.append(OPS[step.op].apply(*(values[number] for number in step.operands), *step.attributes))
            return tuple(values[number] for number in outputs)

        return run


@dataclass(frozen=True)
class Op:
    """How to run an operation, what its operands may be, and what its attributes.

    `jumps`: the operands, by number, of which small changes can change the result a lot. `exact`: whether the result is
    exact if all operands are, for the dtypes in question.
    """

    apply: Callable[..., Tensor]
    accepts: Callable[[Tensor], bool] = lambda _: True
    operands: int = 1
    attributes: Callable[[st.DrawFn, Sequence[Tensor]], Attributes] = lambda draw, operands: ()
    jumps: tuple[int, ...] = ()
    exact: Callable[[Sequence[Tensor]], bool] = lambda _: False


def always(_: Sequence[Tensor]) -> bool:
    """What moves or selects is exact."""
    return True


def single_precision(operands: Sequence[Tensor]) -> bool:
    """IEEE arithmetic is the same everywhere, but 16-bit floats may be computed in f32 for a while."""
    return all(operand.dtype not in (torch.float16, torch.bfloat16) for operand in operands)


def integers_only(operands: Sequence[Tensor]) -> bool:
    """Sums of integers are exact in any order."""
    return not any(operand.is_floating_point() for operand in operands)


def is_float(x: Tensor) -> bool:
    return x.is_floating_point()


def is_number(x: Tensor) -> bool:
    return x.dtype != torch.bool


def is_integer(x: Tensor) -> bool:
    return is_number(x) and not is_float(x)


def is_bool(x: Tensor) -> bool:
    return x.dtype == torch.bool


def _axis(draw: st.DrawFn, operands: Sequence[Tensor]) -> Attributes:
    return (draw(st.integers(0, operands[0].dim() - 1)),)


def _has_axes(x: Tensor) -> bool:
    return x.dim() > 0


def _number_with_axes(x: Tensor) -> bool:
    return is_number(x) and x.dim() > 0 and x.numel() > 0


def _float_with_axes(x: Tensor) -> bool:
    return is_float(x) and x.dim() > 0 and x.numel() > 0


def _axes(draw: st.DrawFn, operands: Sequence[Tensor]) -> Attributes:
    axes = draw(st.lists(st.integers(0, operands[0].dim() - 1), min_size=1, unique=True).map(sorted))
    return (tuple(axes), draw(st.booleans()))


def _permutation(draw: st.DrawFn, operands: Sequence[Tensor]) -> Attributes:
    return (tuple(draw(st.permutations(range(operands[0].dim())))),)


def _scalar(draw: st.DrawFn, operands: Sequence[Tensor]) -> Attributes:
    return (draw(st.sampled_from([2, -1, 3] if is_integer(operands[0]) else [0.5, 2.0, -1.0, 3, 0.1, -0.25])),)


def _positive(draw: st.DrawFn, operands: Sequence[Tensor]) -> Attributes:
    return (draw(st.sampled_from([2, 3, 7])),)


def _bounds(draw: st.DrawFn, operands: Sequence[Tensor]) -> Attributes:
    return draw(st.sampled_from([(-1, 1), (0, 2), (-3, 0)]))


def _slice(draw: st.DrawFn, operands: Sequence[Tensor]) -> Attributes:
    (axis,) = _axis(draw, operands)
    size = operands[0].shape[axis]
    start = draw(st.integers(0, size - 1))
    return axis, start, draw(st.integers(start + 1, size)), draw(st.integers(1, 3))


def _select(draw: st.DrawFn, operands: Sequence[Tensor]) -> Attributes:
    (axis,) = _axis(draw, operands)
    return axis, draw(st.integers(0, operands[0].shape[axis] - 1))


def _reshape(draw: st.DrawFn, operands: Sequence[Tensor]) -> Attributes:
    """Two neighbouring axes joined, or one split."""
    shape = list(operands[0].shape)
    axis = draw(st.integers(0, len(shape) - 1))
    if axis + 1 < len(shape) and draw(st.booleans()):
        return ((*shape[:axis], shape[axis] * shape[axis + 1], *shape[axis + 2 :]),)
    divisors = [k for k in range(1, shape[axis] + 1) if shape[axis] % k == 0]
    part = draw(st.sampled_from(divisors))
    return ((*shape[:axis], part, shape[axis] // part, *shape[axis + 1 :]),)


def _new_axis(draw: st.DrawFn, operands: Sequence[Tensor]) -> Attributes:
    return (draw(st.integers(0, operands[0].dim())),)


def _expansion(draw: st.DrawFn, operands: Sequence[Tensor]) -> Attributes:
    return (draw(st.sampled_from([2, 3, 5])),)


def _padding(draw: st.DrawFn, operands: Sequence[Tensor]) -> Attributes:
    return draw(st.integers(0, 3)), draw(st.integers(0, 3))


def _shift(draw: st.DrawFn, operands: Sequence[Tensor]) -> Attributes:
    return (*_axis(draw, operands), draw(st.integers(-3, 3)))


def _dtype(draw: st.DrawFn, operands: Sequence[Tensor]) -> Attributes:
    return (draw(st.sampled_from(list(DTYPES))),)


def _float_dtype(draw: st.DrawFn, operands: Sequence[Tensor]) -> Attributes:
    return (draw(st.sampled_from(["float32", "float64", "float16", "bfloat16"])),)


def _cast(x: Tensor, name: str) -> Tensor:
    return x.to(DTYPES[name])


def _take(x: Tensor, index: Tensor, axis: int) -> Tensor:
    return x.index_select(axis, index.reshape(-1).long() % x.shape[axis])


def _gather(x: Tensor, index: Tensor) -> Tensor:
    """Along the last axis, with the same index in every row."""
    positions = index.reshape(-1).long() % x.shape[-1]
    return x.gather(-1, positions.expand(*x.shape[:-1], positions.shape[0]))


def _write_slice(x: Tensor, y: Tensor, axis: int, start: int, stop: int, step: int) -> Tensor:
    copy = x.clone()
    places = copy[(slice(None),) * axis + (slice(start, stop, step),)]
    places.copy_(y.expand_as(places) if y.dim() == 0 else y.reshape(-1)[:1].reshape(()).expand_as(places))
    return copy


def _add_in_place(x: Tensor, y: Tensor) -> Tensor:
    copy = x.clone()
    copy.add_(y)
    return copy


def _mutate(x: Tensor) -> Tensor:
    """Also changes an input, if it is one."""
    return x.mul_(2)


def _layer_norm(x: Tensor) -> Tensor:
    return F.layer_norm(x, (x.shape[-1],))


def _rms_norm(x: Tensor) -> Tensor:
    return x * torch.rsqrt(x.pow(2).mean(-1, keepdim=True) + 1e-3)


def _masked(x: Tensor) -> Tensor:
    return x.masked_fill(x.new_ones(x.shape[-2:], dtype=torch.bool).tril().logical_not(), -1.0)


def _matrix(x: Tensor) -> bool:
    return is_float(x) and x.dim() == 2 and x.numel() > 0


UNARY = {
    **{name: getattr(torch, name) for name in "sigmoid tanh sin cos exp exp2 log1p expm1 erf sqrt rsqrt".split()},
    **{name: getattr(torch, name) for name in "reciprocal log log2 log10 atan sinh cosh erfc asin tan".split()},
    "silu": F.silu,
    "gelu": F.gelu,
    "gelu_tanh": lambda x: F.gelu(x, approximate="tanh"),
    "softplus": F.softplus,
    "sqrt_of_abs": lambda x: x.abs().sqrt(),
    "log_of_square": lambda x: torch.log(x * x + 0.5),
}
COMPARISONS = {name: getattr(torch, name) for name in "gt ge lt le eq ne".split()}
SINGLE = {name: getattr(torch, name) for name in "add sub mul maximum minimum".split()}
LOGIC = {name: getattr(torch, name) for name in "logical_and logical_or logical_xor".split()}
BITS = {name: getattr(torch, name) for name in "bitwise_and bitwise_or bitwise_xor".split()}

OPS: dict[str, Op] = {
    **{name: Op(apply, is_float) for name, apply in UNARY.items()},
    **{name: Op(apply, is_number, 2, exact=single_precision) for name, apply in SINGLE.items()},
    **{name: Op(apply, is_number, 2, jumps=(0, 1), exact=always) for name, apply in COMPARISONS.items()},
    **{name: Op(apply, is_bool, 2, exact=always) for name, apply in LOGIC.items()},
    **{name: Op(apply, is_integer, 2, exact=always) for name, apply in BITS.items()},
    **{
        name: Op(getattr(torch, name), is_float, jumps=(0,), exact=always)
        for name in "floor ceil trunc round sign".split()
    },
    "neg": Op(torch.neg, is_number, exact=always),
    "abs": Op(torch.abs, is_number, exact=always),
    "relu": Op(torch.relu, is_number, exact=always),
    "square": Op(torch.square, is_number, exact=single_precision),
    "div": Op(torch.div, is_float, 2),
    "atan2": Op(torch.atan2, is_float, 2),
    "add_scalar": Op(lambda x, s: x + s, is_number, attributes=_scalar, exact=single_precision),
    "mul_scalar": Op(lambda x, s: x * s, is_number, attributes=_scalar, exact=single_precision),
    "rsub_scalar": Op(lambda x, s: s - x, is_number, attributes=_scalar, exact=single_precision),
    "div_scalar": Op(lambda x, s: x / s, is_float, attributes=_scalar),
    "pow": Op(lambda x, s: x.pow(s), is_float, attributes=_positive),
    "floor_divide": Op(lambda x, s: x // s, is_integer, attributes=_positive, exact=always),
    "remainder": Op(lambda x, s: x % s, is_number, attributes=_positive, jumps=(0,), exact=single_precision),
    "clamp": Op(lambda x, a, b: x.clamp(a, b), is_number, attributes=_bounds, exact=always),
    "greater_0": Op(lambda x: x > 0, is_number, jumps=(0,), exact=always),
    "not": Op(torch.logical_not, is_bool, exact=always),
    "where": Op(lambda c, x, y: torch.where(c > 0, x, y), lambda x: True, 3, jumps=(0,), exact=always),
    "masked_fill": Op(lambda x, c: x.masked_fill(c > 0, 0.5), is_float, 2, jumps=(1,), exact=always),
    "to": Op(_cast, attributes=_dtype, jumps=(0,), exact=always),
    "to_float": Op(_cast, attributes=_float_dtype, exact=always),
    # Moving elements
    "permute": Op(lambda x, order: x.permute(order), _has_axes, attributes=_permutation, exact=always),
    "contiguous": Op(lambda x: x.contiguous(), exact=always),
    "reshape": Op(lambda x, shape: x.reshape(shape), _has_axes, attributes=_reshape, exact=always),
    "flatten": Op(lambda x: x.flatten(), exact=always),
    "unsqueeze": Op(lambda x, axis: x.unsqueeze(axis), attributes=_new_axis, exact=always),
    "squeeze": Op(lambda x: x.squeeze(), exact=always),
    "expand": Op(lambda x, n: x.unsqueeze(0).expand(n, *x.shape), attributes=_expansion, exact=always),
    "slice": Op(
        lambda x, axis, a, b, s: x[(slice(None),) * axis + (slice(a, b, s),)],
        lambda x: x.dim() > 0 and x.numel() > 0,
        attributes=_slice,
        exact=always,
    ),
    "select": Op(
        lambda x, axis, k: x.select(axis, k), lambda x: x.dim() > 0 and x.numel() > 0, attributes=_select, exact=always
    ),
    "flip": Op(lambda x, axis: x.flip(axis), _has_axes, attributes=_axis, exact=always),
    "roll": Op(lambda x, axis, k: x.roll(k, axis), _has_axes, attributes=_shift, exact=always),
    "cat": Op(lambda x, y, axis: torch.cat((x, y), axis), _has_axes, 2, attributes=_axis, exact=always),
    "stack": Op(lambda x, y: torch.stack((x, y), 0), operands=2, exact=always),
    "pad": Op(lambda x, a, b: F.pad(x, (a, b)), _has_axes, attributes=_padding, exact=always),
    "tril": Op(torch.tril, lambda x: x.dim() >= 2, exact=always),
    "triu": Op(torch.triu, lambda x: x.dim() >= 2, exact=always),
    "masked_rows": Op(_masked, lambda x: is_float(x) and x.dim() >= 2, exact=always),
    "split": Op(
        lambda x, axis: (
            x.chunk(2, axis)[0] + x.chunk(2, axis)[-1][tuple(slice(0, s) for s in x.chunk(2, axis)[0].shape)]
        ),
        lambda x: is_number(x) and x.dim() > 0,
        attributes=_axis,
        exact=single_precision,
    ),
    "take": Op(_take, _has_axes, 2, attributes=_axis, jumps=(1,), exact=always),
    "gather": Op(_gather, _has_axes, 2, jumps=(1,), exact=always),
    # Memory
    "write_slice": Op(_write_slice, _number_with_axes, 2, attributes=_slice, exact=always),
    "add_in_place": Op(_add_in_place, is_number, 2, exact=single_precision),
    "mutate": Op(_mutate, lambda x: is_number(x) and 0 not in x.stride(), exact=always),
    # Reductions
    "sum": Op(lambda x, axes, keep: x.sum(axes, keepdim=keep), _has_axes, attributes=_axes, exact=integers_only),
    "mean": Op(lambda x, axes, keep: x.mean(axes, keepdim=keep), _float_with_axes, attributes=_axes),
    "amax": Op(lambda x, axes, keep: x.amax(axes, keepdim=keep), _number_with_axes, attributes=_axes, exact=always),
    "amin": Op(lambda x, axes, keep: x.amin(axes, keepdim=keep), _number_with_axes, attributes=_axes, exact=always),
    "var": Op(lambda x, axes, keep: x.var(axes, keepdim=keep), _float_with_axes, attributes=_axes),
    "any": Op(lambda x, axis: (x > 0).any(axis), _number_with_axes, attributes=_axis, jumps=(0,), exact=always),
    "all": Op(lambda x, axis: (x > 0).all(axis), _number_with_axes, attributes=_axis, jumps=(0,), exact=always),
    "argmax": Op(lambda x, axis: x.argmax(axis), _number_with_axes, attributes=_axis, jumps=(0,), exact=always),
    "softmax": Op(lambda x, axis: x.softmax(axis), _float_with_axes, attributes=_axis),
    "log_softmax": Op(lambda x, axis: x.log_softmax(axis), _float_with_axes, attributes=_axis),
    "logsumexp": Op(lambda x, axis: x.logsumexp(axis), _float_with_axes, attributes=_axis),
    "layer_norm": Op(_layer_norm, _float_with_axes),
    "rms_norm": Op(_rms_norm, _float_with_axes),
    # The library's
    "gram": Op(lambda x: x @ x.t(), _matrix),
    "cumsum": Op(lambda x, axis: x.cumsum(axis), _float_with_axes, attributes=_axis),
    "sort": Op(lambda x, axis: x.sort(axis).values, _number_with_axes, attributes=_axis, exact=always),
}


@dataclass
class Drawing:
    """A program while it is drawn: its values so far, and which are exact."""

    values: list[Tensor]
    exact: list[bool]
    steps: list[Step] = field(default_factory=list)

    def fitting(self, op: Op, position: int, first: Sequence[int]) -> list[int]:
        """The values that an operand may be, given the first one, if there is."""
        return [
            number
            for number, value in enumerate(self.values)
            if op.accepts(value)
            and (self.exact[number] or position not in op.jumps)
            and all(_broadcasts(self.values[one].shape, value.shape) for one in first)
        ]

    def try_step(self, step: Step) -> None:
        """Adds a step if it runs, and gives tame numbers."""
        operands = [self.values[number] for number in step.operands]
        try:
            # Mutation changes a copy here, so that a step that is left out leaves no trace
            result = OPS[step.op].apply(*(operand.clone() for operand in operands), *step.attributes)
        except (RuntimeError, IndexError, TypeError):
            return
        if is_tame(result):
            if step.op == "mutate":
                self.values[step.operands[0]] = result
            self.values.append(result)
            self.exact.append(is_exact(step, operands, [self.exact[number] for number in step.operands]))
            self.steps.append(step)


def is_exact(step: Step, operands: Sequence[Tensor], exact: Sequence[bool]) -> bool:
    """Whether any correct compiler gets eager's bits."""
    return all(exact) and OPS[step.op].exact(operands)


def is_tame(value: Tensor) -> bool:
    """Whether a value is small and has only moderate, finite numbers."""
    if value.numel() > MOST_ELEMENTS or value.dim() > 5:
        return False
    return value.numel() == 0 or bool((value.double().abs() < LARGEST).all())


@st.composite
def inputs(draw: st.DrawFn) -> Input:
    """A tensor of up to four axes."""
    shape = draw(st.lists(st.sampled_from(SIZES), max_size=4))
    while torch.Size(shape).numel() > MOST_ELEMENTS // 2:
        shape.pop()
    return Input(tuple(shape), draw(st.sampled_from(list(DTYPES))), draw(st.sampled_from(LAYOUTS)))


@st.composite
def programs(draw: st.DrawFn) -> Program:
    """A program with at least one step."""
    given = tuple(draw(st.lists(inputs(), min_size=1, max_size=3)))
    seed = draw(st.integers(0, 1000))
    tensors = Program(given, (), (), seed).make_inputs()
    drawing = Drawing(list(tensors), [True] * len(tensors))
    for _ in range(draw(st.integers(3, MOST_STEPS))):
        step = draw_step(draw, drawing)
        if step is not None:
            drawing.try_step(step)
    if not drawing.steps:
        drawing.steps.append(Step("contiguous", (0,)))
        drawing.values.append(tensors[0])
    last = len(drawing.values) - 1
    others = draw(st.lists(st.integers(0, last), max_size=2))
    return Program(given, tuple(drawing.steps), tuple(dict.fromkeys([last, *others])), seed)


def draw_step(draw: st.DrawFn, drawing: Drawing) -> Step | None:
    """An operation on values that it takes, the second and third of shapes that go with the first's."""
    name = draw(st.sampled_from(list(OPS)))
    op = OPS[name]
    if name == "mutate" and drawing.steps:
        # Before there are views of it
        return None
    chosen: list[int] = []
    for position in range(op.operands):
        fitting = drawing.fitting(op, position, chosen[:1])
        if not fitting:
            return None
        chosen.append(draw(st.sampled_from(fitting[::-1])))
    return Step(name, tuple(chosen), op.attributes(draw, [drawing.values[number] for number in chosen]))


def _broadcasts(one: Sequence[int], other: Sequence[int]) -> bool:
    return all(a in (b, 1) or b == 1 for a, b in zip(one[::-1], other[::-1], strict=False))
