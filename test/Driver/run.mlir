// mlir-fusion run calls @main on random inputs: a checksum a result, or the distance from the unfused program.
//
// RUN: mlir-fusion run %s --target=cpu --seed=1 | FileCheck %s
// RUN: mlir-fusion run %s --target=cpu --fusion=dataflow --compare=none | FileCheck %s --check-prefix=COMPARE

// CHECK:        result 0: 16x32 float32 checksum {{[0-9a-f]+$}}
// CHECK-NEXT:   result 1: 16 bool checksum {{[0-9a-f]+$}}
// COMPARE:      result 0: 16x32 float32 differs in 0 of 512 elements, by at most 0 (relative 0)
// COMPARE-NEXT: result 1: 16 bool differs in 0 of 16 elements
func.func @main(%x: tensor<16x32xf32>, %b: tensor<16xi1>) -> (tensor<16x32xf32>, tensor<16xi1>) {
  %0 = tensor.empty() : tensor<16x32xf32>
  %y = linalg.exp ins(%x : tensor<16x32xf32>) outs(%0 : tensor<16x32xf32>) -> tensor<16x32xf32>
  %z = linalg.sub ins(%x, %y : tensor<16x32xf32>, tensor<16x32xf32>) outs(%0 : tensor<16x32xf32>) -> tensor<16x32xf32>
  %i = "fusion.extern"(%z) {op = "aten.tanh.default", args = [#fusion.operand<0>]} : (tensor<16x32xf32>) -> tensor<16x32xf32>
  %1 = tensor.empty() : tensor<16xi1>
  %n = linalg.map { arith.xori } ins(%b, %b : tensor<16xi1>, tensor<16xi1>) outs(%1 : tensor<16xi1>)
  return %i, %n : tensor<16x32xf32>, tensor<16xi1>
}
