// RUN: fusion-opt %s --split-input-file --pass-pipeline='builtin.module(fusion-normalize)' | FileCheck %s

// Simplifying may make one tensor of two that are equal, or of a tensor and its copy. Where a call overwrites one of
// them and the other is used later, they are two again. Here %a and %b are equal and the call overwrites %a.

// CHECK-LABEL: func.func @equal_values(
// CHECK-SAME:    %[[X:.*]]: tensor<8xf32>)
// CHECK:         %[[B:.*]] = linalg.generic {{.*}} ins(%[[X]]
// CHECK:           math.exp
// CHECK:         %[[A:.*]] = linalg.generic {{.*}} ins(%[[B]]
// CHECK:         %[[W:.*]] = "fusion.extern"(%[[A]])
// CHECK:         linalg.generic {{.*}} ins(%[[W]], %[[B]]
func.func @equal_values(%x: tensor<8xf32>) -> tensor<8xf32> {
  %e = tensor.empty() : tensor<8xf32>
  %a = linalg.exp ins(%x : tensor<8xf32>) outs(%e : tensor<8xf32>) -> tensor<8xf32>
  %b = linalg.exp ins(%x : tensor<8xf32>) outs(%e : tensor<8xf32>) -> tensor<8xf32>
  %w = "fusion.extern"(%a) {op = "test.shift_.default", args = [#fusion.operand<0>], tied = [[0, 0]]}
      : (tensor<8xf32>) -> tensor<8xf32>
  %r = linalg.sub ins(%w, %b : tensor<8xf32>, tensor<8xf32>) outs(%e : tensor<8xf32>) -> tensor<8xf32>
  return %r : tensor<8xf32>
}

// -----

// An argument's own memory is what the caller sees overwritten: its old value is kept in a copy.

// CHECK-LABEL: func.func @copy_of_an_argument(
// CHECK-SAME:    %[[X:.*]]: tensor<8xf32>)
// CHECK:         %[[OLD:.*]] = linalg.generic {{.*}} ins(%[[X]]
// CHECK:         %[[W:.*]] = "fusion.extern"(%[[X]])
// CHECK:         return %[[W]], %[[OLD]]
func.func @copy_of_an_argument(%x: tensor<8xf32>) -> (tensor<8xf32>, tensor<8xf32>) {
  %e = tensor.empty() : tensor<8xf32>
  %old = linalg.copy ins(%x : tensor<8xf32>) outs(%e : tensor<8xf32>) -> tensor<8xf32>
  %w = "fusion.extern"(%x) {op = "test.shift_.default", args = [#fusion.operand<0>], tied = [[0, 0]]}
      : (tensor<8xf32>) -> tensor<8xf32>
  return %w, %old : tensor<8xf32>, tensor<8xf32>
}

// -----

// A reshape made before the call and used after it shows the old elements.

// CHECK-LABEL: func.func @reshaped_before(
// CHECK-SAME:    %[[X:.*]]: tensor<8xf32>)
// CHECK:         %[[RESHAPED:.*]] = tensor.expand_shape %[[X]]
// CHECK:         %[[OLD:.*]] = linalg.generic {{.*}} ins(%[[RESHAPED]]
// CHECK:         %[[W:.*]] = "fusion.extern"(%[[X]])
// CHECK:         linalg.generic {{.*}} ins(%[[OLD]]
// CHECK:           math.exp
func.func @reshaped_before(%x: tensor<8xf32>) -> (tensor<8xf32>, tensor<2x4xf32>) {
  %e = tensor.empty() : tensor<2x4xf32>
  %s = tensor.expand_shape %x [[0, 1]] output_shape [2, 4] : tensor<8xf32> into tensor<2x4xf32>
  %w = "fusion.extern"(%x) {op = "test.shift_.default", args = [#fusion.operand<0>], tied = [[0, 0]]}
      : (tensor<8xf32>) -> tensor<8xf32>
  %r = linalg.exp ins(%s : tensor<2x4xf32>) outs(%e : tensor<2x4xf32>) -> tensor<2x4xf32>
  return %w, %r : tensor<8xf32>, tensor<2x4xf32>
}

// -----

// A table of constants is the program's, not the call's.

// CHECK-LABEL: func.func @constants(
// CHECK:         %[[TABLE:.*]] = arith.constant dense<[1.000000e+00, 2.000000e+00]>
// CHECK:         %[[COPY:.*]] = linalg.generic {{.*}} ins(%[[TABLE]]
// CHECK:         %[[W:.*]] = "fusion.extern"(%[[COPY]])
// CHECK:         return %[[W]]
func.func @constants() -> tensor<2xf32> {
  %table = arith.constant dense<[1.0, 2.0]> : tensor<2xf32>
  %w = "fusion.extern"(%table) {op = "test.shift_.default", args = [#fusion.operand<0>], tied = [[0, 0]]}
      : (tensor<2xf32>) -> tensor<2xf32>
  return %w : tensor<2xf32>
}

// -----

// Two operands of one call that are equal are not one, if it writes one of them.

// CHECK-LABEL: func.func @two_operands(
// CHECK:         %[[READ:.*]] = linalg.generic {{.*}} ins(%{{.*}}
// CHECK:           math.exp
// CHECK:         %[[WRITTEN:.*]] = linalg.generic {{.*}} ins(%[[READ]]
// CHECK:         "fusion.extern"(%[[WRITTEN]], %[[READ]])
func.func @two_operands(%x: tensor<8xf32>) -> tensor<8xf32> {
  %e = tensor.empty() : tensor<8xf32>
  %a = linalg.exp ins(%x : tensor<8xf32>) outs(%e : tensor<8xf32>) -> tensor<8xf32>
  %b = linalg.exp ins(%x : tensor<8xf32>) outs(%e : tensor<8xf32>) -> tensor<8xf32>
  %w = "fusion.extern"(%a, %b) {op = "test.cumulate_.default", args = [#fusion.operand<0>, #fusion.operand<1>],
      tied = [[0, 0]]} : (tensor<8xf32>, tensor<8xf32>) -> tensor<8xf32>
  return %w : tensor<8xf32>
}

// -----

// An opaque call may write any operand, which then is the same tensor afterwards, but not those that were equal to it.

// CHECK-LABEL: func.func @opaque(
// CHECK:         %[[B:.*]] = linalg.generic {{.*}} ins(%{{.*}}
// CHECK:           math.exp
// CHECK:         %[[A:.*]] = linalg.generic {{.*}} ins(%[[B]]
// CHECK:         %[[COPY:.*]] = linalg.generic {{.*}} ins(%[[A]]
// CHECK:         "fusion.extern"(%[[A]])
// CHECK:         return %[[A]], %[[B]], %[[COPY]]
func.func @opaque(%x: tensor<8xf32>) -> (tensor<8xf32>, tensor<8xf32>, tensor<8xf32>) {
  %e = tensor.empty() : tensor<8xf32>
  %a = linalg.exp ins(%x : tensor<8xf32>) outs(%e : tensor<8xf32>) -> tensor<8xf32>
  %b = linalg.exp ins(%x : tensor<8xf32>) outs(%e : tensor<8xf32>) -> tensor<8xf32>
  %copy = linalg.copy ins(%a : tensor<8xf32>) outs(%e : tensor<8xf32>) -> tensor<8xf32>
  "fusion.extern"(%a) {op = "test.fill_.default", args = [#fusion.operand<0>], effects = ["opaque"]}
      : (tensor<8xf32>) -> ()
  return %a, %b, %copy : tensor<8xf32>, tensor<8xf32>, tensor<8xf32>
}

// -----

// Where nothing else is used later, nothing is copied.

// CHECK-LABEL: func.func @nothing_to_keep(
// CHECK:         %[[A:.*]] = linalg.generic
// CHECK:           math.exp
// CHECK-NOT:     linalg.generic
// CHECK:         %[[W:.*]] = "fusion.extern"(%[[A]])
// CHECK:         return %[[W]]
func.func @nothing_to_keep(%x: tensor<8xf32>) -> tensor<8xf32> {
  %e = tensor.empty() : tensor<8xf32>
  %a = linalg.exp ins(%x : tensor<8xf32>) outs(%e : tensor<8xf32>) -> tensor<8xf32>
  %w = "fusion.extern"(%a) {op = "test.shift_.default", args = [#fusion.operand<0>], tied = [[0, 0]]}
      : (tensor<8xf32>) -> tensor<8xf32>
  return %w : tensor<8xf32>
}

// -----

// A call that overwrites a view overwrites what it is a view of: here %a, which is equal to %b.

// CHECK-LABEL: func.func @through_a_view(
// CHECK:         %[[B:.*]] = linalg.generic
// CHECK:           math.exp
// CHECK:         %[[A:.*]] = linalg.generic {{.*}} ins(%[[B]]
// CHECK:         %[[T:.*]] = "fusion.view"(%[[A]])
// CHECK:         %[[W:.*]] = "fusion.extern"(%[[T]])
// CHECK:         linalg.generic {{.*}} ins(%[[W]], %[[B]]
func.func @through_a_view(%x: tensor<4x4xf32>) -> tensor<4x4xf32> {
  %e = tensor.empty() : tensor<4x4xf32>
  %a = linalg.exp ins(%x : tensor<4x4xf32>) outs(%e : tensor<4x4xf32>) -> tensor<4x4xf32>
  %t = "fusion.view"(%a) {offset = 0 : i64, sizes = array<i64: 4, 4>, strides = array<i64: 1, 4>}
      : (tensor<4x4xf32>) -> tensor<4x4xf32>
  %b = linalg.exp ins(%x : tensor<4x4xf32>) outs(%e : tensor<4x4xf32>) -> tensor<4x4xf32>
  %w = "fusion.extern"(%t) {op = "test.shift_.default", args = [#fusion.operand<0>], tied = [[0, 0]]}
      : (tensor<4x4xf32>) -> tensor<4x4xf32>
  %r = linalg.sub ins(%w, %b : tensor<4x4xf32>, tensor<4x4xf32>) outs(%e : tensor<4x4xf32>) -> tensor<4x4xf32>
  return %r : tensor<4x4xf32>
}

// -----

// So does an argument's view; a second view, made before and read after, shows the old elements.

// CHECK-LABEL: func.func @argument_through_a_view(
// CHECK-SAME:    %[[X:.*]]: tensor<4x4xf32>)
// CHECK-DAG:     %[[T:.*]] = "fusion.view"(%[[X]]) {{.*}}strides = array<i64: 1, 4>
// CHECK-DAG:     %[[U:.*]] = "fusion.view"(%[[X]]) {{.*}}sizes = array<i64: 16>
// CHECK-DAG:     %[[OLD:.*]] = linalg.generic {{.*}} ins(%[[U]]
// CHECK:         "fusion.extern"(%[[T]])
// CHECK:         linalg.generic {{.*}} ins(%[[OLD]]
// CHECK:           math.exp
func.func @argument_through_a_view(%x: tensor<4x4xf32>) -> (tensor<4x4xf32>, tensor<16xf32>) {
  %e = tensor.empty() : tensor<16xf32>
  %t = "fusion.view"(%x) {offset = 0 : i64, sizes = array<i64: 4, 4>, strides = array<i64: 1, 4>}
      : (tensor<4x4xf32>) -> tensor<4x4xf32>
  %u = "fusion.view"(%x) {offset = 0 : i64, sizes = array<i64: 16>, strides = array<i64: 1>}
      : (tensor<4x4xf32>) -> tensor<16xf32>
  %w = "fusion.extern"(%t) {op = "test.shift_.default", args = [#fusion.operand<0>], tied = [[0, 0]]}
      : (tensor<4x4xf32>) -> tensor<4x4xf32>
  %r = linalg.exp ins(%u : tensor<16xf32>) outs(%e : tensor<16xf32>) -> tensor<16xf32>
  return %w, %r : tensor<4x4xf32>, tensor<16xf32>
}
