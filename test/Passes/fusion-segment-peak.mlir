// RUN: fusion-opt %s --split-input-file --pass-pipeline='builtin.module(fusion-segment)' | FileCheck %s

#map = affine_map<(i, j) -> (i, j)>
#row = affine_map<(i, j) -> (i)>
#column = affine_map<(i, j) -> (j)>

// A plan of fusion-dataflow, which notes the source's peak, may not hold more once its regions are cut into kernels.
// The sum and the product over columns would be one kernel, but then the product (256 bytes) is held while %big is
// made, which needs the sum: 16896 bytes, when the source holds 16640. So the product is a kernel of its own, after.

// CHECK-LABEL: func.func @merged_anew
// CHECK-SAME:    (%[[X:.*]]: tensor<64x64xf32>)
// CHECK-NOT:     fusion.source
// CHECK:       %[[SUM:.*]] = "fusion.kernel"(%[[X]])
// CHECK:         arith.addf
// CHECK:       %[[BIG:.*]] = "fusion.kernel"(%[[SUM]])
// CHECK:       %[[PRODUCT:.*]] = "fusion.kernel"(%[[X]])
// CHECK:         arith.mulf
// CHECK:       return %[[BIG]], %[[PRODUCT]]
// CHECK-NOT:   fusion.place
func.func @merged_anew(%x: tensor<64x64xf32>) -> (tensor<64x64xf32>, tensor<64xf32>)
    attributes {fusion.source = {order = array<i64: 0, 1, 2>, peak_bytes = 16640 : i64}} {
  %0:2 = "fusion.region"(%x) ({
  ^bb0(%a: tensor<64x64xf32>):
    %e = tensor.empty() : tensor<64xf32>
    %zero = arith.constant 0.0 : f32
    %one = arith.constant 1.0 : f32
    %zeros = linalg.fill ins(%zero : f32) outs(%e : tensor<64xf32>) -> tensor<64xf32>
    %ones = linalg.fill ins(%one : f32) outs(%e : tensor<64xf32>) -> tensor<64xf32>
    %sum = linalg.generic {indexing_maps = [#map, #row], iterator_types = ["parallel", "reduction"]}
        ins(%a : tensor<64x64xf32>) outs(%zeros : tensor<64xf32>) {
    ^bb0(%in: f32, %out: f32):
      %1 = arith.addf %in, %out : f32
      linalg.yield %1 : f32
    } -> tensor<64xf32>
    %e2 = tensor.empty() : tensor<64x64xf32>
    %big = linalg.generic {indexing_maps = [#column, #map], iterator_types = ["parallel", "parallel"]}
        ins(%sum : tensor<64xf32>) outs(%e2 : tensor<64x64xf32>) {
    ^bb0(%in: f32, %out: f32):
      %1 = math.exp %in : f32
      linalg.yield %1 : f32
    } -> tensor<64x64xf32>
    %product = linalg.generic {indexing_maps = [#map, #row], iterator_types = ["parallel", "reduction"]}
        ins(%a : tensor<64x64xf32>) outs(%ones : tensor<64xf32>) {
    ^bb0(%in: f32, %out: f32):
      %1 = arith.mulf %in, %out : f32
      linalg.yield %1 : f32
    } -> tensor<64xf32>
    "fusion.yield"(%big, %product) : (tensor<64x64xf32>, tensor<64xf32>) -> ()
  }) : (tensor<64x64xf32>) -> (tensor<64x64xf32>, tensor<64xf32>)
  return %0#0, %0#1 : tensor<64x64xf32>, tensor<64xf32>
}

// -----

#map = affine_map<(i, j) -> (i, j)>
#row = affine_map<(i, j) -> (i)>
#column = affine_map<(i, j) -> (j)>

// Where nobody noted the source, as after fusion-consecutive, the peak is what it is.

// CHECK-LABEL: func.func @not_noted
// CHECK-COUNT-2: "fusion.kernel"
// CHECK-NOT:   "fusion.kernel"
// CHECK:       return
func.func @not_noted(%x: tensor<64x64xf32>) -> (tensor<64x64xf32>, tensor<64xf32>) {
  %0:2 = "fusion.region"(%x) ({
  ^bb0(%a: tensor<64x64xf32>):
    %e = tensor.empty() : tensor<64xf32>
    %zero = arith.constant 0.0 : f32
    %one = arith.constant 1.0 : f32
    %zeros = linalg.fill ins(%zero : f32) outs(%e : tensor<64xf32>) -> tensor<64xf32>
    %ones = linalg.fill ins(%one : f32) outs(%e : tensor<64xf32>) -> tensor<64xf32>
    %sum = linalg.generic {indexing_maps = [#map, #row], iterator_types = ["parallel", "reduction"]}
        ins(%a : tensor<64x64xf32>) outs(%zeros : tensor<64xf32>) {
    ^bb0(%in: f32, %out: f32):
      %1 = arith.addf %in, %out : f32
      linalg.yield %1 : f32
    } -> tensor<64xf32>
    %e2 = tensor.empty() : tensor<64x64xf32>
    %big = linalg.generic {indexing_maps = [#column, #map], iterator_types = ["parallel", "parallel"]}
        ins(%sum : tensor<64xf32>) outs(%e2 : tensor<64x64xf32>) {
    ^bb0(%in: f32, %out: f32):
      %1 = math.exp %in : f32
      linalg.yield %1 : f32
    } -> tensor<64x64xf32>
    %product = linalg.generic {indexing_maps = [#map, #row], iterator_types = ["parallel", "reduction"]}
        ins(%a : tensor<64x64xf32>) outs(%ones : tensor<64xf32>) {
    ^bb0(%in: f32, %out: f32):
      %1 = arith.mulf %in, %out : f32
      linalg.yield %1 : f32
    } -> tensor<64xf32>
    "fusion.yield"(%big, %product) : (tensor<64x64xf32>, tensor<64xf32>) -> ()
  }) : (tensor<64x64xf32>) -> (tensor<64x64xf32>, tensor<64xf32>)
  return %0#0, %0#1 : tensor<64x64xf32>, tensor<64xf32>
}

// -----

#map = affine_map<(i) -> (i)>

// Another order is enough here: each kernel right before the call that uses up what it makes.

// CHECK-LABEL: func.func @other_order
// CHECK:       %[[A:.*]] = "fusion.kernel"
// CHECK:       %[[C:.*]] = "fusion.extern"(%[[A]])
// CHECK:       %[[B:.*]] = "fusion.kernel"
// CHECK:       %[[D:.*]] = "fusion.extern"(%[[B]])
// CHECK:       return %[[C]], %[[D]]
func.func @other_order(%x: tensor<4096xf32>) -> (tensor<8xf32>, tensor<8xf32>)
    attributes {fusion.source = {order = array<i64: 0, 2, 1, 3>, peak_bytes = 16448 : i64}} {
  %a = "fusion.region"(%x) ({
  ^bb0(%v: tensor<4096xf32>):
    %e = tensor.empty() : tensor<4096xf32>
    %r = linalg.generic {indexing_maps = [#map, #map], iterator_types = ["parallel"]}
        ins(%v : tensor<4096xf32>) outs(%e : tensor<4096xf32>) {
    ^bb0(%in: f32, %out: f32):
      %1 = math.exp %in : f32
      linalg.yield %1 : f32
    } -> tensor<4096xf32>
    "fusion.yield"(%r) : (tensor<4096xf32>) -> ()
  }) : (tensor<4096xf32>) -> tensor<4096xf32>
  %b = "fusion.region"(%x) ({
  ^bb0(%v: tensor<4096xf32>):
    %e = tensor.empty() : tensor<4096xf32>
    %r = linalg.generic {indexing_maps = [#map, #map], iterator_types = ["parallel"]}
        ins(%v : tensor<4096xf32>) outs(%e : tensor<4096xf32>) {
    ^bb0(%in: f32, %out: f32):
      %1 = math.sin %in : f32
      linalg.yield %1 : f32
    } -> tensor<4096xf32>
    "fusion.yield"(%r) : (tensor<4096xf32>) -> ()
  }) : (tensor<4096xf32>) -> tensor<4096xf32>
  %c = "fusion.extern"(%a) {op = "test.shrink.default", args = [#fusion.operand<0>]} : (tensor<4096xf32>) -> tensor<8xf32>
  %d = "fusion.extern"(%b) {op = "test.shrink.default", args = [#fusion.operand<0>]} : (tensor<4096xf32>) -> tensor<8xf32>
  return %c, %d : tensor<8xf32>, tensor<8xf32>
}
