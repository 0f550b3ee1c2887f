"""The measured work: one workload a row, each a (name, make, bytes) triple.

make() -> (fn, inputs): plain PyTorch, run as is (eager) or through a compiler.
bytes  -> least bytes the work must move through device memory (each input read
once, each output written once): the speed-of-light floor.
"""

import torch
import torch.nn.functional as F

DEV = "cuda"


def rnd(*s, dtype=torch.bfloat16):
    return torch.randn(*s, device=DEV, dtype=torch.float32).to(dtype)


def nbytes(*ts):
    n = 0
    for t in ts:
        if isinstance(t, torch.Tensor):
            n += t.numel() * t.element_size()
        elif isinstance(t, (tuple, list)):
            n += nbytes(*t)
    return n


SUITE = []


def work(name):
    def deco(make):
        SUITE.append((name, make))
        return make

    return deco


@work("bias_gelu_bf16_16384x8192")
def _():
    return lambda x, b: F.gelu(x + b, approximate="tanh"), (rnd(16384, 8192), rnd(8192))


@work("swiglu_bf16_16384x11008")
def _():
    return lambda a, b: F.silu(a) * b, (rnd(16384, 11008), rnd(16384, 11008))


@work("pointwise_chain_f32_8192x8192")
def _():
    def fn(x, y, z):
        t = x * y + z
        t = torch.sin(t) * torch.sigmoid(y)
        return torch.where(t > 0, t, t * 0.1) + x

    return fn, (
        rnd(8192, 8192, dtype=torch.float32),
        rnd(8192, 8192, dtype=torch.float32),
        rnd(8192, 8192, dtype=torch.float32),
    )


for r, c in ((65536, 256), (32768, 4096), (8192, 16384), (2048, 65536), (1024, 262144)):

    @work(f"softmax_bf16_{r}x{c}")
    def _(r=r, c=c):
        return lambda x: torch.softmax(x, -1), (rnd(r, c),)

    @work(f"rmsnorm_bf16_{r}x{c}")
    def _(r=r, c=c):
        def fn(x, w):
            h = x.float()
            return (h * torch.rsqrt(h.pow(2).mean(-1, keepdim=True) + 1e-6)).to(x.dtype) * w

        return fn, (rnd(r, c), rnd(c))


@work("add_layernorm_bf16_32768x4096")
def _():
    def fn(x, res, w, b):
        h = x + res
        return F.layer_norm(h, (h.shape[-1],), w, b), h

    return fn, (rnd(32768, 4096), rnd(32768, 4096), rnd(4096), rnd(4096))


@work("layernorm_bwd_bf16_32768x4096")
def _():
    def fn(dy, x, w, mean, rstd):
        xf, dyf = x.float(), dy.float()
        xhat = (xf - mean) * rstd
        g = dyf * w.float()
        c1 = g.mean(-1, keepdim=True)
        c2 = (g * xhat).mean(-1, keepdim=True)
        dx = (g - c1 - xhat * c2) * rstd
        return dx.to(x.dtype), (dyf * xhat).sum(0).to(w.dtype), dyf.sum(0).to(w.dtype)

    x = rnd(32768, 4096)
    m = x.float().mean(-1, keepdim=True)
    r = torch.rsqrt(x.float().var(-1, keepdim=True, unbiased=False) + 1e-5)
    return fn, (rnd(32768, 4096), x, rnd(4096), m, r)


@work("cross_entropy_bf16_8192x50257")
def _():
    return lambda x, t: F.cross_entropy(x.float(), t), (rnd(8192, 50257), torch.randint(0, 50257, (8192,), device=DEV))


@work("cross_entropy_bf16_4096x128256")
def _():
    return lambda x, t: F.cross_entropy(x.float(), t), (
        rnd(4096, 128256),
        torch.randint(0, 128256, (4096,), device=DEV),
    )


@work("colsum_f32_65536x2048")
def _():
    return lambda x: x.sum(0), (rnd(65536, 2048, dtype=torch.float32),)


@work("colsum_bf16_262144x512")
def _():
    return lambda x: x.sum(0), (rnd(262144, 512),)


@work("fullsum_f32_256M")
def _():
    return lambda x: (x * x).sum(), (rnd(2**28, dtype=torch.float32),)


@work("transpose_add_bf16_16384x8192")
def _():
    return lambda x, y: (x.t() + y).contiguous(), (rnd(16384, 8192), rnd(8192, 16384))


@work("rope_bf16_8x32x4096x128")
def _():
    def fn(q, k, cos, sin):
        def rot(x):
            h = x.shape[-1] // 2
            return torch.cat((-x[..., h:], x[..., :h]), -1)

        return q * cos + rot(q) * sin, k * cos + rot(k) * sin

    return fn, (rnd(8, 32, 4096, 128), rnd(8, 32, 4096, 128), rnd(4096, 128), rnd(4096, 128))


@work("batchnorm_train_f32_128x256x56x56")
def _():
    def fn(x, w, b):
        m = x.mean((0, 2, 3), keepdim=True)
        v = x.var((0, 2, 3), keepdim=True, unbiased=False)
        return torch.relu((x - m) * torch.rsqrt(v + 1e-5) * w.view(1, -1, 1, 1) + b.view(1, -1, 1, 1))

    return fn, (
        rnd(128, 256, 56, 56, dtype=torch.float32),
        rnd(256, dtype=torch.float32),
        rnd(256, dtype=torch.float32),
    )


@work("groupnorm_silu_bf16_32x512x64x64")
def _():
    return lambda x, w, b: F.silu(F.group_norm(x, 32, w, b)), (rnd(32, 512, 64, 64), rnd(512), rnd(512))


@work("adam_128x_small_f32")
def _():
    ps = [rnd(768, 768 + 8 * (i % 4), dtype=torch.float32) for i in range(128)]
    gs = [torch.randn_like(p) for p in ps]
    ms = [torch.zeros_like(p) for p in ps]
    vs = [torch.zeros_like(p) for p in ps]

    def fn(ps, gs, ms, vs):
        outs = []
        for p, g, m, v in zip(ps, gs, ms, vs, strict=True):
            m2 = 0.9 * m + 0.1 * g
            v2 = 0.999 * v + 0.001 * g * g
            outs.append((p - 1e-3 * m2 / (v2.sqrt() + 1e-8), m2, v2))
        return outs

    return fn, (ps, gs, ms, vs)


@work("dropout_add_bf16_16384x8192")
def _():
    def fn(x, r):
        return F.dropout(x, 0.1) + r

    return fn, (rnd(16384, 8192), rnd(16384, 8192))


@work("matmul_bias_gelu_bf16_8192x8192x8192")
def _():
    return lambda a, b, c: F.gelu(a @ b + c, approximate="tanh"), (rnd(8192, 8192), rnd(8192, 8192), rnd(8192))


@work("matmul_bias_gelu_bf16_4096x4096x1024")
def _():
    return lambda a, b, c: F.gelu(a @ b + c, approximate="tanh"), (rnd(4096, 1024), rnd(1024, 4096), rnd(4096))


@work("tiny_chain_f32_16x64")
def _():
    """Host overhead: device work is nothing, so wall time a call is the compiler's."""
    return lambda x, y: torch.softmax(x * y + 1.0, -1), (
        rnd(16, 64, dtype=torch.float32),
        rnd(16, 64, dtype=torch.float32),
    )
