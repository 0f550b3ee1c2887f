"""The host function's operations as steps: Python functions over a frame.

A frame is a list: the device, the queue (stream), then a slot for each value that has to be a tensor. What
can be known ahead is worked out here, once: constants, launch configurations, library overloads, and where a
buffer lies. A memref that only kernels touch needs no tensor, just an address: the slot of the tensor it lies
in and a distance in bytes from that tensor's first element (`Address`).

A launcher may hold launches back, to start several at once: it is told to before each library call and at the end
(`Planner.finish`), and buffers are given back only after that.

Kernels get a memref's base pointer, as MLIR's bare-pointer convention has it: a memref type with an offset
means that the kernel adds the offset itself.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

import torch

from ..dialects import fusion
from ..dialects.mlir import ir
from .arguments import row_major_strides
from .constants import Constants
from .dtypes import dtype_named, dtype_of
from .extern_call import Call, read_call
from .last_uses import last_uses
from .launch import Launch, Launched, Launcher, is_pointer
from .library_results import Expected, settle

Frame = list
Step = Callable[[Frame], None]
DEVICE, QUEUE, FIRST = 0, 1, 2


@dataclass(frozen=True, slots=True)
class Address:
    """A base pointer: the first element of the tensor in a slot, and bytes from there."""

    slot: int
    delta: int


@dataclass(frozen=True, slots=True)
class ResultSource:
    """Where a result of the function comes from: an argument as the caller gave it, or a slot."""

    slot: int = -1
    argument: int | None = None
    is_shared: bool = False
    """A constant of the program: the caller gets a copy."""


class Planner:
    """Walks a host function and collects its steps."""

    def __init__(self, host: ir.Module, launcher: Launcher, function: ir.Operation) -> None:
        self.steps: list[Step] = []
        self.results: list[ResultSource] = []
        self.written_arguments: list[int] = []
        self.has_library_calls = False
        self.first_argument = FIRST
        self._global_constants = Constants(host)
        self._launcher = launcher
        self._slots: dict[ir.Value, int] = {}
        self._addresses: dict[ir.Value, Address] = {}
        self._constants: dict[ir.Value, int | float] = {}
        self._prefilled: dict[int, int | float] = {}
        self._shared: set[int] = set()
        self._owners: dict[int, int] = {}
        self._held: list[Step] = []
        self._count = FIRST
        block = function.regions[0].blocks[0]
        self._argument_count = len(block.arguments)
        for argument in block.arguments:
            self._root(argument)
        unused_after = last_uses(function)
        for op in block.operations:
            self._plan(op.operation)
            for argument in unused_after.get(op.operation, ()):
                self._drop(self._slots[argument])

    def frame_template(self) -> Frame:
        """A frame with all slots empty but for constants."""
        return [self._prefilled.get(slot) for slot in range(self._count)]

    def _plan(self, op: ir.Operation) -> None:
        planned = _PLANS.get(op.name)
        if planned is None:
            raise ValueError(f"{op.location}: the host program can't execute '{op.name}'")
        planned(self, op)

    def _finish(self) -> None:
        """What was held back starts here, and the buffers that it was the last to use are given back."""
        finish = self._launcher.finish
        if finish is not None:
            self.steps.append(lambda frame: finish(frame[QUEUE]))
            self.steps += self._held
            self._held = []

    def _new_slot(self) -> int:
        self._count += 1
        return self._count - 1

    def _root(self, value: ir.Value) -> int:
        """A slot for a value that owns its memory (or is a number)."""
        slot = self._slots[value] = self._new_slot()
        self._owners[slot] = slot
        if isinstance(value.type, ir.MemRefType):
            self._addresses[value] = Address(slot, -_offset_bytes(value.type))
        return slot

    def _inside(self, value: ir.Value, owner: ir.Value) -> int:
        """A slot for a tensor that lies in another one's memory; emptied with it."""
        slot = self._slots[value] = self._new_slot()
        self._owners[slot] = self._owners[self._addresses[owner].slot]
        return slot

    def _same(self, value: ir.Value, source: ir.Value) -> None:
        """Another name for a value."""
        self._addresses[value] = self._addresses[source]
        if source in self._slots:
            self._slots[value] = self._slots[source]

    def constant(self, op: ir.Operation) -> None:
        self._constants[op.results[0]] = op.attributes["value"].value

    def alloc(self, op: ir.Operation) -> None:
        memory = op.results[0].type
        if not memory.has_static_shape:
            raise ValueError(f"{op.location}: the host program allocates static sizes only, got {memory}")
        slot, shape, strides = self._root(op.results[0]), tuple(memory.shape), memref_strides(memory)
        dtype, allocate = dtype_of(memory.element_type), self._launcher.allocate

        def step(frame: Frame) -> None:
            frame[slot] = allocate(shape, strides, dtype, frame[DEVICE])

        self.steps.append(step)

    def view(self, op: ir.Operation) -> None:
        """A piece of a pool: an address, and a tensor only if someone needs one."""
        pool, value = op.operands[0], op.results[0]
        start = int(self._constants[op.operands[1]])
        base = self._addresses[pool]
        self._addresses[value] = Address(base.slot, base.delta + start)
        if not _needs_tensor(value):
            return
        memory = value.type
        shape, dtype = tuple(memory.shape), dtype_of(memory.element_type)
        source, slot = self._slots[pool], self._inside(value, pool)
        end = start + _elements(shape) * dtype.itemsize

        def step(frame: Frame) -> None:
            frame[slot] = frame[source][start:end].view(dtype).view(shape)

        self.steps.append(step)

    def reinterpret_cast(self, op: ir.Operation) -> None:
        if len(op.operands) != 1:
            raise ValueError(f"{op.location}: the host program takes views of static sizes only")
        source, value = op.operands[0], op.results[0]
        self._addresses[value] = self._addresses[source]
        if not _needs_tensor(value):
            return
        sizes = tuple(ir.DenseI64ArrayAttr(op.attributes["static_sizes"]))
        strides, offset = value.type.get_strides_and_offset()
        strides, shift = tuple(strides), offset - source.type.get_strides_and_offset()[1]
        origin, slot = self._slots[source], self._inside(value, source)

        def step(frame: Frame) -> None:
            base = frame[origin]
            frame[slot] = base.as_strided(sizes, strides, base.storage_offset() + shift)

        self.steps.append(step)

    def cast(self, op: ir.Operation) -> None:
        self._same(op.results[0], op.operands[0])

    def dealloc(self, op: ir.Operation) -> None:
        """Drops the tensor and all that lie in its memory, so that PyTorch's allocator has it back."""
        self._drop(self._owners[self._addresses[op.operands[0]].slot])

    def _drop(self, owner: int) -> None:
        """Empties the slot of a tensor and of all that lie in its memory."""
        slots = tuple(slot for slot, other in self._owners.items() if other == owner)
        steps = self.steps if self._launcher.finish is None else self._held
        if len(slots) == 1:
            (only,) = slots

            def drop(frame: Frame) -> None:
                frame[only] = None

            steps.append(drop)
            return

        def drop_all(frame: Frame) -> None:
            for slot in slots:
                frame[slot] = None

        steps.append(drop_all)

    def get_global(self, op: ir.Operation) -> None:
        slot = self._root(op.results[0])
        self._shared.add(slot)
        values = self._global_constants.tensor(ir.FlatSymbolRefAttr(op.attributes["name"]).value)
        made: dict[torch.device, torch.Tensor] = {}

        def step(frame: Frame) -> None:
            device = frame[DEVICE]
            if device not in made:
                made[device] = values.to(device)
            frame[slot] = made[device]

        self.steps.append(step)

    def launch(self, op: ir.Operation) -> None:
        launch = op.opview
        sizes = [
            self._known(value, op)
            for value in (
                *(launch.gridSizeX, launch.gridSizeY, launch.gridSizeZ),
                *(launch.blockSizeX, launch.blockSizeY, launch.blockSizeZ),
            )
        ]
        shared = launch.dynamicSharedMemorySize
        operands = list(launch.kernelOperands)
        if 0 in sizes:
            return
        self._append_launch(
            Launch(
                kernel=_leaf(op.attributes["kernel"]),
                parameters=tuple(str(operand.type) for operand in operands),
                grid=(sizes[0], sizes[1], sizes[2]),
                block=(sizes[3], sizes[4], sizes[5]),
                shared_bytes=0 if shared is None else self._known(shared, op),
            ),
            operands,
        )

    def call(self, op: ir.Operation) -> None:
        operands, results = list(op.operands), [str(result.type) for result in op.results]
        if results not in ([], ["i32"]):
            raise ValueError(f"{op.location}: a kernel called by the host program returns nothing or an i32")
        parameters = tuple(str(operand.type) for operand in operands)
        launch = Launch(_leaf(op.attributes["callee"]), parameters, is_checked=bool(results))
        self._append_launch(launch, operands)

    def _append_launch(self, launch: Launch, operands: Sequence[ir.Value]) -> None:
        launched = self._launcher.prepare(launch)
        if all(is_pointer(parameter) for parameter in launch.parameters):
            self.steps.append(_pointer_launch(launched, [self._addresses[operand] for operand in operands]))
            return
        readers = [self._reader(operand) for operand in operands]

        def step(frame: Frame) -> None:
            launched(frame[QUEUE], [reader(frame) for reader in readers])

        self.steps.append(step)

    def _reader(self, operand: ir.Value) -> Callable[[Frame], int | float]:
        if isinstance(operand.type, ir.MemRefType):
            address = self._addresses[operand]
            return lambda frame: frame[address.slot].data_ptr() + address.delta
        slot = self._slot(operand)
        return lambda frame: frame[slot]

    def _slot(self, value: ir.Value) -> int:
        """The slot of a value; a constant gets one that is filled in the template."""
        if value not in self._slots:
            self._slots[value] = self._new_slot()
            self._prefilled[self._slots[value]] = self._constants[value]
        return self._slots[value]

    def _known(self, value: ir.Value, op: ir.Operation) -> int:
        if value not in self._constants:
            raise ValueError(f"{op.location}: the host program needs launch sizes that are constants")
        return int(self._constants[value])

    def extern(self, op: ir.Operation) -> None:
        self.has_library_calls = True
        self._finish()
        name = ir.StringAttr(op.attributes["op"]).value
        library = read_call(op)
        readers = self._library_operands(op)
        outputs = self._library_results(op)
        calls: dict[torch.device, Call] = {}

        def step(frame: Frame) -> None:
            device = frame[DEVICE]
            call = calls.get(device)
            if call is None:
                call = calls[device] = library.on(device)
            operands = [frame[slot] if dtype is None else _as_dtype(frame[slot], dtype) for slot, dtype in readers]
            settle(name, call(operands), operands, outputs, frame)

        self.steps.append(step)

    def _library_operands(self, op: ir.Operation) -> list[tuple[int, torch.dtype | None]]:
        """Slot of each operand, and the dtype it is handed over with where the call names one."""
        operands = list(op.operands)
        if "dtypes" not in op.attributes:
            return [(self._slot(operand), None) for operand in operands]
        names = [ir.StringAttr(name).value for name in ir.ArrayAttr(op.attributes["dtypes"])]
        return [
            (self._slot(operand), dtype_named(name) if isinstance(operand.type, ir.MemRefType) else None)
            for operand, name in zip(operands, names, strict=True)
        ]

    def _library_results(self, op: ir.Operation) -> list[Expected | None]:
        """What each result must be; None for one that is an operand after the call wrote it."""
        tied = {result: operand for operand, result in fusion.tied_operands(op)}
        outputs: list[Expected | None] = []
        for number, result in enumerate(op.results):
            if number in tied:
                self._same(result, op.operands[tied[number]])
                self._note_written(op.operands[tied[number]])
                outputs.append(None)
            else:
                outputs.append(self._expected(result))
        return outputs

    def _expected(self, result: ir.Value) -> Expected:
        slot = self._root(result)
        if not isinstance(result.type, ir.MemRefType):
            return Expected(slot, None, (), None, False)
        memory, used = result.type, any(use.owner.operation.name != "memref.dealloc" for use in result.uses)
        dtype = dtype_of(memory.element_type)
        return Expected(slot, tuple(memory.shape), memref_strides(memory), dtype, used)

    def _note_written(self, value: ir.Value) -> None:
        number = self._owners[self._addresses[value].slot] - FIRST
        if 0 <= number < self._argument_count and number not in self.written_arguments:
            self.written_arguments.append(number)

    def returned(self, op: ir.Operation) -> None:
        self._finish()
        self.results = [self._result_source(value) for value in op.operands]

    def _result_source(self, value: ir.Value) -> ResultSource:
        if isinstance(value, ir.BlockArgument):
            return ResultSource(argument=value.arg_number)
        slot = self._slot(value)
        owner = self._owners.get(slot, slot)
        number = slot - FIRST
        if 0 <= number < self._argument_count:
            return ResultSource(argument=number)
        return ResultSource(slot=slot, is_shared=owner in self._shared)


_PLANS: dict[str, Callable[[Planner, ir.Operation], None]] = {
    "arith.constant": Planner.constant,
    "memref.alloc": Planner.alloc,
    "memref.view": Planner.view,
    "memref.reinterpret_cast": Planner.reinterpret_cast,
    "memref.cast": Planner.cast,
    "memref.dealloc": Planner.dealloc,
    "memref.get_global": Planner.get_global,
    "gpu.launch_func": Planner.launch,
    "func.call": Planner.call,
    "fusion.extern": Planner.extern,
    "func.return": Planner.returned,
}


def memref_strides(memory: ir.MemRefType) -> tuple[int, ...]:
    """The strides of a memref as PyTorch counts them; negative where they are dynamic."""
    shape = tuple(memory.shape)
    if memory.has_static_shape and not isinstance(memory.layout, ir.StridedLayoutAttr):
        return row_major_strides(shape)
    strides, _ = memory.get_strides_and_offset()
    return tuple(max(stride, -1) for stride in strides)


def _pointer_launch(launched: Launched, addresses: Sequence[Address]) -> Step:
    """The launch of a kernel that takes pointers only, which is nearly all of them."""
    if any(address.delta for address in addresses):
        places = [(address.slot, address.delta) for address in addresses]

        def step_with_offsets(frame: Frame) -> None:
            launched(frame[QUEUE], [frame[slot].data_ptr() + delta for slot, delta in places])

        return step_with_offsets
    slots = [address.slot for address in addresses]

    def step(frame: Frame) -> None:
        launched(frame[QUEUE], [frame[slot].data_ptr() for slot in slots])

    return step


def _needs_tensor(value: ir.Value) -> bool:
    """Whether anyone but a kernel uses a memref, or a view of it."""
    for use in value.uses:
        user = use.owner.operation
        if user.name in ("memref.reinterpret_cast", "memref.cast"):
            if _needs_tensor(user.results[0]):
                return True
        elif user.name not in ("gpu.launch_func", "func.call", "memref.dealloc"):
            return True
    return False


def _as_dtype(value: torch.Tensor, dtype: torch.dtype) -> torch.Tensor:
    return value if value.dtype is dtype else value.view(dtype)


def _offset_bytes(memory: ir.MemRefType) -> int:
    _, offset = memory.get_strides_and_offset()
    return offset * dtype_of(memory.element_type).itemsize


def _elements(shape: Sequence[int]) -> int:
    count = 1
    for extent in shape:
        count *= extent
    return count


def _leaf(attribute: ir.Attribute) -> str:
    """The last name of a symbol reference: `@kernels::@relu` is `relu`."""
    if isinstance(attribute, ir.FlatSymbolRefAttr):
        return attribute.value
    return ir.SymbolRefAttr(attribute).value[-1]
