"""Runs a compiled module on random inputs: what `mlir-fusion run` does, and all of it that needs torch."""

from __future__ import annotations

import zlib
from collections.abc import Iterator, Sequence

import torch

from ..dialects.mlir import ir
from ..driver.build import Artifact, build
from ..driver.cached_stages import full_text
from ..driver.errors import UserError, diagnostic_at
from ..driver.launchers import make_launcher
from ..driver.options import Options
from ..driver.programs import make_program
from ..passes.graph import functions
from ..runtime.dtypes import dtype_name, dtype_named, dtype_of
from ..runtime.host_function import memref_strides
from ..runtime.program import Value
from ..runtime.simt.errors import KernelError

LARGEST_INDEX = 2
"""Integers may be used as indices, so they are small."""


def run(module: ir.Module, variants: Sequence[Options], seed: int) -> str:
    """Calls `@main` compiled by the first options; by the second ones too, if any, to tell the difference."""
    text = full_text(module)
    results = []
    for options in variants:
        with module.context:
            artifact = build(ir.Module.parse(text), options)
            results.append(_call(artifact, options, seed))
    if len(results) == 1:
        return "".join(_describe(number, value) for number, value in enumerate(results[0]))
    return "".join(_compare(number, *pair) for number, pair in enumerate(zip(*results, strict=True)))


def random_inputs(host: ir.Module, seed: int, device: str) -> list[Value]:
    """Arguments for `@main`, the same for the same seed on every device."""
    generator = torch.Generator().manual_seed(seed)
    found = next((one for one in functions(host) if _name(one) == "main"), None)
    if found is None:
        raise UserError("the module has no function @main to run")
    types = ir.FunctionType(ir.TypeAttr(found.attributes["function_type"]).value).inputs
    return [_random(type_, dtype, generator, device) for type_, dtype in zip(types, _dtypes(found), strict=True)]


def _call(artifact: Artifact, options: Options, seed: int) -> list[Value]:
    launcher = make_launcher(artifact.code, options)
    inputs = random_inputs(artifact.host, seed, launcher.device_type)
    try:
        program = make_program(artifact.host, launcher)
    except (ValueError, KernelError) as error:
        raise _as_user_error(error) from None
    try:
        return program(*inputs)
    except KernelError as error:
        raise _as_user_error(error) from None


def _as_user_error(error: ValueError | KernelError) -> UserError:
    if isinstance(error, KernelError):
        return UserError(error.message, [diagnostic_at(error.location, error.message)])
    return UserError(str(error))


def _name(function: ir.Operation) -> str:
    return ir.StringAttr(function.attributes["sym_name"]).value


def _dtypes(function: ir.Operation) -> Iterator[torch.dtype | None]:
    """What `fusion.dtype` says of each argument."""
    count = len(ir.FunctionType(ir.TypeAttr(function.attributes["function_type"]).value).inputs)
    noted = list(ir.ArrayAttr(function.attributes["arg_attrs"])) if "arg_attrs" in function.attributes else []
    for number in range(count):
        entry = ir.DictAttr(noted[number]) if noted else {}
        yield dtype_named(ir.StringAttr(entry["fusion.dtype"]).value) if "fusion.dtype" in entry else None


def _random(type_: ir.Type, dtype: torch.dtype | None, generator: torch.Generator, device: str) -> Value:
    if not isinstance(type_, ir.MemRefType):
        return int(torch.randint(0, LARGEST_INDEX, (), generator=generator))
    dtype = dtype or dtype_of(type_.element_type)
    if dtype.is_floating_point or dtype.is_complex:
        values = torch.randn(type_.shape, generator=generator, dtype=torch.float64).to(dtype)
    else:
        values = torch.randint(0, LARGEST_INDEX, type_.shape, generator=generator).to(dtype)
    laid_out = torch.empty_strided(type_.shape, memref_strides(type_), dtype=dtype, device=device)
    return laid_out.copy_(values)


def _describe(number: int, value: Value) -> str:
    if not isinstance(value, torch.Tensor):
        return f"result {number}: {value}\n"
    # Bytes, because numpy knows no bfloat16
    data = value.detach().cpu().contiguous().reshape(-1).view(torch.uint8).numpy().tobytes()
    return f"result {number}: {_type(value)} checksum {zlib.crc32(data):08x}\n"


def _compare(number: int, value: Value, other: Value) -> str:
    if not isinstance(value, torch.Tensor) or not isinstance(other, torch.Tensor):
        return f"result {number}: {value} and {other}\n"
    exact = torch.complex128 if value.is_complex() else torch.float64
    one, two = value.detach().cpu().to(exact), other.detach().cpu().to(exact)
    equal = (one == two) | (one.isnan() & two.isnan())
    difference = torch.where(equal, 0.0, (one - two).abs())
    relative = torch.where(equal, 0.0, difference / two.abs())
    return (
        f"result {number}: {_type(value)} differs in {int((~equal).sum())} of {value.numel()} elements, "
        f"by at most {_largest(difference):.3g} (relative {_largest(relative):.3g})\n"
    )


def _largest(values: torch.Tensor) -> float:
    return float(values.max()) if values.numel() else 0.0


def _type(value: torch.Tensor) -> str:
    sizes = "x".join(str(size) for size in value.shape)
    return f"{sizes or 'scalar'} {dtype_name(value.dtype)}"
