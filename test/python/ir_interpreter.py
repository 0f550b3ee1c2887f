"""Runs functions of linalg, fusion.region, fusion.extern and fusion.view with numpy, one operation at a time.

For tests only. Memory is real: a view shares its source's array and `test.shift_` overwrites its operand, so an
order that breaks a dependence through memory gives other numbers. Calls with effects see how many came before
them, and write to a log.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np
from mlir_fusion.dialects import fusion
from mlir_fusion.dialects.mlir import ir

SCALAR_OPS = {
    "arith.addf": np.add,
    "arith.subf": np.subtract,
    "arith.mulf": np.multiply,
    "arith.maximumf": np.maximum,
}
FREE_SHAPE_OPS = ("tensor.expand_shape", "tensor.collapse_shape")


class Interpreter:
    """Runs one function; `log` holds what its calls with effects saw, in order."""

    def __init__(self) -> None:
        self.log: list[tuple[str, float]] = []

    def run(self, function: ir.Operation, arguments: Sequence[np.ndarray]) -> list[np.ndarray]:
        block = function.regions[0].blocks[0]
        copies = [argument.copy() for argument in arguments]
        return self._run_block(block, dict(zip(block.arguments, copies, strict=True)))

    def _run_block(self, block: ir.Block, known: dict[ir.Value, np.ndarray]) -> list[np.ndarray]:
        for view in block.operations:
            op = view.operation
            if op.name in ("func.return", "fusion.yield"):
                return [known[operand] for operand in op.operands]
            known.update(zip(op.results, self._run_op(op, known), strict=True))
        raise AssertionError("a block without an end")

    def _run_op(self, op: ir.Operation, known: Mapping[ir.Value, np.ndarray]) -> list[np.ndarray]:
        operands = [known[operand] for operand in op.operands]
        if op.name == "fusion.region":
            block = op.regions[0].blocks[0]
            return self._run_block(block, dict(zip(block.arguments, operands, strict=True)))
        if op.name == "fusion.extern":
            return self._call(op, operands)
        if op.name == "fusion.view":
            return [_view(op, operands[0])]
        if op.name == "linalg.generic":
            return _generic(op, known)
        if op.name in FREE_SHAPE_OPS:
            return [operands[0].reshape(ir.ShapedType(op.results[0].type).shape)]
        if op.name == "linalg.fill":
            return [np.full(ir.ShapedType(op.results[0].type).shape, operands[0], np.float32)]
        if op.name == "tensor.empty":
            return [np.full(ir.ShapedType(op.results[0].type).shape, np.nan, np.float32)]
        if op.name == "arith.constant":
            return [_constant(op)]
        raise AssertionError(f"the interpreter does not know {op.name}")

    def _call(self, op: ir.Operation, operands: list[np.ndarray]) -> list[np.ndarray]:
        name = ir.StringAttr(op.attributes["op"]).value
        if fusion.extern_effects(op):
            self.log.append((name, float(operands[0].sum())))
        if name == "aten.mm.default":
            return [np.tanh(operands[0] @ operands[1])]
        if name == "aten.addmm.default":
            return [operands[0] + operands[1] @ operands[2]]
        if name == "test.two.default":
            return [operands[0] * 0.25, operands[0] + 1]
        if name in ("test.draw.default", "test.gather.default"):
            return [operands[0] * len(self.log)]
        if name == "test.shift_.default":
            operands[0] += 1
            return [operands[0]]
        assert name == "test.note.default"
        return []


def _view(op: ir.Operation, source: np.ndarray) -> np.ndarray:
    sizes = fusion.integers(op.attributes["sizes"])
    strides = [stride * source.itemsize for stride in fusion.integers(op.attributes["strides"])]
    return np.lib.stride_tricks.as_strided(source, sizes, strides)


def _constant(op: ir.Operation) -> np.ndarray:
    value = op.attributes["value"]
    if isinstance(value, ir.DenseElementsAttr):
        return np.array(value)
    return np.float32(ir.FloatAttr(value).value)


def _generic(op: ir.Operation, known: Mapping[ir.Value, np.ndarray]) -> list[np.ndarray]:
    """A generic over whole arrays: maps are projections, and a reduction sums one input into its output."""
    block = op.regions[0].blocks[0]
    maps = [ir.AffineMapAttr(attribute).value for attribute in ir.ArrayAttr(op.attributes["indexing_maps"])]
    summed = tuple(
        n for n, kind in enumerate(ir.ArrayAttr(op.attributes["iterator_types"])) if "reduction" in str(kind)
    )
    arrays = [known[operand] for operand in op.operands]
    scalars = {
        argument: _spread(array, indexing)
        for argument, array, indexing in zip(block.arguments, arrays, maps, strict=True)
    }
    if summed:
        (source, initial) = arrays
        return [initial + _spread(source, maps[0]).sum(axis=summed)]
    shape = arrays[-1].shape
    for view in block.operations:
        inner = view.operation
        if inner.name == "linalg.yield":
            values = [_lookup(value, scalars, known) for value in inner.operands]
            return [np.array(np.broadcast_to(value, shape)) for value in values]
        if inner.name == "arith.constant":
            scalars[inner.results[0]] = _constant(inner)
        else:
            operands = [_lookup(value, scalars, known) for value in inner.operands]
            scalars[inner.results[0]] = SCALAR_OPS[inner.name](*operands)
    raise AssertionError("a generic without a yield")


def _spread(array: np.ndarray, indexing: ir.AffineMap) -> np.ndarray:
    """The array with one axis for each loop, of extent 1 where the loop does not move in it."""
    loops = [ir.AffineDimExpr(expression).position for expression in indexing.results]
    ordered = array.transpose(np.argsort(loops, kind="stable")) if loops else array
    missing = [loop for loop in range(indexing.n_dims) if loop not in loops]
    return np.expand_dims(ordered, missing)


def _lookup(
    value: ir.Value, scalars: Mapping[ir.Value, np.ndarray], known: Mapping[ir.Value, np.ndarray]
) -> np.ndarray:
    return scalars[value] if value in scalars else known[value]
