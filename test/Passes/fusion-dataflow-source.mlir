// RUN: fusion-opt %s --pass-pipeline='builtin.module(fusion-dataflow)' | FileCheck %s
// RUN: fusion-opt %s --pass-pipeline='builtin.module(fusion-dataflow{horizontal=false max-region-ops=7})' \
// RUN:   | FileCheck %s --check-prefix=VERTICAL
// RUN: fusion-opt %s --pass-pipeline='builtin.module(fusion-dataflow{max-region-ops=7})' \
// RUN:   | FileCheck %s --check-prefix=SMALL
// RUN: fusion-opt %s --pass-pipeline='builtin.module(fusion-dataflow{memory-aware=false})' \
// RUN:   | FileCheck %s --check-prefix=ANY

// The source is noted for fusion-segment: its order, its peak (at the call %a, %b and %c, of 256 bytes each), and how
// many neighbours may be one region, unless neighbours that share nothing may not. Without a limit of the peak there is
// nothing to keep.

// CHECK-LABEL: func.func @main(
// CHECK-SAME:    fusion.source = {order = array<i64: 0, 2, 1>, peak_bytes = 768 : i64, run_ops = 256 : i64}
// VERTICAL:      fusion.source = {order = array<i64: 0, 2, 1>, peak_bytes = 768 : i64}
// SMALL:         fusion.source = {order = array<i64: 0, 2, 1>, peak_bytes = 768 : i64, run_ops = 7 : i64}
// ANY-NOT:       fusion.source
func.func @main(%x: tensor<8x8xf32>) -> (tensor<8x8xf32>, tensor<8x8xf32>) {
  %e = tensor.empty() : tensor<8x8xf32>
  %a = linalg.exp ins(%x : tensor<8x8xf32>) outs(%e : tensor<8x8xf32>) -> tensor<8x8xf32>
  %b = "fusion.extern"(%a, %x) {op = "aten.mm.default", args = [#fusion.operand<0>, #fusion.operand<1>]}
      : (tensor<8x8xf32>, tensor<8x8xf32>) -> tensor<8x8xf32>
  %c = linalg.negf ins(%a : tensor<8x8xf32>) outs(%e : tensor<8x8xf32>) -> tensor<8x8xf32>
  return %b, %c : tensor<8x8xf32>, tensor<8x8xf32>
}
