// RUN: fusion-opt %s --pass-pipeline='builtin.module(fusion-consecutive)' | FileCheck %s
// RUN: fusion-opt %s --pass-pipeline='builtin.module(fusion-dataflow)' | FileCheck %s

// A call that overwrites an intermediate, from which no path leads to the return, stays before the return, after who
// reads the old value, and before who looks at the memory through a later call.

// CHECK-LABEL: func.func @no_path_to_the_return(
// CHECK-SAME:    %[[A:.*]]: tensor<8xf32>)
// CHECK:         %[[R:.*]]:2 = "fusion.region"(%[[A]])
// CHECK:           linalg.exp
// CHECK-NEXT:      linalg.negf
// CHECK:         %[[W:.*]] = "fusion.extern"(%[[R]]#0) {{.*}}tied
// CHECK-NEXT:    "fusion.extern"(%[[W]]) {{.*}}test.print
// CHECK-NEXT:    return %[[R]]#1
func.func @no_path_to_the_return(%a: tensor<8xf32>) -> tensor<8xf32> {
  %e = tensor.empty() : tensor<8xf32>
  %f = linalg.exp ins(%a : tensor<8xf32>) outs(%e : tensor<8xf32>) -> tensor<8xf32>
  %g = linalg.negf ins(%f : tensor<8xf32>) outs(%e : tensor<8xf32>) -> tensor<8xf32>
  %w = "fusion.extern"(%f) {op = "test.shift_.default", args = [#fusion.operand<0>], tied = [[0, 0]]}
      : (tensor<8xf32>) -> tensor<8xf32>
  "fusion.extern"(%w) {op = "test.print.default", args = [#fusion.operand<0>], effects = ["opaque"]}
      : (tensor<8xf32>) -> ()
  return %g : tensor<8xf32>
}
