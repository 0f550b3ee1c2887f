// RUN: fusion-opt %s --split-input-file --pass-pipeline='builtin.module(fusion-consecutive)' | FileCheck %s

// Operations that follow one another share a region, whether or not they use one another.

// CHECK-LABEL: func.func @run_of_three(
// CHECK-SAME:    %[[A:.*]]: tensor<8x8xf32>, %[[B:.*]]: tensor<8x8xf32>)
// CHECK-NEXT:    %[[R:.*]]:2 = "fusion.region"(%[[A]], %[[B]]) ({
// CHECK-NEXT:    ^bb0(%[[X:.*]]: tensor<8x8xf32>, %[[Y:.*]]: tensor<8x8xf32>):
// CHECK-NEXT:      tensor.empty
// CHECK-NEXT:      %[[EXP:.*]] = linalg.exp ins(%[[X]]
// CHECK-NEXT:      %[[NEG:.*]] = linalg.negf ins(%[[Y]]
// CHECK-NEXT:      %[[ABS:.*]] = linalg.abs ins(%[[EXP]]
// CHECK-NEXT:      "fusion.yield"(%[[NEG]], %[[ABS]])
// CHECK-NEXT:    })
// CHECK-NEXT:    return %[[R]]#1, %[[R]]#0
func.func @run_of_three(%a: tensor<8x8xf32>, %b: tensor<8x8xf32>) -> (tensor<8x8xf32>, tensor<8x8xf32>) {
  %e = tensor.empty() : tensor<8x8xf32>
  %f = linalg.exp ins(%a : tensor<8x8xf32>) outs(%e : tensor<8x8xf32>) -> tensor<8x8xf32>
  %g = linalg.negf ins(%b : tensor<8x8xf32>) outs(%e : tensor<8x8xf32>) -> tensor<8x8xf32>
  %h = linalg.abs ins(%f : tensor<8x8xf32>) outs(%e : tensor<8x8xf32>) -> tensor<8x8xf32>
  return %h, %g : tensor<8x8xf32>, tensor<8x8xf32>
}

// -----

// A library call closes the region, even where the next operation does not use it: source order is kept.

// CHECK-LABEL: func.func @call_between(
// CHECK:         %[[C:.*]] = "fusion.region"(%[[A:.*]]) ({
// CHECK:           linalg.exp
// CHECK:         %[[D:.*]] = "fusion.extern"(%[[C]], %[[A]])
// CHECK:         %[[F:.*]] = "fusion.region"(%[[C]]) ({
// CHECK:           linalg.negf
// CHECK:         return %[[D]], %[[F]]
func.func @call_between(%a: tensor<8x8xf32>) -> (tensor<8x8xf32>, tensor<8x8xf32>) {
  %e = tensor.empty() : tensor<8x8xf32>
  %c = linalg.exp ins(%a : tensor<8x8xf32>) outs(%e : tensor<8x8xf32>) -> tensor<8x8xf32>
  %d = "fusion.extern"(%c, %a) {op = "aten.mm.default", args = [#fusion.operand<0>, #fusion.operand<1>]} : (tensor<8x8xf32>, tensor<8x8xf32>) -> tensor<8x8xf32>
  %f = linalg.negf ins(%c : tensor<8x8xf32>) outs(%e : tensor<8x8xf32>) -> tensor<8x8xf32>
  return %d, %f : tensor<8x8xf32>, tensor<8x8xf32>
}

// -----

// Nothing to fuse: unchanged.

// CHECK-LABEL: func.func @returns_its_argument(
// CHECK-SAME:    %[[A:.*]]: tensor<8x8xf32>, %{{.*}}: tensor<8x8xf32>)
// CHECK-NEXT:    return %[[A]], %[[A]]
func.func @returns_its_argument(%a: tensor<8x8xf32>, %unused: tensor<8x8xf32>) -> (tensor<8x8xf32>, tensor<8x8xf32>) {

  return %a, %a : tensor<8x8xf32>, tensor<8x8xf32>
}

// -----

// CHECK-LABEL: func.func @no_results()
// CHECK-NEXT:    return
func.func @no_results() {
  return
}

// -----

// An operation whose result nobody uses stays; it is computed with its neighbours and not yielded.

// CHECK-LABEL: func.func @unused_result(
// CHECK:         %[[R:.*]] = "fusion.region"
// CHECK:           linalg.exp
// CHECK-NEXT:      %[[NEG:.*]] = linalg.negf
// CHECK-NEXT:      "fusion.yield"(%[[NEG]])
// CHECK:         return %[[R]]
func.func @unused_result(%a: tensor<8x8xf32>) -> tensor<8x8xf32> {
  %e = tensor.empty() : tensor<8x8xf32>
  %f = linalg.exp ins(%a : tensor<8x8xf32>) outs(%e : tensor<8x8xf32>) -> tensor<8x8xf32>
  %g = linalg.negf ins(%a : tensor<8x8xf32>) outs(%e : tensor<8x8xf32>) -> tensor<8x8xf32>
  return %g : tensor<8x8xf32>
}
