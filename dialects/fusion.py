"""The `fusion` dialect: what shares a kernel, what a library does, and how each kernel is scheduled.

Ops (generic form, since the bindings define no custom syntax):

    fusion.region   operations that belong together: tensors in, tensors out, isolated from above
    fusion.kernel   a region that one schedule accepts; after fusion-plan-memory it works on memrefs
    fusion.extern   a call of a library function, an ATen overload
    fusion.view     another way to look at an operand's memory: offset, sizes, strides; costs no kernel
    fusion.random   Philox draws, pure: the seed and the offset are operands
    fusion.yield    ends a region or a kernel

Attributes:

    #fusion.layout<strides, offset, alignment>    how a tensor lies in memory, in elements; alignment in bytes
    #fusion.operand<i>                            in `args` of fusion.extern: the i-th operand stands here
    #fusion.schedule<family, parameters, why>     a kernel's schedule and the reason for it

`load(context)` makes a context know them; it may be called any number of times.
"""

import threading
from collections.abc import Iterator, Sequence
from typing import Any

from .mlir import ext, ir

EFFECTS = ("random", "collective", "opaque")
RANDOM_KINDS = ("uniform", "normal", "bits")


class Fusion(ext.Dialect, name="fusion"):
    """The dialect's handle; see the module's docstring."""


class LayoutAttr(Fusion.Attribute, name="layout"):
    """Strides and offset in elements, alignment of the first element in bytes."""

    strides: ir.ArrayAttr
    offset: ir.IntegerAttr
    alignment: ir.IntegerAttr


class OperandAttr(Fusion.Attribute, name="operand"):
    """Stands in `args` of fusion.extern for the operand with this number."""

    index: ir.IntegerAttr


class ScheduleAttr(Fusion.Attribute, name="schedule"):
    """Family ("pointwise", ...), its parameters, and why they were chosen."""

    family: ir.StringAttr
    parameters: ir.DictAttr
    why: ir.StringAttr


class YieldOp(Fusion.Operation, name="yield", traits=[ir.IsTerminatorTrait]):
    """Gives the values of the enclosing region or kernel."""

    values: Sequence[ext.Operand[Any]]

    @staticmethod
    def verify_invariants(op: ir.OpView) -> bool:
        parent = op.operation.parent
        if parent is None or parent.name not in ("fusion.region", "fusion.kernel"):
            return _reject(op, "must end a fusion.region or a fusion.kernel")
        return True


class RegionOp(Fusion.Operation, name="region", traits=[ir.IsIsolatedFromAboveTrait]):
    """Operations that one of the fusion passes put together."""

    inputs: Sequence[ext.Operand[Any]]
    outputs: Sequence[ext.Result[Any]]
    body: ext.Region

    @staticmethod
    def verify_region_invariants(op: ir.OpView) -> bool:
        operation = op.operation
        return (
            _verify_body(op)
            and _verify_arguments(op, list(operation.operands))
            and _verify_same_types(op, "result", _types(operation.results), _types(terminator(op).operands))
        )


class KernelOp(Fusion.Operation, name="kernel", traits=[ir.IsIsolatedFromAboveTrait]):
    """A region with one schedule.

    On tensors `outs` is empty and the results are what is yielded. On memrefs there are no results: what is
    yielded is stored to `outs`, in order; the body's arguments remain tensors, the contents of `ins`.
    """

    ins: Sequence[ext.Operand[Any]]
    outs: Sequence[ext.Operand[Any]]
    outputs: Sequence[ext.Result[Any]]
    body: ext.Region

    @staticmethod
    def verify_region_invariants(op: ir.OpView) -> bool:
        return _verify_kernel_attributes(op) and _verify_body(op) and _verify_kernel_types(op)


class ExternOp(Fusion.Operation, name="extern"):
    """A call of a library function: `op` names an ATen (or custom) overload.

    `args` has one entry a schema argument, in order: a constant, `unit` for None, #fusion.operand<i>, or an
    array of these. Optional attributes: `effects`, `dtypes` (torch's name of each operand's dtype, where the
    MLIR type does not say it) and `tied`, pairs (operand, result): the result is the operand after the call
    wrote it, and nothing may use the old value any more.
    """

    inputs: Sequence[ext.Operand[Any]]
    outputs: Sequence[ext.Result[Any]]

    @staticmethod
    def verify_invariants(op: ir.OpView) -> bool:
        return _verify_extern_name(op) and _verify_extern_args(op) and _verify_extern_options(op)


class ViewOp(Fusion.Operation, name="view"):
    """The source's memory with other sizes and strides (in elements, from the source's first element)."""

    source: ext.Operand[Any]
    result: ext.Result[Any]

    @staticmethod
    def verify_invariants(op: ir.OpView) -> bool:
        return _verify_view(op)


class RandomOp(Fusion.Operation, name="random"):
    """Draws of the Philox 4x32-10 generator, one a result element, in row-major order."""

    seed: ext.Operand[Any]
    offset: ext.Operand[Any]
    result: ext.Result[Any]

    @staticmethod
    def verify_invariants(op: ir.OpView) -> bool:
        kind = _string(op, "kind")
        if kind not in RANDOM_KINDS:
            return _reject(op, f"'kind' must be one of {', '.join(RANDOM_KINDS)}, got {kind!r}")
        return True


_load_lock = threading.Lock()


def load(context: ir.Context) -> None:
    """Registers the dialect in `context`; does nothing where it is registered already."""
    with _load_lock, context, ir.Location.unknown():
        if not context.is_dialect_loaded(Fusion.DIALECT_NAMESPACE):
            Fusion.load()


def terminator(op: ir.OpView | ir.Operation) -> ir.Operation:
    """The last operation of a region's or kernel's only block."""
    operations = op.operation.regions[0].blocks[0].operations
    return operations[len(operations) - 1].operation


def is_op(op: ir.OpView | ir.Operation, *names: str) -> bool:
    """Whether `op` is one of the fusion dialect's ops of these names ("region", "extern", ...)."""
    prefix, _, name = op.operation.name.partition(".")
    return prefix == "fusion" and name in names


def layout(strides: Sequence[int], offset: int = 0, alignment: int = 1) -> LayoutAttr:
    """A #fusion.layout of the current context."""
    elements = ir.ArrayAttr.get([_i64(stride) for stride in strides])
    return LayoutAttr.get(elements, _i64(offset), _i64(alignment))


def operand(index: int) -> OperandAttr:
    """A #fusion.operand of the current context."""
    return OperandAttr.get(_i64(index))


def schedule(family: str, parameters: dict[str, int | str], why: str) -> ScheduleAttr:
    """A #fusion.schedule of the current context."""
    entries = {
        key: ir.StringAttr.get(value) if isinstance(value, str) else _i64(value)
        for key, value in parameters.items()
    }
    return ScheduleAttr.get(ir.StringAttr.get(family), ir.DictAttr.get(entries), ir.StringAttr.get(why))


def schedule_parameters(attribute: ScheduleAttr) -> dict[str, int | str]:
    """The parameters of a #fusion.schedule as Python values."""
    return {
        named.name: ir.StringAttr(named.attr).value
        if isinstance(named.attr, ir.StringAttr)
        else ir.IntegerAttr(named.attr).value
        for named in ir.DictAttr(attribute.parameters)
    }


def extern_effects(op: ir.OpView | ir.Operation) -> tuple[str, ...]:
    """The effects of a fusion.extern, empty for a pure call."""
    attributes = op.operation.attributes
    if "effects" not in attributes:
        return ()
    return tuple(ir.StringAttr(effect).value for effect in ir.ArrayAttr(attributes["effects"]))


def tied_operands(op: ir.OpView | ir.Operation) -> list[tuple[int, int]]:
    """Pairs (operand, result) of a fusion.extern that writes its operand."""
    attributes = op.operation.attributes
    if "tied" not in attributes:
        return []
    pairs = (ir.ArrayAttr(pair) for pair in ir.ArrayAttr(attributes["tied"]))
    return [(ir.IntegerAttr(pair[0]).value, ir.IntegerAttr(pair[1]).value) for pair in pairs]


def integers(attribute: ir.Attribute) -> list[int]:
    """The values of a dense i64 array or of an array of integers."""
    if isinstance(attribute, ir.DenseI64ArrayAttr):
        return list(attribute)
    return [ir.IntegerAttr(element).value for element in ir.ArrayAttr(attribute)]


def storage_type(element: ir.Type) -> ir.Type:
    """How an element lies in memory: a boolean takes a byte."""
    if isinstance(element, ir.IntegerType) and element.width == 1:
        return ir.IntegerType.get_signless(8)
    return element


def _i64(value: int) -> ir.IntegerAttr:
    return ir.IntegerAttr.get(ir.IntegerType.get_signless(64), value)


def _reject(op: ir.OpView, message: str) -> bool:
    op.operation.location.emit_error(f"'{op.operation.name}' op {message}")
    return False


def _types(values: Sequence[ir.Value]) -> list[ir.Type]:
    return [value.type for value in values]


def _string(op: ir.OpView, name: str) -> str | None:
    attributes = op.operation.attributes
    if name not in attributes or not isinstance(attributes[name], ir.StringAttr):
        return None
    return ir.StringAttr(attributes[name]).value


def _verify_body(op: ir.OpView) -> bool:
    blocks = list(op.operation.regions[0].blocks)
    if len(blocks) != 1:
        return _reject(op, f"must have a body of one block, got {len(blocks)}")
    operations = blocks[0].operations
    if len(operations) == 0 or operations[len(operations) - 1].operation.name != "fusion.yield":
        return _reject(op, "must end with fusion.yield")
    return True


def _verify_arguments(op: ir.OpView, operands: Sequence[ir.Value]) -> bool:
    arguments = op.operation.regions[0].blocks[0].arguments
    return _verify_same_types(op, "operand", _types(operands), _types(arguments), "block argument")


def _verify_same_types(
    op: ir.OpView, what: str, outer: list[ir.Type], inner: list[ir.Type], inner_name: str = "yielded value"
) -> bool:
    if len(outer) != len(inner):
        return _reject(op, f"has {len(outer)} {what}s but {len(inner)} {inner_name}s")
    for number, (one, other) in enumerate(zip(outer, inner, strict=True)):
        if one != other:
            return _reject(op, f"{what} {number} has type {one} but {inner_name} {number} has type {other}")
    return True


def _verify_kernel_attributes(op: ir.OpView) -> bool:
    if not _string(op, "name"):
        return _reject(op, "needs a string attribute 'name'")
    attributes = op.operation.attributes
    if "schedule" in attributes and not isinstance(attributes["schedule"], ScheduleAttr):
        return _reject(op, "'schedule' must be a #fusion.schedule")
    return True


def _verify_kernel_types(op: ir.OpView) -> bool:
    operation = op.operation
    segments = list(ir.DenseI32ArrayAttr(operation.attributes["operandSegmentSizes"]))
    operands = list(operation.operands)
    ins, outs = operands[: segments[0]], operands[segments[0] :]
    yielded = _types(terminator(op).operands)
    if any(isinstance(value.type, ir.MemRefType) for value in operands):
        return _verify_memory_form(op, ins, outs, yielded)
    if outs:
        return _reject(op, "on tensors has results, not 'outs'")
    return _verify_arguments(op, ins) and _verify_same_types(op, "result", _types(operation.results), yielded)


def _verify_memory_form(
    op: ir.OpView, ins: Sequence[ir.Value], outs: Sequence[ir.Value], yielded: Sequence[ir.Type]
) -> bool:
    arguments = _types(op.operation.regions[0].blocks[0].arguments)
    if len(op.operation.results):
        return _reject(op, "on memrefs stores to 'outs' and has no results")
    if len(ins) != len(arguments) or len(outs) != len(yielded):
        return _reject(op, "needs a block argument for each of 'ins' and a yielded value for each of 'outs'")
    pairs = [*zip(_types(ins), arguments, strict=True), *zip(_types(outs), yielded, strict=True)]
    for memory, tensor in pairs:
        if not _holds(memory, tensor):
            return _reject(op, f"a memref of type {memory} can't hold a tensor of type {tensor}")
    return True


def _holds(memory: ir.Type, tensor: ir.Type) -> bool:
    if not isinstance(tensor, ir.RankedTensorType):
        return memory == tensor
    if not isinstance(memory, ir.MemRefType):
        return False
    same_shape = list(memory.shape) == list(tensor.shape)
    return same_shape and memory.element_type == storage_type(tensor.element_type)


def _verify_extern_name(op: ir.OpView) -> bool:
    name = _string(op, "op")
    if not name or name.count(".") < 1:
        return _reject(op, "needs a string attribute 'op' such as \"aten.mm.default\"")
    if "args" not in op.operation.attributes or not isinstance(op.operation.attributes["args"], ir.ArrayAttr):
        return _reject(op, "needs an array attribute 'args', one entry a schema argument")
    return True


def _verify_extern_args(op: ir.OpView) -> bool:
    count = len(op.operation.operands)
    used = list(operand_numbers(ir.ArrayAttr(op.operation.attributes["args"])))
    for number in used:
        if not 0 <= number < count:
            return _reject(op, f"'args' names operand {number}, but there are {count} operands")
    missing = sorted(set(range(count)) - set(used))
    if missing:
        return _reject(op, f"operand {missing[0]} does not occur in 'args'")
    return True


def operand_numbers(attribute: ir.Attribute) -> Iterator[int]:
    """The operand numbers that occur in `args` of a fusion.extern, in order."""
    if isinstance(attribute, OperandAttr):
        yield ir.IntegerAttr(attribute.index).value
    elif isinstance(attribute, ir.ArrayAttr):
        for element in attribute:
            yield from operand_numbers(element)


def _verify_extern_options(op: ir.OpView) -> bool:
    attributes = op.operation.attributes
    for effect in extern_effects(op):
        if effect not in EFFECTS:
            return _reject(op, f"effect {effect!r} is not one of {', '.join(EFFECTS)}")
    if "dtypes" in attributes and len(ir.ArrayAttr(attributes["dtypes"])) != len(op.operation.operands):
        return _reject(op, "'dtypes' must have one entry an operand")
    return all(_verify_tied(op, *pair) for pair in tied_operands(op))


def _verify_tied(op: ir.OpView, operand_number: int, result_number: int) -> bool:
    operation = op.operation
    if not (0 <= operand_number < len(operation.operands) and 0 <= result_number < len(operation.results)):
        return _reject(op, f"'tied' names operand {operand_number} and result {result_number}: out of range")
    old, new = operation.operands[operand_number], operation.results[result_number]
    if old.type != new.type:
        return _reject(op, f"tied operand {operand_number} has type {old.type}, its result {new.type}")
    for use in old.uses:
        user = use.owner.operation
        if user != operation and user.block == operation.block and operation.is_before_in_block(user):
            return _reject(op, f"operand {operand_number} is written here but its old value is used later")
    return True


def _verify_view(op: ir.OpView) -> bool:
    attributes = op.operation.attributes
    for name in ("offset", "sizes", "strides"):
        if name not in attributes:
            return _reject(op, f"needs an attribute '{name}'")
    sizes, strides = integers(attributes["sizes"]), integers(attributes["strides"])
    offset = ir.IntegerAttr(attributes["offset"]).value
    result = ir.ShapedType(op.operation.results[0].type)
    if len(sizes) != len(strides) or len(sizes) != result.rank:
        return _reject(op, f"needs {result.rank} sizes and strides, got {len(sizes)} and {len(strides)}")
    if result.has_static_shape and list(result.shape) != sizes:
        return _reject(op, f"has sizes {sizes} but its result has shape {list(result.shape)}")
    if offset < 0 or any(stride < 0 for stride in strides):
        return _reject(op, "needs an offset and strides that are not negative")
    return _verify_view_bounds(op, offset, sizes, strides)


def _verify_view_bounds(op: ir.OpView, offset: int, sizes: list[int], strides: list[int]) -> bool:
    source = op.operation.operands[0]
    contiguous = isinstance(source.type, ir.RankedTensorType) and not isinstance(source, ir.BlockArgument)
    if not contiguous or not ir.ShapedType(source.type).has_static_shape or 0 in sizes:
        return True
    elements = 1
    for extent in ir.ShapedType(source.type).shape:
        elements *= extent
    last = offset + sum((size - 1) * stride for size, stride in zip(sizes, strides, strict=True))
    if last >= elements and source.owner.name.startswith("linalg."):
        return _reject(op, f"reaches element {last} of a source of {elements} elements")
    return True
