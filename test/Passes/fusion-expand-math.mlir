// RUN: fusion-opt %s --split-input-file --pass-pipeline='builtin.module(fusion-expand-math)' | FileCheck %s

// `exp(x) - 1` loses all digits near zero, so near zero tanh is used.
// CHECK-LABEL: func.func @scalar
// CHECK-SAME:    %[[X:.*]]: f32
// CHECK-NOT:     math.expm1
// CHECK-DAG:     %[[ONE:.*]] = arith.constant 1.0
// CHECK-DAG:     %[[HALF:.*]] = arith.constant 5.0
// CHECK:         %[[X2:.*]] = arith.mulf %[[X]], %[[HALF]]
// CHECK:         %[[T:.*]] = math.tanh %[[X2]]
// CHECK:         %[[TT:.*]] = arith.addf %[[T]], %[[T]]
// CHECK:         %[[REST:.*]] = arith.subf %[[ONE]], %[[T]]
// CHECK:         %[[NEAR:.*]] = arith.divf %[[TT]], %[[REST]]
// CHECK:         %[[EXP:.*]] = math.exp %[[X]]
// CHECK:         %[[FAR:.*]] = arith.subf %[[EXP]], %[[ONE]]
// CHECK:         %[[IS_NEAR:.*]] = arith.cmpf olt, %{{.*}}, %[[HALF]]
// CHECK:         %[[Y:.*]] = arith.select %[[IS_NEAR]], %[[NEAR]], %[[FAR]]
// CHECK:         return %[[Y]]
func.func @scalar(%x: f32) -> f32 {
  %y = math.expm1 %x : f32
  return %y : f32
}

// -----

// Vectors stay vectors, in nested modules too.
// CHECK-LABEL: func.func @vector
// CHECK-NOT:     math.expm1
// CHECK:         math.tanh %{{.*}} : vector<4xf64>
// CHECK:         arith.select %{{.*}} : vector<4xi1>, vector<4xf64>
module { module @kernels {
  func.func @vector(%x: vector<4xf64>) -> vector<4xf64> {
    %y = math.expm1 %x : vector<4xf64>
    return %y : vector<4xf64>
  }
} }

// -----

// Others are left alone.
// CHECK-LABEL: func.func @others
// CHECK-NEXT:    math.exp
// CHECK-NEXT:    math.log1p
// CHECK-NEXT:    return
func.func @others(%x: f32) -> f32 {
  %y = math.exp %x : f32
  %z = math.log1p %y : f32
  return %z : f32
}
