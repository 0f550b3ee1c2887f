// RUN: fusion-opt %s --split-input-file --pass-pipeline='builtin.module(fusion-none)' | FileCheck %s

// Each operation is a region of its own; what only shapes or fills is copied into the regions that use it.

// CHECK-LABEL: func.func @chain(
// CHECK-SAME:    %[[A:.*]]: tensor<8x8xf32>)
// CHECK-NEXT:    %[[B:.*]] = "fusion.region"(%[[A]]) ({
// CHECK-NEXT:    ^bb0(%[[X:.*]]: tensor<8x8xf32>):
// CHECK-NEXT:      %[[INIT:.*]] = tensor.empty
// CHECK-NEXT:      %[[EXP:.*]] = linalg.exp ins(%[[X]] : {{.*}} outs(%[[INIT]]
// CHECK-NEXT:      "fusion.yield"(%[[EXP]])
// CHECK-NEXT:    })
// CHECK-NEXT:    %[[C:.*]] = "fusion.region"(%[[B]]) ({
// CHECK-NEXT:    ^bb0(%[[X:.*]]: tensor<8x8xf32>):
// CHECK-NEXT:      tensor.empty
// CHECK-NEXT:      %[[NEG:.*]] = linalg.negf ins(%[[X]]
// CHECK-NEXT:      "fusion.yield"(%[[NEG]])
// CHECK-NEXT:    })
// CHECK-NEXT:    return %[[C]]
func.func @chain(%a: tensor<8x8xf32>) -> tensor<8x8xf32> {
  %e = tensor.empty() : tensor<8x8xf32>
  %b = linalg.exp ins(%a : tensor<8x8xf32>) outs(%e : tensor<8x8xf32>) -> tensor<8x8xf32>
  %c = linalg.negf ins(%b : tensor<8x8xf32>) outs(%e : tensor<8x8xf32>) -> tensor<8x8xf32>
  return %c : tensor<8x8xf32>
}
