// RUN: fusion-opt %s --split-input-file --pass-pipeline='builtin.module(fusion-dataflow)' | FileCheck %s
// RUN: fusion-opt %s --split-input-file --pass-pipeline='builtin.module(fusion-dataflow{recompute=false})' \
// RUN:   | FileCheck %s --check-prefix=ONCE

// A cast is used before and after a call. To read the half as big source twice moves fewer bytes than to write the
// result and read it again; nor does the result stay in memory during the call. The copy says that it is one.

// CHECK-LABEL: func.func @cast_twice(
// CHECK-SAME:    %[[X:[a-z0-9]*]]: tensor<8x8xf16>, %[[W:[a-z0-9]*]]: tensor<8x8xf32>)
// CHECK-NEXT:    %[[U:.*]] = "fusion.region"(%[[X]]) ({
// CHECK:           linalg.generic
// CHECK-NOT:       fusion.recomputed
// CHECK:           %[[EXP:.*]] = linalg.exp
// CHECK-NEXT:      "fusion.yield"(%[[EXP]])
// CHECK:         %[[M:.*]] = "fusion.extern"(%[[U]], %[[W]])
// CHECK:         "fusion.region"(%[[X]], %[[M]]) ({
// CHECK:           %[[AGAIN:.*]] = linalg.generic {{.*}} ins(%{{.*}} : tensor<8x8xf16>) {{.*}}attrs = {fusion.recomputed}
// CHECK:           linalg.mul ins(%[[AGAIN]],

// ONCE-LABEL: func.func @cast_twice(
// ONCE:         %[[R:.*]]:2 = "fusion.region"
// ONCE:         %[[M:.*]] = "fusion.extern"(%[[R]]#1
// ONCE:         "fusion.region"(%[[R]]#0, %[[M]])
// ONCE-NOT:     fusion.recomputed
#id = affine_map<(i, j) -> (i, j)>
func.func @cast_twice(%x: tensor<8x8xf16>, %w: tensor<8x8xf32>) -> tensor<8x8xf32> {
  %e = tensor.empty() : tensor<8x8xf32>
  %y = linalg.generic {indexing_maps = [#id, #id], iterator_types = ["parallel", "parallel"]}
      ins(%x : tensor<8x8xf16>) outs(%e : tensor<8x8xf32>) {
  ^bb0(%i: f16, %o: f32):
    %r = arith.extf %i : f16 to f32
    linalg.yield %r : f32
  } -> tensor<8x8xf32>
  %u = linalg.exp ins(%y : tensor<8x8xf32>) outs(%e : tensor<8x8xf32>) -> tensor<8x8xf32>
  %m = "fusion.extern"(%u, %w) {op = "aten.mm.default", args = [#fusion.operand<0>, #fusion.operand<1>]}
      : (tensor<8x8xf32>, tensor<8x8xf32>) -> tensor<8x8xf32>
  %v = linalg.mul ins(%y, %m : tensor<8x8xf32>, tensor<8x8xf32>) outs(%e : tensor<8x8xf32>) -> tensor<8x8xf32>
  return %v : tensor<8x8xf32>
}

// -----

// A reduction is not computed twice, however few bytes it reads.

// CHECK-LABEL: func.func @sum_twice(
// CHECK:         %[[R:.*]]:2 = "fusion.region"
// CHECK:           linalg.reduce
// CHECK:         %[[M:.*]] = "fusion.extern"(%[[R]]#1
// CHECK:         "fusion.region"(%[[R]]#0, %[[M]])
// CHECK-NOT:       linalg.reduce
// CHECK:         return
func.func @sum_twice(%x: tensor<8x8xf32>, %w: tensor<8x8xf32>, %zero: tensor<8xf32>) -> tensor<8x8xf32> {
  %e = tensor.empty() : tensor<8x8xf32>
  %s = linalg.reduce { arith.addf } ins(%x : tensor<8x8xf32>) outs(%zero : tensor<8xf32>) dimensions = [1]
  %y = linalg.broadcast ins(%s : tensor<8xf32>) outs(%e : tensor<8x8xf32>) dimensions = [1]
  %u = linalg.exp ins(%y : tensor<8x8xf32>) outs(%e : tensor<8x8xf32>) -> tensor<8x8xf32>
  %m = "fusion.extern"(%u, %w) {op = "aten.mm.default", args = [#fusion.operand<0>, #fusion.operand<1>]}
      : (tensor<8x8xf32>, tensor<8x8xf32>) -> tensor<8x8xf32>
  %v = linalg.mul ins(%y, %m : tensor<8x8xf32>, tensor<8x8xf32>) outs(%e : tensor<8x8xf32>) -> tensor<8x8xf32>
  return %v : tensor<8x8xf32>
}

// -----

// Nor are random numbers drawn twice.

// CHECK-LABEL: func.func @draw_once(
// CHECK:         %[[R:.*]]:2 = "fusion.region"
// CHECK:           fusion.random
// CHECK:         %[[M:.*]] = "fusion.extern"(%[[R]]#1
// CHECK:         "fusion.region"(%[[R]]#0, %[[M]])
// CHECK-NOT:       fusion.random
// CHECK:         return
func.func @draw_once(%seed: tensor<i64>, %offset: tensor<i64>, %w: tensor<8x8xf32>) -> tensor<8x8xf32> {
  %e = tensor.empty() : tensor<8x8xf32>
  %y = "fusion.random"(%seed, %offset) {kind = "uniform"} : (tensor<i64>, tensor<i64>) -> tensor<8x8xf32>
  %u = linalg.exp ins(%y : tensor<8x8xf32>) outs(%e : tensor<8x8xf32>) -> tensor<8x8xf32>
  %m = "fusion.extern"(%u, %w) {op = "aten.mm.default", args = [#fusion.operand<0>, #fusion.operand<1>]}
      : (tensor<8x8xf32>, tensor<8x8xf32>) -> tensor<8x8xf32>
  %v = linalg.mul ins(%y, %m : tensor<8x8xf32>, tensor<8x8xf32>) outs(%e : tensor<8x8xf32>) -> tensor<8x8xf32>
  return %v : tensor<8x8xf32>
}
