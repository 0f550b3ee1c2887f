"""Whether a linalg program, compiled, gives what MLIR's own lowering to loops does, bit for bit."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import torch
from linalg_programs import LARGEST_INPUT, Program, Value
from mlir_fusion.dialects.mlir import ir
from mlir_fusion.driver.build import build
from mlir_fusion.driver.launchers import make_launcher
from mlir_fusion.driver.options import Options
from mlir_fusion.driver.programs import make_program
from mlir_fusion.driver.runner import make_context, verify
from mlir_fusion.targets.target import Target
from reference_executor import execute_text
from torch import Tensor

FUSIONS = ("dataflow", "consecutive", "none")
TARGETS = ("simt", "cpu", *((Target.detect().name,) if torch.cuda.is_available() else ()))
VARIANTS = tuple((target, fusion) for target in TARGETS for fusion in FUSIONS)
DTYPES = {
    "f64": torch.float64,
    "f32": torch.float32,
    "f16": torch.float16,
    "bf16": torch.bfloat16,
    "i64": torch.int64,
    "i32": torch.int32,
}


class DifferenceError(AssertionError):
    """A compiled program computes something else."""


def some_variants(program: Program) -> list[tuple[str, str]]:
    """One fusion type by the checker and another one on the CPU, other ones for other programs."""
    number = program.seed + len(program.steps)
    return [("simt", FUSIONS[number % 3]), ("cpu", FUSIONS[(number + 1) % 3])]


def check(program: Program, variants: Sequence[tuple[str, str]] = VARIANTS) -> None:
    """Raises DifferenceError, or whatever the compiler or the checker does."""
    text, inputs = program.text(), make_inputs(program)
    expected = [
        _as_tensor(array, program.values[n]) for array, n in zip(_reference(text, inputs), program.outputs, strict=True)
    ]
    for target, fusion in variants:
        device = "cuda" if target.startswith("sm_") else "cpu"
        found = run(
            text,
            [_laid_out(tensor, value, device) for tensor, value in zip(inputs, program.inputs, strict=True)],
            target,
            fusion,
        )
        for number, (one, wanted) in enumerate(zip(found, expected, strict=True)):
            _compare(one.cpu(), wanted, f"output {number} ({target}, {fusion})")


def make_inputs(program: Program) -> list[Tensor]:
    """Small whole numbers, the same each time."""
    generator = torch.Generator().manual_seed(program.seed)
    return [
        torch.randint(-LARGEST_INPUT, LARGEST_INPUT + 1, value.shape, generator=generator).to(DTYPES[value.dtype])
        for value in program.inputs
    ]


def run(text: str, inputs: Sequence[Tensor], target: str, fusion: str) -> list[Tensor]:
    """The results of @main, compiled."""
    options = Options(target=target, fusion_type=fusion, disk_cache=False, verify_each=True)
    with make_context():
        module = ir.Module.parse(text)
        verify(module)
        artifact = build(module, options)
        results = make_program(artifact.host, make_launcher(artifact.code, options))(*inputs)
    return [result for result in results if isinstance(result, Tensor)]


def _reference(text: str, inputs: Sequence[Tensor]) -> list[np.ndarray]:
    return execute_text(text, [_as_array(tensor) for tensor in inputs])


def _as_array(tensor: Tensor) -> np.ndarray:
    return tensor.view(torch.int16).numpy().view(np.uint16) if tensor.dtype == torch.bfloat16 else tensor.numpy()


def _as_tensor(array: np.ndarray, value: Value) -> Tensor:
    if value.dtype == "bf16":
        return torch.from_numpy(array.view(np.int16)).view(torch.bfloat16)
    return torch.from_numpy(array)


def _laid_out(tensor: Tensor, value: Value, device: str) -> Tensor:
    if value.strides is None:
        return tensor.clone().to(device)
    return torch.empty_strided(value.shape, value.strides, dtype=tensor.dtype, device=device).copy_(tensor)


def _compare(found: Tensor, wanted: Tensor, where: str) -> None:
    if (found.dtype, found.shape) != (wanted.dtype, wanted.shape):
        raise DifferenceError(f"{where}: {found.dtype} {tuple(found.shape)}, not {wanted.dtype} {tuple(wanted.shape)}")
    wrong = found != wanted
    if wrong.any():
        place = tuple(wrong.nonzero()[0].tolist())
        count = f"{int(wrong.sum())} of {wrong.numel()} elements differ"
        raise DifferenceError(
            f"{where}: {count}, the first at {list(place)}: {found[place].item()!r} instead of {wanted[place].item()!r}"
        )
