"""fusion-report: counts what fusion achieved, into an attribute `fusion.report` of each function.

A report needs numbers from several stages, so this pass runs several times and adds what the stage shows:
after normalisation the operations and what eager execution would hold; after fusion the regions; after
fusion-plan-memory the kernels, calls, bytes and the peak. Nothing else is changed.

    func.func @main(%a, %b) {                        func.func @main(%a, %b) attributes {fusion.report = {
      %c = linalg.generic ins(%a, %b) ...      =>      ops = 2, regions = 0, source_peak_bytes = 64}} {
      %d = linalg.generic ins(%c) ...                  ...
      return %d
    }

The terms: *ops* are linalg operations and library calls; *bytes_moved* is every kernel's and call's distinct
inputs read once and outputs written once; *peak_bytes* is the largest sum of live intermediates and results,
arguments and constants apart; *source_peak_bytes* is the same for the operations one by one, each result a
new buffer that is freed after its last reader; *workspace_bytes* is the largest sum of partial results of
reductions that were split, which are apart from both peaks, as the workspaces of libraries and of eager's own
reductions are. Each kernel's entry says besides which schedule it has and why, how much arithmetic it is
(arithmetic.py) and which lines of the source it came from; *timeline* is what is live at each launch and call.

Must hold before: nothing. Functions that are already scheduled, but have no memory yet, tell nothing new.
"""

from __future__ import annotations

import itertools
from collections.abc import Collection, Iterable
from dataclasses import dataclass
from typing import ClassVar

from ..dialects import fusion
from ..dialects.mlir import ir
from . import graph
from .arithmetic import flops_of
from .errors import PassFailure
from .memory_peak import bytes_of, live_bytes, peak_bytes, workspace_bytes
from .pass_base import Pass
from .peak import Step, peak_of
from .source_lines import lines_of

ATTRIBUTE = "fusion.report"
PARTS_OF_USERS = ("linalg.fill", "linalg.yield")
OPERATIONS = ("tensor.concat", "tensor.pad", "tensor.insert_slice", "fusion.random", "fusion.extern")


@dataclass(frozen=True)
class FusionReport(Pass):
    """Adds to `fusion.report` of each function what its present form shows."""

    name: ClassVar[str] = "fusion-report"

    def run(self, module: ir.Module) -> None:
        """Changes no operation."""
        for function in graph.functions(module):
            known = read_report(function)
            function.attributes[ATTRIBUTE] = ir.DictAttr.get({**known, **_facts(function, known)})


def read_report(function: ir.Operation) -> dict[str, ir.Attribute]:
    """What is known about a function so far."""
    if ATTRIBUTE not in function.attributes:
        return {}
    return {entry.name: entry.attr for entry in ir.DictAttr(function.attributes[ATTRIBUTE])}


def _facts(function: ir.Operation, known: dict[str, ir.Attribute]) -> dict[str, ir.Attribute]:
    body = [op.operation for block in function.regions[0].blocks for op in block.operations]
    kernels = [op for op in body if fusion.is_op(op, "kernel")]
    if _is_on_memory(function, kernels):
        return _facts_of_memory(function, body, kernels)
    if kernels:
        return {}
    regions = [op for op in body if fusion.is_op(op, "region")]
    facts = {"regions": _integer(len(regions))}
    if "ops" not in known:
        facts |= _facts_of_regions(body) if regions else _facts_of_source(function)
    return facts


def _is_on_memory(function: ir.Operation, kernels: Iterable[ir.Operation]) -> bool:
    signature = ir.FunctionType(ir.TypeAttr(function.attributes["function_type"]).value)
    values = [operand.type for kernel in kernels for operand in kernel.operands]
    return any(isinstance(one, ir.MemRefType) for one in (*signature.inputs, *signature.results, *values))


def _facts_of_source(function: ir.Operation) -> dict[str, ir.Attribute]:
    source = graph.build(function)
    for value in source.values:
        _refuse_dynamic(value)
    steps = [
        Step(
            touches=tuple(dict.fromkeys(source.memory[value] for value in node.reads)),
            makes=tuple(value for value in node.makes if source.is_intermediate(value)),
        )
        for node in source.nodes
    ]
    kept = {source.memory[value] for value in source.returned}
    return {
        "ops": _integer(sum(1 for node in source.nodes if not fusion.is_op(node.op, "view"))),
        "source_peak_bytes": _integer(peak_of(steps, source.sizes, kept)),
    }


def _facts_of_regions(body: Iterable[ir.Operation]) -> dict[str, ir.Attribute]:
    """The source is gone, and with it what eager execution would hold."""
    return {"ops": _integer(sum(count_ops(op) for op in body))}


def _facts_of_memory(
    function: ir.Operation, body: list[ir.Operation], kernels: list[ir.Operation]
) -> dict[str, ir.Attribute]:
    calls = [op for op in body if fusion.is_op(op, "extern")]
    launches = [list(group) for _, group in itertools.groupby(kernels, key=batch_of)]
    ends = [launch[-1] for launch in launches]
    return {
        "kernels": _integer(len(launches)),
        "extern_calls": _integer(len(calls)),
        "bytes_moved": _integer(sum(moved_bytes(op) for op in (*kernels, *calls))),
        "peak_bytes": _integer(peak_bytes(function)),
        "workspace_bytes": _integer(workspace_bytes(function)),
        "kernel_list": ir.ArrayAttr.get([_describe(launch) for launch in launches]),
        "call_list": ir.ArrayAttr.get([_describe_call(call) for call in calls]),
        "timeline": _timeline(function, body, {*ends, *calls}),
    }


def _timeline(function: ir.Operation, body: list[ir.Operation], steps: Collection[ir.Operation]) -> ir.Attribute:
    """Live bytes at each launch and call, in order; a launch's are those of its last kernel."""
    live = live_bytes(function)
    return ir.DenseI64ArrayAttr.get([live[number] for number, op in enumerate(body) if op in steps])


def batch_of(kernel: ir.Operation) -> object:
    """Equal for neighbouring kernels of a function that share a launch: the kernel itself if it runs alone."""
    attributes = kernel.attributes
    return ir.IntegerAttr(attributes["batch"]).value if "batch" in attributes else kernel


def _describe(launch: list[ir.Operation]) -> ir.Attribute:
    first, *others = launch
    schedule = fusion.read_schedule(first.attributes["schedule"]) if "schedule" in first.attributes else None
    name = ir.StringAttr(first.attributes["name"]).value
    return ir.DictAttr.get(
        {
            "name": ir.StringAttr.get(f"{name} and {len(others)} more" if others else name),
            "ops": _integer(sum(count_ops(kernel) for kernel in launch)),
            "bytes": _integer(sum(moved_bytes(kernel) for kernel in launch)),
            "schedule": ir.StringAttr.get("" if schedule is None else schedule.family),
            "why": ir.StringAttr.get("" if schedule is None else schedule.why),
            "flops": _integer(sum(flops_of(kernel) or 0 for kernel in launch)),
            "lines": _lines(launch),
        }
    )


def _describe_call(call: ir.Operation) -> ir.Attribute:
    flops = flops_of(call)
    known = {} if flops is None else {"flops": _integer(flops)}
    dtypes = [ir.ShapedType(result.type).element_type for result in call.results][:1]
    return ir.DictAttr.get(
        {
            "op": call.attributes["op"],
            "bytes": _integer(moved_bytes(call)),
            "dtype": ir.StringAttr.get("".join(map(str, dtypes))),
            "lines": _lines([call]),
            **known,
        }
    )


def _lines(ops: Iterable[ir.Operation]) -> ir.Attribute:
    lines = dict.fromkeys(line for op in ops for line in lines_of(op))
    return ir.ArrayAttr.get([ir.StringAttr.get(line) for line in lines])


def count_ops(op: ir.Operation) -> int:
    """How many operations of a count `op` is, or a region or kernel holds."""
    if fusion.is_op(op, "region", "kernel"):
        return sum(count_ops(inner.operation) for inner in op.regions[0].blocks[0].operations)
    is_linalg = op.name.startswith("linalg.") and op.name not in PARTS_OF_USERS
    return int(is_linalg or op.name in OPERATIONS)


def moved_bytes(op: ir.Operation) -> int:
    """Distinct inputs read once, outputs written once."""
    operands = list(op.operands)
    outputs = [value.type for value in op.results]
    if fusion.is_op(op, "kernel"):
        segments = list(ir.DenseI32ArrayAttr(op.attributes["operandSegmentSizes"]))
        outputs += [value.type for value in operands[segments[0] :]]
        operands = operands[: segments[0]]
    return sum(bytes_of(value.type) for value in dict.fromkeys(operands)) + sum(map(bytes_of, outputs))


def _refuse_dynamic(value: ir.Value) -> None:
    if isinstance(value.type, ir.RankedTensorType) and not value.type.has_static_shape:
        hint = "fusion-specialize-sizes makes sizes static"
        raise PassFailure(value.location, f"a report needs static sizes, got {value.type}; {hint}")


def _integer(value: int) -> ir.Attribute:
    return ir.IntegerAttr.get(ir.IntegerType.get_signless(64), value)
