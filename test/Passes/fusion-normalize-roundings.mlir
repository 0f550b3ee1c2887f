// RUN: fusion-opt %s --split-input-file --pass-pipeline='builtin.module(fusion-normalize)' | FileCheck %s

#map = affine_map<(d0) -> (d0)>

// What one bf16 op was decomposed into is one body again. As its result is rounded, its exponential may be the
// hardware's, its division an approximate one, and its product and sum one instruction.

// CHECK-LABEL: func.func @merged
// CHECK-SAME:    (%[[X:.*]]: tensor<64xbf16>)
// CHECK:       %[[Y:.*]] = linalg.generic {{.*}} ins(%[[X]] : tensor<64xbf16>)
// CHECK-NEXT:  ^bb0(%[[IN:.*]]: bf16, %{{.*}}: bf16):
// CHECK-NEXT:    %[[WIDE:.*]] = arith.extf %[[IN]] : bf16 to f32
// CHECK-NEXT:    %[[E:.*]] = math.exp %[[WIDE]] fastmath<afn> : f32
// CHECK-NEXT:    %[[Q:.*]] = arith.divf %[[E]], %[[WIDE]] {fusion.approximate} : f32
// CHECK-NEXT:    %[[F:.*]] = math.fma %[[Q]], %[[WIDE]], %[[E]] : f32
// CHECK-NEXT:    %[[R:.*]] = arith.truncf %[[F]] : f32 to bf16
// CHECK-NEXT:    linalg.yield %[[R]] : bf16
// CHECK-NOT:   linalg.generic
// CHECK:       return %[[Y]]
func.func @merged(%x: tensor<64xbf16>) -> tensor<64xbf16> {
  %e32 = tensor.empty() : tensor<64xf32>
  %e16 = tensor.empty() : tensor<64xbf16>
  %1 = linalg.generic {indexing_maps = [#map, #map], iterator_types = ["parallel"]}
      ins(%x : tensor<64xbf16>) outs(%e32 : tensor<64xf32>) {
  ^bb0(%in: bf16, %out: f32):
    %v = arith.extf %in : bf16 to f32
    linalg.yield %v : f32
  } -> tensor<64xf32>
  %2 = linalg.generic {indexing_maps = [#map, #map], iterator_types = ["parallel"]}
      ins(%1 : tensor<64xf32>) outs(%e32 : tensor<64xf32>) {
  ^bb0(%in: f32, %out: f32):
    %v = math.exp %in : f32
    linalg.yield %v : f32
  } -> tensor<64xf32>
  %3 = linalg.generic {indexing_maps = [#map, #map, #map], iterator_types = ["parallel"]}
      ins(%1, %2 : tensor<64xf32>, tensor<64xf32>) outs(%e32 : tensor<64xf32>) {
  ^bb0(%a: f32, %b: f32, %out: f32):
    %q = arith.divf %b, %a : f32
    %p = arith.mulf %q, %a : f32
    %v = arith.addf %p, %b : f32
    linalg.yield %v : f32
  } -> tensor<64xf32>
  %4 = linalg.generic {indexing_maps = [#map, #map], iterator_types = ["parallel"]}
      ins(%3 : tensor<64xf32>) outs(%e16 : tensor<64xbf16>) {
  ^bb0(%in: f32, %out: bf16):
    %v = arith.truncf %in : f32 to bf16
    linalg.yield %v : bf16
  } -> tensor<64xbf16>
  return %4 : tensor<64xbf16>
}

// -----

#map = affine_map<(d0) -> (d0)>

// What the program uses in f32 besides stays an op of its own, and exact.

// CHECK-LABEL: func.func @used_elsewhere
// CHECK:       %[[E:.*]] = linalg.generic
// CHECK:         math.exp %{{.*}} : f32
// CHECK:       %[[R:.*]] = linalg.generic {{.*}} ins(%[[E]]
// CHECK:         arith.truncf
// CHECK:       return %[[E]], %[[R]]
func.func @used_elsewhere(%x: tensor<64xf32>) -> (tensor<64xf32>, tensor<64xbf16>) {
  %e32 = tensor.empty() : tensor<64xf32>
  %e16 = tensor.empty() : tensor<64xbf16>
  %1 = linalg.generic {indexing_maps = [#map, #map], iterator_types = ["parallel"]}
      ins(%x : tensor<64xf32>) outs(%e32 : tensor<64xf32>) {
  ^bb0(%in: f32, %out: f32):
    %v = math.exp %in : f32
    linalg.yield %v : f32
  } -> tensor<64xf32>
  %2 = linalg.generic {indexing_maps = [#map, #map], iterator_types = ["parallel"]}
      ins(%1 : tensor<64xf32>) outs(%e16 : tensor<64xbf16>) {
  ^bb0(%in: f32, %out: bf16):
    %v = arith.truncf %in : f32 to bf16
    linalg.yield %v : bf16
  } -> tensor<64xbf16>
  return %1, %2 : tensor<64xf32>, tensor<64xbf16>
}

// -----

#map = affine_map<(d0) -> (d0)>

// A square is a product, another integer power one with a floating-point exponent, and 1 + tanh a logistic function.

// CHECK-LABEL: func.func @simplified
// CHECK:       ^bb0(%[[IN:.*]]: f32, %{{.*}}: f32):
// CHECK:         %[[SQUARE:.*]] = arith.mulf %[[IN]], %[[IN]] : f32
// CHECK:         %[[POWER:.*]] = math.powf %[[SQUARE]], %{{.*}} : f32
// CHECK:         %[[U:.*]] = arith.mulf %[[POWER]], %{{.*}} : f32
// CHECK:         %[[E:.*]] = math.exp %[[U]] : f32
// CHECK:         %[[D:.*]] = arith.addf %[[E]], %{{.*}} : f32
// CHECK:         %[[Y:.*]] = arith.divf %{{.*}}, %[[D]] : f32
// CHECK:         linalg.yield %[[Y]] : f32
func.func @simplified(%x: tensor<64xf32>) -> tensor<64xf32> {
  %e = tensor.empty() : tensor<64xf32>
  %two = arith.constant 2 : i64
  %five = arith.constant 5 : i64
  %one = arith.constant 1.0 : f32
  %1 = linalg.generic {indexing_maps = [#map, #map], iterator_types = ["parallel"]}
      ins(%x : tensor<64xf32>) outs(%e : tensor<64xf32>) {
  ^bb0(%in: f32, %out: f32):
    %a = math.fpowi %in, %two : f32, i64
    %b = math.fpowi %a, %five : f32, i64
    %c = math.tanh %b : f32
    %d = arith.addf %c, %one : f32
    linalg.yield %d : f32
  } -> tensor<64xf32>
  return %1 : tensor<64xf32>
}
