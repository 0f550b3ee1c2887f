"""fusion-host-to-llvm: the host function as code that LLVM can compile; one call of it is one call of the program.

A *frame* of 64-bit words, on the stack, holds what a call knows. First come words of the runtime's own, then one for
each *object*, a Python object that owns memory (argument, allocation, constant, library result), then *cells*: what
kernels are handed, the address of a memory or a number. Functions called `fusion_*` (runtime/host_helpers.py) do what
an operation stands for. After one of them has failed, the others do nothing, so that the code needs no branches.
Allocations, constants, library calls and launches are numbered, each kind in the order of the function: the runtime
keeps what belongs to each number.

Sizes and offsets are computed where they are used, so they may be values; kernels are left out, as they are compiled
apart. What nobody reads any more is released: at its `memref.dealloc`, an argument after its last reader.

    func.func @main(%x: memref<4xf32>) -> memref<4xf32> {
      %y = memref.alloc() : memref<4xf32>
      gpu.launch_func @kernels::@relu blocks in (%c1, %c1, %c1) threads in (%c32, %c1, %c1) args(%x, %y)
      return %y : memref<4xf32>
    }
 ->
    func.func @main(%program: !llvm.ptr, %inputs: !llvm.ptr) -> !llvm.ptr {
      %frame = llvm.alloca %c12 x i64
      call @fusion_begin(%frame, %program, %inputs, %c12)
      call @fusion_allocate(%frame, %c9, %c11, %c0)                       // object, cell, number
      call @fusion_launch(%frame, %c0, %1, %1, %1, %32, %1, %1, %c0, %c2, %words_0)
      call @fusion_release(%frame, %c8)
      %result = call @fusion_finish(%frame, %c2, %c1, %words_1)           // a list
      return %result
    }

An argument's memory is found by `fusion_begin`: its object is the word of its number, its cell too.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import ClassVar

from ..dialects import fusion
from ..dialects.mlir import arith, ir
from .constants import number_of
from .errors import PassFailure
from .host_code import HostCode
from .last_uses import last_uses, users_of_memory
from .memref_types import element_bytes
from .pass_base import Pass

HEADER = 8
"""Words of a frame in front of its objects."""
SIZES = 7
"""Of a launch: grid, block, and bytes of shared memory."""


@dataclass(frozen=True)
class FusionHostToLlvm(Pass):
    """See the module's docstring."""

    name: ClassVar[str] = "fusion-host-to-llvm"
    entry: str = "main"
    """The function; all others go."""
    hold: bool = False
    """Whether launches are held back until a library call or the end, to start at once, and what they use with them."""

    def run(self, module: ir.Module) -> None:
        old = [view.operation for view in module.body.operations]
        function = next((op for op in old if _is_function(op, self.entry)), None)
        if function is None:
            raise PassFailure(module.operation.location, f"there is no function @{self.entry} to run")
        with ir.InsertionPoint(module.body), function.location:
            _Lowering(HostCode(module.body, self.entry), function, self.hold).run()
        for op in old:
            op.erase()


def _is_function(op: ir.Operation, name: str) -> bool:
    is_one = op.name == "func.func" and len(op.regions[0].blocks) == 1
    return is_one and ir.StringAttr(op.attributes["sym_name"]).value == name


@dataclass(frozen=True)
class _Held:
    """A launch that is held back: its number, the first cell of its sizes, and the words of its cells."""

    number: int
    sizes: int
    words: list[int]


class _Lowering:
    """Goes through a function and writes what stands for each operation."""

    def __init__(self, code: HostCode, function: ir.Operation, hold: bool) -> None:
        self.code, self.block, self.hold = code, function.regions[0].blocks[0], hold
        self.released: list[int] = []
        self.held: list[_Held] = []
        self.unused_after = last_uses(function)
        self.objects: dict[ir.Value, int] = {}
        self.cells: dict[ir.Value, int] = {}
        self.values: dict[ir.Value, ir.Value] = {}
        self.numbers: Counter[str] = Counter()
        self.n_objects = _count_objects(self.block)
        self.next_object = HEADER
        self.next_cell = HEADER + self.n_objects

    def run(self) -> None:
        """Writes the whole function."""
        with ir.InsertionPoint(self.code.block):
            self.code.call("fusion_begin", *self.code.arguments, self.n_objects)
            for argument in self.block.arguments:
                self._place(argument)
                if not isinstance(argument.type, ir.MemRefType):
                    self.values[argument] = self.code.load(self.cells[argument], argument.type)
            for view in self.block.operations:
                with view.operation.location:
                    self._lower(view.operation)
        self.code.set_size(self.next_cell)

    def _lower(self, op: ir.Operation) -> None:
        lowering = _LOWERINGS.get(op.name)
        if lowering is None and not op.name.startswith("arith."):
            raise PassFailure(op.location, f"'{op.name}' op has no place in a host function")
        (lowering or _Lowering.arithmetic)(self, op)
        for argument in self.unused_after.get(op, ()):
            self._release(argument)

    def _release(self, value: ir.Value) -> None:
        self.released.append(self.objects[value])
        if not self.hold:
            self._release_all()

    def _release_all(self) -> None:
        for word in self.released:
            self.code.call("fusion_release", word)
        self.released.clear()

    def _start_held(self) -> None:
        """Starts what is held back: what belongs to each launch is a number, its sizes' first cell, and its cells."""
        if len(self.held) == 1:
            (only,) = self.held
            sizes = [self.code.load(only.sizes + axis, self.code.i64) for axis in range(SIZES)]
            self.code.call("fusion_launch", only.number, *sizes, len(only.words), self.code.words(only.words))
        elif self.held:
            plan = [word for one in self.held for word in (one.number, one.sizes, len(one.words), *one.words)]
            self.code.call("fusion_start", self._next("stretch"), len(self.held), self.code.words(plan))
        self.held.clear()
        self._release_all()

    def _object(self) -> int:
        self.next_object += 1
        return self.next_object - 1

    def _cell(self) -> int:
        self.next_cell += 1
        return self.next_cell - 1

    def _place(self, value: ir.Value) -> None:
        """Words for a value that owns its memory, or is a number of the caller's."""
        self.objects[value], self.cells[value] = self._object(), self._cell()

    def _same(self, value: ir.Value, source: ir.Value) -> None:
        """Another name for a memory: kernels add the offsets of their types themselves."""
        self.objects[value], self.cells[value] = self.objects[source], self.cells[source]

    def _next(self, kind: str) -> int:
        self.numbers[kind] += 1
        return self.numbers[kind] - 1

    def arithmetic(self, op: ir.Operation) -> None:
        """Computes a size as before."""
        copy = op.clone()
        for number, operand in enumerate(op.operands):
            copy.operands[number] = self.values[operand]
        self.values.update(zip(op.results, copy.results, strict=True))

    def alloc(self, op: ir.Operation) -> None:
        """A tensor, or a pool."""
        (value,) = op.results
        if not value.type.has_static_shape:
            raise PassFailure(op.location, f"the host program allocates static sizes only, got {value.type}")
        self._place(value)
        number = self._next("allocation")
        self.code.call("fusion_allocate", self.objects[value], self.cells[value], number)

    def view(self, op: ir.Operation) -> None:
        """An address inside a pool."""
        pool, value = op.operands[0], op.results[0]
        self.objects[value], self.cells[value] = self.objects[pool], self._cell()
        base = self.code.load(self.cells[pool], self.code.i64)
        start = self.code.wide(self.values[op.operands[1]])
        self.code.store(arith.AddIOp(base, start).result, self.cells[value])

    def same_place(self, op: ir.Operation) -> None:
        """A memref of another type at the same address."""
        self._same(op.results[0], op.operands[0])

    def dealloc(self, op: ir.Operation) -> None:
        """The object goes, and PyTorch's allocator has its memory back."""
        self._release(op.operands[0])

    def get_global(self, op: ir.Operation) -> None:
        """A constant, which lies on each device."""
        (value,) = op.results
        self._place(value)
        number = self._next("constant")
        self.code.call("fusion_constant", self.objects[value], self.cells[value], number)

    def launch(self, op: ir.Operation) -> None:
        """A kernel of a GPU."""
        launch = op.opview
        grid = (launch.gridSizeX, launch.gridSizeY, launch.gridSizeZ)
        block = (launch.blockSizeX, launch.blockSizeY, launch.blockSizeZ)
        shared = launch.dynamicSharedMemorySize
        sizes = [self.code.wide(self.values[size]) for size in (*grid, *block)]
        sizes.append(self.code.number(0) if shared is None else self.code.wide(self.values[shared]))
        words = [self._parameter(operand) for operand in launch.kernelOperands]
        number = self._next("launch")
        if self.hold and not any(_is_zero(size) for size in grid):
            self.held.append(_Held(number, self._store_sizes(sizes), words))
        elif not self.hold:
            self.code.call("fusion_launch", number, *sizes, len(words), self.code.words(words))

    def _store_sizes(self, sizes: Sequence[ir.Value]) -> int:
        cells = [self._cell() for _ in sizes]
        for cell, size in zip(cells, sizes, strict=True):
            self.code.store(size, cell)
        return cells[0]

    def call(self, op: ir.Operation) -> None:
        """A kernel of the CPU."""
        words = [self._parameter(operand) for operand in op.operands]
        thunk = self.code.thunk([operand.type for operand in op.operands], [result.type for result in op.results])
        number = self._next("launch")
        self.code.call("fusion_call", number, thunk, len(words), self.code.words(words))

    def _parameter(self, operand: ir.Value) -> int:
        """The cell that holds what a kernel is handed."""
        if operand not in self.cells:
            self.cells[operand] = self._cell()
            self.code.store(self.values[operand], self.cells[operand])
        return self.cells[operand]

    def extern(self, op: ir.Operation) -> None:
        """A library call: what Python does with the objects of its operands."""
        self._start_held()
        operands = [self._library_operand(operand) for operand in op.operands]
        tied = {result: operand for operand, result in fusion.tied_operands(op)}
        results: list[int] = []
        for number, result in enumerate(op.results):
            if number in tied:
                self._same(result, op.operands[tied[number]])
            else:
                self._place(result)
                results.append(self.objects[result])
        lists = (len(operands), self.code.words(operands), len(results), self.code.words(results))
        self.code.call("fusion_library", self._next("library"), *lists)
        for number, result in enumerate(op.results):
            if number not in tied and _is_read_by_kernels(result):
                offset = offset_bytes(result.type)
                self.code.call("fusion_address", self.objects[result], self.cells[result], offset)

    def _library_operand(self, operand: ir.Value) -> int:
        """The word of the object; one is made for a number."""
        if operand not in self.objects:
            self.objects[operand] = self._object()
            self.code.call("fusion_number", self.objects[operand], self.code.wide(self.values[operand]))
        return self.objects[operand]

    def returned(self, op: ir.Operation) -> None:
        """The list of the results; all other objects go."""
        self._start_held()
        words = [self._library_operand(operand) for operand in op.operands]
        self.code.finish(self.n_objects, words)


_LOWERINGS: dict[str, Callable[[_Lowering, ir.Operation], None]] = {
    "memref.alloc": _Lowering.alloc,
    "memref.view": _Lowering.view,
    "memref.reinterpret_cast": _Lowering.same_place,
    "memref.cast": _Lowering.same_place,
    "memref.dealloc": _Lowering.dealloc,
    "memref.get_global": _Lowering.get_global,
    "gpu.launch_func": _Lowering.launch,
    "func.call": _Lowering.call,
    "fusion.extern": _Lowering.extern,
    "func.return": _Lowering.returned,
}


def offset_bytes(memory: ir.MemRefType) -> int:
    """How far a memref's first element is from the base pointer that kernels are handed."""
    _, offset = memory.get_strides_and_offset()
    return offset * element_bytes(memory.element_type)


def _is_zero(size: ir.Value) -> bool:
    """Whether a size is known to be 0: a launch without blocks is none."""
    return number_of(size) == 0


def _count_objects(block: ir.Block) -> int:
    """At most as many as there are values that may need one."""
    owners = ("memref.alloc", "memref.get_global", "fusion.extern")
    results = sum(len(view.operation.results) for view in block.operations if view.operation.name in owners)
    numbers = {
        operand
        for view in block.operations
        if view.operation.name in ("fusion.extern", "func.return")
        for operand in view.operation.operands
        if not isinstance(operand.type, ir.MemRefType)
    }
    return len(block.arguments) + results + len(numbers)


def _is_read_by_kernels(value: ir.Value) -> bool:
    """Whether a kernel is handed this memory, under any name."""
    return any(user.name in ("gpu.launch_func", "func.call") for user in users_of_memory(value))
