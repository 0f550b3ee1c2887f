// RUN: fusion-opt %s --split-input-file --pass-pipeline='builtin.module(fusion-segment{matmul-epilogue=false})' | FileCheck %s
// RUN: fusion-opt %s --split-input-file --pass-pipeline='builtin.module(fusion-segment)' | FileCheck %s --check-prefix=WITH

#left = affine_map<(i, j, k) -> (i, k)>
#right = affine_map<(i, j, k) -> (k, j)>
#out = affine_map<(i, j, k) -> (i, j)>
#id = affine_map<(i, j) -> (i, j)>

// What is done before the product and its rounding stay with it; what follows is a kernel of its own.

// CHECK-LABEL: func.func @product
// CHECK-SAME:  (%[[A:.*]]: tensor<8x16xf32>, %[[B:.*]]: tensor<16x8xf32>)
// CHECK:       %[[P:.*]] = "fusion.kernel"(%[[A]], %[[B]])
// CHECK:         linalg.generic
// CHECK:         iterator_types = ["parallel", "parallel", "reduction"]
// CHECK:         arith.truncf
// CHECK:         -> tensor<8x8xbf16>
// CHECK:       %[[R:.*]] = "fusion.kernel"(%[[P]])
// CHECK:         arith.negf
// CHECK:       return %[[R]]

// WITH-LABEL: func.func @product
// WITH:         arith.truncf
// WITH:         arith.negf
// WITH:         name = "negf_mulf_addf_0"
// WITH-NOT:     fusion.kernel
// WITH:         return
func.func @product(%x: tensor<8x16xf32>, %y: tensor<16x8xf32>) -> tensor<8x8xbf16> {
  %r = "fusion.region"(%x, %y) ({
  ^bb0(%a: tensor<8x16xf32>, %b: tensor<16x8xf32>):
    %zero = arith.constant 0.0 : f32
    %e0 = tensor.empty() : tensor<8x16xf32>
    %before = linalg.generic {indexing_maps = [#id, #id], iterator_types = ["parallel", "parallel"]}
        ins(%a : tensor<8x16xf32>) outs(%e0 : tensor<8x16xf32>) {
    ^bb0(%in: f32, %out: f32):
      %1 = arith.negf %in : f32
      linalg.yield %1 : f32
    } -> tensor<8x16xf32>
    %e1 = tensor.empty() : tensor<8x8xf32>
    %init = linalg.fill ins(%zero : f32) outs(%e1 : tensor<8x8xf32>) -> tensor<8x8xf32>
    %product = linalg.generic {indexing_maps = [#left, #right, #out], iterator_types = ["parallel", "parallel", "reduction"]}
        ins(%before, %b : tensor<8x16xf32>, tensor<16x8xf32>) outs(%init : tensor<8x8xf32>) {
    ^bb0(%p: f32, %q: f32, %sum: f32):
      %1 = arith.mulf %p, %q : f32
      %2 = arith.addf %sum, %1 : f32
      linalg.yield %2 : f32
    } -> tensor<8x8xf32>
    %e2 = tensor.empty() : tensor<8x8xbf16>
    %rounded = linalg.generic {indexing_maps = [#id, #id], iterator_types = ["parallel", "parallel"]}
        ins(%product : tensor<8x8xf32>) outs(%e2 : tensor<8x8xbf16>) {
    ^bb0(%in: f32, %out: bf16):
      %1 = arith.truncf %in : f32 to bf16
      linalg.yield %1 : bf16
    } -> tensor<8x8xbf16>
    %after = linalg.generic {indexing_maps = [#id, #id], iterator_types = ["parallel", "parallel"]}
        ins(%rounded : tensor<8x8xbf16>) outs(%e2 : tensor<8x8xbf16>) {
    ^bb0(%in: bf16, %out: bf16):
      %1 = arith.negf %in : bf16
      linalg.yield %1 : bf16
    } -> tensor<8x8xbf16>
    "fusion.yield"(%after) : (tensor<8x8xbf16>) -> ()
  }) : (tensor<8x16xf32>, tensor<16x8xf32>) -> tensor<8x8xbf16>
  return %r : tensor<8x8xbf16>
}

// -----

#id = affine_map<(i, j) -> (i, j)>
#row = affine_map<(i, j) -> (i)>

// A sum of products along the same axis is no product of matrices: its region stays one kernel.

// CHECK-LABEL: func.func @dot
// CHECK:       "fusion.kernel"
// CHECK:         math.sqrt
// CHECK:       name = "mulf_addf_sqrt_0"
// CHECK-NOT:   fusion.kernel
// CHECK:       return
func.func @dot(%x: tensor<8x16xf32>, %y: tensor<8x16xf32>) -> tensor<8xf32> {
  %r = "fusion.region"(%x, %y) ({
  ^bb0(%a: tensor<8x16xf32>, %b: tensor<8x16xf32>):
    %zero = arith.constant 0.0 : f32
    %e = tensor.empty() : tensor<8xf32>
    %init = linalg.fill ins(%zero : f32) outs(%e : tensor<8xf32>) -> tensor<8xf32>
    %sum = linalg.generic {indexing_maps = [#id, #id, #row], iterator_types = ["parallel", "reduction"]}
        ins(%a, %b : tensor<8x16xf32>, tensor<8x16xf32>) outs(%init : tensor<8xf32>) {
    ^bb0(%p: f32, %q: f32, %s: f32):
      %1 = arith.mulf %p, %q : f32
      %2 = arith.addf %s, %1 : f32
      linalg.yield %2 : f32
    } -> tensor<8xf32>
    %root = linalg.generic {indexing_maps = [affine_map<(i) -> (i)>, affine_map<(i) -> (i)>], iterator_types = ["parallel"]}
        ins(%sum : tensor<8xf32>) outs(%e : tensor<8xf32>) {
    ^bb0(%in: f32, %out: f32):
      %1 = math.sqrt %in : f32
      linalg.yield %1 : f32
    } -> tensor<8xf32>
    "fusion.yield"(%root) : (tensor<8xf32>) -> ()
  }) : (tensor<8x16xf32>, tensor<8x16xf32>) -> tensor<8xf32>
  return %r : tensor<8xf32>
}
