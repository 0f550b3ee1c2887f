// RUN: fusion-opt %s --split-input-file --pass-pipeline='builtin.module(fusion-consecutive)' | FileCheck %s
// RUN: fusion-opt %s --split-input-file --pass-pipeline='builtin.module(fusion-dataflow)' | FileCheck %s

// Where there is nothing to decide, both passes change nothing but to put a lone operation in a region.

// CHECK-LABEL: func.func @one_operation(
// CHECK-SAME:    %[[A:.*]]: tensor<8xf32>) -> tensor<8xf32> {
// CHECK-NEXT:    %[[R:.*]] = "fusion.region"(%[[A]]) ({
// CHECK-NEXT:    ^bb0(%[[X:.*]]: tensor<8xf32>):
// CHECK-NEXT:      %[[E:.*]] = tensor.empty()
// CHECK-NEXT:      %[[Y:.*]] = linalg.exp ins(%[[X]] : tensor<8xf32>) outs(%[[E]]
// CHECK-NEXT:      "fusion.yield"(%[[Y]])
// CHECK-NEXT:    })
// CHECK-NEXT:    return %[[R]]
func.func @one_operation(%a: tensor<8xf32>) -> tensor<8xf32> {
  %e = tensor.empty() : tensor<8xf32>
  %f = linalg.exp ins(%a : tensor<8xf32>) outs(%e : tensor<8xf32>) -> tensor<8xf32>
  return %f : tensor<8xf32>
}

// -----

// CHECK-LABEL: func.func @one_call(
// CHECK-SAME:    %[[A:.*]]: tensor<8xf32>) -> tensor<8xf32> {
// CHECK-NEXT:    %[[R:.*]] = "fusion.extern"(%[[A]])
// CHECK-NEXT:    return %[[R]]
func.func @one_call(%a: tensor<8xf32>) -> tensor<8xf32> {
  %f = "fusion.extern"(%a) {op = "aten.cos.default", args = [#fusion.operand<0>]} : (tensor<8xf32>) -> tensor<8xf32>
  return %f : tensor<8xf32>
}

// -----

// No operation; an output that is an input; an input that nobody uses; the same output twice.

// CHECK-LABEL: func.func @no_operation(
// CHECK-SAME:    %[[A:.*]]: tensor<8xf32>, %{{.*}}: tensor<4xf32>) -> (tensor<8xf32>, tensor<8xf32>) {
// CHECK-NEXT:    return %[[A]], %[[A]] : tensor<8xf32>, tensor<8xf32>
func.func @no_operation(%a: tensor<8xf32>, %unused: tensor<4xf32>) -> (tensor<8xf32>, tensor<8xf32>) {
  return %a, %a : tensor<8xf32>, tensor<8xf32>
}

// -----

// CHECK-LABEL: func.func @neither_input_nor_output() {
// CHECK-NEXT:    return
func.func @neither_input_nor_output() {
  return
}

// -----

// No output: what is computed is not lost, though nobody asks for it.

// CHECK-LABEL: func.func @no_output(
// CHECK-SAME:    %[[A:.*]]: tensor<8xf32>) {
// CHECK-NEXT:    "fusion.region"(%[[A]]) ({
// CHECK:           linalg.exp
// CHECK-NEXT:      "fusion.yield"() : () -> ()
// CHECK-NEXT:    }) : (tensor<8xf32>) -> ()
// CHECK-NEXT:    return
func.func @no_output(%a: tensor<8xf32>) {
  %e = tensor.empty() : tensor<8xf32>
  %f = linalg.exp ins(%a : tensor<8xf32>) outs(%e : tensor<8xf32>) -> tensor<8xf32>
  return
}

// -----

// One result as several outputs is yielded once.

// CHECK-LABEL: func.func @same_output_twice(
// CHECK:         %[[R:.*]] = "fusion.region"
// CHECK:           "fusion.yield"(%{{[a-z0-9]+}}) : (tensor<8xf32>) -> ()
// CHECK:         return %[[R]], %[[R]]
func.func @same_output_twice(%a: tensor<8xf32>) -> (tensor<8xf32>, tensor<8xf32>) {
  %e = tensor.empty() : tensor<8xf32>
  %f = linalg.exp ins(%a : tensor<8xf32>) outs(%e : tensor<8xf32>) -> tensor<8xf32>
  return %f, %f : tensor<8xf32>, tensor<8xf32>
}
