// RUN: fusion-opt %s --pass-pipeline='builtin.module(fusion-dataflow{max-region-ops=2})' | FileCheck %s
// RUN: not fusion-opt %s --pass-pipeline='builtin.module(fusion-dataflow{max-region-ops=-1})' 2>&1 \
// RUN:   | FileCheck %s --check-prefix=RANGE
// RUN: not fusion-opt %s --pass-pipeline='builtin.module(fusion-dataflow{max-regions=2})' 2>&1 \
// RUN:   | FileCheck %s --check-prefix=UNKNOWN

// No region is larger than max-region-ops.

// RANGE: max-region-ops must be from 1 to 1000000, got -1
// UNKNOWN: unknown option 'max-regions', did you mean 'max-region-ops'?

// CHECK-LABEL: func.func @four(
// CHECK:         fusion.region
// CHECK:           linalg.exp
// CHECK-NEXT:      linalg.negf
// CHECK-NEXT:      fusion.yield
// CHECK:         fusion.region
// CHECK:           linalg.abs
// CHECK-NEXT:      linalg.exp
// CHECK-NEXT:      fusion.yield
// CHECK:         return
func.func @four(%a: tensor<8x8xf32>) -> tensor<8x8xf32> {
  %e = tensor.empty() : tensor<8x8xf32>
  %1 = linalg.exp ins(%a : tensor<8x8xf32>) outs(%e : tensor<8x8xf32>) -> tensor<8x8xf32>
  %2 = linalg.negf ins(%1 : tensor<8x8xf32>) outs(%e : tensor<8x8xf32>) -> tensor<8x8xf32>
  %3 = linalg.abs ins(%2 : tensor<8x8xf32>) outs(%e : tensor<8x8xf32>) -> tensor<8x8xf32>
  %4 = linalg.exp ins(%3 : tensor<8x8xf32>) outs(%e : tensor<8x8xf32>) -> tensor<8x8xf32>
  return %4 : tensor<8x8xf32>
}
