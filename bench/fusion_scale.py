"""How long the fusion passes take on large graphs, and how that grows.

    python bench/fusion_scale.py [--sizes 1000,2000,5000,10000,20000] [--repeat 3]

prints, for chains, wide graphs, transformers, chains with long skips, and operations that share nothing, the seconds
of processor time of each pass (graph, decisions and rewriting of the IR; parsing apart), and the exponent of growth
from one size to the next.
"""

from __future__ import annotations

import argparse
import math
import time
from collections.abc import Callable, Iterator

from mlir_fusion.dialects import fusion
from mlir_fusion.dialects.mlir import ir
from mlir_fusion.passes.fusion_consecutive import FusionConsecutive
from mlir_fusion.passes.fusion_dataflow import FusionDataflow

TENSOR = "tensor<64x64xf32>"
Line = tuple[str, tuple[int, ...]]


def chain(ops: int) -> Iterator[Line]:
    """Each operation uses the one before; value 0 is the argument."""
    for number in range(ops):
        yield "add", (number, number)


def wide(ops: int) -> Iterator[Line]:
    """One producer and a great many consumers, joined in pairs."""
    yield "add", (0, 0)
    consumers = (ops - 1) // 2
    for _ in range(consumers):
        yield "add", (1, 1)
    for number in range(ops - 1 - consumers):
        yield "add", (2 + number % consumers, 2 + (number * 7919) % consumers)


def transformer(ops: int) -> Iterator[Line]:
    """Blocks of 20: normalisation, three projections, attention, projection, two layers, residuals."""
    current, made = 0, 0
    while made < ops:
        base = made + 1
        yield "add", (current, current)
        yield "add", (base, current)
        yield "add", (base + 1, base)
        for _ in range(3):
            yield "mm", (base + 2, 0)
        yield "add", (base + 3, base + 3)
        yield "add", (base + 4, base + 4)
        yield "mm", (base + 6, base + 7)
        yield "add", (base + 8, base + 8)
        yield "add", (base + 9, base + 8)
        yield "mm", (base + 10, base + 5)
        yield "mm", (base + 11, 0)
        yield "add", (base + 12, current)
        yield "add", (base + 13, base + 13)
        yield "mm", (base + 14, 0)
        yield "add", (base + 15, base + 15)
        yield "add", (base + 16, base + 15)
        yield "mm", (base + 17, 0)
        yield "add", (base + 18, base + 13)
        made += 20
        current = made


def skips(ops: int) -> Iterator[Line]:
    """Down and up again: the second half uses the first half's values in reverse, a call in between."""
    half = ops // 2
    for number in range(half):
        yield "mm" if number % 5 == 4 else "add", (number, number)
    for number in range(ops - half):
        yield "mm" if number % 5 == 4 else "add", (half + number, max(0, half - 1 - number))


def separate(ops: int) -> Iterator[Line]:
    """Each operation has an argument of its own, and its result is returned."""
    for number in range(ops):
        yield "add", (number, number)


GRAPHS: dict[str, Callable[[int], Iterator[Line]]] = {
    "chain": chain,
    "wide": wide,
    "transformer": transformer,
    "skips": skips,
    "separate": separate,
}


def text(lines: Iterator[Line], arguments: int = 1) -> str:
    """The graph as a function that returns its last value; with several arguments, one a line, all of its values."""
    made = list(lines)
    parameters = ", ".join(f"%v{number}: {TENSOR}" for number in range(arguments))
    results = range(arguments if arguments > 1 else len(made), arguments + len(made))
    types = ", ".join([TENSOR] * len(results))
    out = ["#id = affine_map<(i, j) -> (i, j)>", f"func.func @main({parameters}) -> ({types}) {{"]
    out.append(f"%e = tensor.empty() : {TENSOR}")
    for number, (kind, (one, two)) in enumerate(made, start=arguments):
        out.append(_mm(number, one, two) if kind == "mm" else _add(number, one, two))
    return "\n".join([*out, f"return {', '.join(f'%v{number}' for number in results)} : {types}", "}"])


def _mm(number: int, one: int, two: int) -> str:
    attributes = 'op = "aten.mm.default", args = [#fusion.operand<0>, #fusion.operand<1>]'
    return f'%v{number} = "fusion.extern"(%v{one}, %v{two}) {{{attributes}}} : ({TENSOR}, {TENSOR}) -> {TENSOR}'


def _add(number: int, one: int, two: int) -> str:
    return (
        f"%v{number} = linalg.generic {{indexing_maps = [#id, #id, #id], "
        f'iterator_types = ["parallel", "parallel"]}} '
        f"ins(%v{one}, %v{two} : {TENSOR}, {TENSOR}) outs(%e : {TENSOR}) {{\n"
        "^bb0(%x: f32, %y: f32, %o: f32):\n%r = arith.addf %x, %y : f32\nlinalg.yield %r : f32\n"
        f"}} -> {TENSOR}"
    )


def seconds(fusion_pass: FusionConsecutive | FusionDataflow, source: str, repeat: int) -> float:
    """The least processor time of `repeat` runs of a pass."""
    best = math.inf
    for _ in range(repeat):
        context = ir.Context()
        fusion.load(context)
        with context, ir.Location.unknown():
            module = ir.Module.parse(source)
            start = time.process_time()
            fusion_pass.run(module)
            best = min(best, time.process_time() - start)
    return best


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--sizes", default="1000,2000,5000,10000,20000")
    parser.add_argument("--repeat", type=int, default=2)
    arguments = parser.parse_args()
    sizes = [int(size) for size in arguments.sizes.split(",")]
    print("graph        pass         " + "".join(f"{size:>16}" for size in sizes))
    for name, make in GRAPHS.items():
        sources = [text(make(size), size if make is separate else 1) for size in sizes]
        for fusion_pass in (FusionConsecutive(), FusionDataflow()):
            times = [seconds(fusion_pass, source, arguments.repeat) for source in sources]
            kind = fusion_pass.name.removeprefix("fusion-")
            print(f"{name:12} {kind:12} " + "".join(_cell(sizes, times, i) for i in range(len(sizes))))


def _cell(sizes: list[int], times: list[float], number: int) -> str:
    """Seconds, and the exponent of growth since the size before."""
    if number == 0:
        return f"{times[0]:>8.2f} s      "
    growth = math.log(times[number] / times[number - 1]) / math.log(sizes[number] / sizes[number - 1])
    return f"{times[number]:>8.2f} s n^{growth:<4.2f}"


if __name__ == "__main__":
    main()
