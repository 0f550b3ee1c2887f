// RUN: fusion-opt %s --pass-pipeline='builtin.module(fusion-dataflow)' | FileCheck %s --check-prefix=AWARE
// RUN: fusion-opt %s --pass-pipeline='builtin.module(fusion-dataflow{memory-aware=false})' | FileCheck %s --check-prefix=UNAWARE

// Four consumers of one value, each result used up by a call at once. In source order three tensors are live at most,
// a result, the calls' sum and the next sum. One region for all four would save reading %a three times, but hold
// five tensors: they are merged two at a time where that fits, unless memory-aware=false.

// AWARE-LABEL: func.func @early_results(
// AWARE:         %[[R:.*]]:2 = "fusion.region"
// AWARE:         "fusion.extern"(%[[R]]#0
// AWARE:         "fusion.extern"({{.*}}, %[[R]]#1
// AWARE:         %[[R3:.*]] = "fusion.region"
// AWARE:         "fusion.extern"({{.*}}, %[[R3]]
// AWARE:         %[[R4:.*]] = "fusion.region"
// AWARE:         "fusion.extern"({{.*}}, %[[R4]]

// UNAWARE-LABEL: func.func @early_results(
// UNAWARE:         %[[R:.*]]:4 = "fusion.region"
// UNAWARE-NOT:     fusion.region
// UNAWARE:         return
func.func @early_results(%a: tensor<8x8xf32>, %w: tensor<8x8xf32>) -> tensor<8x8xf32> {
  %e = tensor.empty() : tensor<8x8xf32>
  %r1 = linalg.exp ins(%a : tensor<8x8xf32>) outs(%e : tensor<8x8xf32>) -> tensor<8x8xf32>
  %s1 = "fusion.extern"(%r1, %w) {op = "aten.mm.default", args = [#fusion.operand<0>, #fusion.operand<1>]} : (tensor<8x8xf32>, tensor<8x8xf32>) -> tensor<8x8xf32>
  %r2 = linalg.exp ins(%a : tensor<8x8xf32>) outs(%e : tensor<8x8xf32>) -> tensor<8x8xf32>
  %s2 = "fusion.extern"(%s1, %r2, %w) {op = "aten.addmm.default", args = [#fusion.operand<0>, #fusion.operand<1>, #fusion.operand<2>]} : (tensor<8x8xf32>, tensor<8x8xf32>, tensor<8x8xf32>) -> tensor<8x8xf32>
  %r3 = linalg.exp ins(%a : tensor<8x8xf32>) outs(%e : tensor<8x8xf32>) -> tensor<8x8xf32>
  %s3 = "fusion.extern"(%s2, %r3, %w) {op = "aten.addmm.default", args = [#fusion.operand<0>, #fusion.operand<1>, #fusion.operand<2>]} : (tensor<8x8xf32>, tensor<8x8xf32>, tensor<8x8xf32>) -> tensor<8x8xf32>
  %r4 = linalg.exp ins(%a : tensor<8x8xf32>) outs(%e : tensor<8x8xf32>) -> tensor<8x8xf32>
  %s4 = "fusion.extern"(%s3, %r4, %w) {op = "aten.addmm.default", args = [#fusion.operand<0>, #fusion.operand<1>, #fusion.operand<2>]} : (tensor<8x8xf32>, tensor<8x8xf32>, tensor<8x8xf32>) -> tensor<8x8xf32>
  return %s4 : tensor<8x8xf32>
}
