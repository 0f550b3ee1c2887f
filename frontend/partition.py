"""What the forward pass saves for the backward pass.

PyTorch's min-cut partitioner weighs bytes saved against work repeated. It takes every cheap operation to be fused with
its readers; here only compiled ones are, and a library call that is repeated is read and written in full again. So the
results of library calls are saved where the backward pass needs them, rather than computed twice. What the user says
(activation checkpointing) goes first.
"""

from __future__ import annotations

from collections.abc import Sequence

import torch
from functorch.compile import min_cut_rematerialization_partition
from torch import fx
from torch.utils.checkpoint import CheckpointPolicy

from .compiled_ops import library_reason
from .importer import is_view, program_device


def partition(
    joint: fx.GraphModule, inputs: Sequence[object], **keywords: object
) -> tuple[fx.GraphModule, fx.GraphModule]:
    """The forward and the backward graph of a joint one; as AOTAutograd's `partition_fn`."""
    device = program_device([node.meta.get("val") for node in joint.graph.find_nodes(op="placeholder")])
    for node in joint.graph.nodes:
        if _is_library_call(node, device) and "recompute" not in node.meta:
            node.meta["recompute"] = CheckpointPolicy.MUST_SAVE
    return min_cut_rematerialization_partition(joint, inputs, **keywords)  # pyright: ignore[reportArgumentType]


def _is_library_call(node: fx.Node, device: torch.device) -> bool:
    """Whether a library computes the node's one result."""
    if node.op != "call_function" or not isinstance(node.target, torch._ops.OpOverload) or is_view(node.target):
        return False
    return isinstance(node.meta.get("val"), torch.Tensor) and library_reason(node, device) is not None
