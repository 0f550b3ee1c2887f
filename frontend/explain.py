"""`mlir_fusion.explain`: what fusion does to a program, by numbers, without running it.

report = mlir_fusion.explain(model, x)                    # tables, in a terminal and in a notebook
report.graphs[0].kernels
report.compare("consecutive", "dataflow")
report.save("report.html")                                # one page, with the graph and the IR of every stage
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, replace
from html import escape
from pathlib import Path
from types import MethodType
from typing import Any

import torch

from ..dialects.mlir import ir, register_torch
from ..driver.options import FUSION_TYPES, Options, Settings
from ..driver.page.contents import Program
from ..driver.page.page import make_page
from ..driver.report import BYTES, FunctionReport, report
from ..driver.report_tables import report_tables
from ..driver.runner import make_context
from ..driver.scope import capture
from ..driver.tables import Table, seconds_text
from ..passes.pass_base import check_choice
from .compile import captured_by, check_callable, trace
from .graphs import CompiledGraph, GraphCompiler

COMPARED = ("ops", "regions", "kernels", "extern_calls", "bytes_moved", *BYTES, "flops")


@dataclass(frozen=True, repr=False)
class Explanation:
    """The reports of a program's graphs, under one fusion type."""

    fusion_type: str
    graphs: tuple[FunctionReport, ...]
    library: tuple[tuple[str, str], ...]
    """Library calls: the operation, and why it is one."""
    _sources: tuple[CompiledGraph, ...]
    _name: str

    def __str__(self) -> str:
        return "\n".join(map(str, self._parts()))

    __repr__ = __str__

    def __rich_console__(self, *_: object) -> Iterator[object]:
        yield from self._parts()

    def _repr_html_(self) -> str:
        return "".join(
            one._repr_html_() if isinstance(one, Table) else f"<p>{escape(one)}</p>" for one in self._parts()
        )

    def _parts(self) -> Iterator[Table | str]:
        reasons = dict(self.library)
        for graph, source in zip(self.graphs, self._sources, strict=True):
            yield from report_tables(graph, f"{source.kind} graph", source.options.target, reasons)

    def total(self, name: str) -> int:
        """The sum of a number over all graphs; for peaks, the largest."""
        values = [getattr(graph, name) or 0 for graph in self.graphs]
        return max(values, default=0) if name in BYTES else sum(values)

    @property
    def seconds(self) -> float:
        """What the target's data sheet allows at best for all graphs, one launch or call after the other."""
        return sum(graph.seconds for graph in self.graphs)

    def save(self, path: str | os.PathLike[str]) -> Path:
        """Writes one HTML page that needs no network: the graph with its kernels, each one's IR at every stage, memory
        over time, a roofline, and why what is not fused is not. Compiles the program anew; OSError if it can't write.
        """
        title = f"mlir-fusion: {self._name}"
        page = make_page(title, [self._program(number) for number in range(len(self._sources))])
        Path(path).write_text(page, "utf-8")
        return Path(path)

    def _program(self, number: int) -> Program:
        source, report = self._sources[number], self.graphs[number]
        under = [self._alone(number).under(fusion_type) for fusion_type in FUSION_TYPES]
        return Program(
            title=f"graph {number + 1}, {source.kind}",
            parse=lambda: _parse(source),
            options=replace(source.options, fusion_type=report.fusion_type),
            reports=tuple(one.graphs[0] for one in under),
            comparison=self._alone(number).compare(),
            reasons=dict(source.library),
        )

    def _alone(self, number: int) -> Explanation:
        return replace(self, graphs=self.graphs[number : number + 1], _sources=self._sources[number : number + 1])

    def under(self, fusion_type: str) -> Explanation:
        """The same program under another fusion type."""
        return _explanation(self._sources, fusion_type, self._name)

    def compare(self, *fusion_types: str) -> Table:
        """A table with one column a fusion type; all of them where none is named.

        ValueError for what is no fusion type.
        """
        for fusion_type in fusion_types:
            check_choice("fusion type", fusion_type, FUSION_TYPES)
        columns = [self.under(fusion_type) for fusion_type in fusion_types or FUSION_TYPES]
        rows = [(name, *(f"{one.total(name):,}" for one in columns)) for name in COMPARED]
        times = ("least time", *(seconds_text(one.seconds) for one in columns))
        headings = ("", *(one.fusion_type for one in columns))
        return Table("", headings, (*rows, times), frozenset(range(1, len(headings))))


def explain(
    function: Callable | torch.nn.Module,
    *inputs: Any,
    fusion_type: str | None = None,
    target: str | None = None,
    **keywords: Any,
) -> Explanation:
    """Compiles `function` for these inputs, and reports; nothing is run.

    What `mlir_fusion.compile` returned is explained under its own settings, but for those given here. (What
    torch.compile was told PyTorch doesn't say.) `fusion_type` and `target` are ours if they are strings; of any other
    type, they are the function's keywords. Raises ValueError for a fusion type or a target that is not allowed,
    TypeError for what is no function and no module, RuntimeError if there is nothing to compile.
    """
    check_callable("explain", function)
    ours, theirs = _sort_keywords({"fusion_type": fusion_type, "target": target})
    said = Settings.from_keywords(ours, "explain")
    compiler = GraphCompiler(Options(), _settings_of(function).then(said))
    trace(_original(function), compiler, inputs, {**theirs, **keywords})
    name = getattr(function, "__qualname__", type(function).__name__)
    return _explanation(tuple(compiler.graphs), compiler.settings.apply(compiler.defaults).fusion_type, name)


def _sort_keywords(named: Mapping[str, object]) -> tuple[dict[str, object], dict[str, object]]:
    """What is said to us, and what is for the function: it may have keywords of these names."""
    is_ours = {name: value is None or isinstance(value, str) for name, value in named.items()}
    ours, theirs = ({name: value for name, value in named.items() if is_ours[name] is one} for one in (True, False))
    return ours, theirs


def _settings_of(function: Callable | torch.nn.Module) -> Settings:
    captured = captured_by(getattr(function, "__func__", function)) or capture()
    return captured.settings_now()


def _original(function: Callable | torch.nn.Module) -> Callable:
    """What was compiled, if something compiled this."""
    if isinstance(function, MethodType):
        return MethodType(_original(function.__func__), function.__self__)
    return getattr(function, "_torchdynamo_orig_callable", function)


def _explanation(graphs: tuple[CompiledGraph, ...], fusion_type: str, name: str) -> Explanation:
    reports = tuple(_report(graph, replace(graph.options, fusion_type=fusion_type)) for graph in graphs)
    library = tuple(call for graph in graphs for call in graph.library)
    return Explanation(fusion_type, reports, library, graphs, name)


def _report(graph: CompiledGraph, options: Options) -> FunctionReport:
    (found,) = report(_parse(graph), options)
    return found


def _parse(graph: CompiledGraph) -> ir.Module:
    context = make_context()
    register_torch(context)
    with context:
        return ir.Module.parse(graph.text)
