// RUN: fusion-opt %s --split-input-file --pass-pipeline='builtin.module(fusion-dataflow)' | FileCheck %s

// Vertical: a producer joins its consumer, past a call that neither needs; what only they use is not yielded.

// CHECK-LABEL: func.func @vertical(
// CHECK-SAME:    %[[A:.*]]: tensor<8x8xf32>, %[[B:.*]]: tensor<8x8xf32>)
// CHECK-NEXT:    %[[D:.*]] = "fusion.extern"(%[[B]], %[[B]])
// CHECK-NEXT:    %[[R:.*]] = "fusion.region"(%[[A]]) ({
// CHECK:           %[[EXP:.*]] = linalg.exp
// CHECK-NEXT:      %[[NEG:.*]] = linalg.negf ins(%[[EXP]]
// CHECK-NEXT:      "fusion.yield"(%[[NEG]])
// CHECK:         return %[[D]], %[[R]]
func.func @vertical(%a: tensor<8x8xf32>, %b: tensor<8x8xf32>) -> (tensor<8x8xf32>, tensor<8x8xf32>) {
  %e = tensor.empty() : tensor<8x8xf32>
  %c = linalg.exp ins(%a : tensor<8x8xf32>) outs(%e : tensor<8x8xf32>) -> tensor<8x8xf32>
  %d = "fusion.extern"(%b, %b) {op = "aten.mm.default", args = [#fusion.operand<0>, #fusion.operand<1>]} : (tensor<8x8xf32>, tensor<8x8xf32>) -> tensor<8x8xf32>
  %f = linalg.negf ins(%c : tensor<8x8xf32>) outs(%e : tensor<8x8xf32>) -> tensor<8x8xf32>
  return %d, %f : tensor<8x8xf32>, tensor<8x8xf32>
}

// -----

// A consumer of the call and of what the call uses can't join the producer: the call has to come between.

// CHECK-LABEL: func.func @path_through_a_call(
// CHECK:         %[[C:.*]] = "fusion.region"(%[[A:.*]]) ({
// CHECK:           linalg.exp
// CHECK-NEXT:      fusion.yield
// CHECK:         %[[D:.*]] = "fusion.extern"(%[[C]], %[[A]])
// CHECK:         %[[F:.*]] = "fusion.region"(%[[C]], %[[D]]) ({
// CHECK:           linalg.add
// CHECK:         return %[[F]]
func.func @path_through_a_call(%a: tensor<8x8xf32>) -> tensor<8x8xf32> {
  %e = tensor.empty() : tensor<8x8xf32>
  %c = linalg.exp ins(%a : tensor<8x8xf32>) outs(%e : tensor<8x8xf32>) -> tensor<8x8xf32>
  %d = "fusion.extern"(%c, %a) {op = "aten.mm.default", args = [#fusion.operand<0>, #fusion.operand<1>]} : (tensor<8x8xf32>, tensor<8x8xf32>) -> tensor<8x8xf32>
  %f = linalg.add ins(%c, %d : tensor<8x8xf32>, tensor<8x8xf32>) outs(%e : tensor<8x8xf32>) -> tensor<8x8xf32>
  return %f : tensor<8x8xf32>
}

// -----

// Nothing shared, nothing gained: operations that only stand side by side stay apart.

// CHECK-LABEL: func.func @nothing_shared(
// CHECK:         fusion.region
// CHECK:           linalg.exp
// CHECK-NEXT:      fusion.yield
// CHECK:         fusion.region
// CHECK:           linalg.negf
// CHECK-NEXT:      fusion.yield
// CHECK:         return
func.func @nothing_shared(%a: tensor<1024x1024xf32>, %b: tensor<1024x1024xf32>) -> (tensor<1024x1024xf32>, tensor<1024x1024xf32>) {
  %e = tensor.empty() : tensor<1024x1024xf32>
  %c = linalg.exp ins(%a : tensor<1024x1024xf32>) outs(%e : tensor<1024x1024xf32>) -> tensor<1024x1024xf32>
  %d = linalg.negf ins(%b : tensor<1024x1024xf32>) outs(%e : tensor<1024x1024xf32>) -> tensor<1024x1024xf32>
  return %c, %d : tensor<1024x1024xf32>, tensor<1024x1024xf32>
}

// -----

// But small ones of one shape, next to one another, share a region for the launch that it saves.

// CHECK-LABEL: func.func @launch_saved(
// CHECK:         %[[R:.*]]:2 = "fusion.region"
// CHECK:           %[[EXP:.*]] = linalg.exp
// CHECK-NEXT:      %[[NEG:.*]] = linalg.negf
// CHECK-NEXT:      "fusion.yield"(%[[EXP]], %[[NEG]])
// CHECK:         return %[[R]]#0, %[[R]]#1
func.func @launch_saved(%a: tensor<8x8xf32>, %b: tensor<8x8xf32>) -> (tensor<8x8xf32>, tensor<8x8xf32>) {
  %e = tensor.empty() : tensor<8x8xf32>
  %c = linalg.exp ins(%a : tensor<8x8xf32>) outs(%e : tensor<8x8xf32>) -> tensor<8x8xf32>
  %d = linalg.negf ins(%b : tensor<8x8xf32>) outs(%e : tensor<8x8xf32>) -> tensor<8x8xf32>
  return %c, %d : tensor<8x8xf32>, tensor<8x8xf32>
}

// -----

// Nothing to fuse: unchanged.

// CHECK-LABEL: func.func @returns_its_argument(
// CHECK-SAME:    %[[A:.*]]: tensor<8x8xf32>)
// CHECK-NEXT:    return %[[A]]
func.func @returns_its_argument(%a: tensor<8x8xf32>) -> tensor<8x8xf32> {
  return %a : tensor<8x8xf32>
}

// -----

// A function without a body: unchanged.

// CHECK-LABEL: func.func private @declared
func.func private @declared(tensor<8x8xf32>)
