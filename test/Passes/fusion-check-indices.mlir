// RUN: fusion-opt %s --split-input-file --pass-pipeline='builtin.module(fusion-check-indices)' | FileCheck %s

#map = affine_map<(d0, d1) -> (d1)>
#map1 = affine_map<(d0, d1) -> (d0, d1)>

// A computed index is checked, before the cast; one that is a loop as long as the dimension is not.

// CHECK-LABEL: func.func @select
// CHECK-SAME:    (%[[X:.*]]: tensor<4x5xf32>,
// CHECK:       ^bb0(%[[IN:.*]]: i64, %{{.*}}: f32):
// CHECK-NEXT:    %[[CAST:.*]] = arith.index_cast %[[IN]] : i64 to index
// CHECK-NEXT:    %[[ROW:.*]] = linalg.index 0
// CHECK-NEXT:    %[[N:.*]] = arith.constant 5 : i64
// CHECK-NEXT:    %[[WITHIN:.*]] = arith.cmpi ult, %[[IN]], %[[N]] : i64
// CHECK-NEXT:    cf.assert %[[WITHIN]], "index out of range"
// CHECK-NEXT:    tensor.extract %[[X]][%[[ROW]], %[[CAST]]]
func.func @select(%x: tensor<4x5xf32>, %i: tensor<3xi64>) -> tensor<4x3xf32> {
  %e = tensor.empty() : tensor<4x3xf32>
  %r = linalg.generic {indexing_maps = [#map, #map1], iterator_types = ["parallel", "parallel"]}
      ins(%i : tensor<3xi64>) outs(%e : tensor<4x3xf32>) {
  ^bb0(%in: i64, %out: f32):
    %c = arith.index_cast %in : i64 to index
    %row = linalg.index 0 : index
    %v = tensor.extract %x[%row, %c] : tensor<4x5xf32>
    linalg.yield %v : f32
  } -> tensor<4x3xf32>
  return %r : tensor<4x3xf32>
}

// -----

#map = affine_map<(d0) -> (d0)>

// A loop that is longer than the dimension, a constant within bounds and one that is not, an index computed as such.

// CHECK-LABEL: func.func @others
// CHECK-DAG:     %[[C4:.*]] = arith.constant 4 : index
// CHECK:         %[[I:.*]] = linalg.index 0
// CHECK:         %[[TWICE:.*]] = arith.addi %[[I]], %[[I]]
// CHECK-NEXT:    %[[N0:.*]] = arith.constant 4 : index
// CHECK-NEXT:    %[[W0:.*]] = arith.cmpi ult, %[[I]], %[[N0]] : index
// CHECK-NEXT:    cf.assert %[[W0]]
// CHECK-NEXT:    %[[N2:.*]] = arith.constant 4 : index
// CHECK-NEXT:    %[[W2:.*]] = arith.cmpi ult, %[[C4]], %[[N2]] : index
// CHECK-NEXT:    cf.assert %[[W2]]
// CHECK-NEXT:    %[[N3:.*]] = arith.constant 9 : index
// CHECK-NEXT:    %[[W3:.*]] = arith.cmpi ult, %[[TWICE]], %[[N3]] : index
// CHECK-NEXT:    cf.assert %[[W3]]
// CHECK-NEXT:    tensor.extract
func.func @others(%x: tensor<4x4x4x9xf32>) -> tensor<5xf32> {
  %c3 = arith.constant 3 : index
  %c4 = arith.constant 4 : index
  %e = tensor.empty() : tensor<5xf32>
  %r = linalg.generic {indexing_maps = [#map], iterator_types = ["parallel"]} outs(%e : tensor<5xf32>) {
  ^bb0(%out: f32):
    %i = linalg.index 0 : index
    %twice = arith.addi %i, %i : index
    %v = tensor.extract %x[%i, %c3, %c4, %twice] : tensor<4x4x4x9xf32>
    linalg.yield %v : f32
  } -> tensor<5xf32>
  return %r : tensor<5xf32>
}

// -----

#map = affine_map<(d0) -> (d0)>

// A dynamic extent is computed once, in front.

// CHECK-LABEL: func.func @dynamic
// CHECK-SAME:    (%[[X:.*]]: tensor<?xf32>,
// CHECK:         %[[D:.*]] = tensor.dim %[[X]]
// CHECK:         %[[N:.*]] = arith.index_cast %[[D]] : index to i64
// CHECK:         linalg.generic
// CHECK:       ^bb0(%[[IN:.*]]: i64, %{{.*}}: f32):
// CHECK:         %[[WITHIN:.*]] = arith.cmpi ult, %[[IN]], %[[N]] : i64
// CHECK-NEXT:    cf.assert %[[WITHIN]]
func.func @dynamic(%x: tensor<?xf32>, %i: tensor<3xi64>) -> tensor<3xf32> {
  %e = tensor.empty() : tensor<3xf32>
  %r = linalg.generic {indexing_maps = [#map, #map], iterator_types = ["parallel"]}
      ins(%i : tensor<3xi64>) outs(%e : tensor<3xf32>) {
  ^bb0(%in: i64, %out: f32):
    %c = arith.index_cast %in : i64 to index
    %v = tensor.extract %x[%c] : tensor<?xf32>
    linalg.yield %v : f32
  } -> tensor<3xf32>
  return %r : tensor<3xf32>
}

// -----

#map = affine_map<(d0) -> (d0)>

// What torch-mlir asserts itself goes, here that no divisor is 0. A body that reads nothing else stays as it is.

// CHECK-LABEL: func.func @reciprocal
// CHECK-NOT:     cf.assert
// CHECK:         arith.divf
func.func @reciprocal(%x: tensor<3xf32>) -> tensor<3xf32> {
  %zero = arith.constant 0.0 : f32
  %one = arith.constant 1.0 : f32
  %e = tensor.empty() : tensor<3xf32>
  %r = linalg.generic {indexing_maps = [#map, #map], iterator_types = ["parallel"]}
      ins(%x : tensor<3xf32>) outs(%e : tensor<3xf32>) {
  ^bb0(%in: f32, %out: f32):
    %c = arith.cmpf one, %in, %zero : f32
    cf.assert %c, "unimplemented: tensor with zero element"
    %q = arith.divf %one, %in : f32
    linalg.yield %q : f32
  } -> tensor<3xf32>
  return %r : tensor<3xf32>
}
