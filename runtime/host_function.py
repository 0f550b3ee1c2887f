"""What a host function needs besides its code, read from its operations.

The code (passes/fusion_host_to_llvm.py) counts allocations, constants, library calls and launches in the order of the
function; here is what belongs to each number. A library is handed tensors: a memref of a pool, or one that is cast, is
made a tensor from the object that owns its memory (`View`).

Kernels get a memref's base pointer, as MLIR's bare-pointer convention has it: a memref type with an offset
means that the kernel adds the offset itself.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field

import torch

from ..dialects import fusion
from ..dialects.mlir import ir
from .arguments import ScalarArgument, TensorArgument, row_major_strides
from .constants import Constants
from .dtypes import dtype_named, dtype_of
from .extern_call import LibraryCall, read_call
from .launch import Launch
from .library_results import Expected
from .profiling import source_of

Dtypes = Sequence[torch.dtype | None] | None
View = Callable[[torch.Tensor], torch.Tensor]


@dataclass
class Allocation:
    """A tensor that a call makes."""

    shape: tuple[int, ...]
    strides: tuple[int, ...]
    dtype: torch.dtype
    first_user: Launch | None = None
    """Who writes it; for messages."""

    def __str__(self) -> str:
        """For messages: its size, and for whom it is."""
        size = f"{list(self.shape)} of {self.dtype}"
        return size if self.first_user is None else f"{size} for {self.first_user}"


@dataclass(frozen=True)
class Operand:
    """What a library is handed: the object itself, or what is made of it."""

    view: View | None
    dtype: torch.dtype | None

    def of(self, value: object) -> object:
        """The operand, from the object that owns its memory."""
        if self.view is not None:
            value = self.view(value)  # pyright: ignore[reportArgumentType]
        if self.dtype is not None and value.dtype is not self.dtype:  # pyright: ignore[reportAttributeAccessIssue]
            return value.view(self.dtype)  # pyright: ignore[reportAttributeAccessIssue]
        return value


@dataclass(frozen=True)
class Library:
    """A library call."""

    name: str
    call: LibraryCall
    operands: tuple[Operand, ...]
    outputs: tuple[Expected | None, ...]
    """What each result must be; None for one that is an operand after the call wrote it."""


@dataclass(frozen=True)
class Result:
    """A result of the function: an argument as the caller gave it, or an object of the call's own."""

    first: int
    """The number of the first result that is the same value."""
    argument: int | None = None
    is_constant: bool = False
    """The caller gets a copy."""
    view: View | None = None
    dtype: torch.dtype | None = None
    made_with: torch.dtype | None = None
    """The dtype that the object has where that is known."""


@dataclass
class HostFunction:
    """A host function, read."""

    arguments: list[TensorArgument | ScalarArgument] = field(default_factory=list)
    allocations: list[Allocation] = field(default_factory=list)
    constants: list[torch.Tensor] = field(default_factory=list)
    libraries: list[Library] = field(default_factory=list)
    launches: list[Launch] = field(default_factory=list)
    stretches: list[list[Launch]] = field(default_factory=list)
    """Two or more launches with no library call between them."""
    results: list[Result] = field(default_factory=list)
    written_arguments: list[int] = field(default_factory=list)
    """The arguments that a library call writes."""


def read_host_function(
    host: ir.Module,
    result_dtypes: Dtypes = None,
    argument_dtypes: Dtypes = None,
    entry: str = "main",
) -> HostFunction:
    """Reads a function; ValueError for what it can't have.

    `argument_dtypes` and `result_dtypes` say what MLIR's types don't (uint8, for one); where absent, or None
    for one of them, the attribute `fusion.dtype` and then the element type decide.
    """
    function = find_function(host, entry)
    reader = _Reader(host, _read_arguments(function, argument_dtypes), _read_result_dtypes(function, result_dtypes))
    for number, argument in enumerate(function.regions[0].blocks[0].arguments):
        given = reader.found.arguments[number]
        dtype = given.dtype if isinstance(given, TensorArgument) else None
        reader.places[argument] = _Place(argument=number, dtype=dtype)
    for view in function.regions[0].blocks[0].operations:
        reader.read(view.operation)
    return reader.found


@dataclass
class _Place:
    """Where a value lies: in which object, as which part of it."""

    argument: int | None = None
    allocation: Allocation | None = None
    is_constant: bool = False
    view: View | None = None
    dtype: torch.dtype | None = None
    """Of an argument, or of a library's result where only one dtype is accepted."""

    def inside(self, view: View) -> _Place:
        """A part of it."""
        outer = self.view
        composed = view if outer is None else lambda owner: view(outer(owner))
        return _Place(self.argument, self.allocation, self.is_constant, composed, self.dtype)


class _Reader:
    def __init__(
        self,
        host: ir.Module,
        arguments: list[TensorArgument | ScalarArgument],
        result_dtypes: Sequence[torch.dtype | None],
    ) -> None:
        self.found = HostFunction(arguments)
        self.places: dict[ir.Value, _Place] = {}
        self._constants: dict[ir.Value, int | float] = {}
        self._globals = Constants(host)
        self._result_dtypes = result_dtypes
        self._stretch: list[Launch] = []

    def read(self, op: ir.Operation) -> None:
        """Notes what belongs to an operation."""
        reading = _READINGS.get(op.name)
        if op.name.startswith("arith.") and reading is None:
            return
        if reading is None:
            raise ValueError(f"{op.location}: the host program can't execute '{op.name}'")
        reading(self, op)

    def constant(self, op: ir.Operation) -> None:
        self._constants[op.results[0]] = op.attributes["value"].value  # pyright: ignore[reportAttributeAccessIssue]

    def alloc(self, op: ir.Operation) -> None:
        memory = op.results[0].type
        if not memory.has_static_shape:
            raise ValueError(f"{op.location}: the host program allocates static sizes only, got {memory}")
        made = Allocation(tuple(memory.shape), memref_strides(memory), dtype_of(memory.element_type))
        self.found.allocations.append(made)
        self.places[op.results[0]] = _Place(allocation=made)

    def view(self, op: ir.Operation) -> None:
        """A piece of a pool."""
        memory, start = op.results[0].type, int(self._constants[op.operands[1]])
        shape, dtype = tuple(memory.shape), dtype_of(memory.element_type)
        end = start + torch.Size(shape).numel() * dtype.itemsize
        self.places[op.results[0]] = self.places[op.operands[0]].inside(
            lambda pool: pool[start:end].view(dtype).view(shape)
        )

    def reinterpret_cast(self, op: ir.Operation) -> None:
        if len(op.operands) != 1:
            raise ValueError(f"{op.location}: the host program takes views of static sizes only")
        source, value = op.operands[0], op.results[0]
        sizes = tuple(ir.DenseI64ArrayAttr(op.attributes["static_sizes"]))
        strides, offset = value.type.get_strides_and_offset()
        strides, shift = tuple(strides), offset - source.type.get_strides_and_offset()[1]
        self.places[value] = self.places[source].inside(
            lambda base: base.as_strided(sizes, strides, base.storage_offset() + shift)
        )

    def cast(self, op: ir.Operation) -> None:
        self.places[op.results[0]] = self.places[op.operands[0]]

    def nothing(self, op: ir.Operation) -> None:
        pass

    def get_global(self, op: ir.Operation) -> None:
        self.found.constants.append(self._globals.tensor(ir.FlatSymbolRefAttr(op.attributes["name"]).value))
        self.places[op.results[0]] = _Place(is_constant=True)

    def launch(self, op: ir.Operation) -> None:
        launch = op.opview
        grid = [self._known(size, op) for size in (launch.gridSizeX, launch.gridSizeY, launch.gridSizeZ)]
        block = [self._known(size, op) for size in (launch.blockSizeX, launch.blockSizeY, launch.blockSizeZ)]
        shared = launch.dynamicSharedMemorySize
        self._note_launch(
            op,
            list(launch.kernelOperands),
            kernel=_leaf(op.attributes["kernel"]),
            grid=(grid[0], grid[1], grid[2]),
            block=(block[0], block[1], block[2]),
            shared_bytes=0 if shared is None else self._known(shared, op),
        )

    def call(self, op: ir.Operation) -> None:
        results = [str(result.type) for result in op.results]
        if results not in ([], ["i32"]):
            raise ValueError(f"{op.location}: a kernel called by the host program returns nothing or an i32")
        self._note_launch(op, list(op.operands), kernel=_leaf(op.attributes["callee"]), is_checked=bool(results))

    def _note_launch(self, op: ir.Operation, operands: Sequence[ir.Value], **configuration: object) -> None:
        parameters, source = tuple(str(operand.type) for operand in operands), source_of(str(op.location))
        launch = Launch(parameters=parameters, source=source, **configuration)  # pyright: ignore[reportArgumentType]
        self.found.launches.append(launch)
        if 0 not in launch.grid:
            self._stretch.append(launch)
        for operand in operands:
            place = self.places.get(operand)
            if place is not None and place.allocation is not None and place.allocation.first_user is None:
                place.allocation.first_user = launch

    def _known(self, value: ir.Value, op: ir.Operation) -> int:
        if value not in self._constants:
            raise ValueError(f"{op.location}: the host program needs launch sizes that are constants")
        return int(self._constants[value])

    def _end_stretch(self) -> None:
        if len(self._stretch) > 1:
            self.found.stretches.append(self._stretch)
        self._stretch = []

    def extern(self, op: ir.Operation) -> None:
        self._end_stretch()
        name = ir.StringAttr(op.attributes["op"]).value
        tied = {result: operand for operand, result in fusion.tied_operands(op)}
        operands = self._library_operands(op)
        outputs: list[Expected | None] = []
        for number, result in enumerate(op.results):
            if number in tied:
                place = self.places[result] = self.places[op.operands[tied[number]]]
                outputs.append(None)
                if place.argument is not None and place.argument not in self.found.written_arguments:
                    self.found.written_arguments.append(place.argument)
            else:
                expected = _expected(result)
                outputs.append(expected)
                dtype = expected.dtype
                self.places[result] = _Place(dtype=dtype if dtype is not None and dtype.itemsize > 1 else None)
        self.found.libraries.append(Library(name, read_call(op), operands, tuple(outputs)))

    def _library_operands(self, op: ir.Operation) -> tuple[Operand, ...]:
        if "dtypes" not in op.attributes:
            return tuple(self._operand(operand, None) for operand in op.operands)
        names = [ir.StringAttr(name).value for name in ir.ArrayAttr(op.attributes["dtypes"])]
        return tuple(self._operand(operand, name) for operand, name in zip(op.operands, names, strict=True))

    def _operand(self, value: ir.Value, dtype: str | None) -> Operand:
        if not isinstance(value.type, ir.MemRefType):
            return Operand(None, None)
        place = self.places[value]
        if dtype is not None:
            return Operand(place.view, dtype_named(dtype))
        return Operand(place.view, dtype_of(value.type.element_type) if place.allocation else None)

    def returned(self, op: ir.Operation) -> None:
        self._end_stretch()
        values = list(op.operands)
        pairs = zip(values, self._result_dtypes, strict=True)
        self.found.results = [self._result(values.index(value), value, dtype) for value, dtype in pairs]

    def _result(self, first: int, value: ir.Value, dtype: torch.dtype | None) -> Result:
        place = self.places.get(value, _Place())
        if place.allocation is not None and place.view is None:
            # Made as what is returned, unless another result says otherwise
            place.allocation.dtype = dtype or place.allocation.dtype
        argument = place.argument if place.view is None else None
        made_with = place.allocation.dtype if place.allocation else place.dtype
        return Result(first, argument, place.is_constant, place.view, dtype, made_with)


_READINGS: dict[str, Callable[[_Reader, ir.Operation], None]] = {
    "arith.constant": _Reader.constant,
    "memref.alloc": _Reader.alloc,
    "memref.view": _Reader.view,
    "memref.reinterpret_cast": _Reader.reinterpret_cast,
    "memref.cast": _Reader.cast,
    "memref.dealloc": _Reader.nothing,
    "memref.get_global": _Reader.get_global,
    "gpu.launch_func": _Reader.launch,
    "func.call": _Reader.call,
    "fusion.extern": _Reader.extern,
    "func.return": _Reader.returned,
}


def _expected(result: ir.Value) -> Expected:
    if not isinstance(result.type, ir.MemRefType):
        return Expected(None, (), None, False)
    memory, used = result.type, any(use.owner.operation.name != "memref.dealloc" for use in result.uses)
    return Expected(tuple(memory.shape), memref_strides(memory), dtype_of(memory.element_type), used)


def find_function(host: ir.Module, entry: str) -> ir.Operation:
    for op in host.body.operations:
        operation = op.operation
        if operation.name == "func.func" and ir.StringAttr(operation.attributes["sym_name"]).value == entry:
            return operation
    raise ValueError(f"the module has no function @{entry}")


def _read_arguments(function: ir.Operation, dtypes: Dtypes) -> list[TensorArgument | ScalarArgument]:
    arguments = list(function.regions[0].blocks[0].arguments)
    notes = _notes(function, "arg_attrs", len(arguments))
    given = dtypes or [None] * len(arguments)
    return [
        _read_argument(number, value, note, dtype)
        for number, (value, note, dtype) in enumerate(zip(arguments, notes, given, strict=True))
    ]


def _read_argument(
    number: int, value: ir.Value, note: Mapping[str, str], dtype: torch.dtype | None
) -> TensorArgument | ScalarArgument:
    memory = value.type
    name = f"argument {number}" + (f" ({note['fusion.name']})" if "fusion.name" in note else "")
    if not isinstance(memory, ir.MemRefType):
        return ScalarArgument(name, str(memory))
    shape = tuple(extent if extent >= 0 else -1 for extent in memory.shape)
    is_anywhere = all(use.owner.operation.name in ("fusion.extern", "func.return") for use in value.uses)
    dtype, offset = dtype or _noted_dtype(memory, note), memory.get_strides_and_offset()[1]
    return TensorArgument(name, shape, memref_strides(memory), dtype, is_anywhere, offset * dtype.itemsize)


def _read_result_dtypes(function: ir.Operation, dtypes: Dtypes) -> list[torch.dtype | None]:
    types = list(ir.FunctionType(ir.TypeAttr(function.attributes["function_type"]).value).results)
    notes = _notes(function, "res_attrs", len(types))
    given = dtypes or [None] * len(types)
    return [
        (dtype or _noted_dtype(memory, note)) if isinstance(memory, ir.MemRefType) else None
        for memory, note, dtype in zip(types, notes, given, strict=True)
    ]


def _noted_dtype(memory: ir.MemRefType, note: Mapping[str, str]) -> torch.dtype:
    return dtype_named(note["fusion.dtype"]) if "fusion.dtype" in note else dtype_of(memory.element_type)


def _notes(function: ir.Operation, name: str, count: int) -> list[dict[str, str]]:
    """The string attributes of a function's arguments or results, one dictionary each."""
    if name not in function.attributes:
        return [{} for _ in range(count)]
    return [
        {named.name: named.attr.value for named in ir.DictAttr(entry) if isinstance(named.attr, ir.StringAttr)}
        for entry in ir.ArrayAttr(function.attributes[name])
    ]


def memref_strides(memory: ir.MemRefType) -> tuple[int, ...]:
    """The strides of a memref as PyTorch counts them; negative where they are dynamic."""
    shape = tuple(memory.shape)
    if memory.has_static_shape and not isinstance(memory.layout, ir.StridedLayoutAttr):
        return row_major_strides(shape)
    strides, _ = memory.get_strides_and_offset()
    return tuple(max(stride, -1) for stride in strides)


def _leaf(attribute: ir.Attribute) -> str:
    """The last name of a symbol reference: `@kernels::@relu` is `relu`."""
    if isinstance(attribute, ir.FlatSymbolRefAttr):
        return attribute.value
    return ir.SymbolRefAttr(attribute).value[-1]
