"""The main job, end to end: a small GPT-2-shaped language model reads README.md.

    python bench/demo.py [--layers 4] [--width 128] [--repeat 20]

The model, with random weights, is fed the bytes of README.md, forward and loss. It is compiled with both fusion
types, checked against eager PyTorch, and timed; on a GPU if there is one. A table shows what each fusion type did,
and the PTX of both is written to build/demo/ (without a GPU too: it needs none).
"""

from __future__ import annotations

import argparse
import time
from collections.abc import Callable
from pathlib import Path

import torch
import torch.nn.functional as F
from rich.console import Console
from rich.table import Table
from torch import Tensor, nn

import mlir_fusion

ROOT = Path(__file__).resolve().parent.parent
FUSION_TYPES = ("consecutive", "dataflow")
NUMBERS = ("ops", "regions", "kernels", "extern_calls", "bytes_moved", "peak_bytes", "source_peak_bytes")
LEGEND = (
    "ops: operations before fusion; regions: groups that fusion made; kernels: launches of ours; extern_calls: "
    "library calls; bytes_moved: read and written by all of them; peak_bytes: the most intermediates and results alive "
    "at one time; source_peak_bytes: the same for eager. The loss is compared with eager's, to 1e-5."
)
MEANING = {
    "cpu": "The times show that it runs, not how fast: on the CPU, kernels are there for checking, and use one thread.",
    "cuda": "The times are wall clock, the fastest step, launches from Python included.",
}
GPU_SHOWN = "sm_90a"  # what PTX is written for where there is no GPU


class Block(nn.Module):
    """GPT-2's: attention and a perceptron, each behind a layer norm and around it a residual."""

    def __init__(self, width: int, heads: int) -> None:
        super().__init__()
        self.heads = heads
        self.norm_1, self.norm_2 = nn.LayerNorm(width), nn.LayerNorm(width)
        self.qkv, self.project = nn.Linear(width, 3 * width), nn.Linear(width, width)
        self.widen, self.narrow = nn.Linear(width, 4 * width), nn.Linear(4 * width, width)

    def forward(self, x: Tensor) -> Tensor:
        batch, length, width = x.shape
        parts = self.qkv(self.norm_1(x)).split(width, dim=2)
        q, k, v = (part.view(batch, length, self.heads, -1).transpose(1, 2) for part in parts)
        y = F.scaled_dot_product_attention(q, k, v, is_causal=True)
        x = x + self.project(y.transpose(1, 2).reshape(batch, length, width))
        return x + self.narrow(F.gelu(self.widen(self.norm_2(x)), approximate="tanh"))


class LanguageModel(nn.Module):
    """Predicts the next byte; returns the loss."""

    def __init__(self, length: int, width: int, layers: int, heads: int) -> None:
        super().__init__()
        self.tokens, self.positions = nn.Embedding(256, width), nn.Embedding(length, width)
        self.blocks = nn.ModuleList(Block(width, heads) for _ in range(layers))
        self.norm, self.head = nn.LayerNorm(width), nn.Linear(width, 256, bias=False)

    def forward(self, data: Tensor, target: Tensor) -> Tensor:
        x = self.tokens(data) + self.positions(torch.arange(data.shape[1], device=data.device))
        for block in self.blocks:
            x = block(x)
        return F.cross_entropy(self.head(self.norm(x)).flatten(0, 1), target.flatten())


def readme_batches(batch: int, length: int, device: torch.device) -> tuple[Tensor, Tensor]:
    """The bytes of README.md, repeated as often as needed, and the byte after each."""
    text = (ROOT / "README.md").read_bytes()
    needed = batch * length + 1
    data = torch.tensor(list(text * (needed // len(text) + 1))[:needed], device=device)
    return data[:-1].view(batch, length), data[1:].view(batch, length)


def milliseconds(call: Callable[[], object], repeat: int, device: torch.device) -> float:
    """The fastest of `repeat` calls, by the wall clock."""
    best = float("inf")
    for _ in range(repeat):
        _finish(device)
        start = time.perf_counter()
        call()
        _finish(device)
        best = min(best, time.perf_counter() - start)
    return best * 1e3


def _finish(device: torch.device) -> None:
    if device.type == "cuda":
        torch.cuda.synchronize()


def write_ptx(model: nn.Module, inputs: tuple[Tensor, Tensor], fusion_type: str) -> Path:
    """The PTX of the whole model, compiled for a GPU whether or not there is one."""
    lowered = mlir_fusion.compile(model, fusion_type=fusion_type, target=GPU_SHOWN).lower(*inputs)
    path = ROOT / "build" / "demo" / f"{fusion_type}.ptx"
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(lowered.ptx())
    return path


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    for name, default in (("batch", 4), ("length", 128), ("width", 128), ("layers", 4), ("heads", 4), ("repeat", 20)):
        parser.add_argument(f"--{name}", type=int, default=default)
    arguments = parser.parse_args()
    torch.manual_seed(0)
    device = torch.device("cuda" if torch.cuda.is_available() else "cpu")
    model = LanguageModel(arguments.length, arguments.width, arguments.layers, arguments.heads).to(device).eval()
    inputs = readme_batches(arguments.batch, arguments.length, device)
    console = Console()
    with torch.no_grad():
        expected = model(*inputs)
        columns = {
            "eager": {"loss": f"{expected.item():.6f}", "ms a step": _time(lambda: model(*inputs), arguments, device)}
        }
        for fusion_type in FUSION_TYPES:
            with console.status(f"compiling, {fusion_type}"):
                columns[fusion_type] = _column(model, inputs, fusion_type, expected, arguments, device)
        paths = [write_ptx(model, inputs, fusion_type) for fusion_type in FUSION_TYPES]
    console.print(_table(columns, device))
    console.print(LEGEND)
    console.print(MEANING[device.type])
    for path in paths:
        console.print(f"PTX for {GPU_SHOWN}: {path.relative_to(ROOT)}")


def _time(call: Callable[[], object], arguments: argparse.Namespace, device: torch.device) -> str:
    return f"{milliseconds(call, arguments.repeat, device):.2f}"


def _column(
    model: nn.Module,
    inputs: tuple[Tensor, Tensor],
    fusion_type: str,
    expected: Tensor,
    arguments: argparse.Namespace,
    device: torch.device,
) -> dict[str, str]:
    torch._dynamo.reset()
    compiled = mlir_fusion.compile(model, fusion_type=fusion_type)
    start = time.perf_counter()
    loss = compiled(*inputs)
    seconds = time.perf_counter() - start
    torch.testing.assert_close(loss, expected, rtol=1e-5, atol=1e-5)
    report = mlir_fusion.explain(model, *inputs, fusion_type=fusion_type)
    return {
        "loss": f"{loss.item():.6f}",
        **{name: f"{report.total(name):,}" for name in NUMBERS},
        "first call, s": f"{seconds:.1f}",
        "ms a step": _time(lambda: compiled(*inputs), arguments, device),
    }


def _table(columns: dict[str, dict[str, str]], device: torch.device) -> Table:
    where = torch.cuda.get_device_name() if device.type == "cuda" else "the CPU"
    table = Table(title=f"A GPT-2-shaped language model reads README.md, on {where}")
    table.add_column("")
    for name in columns:
        table.add_column(name, justify="right")
    rows = ("loss", *NUMBERS, "first call, s", "ms a step")
    for row in rows:
        table.add_row(row, *(column.get(row, "") for column in columns.values()))
    return table


if __name__ == "__main__":
    main()
