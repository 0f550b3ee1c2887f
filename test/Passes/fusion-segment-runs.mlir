// RUN: fusion-opt %s --split-input-file --pass-pipeline='builtin.module(fusion-segment)' | FileCheck %s

// What moves fewest bytes as regions need not as kernels. fusion-dataflow puts the maximum and the exponential, which
// both read %y, into one region, and the sum of the exponential with them. No kernel does all three, and cut in order
// the exponential goes through memory. Runs of the source, {maximum} and {exponential, sum}, move less as kernels.

#map = affine_map<(i, j) -> (i, j)>
#transposed = affine_map<(i, j) -> (j, i)>
#column = affine_map<(i, j) -> (j)>

// CHECK-LABEL: func.func @runs_move_less
// CHECK-SAME:    (%[[X:.*]]: tensor<64x64xf32>, %[[Y:.*]]: tensor<64x64xf32>)
// CHECK-NOT:     fusion.source
// CHECK:       %[[MAXIMUM:.*]] = "fusion.kernel"(%[[X]], %[[Y]])
// CHECK:         arith.maximumf
// CHECK:       %[[CALL:.*]] = "fusion.extern"(%[[MAXIMUM]])
// CHECK:       %[[SUM:.*]] = "fusion.kernel"(%[[Y]])
// CHECK:         math.exp
// CHECK:         arith.addf
// CHECK:       return %[[CALL]], %[[SUM]]
// CHECK-NOT:   fusion.place
func.func @runs_move_less(%x: tensor<64x64xf32>, %y: tensor<64x64xf32>) -> (tensor<64x64xf32>, tensor<64xf32>)
    attributes {fusion.source = {order = array<i64: 0, 2, 3, 1>, peak_bytes = 32768 : i64, run_ops = 256 : i64}} {
  %0:2 = "fusion.region"(%x, %y) ({
  ^bb0(%a: tensor<64x64xf32>, %b: tensor<64x64xf32>):
    %e = tensor.empty() : tensor<64x64xf32>
    %e1 = tensor.empty() : tensor<64xf32>
    %zero = arith.constant 0.0 : f32
    %zeros = linalg.fill ins(%zero : f32) outs(%e1 : tensor<64xf32>) -> tensor<64xf32>
    %m = linalg.generic {indexing_maps = [#map, #map, #map], iterator_types = ["parallel", "parallel"]}
        ins(%a, %b : tensor<64x64xf32>, tensor<64x64xf32>) outs(%e : tensor<64x64xf32>) {
    ^bb0(%one: f32, %other: f32, %out: f32):
      %1 = arith.maximumf %one, %other : f32
      linalg.yield %1 : f32
    } -> tensor<64x64xf32>
    %t = linalg.generic {indexing_maps = [#transposed, #map], iterator_types = ["parallel", "parallel"]}
        ins(%b : tensor<64x64xf32>) outs(%e : tensor<64x64xf32>) {
    ^bb0(%in: f32, %out: f32):
      %1 = math.exp %in : f32
      linalg.yield %1 : f32
    } -> tensor<64x64xf32>
    %s = linalg.generic {indexing_maps = [#map, #column], iterator_types = ["reduction", "parallel"]}
        ins(%t : tensor<64x64xf32>) outs(%zeros : tensor<64xf32>) {
    ^bb0(%in: f32, %out: f32):
      %1 = arith.addf %in, %out : f32
      linalg.yield %1 : f32
    } -> tensor<64xf32>
    "fusion.yield"(%m, %s) : (tensor<64x64xf32>, tensor<64xf32>) -> ()
  }) : (tensor<64x64xf32>, tensor<64x64xf32>) -> (tensor<64x64xf32>, tensor<64xf32>)
  %c = "fusion.extern"(%0#0) {op = "test.call.default", args = [#fusion.operand<0>]} : (tensor<64x64xf32>) -> tensor<64x64xf32>
  return %c, %0#1 : tensor<64x64xf32>, tensor<64xf32>
}

// -----

#map = affine_map<(i, j) -> (i, j)>
#transposed = affine_map<(i, j) -> (j, i)>
#column = affine_map<(i, j) -> (j)>

// Where neighbours that share nothing may not be merged, as with horizontal=false, the plan is only cut.

// CHECK-LABEL: func.func @without_runs
// CHECK-COUNT-3: "fusion.kernel"
// CHECK-NOT:   "fusion.kernel"
// CHECK:       return
func.func @without_runs(%x: tensor<64x64xf32>, %y: tensor<64x64xf32>) -> (tensor<64x64xf32>, tensor<64xf32>)
    attributes {fusion.source = {order = array<i64: 0, 2, 3, 1>, peak_bytes = 32768 : i64}} {
  %0:2 = "fusion.region"(%x, %y) ({
  ^bb0(%a: tensor<64x64xf32>, %b: tensor<64x64xf32>):
    %e = tensor.empty() : tensor<64x64xf32>
    %e1 = tensor.empty() : tensor<64xf32>
    %zero = arith.constant 0.0 : f32
    %zeros = linalg.fill ins(%zero : f32) outs(%e1 : tensor<64xf32>) -> tensor<64xf32>
    %m = linalg.generic {indexing_maps = [#map, #map, #map], iterator_types = ["parallel", "parallel"]}
        ins(%a, %b : tensor<64x64xf32>, tensor<64x64xf32>) outs(%e : tensor<64x64xf32>) {
    ^bb0(%one: f32, %other: f32, %out: f32):
      %1 = arith.maximumf %one, %other : f32
      linalg.yield %1 : f32
    } -> tensor<64x64xf32>
    %t = linalg.generic {indexing_maps = [#transposed, #map], iterator_types = ["parallel", "parallel"]}
        ins(%b : tensor<64x64xf32>) outs(%e : tensor<64x64xf32>) {
    ^bb0(%in: f32, %out: f32):
      %1 = math.exp %in : f32
      linalg.yield %1 : f32
    } -> tensor<64x64xf32>
    %s = linalg.generic {indexing_maps = [#map, #column], iterator_types = ["reduction", "parallel"]}
        ins(%t : tensor<64x64xf32>) outs(%zeros : tensor<64xf32>) {
    ^bb0(%in: f32, %out: f32):
      %1 = arith.addf %in, %out : f32
      linalg.yield %1 : f32
    } -> tensor<64xf32>
    "fusion.yield"(%m, %s) : (tensor<64x64xf32>, tensor<64xf32>) -> ()
  }) : (tensor<64x64xf32>, tensor<64x64xf32>) -> (tensor<64x64xf32>, tensor<64xf32>)
  %c = "fusion.extern"(%0#0) {op = "test.call.default", args = [#fusion.operand<0>]} : (tensor<64x64xf32>) -> tensor<64x64xf32>
  return %c, %0#1 : tensor<64x64xf32>, tensor<64xf32>
}
