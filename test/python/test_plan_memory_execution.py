"""Random programs after fusion-plan-memory compute what they computed before.

Kernels run element by element on the buffers they are given, reading at a position before they store there,
as a pointwise schedule does: a buffer that is reused too early, or wrongly in place, changes the result.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from itertools import product

import numpy as np
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from mlir_fusion.dialects import fusion
from mlir_fusion.dialects.mlir import ir
from mlir_fusion.driver.programs import make_program
from mlir_fusion.passes.fusion_plan_memory import FusionPlanMemory
from mlir_fusion.runtime.launch import Argument, Launch, Launched, Queue

SIZE = 3
TENSOR = f"tensor<{SIZE}x{SIZE}xf32>"
READS = {"straight": "affine_map<(i, j) -> (i, j)>", "turned": "affine_map<(i, j) -> (j, i)>"}


@dataclass(frozen=True)
class Kernel:
    """Stores `sign` times the sum of its inputs, each read straight or turned, once for each output."""

    reads: tuple[str, ...]
    signs: tuple[int, ...]

    def value(self, inputs: Sequence[torch.Tensor]) -> list[torch.Tensor]:
        turned = [each.t() if read == "turned" else each for each, read in zip(inputs, self.reads, strict=True)]
        total = torch.stack(turned).sum(0)
        return [total * sign for sign in self.signs]

    def run(self, inputs: Sequence[np.ndarray], outputs: Sequence[np.ndarray]) -> None:
        for i, j in product(range(SIZE), repeat=2):
            reads = zip(inputs, self.reads, strict=True)
            total = sum(each[j, i] if read == "turned" else each[i, j] for each, read in reads)
            for output, sign in zip(outputs, self.signs, strict=True):
                output[i, j] = total * sign

    def text(self, name: str, results: list[str], operands: list[str]) -> str:
        """The kernel as MLIR: a sum, then a product for each output."""
        blocks = ", ".join(f"%p{number}: {TENSOR}" for number in range(len(operands)))
        arguments = ", ".join(f"%p{number}" for number in range(len(operands)))
        maps = ", ".join(READS[read] for read in (*self.reads, "straight"))
        body = [f"%e = tensor.empty() : {TENSOR}", self._sum(arguments, maps)]
        body += [self._scaled(number, sign) for number, sign in enumerate(self.signs)]
        yielded = ", ".join(f"%y{number}" for number in range(len(self.signs)))
        types = ", ".join([TENSOR] * len(self.signs))
        signature = f"({', '.join([TENSOR] * len(operands))}) -> ({types})"
        return f"""
          {", ".join(results)} = "fusion.kernel"({", ".join(operands)}) ({{
          ^bb0({blocks}):
            {" ".join(body)}
            "fusion.yield"({yielded}) : ({types}) -> ()
          }}) {{name = "{name}", operandSegmentSizes = array<i32: {len(operands)}, 0>,
              schedule = #fusion.schedule<"pointwise", {{}}, "">}} : {signature}"""

    def _sum(self, arguments: str, maps: str) -> str:
        count = len(self.reads)
        scalars = ", ".join(f"%s{number}: f32" for number in range(count))
        adds = "\n".join(
            f"%t{number} = arith.addf %{'s0' if number == 1 else f't{number - 1}'}, %s{number} : f32"
            for number in range(1, count)
        )
        last = f"%t{count - 1}" if count > 1 else "%s0"
        return f"""%sum = linalg.generic {{indexing_maps = [{maps}], iterator_types = ["parallel", "parallel"]}}
            ins({arguments} : {", ".join([TENSOR] * count)}) outs(%e : {TENSOR}) {{
            ^bb0({scalars}, %out: f32):
              {adds}
              linalg.yield {last} : f32
            }} -> {TENSOR}"""

    def _scaled(self, number: int, sign: int) -> str:
        identity = READS["straight"]
        return f"""%c{number} = arith.constant {float(sign)} : f32
            %y{number} = linalg.generic {{indexing_maps = [{identity}, {identity}],
              iterator_types = ["parallel", "parallel"]}} ins(%sum : {TENSOR}) outs(%e : {TENSOR}) {{
            ^bb0(%s: f32, %out: f32):
              %m = arith.mulf %s, %c{number} : f32
              linalg.yield %m : f32
            }} -> {TENSOR}"""


@dataclass
class Source:
    """A program as text, what its kernels do, and its values as it grows."""

    values: list[torch.Tensor]
    names: list[str] = field(default_factory=lambda: ["%x0", "%x1"])
    lines: list[str] = field(default_factory=list)
    kernels: dict[str, Kernel] = field(default_factory=dict)
    returned: list[int] = field(default_factory=list)

    def grow(self, line: Callable[[list[str]], str], values: list[torch.Tensor]) -> None:
        names = [f"%v{len(self.names) + number}" for number in range(len(values))]
        self.lines.append(line(names))
        self.names += names
        self.values += values

    def text(self) -> str:
        types = ", ".join([TENSOR] * len(self.returned))
        returned = ", ".join(self.names[number] for number in self.returned)
        return "\n".join(
            [
                f"func.func @main(%x0: {TENSOR}, %x1: {TENSOR}) -> ({types}) {{",
                *self.lines,
                f"return {returned} : {types}",
                "}",
            ]
        )


@st.composite
def sources(draw: st.DrawFn) -> Source:
    generator = torch.Generator().manual_seed(draw(st.integers(0, 1000)))
    source = Source([torch.randint(-3, 4, (SIZE, SIZE), generator=generator).float() for _ in range(2)])
    for _ in range(draw(st.integers(1, 14))):
        kind = draw(st.sampled_from(["kernel", "kernel", "kernel", "extern", "view"]))
        # Recent values are likelier: chains are where memory is reused
        recent = st.integers(max(0, len(source.names) - 4), len(source.names) - 1)
        add_operation(draw, source, kind, recent)
    count = draw(st.integers(1, 3))
    source.returned = [draw(st.integers(0, len(source.names) - 1)) for _ in range(count)]
    return source


def add_operation(draw: st.DrawFn, source: Source, kind: str, recent: st.SearchStrategy[int]) -> None:
    if kind == "kernel":
        operands = draw(st.lists(recent, min_size=1, max_size=3))
        reads = tuple(draw(st.sampled_from(["straight", "straight", "turned"])) for _ in operands)
        kernel = Kernel(reads, tuple(draw(st.lists(st.sampled_from([1, -1]), min_size=1, max_size=2))))
        name = f"kernel_{len(source.kernels)}"
        source.kernels[name] = kernel
        names = [source.names[number] for number in operands]
        values = kernel.value([source.values[number] for number in operands])
        source.grow(lambda results: kernel.text(name, results, names), values)
        return
    operand = draw(recent)
    name, value = source.names[operand], source.values[operand]
    if kind == "extern":
        args = "args = [#fusion.operand<0>]"
        line = f'= "fusion.extern"({name}) {{op = "aten.neg.default", {args}}} : ({TENSOR}) -> {TENSOR}'
        source.grow(lambda results: f"{results[0]} {line}", [-value])
    elif name.startswith(("%x", "%v")) and not is_view(source, name):
        layout = f"offset = 0 : i64, sizes = array<i64: {SIZE}, {SIZE}>, strides = array<i64: 1, {SIZE}>"
        line = f'= "fusion.view"({name}) {{{layout}}} : ({TENSOR}) -> {TENSOR}'
        source.grow(lambda results: f"{results[0]} {line}", [value.t()])


def is_view(source: Source, name: str) -> bool:
    return any(line.startswith(f'{name} = "fusion.view"') for line in source.lines)


def call_kernels(module: ir.Module) -> None:
    """Replaces kernels by calls of functions of their name."""
    function = module.body.operations[0].operation
    for view in list(function.regions[0].blocks[0].operations):
        op = view.operation
        if op.name != "fusion.kernel":
            continue
        callee = ir.FlatSymbolRefAttr.get(ir.StringAttr(op.attributes["name"]).value)
        with ir.InsertionPoint(op):
            ir.Operation.create("func.call", operands=list(op.operands), attributes={"callee": callee})
        op.erase()


class StridedLauncher:
    """Runs kernels on arrays that are laid out as their memref types say."""

    device_type = "cpu"
    entries = None
    function = None
    stretch = None
    failure = None
    allocate = None

    def __init__(self, kernels: dict[str, Kernel]) -> None:
        self.kernels = kernels

    def queue(self, device: torch.device) -> Queue:
        return Queue(0, 0)

    def prepare(self, launch: Launch) -> Launched:
        kernel = self.kernels[launch.kernel]

        def launched(queue: Queue, arguments: Sequence[Argument]) -> None:
            pairs = zip(arguments, launch.parameters, strict=True)
            arrays = [strided_array(int(at), parameter) for at, parameter in pairs]
            kernel.run(arrays[: len(kernel.reads)], arrays[len(kernel.reads) :])

        return launched


def strided_array(pointer: int, parameter: str) -> np.ndarray:
    array = torch.frombuffer(_bytes_at(pointer), dtype=torch.float32).view(SIZE, SIZE).numpy()
    return array.T if "strided<[1" in parameter else array


def _bytes_at(pointer: int) -> memoryview:
    import ctypes

    return memoryview((ctypes.c_char * (4 * SIZE * SIZE)).from_address(pointer))


@given(sources(), st.booleans())
@settings(max_examples=150, deadline=None, derandomize=True)
def test_planned_programs_compute_what_they_did(source: Source, in_place: bool) -> None:
    with ir.Context() as context, ir.Location.unknown():
        fusion.load(context)
        module = ir.Module.parse(source.text())
        FusionPlanMemory(in_place=in_place).run(module)
        assert not list(fusion.faults(module.operation))
        call_kernels(module)
        program = make_program(module, StridedLauncher(source.kernels))
    inputs = [value.clone() for value in source.values[:2]]
    for result, number in zip(program(*inputs), source.returned, strict=True):
        torch.testing.assert_close(result, source.values[number], rtol=0, atol=0)
    assert all(torch.equal(one, other) for one, other in zip(inputs, source.values[:2], strict=True))


def test_in_place_is_exercised() -> None:
    """The programs above would prove little if nothing ever ran in place."""
    kernel = Kernel(("straight",), (-1,))
    source = Source([torch.ones(SIZE, SIZE)] * 2, kernels={"first": kernel, "second": kernel})
    source.grow(lambda results: kernel.text("first", results, ["%x0"]), [torch.ones(SIZE, SIZE)])
    source.grow(lambda results: kernel.text("second", results, ["%v2"]), [torch.ones(SIZE, SIZE)])
    source.returned = [3]
    with ir.Context() as context, ir.Location.unknown():
        fusion.load(context)
        module = ir.Module.parse(source.text())
        FusionPlanMemory().run(module)
        text = str(module)
    assert text.count("memref.alloc()") == 1 and "memref.view" not in text
