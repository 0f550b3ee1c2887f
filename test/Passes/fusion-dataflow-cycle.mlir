// RUN: fusion-opt %s --pass-pipeline='builtin.module(fusion-dataflow)' | FileCheck %s

// Two merges, each legal alone, that close a cycle together: {y, x} needs c and so a; {a, b} needs o and so y. Only one
// of them is made, and no operation is lost.
//
//     y = p + 1;  a = q + 1;  o = y @ w;  b = a + o;  c = a @ w;  x = y + c;  return b, x

// CHECK-LABEL: func.func @crossing(
// CHECK-SAME:    %[[P:[a-z0-9]*]]: tensor<8x8xf32>, %[[Q:[a-z0-9]*]]: tensor<8x8xf32>, %[[W:[a-z0-9]*]]: tensor<8x8xf32>)
// CHECK-NEXT:    %[[Y:.*]] = "fusion.region"(%[[P]]) ({
// CHECK:           linalg.exp
// CHECK-NEXT:      fusion.yield
// CHECK:         %[[O:.*]] = "fusion.extern"(%[[Y]], %[[W]])
// CHECK:         %[[AB:.*]]:2 = "fusion.region"(%[[Q]], %[[O]]) ({
// CHECK:           linalg.negf
// CHECK-NEXT:      linalg.add
// CHECK-NEXT:      fusion.yield
// CHECK:         %[[C:.*]] = "fusion.extern"(%[[AB]]#0, %[[W]])
// CHECK:         %[[X:.*]] = "fusion.region"(%[[Y]], %[[C]]) ({
// CHECK:           linalg.add
// CHECK-NEXT:      fusion.yield
// CHECK:         return %[[AB]]#1, %[[X]]
func.func @crossing(%p: tensor<8x8xf32>, %q: tensor<8x8xf32>, %w: tensor<8x8xf32>) -> (tensor<8x8xf32>, tensor<8x8xf32>) {
  %e = tensor.empty() : tensor<8x8xf32>
  %y = linalg.exp ins(%p : tensor<8x8xf32>) outs(%e : tensor<8x8xf32>) -> tensor<8x8xf32>
  %a = linalg.negf ins(%q : tensor<8x8xf32>) outs(%e : tensor<8x8xf32>) -> tensor<8x8xf32>
  %o = "fusion.extern"(%y, %w) {op = "aten.mm.default", args = [#fusion.operand<0>, #fusion.operand<1>]} : (tensor<8x8xf32>, tensor<8x8xf32>) -> tensor<8x8xf32>
  %b = linalg.add ins(%a, %o : tensor<8x8xf32>, tensor<8x8xf32>) outs(%e : tensor<8x8xf32>) -> tensor<8x8xf32>
  %c = "fusion.extern"(%a, %w) {op = "aten.mm.default", args = [#fusion.operand<0>, #fusion.operand<1>]} : (tensor<8x8xf32>, tensor<8x8xf32>) -> tensor<8x8xf32>
  %x = linalg.add ins(%y, %c : tensor<8x8xf32>, tensor<8x8xf32>) outs(%e : tensor<8x8xf32>) -> tensor<8x8xf32>
  return %b, %x : tensor<8x8xf32>, tensor<8x8xf32>
}
