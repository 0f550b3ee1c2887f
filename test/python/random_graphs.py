"""Random programs for the fusion passes: DAGs of elementwise operations, reductions, library calls and views.

A program is a list of `Op`s over numbered values, from which both MLIR text and (through ir_interpreter.py) expected
values are made. Tensors are square, N x N, so that anything may be added to or multiplied by anything. Some results
stay unused, some are returned twice, some operations draw random numbers or overwrite their operand.
"""

from __future__ import annotations

from dataclasses import dataclass, field

import numpy as np

ELEMENTWISE = ("add", "sub", "maximum", "scale")
CALLS = {
    "mm": "aten.mm.default",
    "addmm": "aten.addmm.default",
    "two": "test.two.default",
    "draw": "test.draw.default",
    "note": "test.note.default",
    "shift": "test.shift_.default",
}
EFFECTS = {"draw": "random", "note": "opaque"}


@dataclass(frozen=True)
class Op:
    """An operation by kind, the values it uses, and how many it makes."""

    kind: str
    uses: tuple[int, ...]
    makes: int = 1


@dataclass
class Program:
    """Values 0 .. arguments - 1 are arguments; each operation's results follow in order."""

    arguments: int
    ops: list[Op] = field(default_factory=list)
    returns: tuple[int, ...] = ()
    extent: int = 4

    @property
    def values(self) -> int:
        return self.arguments + sum(op.makes for op in self.ops)

    def add(self, kind: str, *uses: int, makes: int = 1) -> int:
        """Appends an operation; the number of its first result."""
        self.ops.append(Op(kind, uses, makes))
        return self.values - makes


def random_program(rng: np.random.Generator, ops: int, calls: float = 0.2, effects: bool = True) -> Program:
    """A program of `ops` operations; those of late index use recent values more often than old ones."""
    program = Program(arguments=int(rng.integers(1, 4)))
    kinds = [*ELEMENTWISE, "twin"]
    extra = ["mm", "mm", "two", "view", *(["draw", "note", "shift"] if effects else [])]
    reach = int(rng.integers(2, 40))
    stale: set[int] = set()
    for _ in range(ops):
        kind = str(rng.choice(extra if rng.random() < calls else kinds))
        count = 1 if kind in ("scale", "two", "view", "draw", "note", "shift") else 2
        fresh = [value for value in range(program.values) if value not in stale]
        uses = tuple(int(rng.choice(fresh[-reach:])) for _ in range(count))
        if kind == "shift" and uses[0] < program.arguments:
            kind = "scale"
        program.add(kind, *uses, makes={"two": 2, "twin": 2, "note": 0}.get(kind, 1))
        if kind == "shift":
            stale |= aliases(program, uses[0])
    fresh = [value for value in range(program.values) if value not in stale]
    unused = set(fresh) - {use for op in program.ops for use in op.uses}
    wanted = [value for value in fresh if value in unused and rng.random() < 0.8] or fresh[-1:]
    program.returns = tuple([*wanted, int(rng.choice(wanted)), int(rng.choice(fresh))])
    return program


def aliases(program: Program, value: int) -> set[int]:
    """The values in the same memory as `value`, itself among them."""
    root = list(range(program.arguments))
    for op in program.ops:
        shares = op.kind in ("view", "shift")
        root += [root[op.uses[0]]] if shares else range(len(root), len(root) + op.makes)
    newest = len(root) - 1
    return {other for other, memory in enumerate(root) if memory == root[value] and other != newest}


def parallel_paths(paths: int, shared: bool = False) -> Program:
    """`relu, matmul, relu, matmul-accumulate`, many times, of an argument each or all of one, into one accumulator."""
    program = Program(arguments=paths + 2, extent=256)
    weight, total = paths, paths + 1
    for path in range(paths):
        hidden = program.add("mm", program.add("relu", 0 if shared else path), weight)
        total = program.add("addmm", total, program.add("relu", hidden), weight)
    program.returns = (total,)
    return program


BODIES = {
    "add": ["%r0 = arith.addf %a, %b : f32"],
    "sub": ["%r0 = arith.subf %a, %b : f32"],
    "maximum": ["%r0 = arith.maximumf %a, %b : f32"],
    "scale": ["%k = arith.constant 0.5 : f32", "%r0 = arith.mulf %a, %k : f32"],
    "relu": ["%k = arith.constant 0.0 : f32", "%r0 = arith.maximumf %a, %k : f32"],
    "twin": ["%r0 = arith.addf %a, %b : f32", "%r1 = arith.subf %b, %a : f32"],
}


def text(program: Program) -> str:
    """The program as MLIR: linalg on tensors, fusion.extern and fusion.view."""
    tensor = f"tensor<{program.extent}x{program.extent}xf32>"
    names = [f"%a{argument}" for argument in range(program.arguments)]
    arguments = ", ".join(f"{name}: {tensor}" for name in names)
    lines = [f"  %e = tensor.empty() : {tensor}"]
    for number, op in enumerate(program.ops):
        lines += _op_lines(op, f"%v{number}", [names[use] for use in op.uses], program.extent)
        names += [f"%v{number}#{result}" if op.makes > 1 else f"%v{number}" for result in range(op.makes)]
    results = ", ".join([tensor] * len(program.returns))
    returned = ", ".join(names[value] for value in program.returns)
    head = ["#id = affine_map<(i, j) -> (i, j)>", f"func.func @main({arguments}) -> ({results}) {{"]
    tail = [f"  return {returned} : {results}" if program.returns else "  return", "}"]
    return "\n".join([*head, *lines, *tail])


def _op_lines(op: Op, name: str, uses: list[str], n: int) -> list[str]:
    tensor = f"tensor<{n}x{n}xf32>"
    if op.kind == "view":
        layout = f"offset = 0 : i64, sizes = array<i64: {n}, {n}>, strides = array<i64: 1, {n}>"
        return [f'  {name} = "fusion.view"({uses[0]}) {{{layout}}} : ({tensor}) -> {tensor}']
    if op.kind in BODIES:
        return _generic_lines(op, name, uses, tensor)
    return [_call_line(op, name, uses, tensor)]


def _call_line(op: Op, name: str, uses: list[str], tensor: str) -> str:
    args = ", ".join(f"#fusion.operand<{number}>" for number in range(len(uses)))
    attributes = f'op = "{CALLS[op.kind]}", args = [{args}]'
    if op.kind in EFFECTS:
        attributes += f', effects = ["{EFFECTS[op.kind]}"]'
    if op.kind == "shift":
        attributes += ", tied = [[0, 0]]"
    left = "" if not op.makes else f"{name}:{op.makes} = " if op.makes > 1 else f"{name} = "
    types = ", ".join([tensor] * len(uses)), ", ".join([tensor] * op.makes)
    return f'  {left}"fusion.extern"({", ".join(uses)}) {{{attributes}}} : ({types[0]}) -> ({types[1]})'


def _generic_lines(op: Op, name: str, uses: list[str], tensor: str) -> list[str]:
    scalars = ["%a", "%b"][: len(uses)] + [f"%o{number}" for number in range(op.makes)]
    maps = ", ".join(["#id"] * len(scalars))
    out_types = ", ".join([tensor] * op.makes)
    ins = f"ins({', '.join(uses)} : {', '.join([tensor] * len(uses))})"
    outs = f"outs({', '.join(['%e'] * op.makes)} : {out_types})"
    traits = f'{{indexing_maps = [{maps}], iterator_types = ["parallel", "parallel"]}}'
    results = ", ".join(f"%r{number}" for number in range(op.makes))
    return [
        f"  {name}{f':{op.makes}' if op.makes > 1 else ''} = linalg.generic {traits} {ins} {outs} {{",
        f"  ^bb0({', '.join(f'{scalar}: f32' for scalar in scalars)}):",
        *(f"    {line}" for line in BODIES[op.kind]),
        f"    linalg.yield {results} : {', '.join(['f32'] * op.makes)}",
        f"  }} -> {out_types if op.makes == 1 else f'({out_types})'}",
    ]
