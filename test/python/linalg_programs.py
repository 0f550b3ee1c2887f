"""Random programs of linalg on tensors: what one is, its text, and a hypothesis strategy that makes them.

A program is data (its `repr` is Python, so that one can be kept as a test): inputs, steps over numbered values,
outputs. All numbers are whole and small enough for their type, whatever is done with them, so that any order of adding
gives the same bits: results are compared exactly.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

from hypothesis import strategies as st

MOST = {"f64": 2**50, "f32": 2**23, "f16": 2**11, "bf16": 2**8, "i64": 2**60, "i32": 2**29}
"""The largest whole number that a type may hold here."""
BYTES = {"f64": 8, "f32": 4, "f16": 2, "bf16": 2, "i64": 8, "i32": 4}
LARGEST_INPUT = 5
SIZES = (1, 2, 3, 4, 5, 7, 8, 16, 17, 33, 64, 100, 257)
MOST_ELEMENTS = 1 << 12
MOST_POINTS = 1 << 15
MOST_STEPS = 8
FLOAT = {"add": "addf", "sub": "subf", "mul": "mulf", "max": "maximumf", "min": "minimumf"}
INTEGER = {"add": "addi", "sub": "subi", "mul": "muli", "max": "maxsi", "min": "minsi"}


@dataclass(frozen=True)
class Value:
    """A tensor: its sizes, its element type, the largest magnitude of its numbers, and the strides of an input."""

    shape: tuple[int, ...]
    dtype: str
    bound: int = LARGEST_INPUT
    strides: tuple[int, ...] | None = None

    @property
    def type(self) -> str:
        """As MLIR writes it."""
        return f"tensor<{''.join(f'{size}x' for size in self.shape)}{self.dtype}>"

    @property
    def is_float(self) -> bool:
        return not self.dtype.startswith("i")


@dataclass(frozen=True)
class Step:
    """An operation on values by number.

    elementwise, select  `attributes`: the operation, and for each operand the loops that its dimensions run along
    iota                 the dimension whose index is added
    reduce               the operation, the dimensions
    dot                  for each operand the loops, and which loops are summed over
    transpose            the permutation
    collapse, expand     the first of two dimensions; of expand, the size of its first part too
    slice                offsets, sizes, strides
    pad                  low, high
    concat               the dimension
    cast                 the type
    """

    kind: str
    operands: tuple[int, ...]
    attributes: tuple = ()
    makes: Value = Value((), "f32")

    @property
    def name(self) -> str:
        """What it does."""
        return self.kind


@dataclass(frozen=True)
class Program:
    """See the module's docstring. Inputs are values 0, 1, ...; each step makes the next one."""

    inputs: tuple[Value, ...]
    steps: tuple[Step, ...]
    outputs: tuple[int, ...]
    seed: int = 0

    @property
    def values(self) -> list[Value]:
        """All of them, by number."""
        return [*self.inputs, *(step.makes for step in self.steps)]

    def text(self) -> str:
        """The program in MLIR."""
        values = self.values
        arguments = ", ".join(f"%v{number}: {_argument(value)}" for number, value in enumerate(self.inputs))
        results = ", ".join(values[number].type for number in self.outputs)
        returned = ", ".join(f"%v{number}" for number in self.outputs)
        lines = [f"func.func @main({arguments}) -> ({results}) {{"]
        for number, step in enumerate(self.steps, len(self.inputs)):
            lines += _TEXTS[step.kind](number, step, [values[operand] for operand in step.operands])
        return "\n".join([*lines, f"  return {returned} : {results}", "}", ""])


def _argument(value: Value) -> str:
    if value.strides is None:
        return value.type
    return f"{value.type} {{fusion.layout = #fusion.layout<{list(value.strides)}, 0, {BYTES[value.dtype]}>}}"


# -- the text of each kind of step


def _map(loops: int, results: Sequence[int]) -> str:
    domain = ", ".join(f"d{number}" for number in range(loops))
    return f"affine_map<({domain}) -> ({', '.join(f'd{number}' for number in results)})>"


def _generic(
    number: int,
    step: Step,
    operands: Sequence[Value],
    maps: Sequence[Sequence[int]],
    reduced: Sequence[int],
    body: Sequence[str],
    start: str | None = None,
) -> list[str]:
    """A linalg.generic over the operands; `maps` has the result's last, `body` gives %r from %a0, %a1, ... and %o."""
    made, loops = step.makes, max((loop for each in maps for loop in each), default=-1) + 1
    kinds = ", ".join(f'"{"reduction" if loop in reduced else "parallel"}"' for loop in range(loops))
    inputs = ", ".join(f"%v{operand}" for operand in step.operands)
    types = ", ".join(value.type for value in operands)
    scalars = ", ".join(f"%a{place}: {value.dtype}" for place, value in enumerate(operands))
    out = f"%e{number}"
    lines = [f"  {out} = tensor.empty() : {made.type}"]
    if start is not None:
        out = f"%f{number}"
        lines += [
            f"  %c{number} = arith.constant {start} : {made.dtype}",
            f"  {out} = linalg.fill ins(%c{number} : {made.dtype}) outs(%e{number} : {made.type}) -> {made.type}",
        ]
    return [
        *lines,
        f"  %v{number} = linalg.generic {{indexing_maps = [{', '.join(_map(loops, each) for each in maps)}], "
        f"iterator_types = [{kinds}]}} ins({inputs} : {types}) outs({out} : {made.type}) {{",
        f"  ^bb0({scalars}, %o: {made.dtype}):",
        *(f"    {line}" for line in body),
        f"    linalg.yield %r : {made.dtype}",
        f"  }} -> {made.type}",
    ]


def _arith(operation: str, value: Value) -> str:
    return f"arith.{(FLOAT if value.is_float else INTEGER)[operation]}"


def _elementwise(number: int, step: Step, operands: Sequence[Value]) -> list[str]:
    operation, *maps = step.attributes
    made, own = step.makes, range(len(step.makes.shape))
    body = [f"%r = {_arith(operation, made)} %a0, %a{len(operands) - 1} : {made.dtype}"]
    return _generic(number, step, operands, [*maps, own], (), body)


def _select(number: int, step: Step, operands: Sequence[Value]) -> list[str]:
    made, own = step.makes, range(len(step.makes.shape))
    compare = "arith.cmpf ogt" if made.is_float else "arith.cmpi sgt"
    body = [
        f"%m = {compare}, %a0, %a1 : {made.dtype}",
        f"%d = {_arith('sub', made)} %a0, %a1 : {made.dtype}",
        f"%r = arith.select %m, %d, %a1 : {made.dtype}",
    ]
    return _generic(number, step, operands, [*step.attributes, own], (), body)


def _iota(number: int, step: Step, operands: Sequence[Value]) -> list[str]:
    made, own = step.makes, range(len(step.makes.shape))
    whole = "i64" if made.is_float else made.dtype
    body = [f"%i = linalg.index {step.attributes[0]} : index", f"%k = arith.index_cast %i : index to {whole}"]
    last = "%k"
    if made.is_float:
        body.append(f"%x = arith.sitofp %k : i64 to {made.dtype}")
        last = "%x"
    body.append(f"%r = {_arith('add', made)} {last}, %a0 : {made.dtype}")
    return _generic(number, step, operands, [own, own], (), body)


def _reduce(number: int, step: Step, operands: Sequence[Value]) -> list[str]:
    operation, dimensions = step.attributes
    made, loops = step.makes, range(len(operands[0].shape))
    kept = [loop for loop in loops if loop not in dimensions]
    body = [f"%r = {_arith(operation, made)} %a0, %o : {made.dtype}"]
    return _generic(number, step, operands, [loops, kept], dimensions, body, _neutral(operation, made))


def _neutral(operation: str, value: Value) -> str:
    if operation == "add":
        return "0.0" if value.is_float else "0"
    number = -MOST[value.dtype] if operation == "max" else MOST[value.dtype]
    return f"{number}.0" if value.is_float else str(number)


def _dot(number: int, step: Step, operands: Sequence[Value]) -> list[str]:
    *maps, summed = step.attributes
    made, loops = step.makes, max(loop for each in maps for loop in each) + 1
    kept = [loop for loop in range(loops) if loop not in summed]
    body = [
        f"%p = {_arith('mul', made)} %a0, %a1 : {made.dtype}",
        f"%r = {_arith('add', made)} %p, %o : {made.dtype}",
    ]
    return _generic(number, step, operands, [*maps, kept], summed, body, _neutral("add", made))


def _transpose(number: int, step: Step, operands: Sequence[Value]) -> list[str]:
    made, (permutation,) = step.makes, step.attributes
    ins, outs = f"%v{step.operands[0]} : {operands[0].type}", f"%e{number} : {made.type}"
    return [
        f"  %e{number} = tensor.empty() : {made.type}",
        f"  %v{number} = linalg.transpose ins({ins}) outs({outs}) permutation = {list(permutation)}",
    ]


def _groups(rank: int, first: int) -> str:
    """Reassociation of `rank` dimensions in which two are one."""
    groups = [[number] for number in range(first)] + [[first, first + 1]]
    groups += [[number] for number in range(first + 2, rank)]
    return str(groups)


def _collapse(number: int, step: Step, operands: Sequence[Value]) -> list[str]:
    source, groups = operands[0], _groups(len(operands[0].shape), step.attributes[0])
    return [
        f"  %v{number} = tensor.collapse_shape %v{step.operands[0]} {groups} : {source.type} into {step.makes.type}"
    ]


def _expand(number: int, step: Step, operands: Sequence[Value]) -> list[str]:
    made, groups = step.makes, _groups(len(step.makes.shape), step.attributes[0])
    return [
        f"  %v{number} = tensor.expand_shape %v{step.operands[0]} {groups} output_shape {list(made.shape)} : "
        f"{operands[0].type} into {made.type}"
    ]


def _slice(number: int, step: Step, operands: Sequence[Value]) -> list[str]:
    offsets, sizes, strides = (str(list(part)) for part in step.attributes)
    return [
        f"  %v{number} = tensor.extract_slice %v{step.operands[0]}{offsets} {sizes} {strides} : {operands[0].type} to "
        f"{step.makes.type}"
    ]


def _pad(number: int, step: Step, operands: Sequence[Value]) -> list[str]:
    made, (low, high) = step.makes, step.attributes
    indices = ", ".join(f"%i{place}: index" for place in range(len(made.shape)))
    return [
        f"  %c{number} = arith.constant {'3.0' if made.is_float else '3'} : {made.dtype}",
        f"  %v{number} = tensor.pad %v{step.operands[0]} low{list(low)} high{list(high)} {{",
        f"  ^bb0({indices}):",
        f"    tensor.yield %c{number} : {made.dtype}",
        f"  }} : {operands[0].type} to {made.type}",
    ]


def _concat(number: int, step: Step, operands: Sequence[Value]) -> list[str]:
    names, types = ", ".join(f"%v{operand}" for operand in step.operands), ", ".join(value.type for value in operands)
    return [f"  %v{number} = tensor.concat dim({step.attributes[0]}) {names} : ({types}) -> {step.makes.type}"]


def _cast(number: int, step: Step, operands: Sequence[Value]) -> list[str]:
    (source,), made, own = operands, step.makes, range(len(step.makes.shape))
    body = [f"%r = arith.{_conversion(source, made)} %a0 : {source.dtype} to {made.dtype}"]
    return _generic(number, step, operands, [own, own], (), body)


def _conversion(source: Value, made: Value) -> str:
    if source.is_float != made.is_float:
        return "fptosi" if source.is_float else "sitofp"
    wider = BYTES[made.dtype] > BYTES[source.dtype]
    if source.is_float:
        return "extf" if wider else "truncf"
    return "extsi" if wider else "trunci"


_TEXTS = {
    "elementwise": _elementwise,
    "select": _select,
    "iota": _iota,
    "reduce": _reduce,
    "dot": _dot,
    "transpose": _transpose,
    "collapse": _collapse,
    "expand": _expand,
    "slice": _slice,
    "pad": _pad,
    "concat": _concat,
    "cast": _cast,
}


# -- drawing


@st.composite
def programs(draw: st.DrawFn) -> Program:
    """A program of 1 to 3 inputs and up to MOST_STEPS steps."""
    inputs = tuple(draw(_inputs()) for _ in range(draw(st.integers(1, 3))))
    values, steps = list(inputs), []
    for _ in range(draw(st.integers(1, MOST_STEPS))):
        step = _draw_step(draw, values)
        if step is not None:
            steps.append(step)
            values.append(step.makes)
    last = len(values) - 1
    others = draw(st.lists(st.integers(0, last), max_size=2))
    return Program(inputs, tuple(steps), (last, *others), draw(st.integers(0, 3)))


@st.composite
def _inputs(draw: st.DrawFn) -> Value:
    shape: list[int] = []
    for _ in range(draw(st.integers(0, 4))):
        fitting = [size for size in SIZES if size * math.prod(shape) <= MOST_ELEMENTS]
        shape.append(draw(st.sampled_from(fitting)))
    dtype = draw(st.sampled_from(sorted(MOST)))
    strides = None
    if len(shape) > 1 and draw(st.booleans()):
        order = draw(st.permutations(range(len(shape))))
        step, found = draw(st.sampled_from((1, 1, 2))), [0] * len(shape)
        for dimension in order:
            found[dimension], step = step, step * shape[dimension]
        strides = tuple(found)
    return Value(tuple(shape), dtype, strides=strides)


def _draw_step(draw: st.DrawFn, values: Sequence[Value]) -> Step | None:
    """A step on some of the values, later ones more often; None where the kind that was drawn has no such step."""
    kind = draw(st.sampled_from(("elementwise", "elementwise", "elementwise", "reduce", "reduce", *_TEXTS)))
    operand = len(values) - 1 - min(draw(st.integers(0, len(values) - 1)), draw(st.integers(0, len(values) - 1)))
    step = _DRAWN[kind](draw, values, operand)
    if step is None:
        return None
    made = step.makes
    fits = math.prod(made.shape) <= MOST_ELEMENTS and made.bound <= MOST[made.dtype]
    return step if fits else None


def _loops_of(draw: st.DrawFn, value: Value, extents: Sequence[int]) -> tuple[int, ...] | None:
    """For each dimension a loop of its own, of its extent; None where there is none."""
    loops: list[int] = []
    for size in value.shape:
        fitting = [loop for loop, extent in enumerate(extents) if extent == size and loop not in loops]
        if not fitting:
            return None
        loops.append(draw(st.sampled_from(fitting)))
    return tuple(loops)


def _partner(draw: st.DrawFn, values: Sequence[Value], first: Value) -> tuple[int, tuple[int, ...]] | None:
    """Another value of the type, and the loops of `first` that its dimensions run along."""
    fitting = [
        number
        for number, value in enumerate(values)
        if value.dtype == first.dtype and not _excess(value.shape, first.shape)
    ]
    number = draw(st.sampled_from(fitting))
    loops = _loops_of(draw, values[number], first.shape)
    return None if loops is None else (number, loops)


def _excess(sizes: Sequence[int], of: Sequence[int]) -> bool:
    return any(sizes.count(size) > of.count(size) for size in sizes)


def _draw_elementwise(draw: st.DrawFn, values: Sequence[Value], operand: int) -> Step | None:
    first = values[operand]
    found = _partner(draw, values, first)
    if found is None:
        return None
    other, loops = found
    operation = draw(st.sampled_from(sorted(FLOAT)))
    one, two = first.bound, values[other].bound
    bound = {"add": one + two, "sub": one + two, "mul": one * two}.get(operation, max(one, two))
    maps = (tuple(range(len(first.shape))), loops)
    return Step("elementwise", (operand, other), (operation, *maps), Value(first.shape, first.dtype, bound))


def _draw_select(draw: st.DrawFn, values: Sequence[Value], operand: int) -> Step | None:
    first = values[operand]
    found = _partner(draw, values, first)
    if found is None:
        return None
    other, loops = found
    bound = first.bound + values[other].bound
    maps = (tuple(range(len(first.shape))), loops)
    return Step("select", (operand, other), maps, Value(first.shape, first.dtype, bound))


def _draw_iota(draw: st.DrawFn, values: Sequence[Value], operand: int) -> Step | None:
    first = values[operand]
    if not first.shape:
        return None
    dimension = draw(st.integers(0, len(first.shape) - 1))
    return Step("iota", (operand,), (dimension,), Value(first.shape, first.dtype, first.bound + first.shape[dimension]))


def _draw_reduce(draw: st.DrawFn, values: Sequence[Value], operand: int) -> Step | None:
    first = values[operand]
    if not first.shape:
        return None
    rank = len(first.shape)
    dimensions = tuple(sorted(draw(st.sets(st.integers(0, rank - 1), min_size=1, max_size=rank))))
    operation = draw(st.sampled_from(("add", "max", "min")))
    shape = tuple(size for dimension, size in enumerate(first.shape) if dimension not in dimensions)
    count = math.prod(first.shape[dimension] for dimension in dimensions)
    bound = first.bound * count if operation == "add" else first.bound
    return Step("reduce", (operand,), (operation, dimensions), Value(shape, first.dtype, bound))


def _draw_dot(draw: st.DrawFn, values: Sequence[Value], operand: int) -> Step | None:
    """A contraction with another value of the type, over one loop that the two have in common or more."""
    first = values[operand]
    other = draw(st.sampled_from([n for n, value in enumerate(values) if value.dtype == first.dtype]))
    second, extents, loops = values[other], list(first.shape), []
    for size in second.shape:
        fitting = [loop for loop, extent in enumerate(first.shape) if extent == size and loop not in loops]
        if fitting and draw(st.booleans()):
            loops.append(draw(st.sampled_from(fitting)))
        else:
            loops.append(len(extents))
            extents.append(size)
    shared = [loop for loop in loops if loop < len(first.shape)]
    if not shared or math.prod(extents) > MOST_POINTS:
        return None
    summed = tuple(sorted(draw(st.sets(st.sampled_from(shared), min_size=1))))
    shape = tuple(extent for loop, extent in enumerate(extents) if loop not in summed)
    bound = first.bound * second.bound * math.prod(extents[loop] for loop in summed)
    maps = (tuple(range(len(first.shape))), tuple(loops))
    return Step("dot", (operand, other), (*maps, summed), Value(shape, first.dtype, bound))


def _draw_transpose(draw: st.DrawFn, values: Sequence[Value], operand: int) -> Step | None:
    first = values[operand]
    permutation = tuple(draw(st.permutations(range(len(first.shape)))))
    shape = tuple(first.shape[dimension] for dimension in permutation)
    return Step("transpose", (operand,), (permutation,), Value(shape, first.dtype, first.bound)) if shape else None


def _draw_collapse(draw: st.DrawFn, values: Sequence[Value], operand: int) -> Step | None:
    first = values[operand]
    if len(first.shape) < 2:
        return None
    place = draw(st.integers(0, len(first.shape) - 2))
    both = first.shape[place] * first.shape[place + 1]
    shape = (*first.shape[:place], both, *first.shape[place + 2 :])
    return Step("collapse", (operand,), (place,), Value(shape, first.dtype, first.bound))


def _draw_expand(draw: st.DrawFn, values: Sequence[Value], operand: int) -> Step | None:
    first = values[operand]
    if not 1 <= len(first.shape) <= 4:
        return None
    place = draw(st.integers(0, len(first.shape) - 1))
    size = first.shape[place]
    part = draw(st.sampled_from([divisor for divisor in range(1, size + 1) if size % divisor == 0]))
    shape = (*first.shape[:place], part, size // part, *first.shape[place + 1 :])
    return Step("expand", (operand,), (place, part), Value(shape, first.dtype, first.bound))


def _draw_slice(draw: st.DrawFn, values: Sequence[Value], operand: int) -> Step | None:
    first = values[operand]
    if not first.shape:
        return None
    offsets, sizes, strides = [], [], []
    for size in first.shape:
        offsets.append(draw(st.integers(0, size - 1)))
        strides.append(draw(st.sampled_from((1, 1, 2, 3))))
        sizes.append(draw(st.integers(1, (size - offsets[-1] - 1) // strides[-1] + 1)))
    parts = (tuple(offsets), tuple(sizes), tuple(strides))
    return Step("slice", (operand,), parts, Value(tuple(sizes), first.dtype, first.bound))


def _draw_pad(draw: st.DrawFn, values: Sequence[Value], operand: int) -> Step | None:
    first = values[operand]
    if not first.shape:
        return None
    low, high = (tuple(draw(st.integers(0, 2)) for _ in first.shape) for _ in range(2))
    shape = tuple(size + below + above for size, below, above in zip(first.shape, low, high, strict=True))
    return Step("pad", (operand,), (low, high), Value(shape, first.dtype, max(first.bound, 3)))


def _draw_concat(draw: st.DrawFn, values: Sequence[Value], operand: int) -> Step | None:
    first = values[operand]
    if not first.shape:
        return None
    place = draw(st.integers(0, len(first.shape) - 1))
    fitting = [number for number, value in enumerate(values) if _concatenates(first, value, place)]
    others = draw(st.lists(st.sampled_from(fitting), min_size=1, max_size=2))
    size = first.shape[place] + sum(values[other].shape[place] for other in others)
    bound = max(first.bound, *(values[other].bound for other in others))
    shape = (*first.shape[:place], size, *first.shape[place + 1 :])
    return Step("concat", (operand, *others), (place,), Value(shape, first.dtype, bound))


def _concatenates(one: Value, other: Value, place: int) -> bool:
    if one.dtype != other.dtype or len(one.shape) != len(other.shape):
        return False
    return all(a == b for axis, (a, b) in enumerate(zip(one.shape, other.shape, strict=True)) if axis != place)


def _draw_cast(draw: st.DrawFn, values: Sequence[Value], operand: int) -> Step | None:
    first = values[operand]
    # Between f16 and bf16 there is no single conversion, and from f64 to them none that the reference's code could call
    fitting = sorted(
        dtype
        for dtype in MOST
        if (BYTES[dtype] != BYTES[first.dtype] or _is_mixed(dtype, first.dtype))
        and not (first.dtype == "f64" and BYTES[dtype] == 2)
    )
    dtype = draw(st.sampled_from(fitting))
    return Step("cast", (operand,), (dtype,), Value(first.shape, dtype, first.bound))


def _is_mixed(one: str, other: str) -> bool:
    return one.startswith("i") != other.startswith("i")


_DRAWN = {
    "elementwise": _draw_elementwise,
    "select": _draw_select,
    "iota": _draw_iota,
    "reduce": _draw_reduce,
    "dot": _draw_dot,
    "transpose": _draw_transpose,
    "collapse": _draw_collapse,
    "expand": _draw_expand,
    "slice": _draw_slice,
    "pad": _draw_pad,
    "concat": _draw_concat,
    "cast": _draw_cast,
}
