"""What may share a region: questions with a reason for an answer.

Each function returns None for yes and otherwise a phrase that says why not, so that a test, a log and a
user see the same words. Region legality is about the region and not about kernels: whether one kernel can
hold a region is asked by fusion-segment, later. Both fusion passes ask here and nowhere else.
"""

from __future__ import annotations

from ..dialects import fusion
from ..dialects.mlir import ir

DEFAULT_MAX_REGION_OPS = 256
LARGEST_MAX_REGION_OPS = 1_000_000

FUSIBLE_TENSOR_OPS = frozenset({"tensor.concat", "tensor.pad", "tensor.insert_slice"})
FREE_OPS = frozenset(
    {
        "linalg.fill",
        "tensor.cast",
        "tensor.collapse_shape",
        "tensor.dim",
        "tensor.empty",
        "tensor.expand_shape",
        "tensor.extract",
        "tensor.extract_slice",
        "tensor.from_elements",
        "tensor.splat",
    }
)


def is_free(op: ir.Operation) -> bool:
    """Whether `op` is a part of its users (a shape change, a fill, a scalar) and never a node of its own."""
    name = op.name
    if name == "arith.constant":
        return not is_kept_constant(op)
    return name in FREE_OPS or name.startswith("arith.")


def is_kept_constant(op: ir.Operation) -> bool:
    """Whether `op` is a constant tensor of several values: it stays in memory, an input of its users."""
    if op.name != "arith.constant" or not isinstance(op.results[0].type, ir.RankedTensorType):
        return False
    value = op.attributes["value"]
    return not (isinstance(value, ir.DenseElementsAttr) and value.is_splat)


def why_not_fusible(op: ir.Operation) -> str | None:
    """Why `op` can't be in a region, or None."""
    name = op.name
    if name.startswith("linalg.") or name in FUSIBLE_TENSOR_OPS or name == "fusion.random":
        return None
    if name == "fusion.extern":
        return "a library call"
    if name == "fusion.view":
        return "a view, which needs no kernel"
    if fusion.is_op(op, "region", "kernel"):
        return "fused already"
    return f"'{name}' is not an operation that kernels are made of"


def why_not_on_tensors(op: ir.Operation) -> str | None:
    """Why `op` is a linalg operation that fusion doesn't take, or None: memory is planned after it."""
    if op.name.startswith("linalg.") and any(isinstance(value.type, ir.MemRefType) for value in op.operands):
        return f"'{op.name}' is on memrefs: fusion takes linalg on tensors, and plans their memory itself"
    return None


def has_unknown_effect(op: ir.Operation) -> bool:
    """Whether nothing is known of what `op` does, so that it keeps its place among the effects."""
    return not op.name.startswith("fusion.") and why_not_fusible(op) is not None


def why_not_this_size(ops: int, most: int) -> str | None:
    """Why a region of `ops` operations is refused, or None."""
    return None if ops <= most else f"{ops} operations are more than max-region-ops={most}"


def check_max_region_ops(value: int) -> None:
    """ValueError unless `value` is a size that a region can be limited to."""
    if not 1 <= value <= LARGEST_MAX_REGION_OPS:
        raise ValueError(f"max-region-ops must be from 1 to {LARGEST_MAX_REGION_OPS}, got {value}")
