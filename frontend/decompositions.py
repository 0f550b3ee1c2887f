"""How ATen operations are taken apart before import, in PyTorch's own accumulation types.

A decomposition is here for one of these reasons: torch-mlir lowers the operation in f64 (variance), or in 16 bits
(sums), or to loops where simpler operations fuse better, or wrongly (common_dtype.py: operands and numbers of different
dtypes). What one ATen operation computes on bf16 or f16 is computed in f32 and rounded once at the end, as PyTorch's
kernels do; fusion-normalize then sees one rounding.
"""

from __future__ import annotations

import functools
import itertools
import math
from collections.abc import Callable, Sequence

import functorch.compile  # noqa: F401  (defines prims.fma, where PyTorch has it)
import torch
from torch._decomp import get_decompositions

from .common_dtype import NARROW, PROMOTIONS, promoted
from .compiled_ops import SIGNED, holds
from .eager_strides import keeping_strides
from .foreach import foreach_decompositions

aten = torch.ops.aten
Tensor = torch.Tensor
MEAN = 1  # of ATen's reductions of a loss: 0 none, 1 mean, 2 sum

# PyTorch's own decompositions that compute in the accumulation type
_TAKEN = [
    aten._log_softmax,
    aten._log_softmax_backward_data,
    aten._softmax,
    aten._softmax_backward_data,
    aten.binary_cross_entropy,
    aten.celu,
    aten.clamp_max,
    aten.clamp_min,
    aten.elu,
    aten.elu_backward,
    aten.gelu_backward,
    aten.glu,
    aten.hardsigmoid,
    aten.hardswish,
    aten.hardtanh,
    aten.huber_loss,
    aten.leaky_relu,
    aten.leaky_relu_backward,
    aten.log_sigmoid_forward,
    aten.logit,
    aten.mse_loss,
    aten.mse_loss_backward,
    aten.native_dropout_backward,
    aten.native_group_norm_backward,
    aten.native_layer_norm_backward,
    aten.new_full,
    aten.new_ones,
    aten.new_zeros,
    aten.nll_loss_forward,
    aten.sigmoid_backward,
    aten.silu_backward,
    aten.smooth_l1_loss,
    aten.softplus,
    aten.softplus_backward,
    aten.tanh_backward,
    aten.threshold,
    aten.threshold_backward,
    aten.xlogy,
]


@functools.cache
def decomposition_table() -> dict[torch._ops.OperatorBase, Callable]:
    """The decompositions for AOTAutograd and torch.export; one may answer NotImplemented to keep its operation."""
    table = {**get_decompositions(_TAKEN), **foreach_decompositions(), **_OWN}
    return {overload: keeping_strides(overload, function) for overload, function in table.items()}


_OWN: dict[torch._ops.OpOverload, Callable] = dict(PROMOTIONS)


def _decomposes(*overloads: torch._ops.OpOverload) -> Callable[[Callable], Callable]:
    def register(function: Callable) -> Callable:
        for overload in overloads:
            _OWN[overload] = function
        return function

    return register


def _wide(x: Tensor) -> Tensor:
    """The tensor in the type that PyTorch computes in."""
    return x.float() if x.dtype in NARROW else x


@_decomposes(aten.sum.dim_IntList)
def _sum_dims(
    x: Tensor, dim: Sequence[int] | None, keepdim: bool = False, *, dtype: torch.dtype | None = None
) -> Tensor:
    result = dtype or (torch.int64 if not x.dtype.is_floating_point and not x.dtype.is_complex else x.dtype)
    if result == x.dtype and result not in NARROW:
        return NotImplemented
    wide = torch.float32 if result in NARROW else result
    return aten.sum.dim_IntList(x.to(wide), dim, keepdim).to(result)


@_decomposes(aten.sum.default)
def _sum_all(x: Tensor, *, dtype: torch.dtype | None = None) -> Tensor:
    return aten.sum.dim_IntList(x, list(range(x.dim())), False, dtype=dtype)


@_decomposes(aten.mean.dim)
def _mean_dims(
    x: Tensor, dim: Sequence[int] | None, keepdim: bool = False, *, dtype: torch.dtype | None = None
) -> Tensor:
    result = dtype or x.dtype
    if not result.is_floating_point:
        return NotImplemented
    wide = _wide(x.to(result))
    total = aten.sum.dim_IntList(wide, dim, keepdim)
    return (total / _count(x, dim)).to(result)


@_decomposes(aten.mean.default)
def _mean_all(x: Tensor, *, dtype: torch.dtype | None = None) -> Tensor:
    return aten.mean.dim(x, list(range(x.dim())), False, dtype=dtype)


def _count(x: Tensor, dim: Sequence[int] | None) -> int:
    """How many elements are reduced to one."""
    return math.prod(x.shape[d] for d in (dim or range(x.dim())))


def _moments(x: Tensor, dim: Sequence[int] | None, correction: float | None) -> tuple[Tensor, Tensor]:
    """(variance, mean), in the accumulation type, reduced dimensions kept."""
    wide = _wide(x)
    dims = list(dim) if dim else list(range(x.dim()))
    count = _count(x, dims)
    mean = aten.sum.dim_IntList(wide, dims, True) / count
    centred = wide - mean
    total = aten.sum.dim_IntList(centred * centred, dims, True)
    return total / max(count - (1 if correction is None else correction), 0), mean


def _drop(x: Tensor, dim: Sequence[int] | None, keepdim: bool) -> Tensor:
    return x if keepdim else x.squeeze(list(dim) if dim else list(range(x.dim())))


@_decomposes(aten.var.correction)
def _var(
    x: Tensor, dim: Sequence[int] | None = None, *, correction: float | None = None, keepdim: bool = False
) -> Tensor:
    if not x.is_floating_point():
        return NotImplemented
    variance, _ = _moments(x, dim, correction)
    return _drop(variance, dim, keepdim).to(x.dtype)


@_decomposes(aten.std.correction)
def _std(
    x: Tensor, dim: Sequence[int] | None = None, *, correction: float | None = None, keepdim: bool = False
) -> Tensor:
    if not x.is_floating_point():
        return NotImplemented
    variance, _ = _moments(x, dim, correction)
    return _drop(variance.sqrt(), dim, keepdim).to(x.dtype)


@_decomposes(aten.var_mean.correction)
def _var_mean(
    x: Tensor, dim: Sequence[int] | None = None, *, correction: float | None = None, keepdim: bool = False
) -> tuple[Tensor, Tensor]:
    if not x.is_floating_point():
        return NotImplemented
    variance, mean = _moments(x, dim, correction)
    return _drop(variance, dim, keepdim).to(x.dtype), _drop(mean, dim, keepdim).to(x.dtype)


@_decomposes(aten.native_layer_norm.default)
def _layer_norm(
    x: Tensor, shape: Sequence[int], weight: Tensor | None, bias: Tensor | None, eps: float
) -> tuple[Tensor, Tensor, Tensor]:
    dims = list(range(x.dim() - len(shape), x.dim()))
    variance, mean = _moments(x, dims, 0)
    scale = torch.rsqrt(variance + eps)
    y = (_wide(x) - mean) * scale
    if weight is not None:
        y = y * _wide(weight)
    if bias is not None:
        y = y + _wide(bias)
    # The statistics that the backward reads are 16 bits wide on the CPU, and in the accumulation type on a GPU
    kept = x.dtype if x.device.type == "cpu" else mean.dtype
    return y.to(x.dtype), mean.to(kept), scale.to(kept)


@_decomposes(aten.native_group_norm.default)
def _group_norm(
    x: Tensor, weight: Tensor | None, bias: Tensor | None, n: int, c: int, hw: int, groups: int, eps: float
) -> tuple[Tensor, Tensor, Tensor]:
    grouped = x.reshape(n, groups, c // groups * hw)
    variance, mean = _moments(grouped, [2], 0)
    scale = torch.rsqrt(variance + eps)
    y = ((_wide(grouped) - mean) * scale).reshape(n, c, hw)
    if weight is not None:
        y = y * _wide(weight).reshape(1, c, 1)
    if bias is not None:
        y = y + _wide(bias).reshape(1, c, 1)
    return y.reshape(x.shape).to(x.dtype), mean.squeeze(2).to(x.dtype), scale.squeeze(2).to(x.dtype)


@_decomposes(aten._native_batch_norm_legit_functional.default)
def _batch_norm(
    x: Tensor,
    weight: Tensor | None,
    bias: Tensor | None,
    running_mean: Tensor,
    running_var: Tensor,
    training: bool,
    momentum: float,
    eps: float,
) -> tuple[Tensor, Tensor, Tensor, Tensor, Tensor]:
    shape = [1, x.shape[1]] + [1] * (x.dim() - 2)
    if training:
        dims = [d for d in range(x.dim()) if d != 1]
        count = _count(x, dims)
        variance, mean = _moments(x, dims, 0)
        unbiased = (variance * (count / max(count - 1, 1))).reshape(-1)
        new_mean = momentum * mean.reshape(-1).to(running_mean.dtype) + (1 - momentum) * running_mean
        new_var = momentum * unbiased.to(running_var.dtype) + (1 - momentum) * running_var
        saved = (mean.reshape(-1), torch.rsqrt(variance + eps).reshape(-1))
    else:
        mean, variance = running_mean.reshape(shape), running_var.reshape(shape)
        new_mean, new_var = running_mean.clone(), running_var.clone()
        saved = (x.new_empty((0,)), x.new_empty((0,)))
    y = (_wide(x) - mean) * torch.rsqrt(variance + eps)
    if weight is not None:
        y = y * _wide(weight).reshape(shape)
    if bias is not None:
        y = y + _wide(bias).reshape(shape)
    return (y.to(x.dtype), *saved, new_mean, new_var)


def _are_floats(x: Tensor, *others: Tensor) -> bool:
    """Whether all are of one dtype, a floating-point one."""
    return x.is_floating_point() and all(other.dtype == x.dtype for other in others)


@_decomposes(aten.neg.default)
def _neg(x: Tensor) -> Tensor:
    """torch-mlir takes an integer through f32."""
    if x.dtype not in SIGNED:
        return NotImplemented
    return torch.zeros((), dtype=x.dtype, device=x.device) - x


@_decomposes(aten.reciprocal.default)
def _reciprocal(x: Tensor) -> Tensor:
    """torch-mlir asserts that no element is 0."""
    if not x.is_floating_point():
        return NotImplemented
    return torch.ones((), dtype=x.dtype, device=x.device) / x


@_decomposes(aten.lerp.Scalar)
def _lerp_scalar(x: Tensor, y: Tensor, weight: float) -> Tensor:
    if not _are_floats(x, y):
        return NotImplemented
    u, v = _wide(x), _wide(y)
    return (u + weight * (v - u) if abs(weight) < 0.5 else v - (v - u) * (1 - weight)).to(x.dtype)


@_decomposes(aten.lerp.Tensor)
def _lerp_tensor(x: Tensor, y: Tensor, weight: Tensor) -> Tensor:
    if not _are_floats(x, y, weight):
        return NotImplemented
    u, v, w = _wide(x), _wide(y), _wide(weight)
    return torch.where(w.abs() < 0.5, u + w * (v - u), v - (v - u) * (1 - w)).to(x.dtype)


@_decomposes(aten.unbind.int)
def _unbind(x: Tensor, dim: int = 0) -> list[Tensor]:
    return [x.select(dim, number) for number in range(x.shape[dim])]


@_decomposes(aten.split_with_sizes.default)
def _split_with_sizes(x: Tensor, sizes: Sequence[int], dim: int = 0) -> list[Tensor]:
    ends = itertools.accumulate(sizes)
    return [aten.slice.Tensor(x, dim, end - size, end) for size, end in zip(sizes, ends, strict=True)]


@_decomposes(aten.split.Tensor)
def _split(x: Tensor, size: int, dim: int = 0) -> list[Tensor]:
    extent = x.shape[dim]
    if not size:
        return NotImplemented
    return [aten.slice.Tensor(x, dim, start, min(start + size, extent)) for start in range(0, max(extent, 1), size)]


@_decomposes(aten.index.Tensor)
def _index(x: Tensor, indices: Sequence[Tensor | None]) -> Tensor:
    """Indices are int64 for torch-mlir."""
    if not any(i is not None and i.dtype == torch.int32 for i in indices):
        return NotImplemented
    return aten.index.Tensor(x, [i.long() if i is not None and i.dtype == torch.int32 else i for i in indices])


@_decomposes(aten.maximum.default)
def _maximum(x: Tensor, y: Tensor) -> Tensor:
    """NaN wins, which torch-mlir's own lowering, a comparison, does not see to."""
    if not _are_floats(x, y):
        return promoted(aten.maximum.default, x, y)
    return torch.where((x > y) | (x != x), x, y)


@_decomposes(aten.minimum.default)
def _minimum(x: Tensor, y: Tensor) -> Tensor:
    if not _are_floats(x, y):
        return promoted(aten.minimum.default, x, y)
    return torch.where((x < y) | (x != x), x, y)


@_decomposes(aten.clamp.default)
def _clamp(x: Tensor, min: float | None = None, max: float | None = None) -> Tensor:
    """NaN stays: it is neither below nor above."""
    bounds = [bound for bound in (min, max) if bound is not None]
    if not x.is_floating_point() or not all(holds(x.dtype, bound) for bound in bounds):
        return NotImplemented
    if any(math.isnan(bound) for bound in bounds):
        return torch.full_like(x, float("nan"))
    if min is not None:
        x = torch.where(x < min, torch.full((), min, dtype=x.dtype, device=x.device), x)
    return x if max is None else torch.where(x > max, torch.full((), max, dtype=x.dtype, device=x.device), x)


@_decomposes(aten.addcmul.default)
def _addcmul(x: Tensor, y: Tensor, z: Tensor, *, value: float = 1) -> Tensor:
    if not x.is_floating_point():
        return NotImplemented
    product = _wide(y) * _wide(z) if value == 1 else value * _wide(y) * _wide(z)
    return (_wide(x) + product).to(torch.promote_types(x.dtype, torch.promote_types(y.dtype, z.dtype)))


@_decomposes(aten.addcdiv.default)
def _addcdiv(x: Tensor, y: Tensor, z: Tensor, *, value: float = 1) -> Tensor:
    if not x.is_floating_point():
        return NotImplemented
    scaled = _wide(y) if value == 1 else value * _wide(y)
    quotient = scaled / _wide(z)
    return (_wide(x) + quotient).to(torch.promote_types(x.dtype, torch.promote_types(y.dtype, z.dtype)))


def _fma(x: Tensor, y: Tensor | float, z: Tensor | float) -> Tensor:
    """What PyTorch makes of `addcmul` in an optimizer; eager rounds twice."""
    y, z = (_wide(value) if isinstance(value, Tensor) else value for value in (y, z))
    return (_wide(x) * y + z).to(x.dtype)


if hasattr(torch.ops.prims, "fma"):  # not in every PyTorch that we run on
    _decomposes(torch.ops.prims.fma.default)(_fma)


@_decomposes(aten.pow.Scalar)
def _pow_of_number(x: float, y: Tensor) -> Tensor:
    if not y.is_floating_point():
        return NotImplemented
    return torch.pow(torch.full((), x, dtype=y.dtype, device=y.device), y)


@_decomposes(aten.copy.default)
def _copy(x: Tensor, y: Tensor, non_blocking: bool = False) -> Tensor:
    """What `x` holds after `x.copy_(y)`, which lies in memory as `x` does."""
    if x.device != y.device:
        return NotImplemented
    return y.to(x.dtype).expand(x.shape).clone()


@_decomposes(aten.clamp.Tensor)
def _clamp_to_tensors(x: Tensor, min: Tensor | None = None, max: Tensor | None = None) -> Tensor:
    """NaN stays, and is what a bound of NaN gives."""
    if not x.is_floating_point():
        return NotImplemented
    if min is not None:
        x = torch.maximum(x, min)
    return x if max is None else torch.minimum(x, max)


@_decomposes(aten.gelu.default)
def _gelu(x: Tensor, approximate: str = "none") -> Tensor:
    """https://arxiv.org/abs/1606.08415, with erf, or the tanh approximation that it gives."""
    u = _wide(x)
    if approximate == "tanh":
        inner = math.sqrt(2 / math.pi) * (u + 0.044715 * (u * u * u))
        return (0.5 * u * (1 + torch.tanh(inner))).to(x.dtype)
    return (0.5 * u * (1 + torch.erf(u * math.sqrt(0.5)))).to(x.dtype)


@_decomposes(aten.silu.default)
def _silu(x: Tensor) -> Tensor:
    u = _wide(x)
    return (u / (1 + torch.exp(-u))).to(x.dtype)


@_decomposes(aten.sigmoid.default)
def _sigmoid(x: Tensor) -> Tensor:
    if not x.is_floating_point():
        return NotImplemented
    return (1 / (1 + torch.exp(-_wide(x)))).to(x.dtype)


@_decomposes(aten._fused_rms_norm.default)
def _rms_norm(x: Tensor, shape: Sequence[int], weight: Tensor | None, eps: float | None) -> tuple[Tensor, Tensor]:
    wide = _wide(x)
    dims = list(range(x.dim() - len(shape), x.dim()))
    epsilon = torch.finfo(wide.dtype).eps if eps is None else eps
    scale = torch.rsqrt(aten.mean.dim(wide * wide, dims, True) + epsilon)
    y = wide * scale
    if weight is not None:
        y = y * _wide(weight)
    return y.to(x.dtype), scale


@_decomposes(aten.nll_loss_backward.default)
def _nll_loss_backward(
    grad: Tensor,
    x: Tensor,
    target: Tensor,
    weight: Tensor | None,
    reduction: int,
    ignore_index: int,
    total_weight: Tensor,
) -> Tensor:
    """Each class is compared with the target: scattering into zeros would not fuse with what follows."""
    wanted = target.reshape(-1, 1) if x.dim() == 2 else target.reshape(-1)[:1]
    is_hit = (torch.arange(x.shape[-1], device=x.device) == wanted) & (wanted != ignore_index)
    if reduction == MEAN:
        grad = grad / total_weight
    if x.dim() == 2 and grad.dim():
        grad = grad.reshape(-1, 1)
    if weight is not None:
        grad = grad * weight
    return torch.where(is_hit, -grad, 0.0).to(x.dtype)
