"""A process that compiles a model for the first time: what it prints, test_warm_start.py compares between processes.

    python warm_start.py LAYERS [DEVICE]      {"beyond": seconds, "counts": {stage: [hits, misses]}, "checksum": ...}

`beyond` is what the first call takes beyond the first call of `torch.compile(backend="aot_eager")`; both have found
PyTorch itself warm, and no garbage collection in their way.
"""

from __future__ import annotations

import gc
import json
import sys
import time
import zlib

import torch
import torch.nn.functional as F
from torch import Tensor, nn

import mlir_fusion


class Layer(nn.Module):
    """A bit of everything, of a width of its own, so that no kernel serves two layers."""

    def __init__(self, width: int, following: int) -> None:
        super().__init__()
        self.norm, self.linear = nn.LayerNorm(width), nn.Linear(width, following)

    def forward(self, x: Tensor) -> Tensor:
        y = F.gelu(self.linear(self.norm(x)), approximate="tanh")
        return y.softmax(-1) * y.exp().sum(-1, keepdim=True).log() + y.amax(0)


def first_call(model: nn.Module, x: Tensor, compiled: object) -> tuple[Tensor, float]:
    """The result, and the seconds it took."""
    torch._dynamo.reset()
    gc.collect()
    gc.freeze()
    start = time.perf_counter()
    result = compiled(x)  # pyright: ignore
    if x.is_cuda:
        torch.cuda.synchronize()
    return result, time.perf_counter() - start


def main() -> None:
    torch.manual_seed(0)
    widths = [32 + 8 * layer for layer in range(int(sys.argv[1]) + 1)]
    device = sys.argv[2] if len(sys.argv) > 2 else "cpu"
    model = nn.Sequential(*map(Layer, widths, widths[1:])).eval().to(device)
    x = torch.randn(16, widths[0]).to(device)
    fast = mlir_fusion.compile(model)
    with torch.no_grad():
        eager = [first_call(model, x, torch.compile(model, backend="aot_eager"))[1] for _ in range(3)]
        y, ours = first_call(model, x, fast)
        torch.testing.assert_close(y, model(x))
    counts = {stage: [count.hits, count.misses] for stage, count in fast.cache_info().items()}
    print(
        json.dumps({"beyond": ours - min(eager), "counts": counts, "checksum": zlib.crc32(y.cpu().numpy().tobytes())})
    )


if __name__ == "__main__":
    main()
