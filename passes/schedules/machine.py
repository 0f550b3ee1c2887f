"""Where a schedule's code runs: threads of a GPU, or loops of a CPU.

A schedule is written once against `Machine`: it asks for units of work or for rows, and for partial results
to be combined across the threads that share a row. On the CPU a row has one thread, so there is nothing to
combine and the same schedule becomes a loop nest.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Protocol

from ...dialects.fusion import storage_type
from ...dialects.mlir import arith, cf, gpu, ir, memref, nvgpu, scf, vector
from ..evaluate import from_storage, to_storage
from ..sizes import Extent, divides, emit
from . import cluster

Combine = Callable[[ir.Value, ir.Value], ir.Value]
WARP = 32
REGISTERS = 65536  # of 32 bits, that the threads of a multiprocessor share
CLUSTERS = (1, 2, 4, 8)  # blocks of a cluster, as many as any GPU takes that has clusters
ALIGNMENT = 16  # bytes, of shared memory
MOST_ATTRIBUTED = 32768  # bytes of shared memory that a kernel has for one purpose without asking for it at launch


@dataclass(frozen=True)
class Row:
    """A thread's place in a row: the row, the thread's number in it, and whether the row exists.

    `inside` is None where every row does; a row that does not exist stands at the last one, so that what is
    read is there, and nothing may be stored.
    """

    number: ir.Value
    thread: ir.Value
    inside: ir.Value | None


class Machine(Protocol):
    """What a schedule needs from the place it runs at."""

    def units(self, count: Extent, unroll: int) -> Iterator[list[ir.Value]]:
        """Runs the loop's body for units 0 <= unit < count, up to `unroll` of them at once."""
        ...

    def rows(self, count: Extent, rows_per_block: int, threads: int) -> Iterator[Row]:
        """Runs the loop's body for rows 0 <= row < count, `threads` of them sharing a row."""
        ...

    def group(self, threads: int) -> tuple[ir.Value, ir.Value]:
        """Which group of `threads` threads, a block or a cluster, this is, and which thread of it."""
        ...

    def end_row(self) -> None:
        """Stands where a group is done with a row, in a loop over rows that combines values at least once a row."""
        ...

    def end_rows(self) -> None:
        """Stands behind such a loop."""
        ...

    def combine(self, value: ir.Value, combine: Combine, threads: int) -> ir.Value:
        """Joins the values of the threads of a row; all of them get the result."""
        ...

    def combine_rows(
        self, values: Sequence[ir.Value], combines: Sequence[Combine], across: int, down: int, turn: ir.Value
    ) -> list[ir.Value]:
        """Joins, for each y < down, the values (scalars) of the threads x < across; all of them get the results.

        The blocks of a cluster have `across` threads each. In a loop, `turn` is 0 and 1 in turns.
        """
        ...

    def place(self, across: int) -> tuple[ir.Value, ir.Value]:
        """(x, y) of a thread, where `across` threads of a block stand side by side, and those of the next block of a
        cluster follow.
        """
        ...

    def combine_columns(
        self, values: Sequence[ir.Value], combines: Sequence[Combine], across: int, down: int
    ) -> list[ir.Value]:
        """Joins, for each x, the values (scalars or vectors) of the threads y < down; all of them get the results."""
        ...

    def blocks(self, count: int) -> Iterator[ir.Value]:
        """Runs the loop's body for blocks (or clusters) 0 <= block < count, whose threads share memory."""
        ...

    def spread(self, count: int) -> Iterator[list[ir.Value]]:
        """Runs the loop's body for 0 <= unit < count, a multiple of the block's threads: a thread's units at once."""
        ...

    @property
    def holds_all_units(self) -> bool:
        """Whether `spread` gives all of a thread's units at once, so that one loop's values reach the next."""
        ...

    def shared_memory(self, size: int, element_type: ir.Type) -> ir.Value:
        """Memory of a block, one-dimensional, aligned to the widest access."""
        ...

    def own_memory(self, chunks: int, width: int, element_type: ir.Type) -> ir.Value:
        """Memory of a block in which each thread has `chunks` places of `width` elements; it may be large."""
        ...

    def own_place(self, chunk: ir.Value, width: int) -> ir.Value:
        """Where a thread's place for a chunk begins in such memory."""
        ...

    def fetch(self, source: ir.Value, position: ir.Value, target: ir.Value, place: ir.Value, width: int) -> None:
        """Asks for `width` elements (4, 8 or 16 bytes, aligned to as many) of memory at a place of the thread's own."""
        ...

    def end_fetch(self) -> None:
        """What a thread has asked for since it was here last is a group."""
        ...

    def await_fetched(self, pending: int) -> None:
        """Waits until at most the last `pending` of a thread's groups are under way."""
        ...

    def barrier(self) -> None:
        """What a block's threads wrote before is there for all of them afterwards."""
        ...

    def check(self, condition: ir.Value) -> ir.Value | None:
        """Answers a failed bounds check; returns a guard where control gets past one."""
        ...


def number(value: Extent) -> ir.Value:
    """An index constant, or the value of a size."""
    return emit(value)


def both(one: ir.Value | None, other: ir.Value | None) -> ir.Value | None:
    """The conjunction of two conditions, of which None always holds."""
    if one is None or other is None:
        return one if other is None else other
    return arith.AndIOp(one, other).result


@contextmanager
def guarded(condition: ir.Value | None) -> Iterator[None]:
    """Emits what follows under a condition."""
    if condition is None:
        yield
        return
    branch = scf.IfOp(condition)
    with ir.InsertionPoint(branch.then_block):
        yield
        scf.YieldOp([])


class LoopMachine:
    """One thread: units and rows are loops. `failed` is where the function notes a failed check, if it has any."""

    def __init__(self, entry: ir.Block) -> None:
        self._entry = entry
        self.failed: ir.Value | None = None

    def units(self, count: Extent, unroll: int) -> Iterator[list[ir.Value]]:
        loop = scf.ForOp(number(0), number(count), number(1))
        with ir.InsertionPoint(loop.body):
            yield [loop.induction_variable]
            scf.YieldOp([])

    def rows(self, count: Extent, rows_per_block: int, threads: int) -> Iterator[Row]:
        for (row,) in self.units(count, 1):
            yield Row(row, number(0), None)

    def group(self, threads: int) -> tuple[ir.Value, ir.Value]:
        return number(0), number(0)

    def end_row(self) -> None:
        """Nobody is left behind."""

    def end_rows(self) -> None:
        """Nobody is left behind."""

    def combine(self, value: ir.Value, combine: Combine, threads: int) -> ir.Value:
        return value

    def combine_rows(
        self, values: Sequence[ir.Value], combines: Sequence[Combine], across: int, down: int, turn: ir.Value
    ) -> list[ir.Value]:
        return list(values)

    def place(self, across: int) -> tuple[ir.Value, ir.Value]:
        return number(0), number(0)

    def combine_columns(
        self, values: Sequence[ir.Value], combines: Sequence[Combine], across: int, down: int
    ) -> list[ir.Value]:
        return list(values)

    def blocks(self, count: int) -> Iterator[ir.Value]:
        for (block,) in self.units(count, 1):
            yield block

    def spread(self, count: int) -> Iterator[list[ir.Value]]:
        yield from self.units(count, 1)

    @property
    def holds_all_units(self) -> bool:
        return False

    def shared_memory(self, size: int, element_type: ir.Type) -> ir.Value:
        with ir.InsertionPoint.at_block_begin(self._entry):
            return memref.AllocaOp(ir.MemRefType.get([size], element_type), [], [], alignment=ALIGNMENT).result

    def own_memory(self, chunks: int, width: int, element_type: ir.Type) -> ir.Value:
        return self.shared_memory(chunks * width, element_type)

    def own_place(self, chunk: ir.Value, width: int) -> ir.Value:
        return _times(chunk, width)

    def fetch(self, source: ir.Value, position: ir.Value, target: ir.Value, place: ir.Value, width: int) -> None:
        type_ = ir.VectorType.get([width], ir.MemRefType(source.type).element_type)
        vector.StoreOp(vector.LoadOp(type_, source, [position]).result, target, [place])

    def end_fetch(self) -> None:
        """It is there already."""

    def await_fetched(self, pending: int) -> None:
        """It is there already."""

    def barrier(self) -> None:
        """One thread waits for nobody."""

    def check(self, condition: ir.Value) -> ir.Value | None:
        """Notes the failure, which the function returns at its end."""
        if self.failed is None:
            self.failed = self._make_flag()
        with guarded(arith.XOrIOp(condition, _true()).result):
            memref.StoreOp(arith.ConstantOp(_i32(), 1).result, self.failed, [])
        return condition

    def _make_flag(self) -> ir.Value:
        with ir.InsertionPoint.at_block_begin(self._entry):
            flag = memref.AllocaOp(ir.MemRefType.get([], _i32()), [], []).result
            memref.StoreOp(arith.ConstantOp(_i32(), 0).result, flag, [])
        return flag


class GpuMachine:
    """Threads of a block, blocks of a grid; `block` is the number of threads a block, `cluster` of blocks a cluster.

    `block_id` tells the block; where it is not given, it is the grid's. `dynamic_bytes` is how much shared memory a
    launch has to ask for.
    """

    def __init__(self, function: gpu.GPUFuncOp, block: int, block_id: ir.Value | None = None, cluster: int = 1) -> None:
        self._function = function
        self._block = block
        self._given_block_id = block_id
        self._cluster = cluster
        self._cluster_has_started = False
        self._first_group: ir.Value | None = None
        self.dynamic_bytes = 0

    @property
    def _block_id(self) -> ir.Value:
        return self._given_block_id or _id(gpu.BlockIdOp)

    def units(self, count: Extent, unroll: int) -> Iterator[list[ir.Value]]:
        """Neighbouring threads take neighbouring units; a thread's own lie a block apart."""
        per_block = self._block * unroll
        first = arith.AddIOp(_times(self._block_id, per_block), _id(gpu.ThreadIdOp)).result
        steps = [number(step * self._block) for step in range(unroll)]
        units = [first, *(arith.AddIOp(first, step).result for step in steps[1:])]
        if divides(per_block, count):
            yield units
            return
        for unit in units:
            with guarded(_less(unit, count)):
                yield [unit]

    def rows(self, count: Extent, rows_per_block: int, threads: int) -> Iterator[Row]:
        if self._cluster > 1:
            row, of_row = self.group(threads)
            yield Row(row, of_row, None)
            return
        thread, block = _id(gpu.ThreadIdOp), self._block_id
        if rows_per_block == 1:
            yield Row(block, thread, None)
            return
        in_block = arith.DivUIOp(thread, number(threads)).result
        row = arith.AddIOp(_times(block, rows_per_block), in_block).result
        in_row = arith.RemUIOp(thread, number(threads)).result
        if divides(rows_per_block, count):
            yield Row(row, in_row, None)
            return
        inside = _less(row, count)
        yield Row(arith.SelectOp(inside, row, number(count - 1)).result, in_row, inside)

    def group(self, threads: int) -> tuple[ir.Value, ir.Value]:
        thread = _id(gpu.ThreadIdOp)
        if self._cluster == 1:
            return self._block_id, thread
        cluster.arrive()
        first = _times(_id(gpu.ClusterBlockIdOp), self._block)
        return _id(gpu.ClusterIdOp), arith.AddIOp(first, thread).result

    def end_row(self) -> None:
        """A slot may be written again once all have read it: blocks of a cluster wait where they next write."""
        if self._cluster > 1:
            cluster.arrive()
        else:
            gpu.BarrierOp()

    def end_rows(self) -> None:
        """Whoever arrives has to wait."""
        if self._cluster > 1:
            cluster.wait()

    def combine(self, value: ir.Value, combine: Combine, threads: int) -> ir.Value:
        within = _butterfly(value, combine, min(threads, WARP))
        if self._cluster > 1:
            return self._across_cluster(within, combine, self._block // WARP)
        return within if threads <= WARP else self._across_warps(within, combine, threads // WARP)

    def _across_cluster(self, value: ir.Value, combine: Combine, warps: int) -> ir.Value:
        """One barrier: each warp leaves its value with every block, whose lanes take a few each and combine."""
        slots = self._cluster * warps
        shared = self.shared_memory(slots, storage_type(value.type))
        thread = _id(gpu.ThreadIdOp)
        lane = arith.RemUIOp(thread, number(WARP)).result
        warp = arith.DivUIOp(thread, number(WARP)).result
        slot = arith.AddIOp(_times(_id(gpu.ClusterBlockIdOp), warps), warp).result
        if not self._cluster_has_started:
            cluster.wait()
            self._cluster_has_started = True
        with guarded(_less(lane, self._cluster)):
            cluster.store(to_storage(value), shared, slot, lane)
        cluster.arrive()
        cluster.wait()
        return _from_all_slots(value, shared, combine, lane, slots)

    def _across_warps(self, value: ir.Value, combine: Combine, warps: int) -> ir.Value:
        """One barrier: each warp leaves its value in shared memory, each lane takes one and they combine."""
        shared = self.shared_memory(warps, storage_type(value.type))
        thread = _id(gpu.ThreadIdOp)
        lane = arith.RemUIOp(thread, number(WARP)).result
        first = arith.CmpIOp(arith.CmpIPredicate.eq, lane, number(0)).result
        with guarded(first):
            memref.StoreOp(to_storage(value), shared, [arith.DivUIOp(thread, number(WARP)).result])
        gpu.BarrierOp()
        return _from_all_slots(value, shared, combine, lane, warps)

    def combine_rows(
        self, values: Sequence[ir.Value], combines: Sequence[Combine], across: int, down: int, turn: ir.Value
    ) -> list[ir.Value]:
        """One barrier for all values; the memory is there twice, since a warp may be a turn ahead of another."""
        pairs = list(zip(values, combines, strict=True))
        within = [_butterfly(value, combine, min(across, WARP)) for value, combine in pairs]
        slots = self._cluster * across // WARP
        if slots <= 1:
            return within
        lane, warp = (op(_id(gpu.ThreadIdOp), number(WARP)).result for op in (arith.RemUIOp, arith.DivUIOp))
        memories = [self.shared_memory(2 * slots * down, storage_type(value.type)) for value in within]
        row = _times(arith.DivUIOp(warp, number(across // WARP)).result, slots)
        first = arith.AddIOp(_times(turn, slots * down), row).result
        own = arith.AddIOp(first, arith.RemUIOp(warp, number(across // WARP)).result).result
        self._leave(within, memories, own, across // WARP)
        return [
            _from_all_slots(value, memory, combine, lane, slots, first)
            for (value, combine), memory in zip(zip(within, combines, strict=True), memories, strict=True)
        ]

    def _leave(self, values: Sequence[ir.Value], memories: Sequence[ir.Value], slot: ir.Value, warps: int) -> None:
        """Each warp leaves its values in a slot of its block, or, further on, in every block's of the cluster."""
        lane = arith.RemUIOp(_id(gpu.ThreadIdOp), number(WARP)).result
        with guarded(_less(lane, self._cluster)):
            for value, memory in zip(values, memories, strict=True):
                if self._cluster == 1:
                    memref.StoreOp(to_storage(value), memory, [slot])
                else:
                    there = arith.AddIOp(slot, _times(_id(gpu.ClusterBlockIdOp), warps)).result
                    cluster.store(to_storage(value), memory, there, lane)
        if self._cluster == 1:
            gpu.BarrierOp()
        else:
            cluster.arrive()
            cluster.wait()

    def place(self, across: int) -> tuple[ir.Value, ir.Value]:
        x, y = self._place_in_block(across)
        if self._cluster == 1:
            return x, y
        return arith.AddIOp(_times(_id(gpu.ClusterBlockIdOp), across), x).result, y

    def _place_in_block(self, across: int) -> tuple[ir.Value, ir.Value]:
        thread, width = _id(gpu.ThreadIdOp), number(across)
        return arith.RemUIOp(thread, width).result, arith.DivUIOp(thread, width).result

    def combine_columns(
        self, values: Sequence[ir.Value], combines: Sequence[Combine], across: int, down: int
    ) -> list[ir.Value]:
        """Within warps by shuffles; between warps through shared memory, with one barrier for all values."""
        joined = [
            _by_lane(value, lambda lane, combine=combine: _butterfly(lane, combine, WARP, across))
            for value, combine in zip(values, combines, strict=True)
        ]
        slots = across * down // max(across, WARP)
        if slots == 1:
            return joined
        thread, x = _id(gpu.ThreadIdOp), self._place_in_block(across)[0]
        slot = arith.DivUIOp(thread, number(max(across, WARP))).result
        memories = self._slots(joined, slots * across)
        for value, memory in zip(joined, memories, strict=True):
            _store_at(value, memory, _slot_position(slot, x, across, value))
        gpu.BarrierOp()
        return [
            _from_slots(value, memory, combine, [_slot_position(number(k), x, across, value) for k in range(slots)])
            for value, memory, combine in zip(joined, memories, combines, strict=True)
        ]

    def _slots(self, values: Sequence[ir.Value], threads: int) -> list[ir.Value]:
        """Memory for the values of some of a block's threads: the launch's, where attributions can't be as large."""
        needed = sum(threads * _lanes(value) * _stored_type(value).width // 8 for value in values)
        if needed > MOST_ATTRIBUTED:
            return [self.own_memory(1, _lanes(value), _stored_type(value)) for value in values]
        return [self.shared_memory(threads * _lanes(value), _stored_type(value)) for value in values]

    def blocks(self, count: int) -> Iterator[ir.Value]:
        """A cluster stands for a block; all of it is there before one writes to another's memory."""
        if self._cluster == 1:
            yield self._block_id
            return
        cluster.arrive()
        cluster.wait()
        yield _id(gpu.ClusterIdOp)

    def spread(self, count: int) -> Iterator[list[ir.Value]]:
        thread = _id(gpu.ThreadIdOp)
        steps = range(self._block, count, self._block)
        yield [thread, *(arith.AddIOp(thread, number(step)).result for step in steps)]

    @property
    def holds_all_units(self) -> bool:
        return True

    def own_memory(self, chunks: int, width: int, element_type: ir.Type) -> ir.Value:
        """A piece of the memory that the launch asks for: an attribution could not be larger than 48 KiB."""
        size, start = chunks * width * self._block, self.dynamic_bytes
        self.dynamic_bytes += -(-size * element_type.width // 8 // ALIGNMENT) * ALIGNMENT
        space = ir.Attribute.parse("#gpu.address_space<workgroup>")
        bytes_type = ir.MemRefType.get([ir.ShapedType.get_dynamic_size()], ir.IntegerType.get_signless(8), None, space)
        with ir.InsertionPoint.at_block_begin(self._function.regions[0].blocks[0]):
            everything = gpu.dynamic_shared_memory(bytes_type)
            type_ = ir.MemRefType.get([size], element_type, None, space)
            return memref.ViewOp(type_, everything, number(start), []).result

    def own_place(self, chunk: ir.Value, width: int) -> ir.Value:
        """Neighbouring threads' places for a chunk are neighbours."""
        return _times(arith.AddIOp(_times(chunk, self._block), _id(gpu.ThreadIdOp)).result, width)

    def fetch(self, source: ir.Value, position: ir.Value, target: ir.Value, place: ir.Value, width: int) -> None:
        """Copies of 16 bytes go past the first level of the cache."""
        is_widest = width * ir.MemRefType(source.type).element_type.width == 8 * ALIGNMENT
        nvgpu.DeviceAsyncCopyOp(target, [place], source, [position], width, bypassL1=is_widest)

    def end_fetch(self) -> None:
        nvgpu.DeviceAsyncCreateGroupOp([])

    def await_fetched(self, pending: int) -> None:
        """The operation has to name a group: an empty one, that all others come after."""
        if self._first_group is None:
            with ir.InsertionPoint.at_block_begin(self._function.regions[0].blocks[0]):
                self._first_group = nvgpu.DeviceAsyncCreateGroupOp([]).result
        nvgpu.DeviceAsyncWaitOp(self._first_group, numGroups=pending)

    def barrier(self) -> None:
        gpu.BarrierOp()

    def shared_memory(self, size: int, element_type: ir.Type) -> ir.Value:
        """An attribution of the function."""
        space = ir.Attribute.parse("#gpu.address_space<workgroup>")
        type_ = ir.MemRefType.get([size], element_type, memory_space=space)
        attributes, name = self._function.attributes, "workgroup_attrib_attrs"
        known = list(ir.ArrayAttr(attributes[name])) if name in attributes else []
        i64 = ir.IntegerType.get_signless(64)
        aligned = ir.DictAttr.get({"llvm.align": ir.IntegerAttr.get(i64, ALIGNMENT)})
        attributes[name] = ir.ArrayAttr.get([*known, aligned])
        attributes["workgroup_attributions"] = ir.IntegerAttr.get(i64, len(known) + 1)
        block = self._function.regions[0].blocks[0]
        return block.add_argument(type_, ir.Location.current)

    def check(self, condition: ir.Value) -> ir.Value | None:
        """A device-side assertion, as PyTorch's own kernels have."""
        cf.AssertOp(condition, "index out of range")
        return None


def _by_lane(value: ir.Value, join: Callable[[ir.Value], ir.Value]) -> ir.Value:
    """Applies `join` to each element of a vector, or to a scalar."""
    if not isinstance(value.type, ir.VectorType):
        return join(value)
    joined = [join(vector.ExtractOp(value, [], [lane]).result) for lane in range(_lanes(value))]
    return vector.FromElementsOp(value.type, joined).result


def _lanes(value: ir.Value) -> int:
    return ir.VectorType(value.type).shape[0] if isinstance(value.type, ir.VectorType) else 1


def _stored_type(value: ir.Value) -> ir.Type:
    return storage_type(ir.VectorType(value.type).element_type if isinstance(value.type, ir.VectorType) else value.type)


def _slot_position(slot: ir.Value, x: ir.Value, across: int, value: ir.Value) -> ir.Value:
    """Where the value of column x lies in a slot."""
    return _times(arith.AddIOp(_times(slot, across), x).result, _lanes(value))


def _store_at(value: ir.Value, memory: ir.Value, where: ir.Value) -> None:
    stored = to_storage(value)
    if isinstance(stored.type, ir.VectorType):
        vector.StoreOp(stored, memory, [where], alignment=_alignment(stored.type))
    else:
        memref.StoreOp(stored, memory, [where])


def _from_slots(value: ir.Value, memory: ir.Value, combine: Combine, places: Sequence[ir.Value]) -> ir.Value:
    """The values of all slots joined, in their order."""
    element = ir.VectorType(value.type).element_type if isinstance(value.type, ir.VectorType) else value.type
    loaded = [from_storage(_load_at(memory, where, _lanes(value)), element) for where in places]
    result = loaded[0]
    for other in loaded[1:]:
        result = combine(result, other)
    return result


def _from_all_slots(
    value: ir.Value, memory: ir.Value, combine: Combine, lane: ir.Value, slots: int, base: ir.Value | None = None
) -> ir.Value:
    """The scalars in all slots from `base` on, joined by each warp: its lanes take as many each, or one less."""
    across = min(1 << slots.bit_length() - 1, WARP)
    first = arith.RemUIOp(lane, number(across)).result

    def load(slot: ir.Value) -> ir.Value:
        place = slot if base is None else arith.AddIOp(base, slot).result
        return from_storage(memref.LoadOp(memory, [place]).result, value.type)

    result = load(first)
    for step in range(across, slots, across):
        slot = arith.AddIOp(first, number(step)).result
        if step + across <= slots:
            result = combine(result, load(slot))
        else:
            joined = combine(result, load(arith.MinUIOp(slot, number(slots - 1)).result))
            result = arith.SelectOp(_less(slot, slots), joined, result).result
    return _butterfly(result, combine, across)


def _load_at(memory: ir.Value, where: ir.Value, lanes: int) -> ir.Value:
    if lanes == 1:
        return memref.LoadOp(memory, [where]).result
    type_ = ir.VectorType.get([lanes], ir.MemRefType(memory.type).element_type)
    return vector.LoadOp(type_, memory, [where], alignment=_alignment(type_)).result


def _alignment(type_: ir.VectorType) -> int:
    return min(ALIGNMENT, type_.shape[0] * type_.element_type.width // 8)


def _butterfly(value: ir.Value, combine: Combine, width: int, least: int = 1) -> ir.Value:
    """All lanes whose numbers differ only between `least` and `width` get their combined value."""
    offset = width // 2
    while offset >= least:
        value = combine(value, _from_lane_across(value, offset))
        offset //= 2
    return value


def _from_lane_across(value: ir.Value, offset: int) -> ir.Value:
    """The value of the lane whose number differs in this bit; narrow types travel as 32-bit integers."""
    i32 = ir.IntegerType.get_signless(32)
    distance, all_lanes = arith.ConstantOp(i32, offset).result, arith.ConstantOp(i32, WARP).result
    type_, bits = value.type, value
    narrow = ir.IntegerType.get_signless(type_.width)
    if type_.width < 32:
        bits = value if narrow == type_ else arith.BitcastOp(narrow, value).result
        bits = arith.ExtUIOp(i32, bits).result
    other = gpu.ShuffleOp(bits, distance, all_lanes, gpu.ShuffleMode.XOR).results[0]
    if type_.width < 32:
        other = arith.TruncIOp(narrow, other).result
        other = other if narrow == type_ else arith.BitcastOp(type_, other).result
    return other


def _id(op: type) -> ir.Value:
    return op(gpu.Dimension.x).result


def _times(value: ir.Value, factor: int) -> ir.Value:
    return value if factor == 1 else arith.MulIOp(value, number(factor)).result


def _less(value: ir.Value, bound: Extent) -> ir.Value:
    return arith.CmpIOp(arith.CmpIPredicate.ult, value, number(bound)).result


def _i32() -> ir.Type:
    return ir.IntegerType.get_signless(32)


def _true() -> ir.Value:
    return arith.ConstantOp(ir.IntegerType.get_signless(1), 1).result
