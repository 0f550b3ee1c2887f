"""Where the boxes and nodes of a graph stand: layers from the top down, in n log n.

Each box's nodes are put in layers first (a node below all that it reads), which gives the box its size; then the boxes
themselves, by the same rule. Within a layer things stand in the order of the mean place of what they read, so that
most edges run straight down. A deep graph continues in a second column, and so on.

      [ 0 ]          layer 0
      /   \\
    [ 1 ] [ 2 ]      layer 1
      \\   /
      [ 3 ]          layer 2
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

NODE_WIDTH, NODE_HEIGHT = 132, 30
GAP_X, GAP_Y = 14, 18
MARGIN, TITLE = 12, 26
BOX_GAP_X, BOX_GAP_Y, COLUMN_GAP = 40, 56, 120
SCREEN = 1.4
"""How much wider than high a drawing should be."""
WIDEST_LAYER = 24
"""More boxes than these side by side go into further rows."""

Reads = Mapping[int, Sequence[int]]
Sizes = Mapping[int, tuple[float, float]] | Sequence[tuple[float, float]]
Row = tuple[list[int], float]
"""Things side by side, and how wide they are together."""


@dataclass(frozen=True)
class Place:
    """A rectangle; x and y of its upper left corner."""

    x: float
    y: float
    width: float
    height: float


@dataclass(frozen=True)
class Layout:
    """The places of boxes, and by box those of its nodes; and the size of all."""

    boxes: tuple[Place, ...]
    nodes: tuple[dict[int, Place], ...]
    width: float
    height: float


def lay_out(
    members: Sequence[Sequence[int]], inner: Sequence[Mapping[int, Sequence[int]]], outer: Sequence[Sequence[int]]
) -> Layout:
    """Places boxes and their nodes.

    `members` are the nodes of each box; `inner` says, by box and node, what the node reads inside the box; `outer`
    which earlier boxes a box reads.
    """
    insides = [_place_nodes(nodes, reads) for nodes, reads in zip(members, inner, strict=True)]
    sizes = [size for _, size in insides]
    boxes = _place_in_columns(list(range(len(members))), dict(enumerate(outer)), sizes)
    nodes = tuple(
        {node: Place(box.x + place.x, box.y + place.y, place.width, place.height) for node, place in inside.items()}
        for box, (inside, _) in zip((boxes[number] for number in range(len(members))), insides, strict=True)
    )
    places = tuple(boxes[number] for number in range(len(members)))
    width = max((place.x + place.width for place in places), default=0)
    height = max((place.y + place.height for place in places), default=0)
    return Layout(places, nodes, width, height)


def layers_of(things: Sequence[int], reads: Reads) -> list[list[int]]:
    """Things by layer; `things` are in an order in which each comes after what it reads.

    What reads nothing stands right above the first that reads it: a weight's view belongs to its matrix product.
    """
    depth: dict[int, int] = {}
    for thing in things:
        depth[thing] = max((depth[read] + 1 for read in reads.get(thing, ()) if read in depth), default=0)
    lowest: dict[int, int] = {}
    for thing in things:
        for read in reads.get(thing, ()):
            lowest[read] = min(lowest.get(read, depth[thing] - 1), depth[thing] - 1)
    layers: list[list[int]] = [[] for _ in range(max(depth.values(), default=-1) + 1)]
    for thing in things:
        is_source = not reads.get(thing)
        layers[lowest.get(thing, depth[thing]) if is_source else depth[thing]].append(thing)
    return layers


def _place_nodes(
    nodes: Sequence[int], reads: Mapping[int, Sequence[int]]
) -> tuple[dict[int, Place], tuple[float, float]]:
    """The nodes of a box, from its corner, and the size that it needs."""
    size = (float(NODE_WIDTH), float(NODE_HEIGHT))
    places = _place(list(nodes), reads, dict.fromkeys(nodes, size), GAP_X, GAP_Y)
    moved = {n: Place(p.x + MARGIN, p.y + MARGIN + TITLE, p.width, p.height) for n, p in places.items()}
    right = max((place.x + place.width for place in moved.values()), default=float(NODE_WIDTH))
    bottom = max((place.y + place.height for place in moved.values()), default=float(TITLE))
    return moved, (right + MARGIN, bottom + MARGIN)


def _place(things: Sequence[int], reads: Reads, sizes: Sizes, gap_x: float, gap_y: float) -> dict[int, Place]:
    """Rows of things, one below the other, each in the middle of the widest."""
    rows = _rows(things, reads, sizes, gap_x)
    places: dict[int, Place] = {}
    _stack(rows, sizes, gap_x, gap_y, 0.0, places)
    return places


def _place_in_columns(things: Sequence[int], reads: Reads, sizes: Sizes) -> dict[int, Place]:
    """The same, cut into as many columns side by side as make the whole about as wide as a screen."""
    rows = _rows(things, reads, sizes, BOX_GAP_X)
    height = sum(_height(row, sizes) + BOX_GAP_Y for row, _ in rows)
    widest = max((width for _, width in rows), default=0.0)
    count = max(1, round(math.sqrt(SCREEN * height / max(widest + COLUMN_GAP, 1.0))))
    places: dict[int, Place] = {}
    x, column, filled = 0.0, list[Row](), 0.0
    for row in [*rows, None]:
        if column and (row is None or filled + _height(row[0], sizes) > height / count):
            _stack(column, sizes, BOX_GAP_X, BOX_GAP_Y, x, places)
            x += max(width for _, width in column) + COLUMN_GAP
            column, filled = [], 0.0
        if row is not None:
            column.append(row)
            filled += _height(row[0], sizes) + BOX_GAP_Y
    return places


def _rows(things: Sequence[int], reads: Reads, sizes: Sizes, gap_x: float) -> list[Row]:
    """The layers as rows, in order of the mean place of what each thing reads; a wide layer is several."""
    middle: dict[int, float] = {}
    rows: list[Row] = []
    for layer in layers_of(things, reads):
        ordered = sorted(layer, key=lambda thing: _mean([middle[r] for r in reads.get(thing, ()) if r in middle]))
        for start in range(0, len(ordered), WIDEST_LAYER):
            row = ordered[start : start + WIDEST_LAYER]
            width = sum(sizes[thing][0] for thing in row) + gap_x * (len(row) - 1)
            rows.append((row, width))
            _note_middles(row, sizes, gap_x, width, middle)
    return rows


def _stack(
    rows: Sequence[Row], sizes: Sizes, gap_x: float, gap_y: float, left: float, places: dict[int, Place]
) -> None:
    widest = max((width for _, width in rows), default=0.0)
    y = 0.0
    for row, width in rows:
        x = left + (widest - width) / 2
        for thing in row:
            places[thing] = Place(x, y, *sizes[thing])
            x += sizes[thing][0] + gap_x
        y += _height(row, sizes) + gap_y


def _height(row: Sequence[int], sizes: Sizes) -> float:
    return max(sizes[thing][1] for thing in row)


def _note_middles(row: Sequence[int], sizes: Sizes, gap: float, width: float, middle: dict[int, float]) -> None:
    """Where the middle of each thing of a row is, from the middle of the row."""
    x = -width / 2
    for thing in row:
        middle[thing] = x + sizes[thing][0] / 2
        x += sizes[thing][0] + gap


def _mean(values: Sequence[float]) -> float:
    return sum(values) / len(values) if values else 0.0
