"""Gives every tensor its memory: kernels store to buffers, buffers of our own lie in pools.

Before, values are tensors; a kernel returns what it computes:

    func.func @main(%x: tensor<64x64xf32>, %w: tensor<64x64xf32>) -> tensor<64x64xf32> {
      %a = "fusion.kernel"(%x) ({...}) {name = "relu", ...} : (tensor<64x64xf32>) -> tensor<64x64xf32>
      %b = "fusion.extern"(%a, %w) {op = "aten.mm.default", ...} : (...) -> tensor<64x64xf32>
      %c = "fusion.kernel"(%b) ({...}) {name = "gelu", ...} : (tensor<64x64xf32>) -> tensor<64x64xf32>
      return %c : tensor<64x64xf32>
    }

After, they are memrefs; a kernel stores to buffers it is given, and a library allocates its own results:

    func.func @main(%x: memref<64x64xf32>, %w: memref<64x64xf32>) -> memref<64x64xf32> {
      %pool = memref.alloc() {alignment = 256 : i64} : memref<16384xi8>
      %a = memref.view %pool[%c0][] : memref<16384xi8> to memref<64x64xf32>
      "fusion.kernel"(%x, %a) ({...}) {name = "relu", operandSegmentSizes = array<i32: 1, 1>} : (...) -> ()
      %b = "fusion.extern"(%a, %w) {op = "aten.mm.default", ...} : (...) -> memref<64x64xf32>
      memref.dealloc %pool : memref<16384xi8>
      "fusion.kernel"(%b, %b) ({...}) {name = "gelu", ...} : (...) -> ()      // pointwise: in place
      return %b : memref<64x64xf32>
    }

What is returned is an allocation of its own (or the library's result, or an argument). Everything else lies
in pools, at offsets chosen by lifetime (buffers.py); a pool is allocated before its first writer and freed
after its last reader, as library results are. A pointwise kernel may overwrite an input that dies with it.

Layouts: a #fusion.layout on an argument, a result or a library's result (`result_layouts`, one entry a result, unit
where there is nothing to say) becomes a strided memref; otherwise memory is row-major. Booleans take a byte,
and what torch calls the dtype is then said by `fusion.dtype` on arguments and results and by `dtypes` of
fusion.extern. Constants move to `memref.global`.

Needs: a body of fusion.kernel, fusion.extern, fusion.view, constants and return, of static sizes.
Leaves: no tensor in any function body, but for the insides of kernels.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Sequence
from dataclasses import dataclass
from typing import ClassVar

from ..dialects import fusion
from ..dialects.mlir import ir
from .buffers import ALIGNMENT, Buffer, Pool, plan_pools
from .constant_globals import ConstantGlobals
from .errors import PassFailure
from .graph import functions
from .lifetimes import Storage, Storages, prescribed_layouts
from .memref_types import contiguous_memref, dtype_name, is_tensor, laid_out_memref, strided_memref
from .pass_base import Pass


@dataclass(frozen=True)
class FusionPlanMemory(Pass):
    """Turns tensors into buffers, and packs those of our own into pools by lifetime."""

    name: ClassVar[str] = "fusion-plan-memory"

    in_place: bool = True
    """Whether a pointwise kernel may overwrite an input that nobody reads afterwards."""

    def run(self, module: ir.Module) -> None:
        constants = ConstantGlobals(module)
        for function in list(functions(module)):
            _refuse_unplannable(function)
            _Rewriter(function, self.in_place, constants).rewrite()


def _refuse_unplannable(function: ir.Operation) -> None:
    """Raises where the body holds something that has no place in it at this level."""
    if len(function.regions[0].blocks) != 1:
        raise PassFailure(function.location, "has several blocks; memory is planned for straight-line code")
    block = function.regions[0].blocks[0]
    for argument in block.arguments:
        _refuse_type(argument, function.location)
    for op in block.operations:
        for result in op.operation.results:
            _refuse_type(result, op.location)
        if _touches_tensors(op.operation) and op.operation.name not in _REWRITES:
            hint = "run fusion-segment first"
            raise PassFailure(op.location, f"'{op.operation.name}' op is not part of a fusion.kernel; {hint}")


def _refuse_type(value: ir.Value, location: ir.Location) -> None:
    if isinstance(value.type, ir.UnrankedTensorType):
        raise PassFailure(location, f"a tensor of unknown rank has no size in memory: {value.type}")
    if is_tensor(value) and not value.type.has_static_shape:
        raise PassFailure(location, f"memory is planned for static sizes only, got {value.type}")
    if is_tensor(value) and not isinstance(value.type.element_type, ir.FloatType | ir.IntegerType | ir.ComplexType):
        raise PassFailure(location, f"memory is planned for numbers of a known width, got {value.type}")


def _touches_tensors(op: ir.Operation) -> bool:
    return any(is_tensor(value) for value in [*op.operands, *op.results])


class _Rewriter:
    """Rewrites one function; operations are rebuilt in front of the old ones, which then go."""

    def __init__(self, function: ir.Operation, in_place: bool, constants: ConstantGlobals) -> None:
        self.function = function
        self.block = function.regions[0].blocks[0]
        self.constants = constants
        self.pinned = prescribed_layouts(function)
        self.storages = Storages(self.block, in_place, frozenset(self.pinned))
        self.argument_types = {argument: argument.type for argument in self.block.arguments}
        self.memory: dict[ir.Value, ir.Value] = {}
        self.buffers: dict[tuple[int, ir.Type], ir.Value] = {}
        self.rewritten: dict[ir.Value, ir.Value] = {}
        self.places: dict[int, tuple[ir.Value, int]] = {}
        self.opening: dict[int, list[tuple[Pool, list[Storage]]]] = defaultdict(list)
        self.closing: dict[int, list[ir.Value]] = defaultdict(list)
        self._plan_pools()

    def rewrite(self) -> None:
        self._note_result_dtypes()
        self._retype_arguments()
        for step, op in enumerate(self.storages.operations):
            with ir.InsertionPoint(op), op.location:
                self._open_pools(step)
                _REWRITES.get(op.name, _Rewriter.copy)(self, step, op)
                for value in self.closing[step]:
                    ir.Operation.create("memref.dealloc", operands=[self._latest(value)])
        for op in reversed(self.storages.operations):
            op.erase()
        self._retype_function()

    def _plan_pools(self) -> None:
        steps = len(self.storages.operations)
        pooled: list[Storage] = []
        others: list[Buffer] = []
        for storage in self.storages.distinct():
            if storage.kind == "kernel" and not storage.escapes and storage.size:
                pooled.append(storage)
            elif storage.kind in ("kernel", "extern"):
                end = steps - 1 if storage.escapes else storage.end
                others.append(Buffer(storage.start, end, storage.size))
        buffers = [Buffer(storage.start, storage.end, storage.size) for storage in pooled]
        for pool in plan_pools(buffers, steps, others):
            self.opening[pool.start].append((pool, [pooled[number] for number in pool.offsets]))

    def _open_pools(self, step: int) -> None:
        for pool, members in self.opening[step]:
            allocation = _allocate(ir.MemRefType.get([pool.size], ir.IntegerType.get_signless(8)), ALIGNMENT)
            self.closing[pool.end].append(allocation)
            for storage, offset in zip(members, pool.offsets.values(), strict=True):
                self.places[id(storage)] = (allocation, offset)

    def _retype_arguments(self) -> None:
        notes = _notes(self.function, "arg_attrs", len(self.block.arguments))
        for argument, note in zip(self.block.arguments, notes, strict=True):
            if is_tensor(argument):
                _note_boolean(argument.type, note)
                argument.set_type(laid_out_memref(argument.type, note.get("fusion.layout")))
            self.memory[argument] = argument
        _set_notes(self.function, "arg_attrs", notes)

    def _note_result_dtypes(self) -> None:
        returned = list(self.storages.operations[-1].operands)
        notes = _notes(self.function, "res_attrs", len(returned))
        for value, note in zip(returned, notes, strict=True):
            if is_tensor(value):
                _note_boolean(value.type, note)
        _set_notes(self.function, "res_attrs", notes)

    def _retype_function(self) -> None:
        inputs = [argument.type for argument in self.block.arguments]
        terminator = self.block.operations[len(self.block.operations) - 1].operation
        results = [value.type for value in terminator.operands]
        self.function.attributes["function_type"] = ir.TypeAttr.get(ir.FunctionType.get(inputs, results))

    def kernel(self, step: int, op: ir.Operation) -> None:
        """Gives a kernel buffers to store to; one that has nothing to store is dropped."""
        outs = [self._buffer(step, result) for result in op.results]
        for result, buffer in zip(op.results, outs, strict=True):
            self.memory[result] = buffer
        if all(self.storages.of[result].size == 0 for result in op.results):
            return
        ins = [self.memory[operand] for operand in op.operands]
        attributes = {name: op.attributes[name] for name in op.attributes}
        attributes["operandSegmentSizes"] = ir.DenseI32ArrayAttr.get([len(ins), len(outs)])
        attributes.pop("resultSegmentSizes", None)
        kernel = ir.Operation.create(op.name, operands=[*ins, *outs], attributes=attributes, regions=1)
        op.regions[0].blocks[0].append_to(kernel.regions[0])

    def _buffer(self, step: int, tensor: ir.Value) -> ir.Value:
        """Where a kernel stores a result: in a pool, in memory it takes over, or an allocation of its own."""
        storage = self.storages.of[tensor]
        memory_type = laid_out_memref(tensor.type, self.pinned.get(tensor))
        key = (id(storage), memory_type)
        if key not in self.buffers:
            if id(storage) in self.places:
                self.buffers[key] = _view_pool(*self.places[id(storage)], memory_type)
            else:
                self.buffers[key] = _allocate(memory_type)
                self._close_after_last_reader(storage, self.buffers[key])
        return self.buffers[key]

    def _latest(self, memory: ir.Value) -> ir.Value:
        """What names this memory after the calls that wrote it: the old name may not be used any more."""
        while memory in self.rewritten:
            memory = self.rewritten[memory]
        return memory

    def _close_after_last_reader(self, storage: Storage, memory: ir.Value) -> None:
        if not storage.escapes:
            self.closing[storage.end].append(memory)

    def extern(self, step: int, op: ir.Operation) -> None:
        """Lets the library allocate its results; a tied one lies where its operand does."""
        operands = [self.memory[operand] for operand in op.operands]
        original = [self.argument_types.get(operand, operand.type) for operand in op.operands]
        tied = {result: operand for operand, result in fusion.tied_operands(op)}
        layouts = list(ir.ArrayAttr(op.attributes["result_layouts"])) if "result_layouts" in op.attributes else []
        layouts += [None] * (len(op.results) - len(layouts))
        types = [
            operands[tied[number]].type if number in tied else _memory_type(result, layouts[number])
            for number, result in enumerate(op.results)
        ]
        call = ir.Operation.create(op.name, operands=operands, results=types, attributes=_extern_notes(op, original))
        for number, (old, new) in enumerate(zip(op.results, call.results, strict=True)):
            self.memory[old] = new
            if number in tied:
                self.rewritten[operands[tied[number]]] = new
            elif is_tensor(old):
                storage = self.storages.of[old]
                self.buffers[id(storage), new.type] = new
                self._close_after_last_reader(storage, new)

    def view(self, step: int, op: ir.Operation) -> None:
        source, result = self.memory[op.operands[0]], op.results[0]
        if source.type.element_type != fusion.storage_type(result.type.element_type):
            raise PassFailure(op.location, f"'{op.name}' op can't change the element type of {source.type}")
        sizes, strides = fusion.integers(op.attributes["sizes"]), fusion.integers(op.attributes["strides"])
        offset = source.type.get_strides_and_offset()[1] + ir.IntegerAttr(op.attributes["offset"]).value
        cast = ir.Operation.create(
            "memref.reinterpret_cast",
            operands=[source],
            results=[strided_memref(result.type, strides, offset)],
            attributes={
                "static_offsets": ir.DenseI64ArrayAttr.get([offset]),
                "static_sizes": ir.DenseI64ArrayAttr.get(sizes),
                "static_strides": ir.DenseI64ArrayAttr.get(strides),
                "operandSegmentSizes": ir.DenseI32ArrayAttr.get([1, 0, 0, 0]),
            },
        )
        self.memory[result] = cast.results[0]

    def constant(self, step: int, op: ir.Operation) -> None:
        if not is_tensor(op.results[0]):
            return self.copy(step, op)
        memory = contiguous_memref(op.results[0].type)
        name = self.constants.name(op.attributes["value"], memory, op.location)
        attributes = {"name": ir.FlatSymbolRefAttr.get(name)}
        get = ir.Operation.create("memref.get_global", results=[memory], attributes=attributes)
        self.memory[op.results[0]] = get.results[0]

    def copy(self, step: int, op: ir.Operation) -> None:
        """Rebuilds an operation that only handles scalars, or a return, on the new values."""
        copied = ir.Operation.create(
            op.name,
            operands=[self.memory[operand] for operand in op.operands],
            results=[result.type for result in op.results],
            attributes={name: op.attributes[name] for name in op.attributes},
        )
        self.memory.update(zip(op.results, copied.results, strict=True))


_REWRITES = {
    "fusion.kernel": _Rewriter.kernel,
    "fusion.extern": _Rewriter.extern,
    "fusion.view": _Rewriter.view,
    "arith.constant": _Rewriter.constant,
    "func.return": _Rewriter.copy,
}


def _allocate(memory: ir.MemRefType, alignment: int | None = None) -> ir.Value:
    attributes: dict[str, ir.Attribute] = {"operandSegmentSizes": ir.DenseI32ArrayAttr.get([0, 0])}
    if alignment is not None:
        attributes["alignment"] = ir.IntegerAttr.get(ir.IntegerType.get_signless(64), alignment)
    return ir.Operation.create("memref.alloc", results=[memory], attributes=attributes).results[0]


def _view_pool(pool: ir.Value, offset: int, memory: ir.MemRefType) -> ir.Value:
    index = ir.IntegerAttr.get(ir.IndexType.get(), offset)
    position = ir.Operation.create("arith.constant", results=[ir.IndexType.get()], attributes={"value": index}).results[
        0
    ]
    return ir.Operation.create("memref.view", operands=[pool, position], results=[memory]).results[0]


def _memory_type(value: ir.Value, layout: ir.Attribute | None) -> ir.Type:
    return laid_out_memref(value.type, layout) if is_tensor(value) else value.type


def _extern_notes(op: ir.Operation, types: Sequence[ir.Type]) -> dict[str, ir.Attribute]:
    """The attributes of a call on operands of these types, which are those before memory was planned.

    `dtypes` is added where a boolean is about to become a byte.
    """
    attributes = {name: op.attributes[name] for name in op.attributes}
    attributes.pop("result_layouts", None)
    if "dtypes" not in attributes and any(_is_boolean(operand_type) for operand_type in types):
        elements = [
            operand_type.element_type if isinstance(operand_type, ir.RankedTensorType) else operand_type
            for operand_type in types
        ]
        attributes["dtypes"] = ir.ArrayAttr.get([ir.StringAttr.get(dtype_name(each)) for each in elements])
    return attributes


def _is_boolean(tensor: ir.Type) -> bool:
    if not isinstance(tensor, ir.RankedTensorType):
        return False
    return fusion.storage_type(tensor.element_type) != tensor.element_type


def _notes(function: ir.Operation, name: str, count: int) -> list[dict[str, ir.Attribute]]:
    """The attributes of a function's arguments or results, one dictionary each."""
    if name not in function.attributes:
        return [{} for _ in range(count)]
    dictionaries = [ir.DictAttr(entry) for entry in ir.ArrayAttr(function.attributes[name])]
    return [{named.name: named.attr for named in entry} for entry in dictionaries]


def _set_notes(function: ir.Operation, name: str, notes: Sequence[dict[str, ir.Attribute]]) -> None:
    if any(notes):
        function.attributes[name] = ir.ArrayAttr.get([ir.DictAttr.get(note) for note in notes])


def _note_boolean(tensor: ir.Type, note: dict[str, ir.Attribute]) -> None:
    if _is_boolean(tensor):
        note.setdefault("fusion.dtype", ir.StringAttr.get("bool"))
