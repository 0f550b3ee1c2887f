"""fusion-normalize: the same numbers as before, one form, and nothing left to do when it runs again."""

from __future__ import annotations

import numpy as np
import pytest
from mlir_fusion.dialects import fusion
from mlir_fusion.dialects.mlir import ir
from mlir_fusion.passes import views
from mlir_fusion.passes.errors import PassFailure
from mlir_fusion.passes.fusion_normalize import FusionNormalize
from random_views import ViewChain
from reference_executor import execute_text, from_bfloat16, to_bfloat16


def normalize(text: str) -> str:
    """The text of the module after the pass; checks that a second run changes nothing."""
    with ir.Context() as context, ir.Location.unknown():
        fusion.load(context)
        module = ir.Module.parse(text)
        FusionNormalize().run(module)
        module.operation.verify()
        first = str(module)
        FusionNormalize().run(module)
        assert str(module) == first
        return first


def operations(text: str, name: str) -> int:
    """How often an op occurs."""
    return text.count(f" {name} ") + text.count(f' "{name}"')


@pytest.mark.parametrize("seed", range(60))
def test_a_chain_of_views_keeps_its_elements(seed: int):
    chain = ViewChain(seed, length=1 + seed % 6)
    before = chain.text()
    after = normalize(before)
    x = np.arange(np.prod(chain.argument_shape), dtype=np.float32).reshape(chain.argument_shape)
    np.testing.assert_array_equal(execute_text(before, [x])[0], execute_text(after, [x])[0])
    assert_in_memory(after)


def assert_in_memory(text: str) -> None:
    """What is returned or viewed is no free op's result."""
    with ir.Context() as context, ir.Location.unknown():
        fusion.load(context)
        module = ir.Module.parse(text)
        for op in module.body.operations[0].regions[0].blocks[0].operations:
            if op.operation.name in ("func.return", "fusion.view"):
                assert all(views.is_root(value) for value in op.operands), str(op)


BF16_SUM = """
func.func @main(%x: tensor<2x1000xbf16>) -> tensor<2xbf16> {
  %zero = arith.constant 0.0 : bf16
  %e = tensor.empty() : tensor<2xbf16>
  %init = linalg.fill ins(%zero : bf16) outs(%e : tensor<2xbf16>) -> tensor<2xbf16>
  %s = linalg.reduce { arith.addf } ins(%x : tensor<2x1000xbf16>) outs(%init : tensor<2xbf16>) dimensions = [1]
  return %s : tensor<2xbf16>
}
"""


def test_a_sum_of_bf16_is_rounded_once():
    x = to_bfloat16(np.random.default_rng(0).random((2, 1000), np.float32))
    exact = from_bfloat16(x).astype(np.float64).sum(1)
    before = from_bfloat16(execute_text(BF16_SUM, [x])[0])
    after = execute_text(normalize(BF16_SUM), [x])[0]
    np.testing.assert_array_equal(after, to_bfloat16(exact.astype(np.float32)))
    assert np.abs(before - exact).max() > 50, "summing in bf16 loses it all, or this test shows nothing"


BF16_BODY = """
#id = affine_map<(d0) -> (d0)>
func.func @main(%x: tensor<256xbf16>, %y: tensor<256xbf16>) -> tensor<256xbf16> {
  %half = arith.constant 0.1 : f64
  %e = tensor.empty() : tensor<256xbf16>
  %r = linalg.generic {indexing_maps = [#id, #id, #id], iterator_types = ["parallel"]}
      ins(%x, %y : tensor<256xbf16>, tensor<256xbf16>) outs(%e : tensor<256xbf16>) {
  ^bb0(%a: bf16, %b: bf16, %o: bf16):
    %c = arith.truncf %half : f64 to bf16
    %p = arith.mulf %a, %b : bf16
    %q = arith.addf %p, %c : bf16
    %n = arith.negf %q : bf16
    linalg.yield %n : bf16
  } -> tensor<256xbf16>
  return %r : tensor<256xbf16>
}
"""


def test_one_body_computes_in_f32_with_unrounded_scalars():
    random = np.random.default_rng(1)
    x, y = (to_bfloat16(random.standard_normal(256).astype(np.float32)) for _ in range(2))
    expected = to_bfloat16(-(from_bfloat16(x) * from_bfloat16(y) + np.float32(0.1)))
    np.testing.assert_array_equal(execute_text(normalize(BF16_BODY), [x, y])[0], expected)
    assert (execute_text(BF16_BODY, [x, y])[0] != expected).any()


PRODUCT = """
func.func @main(%a: tensor<5x7xf16>, %b: tensor<7x3xf16>, %c: tensor<5x3xf16>) -> tensor<5x3xf16> {
  %m = linalg.matmul ins(%a, %b : tensor<5x7xf16>, tensor<7x3xf16>) outs(%c : tensor<5x3xf16>) -> tensor<5x3xf16>
  return %m : tensor<5x3xf16>
}
"""


def test_a_narrow_accumulator_that_starts_from_a_tensor_is_extended():
    random = np.random.default_rng(2)
    a, b, c = (random.standard_normal(shape).astype(np.float16) for shape in ((5, 7), (7, 3), (5, 3)))
    expected = c.astype(np.float64) + a.astype(np.float64) @ b.astype(np.float64)
    result = execute_text(normalize(PRODUCT), [a, b, c])[0]
    np.testing.assert_allclose(result, expected, rtol=2**-11, atol=1e-5)


SOFTMAX = """
#rows = affine_map<(d0, d1) -> (d0)>
#keep = affine_map<(d0, d1) -> (d0, d1)>
func.func @main(%x: tensor<4x9xf32>) -> (tensor<4x9xf32>, tensor<4x9xf32>) {
  %low = arith.constant 0xFF800000 : f32
  %zero = arith.constant 0 : i64
  %one = arith.constant dense<1.0> : tensor<f32>
  %e0 = tensor.empty() : tensor<4xf32>
  %e1 = tensor.empty() : tensor<4xi64>
  %e = tensor.empty() : tensor<4x9xf32>
  %f0 = linalg.fill ins(%low : f32) outs(%e0 : tensor<4xf32>) -> tensor<4xf32>
  %f1 = linalg.fill ins(%zero : i64) outs(%e1 : tensor<4xi64>) -> tensor<4xi64>
  %m:2 = linalg.generic {indexing_maps = [#keep, #rows, #rows], iterator_types = ["parallel", "reduction"]}
      ins(%x : tensor<4x9xf32>) outs(%f0, %f1 : tensor<4xf32>, tensor<4xi64>) {
  ^bb0(%i: f32, %o: f32, %n: i64):
    %d = linalg.index 1 : index
    %k = arith.index_cast %d : index to i64
    %v = arith.maximumf %i, %o : f32
    %g = arith.cmpf ogt, %i, %o : f32
    %s = arith.select %g, %k, %n : i64
    linalg.yield %v, %s : f32, i64
  } -> (tensor<4xf32>, tensor<4xi64>)
  %r = linalg.generic {indexing_maps = [#keep, #rows, affine_map<(d0, d1) -> ()>, #keep],
      iterator_types = ["parallel", "parallel"]}
      ins(%x, %m#0, %one : tensor<4x9xf32>, tensor<4xf32>, tensor<f32>) outs(%e : tensor<4x9xf32>) {
  ^bb0(%i: f32, %j: f32, %u: f32, %o: f32):
    %v = arith.subf %i, %j : f32
    %w = arith.addf %v, %u : f32
    linalg.yield %w : f32
  } -> tensor<4x9xf32>
  %t = linalg.sub ins(%r, %r : tensor<4x9xf32>, tensor<4x9xf32>) outs(%r : tensor<4x9xf32>) -> tensor<4x9xf32>
  return %r, %t : tensor<4x9xf32>, tensor<4x9xf32>
}
"""


def test_what_bodies_do_not_need_goes_and_numbers_stay():
    x = np.random.default_rng(3).standard_normal((4, 9)).astype(np.float32)
    after = normalize(SOFTMAX)
    for one, other in zip(execute_text(SOFTMAX, [x]), execute_text(after, [x]), strict=True):
        np.testing.assert_array_equal(one, other)
    assert "i64" not in after, "the indices of the maximum had no user"
    assert "tensor<f32>" not in after, "the 0-d constant is a scalar of the body"
    assert operations(after, "linalg.fill") == 1


def test_a_free_tensor_that_is_returned_gets_an_op_that_writes_it():
    text = """
    func.func @main() -> (tensor<2x3xf32>, tensor<6xf32>, tensor<2xi64>) {
      %two = arith.constant 2.0 : f32
      %e = tensor.empty() : tensor<2x3xf32>
      %f = linalg.fill ins(%two : f32) outs(%e : tensor<2x3xf32>) -> tensor<2x3xf32>
      %s = arith.constant dense<3.0> : tensor<6xf32>
      %table = arith.constant dense<[4, 5]> : tensor<2xi64>
      return %f, %s, %table : tensor<2x3xf32>, tensor<6xf32>, tensor<2xi64>
    }
    """
    after = normalize(text)
    for one, other in zip(execute_text(text, []), execute_text(after, []), strict=True):
        np.testing.assert_array_equal(one, other)
    assert operations(after, "linalg.generic") == 2, "the table of constants is in memory already"


def test_a_stated_layout_of_a_result_is_kept():
    text = """
    func.func @main(%x: tensor<2x3xf32>)
        -> (tensor<3x2xf32> {{fusion.layout = #fusion.layout<[{strides}], 0, 1>}}) {{
      %e = tensor.empty() : tensor<3x2xf32>
      %t = linalg.transpose ins(%x : tensor<2x3xf32>) outs(%e : tensor<3x2xf32>) permutation = [1, 0]
      return %t : tensor<3x2xf32>
    }}
    """
    assert operations(normalize(text.format(strides="1, 3")), "fusion.view") == 1
    assert operations(normalize(text.format(strides="2, 1")), "fusion.view") == 0


def test_what_can_not_be_compiled_is_refused_where_it_stands():
    text = """
    func.func @main(%x: tensor<3xf32>, %v: f32, %i: index) -> tensor<3xf32> {
      %s = tensor.insert %v into %x[%i] : tensor<3xf32>
      return %s : tensor<3xf32>
    }
    """
    with pytest.raises(PassFailure, match=r"'tensor.insert' can't be compiled"):
        normalize(text)
