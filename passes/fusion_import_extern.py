"""fusion-import-extern: library calls of a torch-dialect program become `fusion.extern`.

Why: the frontend decides which operations are compiled and which a library does, before torch-mlir lowers
anything (later, a bf16 `mm` is a matmul into f32 and a truncation that nobody would recognise). What a library
does arrives here as `torch.operator`, which torch-mlir's own lowering refuses; this pass hides it behind
builtin tensors, so that the lowering of everything around it just goes on.

Must hold before: each `torch.operator` takes one operand a schema argument, and what is no tensor is a
`torch.constant.*` or a `torch.prim.ListConstruct` of such; or it takes tensors only and has an attribute `args`
as `fusion.extern` has it (how the frontend writes it: dtypes, layouts and devices have no torch constant).

A draw of random numbers is the `torch.operator` "torch.mlir_fusion.random" of a seed, with attributes `offset` and
`kind`: it becomes `fusion.random`.

Holds after: no `torch.operator` is left; each `fusion.extern` works on builtin tensors, with `dtypes` where
these do not say what PyTorch must be given (uint8 is i8 there, as int8 is).

Before:

    %dim = torch.constant.int 1
    %0 = torch.operator "torch.aten.cumsum"(%x, %dim)
        : (!torch.vtensor<[4,8],f32>, !torch.int) -> !torch.vtensor<[4,8],f32>

After:

    %x_0 = torch_c.to_builtin_tensor %x : !torch.vtensor<[4,8],f32> -> tensor<4x8xf32>
    %c = "fusion.extern"(%x_0) {op = "aten.cumsum.default", args = [#fusion.operand<0>, 1]}
        : (tensor<4x8xf32>) -> tensor<4x8xf32>
    %0 = torch_c.from_builtin_tensor %c : tensor<4x8xf32> -> !torch.vtensor<[4,8],f32>
"""

import re
from dataclasses import dataclass
from typing import ClassVar

from ..dialects import fusion
from ..dialects.mlir import arith, ir, register_torch
from ..dialects.walk import find
from .errors import PassFailure
from .pass_base import Pass

TENSOR = re.compile(r"!torch\.vtensor<\[(?P<shape>[\d,?]*)\],(?P<element>.+)>$")
SIGN = re.compile(r"^[su](?=i\d)")
DTYPES = {
    "i1": "bool",
    "bf16": "bfloat16",
    **{f"f{bits}": f"float{bits}" for bits in (16, 32, 64)},
    **{f"si{bits}": f"int{bits}" for bits in (8, 16, 32, 64)},
    **{f"ui{bits}": f"uint{bits}" for bits in (8, 16, 32, 64)},
    **{f"complex<f{bits}>": f"complex{2 * bits}" for bits in (16, 32, 64)},
}
DRAW = "torch.mlir_fusion.random"
KEPT = ("effects", "tied", "result_layouts")
CONSTANTS = ("torch.constant.int", "torch.constant.float", "torch.constant.bool", "torch.constant.str")


@dataclass(frozen=True)
class FusionImportExtern(Pass):
    """See the module's docstring."""

    name: ClassVar[str] = "fusion-import-extern"

    def run(self, module: ir.Module) -> None:
        """Replaces every `torch.operator` of the module."""
        calls = find(module.operation, lambda op: op.name == "torch.operator")
        if not calls:
            return
        register_torch(module.context)
        for call in calls:
            if ir.StringAttr(call.attributes["name"]).value == DRAW:
                _convert_operator_to_random(call)
            else:
                _convert_operator_to_extern(call)


def _convert_operator_to_extern(call: ir.Operation) -> None:
    with ir.InsertionPoint(call), call.location:
        tensors, args = _arguments(call)
        operands = [_to_builtin(tensor, call) for tensor in tensors]
        attributes = _attributes(call, tensors, args)
        results = [_builtin_type(result.type, call) for result in call.results]
        extern = ir.Operation.create("fusion.extern", results=results, operands=operands, attributes=attributes)
        for old, new in zip(call.results, extern.results, strict=True):
            old.replace_all_uses_with(_from_builtin(new, old.type))
    arguments = list(call.operands)
    call.erase()
    _erase_unused(arguments)


def _convert_operator_to_random(call: ir.Operation) -> None:
    with ir.InsertionPoint(call), call.location:
        missing = [name for name in ("offset", "kind") if name not in call.attributes]
        if missing or len(call.operands) != 1:
            raise PassFailure(call.location, f"{DRAW} takes a seed and has attributes offset and kind")
        seed, scalar = _to_builtin(call.operands[0], call), ir.RankedTensorType.get([], ir.IntegerType.get_signless(64))
        offset = arith.ConstantOp(scalar, ir.DenseElementsAttr.get_splat(scalar, call.attributes["offset"])).result
        kind = {"kind": call.attributes["kind"]}
        result = _builtin_type(call.results[0].type, call)
        drawn = ir.Operation.create("fusion.random", results=[result], operands=[seed, offset], attributes=kind).result
        call.results[0].replace_all_uses_with(_from_builtin(drawn, call.results[0].type))
    call.erase()


def _attributes(call: ir.Operation, tensors: list[ir.Value], args: ir.ArrayAttr) -> dict[str, ir.Attribute]:
    attributes: dict[str, ir.Attribute] = {name: call.attributes[name] for name in KEPT if name in call.attributes}
    attributes["op"] = ir.StringAttr.get(overload_name(ir.StringAttr(call.attributes["name"]).value))
    attributes["args"] = args
    elements = [_parts(tensor.type, call)[1] for tensor in tensors]
    if any(element.startswith("ui") for element in elements):
        names = [ir.StringAttr.get(DTYPES.get(element, element)) for element in elements]
        attributes["dtypes"] = ir.ArrayAttr.get(names)
    return attributes


def overload_name(torch_name: str) -> str:
    """PyTorch's name of an overload ("aten.mm.default") from torch-mlir's ("torch.aten.mm")."""
    name = torch_name.removeprefix("torch.")
    return name if name.count(".") > 1 else f"{name}.default"


def _arguments(call: ir.Operation) -> tuple[list[ir.Value], ir.ArrayAttr]:
    """The tensors that a call takes, and its `args`."""
    if "args" in call.attributes:
        return list(call.operands), ir.ArrayAttr(call.attributes["args"])
    tensors: list[ir.Value] = []
    entries = [_argument(value, tensors, call) for value in call.operands]
    return tensors, ir.ArrayAttr.get(entries)


def _argument(value: ir.Value, tensors: list[ir.Value], call: ir.Operation) -> ir.Attribute:
    if TENSOR.match(str(value.type)):
        tensors.append(value)
        return fusion.operand(len(tensors) - 1)
    if not isinstance(value, ir.BlockArgument):
        producer = value.owner
        if producer.name == "torch.constant.none":
            return ir.UnitAttr.get()
        if producer.name in CONSTANTS:
            return producer.attributes["value"]
        if producer.name == "torch.prim.ListConstruct":
            return ir.ArrayAttr.get([_argument(element, tensors, call) for element in producer.operands])
    raise PassFailure(call.location, f"{call.attributes['name']} takes a {value.type} that is no constant")


def _to_builtin(tensor: ir.Value, call: ir.Operation) -> ir.Value:
    kind = _builtin_type(tensor.type, call)
    return ir.Operation.create("torch_c.to_builtin_tensor", results=[kind], operands=[tensor]).result


def _from_builtin(tensor: ir.Value, kind: ir.Type) -> ir.Value:
    return ir.Operation.create("torch_c.from_builtin_tensor", results=[kind], operands=[tensor]).result


def _builtin_type(kind: ir.Type, call: ir.Operation) -> ir.Type:
    shape, element = _parts(kind, call)
    extents = "".join(f"{extent}x" for extent in shape.split(",") if extent)
    return ir.Type.parse(f"tensor<{extents}{SIGN.sub('', element)}>")


def _parts(kind: ir.Type, call: ir.Operation) -> tuple[str, str]:
    match = TENSOR.match(str(kind))
    if match is None:
        raise PassFailure(call.location, f"{call.attributes['name']} has a value of type {kind}; only tensors")
    return match["shape"], match["element"]


def _erase_unused(values: list[ir.Value]) -> None:
    """Constants and lists that nothing uses any more: torch-mlir refuses to leave them behind."""
    for value in dict.fromkeys(values):
        if isinstance(value, ir.BlockArgument) or any(True for _ in value.uses):
            continue
        producer = value.owner
        if producer.name.startswith("torch.constant.") or producer.name == "torch.prim.ListConstruct":
            operands = list(producer.operands)
            producer.erase()
            _erase_unused(operands)
