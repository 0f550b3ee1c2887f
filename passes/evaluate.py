"""Emits the code that computes one element, or a vector of neighbouring elements, of a kernel's value.

An `Evaluator` answers `at(value, index, lanes)`: the element of `value` at `index` as an MLIR scalar, or as a
vector whose lanes are the neighbours that `lanes` names. It follows the same requests as `KernelBody.trace`:
the body of a linalg.generic is inlined, reshapes and slices change the index, and the kernel's inputs are
loaded, a vector at once where the lanes are contiguous. What is the same in all lanes stays a scalar.

    before   %y = linalg.generic ... ins(%x) { %e = math.exp %in ; yield %e }      (lanes: 8 of %i)
    after    %v = vector.load %x[%i] : vector<8xf32> ; %e = math.exp %v : vector<8xf32>

Values are remembered by (value, index) for the block they were computed in, so shared producers are computed
once a point. Nothing here knows threads or loops: a schedule binds the counters and says where.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass

from ..dialects.fusion import storage_type
from ..dialects.mlir import arith, ir, memref, scf, vector
from . import philox
from .access import Condition, Piece, moves_elements, pieces
from .bind import Binding
from .indexing import Form, Index, Loaded, linearize, of, row_major
from .kernel_body import KernelBody, UnsupportedError
from .lanes import Lanes
from .reduction_loops import ReductionLoops
from .sizes import Extent, Size, UndecidedError, common_divisor, divides, emit, meaning
from .structured import Generic

MAX_ALIGNMENT = 16  # bytes; the widest access of a thread

Key = tuple[ir.Value, Index, Lanes | None]
Environment = dict[ir.Value, ir.Value]


@dataclass(frozen=True)
class Buffer:
    """Where a kernel's input or output lies: a one-dimensional memref, and the tensor's strides in it."""

    memory: ir.Value
    strides: tuple[Extent, ...]
    offset: Extent
    element_type: ir.Type


class Evaluator:
    """Emits elements of a kernel's values at the current insertion point.

    `check(condition)` emits the target's answer to a failed bounds check and returns a guard for what
    follows, or None where control does not get past a failed check.
    """

    def __init__(
        self,
        body: KernelBody,
        buffers: dict[ir.Value, Buffer],
        binding: Binding,
        check: Callable[[ir.Value], ir.Value | None],
    ) -> None:
        self.body = body
        self.binding = binding
        self._buffers = buffers
        self._check = check
        self._known: list[dict[Key, ir.Value]] = [{}]

    # -- asking for elements

    def at(self, value: ir.Value, index: Index, lanes: Lanes | None = None) -> ir.Value:
        """The element of `value` at `index` (with lanes: a vector, or a scalar if all lanes are equal)."""
        root = self._key(value, index, lanes)
        pending = [root]
        while pending:
            key = pending[-1]
            if self._lookup(key) is not None:
                pending.pop()
                continue
            missing = [k for k in self._needs(key) if self._lookup(k) is None]
            if missing:
                pending.extend(missing)
            else:
                self._known[-1][key] = self._build(key)
        result = self._lookup(root)
        assert result is not None
        return result

    def load_ahead(self, value: ir.Value, index: Index, lanes: Lanes | None = None) -> None:
        """Loads what an element needs of the kernel's inputs in any case, and computes nothing yet.

        A branch in what is computed first would keep later loads behind it, one waiting for the other.
        """
        pending, seen = [self._key(value, index, lanes)], set()
        while pending:
            key = pending.pop()
            if key in seen or self._lookup(key) is not None:
                continue
            seen.add(key)
            if self.body.is_input(key[0]):
                self._known[-1][key] = self._build(key)
            else:
                pending.extend(reversed(self._needs(key)))

    def place(self, value: ir.Value, index: Index) -> tuple[ir.Value, ir.Value]:
        """The memory of an input, and where in it an element is."""
        buffer = self._buffers[value]
        return buffer.memory, self.binding.emit(linearize(index, buffer.strides, buffer.offset))

    def remember(self, value: ir.Value, index: Index, computed: ir.Value, lanes: Lanes | None = None) -> None:
        """Makes `computed` the answer for an element (or a vector) that the schedule has by other means."""
        self._known[-1][self._key(value, index, lanes)] = computed

    @contextmanager
    def scope(self) -> Iterator[None]:
        """What is computed inside a nested block is not remembered outside."""
        self._known.append({})
        try:
            yield
        finally:
            self._known.pop()

    def partial(self, generic: Generic, value: ir.Value, point: Sequence[Form], lanes: Lanes | None) -> ir.Value:
        """The expression that a combiner joins to its accumulator, at one point of the reduction."""
        combiner = generic.combiner(ir.OpResult(value).result_number)
        assert combiner is not None
        environment = self._inputs(generic, point, lanes)
        return self._inline(generic, [combiner.expression], point, lanes, environment)[0]

    def store(self, value: ir.Value, index: Index, lanes: Lanes | None, buffer: Buffer) -> None:
        """Writes the element (or vector) of `value` at `index` to `buffer`."""
        element = self.at(value, index, lanes)
        position = linearize(index, buffer.strides, buffer.offset)
        self.write(element, position, lanes, buffer)

    def write(self, element: ir.Value, position: Form, lanes: Lanes | None, buffer: Buffer) -> None:
        """Writes what was computed to an element position of `buffer`."""
        if lanes is None:
            memref.StoreOp(to_storage(element), buffer.memory, [self.binding.emit(position)])
            return
        stored = to_storage(_broadcast(element, lanes))
        if lanes.step(position) == 1:
            where, alignment = self.binding.emit(position), _alignment(position, lanes, buffer)
            vector.StoreOp(stored, buffer.memory, [where], alignment=alignment)
            return
        for lane in range(lanes.count):
            where = self.binding.emit(lanes.shifted(position, lane))
            memref.StoreOp(_lane(stored, lane), buffer.memory, [where])

    # -- one request

    def _key(self, value: ir.Value, index: Index, lanes: Lanes | None) -> Key:
        uniform = lanes is not None and all(step == 0 for step in lanes.steps(index))
        return value, index, None if uniform else lanes

    def _lookup(self, key: Key) -> ir.Value | None:
        return next((known[key] for known in reversed(self._known) if key in known), None)

    def _needs(self, key: Key) -> list[Key]:
        """The requests that can be answered beforehand, in this block, since they are needed in any case."""
        value, index, lanes = key
        if not self._is_computed(value):
            return []
        op = value.owner.operation
        if op.name == "linalg.generic":
            generic = self.body.generic(op)
            if generic.reduction_dims:
                return []
            point = generic.dimensions(ir.OpResult(value).result_number, index)
            reads = [(v, generic.input_index(k, point)) for k, v in enumerate(generic.inputs)]
            return [self._key(operand, where, lanes) for operand, where in reads]
        if op.name == "fusion.random":
            return [self._key(operand, (), None) for operand in op.operands]
        found = pieces(op, index) if moves_elements(op) else []
        if len(found) == 1 and not found[0].conditions:
            return [self._key(found[0].value, found[0].index, lanes)]
        return []

    def _is_computed(self, value: ir.Value) -> bool:
        return isinstance(value.type, ir.RankedTensorType) and not self.body.is_input(value)

    def _build(self, key: Key) -> ir.Value:
        value, index, lanes = key
        if not isinstance(value.type, ir.RankedTensorType):
            return self._scalar(value)
        if self.body.is_input(value):
            return self._load(self._buffers[value], index, lanes)
        op = value.owner.operation
        if op.name == "linalg.generic":
            return self._generic(self.body.generic(op), value, index, lanes)
        if moves_elements(op):
            return self._choose(pieces(op, index), value.type.element_type, lanes)
        if op.name == "fusion.random":
            return self._random(op, index, lanes)
        if op.name == "tensor.empty":
            return _zero(value.type.element_type)
        if op.name == "arith.constant":
            return _constant(ir.DenseElementsAttr(op.attributes["value"]).get_splat_value())
        raise UnsupportedError(op)

    def _scalar(self, value: ir.Value) -> ir.Value:
        """A scalar computed in the kernel's own block: a constant, or arithmetic on constants."""
        op = value.owner.operation
        size = _size_constant(op)
        if size is not None:
            return size
        operands = [self.at(operand, ()) for operand in op.operands]
        return _create(op, operands, [result.type for result in op.results])[ir.OpResult(value).result_number]

    def _load(self, buffer: Buffer, index: Index, lanes: Lanes | None) -> ir.Value:
        position = linearize(index, buffer.strides, buffer.offset)
        return from_storage(self._load_storage(buffer, position, lanes), buffer.element_type)

    def _load_storage(self, buffer: Buffer, position: Form, lanes: Lanes | None) -> ir.Value:
        if lanes is None or lanes.step(position) == 0:
            return memref.LoadOp(buffer.memory, [self.binding.emit(position)]).result
        if lanes.step(position) == 1:
            where, alignment = self.binding.emit(position), _alignment(position, lanes, buffer)
            result = ir.VectorType.get([lanes.count], ir.MemRefType(buffer.memory.type).element_type)
            return vector.LoadOp(result, buffer.memory, [where], alignment=alignment).result
        positions = (lanes.shifted(position, lane) for lane in range(lanes.count))
        return _vector([self._load_storage(buffer, where, None) for where in positions])

    # -- pieces: the first whose conditions hold

    def _choose(self, found: list[Piece], element_type: ir.Type, lanes: Lanes | None) -> ir.Value:
        first, *rest = found
        if not first.conditions or not rest:
            return self.at(first.value, first.index, lanes)
        if lanes is not None and not all(_steady(condition, lanes) for condition in first.conditions):
            split = range(lanes.count)
            return _vector([self._choose(_shifted(found, lanes, k), element_type, None) for k in split])
        holds = self._holds(first.conditions)
        return self._branch(
            holds,
            lambda: self.at(first.value, first.index, lanes),
            lambda: self._choose(rest, element_type, lanes),
            element_type,
            lanes,
        )

    def _branch(
        self,
        condition: ir.Value,
        then: Callable[[], ir.Value],
        otherwise: Callable[[], ir.Value],
        element_type: ir.Type,
        lanes: Lanes | None,
    ) -> ir.Value:
        result = element_type if lanes is None else ir.VectorType.get([lanes.count], element_type)
        branch = scf.IfOp(condition, [result], has_else=True)
        for block, value in ((branch.then_block, then), (branch.else_block, otherwise)):
            with ir.InsertionPoint(block), self.scope():
                scf.YieldOp([_broadcast(value(), lanes)])
        return branch.results[0]

    def _holds(self, conditions: Sequence[Condition]) -> ir.Value:
        tests = [test for condition in conditions for test in self._tests(condition)]
        result = tests[0]
        for test in tests[1:]:
            result = arith.AndIOp(result, test).result
        return result

    def _tests(self, condition: Condition) -> Iterator[ir.Value]:
        form, (low, high) = condition.form, condition.form.bounds
        position = self.binding.emit(form)
        if not low >= condition.low:
            yield _compare(arith.CmpIPredicate.sge, position, self.binding.number(condition.low))
        if not high < condition.high:
            yield _compare(arith.CmpIPredicate.slt, position, self.binding.number(condition.high))
        if condition.step != 1:
            rest = self.binding.emit((form - condition.low) % condition.step)
            yield _compare(arith.CmpIPredicate.eq, rest, self.binding.number(0))

    # -- random numbers

    def _random(self, op: ir.Operation, index: Index, lanes: Lanes | None) -> ir.Value:
        """Neighbours that share counters are drawn together."""
        position = linearize(index, row_major(ir.RankedTensorType(op.results[0].type).shape))
        if lanes is None:
            return self._one_random(op, position)
        together = lanes.step(position) == 1 and lanes.divisor(position) % philox.WORDS == 0
        if not together or lanes.count % philox.WORDS:
            return _vector([self._one_random(op, lanes.shifted(position, lane)) for lane in range(lanes.count)])
        starts = range(0, lanes.count, philox.WORDS)
        return _vector([one for lane in starts for one in self._randoms(op, lanes.shifted(position, lane))])

    def _one_random(self, op: ir.Operation, position: Form) -> ir.Value:
        first, *others = self._randoms(op, position)
        place = self.binding.emit(position % philox.WORDS)
        for number, other in enumerate(others, 1):
            is_here = _compare(arith.CmpIPredicate.eq, place, self.binding.number(number))
            first = arith.SelectOp(is_here, other, first).result
        return first

    def _randoms(self, op: ir.Operation, position: Form) -> list[ir.Value]:
        """The elements of the counter that one at `position` is of."""
        seed, offset = (self.at(operand, ()) for operand in op.operands)
        place = arith.IndexCastUIOp(seed.type, self.binding.emit(position // philox.WORDS)).result
        drawn = philox.words(seed, arith.AddIOp(offset, place).result)
        kind = ir.StringAttr(op.attributes["kind"]).value
        return philox.elements(kind, ir.RankedTensorType(op.results[0].type).element_type, drawn)

    # -- linalg.generic

    def _generic(self, generic: Generic, value: ir.Value, index: Index, lanes: Lanes | None) -> ir.Value:
        number = ir.OpResult(value).result_number
        if generic.reduction_dims:
            return self._reduce(generic, number, index, lanes)
        point = generic.dimensions(number, index)
        environment = self._inputs(generic, point, lanes)
        if generic.reads_inits:
            environment[generic.accumulators[number]] = self.at(generic.inits[number], index, lanes)
        return self._inline(generic, [generic.yielded[number]], point, lanes, environment)[0]

    def _inputs(self, generic: Generic, point: Sequence[Form], lanes: Lanes | None) -> Environment:
        arguments = list(generic.body.arguments)[: generic.input_count]
        used = [any(True for _ in argument.uses) for argument in arguments]
        return {
            argument: self.at(operand, generic.input_index(k, point), lanes)
            for k, (argument, operand) in enumerate(zip(arguments, generic.inputs, strict=True))
            if used[k]
        }

    def _reduce(self, generic: Generic, number: int, index: Index, lanes: Lanes | None) -> ir.Value:
        """All results are carried along."""
        combiners = [generic.combiner(result) for result in range(len(generic.inits))]

        def step(carried: Sequence[ir.Value]) -> list[ir.Value]:
            return self._step(generic, number, index, lanes, carried)

        can_join = None if None in combiners else [combiner for combiner in combiners if combiner is not None]
        loops = ReductionLoops(step, can_join, self.binding, self.scope, lanes)
        inits = [self.at(init, index, lanes) for init in generic.inits]
        return loops.run(list(generic.counters.values()), inits)[number]

    def _step(
        self, generic: Generic, number: int, index: Index, lanes: Lanes | None, carried: Sequence[ir.Value]
    ) -> list[ir.Value]:
        point = generic.dimensions(number, index)
        environment = self._inputs(generic, point, lanes)
        environment.update(zip(generic.accumulators, carried, strict=True))
        return self._inline(generic, generic.yielded, point, lanes, environment)

    # -- the body of a linalg.generic

    def _inline(
        self,
        generic: Generic,
        wanted: Sequence[ir.Value],
        point: Sequence[Form],
        lanes: Lanes | None,
        environment: Environment,
    ) -> list[ir.Value]:
        """Repeats the body's operations that `wanted` needs, on scalars or vectors."""
        needed = _needed(generic.body, wanted)
        guard: ir.Value | None = None
        for operation in generic.body.operations:
            op = operation.operation
            if op not in needed:
                continue
            if op.name == "cf.assert":
                guard = _both(guard, self._check(_all_lanes(self._operand(op.operands[0], environment))))
            elif op.name == "linalg.index":
                form = point[ir.IntegerAttr(op.attributes["dim"]).value]
                environment[op.results[0]] = self._position(form, lanes)
            elif op.name == "tensor.extract":
                environment[op.results[0]] = self._gather(op, point, lanes, environment, guard)
            else:
                self._elementwise(op, environment)
        return [self._operand(value, environment) for value in wanted]

    def _operand(self, value: ir.Value, environment: Environment) -> ir.Value:
        """A value as the body sees it: its own, or a scalar captured from the kernel's block."""
        if value not in environment:
            environment[value] = self.at(value, ())
        return environment[value]

    def _elementwise(self, op: ir.Operation, environment: Environment) -> None:
        size = _size_constant(op)
        if size is not None:
            environment[op.results[0]] = size
            return
        operands = [self._operand(operand, environment) for operand in op.operands]
        width = next((w for operand in operands if (w := _width(operand)) is not None), None)
        types = [result.type for result in op.results]
        if width is not None:
            operands = [_widen(operand, width) for operand in operands]
            types = [ir.VectorType.get([width], type_) for type_ in types]
        environment.update(zip(op.results, _create(op, operands, types), strict=True))

    def _position(self, form: Form, lanes: Lanes | None) -> ir.Value:
        """The value of linalg.index."""
        if lanes is None or lanes.step(form) == 0:
            return self.binding.emit(form)
        return _vector([self.binding.emit(lanes.shifted(form, lane)) for lane in range(lanes.count)])

    def _gather(
        self,
        op: ir.Operation,
        point: Sequence[Form],
        lanes: Lanes | None,
        environment: Environment,
        guard: ir.Value | None,
    ) -> ir.Value:
        """Element of another tensor, at an index that the body computes."""
        tensor, *indices = op.operands
        parts = [self._gather_part(value, point, environment) for value in indices]
        if lanes is not None and any(_width(part) for part in parts if isinstance(part, ir.Value)):
            split = ([_part_at(part, lanes, k) for part in parts] for k in range(lanes.count))
            return _vector([self._guarded(tensor, self._loaded(part), None, guard) for part in split])
        return self._guarded(tensor, self._loaded(parts), lanes, guard)

    def _gather_part(self, value: ir.Value, point: Sequence[Form], environment: Environment) -> Form | ir.Value:
        if not isinstance(value, ir.BlockArgument) and value.owner.name == "linalg.index":
            return point[ir.IntegerAttr(value.owner.attributes["dim"]).value]
        return self._operand(value, environment)

    def _loaded(self, parts: Sequence[Form | ir.Value]) -> Index:
        index = []
        for part in parts:
            if isinstance(part, ir.Value):
                self.binding.bind(Loaded(part), part)
                part = of(Loaded(part))
            index.append(part)
        return tuple(index)

    def _guarded(self, tensor: ir.Value, index: Index, lanes: Lanes | None, guard: ir.Value | None) -> ir.Value:
        if guard is None:
            return self.at(tensor, index, lanes)
        element = ir.RankedTensorType(tensor.type).element_type
        return self._branch(guard, lambda: self.at(tensor, index, lanes), lambda: _zero(element), element, lanes)


def _needed(body: ir.Block, wanted: Sequence[ir.Value]) -> set[ir.Operation]:
    """The body's operations that `wanted` depends on, and the assertions with what they depend on."""
    asserts = [op.operation for op in body.operations if op.operation.name == "cf.assert"]
    pending = [*wanted, *(operand for op in asserts for operand in op.operands)]
    needed = set(asserts)
    while pending:
        value = pending.pop()
        if isinstance(value, ir.BlockArgument):
            continue
        op = value.owner.operation
        if op not in needed and op.block == body:
            needed.add(op)
            pending.extend(op.operands)
    return needed


def _steady(condition: Condition, lanes: Lanes) -> bool:
    """Whether all lanes agree on the condition."""
    step = lanes.step(condition.form)
    if step == 0:
        return True
    edges = (condition.low, condition.high, lanes.divisor(condition.form))
    return step == 1 and condition.step == 1 and all(divides(lanes.count, edge) for edge in edges)


def _shifted(found: Sequence[Piece], lanes: Lanes, lane: int) -> list[Piece]:
    def at_lane(form: Form) -> Form:
        return lanes.shifted(form, lane)

    return [
        Piece(
            piece.value,
            tuple(at_lane(form) for form in piece.index),
            tuple(Condition(at_lane(c.form), c.low, c.high, c.step) for c in piece.conditions),
        )
        for piece in found
    ]


def _part_at(part: Form | ir.Value, lanes: Lanes, lane: int) -> Form | ir.Value:
    if isinstance(part, Form):
        return lanes.shifted(part, lane)
    return part if _width(part) is None else _lane(part, lane)


def _alignment(position: Form, lanes: Lanes, buffer: Buffer) -> int:
    """Alignment in bytes of a vector at `position`; the buffer itself is aligned to MAX_ALIGNMENT."""
    size = byte_width(storage_type(buffer.element_type))
    known = lanes.divisor(position) * size
    return common_divisor(known, MAX_ALIGNMENT) if known else MAX_ALIGNMENT


def byte_width(type_: ir.Type) -> int:
    """Bytes of an element in memory."""
    return 8 if isinstance(type_, ir.IndexType) else type_.width // 8


def _width(value: ir.Value) -> int | None:
    return ir.VectorType(value.type).shape[0] if isinstance(value.type, ir.VectorType) else None


def _widen(value: ir.Value, width: int) -> ir.Value:
    if _width(value) is not None:
        return value
    return vector.BroadcastOp(ir.VectorType.get([width], value.type), value).result


def _broadcast(value: ir.Value, lanes: Lanes | None) -> ir.Value:
    return value if lanes is None else _widen(value, lanes.count)


def _vector(values: Sequence[ir.Value]) -> ir.Value:
    return vector.FromElementsOp(ir.VectorType.get([len(values)], values[0].type), values).result


def _lane(value: ir.Value, lane: int) -> ir.Value:
    return vector.ExtractOp(value, [], [lane]).result


def _all_lanes(condition: ir.Value) -> ir.Value:
    width = _width(condition)
    if width is None:
        return condition
    result = _lane(condition, 0)
    for lane in range(1, width):
        result = arith.AndIOp(result, _lane(condition, lane)).result
    return result


def _both(one: ir.Value | None, other: ir.Value | None) -> ir.Value | None:
    if one is None or other is None:
        return one or other
    return arith.AndIOp(one, other).result


def _compare(predicate: arith.CmpIPredicate, left: ir.Value, right: ir.Value) -> ir.Value:
    return arith.CmpIOp(predicate, left, right).result


def _create(op: ir.Operation, operands: Sequence[ir.Value], types: Sequence[ir.Type]) -> list[ir.Value]:
    """The same operation on other operands, of other types."""
    attributes = dict(op.attributes.items())
    created = ir.Operation.create(op.name, results=types, operands=operands, attributes=attributes, loc=op.location)
    return list(created.results)


def _size_constant(op: ir.Operation) -> ir.Value | None:
    """The value of a constant that stands for a size, such as how many elements a mean is of; None for any other."""
    if op.name != "arith.constant":
        return None
    attribute, type_ = op.attributes["value"], op.results[0].type
    if not isinstance(attribute, ir.IntegerAttr | ir.FloatAttr) or not float(attribute.value).is_integer():
        return None
    size = meaning(int(attribute.value))
    if not isinstance(size, Size):
        return None
    if isinstance(type_, ir.IndexType):
        return emit(size)
    whole = arith.IndexCastOp(ir.IntegerType.get_signless(64), emit(size)).result
    if isinstance(type_, ir.F32Type | ir.F64Type):
        return arith.SIToFPOp(type_, whole).result
    if isinstance(type_, ir.IntegerType) and type_.width in (32, 64):
        return whole if type_.width == 64 else arith.TruncIOp(type_, whole).result
    raise UndecidedError(f"{size} as {type_}")


def _constant(attribute: ir.Attribute) -> ir.Value:
    return arith.ConstantOp(attribute.type, attribute).result


def _zero(type_: ir.Type) -> ir.Value:
    number = ir.FloatAttr.get(type_, 0.0) if isinstance(type_, ir.FloatType) else ir.IntegerAttr.get(type_, 0)
    return arith.ConstantOp(type_, number).result


def _is_boolean(type_: ir.Type) -> bool:
    return isinstance(type_, ir.IntegerType) and type_.width == 1


def _like(type_: ir.Type, value: ir.Value) -> ir.Type:
    width = _width(value)
    return type_ if width is None else ir.VectorType.get([width], type_)


def from_storage(value: ir.Value, element_type: ir.Type) -> ir.Value:
    """What was read from memory, where a boolean is a byte, 0 or 1."""
    if not _is_boolean(element_type):
        return value
    return arith.TruncIOp(_like(element_type, value), value).result


def to_storage(value: ir.Value) -> ir.Value:
    """What is written to memory, where a boolean is a byte."""
    element = ir.VectorType(value.type).element_type if _width(value) is not None else value.type
    if not _is_boolean(element):
        return value
    return arith.ExtUIOp(_like(storage_type(element), value), value).result
