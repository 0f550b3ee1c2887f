// RUN: fusion-opt %s --split-input-file --pass-pipeline='builtin.module(fusion-normalize)' | FileCheck %s

// One of two equal operations is enough where its result is needed until the second one anyway.

// CHECK-LABEL: func.func @needed_anyway(
// CHECK:         %[[A:.*]] = linalg.generic
// CHECK:           math.exp
// CHECK-NOT:       math.exp
// CHECK:         %[[C:.*]] = "fusion.extern"(%[[A]])
// CHECK:         "fusion.extern"(%[[C]], %[[A]])
func.func @needed_anyway(%x: tensor<8xf32>) -> tensor<8xf32> {
  %e = tensor.empty() : tensor<8xf32>
  %a = linalg.exp ins(%x : tensor<8xf32>) outs(%e : tensor<8xf32>) -> tensor<8xf32>
  %b = linalg.exp ins(%x : tensor<8xf32>) outs(%e : tensor<8xf32>) -> tensor<8xf32>
  %c = "fusion.extern"(%a) {op = "test.one.default", args = [#fusion.operand<0>]} : (tensor<8xf32>) -> tensor<8xf32>
  %d = "fusion.extern"(%c, %b) {op = "test.two.default", args = [#fusion.operand<0>, #fusion.operand<1>]}
      : (tensor<8xf32>, tensor<8xf32>) -> tensor<8xf32>
  return %d : tensor<8xf32>
}

// -----

// Here neither is needed while the second call runs, which holds three tensors as it is: more than all else. A result
// kept for later would be a fourth.

// CHECK-LABEL: func.func @no_room(
// CHECK:           math.exp
// CHECK:         %[[C:.*]]:2 = "fusion.extern"
// CHECK:         %[[D:.*]] = "fusion.extern"(%[[C]]#0, %[[C]]#1)
// CHECK:         %[[AGAIN:.*]] = linalg.generic
// CHECK:           math.exp
// CHECK:         "fusion.extern"(%[[D]], %[[AGAIN]])
func.func @no_room(%x: tensor<8xf32>) -> tensor<8xf32> {
  %e = tensor.empty() : tensor<8xf32>
  %a = linalg.exp ins(%x : tensor<8xf32>) outs(%e : tensor<8xf32>) -> tensor<8xf32>
  %c:2 = "fusion.extern"(%a) {op = "test.split.default", args = [#fusion.operand<0>]}
      : (tensor<8xf32>) -> (tensor<8xf32>, tensor<8xf32>)
  %d = "fusion.extern"(%c#0, %c#1) {op = "test.two.default", args = [#fusion.operand<0>, #fusion.operand<1>]}
      : (tensor<8xf32>, tensor<8xf32>) -> tensor<8xf32>
  %b = linalg.exp ins(%x : tensor<8xf32>) outs(%e : tensor<8xf32>) -> tensor<8xf32>
  %f = "fusion.extern"(%d, %b) {op = "test.two.default", args = [#fusion.operand<0>, #fusion.operand<1>]}
      : (tensor<8xf32>, tensor<8xf32>) -> tensor<8xf32>
  return %f : tensor<8xf32>
}

// -----

// The same with a larger tensor elsewhere, so that there is room for it.

// CHECK-LABEL: func.func @room(
// CHECK:         %[[A:.*]] = linalg.generic
// CHECK:           math.exp
// CHECK-NOT:       math.exp
// CHECK:         %[[D:.*]] = "fusion.extern"(%{{.*}}#0, %{{.*}}#1)
// CHECK:         "fusion.extern"(%[[D]], %[[A]])
func.func @room(%x: tensor<8xf32>) -> (tensor<8xf32>, tensor<8xf32>) {
  %e = tensor.empty() : tensor<8xf32>
  %a = linalg.exp ins(%x : tensor<8xf32>) outs(%e : tensor<8xf32>) -> tensor<8xf32>
  %c:2 = "fusion.extern"(%a) {op = "test.split.default", args = [#fusion.operand<0>]}
      : (tensor<8xf32>) -> (tensor<8xf32>, tensor<8xf32>)
  %d = "fusion.extern"(%c#0, %c#1) {op = "test.two.default", args = [#fusion.operand<0>, #fusion.operand<1>]}
      : (tensor<8xf32>, tensor<8xf32>) -> tensor<8xf32>
  %b = linalg.exp ins(%x : tensor<8xf32>) outs(%e : tensor<8xf32>) -> tensor<8xf32>
  %f = "fusion.extern"(%d, %b) {op = "test.two.default", args = [#fusion.operand<0>, #fusion.operand<1>]}
      : (tensor<8xf32>, tensor<8xf32>) -> tensor<8xf32>
  %g = "fusion.extern"(%f) {op = "test.grow.default", args = [#fusion.operand<0>]} : (tensor<8xf32>) -> tensor<64xf32>
  %h = "fusion.extern"(%g) {op = "test.shrink.default", args = [#fusion.operand<0>]} : (tensor<64xf32>) -> tensor<8xf32>
  return %f, %h : tensor<8xf32>, tensor<8xf32>
}

// -----

// What is computed of equal results is equal in turn, through changes of their shape too.

// CHECK-LABEL: func.func @chains(
// CHECK-COUNT-1: math.exp
// CHECK-NOT:     math.exp
// CHECK-COUNT-1: math.log
// CHECK-NOT:     math.log
func.func @chains(%x: tensor<8xf32>) -> (tensor<2x4xf32>, tensor<2x4xf32>) {
  %e = tensor.empty() : tensor<8xf32>
  %s = tensor.empty() : tensor<2x4xf32>
  %a = linalg.exp ins(%x : tensor<8xf32>) outs(%e : tensor<8xf32>) -> tensor<8xf32>
  %b = linalg.exp ins(%x : tensor<8xf32>) outs(%e : tensor<8xf32>) -> tensor<8xf32>
  %c = tensor.expand_shape %a [[0, 1]] output_shape [2, 4] : tensor<8xf32> into tensor<2x4xf32>
  %d = tensor.expand_shape %b [[0, 1]] output_shape [2, 4] : tensor<8xf32> into tensor<2x4xf32>
  %f = linalg.log ins(%c : tensor<2x4xf32>) outs(%s : tensor<2x4xf32>) -> tensor<2x4xf32>
  %g = linalg.log ins(%d : tensor<2x4xf32>) outs(%s : tensor<2x4xf32>) -> tensor<2x4xf32>
  return %f, %g : tensor<2x4xf32>, tensor<2x4xf32>
}

// -----

// Of unknown sizes nothing is held that would not be anyway.

// CHECK-LABEL: func.func @dynamic(
// CHECK-COUNT-2: math.exp
func.func @dynamic(%x: tensor<?xf32>) -> tensor<?xf32> {
  %zero = arith.constant 0 : index
  %n = tensor.dim %x, %zero : tensor<?xf32>
  %e = tensor.empty(%n) : tensor<?xf32>
  %a = linalg.exp ins(%x : tensor<?xf32>) outs(%e : tensor<?xf32>) -> tensor<?xf32>
  %c = "fusion.extern"(%a) {op = "test.one.default", args = [#fusion.operand<0>]} : (tensor<?xf32>) -> tensor<?xf32>
  %d = "fusion.extern"(%c) {op = "test.one.default", args = [#fusion.operand<0>]} : (tensor<?xf32>) -> tensor<?xf32>
  %b = linalg.exp ins(%x : tensor<?xf32>) outs(%e : tensor<?xf32>) -> tensor<?xf32>
  %f = "fusion.extern"(%d, %b) {op = "test.two.default", args = [#fusion.operand<0>, #fusion.operand<1>]}
      : (tensor<?xf32>, tensor<?xf32>) -> tensor<?xf32>
  return %f : tensor<?xf32>
}
