"""What a call really holds of pools and results at once, beside what the report says that it needs."""

import gc
import weakref
from collections.abc import Callable, Sequence

import pytest
import torch
import torch.nn.functional as F
from mlir_fusion.dialects.mlir import ir
from mlir_fusion.driver.build import build
from mlir_fusion.driver.kernel_code import NativeCode
from mlir_fusion.driver.options import Options
from mlir_fusion.driver.programs import make_program
from mlir_fusion.driver.runner import make_context
from mlir_fusion.passes.memory_peak import peak_bytes, workspace_bytes
from mlir_fusion.runtime.native import NativeLauncher

import mlir_fusion

ALLOWED = 1.01


class Counting(NativeLauncher):
    """Knows how many bytes of its allocations are held."""

    def __init__(self, code: NativeCode) -> None:
        super().__init__(code)
        self.held = self.most = 0

    def allocate(  # type: ignore[override]
        self, shape: Sequence[int], strides: Sequence[int], dtype: torch.dtype, device: torch.device
    ) -> torch.Tensor:
        tensor = torch.empty_strided(shape, strides, dtype=dtype, device=device)
        size = tensor.untyped_storage().nbytes()
        self.held += size
        self.most = max(self.most, self.held)
        weakref.finalize(tensor, self._freed, size)
        return tensor

    def _freed(self, size: int) -> None:
        self.held -= size


def block(x: torch.Tensor, w: torch.Tensor) -> torch.Tensor:
    y = F.layer_norm(x, (x.shape[-1],))
    return F.gelu(y * w) + x.softmax(-1) * y.sum(-1, keepdim=True)


def branches(x: torch.Tensor, w: torch.Tensor) -> tuple[torch.Tensor, ...]:
    a, b = x.exp(), (x * w).sin()
    c = (a + b).t().contiguous()
    return a.sum(0), c * 2, (b - c.t()).amax(-1)


@pytest.mark.parametrize("fusion_type", ["none", "consecutive", "dataflow"])
@pytest.mark.parametrize("function", [block, branches])
def test_pools_and_results_hold_what_the_report_says(function: Callable, fusion_type: str) -> None:
    torch._dynamo.reset()
    inputs = [torch.randn(256, 384), torch.randn(256, 384)]
    compiled = mlir_fusion.compile(function, fusion_type=fusion_type, target="cpu").lower(*inputs)
    with make_context():
        module = ir.Module.parse(compiled.ir("kernel"))
        main = next(op.operation for op in module.body.operations if op.operation.name == "func.func")
        promised = peak_bytes(main) + workspace_bytes(main)
        artifact = build(module, Options(target="cpu", disk_cache=False))
    assert isinstance(artifact.code, NativeCode)
    launcher = Counting(artifact.code)
    results = make_program(artifact.host, launcher)(*inputs)
    assert promised / ALLOWED <= launcher.most <= promised * ALLOWED
    del results
    gc.collect()
    assert launcher.held == 0
