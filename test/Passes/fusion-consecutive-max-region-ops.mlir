// RUN: fusion-opt %s --pass-pipeline='builtin.module(fusion-consecutive{max-region-ops=2})' | FileCheck %s
// RUN: not fusion-opt %s --pass-pipeline='builtin.module(fusion-consecutive{max-region-ops=0})' 2>&1 \
// RUN:   | FileCheck %s --check-prefix=RANGE

// A region closes when it is full.

// RANGE: max-region-ops must be from 1 to 1000000, got 0

// CHECK-LABEL: func.func @five(
// CHECK:         fusion.region
// CHECK:           linalg.exp
// CHECK:           linalg.negf
// CHECK-NEXT:      fusion.yield
// CHECK:         fusion.region
// CHECK:           linalg.abs
// CHECK:           linalg.exp
// CHECK-NEXT:      fusion.yield
// CHECK:         fusion.region
// CHECK:           linalg.negf
// CHECK-NEXT:      fusion.yield
// CHECK:         return
func.func @five(%a: tensor<8x8xf32>) -> tensor<8x8xf32> {
  %e = tensor.empty() : tensor<8x8xf32>
  %1 = linalg.exp ins(%a : tensor<8x8xf32>) outs(%e : tensor<8x8xf32>) -> tensor<8x8xf32>
  %2 = linalg.negf ins(%1 : tensor<8x8xf32>) outs(%e : tensor<8x8xf32>) -> tensor<8x8xf32>
  %3 = linalg.abs ins(%2 : tensor<8x8xf32>) outs(%e : tensor<8x8xf32>) -> tensor<8x8xf32>
  %4 = linalg.exp ins(%3 : tensor<8x8xf32>) outs(%e : tensor<8x8xf32>) -> tensor<8x8xf32>
  %5 = linalg.negf ins(%4 : tensor<8x8xf32>) outs(%e : tensor<8x8xf32>) -> tensor<8x8xf32>
  return %5 : tensor<8x8xf32>
}
