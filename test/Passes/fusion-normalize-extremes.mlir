// RUN: fusion-opt %s --split-input-file --pass-pipeline='builtin.module(fusion-normalize)' | FileCheck %s

// The largest of widened numbers is the largest one, widened.

// CHECK-LABEL: func.func @narrow(
// CHECK-SAME:    %[[X:.*]]: tensor<4x64xbf16>)
// CHECK-DAG:     %[[LEAST:.*]] = arith.constant 0xFF80 : bf16
// CHECK:         %[[INIT:.*]] = linalg.fill ins(%[[LEAST]] : bf16)
// CHECK:         %[[M:.*]] = linalg.generic {{.*}} ins(%[[X]] : tensor<4x64xbf16>) outs(%[[INIT]] : tensor<4xbf16>)
// CHECK-NEXT:    ^bb0(%[[IN:.*]]: bf16, %[[SO_FAR:.*]]: bf16):
// CHECK-NEXT:      arith.maximumf %[[IN]], %[[SO_FAR]] : bf16
// CHECK:         %[[W:.*]] = linalg.generic {{.*}} ins(%[[M]] : tensor<4xbf16>)
// CHECK:           arith.extf
// CHECK:         return %[[W]] : tensor<4xf32>
#map = affine_map<(d0, d1) -> (d0, d1)>
#row = affine_map<(d0, d1) -> (d0)>
func.func @narrow(%x: tensor<4x64xbf16>) -> tensor<4xf32> {
  %least = arith.constant 0xFF800000 : f32
  %e = tensor.empty() : tensor<4x64xf32>
  %r = tensor.empty() : tensor<4xf32>
  %init = linalg.fill ins(%least : f32) outs(%r : tensor<4xf32>) -> tensor<4xf32>
  %1 = linalg.generic {indexing_maps = [#map, #map], iterator_types = ["parallel", "parallel"]}
      ins(%x : tensor<4x64xbf16>) outs(%e : tensor<4x64xf32>) {
  ^bb0(%in: bf16, %out: f32):
    %v = arith.extf %in : bf16 to f32
    linalg.yield %v : f32
  } -> tensor<4x64xf32>
  %2 = linalg.generic {indexing_maps = [#map, #row], iterator_types = ["parallel", "reduction"]}
      ins(%1 : tensor<4x64xf32>) outs(%init : tensor<4xf32>) {
  ^bb0(%in: f32, %out: f32):
    %v = arith.maximumf %in, %out : f32
    linalg.yield %v : f32
  } -> tensor<4xf32>
  return %2 : tensor<4xf32>
}

// -----

// Where it starts from another number than the least, and where the numbers are computed, it is taken in f32.

// CHECK-LABEL: func.func @clamped(
// CHECK:         arith.maximumf %{{.*}} : f32
// CHECK-LABEL: func.func @computed(
// CHECK:         arith.maximumf %{{.*}} : f32
#map = affine_map<(d0, d1) -> (d0, d1)>
#row = affine_map<(d0, d1) -> (d0)>
func.func @clamped(%x: tensor<4x64xbf16>) -> tensor<4xf32> {
  %least = arith.constant 1.5 : f32
  %e = tensor.empty() : tensor<4x64xf32>
  %r = tensor.empty() : tensor<4xf32>
  %init = linalg.fill ins(%least : f32) outs(%r : tensor<4xf32>) -> tensor<4xf32>
  %1 = linalg.generic {indexing_maps = [#map, #map], iterator_types = ["parallel", "parallel"]}
      ins(%x : tensor<4x64xbf16>) outs(%e : tensor<4x64xf32>) {
  ^bb0(%in: bf16, %out: f32):
    %v = arith.extf %in : bf16 to f32
    linalg.yield %v : f32
  } -> tensor<4x64xf32>
  %2 = linalg.generic {indexing_maps = [#map, #row], iterator_types = ["parallel", "reduction"]}
      ins(%1 : tensor<4x64xf32>) outs(%init : tensor<4xf32>) {
  ^bb0(%in: f32, %out: f32):
    %v = arith.maximumf %in, %out : f32
    linalg.yield %v : f32
  } -> tensor<4xf32>
  return %2 : tensor<4xf32>
}

func.func @computed(%x: tensor<4x64xbf16>) -> tensor<4xf32> {
  %least = arith.constant 0xFF800000 : f32
  %e = tensor.empty() : tensor<4x64xf32>
  %r = tensor.empty() : tensor<4xf32>
  %init = linalg.fill ins(%least : f32) outs(%r : tensor<4xf32>) -> tensor<4xf32>
  %1 = linalg.generic {indexing_maps = [#map, #map], iterator_types = ["parallel", "parallel"]}
      ins(%x : tensor<4x64xbf16>) outs(%e : tensor<4x64xf32>) {
  ^bb0(%in: bf16, %out: f32):
    %w = arith.extf %in : bf16 to f32
    %v = math.exp %w : f32
    linalg.yield %v : f32
  } -> tensor<4x64xf32>
  %2 = linalg.generic {indexing_maps = [#map, #row], iterator_types = ["parallel", "reduction"]}
      ins(%1 : tensor<4x64xf32>) outs(%init : tensor<4xf32>) {
  ^bb0(%in: f32, %out: f32):
    %v = arith.maximumf %in, %out : f32
    linalg.yield %v : f32
  } -> tensor<4xf32>
  return %2 : tensor<4xf32>
}
