"""Arithmetic on f16 and bf16 inside a linalg body, done in f32 and rounded once.

PyTorch computes one op on 16-bit floats in f32 and rounds the op's result. torch-mlir writes the same op as
one linalg body in 16-bit arithmetic, which would round after each step. `widen` restores PyTorch's way:

    %s = arith.addf %a, %b : bf16             %x = arith.extf %a : bf16 to f32
    %t = math.exp %s : bf16                   %y = arith.extf %b : bf16 to f32
    linalg.yield %t : bf16                    %s = arith.addf %x, %y : f32
                                              %t = math.exp %s fastmath<afn> : f32
                                              %u = arith.truncf %t : f32 to bf16
                                              linalg.yield %u : bf16

What stays 16 bits wide is exact there: comparisons, selections, minima, maxima and sign changes of values
that were loaded rather than computed. A rounding that the program states itself, an `arith.truncf`, stays
too, but for one of a scalar from outside the body that takes part in arithmetic: PyTorch keeps such scalars
in f32. (It does round a scalar that elements are compared with, and so does an exact operation here.)

A 16-bit accumulator of a sum becomes an f32 one, and the sum is rounded by an op of its own.

Fast math. Where all results of a body are 16 bits wide, or all that is made of a step's result ends so
(hidden_errors.py), an f32 step may be off by a few units in its last place, which is well below half a unit of bf16
(2^-9) or f16 (2^-11); `fast-math=on` allows that everywhere, `off` nowhere:
  - exp, exp2, sqrt and rsqrt may be approximated (`afn`). Not log, sin, cos, pow and tanh: their fast forms are
    wrong by more near 1, for large or for negative arguments;
  - a division is marked `fusion.approximate`: a GPU has one that is off by 2 units at most, for all operands
    (`afn` would take another, which gives 0 for divisors above 2^126), and invert_divisors.py does what it can;
  - a product that only a sum uses is written as one `math.fma` (in 16-bit bodies only, unless `fma=false`). The
    flags `contract` and `arcp` would leave that to LLVM, which looks at operations around, so a body's result would
    depend on what it is fused with.
The extensions and truncations are never tagged: `contract` on both would let MLIR fold them, and the rounding
away.
"""

from __future__ import annotations

from dataclasses import dataclass

from ..dialects.mlir import arith, ir, linalg, math
from . import generics
from .hidden_errors import is_hidden

EXACT = frozenset(f"arith.{name}" for name in ("select", "cmpf", "negf", "maximumf", "minimumf", "maxnumf", "minnumf"))
APPROXIMABLE = frozenset({"math.exp", "math.exp2", "math.sqrt", "math.rsqrt"})
APPROXIMATE = "fusion.approximate"
FAST_MATH = ("off", "auto", "on")
CONVERSIONS = frozenset({"arith.bitcast", "arith.truncf", "arith.extf", "arith.constant"})


def is_narrow(type_: ir.Type) -> bool:
    """Whether values of this type are computed in f32."""
    return isinstance(type_, ir.F16Type | ir.BF16Type)


@dataclass(frozen=True)
class Precision:
    """What is allowed: multiply-adds where a rounding follows; approximations there (auto), everywhere or nowhere."""

    fma: bool = True
    fast_math: str = "auto"


def widen(op: ir.Operation, precision: Precision) -> None:
    """Brings the body of a linalg.generic to f32 arithmetic; may replace `op`."""
    widening = Widening(generics.body(op))
    widening.run()
    op = _widen_accumulators(op, widening)
    _erase_dead(generics.body(op))
    _allow_approximation(op, precision)


class Widening:
    """Walks one block, holding the f32 value of each 16-bit value that was computed in f32."""

    def __init__(self, block: ir.Block, outer: Widening | None = None):
        self.block = block
        self.computed: dict[ir.Value, ir.Value] = dict(outer.computed) if outer else {}
        self.extended: dict[ir.Value, ir.Value] = dict(outer.extended) if outer else {}

    def run(self) -> None:
        for op in [view.operation for view in self.block.operations]:
            for region in op.regions:
                for block in region.blocks:
                    Widening(block, self).run()
            if op.name == "arith.extf":
                self._replace_extension(op)
            elif op.name == "arith.truncf":
                self._keep_scalar_wide(op)
            elif self._needs_f32(op):
                self._rewrite(op)

    def _needs_f32(self, op: ir.Operation) -> bool:
        if len(op.regions) or op.name in CONVERSIONS or op.name.partition(".")[0] not in ("arith", "math"):
            return False
        if not any(is_narrow(value.type) for value in (*op.operands, *op.results)):
            return False
        return op.name not in EXACT or any(operand in self.computed for operand in op.operands)

    def _rewrite(self, op: ir.Operation) -> None:
        f32 = ir.F32Type.get()
        wide = ir.Operation.create(
            op.name,
            results=[f32 if is_narrow(result.type) else result.type for result in op.results],
            operands=[self._wide(operand, op) for operand in op.operands],
            attributes={name: op.attributes[name] for name in op.attributes},
            loc=op.location,
            ip=ir.InsertionPoint(op),
        )
        for old, new in zip(op.results, wide.results, strict=True):
            old.replace_all_uses_with(self._rounded(new, old.type, op))
        op.erase()

    def _rounded(self, wide: ir.Value, type_: ir.Type, op: ir.Operation) -> ir.Value:
        if wide.type == type_:
            return wide
        with ir.InsertionPoint(op), op.location:
            narrow = arith.TruncFOp(type_, wide).result
        self.computed[narrow] = wide
        return narrow

    def _wide(self, value: ir.Value, op: ir.Operation) -> ir.Value:
        if not is_narrow(value.type):
            return value
        if value in self.computed:
            return self.computed[value]
        if value not in self.extended:
            with ir.InsertionPoint(op), op.location:
                self.extended[value] = arith.ExtFOp(ir.F32Type.get(), value).result
        return self.extended[value]

    def _replace_extension(self, op: ir.Operation) -> None:
        """An extension of what was computed in f32 anyway takes the f32 value."""
        if op.operands[0] not in self.computed:
            return
        wide = self.computed[op.operands[0]]
        if op.results[0].type == wide.type:
            op.results[0].replace_all_uses_with(wide)
        else:
            op.operands[0] = wide

    def _keep_scalar_wide(self, op: ir.Operation) -> None:
        """A scalar of the program, rounded to 16 bits for this op alone, takes part unrounded."""
        source, result = op.operands[0], op.results[0]
        if not is_narrow(result.type) or not _is_outside(source, op):
            return
        f32 = ir.F32Type.get()
        with ir.InsertionPoint(op), op.location:
            self.extended[result] = source if source.type == f32 else arith.TruncFOp(f32, source).result


def _is_outside(value: ir.Value, op: ir.Operation) -> bool:
    """Whether `value` comes from outside the linalg op that `op` is in."""
    enclosing = op
    while not generics.is_generic(enclosing):
        enclosing = enclosing.parent.operation
    owner = value.owner
    around = owner.owner.operation if isinstance(owner, ir.Block) else owner.parent.operation
    return around == enclosing.parent.operation


@dataclass(frozen=True)
class _Accumulator:
    """An output of a reduction that must become f32: its number, and the f32 value to yield."""

    number: int
    wide: ir.Value


def _widen_accumulators(op: ir.Operation, widening: Widening) -> ir.Operation:
    parts = generics.parts(op)
    if parts.all_parallel:
        return op
    for accumulator in _inexact_accumulators(op, parts, widening):
        op = _widen_accumulator(op, accumulator)
    return op


def _inexact_accumulators(op: ir.Operation, parts: generics.Parts, widening: Widening) -> list[_Accumulator]:
    arguments = list(generics.body(op).arguments)[len(parts.inputs) :]
    yielded = list(generics.yield_of(op).operands)
    return [
        _Accumulator(number, widening.computed[value])
        for number, (argument, value) in enumerate(zip(arguments, yielded, strict=True))
        if is_narrow(argument.type) and value in widening.computed and _is_used(argument)
    ]


def _widen_accumulator(op: ir.Operation, accumulator: _Accumulator) -> ir.Operation:
    parts = generics.parts(op)
    operand = len(parts.inputs) + accumulator.number
    argument = generics.body(op).arguments[operand]
    narrow = argument.type
    init = _wide_init(parts.outputs[accumulator.number], op)
    _retype(argument, generics.body(op), op.location)
    generics.yield_of(op).operands[accumulator.number] = accumulator.wide
    new = generics.rebuild(op, parts.with_operand(operand, init))
    for number, (old, result) in enumerate(zip(op.results, new.results, strict=True)):
        if number == accumulator.number:
            result = _round_tensor(result, narrow, op)
        old.replace_all_uses_with(result)
    op.erase()
    return new


def _retype(argument: ir.BlockArgument, block: ir.Block, location: ir.Location) -> None:
    """Makes a block argument f32: its extensions are itself now, other uses see it rounded."""
    narrow = argument.type
    uses = list(argument.uses)
    argument.set_type(ir.F32Type.get())
    rounded = None
    for use in uses:
        user = use.owner.operation
        if user.name == "arith.extf" and user.results[0].type == argument.type:
            user.results[0].replace_all_uses_with(argument)
            user.erase()
            continue
        if rounded is None:
            with ir.InsertionPoint.at_block_begin(block), location:
                rounded = arith.TruncFOp(narrow, argument).result
        user.operands[use.operand_number] = rounded


def _wide_init(init: ir.Value, op: ir.Operation) -> ir.Value:
    """The initial value of an accumulator in f32: a fill of the extended scalar, or an extension of each
    element."""
    f32, point = ir.F32Type.get(), ir.InsertionPoint(op)
    scalar = generics.uniform_scalar(init)
    if scalar is None:
        return generics.elementwise(init, f32, lambda x: arith.ExtFOp(f32, x).result, op.location, point)
    with point, op.location:
        wide = arith.ExtFOp(f32, scalar).result
        empty = generics.empty_like(init, f32, op.location, point)
        return linalg.fill(wide, outs=[empty])


def _round_tensor(value: ir.Value, narrow: ir.Type, op: ir.Operation) -> ir.Value:
    return generics.elementwise(
        value, narrow, lambda x: arith.TruncFOp(narrow, x).result, op.location, ir.InsertionPoint(op)
    )


def _allow_approximation(op: ir.Operation, precision: Precision) -> None:
    is_rounded = all(is_narrow(value.type) for value in generics.yield_of(op).operands)
    for inner in [view.operation for view in generics.body(op).operations]:
        if inner.name in ("arith.addf", "arith.subf") and is_rounded and precision.fma:
            _contract(inner)
        elif inner.results and inner.results[0].type == ir.F32Type.get() and _may_be_off(inner, precision):
            _approximate(inner)


def _may_be_off(op: ir.Operation, precision: Precision) -> bool:
    """Whether the result of an f32 step need not be the nearest."""
    if op.name not in APPROXIMABLE and op.name != "arith.divf":
        return False
    if precision.fast_math == "auto":
        yielded = generics.yield_of(op.parent.operation).operands
        return all(is_narrow(value.type) for value in yielded) or is_hidden(op.results[0])
    return precision.fast_math == "on"


def _approximate(op: ir.Operation) -> None:
    if op.name in APPROXIMABLE:
        op.attributes["fastmath"] = ir.Attribute.parse("#arith.fastmath<afn>")
    else:
        op.attributes[APPROXIMATE] = ir.UnitAttr.get()


def _contract(op: ir.Operation) -> None:
    """A sum or difference with a product that nothing else uses becomes one fused multiply-add."""
    for number, product in enumerate(op.operands):
        is_product = not isinstance(product, ir.BlockArgument) and product.owner.name == "arith.mulf"
        if not is_product or product.type != ir.F32Type.get() or len(list(product.uses)) != 1:
            continue
        (left, right), other = product.owner.operands, op.operands[1 - number]
        with ir.InsertionPoint(op), op.location:
            if op.name == "arith.subf" and number == 0:
                other = arith.NegFOp(other).result
            elif op.name == "arith.subf":
                left = arith.NegFOp(left).result
            fused = math.FmaOp(left, right, other).result
        op.results[0].replace_all_uses_with(fused)
        product_op = product.owner.operation
        op.erase()
        product_op.erase()
        return


def _erase_dead(block: ir.Block) -> None:
    """Removes arithmetic that lost its last use."""
    for op in reversed([view.operation for view in block.operations]):
        pure = op.name.partition(".")[0] in ("arith", "math")
        if pure and not any(_is_used(result) for result in op.results):
            op.erase()


def _is_used(value: ir.Value) -> bool:
    return next(iter(value.uses), None) is not None
