// What the verifiers of the fusion dialect accept, and that it prints as it was read.
//
// RUN: fusion-opt %s --split-input-file --pass-pipeline='builtin.module()' > %t
// RUN: fusion-opt %t --split-input-file --pass-pipeline='builtin.module()' | diff %t -
// RUN: FileCheck %s < %t

// A region takes and gives tensors of any types; its body sees them as block arguments of the same types.
// CHECK-LABEL: func.func @region
// CHECK-SAME:    (%[[A:.*]]: tensor<4xf32>, %[[B:.*]]: tensor<8x2xi1>)
// CHECK:         %[[R:.*]]:2 = "fusion.region"(%[[A]], %[[B]]) ({
// CHECK-NEXT:    ^bb0(%[[X:.*]]: tensor<4xf32>, %[[Y:.*]]: tensor<8x2xi1>):
// CHECK-NEXT:      "fusion.yield"(%[[Y]], %[[X]]) : (tensor<8x2xi1>, tensor<4xf32>) -> ()
// CHECK-NEXT:    }) : (tensor<4xf32>, tensor<8x2xi1>) -> (tensor<8x2xi1>, tensor<4xf32>)
// CHECK:         return %[[R]]#1
func.func @region(%a: tensor<4xf32>, %b: tensor<8x2xi1>) -> tensor<4xf32> {
  %r:2 = "fusion.region"(%a, %b) ({
  ^bb0(%x: tensor<4xf32>, %y: tensor<8x2xi1>):
    "fusion.yield"(%y, %x) : (tensor<8x2xi1>, tensor<4xf32>) -> ()
  }) : (tensor<4xf32>, tensor<8x2xi1>) -> (tensor<8x2xi1>, tensor<4xf32>)
  return %r#1 : tensor<4xf32>
}

// -----

// A region may take nothing and give nothing.
// CHECK-LABEL: func.func @empty_region
// CHECK:         "fusion.region"() ({
// CHECK-NEXT:      "fusion.yield"() : () -> ()
// CHECK-NEXT:    }) : () -> ()
func.func @empty_region() {
  "fusion.region"() ({
    "fusion.yield"() : () -> ()
  }) : () -> ()
  return
}

// -----

// A kernel on tensors: no `outs`, results are what is yielded. The schedule comes later.
// CHECK-LABEL: func.func @kernel_on_tensors
// CHECK:         %{{.*}} = "fusion.kernel"
// CHECK:         {name = "copy", operandSegmentSizes = array<i32: 1, 0>} : (tensor<4xf32>) -> tensor<4xf32>
func.func @kernel_on_tensors(%a: tensor<4xf32>) -> tensor<4xf32> {
  %r = "fusion.kernel"(%a) ({
  ^bb0(%x: tensor<4xf32>):
    "fusion.yield"(%x) : (tensor<4xf32>) -> ()
  }) {name = "copy", operandSegmentSizes = array<i32: 1, 0>} : (tensor<4xf32>) -> tensor<4xf32>
  return %r : tensor<4xf32>
}

// -----

// A kernel on memrefs: what is yielded is stored to `outs`. A boolean takes a byte of memory.
// CHECK-LABEL: func.func @kernel_on_memrefs
// CHECK:         "fusion.kernel"(%{{.*}}, %{{.*}}) ({
// CHECK-NEXT:    ^bb0(%{{.*}}: tensor<4xi1>):
// CHECK:         operandSegmentSizes = array<i32: 1, 1>
// CHECK-SAME:    schedule = #fusion.schedule<"pointwise", {access = "aligned", vector = 4}, "few elements">
// CHECK-SAME:    : (memref<4xi8>, memref<4xi8>) -> ()
func.func @kernel_on_memrefs(%a: memref<4xi8>, %b: memref<4xi8>) {
  "fusion.kernel"(%a, %b) ({
  ^bb0(%x: tensor<4xi1>):
    "fusion.yield"(%x) : (tensor<4xi1>) -> ()
  }) {name = "copy", operandSegmentSizes = array<i32: 1, 1>,
      schedule = #fusion.schedule<"pointwise", {access = "aligned", vector = 4}, "few elements">}
     : (memref<4xi8>, memref<4xi8>) -> ()
  return
}

// -----

// A call: one entry of `args` for each argument of the schema. None is `unit`; lists may hold operands.
// CHECK-LABEL: func.func @call
// CHECK:         "fusion.extern"
// CHECK-SAME:    args = [
// CHECK-SAME:    #fusion.operand<1>, #fusion.operand<0>], 1, unit, 5.000000e-01 : f32, "mean", true]
// CHECK-SAME:    effects = ["random"]
// CHECK-SAME:    op = "aten.invented.default"
func.func @call(%a: tensor<4xf32>, %b: tensor<4xf32>) -> tensor<4xf32> {
  %r = "fusion.extern"(%a, %b) {
      op = "aten.invented.default", effects = ["random"], dtypes = ["float32", "float32"],
      args = [[#fusion.operand<1>, #fusion.operand<0>], 1, unit, 0.5 : f32, "mean", true],
      result_layouts = [#fusion.layout<[1], 0, 16>]}
      : (tensor<4xf32>, tensor<4xf32>) -> tensor<4xf32>
  return %r : tensor<4xf32>
}

// -----

// A call that writes an operand gives its new value as a result, and only that is used afterwards.
// CHECK-LABEL: func.func @call_in_place
// CHECK:         tied = {{\[\[}}0, 0]]
func.func @call_in_place(%a: tensor<4xf32>) -> tensor<4xf32> {
  %r = "fusion.extern"(%a) {op = "aten.relu_.default", args = [#fusion.operand<0>], tied = [[0, 0]]}
      : (tensor<4xf32>) -> tensor<4xf32>
  return %r : tensor<4xf32>
}

// -----

// The diagonal of a matrix, without a copy.
// CHECK-LABEL: func.func @diagonal
// CHECK:         "fusion.view"(%{{.*}}) {offset = 0 : i64, sizes = array<i64: 4>, strides = array<i64: 5>}
func.func @diagonal(%a: tensor<4x4xf32>) -> tensor<4xf32> {
  %r = "fusion.view"(%a) {offset = 0, sizes = array<i64: 4>, strides = array<i64: 5>}
      : (tensor<4x4xf32>) -> tensor<4xf32>
  return %r : tensor<4xf32>
}

// -----

// CHECK-LABEL: func.func @draw
// CHECK:         "fusion.random"(%{{.*}}, %{{.*}}) {kind = "uniform"}
func.func @draw(%seed: tensor<i64>, %offset: tensor<i64>) -> tensor<4xf32> {
  %r = "fusion.random"(%seed, %offset) {kind = "uniform"} : (tensor<i64>, tensor<i64>) -> tensor<4xf32>
  return %r : tensor<4xf32>
}

// -----

// Arguments and results may say how they lie in memory.
// CHECK-LABEL: func.func @layouts
// CHECK-SAME:    tensor<4x8xf32> {fusion.layout = #fusion.layout<[1, 4], 2, 16>}
// CHECK-SAME:    -> (tensor<4x8xf32> {fusion.layout = #fusion.layout<[8, 1], 0, 1>})
func.func @layouts(%a: tensor<4x8xf32> {fusion.layout = #fusion.layout<[1, 4], 2, 16>})
    -> (tensor<4x8xf32> {fusion.layout = #fusion.layout<[8, 1], 0, 1>}) {
  return %a : tensor<4x8xf32>
}
