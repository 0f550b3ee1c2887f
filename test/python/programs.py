"""Programs that the compiled result is compared with eager PyTorch on: on the CPU target and on a GPU.

Each is a function and a maker of inputs; shapes are odd on purpose, inputs random, some of them strided.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

import torch
import torch.nn.functional as F
from torch import Tensor

Make = Callable[[], Sequence[Tensor]]


@dataclass(frozen=True)
class Program:
    """A function of tensors, and inputs for it; `tolerance` is relative to an element of the f64 result."""

    name: str
    function: Callable
    make: Make
    tolerance: float = 2e-6

    def __str__(self) -> str:
        return self.name


NARROW = (torch.float16, torch.bfloat16)
TOLERANCES = {torch.float32: 2e-6, torch.float64: 1e-13, torch.float16: 2e-3, torch.bfloat16: 1.6e-2}


def rand(*shape: int, dtype: torch.dtype = torch.float32) -> Tensor:
    """Normally distributed."""
    return torch.randn(shape, dtype=torch.float32).to(dtype)


def integers(low: int, high: int, *shape: int, dtype: torch.dtype = torch.int64) -> Tensor:
    return torch.randint(low, high, shape, dtype=dtype)


def channels_last(*shape: int) -> Tensor:
    return rand(*shape).to(memory_format=torch.channels_last)


def rope(q: Tensor, cos: Tensor, sin: Tensor) -> Tensor:
    half = q.shape[-1] // 2
    return q * cos + torch.cat((-q[..., half:], q[..., :half]), -1) * sin


def rms_norm(x: Tensor, w: Tensor) -> Tensor:
    h = x.float()
    return (h * torch.rsqrt(h.pow(2).mean(-1, keepdim=True) + 1e-6)).to(x.dtype) * w


def adam(p: Tensor, g: Tensor, m: Tensor, v: Tensor) -> tuple[Tensor, Tensor, Tensor]:
    m2, v2 = 0.9 * m + 0.1 * g, 0.999 * v + 0.001 * g * g
    return p - 1e-3 * m2 / (v2.sqrt() + 1e-8), m2, v2


BF16, F16, F64 = torch.bfloat16, torch.float16, torch.float64

PROGRAMS = [
    # Pointwise: broadcasting, ranks, dtypes
    Program("add_bias", lambda x, b: x + b, lambda: (rand(5, 7, 33), rand(33))),
    Program("broadcast_both", lambda x, y: x * y - y, lambda: (rand(5, 1, 9), rand(3, 1))),
    Program("rank5", lambda x: torch.sin(x) * 2 + x, lambda: (rand(2, 3, 1, 5, 7),)),
    Program("gelu", lambda x, b: F.gelu(x + b), lambda: (rand(64, 48), rand(48))),
    Program(
        "gelu_tanh_bf16",
        lambda x, b: F.gelu(x + b, approximate="tanh"),
        lambda: (rand(16, 48, dtype=BF16), rand(48, dtype=BF16)),
    ),
    Program("swiglu_f16", lambda a, b: F.silu(a) * b, lambda: (rand(15, 33, dtype=F16), rand(15, 33, dtype=F16))),
    Program(
        "chain",
        lambda x, y, z: torch.where(x * y + z > 0, x, z * 0.1) + y,
        lambda: (rand(9, 31), rand(9, 31), rand(9, 31)),
    ),
    Program("powers", lambda x: x.pow(2) + x.pow(3) - x.abs().pow(0.5) + x.abs().pow(2.7), lambda: (rand(40),)),
    Program("powers_of_negatives", lambda x: x.pow(5) + x.pow(-2) + x.pow(4), lambda: (rand(40) - 2,), 5e-6),
    Program("f64", lambda x: torch.tanh(x) * torch.erf(x) + torch.log1p(x.abs()), lambda: (rand(7, 11, dtype=F64),)),
    Program(
        "integers",
        lambda x, y: (x // 3) * (y % 4) + x.clamp(min=0),
        lambda: (integers(-9, 9, 5, 6), integers(-9, 9, 5, 6)),
    ),
    Program("int32_wraps", lambda x: x * x * x, lambda: (integers(-(2**30), 2**30, 50, dtype=torch.int32),)),
    Program(
        "uint8",
        lambda x, y: (x + y) * 2,
        lambda: (integers(0, 255, 33, dtype=torch.uint8), integers(0, 255, 33, dtype=torch.uint8)),
    ),
    Program("bool", lambda x, y: (x > 0) & (y < 0) | (x == y), lambda: (rand(5, 9), rand(5, 9))),
    Program("bool_inputs", lambda m, x: torch.where(m, x, -x), lambda: (rand(6, 10) > 0, rand(6, 10))),
    Program(
        "not_a_number",
        lambda x: (x.amax(), x.clamp(-1, 1), torch.maximum(x, x * 0), torch.relu(x), x.sign(), x.argmax(), x.round()),
        lambda: (torch.tensor([1.0, float("nan"), -2.5, 0.5, 1.5, float("inf"), -0.0]),),
    ),
    Program(
        "reciprocals", lambda x: (1 / x, x.reciprocal(), torch.sigmoid(x), x.pow(-1)), lambda: (rand(3, 7).relu(),)
    ),
    Program(
        "division_signs",
        lambda x, y: (
            torch.div(x, y, rounding_mode="floor"),
            torch.div(x, y, rounding_mode="trunc"),
            x % y,
            torch.fmod(x, y),
        ),
        lambda: (torch.tensor([7, -7, 7, -7]), torch.tensor([3, 3, -3, -3])),
    ),
    Program("cond", lambda x: torch.cond(x.sum() > 0, lambda y: y + 1, lambda y: y - 1, (x,)), lambda: (rand(3),)),
    Program("scalar", lambda x: x * 2 + 1, lambda: (rand(),)),
    Program("empty", lambda x: x * 2, lambda: (rand(0, 4),)),
    Program("sum_of_nothing", lambda x: x.sum(-1) + 1, lambda: (rand(3, 0),)),
    Program("sums_of_nothing", lambda x: (x.sum(1), x.mean(1), (x > 0).all(1)), lambda: (rand(3, 0, 2),)),
    Program("no_rows", lambda x: F.layer_norm(x, (4,)).softmax(-1), lambda: (rand(0, 4),)),
    Program("nothing_transposed", lambda x: x.transpose(0, 2) * 2, lambda: (rand(2, 0, 4),)),
    Program("empty_flip", lambda x: (x.flip(1), F.celu(x), torch.zeros_like(x)), lambda: (rand(5, 0, 10),)),
    Program("all_of_scalar", lambda x: (x * 2).all(0, keepdim=True), lambda: (rand(),)),
    Program("mixed", lambda x, y: x.float() + y, lambda: (rand(12, 20, dtype=BF16), rand(12, 20))),
    # Strided inputs
    Program("transposed_input", lambda x, y: x + y, lambda: (rand(13, 21).t(), rand(21, 13))),
    Program("sliced_input", lambda x: x * 2 + 1, lambda: (rand(20, 40)[::2, 3:34:3],)),
    Program("expanded_input", lambda x: x.exp(), lambda: (rand(7, 1).expand(7, 12),)),
    Program("misaligned_input", lambda x: x + 1, lambda: (rand(65)[1:],)),
    Program(
        "channels_last",
        lambda x, w: F.relu(x) * w,
        lambda: (channels_last(2, 5, 6, 7), rand(1, 5, 1, 1)),
    ),
    Program("softmax_of_transposed", lambda x: torch.softmax(x, -1), lambda: (rand(33, 20).t(),)),
    # A tensor that is returned transposed and read besides
    Program(
        "returned_transposed",
        lambda x, w: ((y := x.sin()), y[:, 0] @ w, y.sort(1).values, y.cos()),
        lambda: (channels_last(3, 4, 6, 5), rand(5, 3)),
        4e-6,
    ),
    # Moving elements
    Program("transpose_add", lambda x, y: (x.t() + y).contiguous(), lambda: (rand(13, 21), rand(21, 13))),
    Program("transpose_copy", lambda x: x.t().contiguous(), lambda: (rand(13, 21),)),
    Program("permute", lambda x: x.permute(2, 0, 1) * 2, lambda: (rand(3, 4, 5),)),
    Program("cat", lambda x, y: torch.cat((x * 2, y + 1), 1), lambda: (rand(4, 5), rand(4, 8))),
    Program("cat_aligned", lambda x, y: torch.cat((x * 2, y + 1), 1), lambda: (rand(4, 16), rand(4, 32))),
    Program("stack", lambda x, y: torch.stack((x, y), 1), lambda: (rand(4, 6), rand(4, 6))),
    Program("rope", rope, lambda: (rand(2, 3, 8, 16), rand(8, 16), rand(8, 16))),
    Program("pad", lambda x: F.pad(x, (1, 2, 3, 0)) * 2, lambda: (rand(4, 5),)),
    Program("slice", lambda x: x[1:, ::2] * 2 + 1, lambda: (rand(6, 10),)),
    Program("reshape_strided", lambda x: x.reshape(3, -1), lambda: (rand(4, 5, 3).permute(2, 1, 0),)),
    Program("reshape_channels_last", lambda x: x.reshape(2, -1) * 2, lambda: (channels_last(2, 5, 6, 7),)),
    Program("matmul_expanded", lambda x: x @ x.mT, lambda: (rand(3, 1, 4).expand(3, 6, 4),)),
    Program("flip", lambda x: x.flip(1) + 1, lambda: (rand(4, 6),)),
    Program("roll", lambda x: x.roll(2, 1) + x, lambda: (rand(4, 6),)),
    Program("tril", torch.tril, lambda: (rand(7, 7),)),
    Program("split", lambda x: [part * 2 for part in x.split(4, 1)], lambda: (rand(3, 10),)),
    Program("embedding", lambda w, i: F.embedding(i, w) * 2, lambda: (rand(10, 16), integers(0, 10, 3, 5))),
    Program("index_select", lambda x, i: x.index_select(1, i), lambda: (rand(5, 9), integers(0, 9, 4))),
    Program("gather", lambda x, i: x.gather(1, i) + 1, lambda: (rand(5, 9), integers(0, 9, 5, 4))),
    # Reductions and normalisations
    Program("softmax", lambda x: torch.softmax(x, -1), lambda: (rand(3, 5, 100),)),
    Program("softmax_7", lambda x: torch.softmax(x, -1), lambda: (rand(9, 7),)),
    Program("softmax_1", lambda x: torch.softmax(x, -1), lambda: (rand(9, 1),)),
    Program("softmax_4095", lambda x: torch.softmax(x * 3, -1), lambda: (rand(5, 4095),)),
    Program("softmax_50257", lambda x: torch.softmax(x, -1), lambda: (rand(2, 50257),)),
    Program("softmax_bf16", lambda x: torch.softmax(x, -1), lambda: (rand(16, 4096, dtype=BF16),)),
    Program("softmax_f16_odd", lambda x: torch.softmax(x, -1), lambda: (rand(16, 301, dtype=F16),)),
    Program("softmax_middle", lambda x: torch.softmax(x, 1), lambda: (rand(3, 20, 17),)),
    Program("log_softmax", lambda x: torch.log_softmax(x, -1), lambda: (rand(8, 33),)),
    Program(
        "layer_norm", lambda x, w, b: F.layer_norm(x, (50,), w, b), lambda: (rand(6, 50), rand(50), rand(50)), 4e-6
    ),
    Program(
        "layer_norm_bf16",
        lambda x, w, b: F.layer_norm(x, (768,), w, b),
        lambda: tuple(rand(*s, dtype=BF16) for s in ((6, 768), (768,), (768,))),
    ),
    Program(
        "add_layer_norm",
        lambda x, r, w, b: (F.layer_norm(x + r, (96,), w, b), x + r),
        lambda: (rand(6, 96), rand(6, 96), rand(96), rand(96)),
        4e-6,
    ),
    Program("rms_norm", rms_norm, lambda: (rand(4, 129), rand(129)), 4e-6),
    Program("rms_norm_bf16", rms_norm, lambda: (rand(33, 256, dtype=BF16), rand(256, dtype=BF16)), 2e-2),
    Program(
        "group_norm",
        lambda x, w, b: F.silu(F.group_norm(x, 4, w, b)),
        lambda: (rand(3, 8, 5, 6), rand(8), rand(8)),
        4e-6,
    ),
    Program(
        "layer_norm_of_transposed",
        lambda x, w: F.layer_norm(x, (24,), w),
        lambda: (rand(2, 24, 15).permute(0, 2, 1), rand(24)),
        4e-6,
    ),
    Program("group_norm_channels_last", lambda x: F.group_norm(x, 2), lambda: (channels_last(3, 4, 6, 5),), 4e-6),
    Program("sum_rows", lambda x: x.sum(-1), lambda: (rand(33, 20),)),
    Program("sum_columns", lambda x: x.sum(0), lambda: (rand(33, 20),)),
    Program("sum_columns_bf16", lambda x: x.sum(0), lambda: (rand(333, 24, dtype=BF16),)),
    Program("sum_all", lambda x: (x * x).sum(), lambda: (rand(33, 20),)),
    Program("mean_channels", lambda x: x.mean((0, 2, 3)), lambda: (rand(3, 5, 4, 6),)),
    Program("var", lambda x: x.var(-1), lambda: (rand(12, 77),), 4e-6),
    Program("two_outputs", lambda x: (x.sum(-1), x.exp()), lambda: (rand(4, 60),)),
    Program("amax_amin", lambda x: x.amax(-1) - x.amin(-1), lambda: (rand(8, 50),)),
    Program("any_all", lambda x: ((x > 2).any(-1), (x > -3).all(-1)), lambda: (rand(8, 50),)),
    Program("argmax", lambda x: x.argmax(-1), lambda: (rand(8, 50),)),
    Program("sum_integers", lambda x: x.sum(-1), lambda: (integers(-100, 100, 9, 41, dtype=torch.int32),)),
    Program("sum_bool", lambda x: (x > 0).sum(-1), lambda: (rand(9, 41),)),
    Program("logsumexp", lambda x: torch.logsumexp(x, -1), lambda: (rand(16, 33),)),
    Program("cross_entropy", lambda x, t: F.cross_entropy(x, t), lambda: (rand(8, 50), integers(0, 50, 8))),
    Program(
        "nll_backward",
        lambda g, x, t, w: torch.ops.aten.nll_loss_backward(g, x, t, w, 1, 3, x.new_full((), 2.5)),
        lambda: (rand(), rand(8, 51), integers(0, 7, 8), rand(51)),
    ),
    Program(
        "nll_backward_rows",
        lambda g, x, t: torch.ops.aten.nll_loss_backward(g, x, t, None, 0, -100, x.new_full((), 8.0)),
        lambda: (rand(8), rand(8, 51), integers(0, 51, 8)),
    ),
    Program(
        "cross_entropy_backward",
        lambda g, x, t: torch.ops.aten._log_softmax_backward_data(
            torch.ops.aten.nll_loss_backward(g, x, t, None, 1, -100, x.new_full((), 8.0)), x, 1, x.dtype
        ),
        lambda: (rand(), torch.log_softmax(rand(8, 51), 1), integers(0, 51, 8)),
    ),
    Program("mse", lambda x, y: F.mse_loss(x, y), lambda: (rand(8, 50), rand(8, 50))),
    Program("adam", adam, lambda: (rand(37, 41), rand(37, 41), rand(37, 41), rand(37, 41).abs())),
    # Library calls in between
    Program("matmul_gelu", lambda x, w, b: F.gelu(x @ w + b), lambda: (rand(9, 16), rand(16, 24), rand(24)), 4e-6),
    Program("linear", lambda x, w, b: F.linear(x, w, b).relu(), lambda: (rand(2, 9, 16), rand(24, 16), rand(24)), 4e-6),
    Program(
        "attention",
        F.scaled_dot_product_attention,
        lambda: (rand(2, 3, 9, 16), rand(2, 3, 9, 16), rand(2, 3, 9, 16)),
        4e-6,
    ),
    Program(
        "convolution",
        lambda x, w: F.relu(F.conv2d(x, w, padding=1)) + 1,
        lambda: (rand(2, 3, 8, 8), rand(5, 3, 3, 3)),
        4e-6,
    ),
    Program("sort", lambda x: torch.sort(x * 2, -1).values + 1, lambda: (rand(5, 20),)),
    Program("cumsum", lambda x: torch.cumsum(x, -1) * 2, lambda: (rand(5, 20),)),
    Program("complex", lambda x: torch.fft.rfft(x).abs() + 1, lambda: (rand(5, 20),)),
]
