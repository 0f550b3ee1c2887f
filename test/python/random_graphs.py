"""Random programs for the fusion passes: DAGs of elementwise operations, reductions, transposes, calls and views.

A program is a list of `Op`s over numbered values, from which both MLIR text and (through ir_interpreter.py) expected
values are made. Tensors are N x N, or vectors of N that sums over rows or columns make, so that anything may be added
to anything. Some results stay unused, some are returned twice, some operations draw random numbers, overwrite their
operand, or do something that nobody knows.
"""

from __future__ import annotations

from dataclasses import dataclass, field

import numpy as np

ELEMENTWISE = ("add", "sub", "maximum", "scale")
RESHAPING = ("sum_rows", "sum_columns", "transpose", "spread")
CALLS = {
    "mm": "aten.mm.default",
    "addmm": "aten.addmm.default",
    "two": "test.two.default",
    "draw": "test.draw.default",
    "note": "test.note.default",
    "gather": "test.gather.default",
    "shift": "test.shift_.default",
}
EFFECTS = {"draw": "random", "note": "opaque", "gather": "collective"}
ONE_OPERAND = frozenset({"scale", "relu", "two", "view", *EFFECTS, "shift", *RESHAPING})
MATRICES_ONLY = frozenset({"mm", "addmm", "two", "view", *EFFECTS, "shift", "transpose", "sum_rows", "sum_columns"})


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
    ranks: list[int] = field(default_factory=list)
    """Of each value; arguments are matrices."""

    def __post_init__(self) -> None:
        self.ranks = [2] * self.arguments

    @property
    def values(self) -> int:
        return len(self.ranks)

    def add(self, kind: str, *uses: int, makes: int = 1) -> int:
        """Appends an operation; the number of its first result."""
        self.ops.append(Op(kind, uses, makes))
        self.ranks += [self._rank(kind, uses)] * makes
        return self.values - makes

    def _rank(self, kind: str, uses: tuple[int, ...]) -> int:
        if kind in ("sum_rows", "sum_columns"):
            return 1
        return 2 if kind == "spread" else max((self.ranks[use] for use in uses), default=2)


def random_program(
    rng: np.random.Generator, ops: int, calls: float = 0.2, effects: bool = True, reshaping: float = 0.0
) -> Program:
    """A program of `ops` operations; those of late index use recent values more often than old ones.

    `calls` and `reshaping` are the shares of operations that are calls or views, and sums or transposes.
    """
    program = Program(arguments=int(rng.integers(1, 4)))
    kinds = [*ELEMENTWISE, "twin"]
    extra = ["mm", "mm", "two", "view", *([*EFFECTS, "shift"] if effects else [])]
    reach = int(rng.integers(2, 40))
    stale: set[int] = set()
    for _ in range(ops):
        share = rng.random()
        kind = str(rng.choice(extra if share < calls else RESHAPING if share < calls + reshaping else kinds))
        fresh = [value for value in range(program.values) if value not in stale]
        allowed = [value for value in fresh if program.ranks[value] == 2 or kind not in MATRICES_ONLY][-reach:]
        count = 1 if kind in ONE_OPERAND else 2
        uses = tuple(int(rng.choice(allowed)) for _ in range(count))
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
    "transpose": ["%r0 = arith.addf %a, %a : f32"],
    "spread": ["%r0 = arith.addf %a, %a : f32"],
    "sum_rows": ["%r0 = arith.addf %a, %o0 : f32"],
    "sum_columns": ["%r0 = arith.addf %a, %o0 : f32"],
}


def text(program: Program) -> str:
    """The program as MLIR: linalg on tensors, fusion.extern and fusion.view."""
    types = [_tensor(program, rank) for rank in program.ranks]
    names = [f"%a{argument}" for argument in range(program.arguments)]
    arguments = ", ".join(f"{name}: {types[number]}" for number, name in enumerate(names))
    lines = [f"  %e2 = tensor.empty() : {_tensor(program, 2)}", f"  %e1 = tensor.empty() : {_tensor(program, 1)}"]
    lines += ["  %zero = arith.constant 0.0 : f32"]
    lines += [f"  %f1 = linalg.fill ins(%zero : f32) outs(%e1 : {_tensor(program, 1)}) -> {_tensor(program, 1)}"]
    for number, op in enumerate(program.ops):
        lines += _op_lines(program, op, f"%v{number}", names)
        names += [f"%v{number}#{result}" if op.makes > 1 else f"%v{number}" for result in range(op.makes)]
    results = ", ".join(types[value] for value in program.returns)
    returned = ", ".join(names[value] for value in program.returns)
    tail = [f"  return {returned} : {results}" if program.returns else "  return", "}"]
    return "\n".join([*_MAP_LINES, f"func.func @main({arguments}) -> ({results}) {{", *lines, *tail])


_MAP_LINES = (
    "#vector = affine_map<(i) -> (i)>",
    "#id = affine_map<(i, j) -> (i, j)>",
    "#transposed = affine_map<(i, j) -> (j, i)>",
    "#row = affine_map<(i, j) -> (i)>",
    "#column = affine_map<(i, j) -> (j)>",
)


def _tensor(program: Program, rank: int) -> str:
    return f"tensor<{'x'.join([str(program.extent)] * rank)}xf32>"


def _op_lines(program: Program, op: Op, name: str, names: list[str]) -> list[str]:
    uses, n, tensor = [names[use] for use in op.uses], program.extent, _tensor(program, 2)
    if op.kind == "view":
        layout = f"offset = 0 : i64, sizes = array<i64: {n}, {n}>, strides = array<i64: 1, {n}>"
        return [f'  {name} = "fusion.view"({uses[0]}) {{{layout}}} : ({tensor}) -> {tensor}']
    if op.kind in BODIES:
        return _generic_lines(program, op, name, uses)
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


def _generic_lines(program: Program, op: Op, name: str, uses: list[str]) -> list[str]:
    reduced = {"sum_rows": "#row", "sum_columns": "#column"}.get(op.kind)
    ranks = [program.ranks[use] for use in op.uses]
    loops = 2 if reduced or op.kind == "spread" else max(ranks)
    inputs = ["#transposed" if op.kind == "transpose" else _map(rank, loops) for rank in ranks]
    outputs = [reduced or _map(loops, loops)] * op.makes
    iterators = ["parallel"] * loops
    if reduced:
        iterators[1 if reduced == "#row" else 0] = "reduction"
    types, out = [_tensor(program, rank) for rank in ranks], _tensor(program, 1 if reduced else loops)
    scalars = ["%a", "%b"][: len(uses)] + [f"%o{number}" for number in range(op.makes)]
    out_types = ", ".join([out] * op.makes)
    init = "%f1" if reduced else f"%e{loops}"
    ins = f"ins({', '.join(uses)} : {', '.join(types)})"
    outs = f"outs({', '.join([init] * op.makes)} : {out_types})"
    quoted = ", ".join(f'"{iterator}"' for iterator in iterators)
    traits = f"{{indexing_maps = [{', '.join(inputs + outputs)}], iterator_types = [{quoted}]}}"
    results = ", ".join(f"%r{number}" for number in range(op.makes))
    return [
        f"  {name}{f':{op.makes}' if op.makes > 1 else ''} = linalg.generic {traits} {ins} {outs} {{",
        f"  ^bb0({', '.join(f'{scalar}: f32' for scalar in scalars)}):",
        *(f"    {line}" for line in BODIES[op.kind]),
        f"    linalg.yield {results} : {', '.join(['f32'] * op.makes)}",
        f"  }} -> {out_types if op.makes == 1 else f'({out_types})'}",
    ]


def _map(rank: int, loops: int) -> str:
    """How an operand is indexed: a vector runs along the rows of a matrix."""
    return "#vector" if loops == 1 else "#id" if rank == 2 else "#column"
