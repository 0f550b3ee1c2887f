// RUN: fusion-opt %s --pass-pipeline='builtin.module(fusion-dataflow)' | FileCheck %s

// Shape changes and fills are parts of their users: copied into each region, so that its inputs are the tensors
// that are in memory. A constant of several values is in memory; it stays outside, before all regions.

// CHECK-LABEL: func.func @parts_of_users(
// CHECK-SAME:    %[[A:.*]]: tensor<64xf32>, %[[W:.*]]: tensor<8x8xf32>)
// CHECK-NEXT:    %[[TABLE:.*]] = arith.constant dense<[{{.*}}]> : tensor<8xf32>
// CHECK-NEXT:    %[[C:.*]] = "fusion.region"(%[[A]]) ({
// CHECK-NEXT:    ^bb0(%[[X:.*]]: tensor<64xf32>):
// CHECK-NEXT:      %[[VIEW:.*]] = tensor.expand_shape %[[X]]
// CHECK-NEXT:      tensor.empty
// CHECK-NEXT:      linalg.exp ins(%[[VIEW]]
// CHECK:         %[[D:.*]] = "fusion.extern"(%[[C]], %[[W]])
// CHECK:         "fusion.region"(%[[A]], %[[D]], %[[TABLE]]) ({
// CHECK-NEXT:    ^bb0(%[[X:.*]]: tensor<64xf32>, %[[Y:.*]]: tensor<8x8xf32>, %[[Z:.*]]: tensor<8xf32>):
// CHECK:           %[[VIEW:.*]] = tensor.expand_shape %[[X]]
// CHECK:           linalg.add ins(%[[VIEW]], %[[Y]]
func.func @parts_of_users(%a: tensor<64xf32>, %w: tensor<8x8xf32>) -> tensor<8x8xf32> {
  %e = tensor.empty() : tensor<8x8xf32>
  %v = tensor.expand_shape %a [[0, 1]] output_shape [8, 8] : tensor<64xf32> into tensor<8x8xf32>
  %c = linalg.exp ins(%v : tensor<8x8xf32>) outs(%e : tensor<8x8xf32>) -> tensor<8x8xf32>
  %d = "fusion.extern"(%c, %w) {op = "aten.mm.default", args = [#fusion.operand<0>, #fusion.operand<1>]} : (tensor<8x8xf32>, tensor<8x8xf32>) -> tensor<8x8xf32>
  %f = linalg.add ins(%v, %d : tensor<8x8xf32>, tensor<8x8xf32>) outs(%e : tensor<8x8xf32>) -> tensor<8x8xf32>
  %table = arith.constant dense<[1.0, 2.0, 3.0, 4.0, 5.0, 6.0, 7.0, 8.0]> : tensor<8xf32>
  %g = linalg.broadcast ins(%table : tensor<8xf32>) outs(%e : tensor<8x8xf32>) dimensions = [0]
  %h = linalg.mul ins(%f, %g : tensor<8x8xf32>, tensor<8x8xf32>) outs(%e : tensor<8x8xf32>) -> tensor<8x8xf32>
  return %h : tensor<8x8xf32>
}
