"""When a kernel may overwrite its input, and the reason when it may not."""

import re

import pytest
from mlir_fusion.dialects import fusion
from mlir_fusion.dialects.mlir import ir
from mlir_fusion.passes.in_place import is_pointwise_kernel, refuse_in_place
from mlir_fusion.passes.lifetimes import Storages

STRAIGHT = "affine_map<(i, j) -> (i, j)>"
ROW = "affine_map<(i, j) -> (i, i)>"


def generic(source: str, result: str, maps: str = f"{STRAIGHT}, {STRAIGHT}", body: str = "", last: str = "") -> str:
    """A linalg.generic over 4x4 from `source` to an element type `result`; its body ends by yielding %r."""
    kinds = f'["parallel", "{last or "parallel"}"]'
    return f"""%e = tensor.empty() : tensor<4x4x{result}>
      %t = linalg.generic {{indexing_maps = [{maps}], iterator_types = {kinds}}}
          ins({source} : tensor<4x4xf32>) outs(%e : tensor<4x4x{result}>) {{
      ^bb0(%in: f32, %out: {result}):
        {body}
        linalg.yield %r : {result}
      }} -> tensor<4x4x{result}>"""


NEGATE = "%r = arith.negf %in : f32"
GATHER = "%c = arith.constant 0 : index\n %r = tensor.extract %p[%c, %c] : tensor<4x4xf32>"


def reason(body: str, result: str = "f32", family: str = "pointwise", yielded: str = "%t") -> str | None:
    text = f"""
        func.func @main(%a: tensor<4x4xf32>, %b: tensor<4x4xf32>) {{
          %k = "fusion.kernel"(%a, %b) ({{
          ^bb0(%p: tensor<4x4xf32>, %q: tensor<4x4xf32>):
            {body}
            "fusion.yield"({yielded}) : (tensor<4x4x{result}>) -> ()
          }}) {{name = "k", operandSegmentSizes = array<i32: 2, 0>,
              schedule = #fusion.schedule<"{family}", {{}}, "">}}
            : (tensor<4x4xf32>, tensor<4x4xf32>) -> tensor<4x4x{result}>
          return
        }}"""
    with ir.Context() as context, ir.Location.unknown():
        fusion.load(context)
        module = ir.Module.parse(text)
        function = module.body.operations[0]
        return refuse_in_place(function.regions[0].blocks[0].operations[0].operation, [0], 0)


def test_an_elementwise_kernel_may() -> None:
    assert reason(generic("%p", "f32", body=NEGATE)) is None
    assert reason(generic("%p", "i32", body="%r = arith.fptosi %in : f32 to i32"), result="i32") is None


@pytest.mark.parametrize(
    ("body", "options", "message"),
    [
        (generic("%p", "f32", body=NEGATE), {"family": "generic"}, "not pointwise"),
        (generic("%p", "f64", body="%r = arith.extf %in : f32 to f64"), {"result": "f64"}, "element size"),
        (generic("%q", "f32", body=NEGATE), {}, "not computed from"),
        ("", {"yielded": "%q"}, "not computed from"),
        (generic("%p", "f32", f"{ROW}, {STRAIGHT}", NEGATE), {}, "another position"),
        (generic("%p", "f32", body=NEGATE, last="reduction"), {}, "a reduction"),
        (generic("%q", "f32", body=GATHER), {}, r"tensor\.extract"),
        (
            "%s = tensor.collapse_shape %p [[0, 1]] : tensor<4x4xf32> into tensor<16xf32>\n"
            + generic("%p", "f32", body=NEGATE),
            {},
            "collapse_shape",
        ),
    ],
)
def test_others_may_not(body: str, options: dict[str, str], message: str) -> None:
    found = reason(body, **options)
    assert found is not None
    assert re.search(message, found), found


def test_a_schedule_is_asked_for_once() -> None:
    """Not for each output and input that dies: to find a schedule takes long for large kernels."""
    inputs = [f"%p{number}" for number in range(4)]
    kernel = f"""
        %k:4 = "fusion.kernel"({", ".join(["%a"] * 4)}) ({{
        ^bb0({", ".join(f"{name}: tensor<4x4xf32>" for name in inputs)}):
          "fusion.yield"({", ".join(inputs)}) : ({", ".join(["tensor<4x4xf32>"] * 4)}) -> ()
        }}) : ({", ".join(["tensor<4x4xf32>"] * 4)}) -> ({", ".join(["tensor<4x4xf32>"] * 4)})"""
    call = '%a = "fusion.extern"(%x) {op = "test.call"} : (tensor<4x4xf32>) -> tensor<4x4xf32>'
    asked = []

    def is_pointwise(op: ir.Operation) -> bool:
        asked.append(op)
        return is_pointwise_kernel(op)

    with ir.Context() as context, ir.Location.unknown():
        fusion.load(context)
        module = ir.Module.parse(f"func.func @main(%x: tensor<4x4xf32>) {{\n{call}\n{kernel}\nreturn\n}}")
        block = module.body.operations[0].regions[0].blocks[0]
        Storages(block, in_place=True, is_pointwise=is_pointwise)
    assert asked == [block.operations[1].operation]
