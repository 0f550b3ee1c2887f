// RUN: fusion-opt %s --split-input-file --pass-pipeline='builtin.module(fusion-normalize)' | FileCheck %s
// RUN: fusion-opt %s --split-input-file --pass-pipeline='builtin.module(fusion-normalize{fast-math=off})' | FileCheck %s --check-prefix=OFF

#map = affine_map<(d0, d1) -> (d0, d1)>
#row = affine_map<(d0, d1) -> (d0)>

// A softmax whose result is rounded: the exponentials go into a sum and a quotient, which keep their small error small,
// and then into 16 bits. The sum is the same along a row, so its reciprocal is taken once.

// CHECK-LABEL: func.func @softmax(
// CHECK:         math.exp %{{.*}} fastmath<afn> : f32
// CHECK:         linalg.generic
// CHECK-NEXT:    ^bb0(%[[E:.*]]: f32, %[[SO_FAR:.*]]: f32):
// CHECK-NEXT:      arith.addf %[[E]], %[[SO_FAR]]
// CHECK:         linalg.generic
// CHECK-NEXT:    ^bb0(%[[E:.*]]: f32, %[[S:.*]]: f32, %{{.*}}: bf16):
// CHECK:           %[[SCALE:.*]] = arith.select
// CHECK:           %[[SCALED:.*]] = arith.mulf %[[S]], %[[SCALE]]
// CHECK:           %[[R:.*]] = arith.divf %{{.*}}, %[[SCALED]] {fusion.approximate}
// CHECK:           %[[P:.*]] = arith.mulf %[[E]], %[[R]]
// CHECK:           %[[Q:.*]] = arith.mulf %[[P]], %[[SCALE]]
// CHECK:           arith.truncf %[[Q]]
// OFF-LABEL: func.func @softmax(
// OFF:         math.exp %{{[^ ]*}} : f32
// OFF:         arith.divf %{{[^ ]*}}, %{{[^ ]*}} : f32
func.func @softmax(%x: tensor<4x64xf32>) -> tensor<4x64xbf16> {
  %zero = arith.constant 0.0 : f32
  %e32 = tensor.empty() : tensor<4x64xf32>
  %e16 = tensor.empty() : tensor<4x64xbf16>
  %r32 = tensor.empty() : tensor<4xf32>
  %init = linalg.fill ins(%zero : f32) outs(%r32 : tensor<4xf32>) -> tensor<4xf32>
  %1 = linalg.generic {indexing_maps = [#map, #map], iterator_types = ["parallel", "parallel"]}
      ins(%x : tensor<4x64xf32>) outs(%e32 : tensor<4x64xf32>) {
  ^bb0(%in: f32, %out: f32):
    %v = math.exp %in : f32
    linalg.yield %v : f32
  } -> tensor<4x64xf32>
  %2 = linalg.generic {indexing_maps = [#map, #row], iterator_types = ["parallel", "reduction"]}
      ins(%1 : tensor<4x64xf32>) outs(%init : tensor<4xf32>) {
  ^bb0(%in: f32, %out: f32):
    %v = arith.addf %in, %out : f32
    linalg.yield %v : f32
  } -> tensor<4xf32>
  %3 = linalg.generic {indexing_maps = [#map, #row, #map], iterator_types = ["parallel", "parallel"]}
      ins(%1, %2 : tensor<4x64xf32>, tensor<4xf32>) outs(%e16 : tensor<4x64xbf16>) {
  ^bb0(%in: f32, %s: f32, %out: bf16):
    %q = arith.divf %in, %s : f32
    %v = arith.truncf %q : f32 to bf16
    linalg.yield %v : bf16
  } -> tensor<4x64xbf16>
  return %3 : tensor<4x64xbf16>
}

// -----

#map = affine_map<(d0) -> (d0)>

// A difference enlarges relative errors, and a result in f32 shows them: exact, both.

// CHECK-LABEL: func.func @difference(
// CHECK:         math.exp %{{[^ ]*}} : f32
// CHECK-LABEL: func.func @shown(
// CHECK:         math.exp %{{[^ ]*}} : f32
func.func @difference(%x: tensor<64xf32>, %y: tensor<64xf32>) -> (tensor<64xbf16>, tensor<64xbf16>) {
  %e32 = tensor.empty() : tensor<64xf32>
  %e16 = tensor.empty() : tensor<64xbf16>
  %1 = linalg.generic {indexing_maps = [#map, #map], iterator_types = ["parallel"]}
      ins(%x : tensor<64xf32>) outs(%e32 : tensor<64xf32>) {
  ^bb0(%in: f32, %out: f32):
    %v = math.exp %in : f32
    linalg.yield %v : f32
  } -> tensor<64xf32>
  %2:2 = linalg.generic {indexing_maps = [#map, #map, #map, #map], iterator_types = ["parallel"]}
      ins(%1, %y : tensor<64xf32>, tensor<64xf32>) outs(%e16, %e16 : tensor<64xbf16>, tensor<64xbf16>) {
  ^bb0(%in: f32, %other: f32, %out: bf16, %out2: bf16):
    %d = arith.subf %in, %other : f32
    %v = arith.truncf %d : f32 to bf16
    %w = arith.truncf %in : f32 to bf16
    linalg.yield %v, %w : bf16, bf16
  } -> (tensor<64xbf16>, tensor<64xbf16>)
  return %2#0, %2#1 : tensor<64xbf16>, tensor<64xbf16>
}

func.func @shown(%x: tensor<64xf32>) -> (tensor<64xbf16>, tensor<64xf32>) {
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
  return %2, %1 : tensor<64xbf16>, tensor<64xf32>
}
