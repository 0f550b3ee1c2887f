// RUN: fusion-opt %s --split-input-file --pass-pipeline='builtin.module(fusion-schedule,fusion-batch)' | FileCheck %s
// RUN: fusion-opt %s --split-input-file --pass-pipeline='builtin.module(fusion-schedule,fusion-batch{max-kernels=1})' | FileCheck %s --check-prefix=ALONE

// ALONE-NOT: batch

#map = affine_map<(d0) -> (d0)>

// Small kernels side by side run in one launch: two equal ones, and one of another size.

// CHECK-LABEL: func.func @siblings
// CHECK:         %[[A:.+]] = "fusion.kernel"(%arg0)
// CHECK:         batch = 0 : i64, name = "a"
// CHECK:         %[[B:.+]] = "fusion.kernel"(%arg1)
// CHECK:         batch = 0 : i64, name = "b"
// CHECK:         %[[C:.+]] = "fusion.kernel"(%arg2)
// CHECK:         batch = 0 : i64, name = "c"
// CHECK:         return %[[A]], %[[B]], %[[C]]
func.func @siblings(%x: tensor<64xf32>, %y: tensor<64xf32>, %z: tensor<100xf32>)
    -> (tensor<64xf32>, tensor<64xf32>, tensor<100xf32>) {
  %a = "fusion.kernel"(%x) ({
  ^bb0(%v: tensor<64xf32>):
    %e = tensor.empty() : tensor<64xf32>
    %r = linalg.generic {indexing_maps = [#map, #map], iterator_types = ["parallel"]}
        ins(%v : tensor<64xf32>) outs(%e : tensor<64xf32>) {
    ^bb0(%in: f32, %out: f32):
      %1 = arith.negf %in : f32
      linalg.yield %1 : f32
    } -> tensor<64xf32>
    "fusion.yield"(%r) : (tensor<64xf32>) -> ()
  }) {name = "a", operandSegmentSizes = array<i32: 1, 0>} : (tensor<64xf32>) -> tensor<64xf32>
  %b = "fusion.kernel"(%y) ({
  ^bb0(%v: tensor<64xf32>):
    %e = tensor.empty() : tensor<64xf32>
    %r = linalg.generic {indexing_maps = [#map, #map], iterator_types = ["parallel"]}
        ins(%v : tensor<64xf32>) outs(%e : tensor<64xf32>) {
    ^bb0(%in: f32, %out: f32):
      %1 = arith.negf %in : f32
      linalg.yield %1 : f32
    } -> tensor<64xf32>
    "fusion.yield"(%r) : (tensor<64xf32>) -> ()
  }) {name = "b", operandSegmentSizes = array<i32: 1, 0>} : (tensor<64xf32>) -> tensor<64xf32>
  %c = "fusion.kernel"(%z) ({
  ^bb0(%v: tensor<100xf32>):
    %e = tensor.empty() : tensor<100xf32>
    %r = linalg.generic {indexing_maps = [#map, #map], iterator_types = ["parallel"]}
        ins(%v : tensor<100xf32>) outs(%e : tensor<100xf32>) {
    ^bb0(%in: f32, %out: f32):
      %1 = arith.mulf %in, %in : f32
      linalg.yield %1 : f32
    } -> tensor<100xf32>
    "fusion.yield"(%r) : (tensor<100xf32>) -> ()
  }) {name = "c", operandSegmentSizes = array<i32: 1, 0>} : (tensor<100xf32>) -> tensor<100xf32>
  return %a, %b, %c : tensor<64xf32>, tensor<64xf32>, tensor<100xf32>
}

// -----

#map = affine_map<(d0) -> (d0)>

// One that reads what the batch makes can't be in it; nor can one behind a library call.

// CHECK-LABEL: func.func @dependent
// CHECK-NOT:     batch
func.func @dependent(%x: tensor<64xf32>, %w: tensor<64xf32>) -> (tensor<64xf32>, tensor<64xf32>, tensor<64xf32>) {
  %a = "fusion.kernel"(%x) ({
  ^bb0(%v: tensor<64xf32>):
    %e = tensor.empty() : tensor<64xf32>
    %r = linalg.generic {indexing_maps = [#map, #map], iterator_types = ["parallel"]}
        ins(%v : tensor<64xf32>) outs(%e : tensor<64xf32>) {
    ^bb0(%in: f32, %out: f32):
      %1 = arith.negf %in : f32
      linalg.yield %1 : f32
    } -> tensor<64xf32>
    "fusion.yield"(%r) : (tensor<64xf32>) -> ()
  }) {name = "a", operandSegmentSizes = array<i32: 1, 0>} : (tensor<64xf32>) -> tensor<64xf32>
  %b = "fusion.kernel"(%a) ({
  ^bb0(%v: tensor<64xf32>):
    %e = tensor.empty() : tensor<64xf32>
    %r = linalg.generic {indexing_maps = [#map, #map], iterator_types = ["parallel"]}
        ins(%v : tensor<64xf32>) outs(%e : tensor<64xf32>) {
    ^bb0(%in: f32, %out: f32):
      %1 = math.exp %in : f32
      linalg.yield %1 : f32
    } -> tensor<64xf32>
    "fusion.yield"(%r) : (tensor<64xf32>) -> ()
  }) {name = "b", operandSegmentSizes = array<i32: 1, 0>} : (tensor<64xf32>) -> tensor<64xf32>
  %d = "fusion.extern"(%x) {op = "aten.sort", args = [#fusion.operand<0>]} : (tensor<64xf32>) -> tensor<64xf32>
  %c = "fusion.kernel"(%w) ({
  ^bb0(%v: tensor<64xf32>):
    %e = tensor.empty() : tensor<64xf32>
    %r = linalg.generic {indexing_maps = [#map, #map], iterator_types = ["parallel"]}
        ins(%v : tensor<64xf32>) outs(%e : tensor<64xf32>) {
    ^bb0(%in: f32, %out: f32):
      %1 = arith.mulf %in, %in : f32
      linalg.yield %1 : f32
    } -> tensor<64xf32>
    "fusion.yield"(%r) : (tensor<64xf32>) -> ()
  }) {name = "c", operandSegmentSizes = array<i32: 1, 0>} : (tensor<64xf32>) -> tensor<64xf32>
  return %b, %c, %d : tensor<64xf32>, tensor<64xf32>, tensor<64xf32>
}

// -----

#map = affine_map<(d0) -> (d0)>

// %s dies in @b, so the plan may give its memory to what comes next: @b is the last of its batch.

// CHECK-LABEL: func.func @dying
// CHECK:         batch = 0 : i64, name = "a"
// CHECK:         batch = 0 : i64, name = "b"
// CHECK-NOT:     batch
// CHECK:         name = "c"
func.func @dying(%x: tensor<64xf32>, %y: tensor<64xf32>) -> (tensor<64xf32>, tensor<64xf32>, tensor<64xf32>) {
  %s = "fusion.extern"(%x) {op = "aten.sort", args = [#fusion.operand<0>]} : (tensor<64xf32>) -> tensor<64xf32>
  %a = "fusion.kernel"(%x) ({
  ^bb0(%v: tensor<64xf32>):
    %e = tensor.empty() : tensor<64xf32>
    %r = linalg.generic {indexing_maps = [#map, #map], iterator_types = ["parallel"]}
        ins(%v : tensor<64xf32>) outs(%e : tensor<64xf32>) {
    ^bb0(%in: f32, %out: f32):
      %1 = arith.negf %in : f32
      linalg.yield %1 : f32
    } -> tensor<64xf32>
    "fusion.yield"(%r) : (tensor<64xf32>) -> ()
  }) {name = "a", operandSegmentSizes = array<i32: 1, 0>} : (tensor<64xf32>) -> tensor<64xf32>
  %b = "fusion.kernel"(%s) ({
  ^bb0(%v: tensor<64xf32>):
    %e = tensor.empty() : tensor<64xf32>
    %r = linalg.generic {indexing_maps = [#map, #map], iterator_types = ["parallel"]}
        ins(%v : tensor<64xf32>) outs(%e : tensor<64xf32>) {
    ^bb0(%in: f32, %out: f32):
      %1 = math.exp %in : f32
      linalg.yield %1 : f32
    } -> tensor<64xf32>
    "fusion.yield"(%r) : (tensor<64xf32>) -> ()
  }) {name = "b", operandSegmentSizes = array<i32: 1, 0>} : (tensor<64xf32>) -> tensor<64xf32>
  %c = "fusion.kernel"(%y) ({
  ^bb0(%v: tensor<64xf32>):
    %e = tensor.empty() : tensor<64xf32>
    %r = linalg.generic {indexing_maps = [#map, #map], iterator_types = ["parallel"]}
        ins(%v : tensor<64xf32>) outs(%e : tensor<64xf32>) {
    ^bb0(%in: f32, %out: f32):
      %1 = arith.mulf %in, %in : f32
      linalg.yield %1 : f32
    } -> tensor<64xf32>
    "fusion.yield"(%r) : (tensor<64xf32>) -> ()
  }) {name = "c", operandSegmentSizes = array<i32: 1, 0>} : (tensor<64xf32>) -> tensor<64xf32>
  return %a, %b, %c : tensor<64xf32>, tensor<64xf32>, tensor<64xf32>
}
