"""`fusion.source`, what fusion-dataflow leaves in a function for fusion-segment: the source's order and its peak.

    func.func @main(...) attributes {
      fusion.source = {order = array<i64: 0, 2, 1, 0>, peak_bytes = 768 : i64, run_ops = 256 : i64}}

`order` says where each node stood in the source, in the order in which they are now, those in regions included; a
node that is computed again has the place of the one that it repeats. `peak_bytes` is what the source's order holds
at most, `run_ops` how many neighbours of the source may be one region, whatever they share; absent if they may not.
All of it is needed to take a plan back that turns out to hold or to move more, once kernels are made of its regions.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, replace

from ..dialects import fusion
from ..dialects.mlir import ir
from . import legality
from .graph import erase_unused, used_values
from .outline import RECOMPUTED, Part

ATTRIBUTE = "fusion.source"
PLACE = "fusion.place"


@dataclass(frozen=True)
class Source:
    """What is noted besides the order. With dynamic sizes the peak is no number yet, and None."""

    peak_bytes: int | None
    run_ops: int = 1


def note_source(function: ir.Operation, parts: Sequence[Part], source: Source) -> None:
    """Writes the attribute for the regions that `outline` made of `parts`, whose nodes are in source order."""
    _note(function, [node for part in parts for node in sorted((*part.nodes, *part.recomputed))], source)


def _note(function: ir.Operation, order: Sequence[int], source: Source) -> None:
    i64 = ir.IntegerType.get_signless(64)
    content: dict[str, ir.Attribute] = {"order": ir.DenseI64ArrayAttr.get(list(order))}
    if source.run_ops > 1:
        content["run_ops"] = ir.IntegerAttr.get(i64, source.run_ops)
    if source.peak_bytes is not None:
        content["peak_bytes"] = ir.IntegerAttr.get(i64, source.peak_bytes)
    function.attributes[ATTRIBUTE] = ir.DictAttr.get(content)


def add_peak(function: ir.Operation, peak_of_source: Callable[[ir.Operation], int]) -> None:
    """Completes an attribute that lacks the peak; `peak_of_source` gets a copy of the function, in source order."""
    if ATTRIBUTE not in function.attributes or "peak_bytes" in ir.DictAttr(function.attributes[ATTRIBUTE]):
        return
    order = list(ir.DenseI64ArrayAttr(ir.DictAttr(function.attributes[ATTRIBUTE])["order"]))
    copy = function.clone(ip=ir.InsertionPoint(function))
    source = mark_places(copy)
    if source is not None:
        restore(copy)
        _note(function, order, replace(source, peak_bytes=peak_of_source(copy)))
    copy.erase()


def dissolve(region: ir.Operation) -> list[ir.Operation]:
    """Puts what is inside `region` in its place, and returns that."""
    block = region.regions[0].blocks[0]
    for argument, operand in zip(list(block.arguments), list(region.operands), strict=True):
        argument.replace_all_uses_with(operand)
    for result, value in zip(list(region.results), fusion.terminator(region).operands, strict=True):
        result.replace_all_uses_with(value)
    moved = [op.operation for op in block.operations if op.operation.name != "fusion.yield"]
    for op in moved:
        op.move_before(region)
    region.erase()
    return moved


def mark_places(function: ir.Operation) -> Source | None:
    """Moves the attribute to the nodes, each of which gets its place as `fusion.place`; returns the rest.

    None if nobody noted the source, or if other passes have changed the number of nodes since.
    """
    if ATTRIBUTE not in function.attributes:
        return None
    content, nodes = ir.DictAttr(function.attributes[ATTRIBUTE]), list(_nodes_of(function))
    order = list(ir.DenseI64ArrayAttr(content["order"]))
    del function.attributes[ATTRIBUTE]
    if len(order) != len(nodes):
        return None
    for node, place in zip(nodes, order, strict=True):
        node.attributes[PLACE] = ir.IntegerAttr.get(ir.IntegerType.get_signless(64), place)
    peak = ir.IntegerAttr(content["peak_bytes"]).value if "peak_bytes" in content else None
    return Source(peak, ir.IntegerAttr(content["run_ops"]).value if "run_ops" in content else 1)


def take_place(node: ir.Operation, of: ir.Operation) -> None:
    """Marks a new node with the place of the one that it stands for, if that is marked."""
    if PLACE in of.attributes:
        node.attributes[PLACE] = of.attributes[PLACE]


def unmark_places(function: ir.Operation) -> list[int]:
    """Removes what `mark_places` put on the nodes, and returns it."""
    places = []
    for node in _nodes_of(function):
        if PLACE in node.attributes:
            places.append(ir.IntegerAttr(node.attributes[PLACE]).value)
            del node.attributes[PLACE]
    return places


def note_places(function: ir.Operation, source: Source) -> None:
    """Moves the marks back into the attribute."""
    _note(function, unmark_places(function), source)


def restore(function: ir.Operation) -> None:
    """Puts the nodes of a function at their places, out of all regions, and takes recomputation back.

    Of what only copies are left, because nothing used the original, the first becomes it.
    """
    for view in list(function.regions[0].blocks[0].operations):
        if fusion.is_op(view.operation, "region"):
            dissolve(view.operation)
    originals: defaultdict[int, list[ir.Operation]] = defaultdict(list)
    copies: list[tuple[int, ir.Operation]] = []
    for node in _nodes_of(function):
        place = ir.IntegerAttr(node.attributes[PLACE]).value
        if RECOMPUTED in node.attributes:
            copies.append((place, node))
        else:
            originals[place].append(node)
    for place, copy in copies:
        if place not in originals:
            del copy.attributes[RECOMPUTED]
            originals[place].append(copy)
            continue
        for copied, made in zip(copy.results, originals[place][-1].results, strict=True):
            copied.replace_all_uses_with(made)
        copy.erase()
    erase_unused(function.regions[0].blocks[0], legality.is_free)  # what only served what is gone
    put_in_order(function, (node for place in sorted(originals) for node in originals[place]))


def put_in_order(function: ir.Operation, nodes: Iterable[ir.Operation]) -> None:
    """Puts the nodes of a function's body in this order, and in front of each the free operations it needs."""
    operations = function.regions[0].blocks[0].operations
    end = operations[len(operations) - 1].operation
    placed: set[ir.Operation] = {end}
    for node in (*nodes, end):
        pending = [node]
        while pending:
            missing = [op for op in _free_operations(pending[-1]) if op not in placed]
            if missing:
                pending += missing
                continue
            op = pending.pop()
            if op not in placed:
                placed.add(op)
                op.move_before(end)


def _free_operations(op: ir.Operation) -> list[ir.Operation]:
    """Those whose results an operation uses."""
    owners = (value.owner for value in used_values(op) if not isinstance(value.owner, ir.Block))
    return [owner.operation for owner in owners if legality.is_free(owner.operation)]


def _nodes_of(function: ir.Operation) -> Iterator[ir.Operation]:
    """The nodes of a function, in regions or not, as they stand."""
    for view in function.regions[0].blocks[0].operations:
        op = view.operation
        if fusion.is_op(op, "region"):
            yield from (inner.operation for inner in op.regions[0].blocks[0].operations if _is_node(inner.operation))
        elif _is_node(op):
            yield op


def _is_node(op: ir.Operation) -> bool:
    ends = op.name in ("func.return", "fusion.yield")
    return not (ends or legality.is_free(op) or legality.is_kept_constant(op))
