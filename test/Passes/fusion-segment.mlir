// RUN: fusion-opt %s --split-input-file --pass-pipeline='builtin.module(fusion-segment)' | FileCheck %s

#map = affine_map<(d0, d1) -> (d0, d1)>
#row = affine_map<(d0, d1) -> (d0)>
#transposed = affine_map<(d0, d1) -> (d1, d0)>

// A row reduction and what hangs on it are one kernel: it is named after what it computes.

// CHECK-LABEL: func.func @whole
// CHECK-SAME:  (%[[X:.*]]: tensor<8x64xf32>)
// CHECK:       %[[K:.*]]:2 = "fusion.kernel"(%[[X]])
// CHECK:         linalg.generic
// CHECK:         linalg.generic
// CHECK:         "fusion.yield"
// CHECK:       {name = "addf_mulf_0", operandSegmentSizes = array<i32: 1, 0>}
// CHECK-NEXT:  return %[[K]]#0, %[[K]]#1
func.func @whole(%x: tensor<8x64xf32>) -> (tensor<8xf32>, tensor<8x64xf32>) {
  %r:2 = "fusion.region"(%x) ({
  ^bb0(%a: tensor<8x64xf32>):
    %zero = arith.constant 0.0 : f32
    %e = tensor.empty() : tensor<8xf32>
    %init = linalg.fill ins(%zero : f32) outs(%e : tensor<8xf32>) -> tensor<8xf32>
    %sum = linalg.generic {indexing_maps = [#map, #row], iterator_types = ["parallel", "reduction"]}
        ins(%a : tensor<8x64xf32>) outs(%init : tensor<8xf32>) {
    ^bb0(%in: f32, %out: f32):
      %1 = arith.addf %in, %out : f32
      linalg.yield %1 : f32
    } -> tensor<8xf32>
    %e2 = tensor.empty() : tensor<8x64xf32>
    %scaled = linalg.generic {indexing_maps = [#map, #row, #map], iterator_types = ["parallel", "parallel"]}
        ins(%a, %sum : tensor<8x64xf32>, tensor<8xf32>) outs(%e2 : tensor<8x64xf32>) {
    ^bb0(%in: f32, %s: f32, %out: f32):
      %1 = arith.mulf %in, %s : f32
      linalg.yield %1 : f32
    } -> tensor<8x64xf32>
    "fusion.yield"(%sum, %scaled) : (tensor<8xf32>, tensor<8x64xf32>) -> ()
  }) : (tensor<8x64xf32>) -> (tensor<8xf32>, tensor<8x64xf32>)
  return %r#0, %r#1 : tensor<8xf32>, tensor<8x64xf32>
}

// -----

#map = affine_map<(d0, d1) -> (d0, d1)>
#row = affine_map<(d0, d1) -> (d0)>
#column = affine_map<(d0, d1) -> (d1)>

// A sum over columns of what a row sum made can't wait in the same kernel: the region falls into two, the
// second one reading what the first one stored.

// CHECK-LABEL: func.func @split
// CHECK-SAME:  (%[[X:.*]]: tensor<8x64xf32>)
// CHECK:       %[[FIRST:.*]] = "fusion.kernel"(%[[X]])
// CHECK:         iterator_types = ["parallel", "reduction"]
// CHECK:         arith.mulf
// CHECK:       name = "addf_mulf_0"
// CHECK:       %[[SECOND:.*]] = "fusion.kernel"(%[[FIRST]])
// CHECK:         iterator_types = ["reduction", "parallel"]
// CHECK:       name = "addf_0"
// CHECK:       return %[[SECOND]]
func.func @split(%x: tensor<8x64xf32>) -> tensor<64xf32> {
  %r = "fusion.region"(%x) ({
  ^bb0(%a: tensor<8x64xf32>):
    %zero = arith.constant 0.0 : f32
    %e = tensor.empty() : tensor<8xf32>
    %init = linalg.fill ins(%zero : f32) outs(%e : tensor<8xf32>) -> tensor<8xf32>
    %sum = linalg.generic {indexing_maps = [#map, #row], iterator_types = ["parallel", "reduction"]}
        ins(%a : tensor<8x64xf32>) outs(%init : tensor<8xf32>) {
    ^bb0(%in: f32, %out: f32):
      %1 = arith.addf %in, %out : f32
      linalg.yield %1 : f32
    } -> tensor<8xf32>
    %e2 = tensor.empty() : tensor<8x64xf32>
    %scaled = linalg.generic {indexing_maps = [#map, #row, #map], iterator_types = ["parallel", "parallel"]}
        ins(%a, %sum : tensor<8x64xf32>, tensor<8xf32>) outs(%e2 : tensor<8x64xf32>) {
    ^bb0(%in: f32, %s: f32, %out: f32):
      %1 = arith.mulf %in, %s : f32
      linalg.yield %1 : f32
    } -> tensor<8x64xf32>
    %e3 = tensor.empty() : tensor<64xf32>
    %init2 = linalg.fill ins(%zero : f32) outs(%e3 : tensor<64xf32>) -> tensor<64xf32>
    %columns = linalg.generic {indexing_maps = [#map, #column], iterator_types = ["reduction", "parallel"]}
        ins(%scaled : tensor<8x64xf32>) outs(%init2 : tensor<64xf32>) {
    ^bb0(%in: f32, %out: f32):
      %1 = arith.addf %in, %out : f32
      linalg.yield %1 : f32
    } -> tensor<64xf32>
    "fusion.yield"(%columns) : (tensor<64xf32>) -> ()
  }) : (tensor<8x64xf32>) -> tensor<64xf32>
  return %r : tensor<64xf32>
}

// -----

// A region that nothing uses has nothing to compute.

// CHECK-LABEL: func.func @dead
// CHECK-NEXT:    return
func.func @dead(%x: tensor<8xf32>) {
  "fusion.region"(%x) ({
  ^bb0(%a: tensor<8xf32>):
    "fusion.yield"() : () -> ()
  }) : (tensor<8xf32>) -> ()
  return
}

// -----

// What is outside of regions stays what it is.

// CHECK-LABEL: func.func @library
// CHECK-SAME:  (%[[X:.*]]: tensor<8x8xf32>)
// CHECK-NEXT:    %[[Y:.*]] = "fusion.extern"(%[[X]])
// CHECK-NEXT:    return %[[Y]]
func.func @library(%x: tensor<8x8xf32>) -> tensor<8x8xf32> {
  %y = "fusion.extern"(%x) {op = "aten.inverse.default", args = [#fusion.operand<0>]} : (tensor<8x8xf32>) -> tensor<8x8xf32>
  return %y : tensor<8x8xf32>
}

// -----

#map = affine_map<(d0, d1) -> (d0, d1)>
#row = affine_map<(d0, d1) -> (d0)>
#column = affine_map<(d0, d1) -> (d1)>
#vector = affine_map<(d0) -> (d0)>

// What is done to the weights, between the first operation on the rows and those that use both, separates nothing: it
// has another shape than what was before it, and starts a kernel, which then takes in the one before.

// CHECK-LABEL: func.func @weights_between
// CHECK:       %[[FIRST:.*]] = "fusion.kernel"(%{{.*}}, %{{.*}})
// CHECK:         math.exp
// CHECK:         arith.negf
// CHECK:         arith.mulf
// CHECK:         iterator_types = ["parallel", "reduction"]
// CHECK:         arith.subf
// CHECK:       %[[SECOND:.*]] = "fusion.kernel"(%[[FIRST]])
// CHECK:         iterator_types = ["reduction", "parallel"]
// CHECK:       return %[[SECOND]]
func.func @weights_between(%x: tensor<8x64xf32>, %w: tensor<64xf32>) -> tensor<64xf32> {
  %r = "fusion.region"(%x, %w) ({
  ^bb0(%a: tensor<8x64xf32>, %b: tensor<64xf32>):
    %e = tensor.empty() : tensor<8x64xf32>
    %exp = linalg.generic {indexing_maps = [#map, #map], iterator_types = ["parallel", "parallel"]}
        ins(%a : tensor<8x64xf32>) outs(%e : tensor<8x64xf32>) {
    ^bb0(%in: f32, %out: f32):
      %1 = math.exp %in : f32
      linalg.yield %1 : f32
    } -> tensor<8x64xf32>
    %e1 = tensor.empty() : tensor<64xf32>
    %weights = linalg.generic {indexing_maps = [#vector, #vector], iterator_types = ["parallel"]}
        ins(%b : tensor<64xf32>) outs(%e1 : tensor<64xf32>) {
    ^bb0(%in: f32, %out: f32):
      %1 = arith.negf %in : f32
      linalg.yield %1 : f32
    } -> tensor<64xf32>
    %scaled = linalg.generic {indexing_maps = [#map, #column, #map], iterator_types = ["parallel", "parallel"]}
        ins(%exp, %weights : tensor<8x64xf32>, tensor<64xf32>) outs(%e : tensor<8x64xf32>) {
    ^bb0(%in: f32, %s: f32, %out: f32):
      %1 = arith.mulf %in, %s : f32
      linalg.yield %1 : f32
    } -> tensor<8x64xf32>
    %zero = arith.constant 0.0 : f32
    %e2 = tensor.empty() : tensor<8xf32>
    %init = linalg.fill ins(%zero : f32) outs(%e2 : tensor<8xf32>) -> tensor<8xf32>
    %sum = linalg.generic {indexing_maps = [#map, #row], iterator_types = ["parallel", "reduction"]}
        ins(%scaled : tensor<8x64xf32>) outs(%init : tensor<8xf32>) {
    ^bb0(%in: f32, %out: f32):
      %1 = arith.addf %in, %out : f32
      linalg.yield %1 : f32
    } -> tensor<8xf32>
    %less = linalg.generic {indexing_maps = [#map, #row, #map], iterator_types = ["parallel", "parallel"]}
        ins(%scaled, %sum : tensor<8x64xf32>, tensor<8xf32>) outs(%e : tensor<8x64xf32>) {
    ^bb0(%in: f32, %s: f32, %out: f32):
      %1 = arith.subf %in, %s : f32
      linalg.yield %1 : f32
    } -> tensor<8x64xf32>
    %init2 = linalg.fill ins(%zero : f32) outs(%e1 : tensor<64xf32>) -> tensor<64xf32>
    %columns = linalg.generic {indexing_maps = [#map, #column], iterator_types = ["reduction", "parallel"]}
        ins(%less : tensor<8x64xf32>) outs(%init2 : tensor<64xf32>) {
    ^bb0(%in: f32, %out: f32):
      %1 = arith.addf %in, %out : f32
      linalg.yield %1 : f32
    } -> tensor<64xf32>
    "fusion.yield"(%columns) : (tensor<64xf32>) -> ()
  }) : (tensor<8x64xf32>, tensor<64xf32>) -> tensor<64xf32>
  return %r : tensor<64xf32>
}
