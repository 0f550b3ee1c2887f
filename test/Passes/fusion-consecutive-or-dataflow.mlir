// RUN: fusion-opt %s --pass-pipeline='builtin.module(fusion-none)' | FileCheck %s --check-prefix=NONE
// RUN: fusion-opt %s --pass-pipeline='builtin.module(fusion-consecutive)' | FileCheck %s --check-prefix=CONSECUTIVE
// RUN: fusion-opt %s --pass-pipeline='builtin.module(fusion-dataflow)' | FileCheck %s --check-prefix=DATAFLOW

// One program, c = a + b; d = c @ b; e = a - c, under the three fusion types. Without fusion and under consecutive,
// the call stands between two regions. Dataflow sees that the subtraction needs nothing of the call, and makes one
// region that reads a and b once.

// NONE-LABEL: func.func @crossing_a_call(
// NONE:         fusion.region
// NONE:         fusion.extern
// NONE:         fusion.region
// NONE-NOT:     fusion.region

// CONSECUTIVE-LABEL: func.func @crossing_a_call(
// CONSECUTIVE-SAME:    %[[A:.*]]: tensor<8x8xf32>, %[[B:.*]]: tensor<8x8xf32>
// CONSECUTIVE:         %[[C:.*]] = "fusion.region"(%[[A]], %[[B]]) ({
// CONSECUTIVE-NEXT:    ^bb0(%[[X:.*]]: tensor<8x8xf32>, %[[Y:.*]]: tensor<8x8xf32>):
// CONSECUTIVE-NEXT:      %[[INIT:.*]] = tensor.empty
// CONSECUTIVE-NEXT:      %[[SUM:.*]] = linalg.add ins(%[[X]], %[[Y]] {{.*}} outs(%[[INIT]]
// CONSECUTIVE-NEXT:      "fusion.yield"(%[[SUM]])
// CONSECUTIVE:         %[[D:.*]] = "fusion.extern"(%[[C]], %[[B]])
// CONSECUTIVE:         %[[E:.*]] = "fusion.region"(%[[A]], %[[C]]) ({
// CONSECUTIVE-NEXT:    ^bb0(%[[X:.*]]: tensor<8x8xf32>, %[[Y:.*]]: tensor<8x8xf32>):
// CONSECUTIVE:           %[[DIFFERENCE:.*]] = linalg.sub ins(%[[X]], %[[Y]]
// CONSECUTIVE-NEXT:      "fusion.yield"(%[[DIFFERENCE]])
// CONSECUTIVE:         return %[[D]], %[[E]]

// DATAFLOW-LABEL: func.func @crossing_a_call(
// DATAFLOW-SAME:    %[[A:.*]]: tensor<8x8xf32>, %[[B:.*]]: tensor<8x8xf32>
// DATAFLOW-NEXT:    %[[CE:.*]]:2 = "fusion.region"(%[[A]], %[[B]]) ({
// DATAFLOW-NEXT:    ^bb0(%[[X:.*]]: tensor<8x8xf32>, %[[Y:.*]]: tensor<8x8xf32>):
// DATAFLOW-NEXT:      tensor.empty
// DATAFLOW-NEXT:      %[[SUM:.*]] = linalg.add ins(%[[X]], %[[Y]]
// DATAFLOW-NEXT:      %[[DIFFERENCE:.*]] = linalg.sub ins(%[[X]], %[[SUM]]
// DATAFLOW-NEXT:      "fusion.yield"(%[[SUM]], %[[DIFFERENCE]])
// DATAFLOW:         %[[D:.*]] = "fusion.extern"(%[[CE]]#0, %[[B]])
// DATAFLOW-NEXT:    return %[[D]], %[[CE]]#1
func.func @crossing_a_call(%a: tensor<8x8xf32>, %b: tensor<8x8xf32>) -> (tensor<8x8xf32>, tensor<8x8xf32>) {
  %e = tensor.empty() : tensor<8x8xf32>
  %c = linalg.add ins(%a, %b : tensor<8x8xf32>, tensor<8x8xf32>) outs(%e : tensor<8x8xf32>) -> tensor<8x8xf32>
  %d = "fusion.extern"(%c, %b) {op = "aten.mm.default", args = [#fusion.operand<0>, #fusion.operand<1>]} : (tensor<8x8xf32>, tensor<8x8xf32>) -> tensor<8x8xf32>
  %f = linalg.sub ins(%a, %c : tensor<8x8xf32>, tensor<8x8xf32>) outs(%e : tensor<8x8xf32>) -> tensor<8x8xf32>
  return %d, %f : tensor<8x8xf32>, tensor<8x8xf32>
}
