"""Gives `fusion.extern`, `fusion.view` and `func.return` operands that exist in memory.

A library call and a caller see memory, so what they use is an argument, a node's result, or a `fusion.view`
of one. `MemoryOperands(function).rewrite()` replaces everything else:

  - a chain of view-like ops becomes a fusion.view of the chain's root (passes/views.py);
  - a filled or constant tensor becomes a generic that writes it;
  - where strides can't say it, a copy comes in between, as PyTorch's `reshape` copies;
  - a result that the function says is `fusion.new`, and that would be an argument, part of one or of another result,
    is a copy;
  - a tensor that the library writes (`tied`), or one whose memory it overwrites, is never an alias: a copy.
"""

from __future__ import annotations

from collections import Counter

from ..dialects import fusion
from ..dialects.mlir import arith, ir
from . import generics, views
from .views import Traced, View


class MemoryOperands:
    """Rewrites one function; remembers the views and constant tensors it made, to make each once."""

    def __init__(self, function: ir.Operation):
        self.function = function
        self.made: dict[tuple[ir.Value, View], ir.Value] = {}

    def rewrite(self) -> None:
        for block in self.function.regions[0].blocks:
            for op in [view.operation for view in block.operations]:
                if fusion.is_op(op, "view"):
                    self._rewrite_view(op)
                elif fusion.is_op(op, "extern"):
                    self._rewrite_operands(op)
                elif op.name == "func.return":
                    self._rewrite_operands(op)
                    self._separate_results(op)

    def _rewrite_view(self, op: ir.Operation) -> None:
        source = op.operands[0]
        traced = views.trace(op.results[0])
        if traced is None:
            op.operands[0] = self._node(source, ir.InsertionPoint(op))
            return
        if traced.root == source:
            return
        if views.is_overwritten(traced.root):
            op.operands[0] = self._node(source, ir.InsertionPoint.after(source.owner))
            return
        op.results[0].replace_all_uses_with(self._place(traced, op.results[0], op))
        op.erase()

    def _rewrite_operands(self, op: ir.Operation) -> None:
        written = {operand for operand, _ in fusion.tied_operands(op)} if fusion.is_op(op, "extern") else set()
        for number, value in enumerate(op.operands):
            if not isinstance(value.type, ir.RankedTensorType):
                continue
            if number in written:
                op.operands[number] = value if _is_in_memory(value) else self._copy(value, ir.InsertionPoint(op))
            elif not _is_in_memory(value) or _is_copy(value):
                op.operands[number] = self._resolve(value, op, self._stated_strides(op, number))
            elif self._must_move(value, self._stated_strides(op, number)):
                op.operands[number] = self._copy(value, ir.InsertionPoint(op))

    def _separate_results(self, op: ir.Operation) -> None:
        """Copies what the function says is new but is an argument, part of one, or part of another result."""
        owners = [views.memory_owner(value) for value in op.operands]
        shared = Counter(owners)
        for number, (value, owner) in enumerate(zip(op.operands, owners, strict=True)):
            if shared[owner] == 1 and not isinstance(owner.owner, ir.Block):
                continue
            if "fusion.new" in self._result_attributes(number):
                op.operands[number] = self._copy(value, ir.InsertionPoint(op))
                shared[owner] -= 1

    def _result_attributes(self, number: int) -> ir.DictAttr | dict[str, ir.Attribute]:
        """What the function says of its result of that number."""
        if "res_attrs" not in self.function.attributes:
            return {}
        return ir.DictAttr(ir.ArrayAttr(self.function.attributes["res_attrs"])[number])

    def _must_move(self, value: ir.Value, strides: list[int] | None) -> bool:
        """Whether the function returns `value` with strides that it hasn't, and that can't be prescribed to its maker.

        They can't be to a library call, nor where anyone else reads the tensor.
        """
        memory = views.layout_of(value) if strides is not None else None
        if memory is None or memory.same_memory(View(memory.offset, memory.sizes, tuple(strides or ()))):
            return False
        return isinstance(value.owner, ir.Block) or value.owner.name not in views.NODES or len(list(value.uses)) > 1

    def _resolve(self, value: ir.Value, user: ir.Operation, strides: list[int] | None) -> ir.Value:
        """What `user` takes instead of `value`; `strides` if the function's result has to have these."""
        point = ir.InsertionPoint(user)
        if views.static_shape(value) is None:
            return self._node(value, point)
        traced = self._trace(value, point)
        if views.is_overwritten(traced.root):
            return self._node(value, ir.InsertionPoint.after(value.owner))
        stated = View(traced.view.offset, traced.view.sizes, tuple(strides or traced.view.strides))
        if not traced.view.same_memory(stated):
            return self._node(value, point)
        return self._place(traced, value, user)

    def _trace(self, value: ir.Value, point: ir.InsertionPoint) -> Traced:
        """Like `views.trace`, but puts a copy where no strides describe a step of the chain."""
        traced = views.trace(value)
        if traced is not None:
            return traced
        step, source = views.step_of(value), value.owner.operation.operands[0]
        shape = views.static_shape(source)
        if step is not None and shape is not None:
            traced = self._trace(source, point)
            view = step(traced.view)
            if view is not None:
                return Traced(traced.root, view)
            view = step(views.contiguous(shape))
            if view is not None:
                return Traced(self._node(source, point), view)
        return Traced(self._node(value, point), views.contiguous(views.static_shape(value) or []))

    def _place(self, traced: Traced, value: ir.Value, user: ir.Operation) -> ir.Value:
        """The traced view of its root, in front of `user`; the root itself where it is the same."""
        if not views.is_root(traced.root):
            return self._node(value, ir.InsertionPoint(user))
        if traced.root.type == value.type and traced.view.same_memory(views.layout_of(traced.root) or traced.view):
            return traced.root
        key = (traced.root, traced.view)
        if key not in self.made:
            with ir.InsertionPoint(user), value.owner.location:
                self.made[key] = _view(traced, value.type)
        return self.made[key]

    def _node(self, value: ir.Value, point: ir.InsertionPoint) -> ir.Value:
        """A contiguous tensor of its own with the elements of `value`: `value` itself if it is one."""
        if views.is_root(value) and not views.is_made_by(value, "fusion.view") and _is_contiguous(value):
            return value
        key = (value, views.contiguous(views.static_shape(value) or []))
        if key not in self.made:
            self.made[key] = self._constant(value, point) or self._copy(value, point)
        return self.made[key]

    def _constant(self, value: ir.Value, point: ir.InsertionPoint) -> ir.Value | None:
        """A generic that writes the one scalar that `value` consists of; uninitialised memory is zero."""
        traced = views.trace(value)
        root = traced.root if traced else value
        scalar = generics.uniform_scalar(root)
        if scalar is None and views.is_made_by(root, "tensor.empty"):
            scalar = _zero(root)
        return generics.constant_tensor(scalar, value, value.owner.location, point) if scalar else None

    def _copy(self, value: ir.Value, point: ir.InsertionPoint) -> ir.Value:
        element = ir.ShapedType(value.type).element_type
        return generics.elementwise(value, element, lambda x: x, _location(value), point)

    def _stated_strides(self, op: ir.Operation, number: int) -> list[int] | None:
        """What #fusion.layout says of the function's result of that number."""
        attributes = self._result_attributes(number) if op.name == "func.return" else {}
        layout = fusion.read_layout(attributes["fusion.layout"]) if "fusion.layout" in attributes else None
        return list(layout.strides) if layout else None


def _is_in_memory(value: ir.Value) -> bool:
    return views.is_root(value)


def _is_contiguous(root: ir.Value) -> bool:
    memory = views.layout_of(root)
    return memory is None or memory.same_memory(views.contiguous(memory.sizes))


def _is_copy(value: ir.Value) -> bool:
    return not isinstance(value.owner, ir.Block) and views.is_copy(value.owner.operation)


def _view(traced: Traced, type_: ir.Type) -> ir.Value:
    i64 = ir.IntegerType.get_signless(64)
    attributes = {
        "offset": ir.IntegerAttr.get(i64, traced.view.offset),
        "sizes": ir.DenseI64ArrayAttr.get(list(traced.view.sizes)),
        "strides": ir.DenseI64ArrayAttr.get(list(traced.view.strides)),
    }
    return ir.Operation.create("fusion.view", results=[type_], operands=[traced.root], attributes=attributes).results[0]


def _location(value: ir.Value) -> ir.Location:
    return value.owner.owner.location if isinstance(value.owner, ir.Block) else value.owner.location


def _zero(root: ir.Value) -> ir.Value:
    """A constant at the head of the function, where MLIR's canonicalize keeps constants."""
    element = ir.ShapedType(root.type).element_type
    with ir.InsertionPoint.at_block_begin(root.owner.operation.block), root.owner.location:
        return arith.ConstantOp(element, 0.0 if isinstance(element, ir.FloatType) else 0).result
