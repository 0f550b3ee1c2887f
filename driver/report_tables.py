"""A report as tables: the numbers of a function, its kernels, its library calls, and its memory over time."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path
from types import MappingProxyType

from .options import Options
from .report import BYTES, CallReport, FunctionReport, KernelReport
from .tables import Table, bars, seconds_text

NUMBERS = ("ops", "regions", "kernels", "extern_calls", "bytes_moved", *BYTES, "flops")
MOST_LINES = 4


NO_REASONS: Mapping[str, str] = MappingProxyType({})


def print_tables(reports: Iterable[FunctionReport], options: Options) -> str:
    """The tables of several functions as text."""
    parts = (part for one in reports for part in report_tables(one, f"@{one.function}", options.target))
    return "\n".join(map(str, parts))


def report_tables(
    report: FunctionReport, title: str, target: str, reasons: Mapping[str, str] = NO_REASONS
) -> Iterator[Table | str]:
    """Tables and lines of text; `reasons` says of a library's operation why it is the library's."""
    yield _numbers(report, f"{title}, fusion type {report.fusion_type}, target {target}")
    if report.kernel_list:
        yield _kernels(report.kernel_list)
        yield "\n".join(["schedules", *(f"  {one.name}: {one.why}" for one in report.kernel_list)]) + "\n"
    if report.call_list:
        yield _calls(report.call_list)
    called = [op for op in dict.fromkeys(call.op for call in report.call_list) if op in reasons]
    if called:
        yield "\n".join(["library calls", *(f"  {op}: {reasons[op]}" for op in called)]) + "\n"
    if report.timeline:
        yield f"bytes alive, launch by launch, {max(report.timeline):,} at most\n  {bars(report.timeline)}\n"


def short_lines(lines: tuple[str, ...]) -> str:
    """The files by their names only, and no more than a few: `model.py:7, 9`."""
    shown: list[str] = []
    last = ""
    for line in lines[:MOST_LINES]:
        path, _, number = line.rpartition(":")
        name = Path(path).name
        shown.append(number if name == last else f"{name}:{number}")
        last = name
    return ", ".join(shown) + (f" and {len(lines) - MOST_LINES} more" if len(lines) > MOST_LINES else "")


def _numbers(report: FunctionReport, title: str) -> Table:
    values = [(name, getattr(report, name)) for name in NUMBERS]
    rows = [(name, "unknown" if value is None else f"{value:,}") for name, value in values]
    return Table(title, ("", ""), (*rows, ("least time", seconds_text(report.seconds))), frozenset({1}))


def _kernels(kernels: tuple[KernelReport, ...]) -> Table:
    rows = [
        (
            one.name,
            f"{one.ops:,}",
            f"{one.bytes:,}",
            f"{one.flops:,}",
            seconds_text(one.seconds),
            one.schedule,
            short_lines(one.lines),
        )
        for one in kernels
    ]
    headings = ("kernel", "ops", "bytes", "flops", "least time", "schedule", "from")
    return Table("", headings, tuple(rows), frozenset({1, 2, 3, 4}))


def _calls(calls: tuple[CallReport, ...]) -> Table:
    rows = [
        (
            one.op,
            f"{one.bytes:,}",
            "unknown" if one.flops is None else f"{one.flops:,}",
            seconds_text(one.seconds),
            short_lines(one.lines),
        )
        for one in calls
    ]
    return Table("", ("call", "bytes", "flops", "least time", "from"), tuple(rows), frozenset({1, 2, 3}))
