// RUN: fusion-opt %s --split-input-file --pass-pipeline='builtin.module(fusion-dataflow)' | FileCheck %s

// Calls with effects keep their order among themselves, and one without a result stays before the return.

// CHECK-LABEL: func.func @order_of_effects(
// CHECK:         "fusion.extern"({{.*}}op = "aten.rand_like.default"
// CHECK:         "fusion.extern"({{.*}}op = "test.print.default"
// CHECK:         "fusion.extern"({{.*}}op = "test.all_reduce.default"
// CHECK:         return
func.func @order_of_effects(%a: tensor<8x8xf32>) -> tensor<8x8xf32> {
  %e = tensor.empty() : tensor<8x8xf32>
  %c = linalg.exp ins(%a : tensor<8x8xf32>) outs(%e : tensor<8x8xf32>) -> tensor<8x8xf32>
  %d = "fusion.extern"(%a) {op = "aten.rand_like.default", args = [#fusion.operand<0>], effects = ["random"]} : (tensor<8x8xf32>) -> tensor<8x8xf32>
  "fusion.extern"(%c) {op = "test.print.default", args = [#fusion.operand<0>], effects = ["opaque"]} : (tensor<8x8xf32>) -> ()
  %f = linalg.add ins(%d, %c : tensor<8x8xf32>, tensor<8x8xf32>) outs(%e : tensor<8x8xf32>) -> tensor<8x8xf32>
  %g = "fusion.extern"(%a) {op = "test.all_reduce.default", args = [#fusion.operand<0>], effects = ["collective"]} : (tensor<8x8xf32>) -> tensor<8x8xf32>
  return %f : tensor<8x8xf32>
}

// -----

// Who reads memory before a call overwrites it still does: exp does not move past the call to join abs.

// CHECK-LABEL: func.func @read_before_write(
// CHECK:         %[[R:.*]] = "fusion.region"
// CHECK:           linalg.exp
// CHECK-NEXT:      fusion.yield
// CHECK:         %[[NEW:.*]] = "fusion.extern"
// CHECK-SAME:      tied
// CHECK:         %[[F:.*]] = "fusion.region"(%[[R]], %[[NEW]])
// CHECK:           linalg.add
// CHECK:         return %[[F]]
func.func @read_before_write(%a: tensor<8x8xf32>) -> tensor<8x8xf32> {
  %e = tensor.empty() : tensor<8x8xf32>
  %c = linalg.exp ins(%a : tensor<8x8xf32>) outs(%e : tensor<8x8xf32>) -> tensor<8x8xf32>
  %d = "fusion.extern"(%a) {op = "aten.add_.Tensor", args = [#fusion.operand<0>], tied = [[0, 0]]} : (tensor<8x8xf32>) -> tensor<8x8xf32>
  %f = linalg.add ins(%c, %d : tensor<8x8xf32>, tensor<8x8xf32>) outs(%e : tensor<8x8xf32>) -> tensor<8x8xf32>
  return %f : tensor<8x8xf32>
}
