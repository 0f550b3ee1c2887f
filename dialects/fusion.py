"""The `fusion` dialect: what shares a kernel, what a library does, and how each kernel is scheduled.

Ops (generic form, since the bindings define no custom syntax):

    fusion.region   operations that belong together: tensors in, tensors out, isolated from above
    fusion.kernel   a region that one schedule accepts; after fusion-plan-memory it works on memrefs
    fusion.extern   a call of a library function, an ATen overload
    fusion.view     another way to look at an operand's memory: offset, sizes, strides; costs no kernel
    fusion.random   Philox draws, pure: the seed and the offset are operands, of type tensor<i64>
    fusion.yield    ends a region or a kernel

Attributes:

    #fusion.layout<[strides], offset, alignment>      how a tensor lies in memory, in elements; alignment in bytes
    #fusion.operand<i>                                in `args` of fusion.extern: the i-th operand stands here
    #fusion.schedule<"family", {parameters}, "why">   a kernel's schedule and the reason for it
    fusion.new                                        a function's result that shares memory with no argument or result

`load(context)` lets a context hold them; it may be called any number of times. `faults(operation)` verifies.

Why the dialect is not defined with the bindings' `ext` module: that makes IRDL ops, and IRDL demands that all
operands of a variadic group have one type, which a region's inputs have not. To MLIR the ops are therefore
unregistered, and it treats them as an op that may be isolated, may have effects and may end a block: nothing
moves across them. What their verifiers would check, `faults` checks: the driver asks it after parsing and after
each pass.
"""

from __future__ import annotations

import difflib
import math
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass

from .mlir import ir

PREFIX = "fusion."
EFFECTS = ("random", "collective", "opaque")
RANDOM_KINDS = {"uniform": ("f32", "f16", "bf16"), "normal": ("f32",), "bits": ("i32",)}
"""What a draw can be of, and the element types that it can have."""
MOST_ELEMENTS = 1 << 44
"""What a tensor may have: no machine's memory holds as many, and sums of sizes fit 64 bits."""


@dataclass(frozen=True)
class Layout:
    """#fusion.layout: strides and offset in elements, alignment of the first element in bytes."""

    strides: tuple[int, ...]
    offset: int = 0
    alignment: int = 1


@dataclass(frozen=True)
class Schedule:
    """#fusion.schedule: a family, its parameters, and why they were chosen."""

    family: str
    parameters: dict[str, int | str]
    why: str


@dataclass(frozen=True)
class Fault:
    """What is wrong with an operation."""

    location: ir.Location
    message: str


def load(context: ir.Context) -> None:
    """Lets `context` hold the dialect."""
    context.allow_unregistered_dialects = True


# -- attributes


def layout(strides: Sequence[int], offset: int = 0, alignment: int = 1) -> ir.Attribute:
    """A #fusion.layout of the current context."""
    return ir.Attribute.parse(f"#fusion.layout<{list(strides)}, {offset}, {alignment}>")


def operand(index: int) -> ir.Attribute:
    """A #fusion.operand of the current context."""
    return ir.Attribute.parse(f"#fusion.operand<{index}>")


def schedule(family: str, parameters: dict[str, int | str], why: str) -> ir.Attribute:
    """A #fusion.schedule of the current context."""
    entries = ", ".join(f"{key} = {_text(value)}" for key, value in sorted(parameters.items()))
    return ir.Attribute.parse(f"#fusion.schedule<{_text(family)}, {{{entries}}}, {_text(why)}>")


def read_layout(attribute: ir.Attribute) -> Layout | None:
    """The content of a #fusion.layout; None for any other attribute."""
    match _parameters(attribute, "layout"):
        case [ir.ArrayAttr() as strides, ir.IntegerAttr() as offset, ir.IntegerAttr() as alignment]:
            if all(isinstance(stride, ir.IntegerAttr) for stride in strides):
                return Layout(tuple(integers(strides)), offset.value, alignment.value)
    return None


def read_operand(attribute: ir.Attribute) -> int | None:
    """The number in a #fusion.operand; None for any other attribute."""
    match _parameters(attribute, "operand"):
        case [ir.IntegerAttr() as index]:
            return index.value
    return None


def read_schedule(attribute: ir.Attribute) -> Schedule | None:
    """The content of a #fusion.schedule; None for any other attribute."""
    match _parameters(attribute, "schedule"):
        case [ir.StringAttr() as family, ir.DictAttr() as parameters, ir.StringAttr() as why]:
            values = {named.name: named.attr for named in parameters}
            if all(isinstance(value, ir.IntegerAttr | ir.StringAttr) for value in values.values()):
                return Schedule(family.value, {key: value.value for key, value in values.items()}, why.value)
    return None


def _parameters(attribute: ir.Attribute, mnemonic: str) -> list[ir.Attribute]:
    """What stands between the angle brackets of #fusion.mnemonic<...>; nothing for any other attribute."""
    if not isinstance(attribute, ir.OpaqueAttr) or attribute.dialect_namespace != "fusion":
        return []
    name, _, rest = str(attribute).removeprefix("#fusion.").partition("<")
    if name != mnemonic or not rest.endswith(">"):
        return []
    try:
        return list(ir.ArrayAttr(ir.Attribute.parse(f"[{rest[:-1]}]", attribute.context)))
    except ir.MLIRError:
        return []


def _text(value: int | str) -> str:
    return str(ir.StringAttr.get(value)) if isinstance(value, str) else str(value)


# -- reading ops


def terminator(op: ir.OpView | ir.Operation) -> ir.Operation:
    """The last operation of a region's or kernel's only block."""
    operations = op.operation.regions[0].blocks[0].operations
    return operations[len(operations) - 1].operation


def is_op(op: ir.OpView | ir.Operation, *names: str) -> bool:
    """Whether `op` is one of the fusion dialect's ops of these names ("region", "extern", ...)."""
    prefix, _, name = op.operation.name.partition(".")
    return prefix == "fusion" and name in names


def extern_effects(op: ir.OpView | ir.Operation) -> tuple[str, ...]:
    """The effects of a fusion.extern, empty for a pure call."""
    attributes = op.operation.attributes
    if "effects" not in attributes:
        return ()
    return tuple(ir.StringAttr(effect).value for effect in ir.ArrayAttr(attributes["effects"]))


def tied_operands(op: ir.OpView | ir.Operation) -> list[tuple[int, int]]:
    """Pairs (operand, result) of a fusion.extern: the result is the operand after the call wrote it."""
    attributes = op.operation.attributes
    if "tied" not in attributes:
        return []
    pairs = (ir.ArrayAttr(pair) for pair in ir.ArrayAttr(attributes["tied"]))
    return [(ir.IntegerAttr(pair[0]).value, ir.IntegerAttr(pair[1]).value) for pair in pairs]


def operand_numbers(attribute: ir.Attribute) -> Iterator[int]:
    """The operand numbers that occur in `args` of a fusion.extern, in order."""
    for entry in _leaves(attribute):
        number = read_operand(entry)
        if number is not None:
            yield number


def _leaves(attribute: ir.Attribute) -> Iterator[ir.Attribute]:
    """The entries of an array of arrays."""
    if not isinstance(attribute, ir.ArrayAttr):
        yield attribute
        return
    for element in attribute:
        yield from _leaves(element)


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


# -- verification


def faults(root: ir.OpView | ir.Operation, inside_bodies: bool = False, allow_unknown: bool = False) -> Iterator[Fault]:
    """What is wrong with the fusion ops in `root`, and with its functions' layouts.

    `inside_bodies` looks for unknown ops inside linalg bodies and loops too, and at the size of every value: needed
    after parsing only. Ops of
    dialects that nobody registered are faults unless `allow_unknown`.
    """
    pending = [root.operation]
    known: set[ir.Type] = set()
    while pending:
        op = pending.pop()
        if inside_bodies:
            yield from _size_faults(op, known)
        if not (allow_unknown and _is_unknown(op)):
            yield from _faults_of(op)
        if inside_bodies or op.name in _HOLDERS:
            inner = [view.operation for body in op.regions for block in body.blocks for view in block.operations]
            pending.extend(reversed(inner))


def _size_faults(op: ir.Operation, known: set[ir.Type]) -> Iterator[Fault]:
    """What no memory holds, of a type that isn't `known` yet."""
    values = [*op.results, *(argument for body in op.regions for block in body.blocks for argument in block.arguments)]
    for type_ in {value.type for value in values} - known:
        known.add(type_)
        shaped = isinstance(type_, ir.RankedTensorType | ir.MemRefType | ir.VectorType)
        if shaped and math.prod(extent for extent in type_.shape if extent > 0) > MOST_ELEMENTS:
            yield Fault(op.location, f"no memory holds a value of type {type_}")


_HOLDERS = ("builtin.module", "func.func", "fusion.region", "fusion.kernel")


def _faults_of(op: ir.Operation) -> Iterator[Fault]:
    if op.name == "func.func":
        messages = _function_faults(op)
    elif op.name in ("tensor.collapse_shape", "tensor.expand_shape"):
        messages = _reassociation_faults(op)
    elif op.name in _VERIFIERS:
        messages = (f"'{op.name}' op {message}" for message in _VERIFIERS[op.name](op))
    elif _is_unknown(op):
        messages = [_unknown(op.name)]
    else:
        return
    for message in messages:
        yield Fault(op.location, message)
        return


def _is_unknown(op: ir.Operation) -> bool:
    return op.name not in _VERIFIERS and not op.context.is_registered_operation(op.name)


def _unknown(name: str) -> str:
    near = difflib.get_close_matches(name, _VERIFIERS, n=1, cutoff=0.6)
    return f"unregistered operation '{name}'" + (f"; did you mean '{near[0]}'?" if near else "")


def _function_faults(op: ir.Operation) -> Iterator[str]:
    for block in op.regions[0].blocks:
        last = block.operations[len(block.operations) - 1].operation
        # MLIR lets an operation that it doesn't know end a block
        if not op.context.is_registered_operation(last.name):
            yield f"'{last.name}' op can't end a block of a function: a return must"
    for which in ("arg_attrs", "res_attrs"):
        if which not in op.attributes:
            continue
        function = ir.FunctionType(ir.TypeAttr(op.attributes["function_type"]).value)
        types = function.inputs if which == "arg_attrs" else function.results
        for number, (type_, entry) in enumerate(zip(types, ir.ArrayAttr(op.attributes[which]), strict=True)):
            where = f"{'argument' if which == 'arg_attrs' else 'result'} {number}"
            if "fusion.layout" in ir.DictAttr(entry):
                yield from _layout_faults(ir.DictAttr(entry)["fusion.layout"], type_, where)
            if "fusion.shape" in ir.DictAttr(entry):
                yield from _shape_faults(ir.DictAttr(entry)["fusion.shape"], type_, where)


def _reassociation_faults(op: ir.Operation) -> Iterator[str]:
    """MLIR verifies the sizes of a reshape, and takes the dimensions for granted (of one from or to rank 0, none)."""
    long = op.operands[0] if op.name == "tensor.collapse_shape" else op.results[0]
    groups = [integers(group) for group in ir.ArrayAttr(op.attributes["reassociation"])]
    if groups and [number for group in groups for number in group] != list(range(ir.ShapedType(long.type).rank)):
        yield f"'{op.name}' op has dimensions {groups}, which are not those of {long.type} in order"


def _shape_faults(attribute: ir.Attribute, type_: ir.Type, where: str) -> Iterator[str]:
    entries = list(attribute) if isinstance(attribute, ir.ArrayAttr) else []
    if not isinstance(attribute, ir.ArrayAttr) or not all(
        isinstance(entry, ir.StringAttr | ir.IntegerAttr) for entry in entries
    ):
        yield f'the shape of {where} must be an array of numbers and expressions, such as ["s0", 8], got {attribute}'
    elif str(type_).startswith("!torch.vtensor<"):
        return  # checked when it is a builtin tensor
    elif not isinstance(type_, ir.ShapedType) or ir.ShapedType(type_).rank != len(entries):
        yield f"the shape of {where} has {len(entries)} entries for a type {type_}"


def _layout_faults(attribute: ir.Attribute, type_: ir.Type, where: str) -> Iterator[str]:
    found = read_layout(attribute)
    if found is None:
        yield f"the layout of {where} must be #fusion.layout<[strides], offset, alignment>, got {attribute}"
    elif str(type_).startswith("!torch.vtensor<"):
        return  # checked when it is a builtin tensor
    elif not isinstance(type_, ir.ShapedType):
        yield f"{where} of type {type_} can't have a layout"
    elif len(found.strides) != ir.ShapedType(type_).rank:
        yield f"the layout of {where} has {len(found.strides)} strides for a tensor of type {type_}"
    elif found.offset < 0 or any(stride < 0 for stride in found.strides):
        yield f"the layout of {where} has a negative offset or stride"
    elif found.alignment < 1 or found.alignment & (found.alignment - 1):
        yield f"the layout of {where} has alignment {found.alignment}, which is not a power of two"
    elif _reach(found.offset, ir.ShapedType(type_).shape, found.strides) > MOST_ELEMENTS:
        yield f"the layout of {where} reaches further than any memory"


def _types(values: Sequence[ir.Value]) -> list[ir.Type]:
    return [value.type for value in values]


def _string(op: ir.Operation, name: str) -> str | None:
    if name not in op.attributes or not isinstance(op.attributes[name], ir.StringAttr):
        return None
    return ir.StringAttr(op.attributes[name]).value


def _yield_faults(op: ir.Operation) -> Iterator[str]:
    if op.parent is None or op.parent.name not in ("fusion.region", "fusion.kernel"):
        yield "must end a fusion.region or a fusion.kernel"
    elif terminator(op.parent) != op:
        yield "must be the last operation of its block"


def _region_faults(op: ir.Operation) -> Iterator[str]:
    yield from _body_faults(op)
    arguments = _types(op.regions[0].blocks[0].arguments)
    yield from _type_faults("operand", _types(op.operands), arguments, "block argument")
    yield from _type_faults("result", _types(op.results), _types(terminator(op).operands), "yielded value")
    yield from _isolation_faults(op)


def _body_faults(op: ir.Operation) -> Iterator[str]:
    blocks = [block for body in op.regions for block in body.blocks]
    if len(blocks) != 1:
        yield f"must have a body of one block, got {len(blocks)}"
    elif len(blocks[0].operations) == 0 or terminator(op).name != "fusion.yield":
        yield "must end with fusion.yield"


def _type_faults(what: str, outer: list[ir.Type], inner: list[ir.Type], inner_name: str) -> Iterator[str]:
    if len(outer) != len(inner):
        yield f"has {len(outer)} {what}s but {len(inner)} {inner_name}s"
        return
    for number, (one, other) in enumerate(zip(outer, inner, strict=True)):
        if one != other:
            yield f"{what} {number} has type {one} but {inner_name} {number} has type {other}"


def _isolation_faults(op: ir.Operation) -> Iterator[str]:
    """Everything used inside is defined inside."""
    pending = [op]
    known: set[ir.Value] = set()
    while pending:
        for body in pending.pop().regions:
            for block in body.blocks:
                known.update(block.arguments)
                for view in block.operations:
                    if not known.issuperset(view.operation.operands):
                        yield f"is isolated from above, but its '{view.operation.name}' uses a value from outside"
                        return
                    known.update(view.operation.results)
                    pending.append(view.operation)


def _kernel_faults(op: ir.Operation) -> Iterator[str]:
    if not _string(op, "name"):
        yield "needs a string attribute 'name'"
    if "schedule" in op.attributes and read_schedule(op.attributes["schedule"]) is None:
        yield '\'schedule\' must be #fusion.schedule<"family", {parameters}, "why">'
    if "batch" in op.attributes and not isinstance(op.attributes["batch"], ir.IntegerAttr):
        yield "'batch' must be an integer: kernels of one number run in one launch"
    segments = list(ir.DenseI32ArrayAttr(op.attributes["operandSegmentSizes"])) if _has_segments(op) else []
    if len(segments) != 2 or min(segments) < 0 or sum(segments) != len(op.operands):
        yield "needs 'operandSegmentSizes = array<i32: ins, outs>'"
        return
    yield from _body_faults(op)
    operands = list(op.operands)
    ins, outs = operands[: segments[0]], operands[segments[0] :]
    arguments, yielded = _types(op.regions[0].blocks[0].arguments), _types(terminator(op).operands)
    if any(isinstance(value.type, ir.MemRefType) for value in operands):
        yield from _memory_faults(op, _types(ins), _types(outs), arguments, yielded)
    elif outs:
        yield "on tensors has results, not 'outs'"
    else:
        yield from _type_faults("operand", _types(ins), arguments, "block argument")
        yield from _type_faults("result", _types(op.results), yielded, "yielded value")
    yield from _isolation_faults(op)


def _has_segments(op: ir.Operation) -> bool:
    name = "operandSegmentSizes"
    return name in op.attributes and isinstance(op.attributes[name], ir.DenseI32ArrayAttr)


def _memory_faults(
    op: ir.Operation,
    ins: Sequence[ir.Type],
    outs: Sequence[ir.Type],
    arguments: Sequence[ir.Type],
    yielded: Sequence[ir.Type],
) -> Iterator[str]:
    """On memrefs, what is yielded is stored to `outs`; the body's arguments are the contents of `ins`."""
    if len(op.results):
        yield "on memrefs stores to 'outs' and has no results"
    if len(ins) != len(arguments) or len(outs) != len(yielded):
        yield "needs a block argument for each of 'ins' and a yielded value for each of 'outs'"
        return
    for memory, tensor in [*zip(ins, arguments, strict=True), *zip(outs, yielded, strict=True)]:
        if not _holds(memory, tensor):
            yield f"a memref of type {memory} can't hold a tensor of type {tensor}"


def _holds(memory: ir.Type, tensor: ir.Type) -> bool:
    if not isinstance(tensor, ir.RankedTensorType):
        return memory == tensor
    if not isinstance(memory, ir.MemRefType):
        return False
    same_shape = list(memory.shape) == list(tensor.shape)
    return same_shape and memory.element_type == storage_type(tensor.element_type)


def _extern_faults(op: ir.Operation) -> Iterator[str]:
    name = _string(op, "op")
    if not name or name.count(".") < 1:
        yield "needs a string attribute 'op' such as \"aten.mm.default\""
    if "args" not in op.attributes or not isinstance(op.attributes["args"], ir.ArrayAttr):
        yield "needs an array attribute 'args', one entry a schema argument"
        return
    for entry in _leaves(op.attributes["args"]):
        if isinstance(entry, ir.OpaqueAttr) and read_operand(entry) is None:
            yield f"'args' holds {entry}, which is neither a constant nor #fusion.operand<i>"
    used = set(operand_numbers(op.attributes["args"]))
    count = len(op.operands)
    for number in sorted(used - set(range(count))):
        yield f"'args' names operand {number}, but there are {count} operands"
    for number in sorted(set(range(count)) - used):
        yield f"operand {number} does not occur in 'args'"
    yield from _extern_option_faults(op)


def _extern_option_faults(op: ir.Operation) -> Iterator[str]:
    for name, noun, count in (("dtypes", "operand", len(op.operands)), ("result_layouts", "result", len(op.results))):
        entries = op.attributes[name] if name in op.attributes else None
        if entries is not None and (not isinstance(entries, ir.ArrayAttr) or len(entries) != count):
            yield f"'{name}' must be an array with one entry for each {noun}, {count} in all"
    if "effects" in op.attributes and not _is_array_of(op.attributes["effects"], ir.StringAttr):
        yield "'effects' must be an array of strings"
        return
    for effect in extern_effects(op):
        if effect not in EFFECTS:
            yield f"effect {effect!r} is not one of {', '.join(EFFECTS)}"
    if "tied" in op.attributes and not _is_array_of_pairs(op.attributes["tied"]):
        yield "'tied' must be an array of pairs [operand, result]"
        return
    for operand_number, result_number in tied_operands(op):
        yield from _tied_faults(op, operand_number, result_number)


def _is_array_of(attribute: ir.Attribute, kind: type) -> bool:
    return isinstance(attribute, ir.ArrayAttr) and all(isinstance(element, kind) for element in attribute)


def _is_array_of_pairs(attribute: ir.Attribute) -> bool:
    if not _is_array_of(attribute, ir.ArrayAttr):
        return False
    return all(len(pair) == 2 and _is_array_of(pair, ir.IntegerAttr) for pair in ir.ArrayAttr(attribute))


def _tied_faults(op: ir.Operation, operand_number: int, result_number: int) -> Iterator[str]:
    if not (0 <= operand_number < len(op.operands) and 0 <= result_number < len(op.results)):
        yield f"'tied' names operand {operand_number} and result {result_number}: out of range"
        return
    old, new = op.operands[operand_number], op.results[result_number]
    if old.type != new.type:
        yield f"tied operand {operand_number} has type {old.type}, its result {new.type}"
    for use in old.uses:
        user = use.owner.operation
        if user != op and user.block == op.block and op.is_before_in_block(user):
            yield f"operand {operand_number} is written here but its old value is used later"


def _view_faults(op: ir.Operation) -> Iterator[str]:
    missing = [name for name in ("offset", "sizes", "strides") if name not in op.attributes]
    if missing or len(op.operands) != 1 or len(op.results) != 1:
        yield "needs one operand, one result and the attributes 'offset', 'sizes' and 'strides'"
        return
    if not all(isinstance(value.type, ir.ShapedType) for value in (op.operands[0], op.results[0])):
        yield "views tensors, as tensors"
        return
    if not isinstance(op.attributes["offset"], ir.IntegerAttr):
        yield "'offset' must be an integer"
        return
    if not all(_is_integers(op.attributes[name]) for name in ("sizes", "strides")):
        yield "'sizes' and 'strides' must be arrays of integers"
        return
    yield from _view_shape_faults(op)


def _is_integers(attribute: ir.Attribute) -> bool:
    return isinstance(attribute, ir.DenseI64ArrayAttr) or _is_array_of(attribute, ir.IntegerAttr)


def _view_shape_faults(op: ir.Operation) -> Iterator[str]:
    sizes, strides = integers(op.attributes["sizes"]), integers(op.attributes["strides"])
    offset = ir.IntegerAttr(op.attributes["offset"]).value
    result = ir.ShapedType(op.results[0].type)
    if len(sizes) != len(strides) or len(sizes) != result.rank:
        yield f"needs {result.rank} sizes and strides, got {len(sizes)} and {len(strides)}"
    elif result.has_static_shape and list(result.shape) != sizes:
        yield f"has sizes {sizes} but its result has shape {list(result.shape)}"
    elif offset < 0 or any(stride < 0 for stride in strides):
        yield "needs an offset and strides that are not negative"
    elif _reach(offset, sizes, strides) > MOST_ELEMENTS:
        yield "reaches further than any memory"
    else:
        yield from _view_bound_faults(op, offset, sizes, strides)


def _reach(offset: int, sizes: Sequence[int], strides: Sequence[int]) -> int:
    """The last element of a view; dynamic sizes, which are negative, count as 1."""
    return offset + sum(max(size - 1, 0) * stride for size, stride in zip(sizes, strides, strict=True))


def _view_bound_faults(op: ir.Operation, offset: int, sizes: list[int], strides: list[int]) -> Iterator[str]:
    """A source that an op of ours computes is contiguous: the view must stay inside of it."""
    source = op.operands[0]
    if isinstance(source, ir.BlockArgument) or source.owner.name not in ("linalg.generic", "fusion.region"):
        return
    if not ir.ShapedType(source.type).has_static_shape or 0 in sizes:
        return
    elements = 1
    for extent in ir.ShapedType(source.type).shape:
        elements *= extent
    last = _reach(offset, sizes, strides)
    if last >= elements:
        yield f"reaches element {last} of a source of {elements} elements"


def _random_faults(op: ir.Operation) -> Iterator[str]:
    kind = _string(op, "kind")
    if kind not in RANDOM_KINDS:
        yield f"'kind' must be one of {', '.join(RANDOM_KINDS)}, got {kind!r}"
    if len(op.operands) != 2 or len(op.results) != 1:
        yield "needs two operands, seed and offset, and one result"
        return
    for name, operand in zip(("seed", "offset"), op.operands, strict=True):
        if str(operand.type) != "tensor<i64>":
            yield f"the {name} must be a tensor<i64>, got {operand.type}"
    allowed = RANDOM_KINDS.get(kind or "", ())
    found = op.results[0].type
    element = str(found.element_type) if isinstance(found, ir.RankedTensorType) else str(found)
    if allowed and element not in allowed:
        yield f"numbers of kind {kind!r} are elements of type {' or '.join(allowed)}, got {found}"


_VERIFIERS: dict[str, Callable[[ir.Operation], Iterator[str]]] = {
    "fusion.region": _region_faults,
    "fusion.kernel": _kernel_faults,
    "fusion.extern": _extern_faults,
    "fusion.view": _view_faults,
    "fusion.random": _random_faults,
    "fusion.yield": _yield_faults,
}
