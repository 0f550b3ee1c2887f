"""One FX graph with symbols among its sizes, compiled once.

The graph is traced for two sets of sizes, whose numbers stand in for the symbols (`symbols.py`), and both traces are
compiled to one program (`driver/sized_program.py`). A call looks up the symbols' values among its arguments; the first
call with new values plans memory for them and compiles the host function, but no kernel.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field

import torch
from torch import fx

from ..dialects.mlir import ir
from ..driver.cache import Counts
from ..driver.launchers import make_launcher
from ..driver.options import Options
from ..driver.sized_program import SizedProgram, build_sized
from ..passes.size_template import AmbiguousError, Examples, NotGeneralError
from ..passes.sized_kernels import OtherLayoutError
from ..passes.sizes import Size, value_of
from ..runtime.launch import Launcher
from ..runtime.program import Program, Value
from .graph_build import check_device, program_of, without_refused
from .graph_form import Runner, constants_to_arguments, keep_tensor_outputs, left_out, passed_through, put_back
from .importer import Imported, import_graph
from .symbols import ATTEMPTS, Symbols

MOST_PROGRAMS = 256
"""Sets of sizes whose plans are kept."""


@dataclass
class SizedGraph:
    """A graph compiled for all sizes: `run` is called with its arguments."""

    symbols: Symbols
    traced: Traced
    program: SizedProgram
    launcher: Launcher
    returned: Sequence[object]
    """Its results, as graph_form.py has them, but that numbers may be sizes."""
    note: str
    otherwise: Callable[[], Runner]
    """Makes what runs the graph with memory that lies in another way than the kernels expect."""
    _plans: dict[tuple[int, ...], Plan] = field(default_factory=dict)
    _lock: threading.Lock = field(default_factory=threading.Lock)
    _fallback: Runner | None = None

    def __post_init__(self) -> None:
        self._through = passed_through(self.returned)

    @property
    def text(self) -> str:
        """The text of the first trace."""
        return self.traced.imported.text

    @property
    def library(self) -> tuple[tuple[str, str], ...]:
        """Its library calls."""
        return self.traced.imported.library

    def run(self, arguments: list) -> list:
        """The graph's results."""
        key = self.symbols.read(arguments)
        plan = self._plans.get(key) or self._plan(key, arguments)
        if plan.program is None:
            return self._run_otherwise(arguments)
        tensors: list[Value] = [value for value in arguments if isinstance(value, torch.Tensor)]
        passed = {number: arguments[number] for number in self._through}
        arguments.clear()
        tensors += self.traced.constants
        return put_back(plan.returned, plan.program.run(tensors), passed)

    def _plan(self, key: tuple[int, ...], arguments: Sequence[object]) -> Plan:
        with self._lock:
            if key not in self._plans:
                check_device(self.program.options.target, [a for a in arguments if isinstance(a, torch.Tensor)])
                if len(self._plans) >= MOST_PROGRAMS:
                    del self._plans[next(iter(self._plans))]
                self._plans[key] = self._make_plan(key)
            return self._plans[key]

    def _make_plan(self, key: tuple[int, ...]) -> Plan:
        values = self.symbols.values(key)
        returned = [value_of(value, values) if isinstance(value, Size) else value for value in self.returned]
        try:
            host = self.program.host(values)
        except OtherLayoutError:
            return Plan(returned, None)
        return Plan(returned, program_of(host, self.launcher, self.traced.imported, None))

    def _run_otherwise(self, arguments: list) -> list:
        with self._lock:
            self._fallback = self._fallback or self.otherwise()
        return self._fallback(arguments)


@dataclass(frozen=True)
class Plan:
    """What runs for one set of sizes, None where the kernels can't serve it, and what a call returns."""

    returned: Sequence[object]
    program: Program | None


@dataclass(frozen=True)
class Traced:
    """A graph traced for one set of sizes, and imported."""

    imported: Imported
    returned: Sequence[object]
    constants: Sequence[torch.Tensor]


def compile_for_all_sizes(
    graph: fx.GraphModule, options: Options, counts: Counts, otherwise: Callable[[], Runner]
) -> SizedGraph:
    """Compiles the graph; NotGeneralError where one program can't serve all sizes."""
    symbols = Symbols.of(graph)
    for attempt in range(ATTEMPTS):
        try:
            examples = symbols.examples(attempt)
            return without_refused(
                lambda refused, e=examples: _compile(graph, symbols, e, options, counts, otherwise, refused)
            )
        except AmbiguousError as error:
            reason = str(error)
    raise NotGeneralError(reason)


def _compile(
    graph: fx.GraphModule,
    symbols: Symbols,
    examples: Examples,
    options: Options,
    counts: Counts,
    otherwise: Callable[[], Runner],
    refused: frozenset[str],
) -> SizedGraph:
    first, second = (_trace(graph, symbols, examples, which, options, refused) for which in (0, 1))
    if not _same_constants(first.constants, second.constants):
        raise NotGeneralError("it has tensors that depend on its sizes")
    context = first.imported.module.context
    other = ir.Module.parse(second.imported.module.operation.get_asm(enable_debug_info=True), context)
    program = build_sized(first.imported.module, other, examples, options, counts)
    launcher = make_launcher(program.code, options)
    returned = _returned(first, second, examples)
    return SizedGraph(symbols, first, program, launcher, returned, symbols.note(examples), otherwise)


def _trace(
    graph: fx.GraphModule, symbols: Symbols, examples: Examples, which: int, options: Options, refused: frozenset[str]
) -> Traced:
    concrete = symbols.trace(graph, {name: pair[which] for name, pair in examples.symbols.items()})
    reason = left_out(concrete)
    if reason is not None:
        raise NotGeneralError(reason)
    returned = keep_tensor_outputs(concrete)
    constants = constants_to_arguments(concrete)
    return Traced(import_graph(concrete.graph, options.matmul, refused), returned, constants)


def _same_constants(one: Sequence[torch.Tensor], other: Sequence[torch.Tensor]) -> bool:
    pairs = list(zip(one, other, strict=False))
    return len(one) == len(other) and all(a is b or (a.shape == b.shape and torch.equal(a, b)) for a, b in pairs)


def _returned(first: Traced, second: Traced, examples: Examples) -> list[object]:
    """The results, of which numbers may be sizes."""
    results: list[object] = []
    for one, other in zip(first.returned, second.returned, strict=True):
        if type(one) is int and type(other) is int:
            results.append(examples.extent(one, other))
        elif one != other:
            raise NotGeneralError(f"it returns {one}, which is {other} for other sizes")
        else:
            results.append(one)
    return results
