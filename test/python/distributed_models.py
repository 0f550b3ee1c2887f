"""What each of two processes does in test_frontend_distributed.py: `python distributed_models.py RANK PORT CASE...`.

Ends with status 0 if losses and gradients of the compiled model equal those of the same model without a compiler.
"""

from __future__ import annotations

import copy
import os
import sys
from collections.abc import Callable

import torch
import torch.distributed as dist
import torch.nn.functional as F
from torch import Tensor, nn
from torch.distributed.device_mesh import init_device_mesh
from torch.distributed.fsdp import fully_shard
from torch.distributed.tensor import DTensor, Replicate, Shard, distribute_tensor
from torch.distributed.tensor.parallel import ColwiseParallel, RowwiseParallel, parallelize_module
from torch.nn.parallel import DistributedDataParallel

WORLD = 2


class FeedForward(nn.Module):
    """Two layers, as tensor parallelism splits them."""

    def __init__(self) -> None:
        super().__init__()
        self.norm, self.up, self.down = nn.LayerNorm(8), nn.Linear(8, 16), nn.Linear(16, 8)

    def forward(self, x: Tensor) -> Tensor:
        return x + self.down(F.gelu(self.up(self.norm(x))))


def whole(value: Tensor | None) -> Tensor | None:
    return value.full_tensor() if isinstance(value, DTensor) else value


def train(model: nn.Module, forward: Callable, steps: int = 3) -> list[Tensor | None]:
    """Losses and gradients of a few steps, on other inputs in each process."""
    found: list[Tensor | None] = []
    torch.manual_seed(10 + dist.get_rank())
    for _ in range(steps):
        model.zero_grad()
        loss = forward(torch.randn(4, 8)).square().mean()
        loss.backward()
        found += [loss.detach(), *(whole(parameter.grad) for parameter in model.parameters())]
    return found


def compare(wrap: Callable[[nn.Module], nn.Module]) -> None:
    torch.manual_seed(0)
    model = nn.Sequential(FeedForward(), FeedForward())
    expected_model, model = wrap(copy.deepcopy(model)), wrap(model)
    compiled = torch.compile(model, backend="mlir_fusion")
    torch.testing.assert_close(train(model, compiled), train(expected_model, expected_model))


def tensor_parallel(model: nn.Module) -> nn.Module:
    """Inputs differ between processes only where they may: here they are made equal."""
    mesh = init_device_mesh("cpu", (WORLD,))
    torch.manual_seed(1)
    for block in model:  # pyright: ignore[reportGeneralTypeIssues]
        parallelize_module(block, mesh, {"up": ColwiseParallel(), "down": RowwiseParallel()})
    model.register_forward_pre_hook(_broadcast)
    return model


def _broadcast(_: nn.Module, args: tuple[Tensor]) -> tuple[Tensor]:
    x = args[0].clone()
    dist.broadcast(x, 0)
    return (x,)


def fsdp(model: nn.Module) -> nn.Module:
    mesh = init_device_mesh("cpu", (WORLD,))
    for block in model:  # pyright: ignore[reportGeneralTypeIssues]
        fully_shard(block, mesh=mesh)
    return fully_shard(model, mesh=mesh)


def dtensor() -> None:
    mesh = init_device_mesh("cpu", (WORLD,))
    torch.manual_seed(0)
    x = distribute_tensor(torch.randn(6, 8), mesh, [Shard(0)])
    w = distribute_tensor(torch.randn(8, 4), mesh, [Replicate()])

    def function(x: DTensor, w: DTensor) -> Tensor:
        return F.gelu(x @ w).redistribute(placements=[Replicate()]).to_local().sum(0)

    torch.testing.assert_close(torch.compile(function, backend="mlir_fusion")(x, w), function(x, w))


def collectives() -> None:
    """In the graph, between what is compiled, in the order of the source."""
    from torch.distributed._functional_collectives import all_gather_tensor, all_reduce, reduce_scatter_tensor

    group = dist.group.WORLD

    def function(x: Tensor) -> tuple[Tensor, Tensor, Tensor]:
        y = all_reduce(x.sin() * 2, "sum", group)
        z = all_gather_tensor(y + x, 0, group)
        return y * 2, z.cos(), reduce_scatter_tensor(z.exp(), "sum", 0, group) + 1

    x = torch.randn(4, 3)
    torch.testing.assert_close(torch.compile(function, backend="mlir_fusion", fullgraph=True)(x), function(x))


CASES: dict[str, Callable[[], None]] = {
    "ddp": lambda: compare(DistributedDataParallel),
    "fsdp": lambda: compare(fsdp),
    "tensor_parallel": lambda: compare(tensor_parallel),
    "dtensor": dtensor,
    "collectives": collectives,
}


def main() -> None:
    rank, port, cases = int(sys.argv[1]), sys.argv[2], sys.argv[3:]
    os.environ.update(MASTER_ADDR="127.0.0.1", MASTER_PORT=port, RANK=str(rank), WORLD_SIZE=str(WORLD))
    dist.init_process_group("gloo")
    for case in cases:
        torch._dynamo.reset()
        print(case, flush=True)
        CASES[case]()
        dist.barrier()
    dist.destroy_process_group()


if __name__ == "__main__":
    main()
