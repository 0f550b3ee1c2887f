"""Whether a program, compiled, computes what eager PyTorch does: under each fusion type, on the CPU, by the
checker and on a GPU where there is one.

Exact values must have eager's bits. Others may be off from f64 by MARGIN times what eager is off by, and that many
units in the last place (of the least precise dtype on the way) of the largest number on the way.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import torch
from fuzz_programs import DTYPES, OPS, Program, Step, is_exact
from torch import Tensor

import mlir_fusion

MARGIN = 64
TARGETS = ("simt", "cpu", *(("cuda",) if torch.cuda.is_available() else ()))
VARIANTS = tuple((target, fusion) for target in TARGETS for fusion in ("dataflow", "consecutive", "none"))


def some_variants(program: Program) -> list[tuple[str, str]]:
    """One fusion type by the checker and another one on the CPU, other ones for other programs."""
    fusions = ("dataflow", "consecutive", "none")
    number = program.seed + len(program.steps)
    return [("simt", fusions[number % 3]), ("cpu", fusions[(number + 1) % 3])]


class DifferenceError(AssertionError):
    """A compiled program computes something else."""


@dataclass(frozen=True)
class Expected:
    """A value as eager has it and, in f64, as it should be; how far off a compiled one may be (0: not a bit)."""

    eager: Tensor
    limit: float
    reference: Tensor


def expected_values(program: Program) -> tuple[list[Expected], list[Tensor]]:
    """The outputs, and the inputs after the call, which may have changed them."""
    values = [
        _Value(tensor, tensor.double() if tensor.is_floating_point() else tensor) for tensor in program.make_inputs()
    ]
    for step in program.steps:
        values.append(_run(step, [values[number] for number in step.operands]))
    return [values[number].expected() for number in program.outputs], [v.eager for v in values[: len(program.inputs)]]


@dataclass
class _Value:
    """A value while the program runs in eager and in f64 side by side."""

    eager: Tensor
    reference: Tensor
    exact: bool = True
    scale: float = 0.0
    unit: float = 0.0

    def expected(self) -> Expected:
        if self.exact:
            return Expected(self.eager, 0.0, self.reference)
        off = (self.eager.double() - self.reference).abs().max().item() if self.eager.numel() else 0.0
        return Expected(self.eager, MARGIN * (off + self.unit * max(self.scale, 1e-3)), self.reference)


def _run(step: Step, operands: Sequence[_Value]) -> _Value:
    apply = OPS[step.op].apply
    exact = is_exact(step, [o.eager for o in operands], [o.exact for o in operands])
    eager = apply(*(operand.eager for operand in operands), *step.attributes)
    if exact:
        if step.op == "mutate":
            operands[0].reference = _wide(operands[0].eager)
        return _Value(eager, _wide(eager), True, _largest(eager), _unit(eager))
    attributes = tuple("float64" if _is_float_name(a) else a for a in step.attributes)
    reference = apply(*(operand.reference for operand in operands), *attributes)
    scale = max(_largest(reference), *(operand.scale for operand in operands))
    unit = max(_unit(eager), *(operand.unit for operand in operands))
    return _Value(eager, reference, False, max(scale, *(_largest(o.reference) for o in operands)), unit)


def check(program: Program, variants: Sequence[tuple[str, str]] = VARIANTS) -> None:
    """Raises DifferenceError, or whatever the compiler or the checker does."""
    expected, inputs_after = expected_values(program)
    for target, fusion in variants:
        torch._dynamo.reset()
        device = "cuda" if target == "cuda" else "cpu"
        # The GPU that is there is what tensors on it are compiled for
        chosen = None if target == "cuda" else target
        compiled = mlir_fusion.compile(program.function(), target=chosen, fusion_type=fusion)
        given = [tensor.to(device) for tensor in program.make_inputs()]
        found = compiled(*given)
        where = f"{target}, {fusion}"
        for number, (one, wanted) in enumerate(zip(found, expected, strict=True)):
            _compare(one.cpu(), wanted, f"output {number} ({where})")
        for number, (one, eager) in enumerate(zip(given, inputs_after, strict=True)):
            _compare(one.cpu(), Expected(eager, 0.0, eager), f"input {number} after the call ({where})")


def _compare(found: Tensor, expected: Expected, where: str) -> None:
    eager = expected.eager
    if (found.dtype, found.shape) != (eager.dtype, eager.shape):
        raise DifferenceError(
            f"{where}: {found.dtype} {tuple(found.shape)} instead of {eager.dtype} {tuple(eager.shape)}"
        )
    if expected.limit == 0.0:
        wrong = found != eager
        wanted = eager
    else:
        wrong = ~((found.double() - expected.reference).abs() <= expected.limit)
        wanted = expected.reference
    if wrong.any():
        place = tuple(wrong.nonzero()[0].tolist())
        raise DifferenceError(
            f"{where}: {int(wrong.sum())} of {wrong.numel()} elements differ, the first at {list(place)}: "
            f"{found[place].item()!r} instead of {wanted[place].item()!r} (eager {eager[place].item()!r}, "
            f"limit {expected.limit:.3g})"
        )


def _wide(value: Tensor) -> Tensor:
    return value.double() if value.is_floating_point() else value.clone()


def _largest(value: Tensor) -> float:
    return value.double().abs().max().item() if value.numel() else 0.0


def _unit(value: Tensor) -> float:
    return torch.finfo(value.dtype).eps if value.is_floating_point() else 0.0


def _is_float_name(attribute: object) -> bool:
    return isinstance(attribute, str) and DTYPES[attribute].is_floating_point
