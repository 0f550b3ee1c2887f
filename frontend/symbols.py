"""The symbols among a graph's sizes: where a call says their values, and numbers that may stand in for them."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property

import sympy
import torch
from torch import fx
from torch._subclasses.fake_tensor import FakeTensorMode
from torch.fx.experimental.proxy_tensor import make_fx
from torch.fx.experimental.symbolic_shapes import ShapeEnv

from ..passes.size_template import Examples, NotGeneralError

# Two numbers for a symbol: primes, above what code treats apart as small; no two pairs are alike in their difference
EXAMPLES = ((67, 73), (79, 89), (97, 113), (127, 149), (157, 191), (197, 251))
SMALL_EXAMPLES = ((11, 13), (17, 23), (29, 37), (41, 59))
FACTORS = (1, 2, 4, 8, 16, 32, 64)
ATTEMPTS = 3


@dataclass(frozen=True)
class Source:
    """Where a call has a symbol's value: an argument that is a number, or a dimension of one that is a tensor."""

    argument: int
    dimension: int | None


@dataclass(frozen=True)
class Symbols:
    """By symbol, its source; and the expressions of symbols that are no polynomials, such as s0 // 2, by name."""

    sources: Mapping[sympy.Symbol, Source]
    computed: Mapping[str, sympy.Expr]
    environment: ShapeEnv

    @staticmethod
    def of(graph: fx.GraphModule) -> Symbols:
        """Those of a graph; NotGeneralError if there is one whose value no argument says."""
        arguments = [node.meta.get("val") for node in graph.graph.find_nodes(op="placeholder")]
        sources: dict[sympy.Symbol, Source] = {}
        for number, dimension, expression in _sizes_of_arguments(arguments):
            if isinstance(expression, sympy.Symbol):
                sources.setdefault(expression, Source(number, dimension))
        expressions = dict.fromkeys(_expressions(graph))
        for expression in expressions:
            missing = sorted(map(str, expression.free_symbols - sources.keys()))
            if missing:
                raise NotGeneralError(f"no argument says what {', '.join(missing)} is")
        odd = [one for one in expressions if not one.is_polynomial()]
        return Symbols(sources, {f"computed{k}": one for k, one in enumerate(odd)}, _environment(graph))

    def read(self, arguments: Sequence[object]) -> tuple[int, ...]:
        """The symbols' values in a call."""
        return tuple(
            arguments[one.argument] if one.dimension is None else arguments[one.argument].shape[one.dimension]  # pyright: ignore
            for one in self._places
        )

    def values(self, numbers: Sequence[int]) -> dict[str, int]:
        """By name: the symbols, which have these values, and what is computed from them."""
        known = dict(zip(self.sources, numbers, strict=True))
        named = {str(name): number for name, number in known.items()}
        return named | {name: _value(one, known) for name, one in self.computed.items()}

    def examples(self, attempt: int) -> Examples:
        """Two numbers for each symbol; other ones at each attempt. NotGeneralError where none are known."""
        pairs = _pairs(attempt)
        found: dict[sympy.Symbol, tuple[int, int]] = {}
        for name in self.sources:
            allowed = (pair for pair in pairs if pair[0] not in {one for one, _ in found.values()})
            pair = next((pair for pair in allowed if self._allows(name, pair)), None)
            if pair is None:
                raise NotGeneralError(f"no numbers are known that {name} may be")
            found[name] = pair
        first, second = (self.values([pair[which] for pair in found.values()]) for which in (0, 1))
        for which in (0, 1):
            self._check({name: pair[which] for name, pair in found.items()})
        symbols = {str(name): pair for name, pair in found.items()}
        return Examples(symbols, {name: (first[name], second[name]) for name in self.computed})

    def trace(self, graph: fx.GraphModule, values: Mapping[str, int]) -> fx.GraphModule:
        """The graph for these values of the symbols, on tensors that have no memory."""
        known = {name: values[str(name)] for name in self.sources}
        arguments = [node.meta.get("val") for node in graph.graph.find_nodes(op="placeholder")]
        with FakeTensorMode(allow_non_fake_inputs=True):
            fakes = [_fake(value, known) for value in arguments]
        return make_fx(graph, tracing_mode="fake", _allow_non_fake_inputs=True)(*fakes)

    def note(self, examples: Examples) -> str:
        """For people: which numbers stand for which symbols."""
        return "for all sizes, shown for " + ", ".join(f"{name} = {pair[0]}" for name, pair in examples.symbols.items())

    @cached_property
    def _places(self) -> tuple[Source, ...]:
        return tuple(self.sources.values())

    def _allows(self, name: sympy.Symbol, pair: tuple[int, int]) -> bool:
        bounds = self.environment.var_to_range[name]
        own = [guard.expr for guard in self.environment.guards if guard.expr.free_symbols == {name}]
        return all(
            bounds.lower <= number <= bounds.upper and all(_holds(one, {name: number}) for one in own)
            for number in pair
        )

    def _check(self, values: Mapping[sympy.Symbol, int]) -> None:
        for guard in self.environment.guards:
            if guard.expr.free_symbols <= values.keys() and not _holds(guard.expr, values):
                raise NotGeneralError(f"no sizes are known for which {guard.expr}")


def _holds(condition: sympy.Basic, values: Mapping[sympy.Symbol, int]) -> bool:
    return bool(condition.subs(list(values.items())))


def _value(expression: sympy.Basic, values: Mapping[sympy.Symbol, int]) -> int:
    return int(expression.subs(list(values.items())))  # pyright: ignore[reportArgumentType]


def _pairs(attempt: int) -> Iterator[tuple[int, int]] | list[tuple[int, int]]:
    """Examples, those that are tried first at this attempt in front; their multiples where a symbol has to be one."""
    turned = [*EXAMPLES[attempt:], *EXAMPLES[:attempt], *SMALL_EXAMPLES]
    return [(factor * one, factor * other) for factor in FACTORS for one, other in turned]


def _sizes_of_arguments(arguments: Sequence[object]) -> Iterator[tuple[int, int | None, sympy.Expr]]:
    """(argument, dimension, expression) of each size that is an expression; numbers first."""
    for number, value in enumerate(arguments):
        if isinstance(value, torch.SymInt):
            yield number, None, value.node.expr
    for number, value in enumerate(arguments):
        for dimension, size in enumerate(value.shape if isinstance(value, torch.Tensor) else ()):
            if isinstance(size, torch.SymInt):
                yield number, dimension, size.node.expr


def _expressions(graph: fx.GraphModule) -> Iterator[sympy.Expr]:
    """The expressions that are sizes, strides or numbers of the graph."""
    for node in graph.graph.nodes:
        values = node.meta.get("val")
        for value in values if isinstance(values, list | tuple) else (values,):
            numbers = (*value.shape, *value.stride()) if _is_strided(value) else (value,)
            if any(isinstance(number, torch.SymFloat | torch.SymBool) for number in numbers):
                raise NotGeneralError(f"{node} is a number that is computed from sizes")
            yield from (number.node.expr for number in numbers if isinstance(number, torch.SymInt))


def _is_strided(value: object) -> bool:
    return isinstance(value, torch.Tensor) and value.layout == torch.strided


def _environment(graph: fx.GraphModule) -> ShapeEnv:
    for node in graph.graph.nodes:
        values = node.meta.get("val")
        for value in values if isinstance(values, list | tuple) else (values,):
            for number in (*value.shape, *value.stride()) if _is_strided(value) else (value,):
                if isinstance(number, torch.SymInt):
                    return number.node.shape_env
    raise NotGeneralError("its sizes have no symbols")


def _fake(value: object, known: Mapping[sympy.Symbol, int]) -> object:
    if isinstance(value, torch.SymInt):
        return _number(value, known)
    if not isinstance(value, torch.Tensor):
        return value
    if not _is_strided(value):
        raise NotGeneralError(f"an argument is a tensor of layout {value.layout}")
    shape, strides = ([_number(one, known) for one in many] for many in (value.shape, value.stride()))
    return torch.empty_strided(shape, strides, dtype=value.dtype, device=value.device)


def _number(value: int | torch.SymInt, known: Mapping[sympy.Symbol, int]) -> int:
    return _value(value.node.expr, known) if isinstance(value, torch.SymInt) else value
