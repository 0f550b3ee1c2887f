"""From an FX graph of ATen operations to MLIR's torch dialect.

torch-mlir's importer does the work. What the list of compiled operations (`compiled_ops.py`) leaves to a library
is written as `torch.operator`, its constants in an attribute `args`, which `fusion-import-extern` turns into
`fusion.extern`:

    %0 = torch.operator "torch.aten.mm"(%x, %w) {args = [#fusion.operand<0>, #fusion.operand<1>]} : ...

Arguments and results that do not lie row by row carry `fusion.layout`, and so does a result that PyTorch makes
anew without computing anything (`contiguous`, `clone`), which must not become a view of what it copies. A result
that shares its memory with no argument and no other result carries `fusion.new`.
"""

from __future__ import annotations

import operator
from collections.abc import Callable, Iterator, Sequence, Set
from dataclasses import dataclass

import torch
from torch import fx

from ..dialects import fusion
from ..dialects.mlir import ir, torch_frontend
from ..driver.fingerprint import compiler
from ..driver.runner import make_context, print_module
from ..passes.fusion_import_extern import DRAW
from ..runtime.extern_call import PROGRAM_DEVICE, constant_text
from ..runtime.host_function import find_function
from .compiled_ops import library_reason
from .random_numbers import RANDOM

# Now, so that the first call doesn't wait for it, and our source is hashed as it was when it was loaded
torch_frontend()
compiler()

PLACEMENT = ("device", "layout", "pin_memory")
COPIES = ("clone", "contiguous", "alias", "view", "permute", "t", "transpose", "expand", "slice", "select")


@dataclass(frozen=True)
class Imported:
    """A graph in the torch dialect, and what MLIR's types do not say of its tensors."""

    module: ir.Module
    text: str
    """What the module was before anything was lowered, with locations: the lines of the user's program."""
    argument_dtypes: tuple[torch.dtype, ...]
    results: tuple[torch.Tensor, ...]
    """Fake tensors like the results."""
    library: tuple[tuple[str, str], ...]
    """Library calls: the operation, and why it is one."""

    @property
    def result_dtypes(self) -> tuple[torch.dtype, ...]:
        return tuple(value.dtype for value in self.results)


def import_graph(graph: fx.Graph, matmul: str = "off", refused: Set[str] = frozenset()) -> Imported:
    """Imports a graph whose placeholders and outputs are tensors of static shape; `matmul` is the option's value.

    Operations that are `refused` are the library's too.
    The program is for the device of the arguments: a GPU if any of them is on one. What is elsewhere is the library's.
    """
    fx_importer, torch_dialect = torch_frontend()
    context = make_context()
    torch_dialect.register_dialect(context)
    library: list[tuple[str, str]] = []
    placeholders = [node.meta["val"] for node in graph.find_nodes(op="placeholder")]
    device = program_device(placeholders)
    node_importer = _node_importer(library, lambda node: library_reason(node, device, matmul, refused), device)
    importer = fx_importer.FxImporter(context=context, graph_node_importer_cls=node_importer)
    with context, ir.Location.unknown():
        importer.import_stateless_graph(graph, func_name="main")
    module = importer.module
    outputs = output_nodes(graph)
    with context, ir.Location.unknown():
        _set_layouts(module.body.operations[0].operation, placeholders, outputs)
    dtypes, results = (value.dtype for value in placeholders), (node.meta["val"] for node in outputs)
    text = print_module(module.operation, locations=True)
    return Imported(module, text, tuple(dtypes), tuple(results), tuple(library))


def program_device(values: Sequence[object]) -> torch.device:
    """The device of the first tensor that is on a GPU, or else the CPU."""
    devices = (value.device for value in values if isinstance(value, torch.Tensor))
    return next((device for device in devices if device.type == "cuda"), torch.device("cpu"))


def name_arguments(host: ir.Module, names: Sequence[str]) -> None:
    """Gives the arguments of a compiled program names, which messages about them have."""
    with host.context:
        notes: list[dict[str, ir.Attribute]] = [{"fusion.name": ir.StringAttr.get(name)} for name in names]
        _note(find_function(host, "main"), "arg_attrs", notes)


def output_nodes(graph: fx.Graph) -> list[fx.Node]:
    """The nodes that a graph returns."""
    (output,) = graph.find_nodes(op="output")
    returned = output.args[0]
    return list(returned) if isinstance(returned, list | tuple) else [returned]  # pyright: ignore


def _node_importer(
    library: list[tuple[str, str]], reason_of: Callable[[fx.Node], str | None], device: torch.device
) -> type:
    """torch-mlir's importer of nodes, but for those that a library executes, which are noted in `library`."""

    class LibraryAwareImporter(torch_frontend()[0].GraphNodeImporter):
        def _import_torch_op_overload(self, loc, node, concrete_target=None):
            if node.target is RANDOM:
                return self._import_draw(loc, node)
            reason = reason_of(node)
            if reason is None:
                _forget_placement(node)
                return super()._import_torch_op_overload(loc, node, concrete_target)
            library.append((str(node.target), reason))
            return self._import_library_call(loc, node)

        def _import_library_call(self, loc: ir.Location, node: fx.Node) -> None:
            operands: list[fx.Node] = []
            args = ir.ArrayAttr.get([_encode(value, operands, device) for value in _schema_values(node)])
            values = list(_results(node))
            attributes = {"name": ir.StringAttr.get(f"torch.{_overload_name(node)}"), "args": args}
            attributes.update(_call_attributes(node, values))
            types = [self._result_type(value) for value in values]
            operation = ir.Operation.create(
                "torch.operator",
                results=types,
                operands=[self.resolve_node_value(operand) for operand in operands],
                attributes=attributes,
                loc=loc,
                regions=0,
            )
            if len(types) > 1:
                self._multi_result_nodes.add(node)
            for number, value in enumerate(operation.results):
                self.bind_node_value(node, value, number)

        def _import_draw(self, loc: ir.Location, node: fx.Node) -> None:
            seed, offset, _, kind, _ = node.args
            attributes = {
                "name": ir.StringAttr.get(DRAW),
                "offset": ir.IntegerAttr.get(ir.IntegerType.get_signless(64), offset),
                "kind": ir.StringAttr.get(kind),
            }
            type_, operand = self._result_type(node.meta["val"]), self.resolve_node_value(seed)
            operation = ir.Operation.create(
                "torch.operator", results=[type_], operands=[operand], attributes=attributes, loc=loc, regions=0
            )
            self.bind_node_value(node, operation.result)

        def _result_type(self, value: torch.Tensor | None) -> ir.Type:
            """A result that is None in this call is a tensor that nobody uses."""
            if value is None:
                return self._cc.create_vtensor_type(torch.float32, torch.Size([0]))
            return self._cc.tensor_to_vtensor_type(value)

    return LibraryAwareImporter


def _forget_placement(node: fx.Node) -> None:
    """Where a new tensor goes is the program's device; torch-mlir lowers some operations for the CPU's only."""
    node.kwargs = {name: value for name, value in node.kwargs.items() if name not in PLACEMENT}


def _overload_name(node: fx.Node) -> str:
    namespace, _, rest = node.target.name().partition("::")  # pyright: ignore
    return f"{namespace}.{rest}" if "." in rest else f"{namespace}.{rest}.default"


def _schema_values(node: fx.Node) -> Iterator[object]:
    """The value of each argument of the schema, in order."""
    for number, argument in enumerate(node.target._schema.arguments):  # pyright: ignore
        if number < len(node.args):
            yield node.args[number]
        elif argument.name in node.kwargs:
            yield node.kwargs[argument.name]
        else:
            yield argument.default_value


def _encode(value: object, operands: list[fx.Node], device: torch.device) -> ir.Attribute:
    """A value as an entry of `args`; tensors are appended to `operands`; `device` is the program's."""
    if isinstance(value, fx.Node):
        operands.append(value)
        return fusion.operand(len(operands) - 1)
    if isinstance(value, list | tuple):
        return ir.ArrayAttr.get([_encode(element, operands, device) for element in value])
    if value is None:
        return ir.UnitAttr.get()
    if isinstance(value, bool):
        return ir.BoolAttr.get(value)
    if isinstance(value, int):
        return ir.IntegerAttr.get(ir.IntegerType.get_signless(64), value)
    if isinstance(value, float):
        return ir.FloatAttr.get(ir.F64Type.get(), value)
    return ir.StringAttr.get(PROGRAM_DEVICE if value == device else constant_text(value))  # pyright: ignore


def _results(node: fx.Node) -> Iterator[torch.Tensor | None]:
    value = node.meta["val"]
    yield from value if isinstance(value, list | tuple) else (value,)


def _call_attributes(node: fx.Node, values: Sequence[torch.Tensor | None]) -> dict[str, ir.Attribute]:
    attributes: dict[str, ir.Attribute] = {}
    effect = _effect(node.target)  # pyright: ignore
    if effect is not None:
        attributes["effects"] = ir.ArrayAttr.get([ir.StringAttr.get(effect)])
    if any(value is not None and not value.is_contiguous() for value in values):
        attributes["result_layouts"] = ir.ArrayAttr.get([_layout(value) for value in values])
    return attributes


def _effect(target: torch._ops.OpOverload) -> str | None:
    if torch.Tag.nondeterministic_seeded in target.tags:
        return "random"
    if target.namespace in ("_c10d_functional", "c10d_functional"):
        return "collective"
    return "opaque" if target._schema.is_mutable else None


def _layout(value: torch.Tensor | None) -> ir.Attribute:
    if value is None or value.is_contiguous():
        return ir.UnitAttr.get()
    return fusion.layout(value.stride())


def _set_layouts(function: ir.Operation, arguments: Sequence[torch.Tensor], results: Sequence[fx.Node]) -> None:
    strides = [None if value.is_contiguous() else value.stride() for value in arguments]
    _note(function, "arg_attrs", [_layout_note(one) for one in strides])
    owners = [memory_owner(node) for node in results]
    notes = [
        _layout_note(_result_strides(node))
        | ({} if owner[0].op == "placeholder" or owners.count(owner) > 1 else {"fusion.new": ir.UnitAttr.get()})
        for node, owner in zip(results, owners, strict=True)
    ]
    _note(function, "res_attrs", notes)


def _result_strides(node: fx.Node) -> tuple[int, ...] | None:
    """Strides that a result must have; None where it is computed and row-major, as our results are anyway."""
    value = node.meta["val"]
    is_copy = node.op == "call_function" and _base_name(node) in COPIES
    return value.stride() if is_copy or not value.is_contiguous() else None


def _base_name(node: fx.Node) -> str:
    return getattr(node.target, "_opname", "")


def memory_owner(node: fx.Node) -> tuple[fx.Node, object]:
    """The node, and which of its results, whose memory this one's value is a view of; itself if it is none."""
    place: object = None
    while node.op == "call_function" and node.all_input_nodes:
        if node.target is operator.getitem:
            place = node.args[1]
        elif not is_view(node.target):
            break
        else:
            place = None
        node = node.all_input_nodes[0]
    return node, place


def is_view(target: object) -> bool:
    """Whether an operation's result is another way to look at its operand's memory."""
    if not isinstance(target, torch._ops.OpOverload):
        return False
    returned = (value.alias_info for value in target._schema.returns)
    return any(info is not None and not info.is_write for info in returned)


def _layout_note(strides: tuple[int, ...] | None) -> dict[str, ir.Attribute]:
    return {} if strides is None else {"fusion.layout": fusion.layout(strides)}


def _note(function: ir.Operation, which: str, notes: Sequence[dict[str, ir.Attribute]]) -> None:
    """Adds to the attributes of the function's arguments or results."""
    if not any(notes):
        return
    known = (
        ir.ArrayAttr(function.attributes[which]) if which in function.attributes else [ir.DictAttr.get({})] * len(notes)
    )
    entries = []
    for entry, note in zip(known, notes, strict=True):
        entries.append(ir.DictAttr.get({named.name: named.attr for named in ir.DictAttr(entry)} | note))
    function.attributes[which] = ir.ArrayAttr.get(entries)
