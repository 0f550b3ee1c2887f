"""`linalg.softmax` as the four generics that it stands for.

Nothing upstream generalises it, but it knows its own decomposition, which the transform dialect can ask for:

    %y = linalg.softmax dimension(1)       %max = linalg.generic  (the largest of each row)
         ins(%x) outs(%o)            ->    %e   = linalg.generic  (exp of the distance to it)
                                           %sum = linalg.generic  (the sum of each row)
                                           %y   = linalg.generic  (the quotient)
"""

from __future__ import annotations

from ..dialects.mlir import ir, transform_interpreter

SOFTMAX = "linalg.softmax"
SCRIPT = """
module attributes {transform.with_named_sequence} {
  transform.named_sequence @__transform_main(%root: !transform.any_op) {
    %found = transform.structured.match ops{["linalg.softmax"]} in %root : (!transform.any_op) -> !transform.any_op
    %parts = transform.structured.decompose_interface %found : (!transform.any_op) -> !transform.any_op
    transform.yield
  }
}
"""


def decompose_softmax(function: ir.Operation) -> None:
    """Replaces every `linalg.softmax` of a function."""
    if not any(op.operation.name == SOFTMAX for block in function.regions[0].blocks for op in block.operations):
        return
    script = ir.Module.parse(SCRIPT)
    transform_interpreter().apply_named_sequence(function, script.body.operations[0], script)
