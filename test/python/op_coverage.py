"""PyTorch's own operator database through the backend, against eager: `make coverage-ops`.

    python op_coverage.py --state FILE [--table FILE] [--tenth] [--only NAME,...] [--dtypes float32,...]

Takes the first two samples of each operation and dtype that the database lists for the CPU, forward and gradient. What
was found is appended to `--state`, one JSON object a line, so that a run goes on where the last one stopped; a worker
process does the work, and one that dies or hangs is a finding too. `--table` writes the findings as Markdown.
"""

from __future__ import annotations

import argparse
import json
import subprocess
import sys
import warnings
import zlib
from collections import Counter, defaultdict
from collections.abc import Callable, Iterable, Iterator
from dataclasses import asdict, dataclass
from pathlib import Path

import torch
from torch import Tensor
from torch.utils._pytree import tree_leaves, tree_map

SAMPLES = 2
SECONDS = 300
"""For one operation and dtype; beyond it, it hangs."""
UNINITIALISED = ("empty", "empty_like", "empty_permuted", "empty_strided", "new_empty", "new_empty_strided")


@dataclass(frozen=True)
class Finding:
    """What one operation in one dtype gave.

    `kind` is "compiled", "compiled and library", "library", "not a graph" (PyTorch itself runs it), "wrong", or "as
    PyTorch" (wrong, and so without our part: with AOTAutograd's eager backend); `why` says more where that is needed.
    """

    op: str
    dtype: str
    kind: str
    why: str = ""

    @property
    def key(self) -> str:
        return f"{self.op} {self.dtype}"


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--state", type=Path, required=True)
    parser.add_argument("--table", type=Path)
    parser.add_argument("--tenth", action="store_true", help="a fixed tenth of all")
    parser.add_argument("--only", default="", help="names of operations")
    parser.add_argument("--dtypes", default="", help="names of dtypes")
    parser.add_argument("--worker", action="store_true", help=argparse.SUPPRESS)
    arguments = parser.parse_args()
    if arguments.worker:
        work(arguments.state)
        return 0
    keys = [key for key in all_keys() if is_chosen(key, arguments)]
    run(keys, arguments.state)
    found = [finding for finding in read(arguments.state) if finding.key in set(keys)]
    if arguments.table:
        arguments.table.write_text(table(found))
    wrong = [finding for finding in found if finding.kind == "wrong"]
    for finding in wrong:
        print(f"{finding.key}: {finding.why}")
    print(f"{len(found)} of {len(keys)} looked at: {dict(Counter(finding.kind for finding in found))}")
    return 1 if wrong else 0


def is_chosen(key: str, arguments: argparse.Namespace) -> bool:
    op, dtype = key.rsplit(" ", 1)
    only, dtypes = (list(filter(None, text.split(","))) for text in (arguments.only, arguments.dtypes))
    return (
        (not only or op in only)
        and (not dtypes or dtype in dtypes)
        and (not arguments.tenth or zlib.crc32(key.encode()) % 10 == 0)
    )


def run(keys: list[str], state: Path) -> None:
    """Has everything looked at that is not in `state` yet."""
    state.parent.mkdir(parents=True, exist_ok=True)
    while left := _left(keys, state):
        command = [sys.executable, __file__, "--worker", "--state", str(state)]
        with subprocess.Popen(command, stdin=subprocess.PIPE, text=True, stderr=subprocess.DEVNULL) as worker:
            assert worker.stdin is not None
            worker.stdin.write("\n".join(left))
            worker.stdin.close()
            why = _watch(worker, state)
        now_left = _left(keys, state)
        if now_left:
            op, dtype = now_left[0].rsplit(" ", 1)
            append(state, Finding(op, dtype, "wrong", why))


def _watch(worker: subprocess.Popen, state: Path) -> str:
    """Waits until the worker ends, or finds nothing for too long."""
    size = -1
    while size != (size := state.stat().st_size if state.exists() else 0):
        try:
            return f"the process ended with status {worker.wait(SECONDS)}"
        except subprocess.TimeoutExpired:
            continue
    worker.kill()
    return f"no result after {SECONDS} seconds"


def _left(keys: list[str], state: Path) -> list[str]:
    done = {finding.key for finding in read(state)}
    return [key for key in keys if key not in done]


def read(state: Path) -> Iterator[Finding]:
    lines = state.read_text().splitlines() if state.exists() else []
    return (Finding(**json.loads(line)) for line in lines)


def append(state: Path, finding: Finding) -> None:
    with state.open("a") as file:
        file.write(json.dumps(asdict(finding)) + "\n")


def database() -> dict[str, object]:
    """By name, variants of an operation by both of theirs."""
    from torch.testing._internal.common_methods_invocations import op_db

    return {op.name + (f".{op.variant_test_name}" if op.variant_test_name else ""): op for op in op_db}


def all_keys() -> list[str]:
    return [
        f"{name} {str(dtype).removeprefix('torch.')}"
        for name, op in database().items()
        for dtype in sorted(op.supported_dtypes("cpu"), key=str)  # pyright: ignore[reportAttributeAccessIssue]
    ]


def work(state: Path) -> None:
    """Looks at the operations and dtypes that standard input names."""
    warnings.simplefilter("ignore")
    ops = database()
    for key in sys.stdin.read().splitlines():
        name, dtype = key.rsplit(" ", 1)
        kind, why = look_at(ops[name], getattr(torch, dtype))
        append(state, Finding(name, dtype, kind, why))


def look_at(op: object, dtype: torch.dtype) -> tuple[str, str]:
    """(kind, why) of an operation in a dtype."""
    kinds: set[str] = set()
    for with_gradient in (False, True):
        if with_gradient and not (op.supports_autograd and dtype in op.supported_backward_dtypes("cpu")):  # pyright: ignore
            continue
        torch.manual_seed(0)
        samples = iter(op.sample_inputs("cpu", dtype, requires_grad=with_gradient))  # pyright: ignore
        for _, sample in zip(range(SAMPLES), samples, strict=False):
            kind, why = look_at_sample(op, sample, with_gradient)
            if kind in ("wrong", "as PyTorch"):
                return kind, why
            kinds.add(kind)
    kinds.discard("no sample")
    if len(kinds) > 1:
        kinds = {"compiled and library"}
    return next(iter(kinds), "not a graph"), ""


def look_at_sample(op: object, sample: object, with_gradient: bool) -> tuple[str, str]:
    from mlir_fusion.driver.options import Options, Settings
    from mlir_fusion.frontend.backend import dynamo_backend
    from mlir_fusion.frontend.graphs import GraphCompiler

    try:
        expected = outcome(op, sample, op, with_gradient)
    except Exception:  # the database's samples aren't all accepted by eager
        return "no sample", ""
    compiler = GraphCompiler(Options(fusion_type="dataflow"), Settings.read((), (), "coverage"))
    problem = difference(op, sample, dynamo_backend(compiler), with_gradient, expected)
    if not problem:
        return kind_of(compiler), ""
    without_us = difference(op, sample, "aot_eager", with_gradient, expected)
    return ("as PyTorch" if without_us else "wrong"), problem


def difference(op: object, sample: object, backend: object, with_gradient: bool, expected: list) -> str:
    """What is wrong with the compiled operation; nothing if nothing is."""
    torch._dynamo.reset()
    compiled = torch.compile(lambda *args, **kwargs: op(*args, **kwargs), backend=backend, dynamic=False)  # pyright: ignore
    try:
        found = outcome(op, sample, compiled, with_gradient)
        if getattr(op, "name", "") in UNINITIALISED:
            found, expected = (
                [(one.shape, one.dtype) for one in each if isinstance(one, Tensor)] for each in (found, expected)
            )
            return "" if found == expected else "another shape or dtype"
        torch.testing.assert_close(found, expected, equal_nan=True, check_stride=False)
    except Exception as error:
        lines = [line for line in str(error).splitlines() if line.strip()]
        return f"{type(error).__name__}: {' '.join(lines)[:300]}"
    return ""


def outcome(op: object, sample: object, call: Callable, with_gradient: bool) -> list:
    """The results, then the gradients."""
    copies = tree_map(_fresh, (sample.input, sample.args, sample.kwargs))  # pyright: ignore[reportAttributeAccessIssue]
    torch.manual_seed(1)
    returned = call(copies[0], *copies[1], **copies[2])
    results = tree_leaves(returned)
    if not with_gradient:
        return results
    inputs = [one for one in tree_leaves(copies) if isinstance(one, Tensor) and one.requires_grad]
    made = [one for one in results if isinstance(one, Tensor) and one.requires_grad]
    if not inputs or not made:
        return results
    weights = [torch.linspace(0.5, 1.5, one.numel()).reshape(one.shape).to(one.dtype) for one in made]
    return results + list(torch.autograd.grad(made, inputs, weights, allow_unused=True))


def _fresh(value: object) -> object:
    if not isinstance(value, Tensor) or value.layout != torch.strided:
        return value
    return value.detach().clone().requires_grad_(value.requires_grad)


def kind_of(compiler: object) -> str:
    graphs = compiler.graphs  # pyright: ignore[reportAttributeAccessIssue]
    if not graphs:
        return "not a graph"
    ops = sum(graph.text.count("torch.aten") for graph in graphs)
    calls = sum(len(graph.library) for graph in graphs)
    if not calls:
        return "compiled"
    return "compiled and library" if ops > calls else "library"


def table(found: Iterable[Finding]) -> str:
    """The findings, one line an operation."""
    by_op: defaultdict[str, defaultdict[str, list[str]]] = defaultdict(lambda: defaultdict(list))
    totals: Counter[str] = Counter()
    for finding in found:
        by_op[finding.op][finding.kind].append(finding.dtype)
        totals[finding.kind] += 1
    lines = [
        "# Operations",
        "",
        'PyTorch\'s operator database through `torch.compile(backend="mlir_fusion")` on the CPU target, against eager:',
        "made by `make coverage-ops`, the first two samples of each operation and dtype, forward and gradient.",
        "*as PyTorch*: differs from eager, and so does AOTAutograd's own eager backend.",
        "",
        ", ".join(f"{kind}: {count}" for kind, count in sorted(totals.items())),
        "",
        "| operation | what it becomes |",
        "|---|---|",
    ]
    for op, kinds in sorted(by_op.items()):
        parts = [f"{kind} ({', '.join(sorted(names))})" for kind, names in sorted(kinds.items())]
        lines.append(f"| {op} | {'; '.join(parts)} |")
    return "\n".join(lines) + "\n"


if __name__ == "__main__":
    sys.exit(main())
