// RUN: fusion-opt %s --pass-pipeline='builtin.module(fusion-split-reductions{target=sm_90},fusion-segment)' | FileCheck %s

// The rows don't divide into parts, so the exponentials of what is left over are computed again, behind a reshape of
// their own. For the runs of the source (here the same operations) to be tried, the copies and the reshape are gone.

#map = affine_map<(d0, d1) -> (d0, d1)>
#map1 = affine_map<(d0, d1) -> (d0)>
#map2 = affine_map<(d0, d1) -> (d0, 0)>

// CHECK-LABEL: func.func @main
// CHECK:       "fusion.kernel"
// CHECK:         fusion.partial
// CHECK-NOT:   fusion.place
// CHECK:       return
func.func @main(%arg0: tensor<2x50257xf32>) -> (tensor<2x50257xf32> {fusion.new}) attributes {fusion.source = {order = array<i64: 0, 1, 2, 3, 4>, peak_bytes = 804120 : i64, run_ops = 256 : i64}} {
  %0 = "fusion.region"(%arg0) ({
  ^bb0(%arg1: tensor<2x50257xf32>):
    %1 = tensor.empty() : tensor<2xf32>
    %cst = arith.constant 0xFF800000 : f32
    %2 = linalg.fill ins(%cst : f32) outs(%1 : tensor<2xf32>) -> tensor<2xf32>
    %3 = linalg.generic {indexing_maps = [#map, #map1], iterator_types = ["parallel", "reduction"]} ins(%arg1 : tensor<2x50257xf32>) outs(%2 : tensor<2xf32>) {
    ^bb0(%in: f32, %out: f32):
      %11 = arith.maximumf %in, %out : f32
      linalg.yield %11 : f32
    } -> tensor<2xf32>
    %expanded = tensor.expand_shape %3 [[0, 1]] output_shape [2, 1] : tensor<2xf32> into tensor<2x1xf32>
    %4 = tensor.empty() : tensor<2x50257xf32>
    %5 = linalg.generic {indexing_maps = [#map, #map2, #map], iterator_types = ["parallel", "parallel"]} ins(%arg1, %expanded : tensor<2x50257xf32>, tensor<2x1xf32>) outs(%4 : tensor<2x50257xf32>) {
    ^bb0(%in: f32, %in_1: f32, %out: f32):
      %11 = arith.subf %in, %in_1 : f32
      linalg.yield %11 : f32
    } -> tensor<2x50257xf32>
    %6 = linalg.generic {indexing_maps = [#map, #map], iterator_types = ["parallel", "parallel"]} ins(%5 : tensor<2x50257xf32>) outs(%4 : tensor<2x50257xf32>) {
    ^bb0(%in: f32, %out: f32):
      %11 = math.exp %in {fusion.at_most_one} : f32
      linalg.yield %11 : f32
    } -> tensor<2x50257xf32>
    %7 = tensor.empty() : tensor<2x1xf32>
    %cst_0 = arith.constant 0.000000e+00 : f32
    %8 = linalg.fill ins(%cst_0 : f32) outs(%7 : tensor<2x1xf32>) -> tensor<2x1xf32>
    %9 = linalg.generic {indexing_maps = [#map, #map2], iterator_types = ["parallel", "reduction"]} ins(%6 : tensor<2x50257xf32>) outs(%8 : tensor<2x1xf32>) {
    ^bb0(%in: f32, %out: f32):
      %11 = arith.addf %in, %out : f32
      linalg.yield %11 : f32
    } -> tensor<2x1xf32>
    %10 = linalg.generic {indexing_maps = [#map, #map2, #map], iterator_types = ["parallel", "parallel"]} ins(%6, %9 : tensor<2x50257xf32>, tensor<2x1xf32>) outs(%4 : tensor<2x50257xf32>) {
    ^bb0(%in: f32, %in_1: f32, %out: f32):
      %11 = arith.divf %in, %in_1 : f32
      linalg.yield %11 : f32
    } -> tensor<2x50257xf32>
    "fusion.yield"(%10) : (tensor<2x50257xf32>) -> ()
  }) : (tensor<2x50257xf32>) -> tensor<2x50257xf32>
  return %0 : tensor<2x50257xf32>
}
