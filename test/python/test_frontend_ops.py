"""Every operation on the list of compiled ones, for each of its dtypes, against eager PyTorch.

The calls are in op_cases.py. All calls of an operation for a dtype are one graph; where it can't be compiled, ends the
process or runs too long, its halves are tried, so that what is reported is a call. `make test` takes a sample of the
calls, with fixed seeds; `make test-long` (MLIR_FUSION_TEST_LONG) all.

A result has the shape and the dtype of eager's. It is equal to it for what moves, compares or computes integers; a
floating-point number may also be what the operation gives in f32 or f64, rounded, or between these, or, for functions
such as exp, a few units in the last place from that in f64. What eager refuses is refused.
"""

from __future__ import annotations

import operator
import os
import pickle
import random
import signal
import zlib
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass

import pytest
import torch
from mlir_fusion.driver.options import Options, Settings
from mlir_fusion.frontend.compiled_ops import COMPILED, EVERY, FLOATS, library_reason
from mlir_fusion.frontend.decompositions import decomposition_table
from mlir_fusion.frontend.graphs import GraphCompiler
from op_cases import CASES, COMPOSITES, Call
from programs import NARROW
from torch import Tensor, fx
from torch._ops import OpOverload
from torch.fx.experimental.proxy_tensor import make_fx
from torch.utils._pytree import tree_flatten, tree_map, tree_unflatten

LONG = "MLIR_FUSION_TEST_LONG" in os.environ
SAMPLE = 2
"""Calls of each operation."""
PARTS = 4
AT_ONCE = 32
"""Calls in one graph."""
SECONDS = 120
BITS = {torch.float16: 11, torch.bfloat16: 8, torch.float32: 24, torch.float64: 53}
EXPONENTS = {torch.float16: -14, torch.bfloat16: -126, torch.float32: -126, torch.float64: -1022}

# Units in the last place of f32 and f64 that functions may be off; those of 16 bits are rounded once, from f32
ULPS: dict[str, float] = {
    **dict.fromkeys("exp exp2 log log2 log1p expm1 sin cos tanh erf sigmoid atan sinh cosh tan asin".split(), 4.0),
    **dict.fromkeys("acos log10 erfc atan2 pow rsqrt lerp".split(), 4.0),
    **dict.fromkeys((overload._schema.name.removeprefix("aten::") for overload in COMPOSITES), 16.0),
    "sum": 16.0,
}


@dataclass(frozen=True)
class Case:
    """A call of an operation."""

    overload: OpOverload
    call: Call

    def __str__(self) -> str:
        return f"{self.overload}{self.call}"

    def run(self, convert: Callable[[Tensor], Tensor] = lambda x: x) -> object:
        args, kwargs = tree_map(
            lambda x: convert(x) if isinstance(x, Tensor) else x, (self.call.args, self.call.kwargs)
        )
        return self.overload(*args, **kwargs)


# -- in a process of its own


def isolated(function: Callable[[], list[str]]) -> list[str] | None:
    """What the function gives in a child process, or None where that does not end well or in time."""
    reading, writing = os.pipe()
    child = os.fork()
    if child == 0:
        signal.alarm(SECONDS)
        os.close(reading)
        torch.set_num_threads(1)
        with os.fdopen(writing, "wb") as pipe:
            pickle.dump(_told(function), pipe)
        os._exit(0)
    os.close(writing)
    with os.fdopen(reading, "rb") as pipe:
        data = pipe.read()
    _, status = os.waitpid(child, 0)
    return pickle.loads(data) if status == 0 else None


def _told(function: Callable[[], list[str]]) -> list[str] | None:
    try:
        return function()
    except Exception as error:  # whatever it is, it is told for the call that it comes from
        return [f"{type(error).__name__}: {str(error)[:300]}"]


def problems(cases: Sequence[Case], check: Callable[[Sequence[Case]], list[str]]) -> Iterator[str]:
    """What is wrong with these calls, each told apart."""
    if not cases:
        return
    found = isolated(lambda: check(cases))
    if found is not None and (not found or len(cases) == 1):
        yield from (f"{cases[0]}: {problem}" for problem in found)
    elif len(cases) == 1:
        yield f"{cases[0]}: the process ended, or took more than {SECONDS} s"
    else:
        half = len(cases) // 2
        yield from problems(cases[:half], check)
        yield from problems(cases[half:], check)


# -- one graph of several calls


def trace(cases: Sequence[Case]) -> tuple[fx.GraphModule, list[Tensor]]:
    """The calls as one graph, as AOTAutograd would trace it, and its arguments."""
    leaves, spec = tree_flatten([(case.call.args, case.call.kwargs) for case in cases])
    places = [number for number, leaf in enumerate(leaves) if isinstance(leaf, Tensor)]
    tensors = [leaves[number] for number in places]

    def program(*given: Tensor) -> list[Tensor]:
        filled = list(leaves)
        for number, value in zip(places, given, strict=True):
            filled[number] = value
        calls = tree_unflatten(filled, spec)
        return tree_flatten(
            [case.overload(*args, **kwargs) for case, (args, kwargs) in zip(cases, calls, strict=True)]
        )[0]

    return make_fx(program, decomposition_table=decomposition_table(), tracing_mode="fake")(*tensors), tensors


def compiled_results(cases: Sequence[Case]) -> list[list[Tensor]]:
    """The results of the calls, compiled as one graph."""
    graph, tensors = trace(cases)
    compiler = GraphCompiler(Options(fusion_type="dataflow"), Settings.read((), (), "test"))
    found = iter(compiler.compile(graph, tensors)(list(tensors)))
    return [[next(found) for _ in tree_flatten(case.run())[0]] for case in cases]


def check_results(cases: Sequence[Case]) -> list[str]:
    """What differs from eager PyTorch."""
    results = compiled_results(cases)
    return [problem for case, result in zip(cases, results, strict=True) if (problem := difference(case, result))]


def check_refused(cases: Sequence[Case]) -> list[str]:
    """What eager PyTorch refuses and we don't."""
    accepted = []
    for case in cases:
        try:
            result = compiled_results([case])
        except Exception:  # as eager does
            continue
        accepted.append(f"{case}: eager raises, we give {str(result)[:100]}")
    return accepted


def is_refused(case: Case) -> bool:
    try:
        case.run()
    except Exception:  # what it raises is its own
        return True
    return False


# -- comparing


def difference(case: Case, found: list) -> str | None:
    expected = tree_flatten(case.run())[0]
    wide = _again(case, torch.float64)
    middle = _again(case, torch.float32)
    for number, (one, like) in enumerate(zip(found, expected, strict=True)):
        if (one.shape, one.dtype) != (like.shape, like.dtype):
            return f"{one.dtype} {tuple(one.shape)} instead of {like.dtype} {tuple(like.shape)}"
        others = [values[number] for values in (middle, wide) if values is not None]
        bad = ~_agrees(one, like, others, ULPS.get(case.overload._schema.name.removeprefix("aten::"), 0.0))
        if bad.any():
            exact = f" (in f64: {others[-1][bad][:3].tolist()})" if others else ""
            got, wanted = one[bad][:3].tolist(), like[bad][:3].tolist()
            return f"{int(bad.sum())} of {bad.numel()}: {got} instead of {wanted}{exact}"
    return None


def _again(case: Case, dtype: torch.dtype) -> list[Tensor] | None:
    """The results where floating-point operands are of that dtype at least; None if there are no such."""

    def widen(x: Tensor) -> Tensor:
        return x.to(dtype) if x.is_floating_point() and BITS[x.dtype] < BITS[dtype] else x

    try:
        return tree_flatten(case.run(widen))[0]
    except Exception:  # not for these dtypes
        return None


def _agrees(found: Tensor, eager: Tensor, others: Sequence[Tensor], ulps: float) -> Tensor:
    """Whether each element may be what it is."""
    same = found == eager
    if not found.is_floating_point():
        return same
    candidates = torch.stack([eager.double(), *(other.to(eager.dtype).double() for other in others)])
    result = found.double()
    same |= (result >= candidates.amin(0)) & (result <= candidates.amax(0))
    same |= found.isnan() & candidates.isnan().any(0)
    same |= (result == candidates).any(0)
    if others and others[-1].dtype == torch.float64:
        same |= (result - others[-1]).abs() <= _allowed(others[-1], found.dtype, ulps)
    return same


def _allowed(exact: Tensor, dtype: torch.dtype, ulps: float) -> Tensor:
    if not ulps:
        return torch.zeros_like(exact)
    exponent = torch.frexp(exact).exponent.clamp(min=EXPONENTS[dtype] + 1)
    unit = torch.ldexp(torch.ones_like(exact), exponent - BITS[dtype])
    return (0.51 if dtype in NARROW else ulps) * unit


# -- the tests


def check(cases: Sequence[Case]) -> list[str]:
    """What is wrong with any of these calls."""
    refused = [is_refused(case) for case in cases]
    allowed = [case for case, no in zip(cases, refused, strict=True) if not no]
    found = check_results(allowed) if allowed else []
    return found + check_refused([case for case, no in zip(cases, refused, strict=True) if no])


def calls_of(overload: OpOverload, dtype: torch.dtype) -> list[Case]:
    """The calls for a dtype, always the same."""
    torch.manual_seed(zlib.crc32(f"{overload} {dtype}".encode()))
    return [Case(overload, call) for call in (CASES | COMPOSITES)[overload](dtype)]


def dtypes_of(overload: OpOverload) -> list[torch.dtype]:
    return sorted(COMPILED.get(overload, EVERY if overload in CASES else FLOATS - {torch.float64}), key=str)


def sample() -> list[Case]:
    """A few calls of each operation."""
    chosen: list[Case] = []
    for overload in CASES | COMPOSITES:
        calls = [call for dtype in dtypes_of(overload) for call in calls_of(overload, dtype)]
        chosen += random.Random(str(overload)).sample(calls, min(SAMPLE, len(calls)))
    return chosen


def report(cases: Sequence[Case], check: Callable[[Sequence[Case]], list[str]]) -> None:
    found = [
        problem
        for start in range(0, len(cases), AT_ONCE)
        for problem in problems(cases[start : start + AT_ONCE], check)
    ]
    assert not found, "\n".join([f"{len(found)} problems", *found])


def test_every_operation_has_calls() -> None:
    assert {str(overload) for overload in COMPILED} <= {str(overload) for overload in CASES}


@pytest.mark.parametrize("part", range(PARTS))
def test_sample(part: int) -> None:
    report(sample()[part::PARTS], check)


@pytest.mark.skipif(not LONG, reason="a sample is tested; all calls are with MLIR_FUSION_TEST_LONG")
@pytest.mark.parametrize("overload", CASES | COMPOSITES, ids=str)
def test_operation(overload: OpOverload) -> None:
    for dtype in dtypes_of(overload):
        report(calls_of(overload, dtype), check)


def test_the_list_is_of_what_is_compiled() -> None:
    """Each operation has a call, for each of its dtypes, that is no library call."""
    idle = [
        f"{overload} of {dtype}"
        for overload, dtypes in COMPILED.items()
        for dtype in sorted(dtypes, key=str)
        if not any(is_compiled(case) for case in calls_of(overload, dtype))
    ]
    assert not idle, "\n".join(idle)


def is_compiled(case: Case) -> bool:
    """Whether the call is none of a library."""
    try:
        graph, _ = trace([case])
    except Exception:  # refused
        return False
    calls = graph.graph.find_nodes(op="call_function", target=case.overload)
    device = torch.device("cpu")
    others = [node for node in graph.graph.nodes if node.op == "call_function" and node.target is not operator.getitem]
    return all(library_reason(node, device) is None for node in calls or others)
