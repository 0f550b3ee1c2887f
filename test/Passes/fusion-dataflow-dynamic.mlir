// RUN: fusion-opt %s --split-input-file --pass-pipeline='builtin.module(fusion-dataflow{recompute=false})' | FileCheck %s

// With dynamic sizes a merge has to be good for all of them. %y and %z are of the same size, whatever it is: to make
// %z together with %y holds two tensors of that size during the call, as the source does after it.

// CHECK-LABEL: func.func @same_size(
// CHECK:         %[[R:.*]]:2 = "fusion.region"
// CHECK:         %[[M:.*]] = "fusion.extern"(%[[R]]#0
// CHECK:         return %[[M]], %[[R]]#1
#id = affine_map<(i, j) -> (i, j)>
func.func @same_size(%x: tensor<?x8xf32> {fusion.shape = ["s0", 8]}, %w: tensor<8x8xf32>)
    -> (tensor<?x8xf32>, tensor<?x8xf32>) {
  %c0 = arith.constant 0 : index
  %d = tensor.dim %x, %c0 : tensor<?x8xf32>
  %e = tensor.empty(%d) : tensor<?x8xf32>
  %y = linalg.generic {indexing_maps = [#id, #id], iterator_types = ["parallel", "parallel"]}
      ins(%x : tensor<?x8xf32>) outs(%e : tensor<?x8xf32>) {
  ^bb0(%i: f32, %o: f32):
    %r = arith.addf %i, %i : f32
    linalg.yield %r : f32
  } -> tensor<?x8xf32>
  %m = "fusion.extern"(%y, %w) {op = "aten.mm.default", args = [#fusion.operand<0>, #fusion.operand<1>]}
      : (tensor<?x8xf32>, tensor<8x8xf32>) -> tensor<?x8xf32>
  %z = linalg.generic {indexing_maps = [#id, #id], iterator_types = ["parallel", "parallel"]}
      ins(%y : tensor<?x8xf32>) outs(%e : tensor<?x8xf32>) {
  ^bb0(%i: f32, %o: f32):
    %r = arith.mulf %i, %i : f32
    linalg.yield %r : f32
  } -> tensor<?x8xf32>
  return %m, %z : tensor<?x8xf32>, tensor<?x8xf32>
}

// -----

// Here the merged region would hold a tensor of n1 rows, %z, during the call, when the source holds none, only %y,
// of n0 rows, and the result of the call, of which nothing is known. Refused: n1 may be the largest.

// CHECK-LABEL: func.func @other_size(
// CHECK:         "fusion.region"(%[[X:.*]], %{{.*}}) ({
// CHECK:         "fusion.extern"
// CHECK:         "fusion.region"
// CHECK:         return
#id = affine_map<(i, j) -> (i, j)>
#row = affine_map<(i, j) -> (j)>
func.func @other_size(%x: tensor<8xf32>, %u: tensor<?x8xf32> {fusion.shape = ["n0", 8]},
    %v: tensor<?x8xf32> {fusion.shape = ["n1", 8]}, %w: tensor<8x8xf32>) -> tensor<?x8xf32> {
  %c0 = arith.constant 0 : index
  %d0 = tensor.dim %u, %c0 : tensor<?x8xf32>
  %e0 = tensor.empty(%d0) : tensor<?x8xf32>
  %y = linalg.generic {indexing_maps = [#row, #id, #id], iterator_types = ["parallel", "parallel"]}
      ins(%x, %u : tensor<8xf32>, tensor<?x8xf32>) outs(%e0 : tensor<?x8xf32>) {
  ^bb0(%i: f32, %j: f32, %o: f32):
    %r = arith.addf %i, %j : f32
    linalg.yield %r : f32
  } -> tensor<?x8xf32>
  %m = "fusion.extern"(%y, %w) {op = "aten.mm.default", args = [#fusion.operand<0>, #fusion.operand<1>]}
      : (tensor<?x8xf32>, tensor<8x8xf32>) -> tensor<8x8xf32>
  %d1 = tensor.dim %v, %c0 : tensor<?x8xf32>
  %e1 = tensor.empty(%d1) : tensor<?x8xf32>
  %z = linalg.generic {indexing_maps = [#row, #id, #id], iterator_types = ["parallel", "parallel"]}
      ins(%x, %v : tensor<8xf32>, tensor<?x8xf32>) outs(%e1 : tensor<?x8xf32>) {
  ^bb0(%i: f32, %j: f32, %o: f32):
    %r = arith.addf %i, %j : f32
    linalg.yield %r : f32
  } -> tensor<?x8xf32>
  %t = "fusion.extern"(%z, %m) {op = "aten.mm.default", args = [#fusion.operand<0>, #fusion.operand<1>]}
      : (tensor<?x8xf32>, tensor<8x8xf32>) -> tensor<?x8xf32>
  return %t : tensor<?x8xf32>
}
