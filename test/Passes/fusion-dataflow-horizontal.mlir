// RUN: fusion-opt %s --pass-pipeline='builtin.module(fusion-dataflow)' | FileCheck %s --check-prefix=ON
// RUN: fusion-opt %s --pass-pipeline='builtin.module(fusion-dataflow{horizontal=false})' | FileCheck %s --check-prefix=OFF

// Horizontal: two consumers of one value read it once if they share a region. With horizontal=false only producers
// and consumers are merged.

// ON-LABEL: func.func @siblings(
// ON-SAME:    %[[A:.*]]: tensor<8x8xf32>
// ON-NEXT:    %[[R:.*]]:2 = "fusion.region"(%[[A]]) ({
// ON:           %[[EXP:.*]] = linalg.exp
// ON-NEXT:      %[[NEG:.*]] = linalg.negf
// ON-NEXT:      "fusion.yield"(%[[EXP]], %[[NEG]])
// ON:         return %[[R]]#0, %[[R]]#1

// OFF-LABEL: func.func @siblings(
// OFF:         fusion.region
// OFF:           linalg.exp
// OFF-NEXT:      fusion.yield
// OFF:         fusion.region
// OFF:           linalg.negf
// OFF-NEXT:      fusion.yield
func.func @siblings(%a: tensor<8x8xf32>) -> (tensor<8x8xf32>, tensor<8x8xf32>) {
  %e = tensor.empty() : tensor<8x8xf32>
  %b = linalg.exp ins(%a : tensor<8x8xf32>) outs(%e : tensor<8x8xf32>) -> tensor<8x8xf32>
  %c = linalg.negf ins(%a : tensor<8x8xf32>) outs(%e : tensor<8x8xf32>) -> tensor<8x8xf32>
  return %b, %c : tensor<8x8xf32>, tensor<8x8xf32>
}
