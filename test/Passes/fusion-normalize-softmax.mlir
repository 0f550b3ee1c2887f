// linalg.softmax is what it stands for: a maximum, the exponentials, their sum, and the quotient.
//
// RUN: fusion-opt %s --pass-pipeline='builtin.module(fusion-normalize)' | FileCheck %s

// CHECK-DAG:   #[[ALL:.*]] = affine_map<(d0, d1) -> (d0, d1)>
// CHECK-DAG:   #[[ROW:.*]] = affine_map<(d0, d1) -> (d0)>
// CHECK-LABEL: func.func @softmax
// CHECK-SAME:    %[[X:.*]]: tensor<4x8xf32>
// CHECK-NOT:     linalg.softmax
// CHECK:         %[[MAX:.*]] = linalg.generic {indexing_maps = [#[[ALL]], #[[ROW]]], iterator_types = ["parallel", "reduction"]} ins(%[[X]]
// CHECK:           arith.maxnumf
// CHECK:         %[[E:.*]] = linalg.generic {{.*}} ins(%[[X]], %[[MAX]]
// CHECK:           arith.subf
// CHECK:           math.exp
// CHECK:         %[[SUM:.*]] = linalg.generic {{.*}}iterator_types = ["parallel", "reduction"]} ins(%[[E]]
// CHECK:           arith.addf
// CHECK:         %[[Y:.*]] = linalg.generic {{.*}} ins(%[[E]], %[[SUM]]
// CHECK:           arith.divf
// CHECK:         return %[[Y]]
func.func @softmax(%x: tensor<4x8xf32>) -> tensor<4x8xf32> {
  %0 = tensor.empty() : tensor<4x8xf32>
  %y = linalg.softmax dimension(1) ins(%x : tensor<4x8xf32>) outs(%0 : tensor<4x8xf32>) -> tensor<4x8xf32>
  return %y : tensor<4x8xf32>
}
