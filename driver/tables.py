"""Tables for people: as text in a terminal, and as HTML in a notebook or a page."""

from __future__ import annotations

import io
import itertools
import shutil
from collections.abc import Sequence
from dataclasses import dataclass
from html import escape

LEAST_WIDTH = 100
UNITS = ((1.0, "s"), (1e-3, "ms"), (1e-6, "µs"), (1e-9, "ns"))
BARS = "▁▂▃▄▅▆▇█"
MOST_BARS = 64


@dataclass(frozen=True)
class Table:
    """Rows of text under headings; columns of numbers stand to the right."""

    title: str
    headings: tuple[str, ...]
    rows: tuple[tuple[str, ...], ...]
    numeric: frozenset[int] = frozenset()
    """The columns of numbers."""

    def __str__(self) -> str:
        # Takes long to import, and whoever prints no table need not wait for it
        from rich.console import Console

        width = max(LEAST_WIDTH, shutil.get_terminal_size().columns)
        text = io.StringIO()
        Console(file=text, width=width, no_color=True, force_terminal=False).print(self.__rich__())
        return "".join(line.rstrip() + "\n" for line in text.getvalue().splitlines())

    __repr__ = __str__

    def __rich__(self) -> object:
        """What rich prints, in color where there is any."""
        from rich.console import Group
        from rich.table import Table as RichTable
        from rich.text import Text

        table = RichTable(box=None, pad_edge=False, show_header=any(self.headings))
        for number, heading in enumerate(self.headings):
            is_number = number in self.numeric
            table.add_column(heading, justify="right" if is_number else "left", no_wrap=is_number, overflow="fold")
        for row in self.rows:
            table.add_row(*map(Text, row))
        return Group(Text(self.title), table) if self.title else table

    def _repr_html_(self) -> str:
        caption = f"<caption>{escape(self.title)}</caption>" if self.title else ""
        body = "".join(f"<tr>{self._cells(row, 'td')}</tr>" for row in self.rows)
        return (
            f"<table>{caption}<thead><tr>{self._cells(self.headings, 'th')}</tr></thead><tbody>{body}</tbody></table>"
        )

    def _cells(self, texts: Sequence[str], tag: str) -> str:
        right = ' style="text-align:right"'
        return "".join(f"<{tag}{right * (n in self.numeric)}>{escape(text)}</{tag}>" for n, text in enumerate(texts))


def seconds_text(seconds: float) -> str:
    """A time with three digits and the unit that fits."""
    scale, unit = next((one for one in UNITS if seconds >= one[0]), UNITS[-1])
    return f"{seconds / scale:.3g} {unit}"


def bars(values: Sequence[int]) -> str:
    """Numbers over time, as a line of bars; of many, the largest of each stretch."""
    if not values or not max(values):
        return ""
    count = min(len(values), MOST_BARS)
    cuts = [len(values) * number // count for number in range(count + 1)]
    highest = max(values)
    found = (max(values[start:end]) for start, end in itertools.pairwise(cuts))
    return "".join(BARS[value * (len(BARS) - 1) // highest] for value in found)
