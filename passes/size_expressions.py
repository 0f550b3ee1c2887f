"""Sizes as expressions of symbols, the way `fusion.shape` writes them: `"s0"`, `"2*s0 + 1"`, `"s0//2"`.

evaluate("2*s0", {"s0": 64}) == 128
symbols_of("s0*(s1 + 1)") == {"s0", "s1"}
"""

from __future__ import annotations

import ast
import operator
from collections.abc import Callable, Mapping

OPERATORS: dict[type[ast.operator], Callable[[int, int], int]] = {
    ast.Add: operator.add,
    ast.Sub: operator.sub,
    ast.Mult: operator.mul,
    ast.FloorDiv: operator.floordiv,
    ast.Mod: operator.mod,
}


def symbols_of(expression: str) -> set[str]:
    """The symbols in an expression; ValueError if it is none."""
    found: set[str] = set()
    pending: list[ast.expr] = [_parse(expression)]
    while pending:
        node = pending.pop()
        if isinstance(node, ast.BinOp) and type(node.op) in OPERATORS:
            pending += (node.left, node.right)
        elif isinstance(node, ast.Name):
            found.add(node.id)
        elif not (isinstance(node, ast.Constant) and isinstance(node.value, int)):
            raise ValueError(f"{expression!r} is not a size: symbols and numbers, with + - * // % and parentheses")
    return found


def evaluate(expression: str, numbers: Mapping[str, int]) -> int:
    """The value of an expression; ValueError for what is none, KeyError for a symbol that has no number."""
    symbols_of(expression)
    return _value(_parse(expression), numbers)


def _parse(expression: str) -> ast.expr:
    try:
        return ast.parse(expression, mode="eval").body
    except SyntaxError:
        raise ValueError(f"{expression!r} is not a size") from None


def _value(node: ast.expr, numbers: Mapping[str, int]) -> int:
    if isinstance(node, ast.BinOp):
        return OPERATORS[type(node.op)](_value(node.left, numbers), _value(node.right, numbers))
    if isinstance(node, ast.Name):
        return numbers[node.id]
    assert isinstance(node, ast.Constant) and isinstance(node.value, int)
    return node.value
