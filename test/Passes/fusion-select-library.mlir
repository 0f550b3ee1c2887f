// RUN: fusion-opt %s --split-input-file --pass-pipeline='builtin.module(fusion-select-library)' | FileCheck %s
// RUN: fusion-opt %s --split-input-file --pass-pipeline='builtin.module(fusion-select-library{matmul=on})' | FileCheck %s --check-prefix=ON
// RUN: not fusion-opt %s --pass-pipeline='builtin.module(fusion-select-library{matmul=of})' 2>&1 | FileCheck %s --check-prefix=BAD

// With matmul=on, all products are compiled.
// ON-NOT: fusion.extern

// BAD: unknown value of option 'matmul' 'of', did you mean 'off'?; allowed: off, on

// Over a filled zero, a product is aten.mm; over another tensor, aten.addmm, whose beta and alpha are 1.

// CHECK-LABEL: func.func @products(
// CHECK-SAME:    %[[A:.*]]: tensor<8x32xf32>, %[[B:.*]]: tensor<32x64xf32>, %[[C:.*]]: tensor<8x64xf32>)
// CHECK:         %[[MM:.*]] = "fusion.extern"(%[[A]], %[[B]])
// CHECK-SAME:      {args = [#fusion.operand<0>, #fusion.operand<1>], op = "aten.mm.default"}
// CHECK:         %[[ADDMM:.*]] = "fusion.extern"(%[[C]], %[[A]], %[[B]])
// CHECK-SAME:      {args = [#fusion.operand<0>, #fusion.operand<1>, #fusion.operand<2>, 1, 1], op = "aten.addmm.default"}
// CHECK:         return %[[MM]], %[[ADDMM]]
func.func @products(%a: tensor<8x32xf32>, %b: tensor<32x64xf32>, %c: tensor<8x64xf32>)
    -> (tensor<8x64xf32>, tensor<8x64xf32>) {
  %zero = arith.constant 0.0 : f32
  %i = tensor.empty() : tensor<8x64xf32>
  %f = linalg.fill ins(%zero : f32) outs(%i : tensor<8x64xf32>) -> tensor<8x64xf32>
  %m = linalg.matmul ins(%a, %b : tensor<8x32xf32>, tensor<32x64xf32>) outs(%f : tensor<8x64xf32>) -> tensor<8x64xf32>
  %n = linalg.matmul ins(%a, %b : tensor<8x32xf32>, tensor<32x64xf32>) outs(%c : tensor<8x64xf32>) -> tensor<8x64xf32>
  return %m, %n : tensor<8x64xf32>, tensor<8x64xf32>
}

// -----

// CHECK-LABEL: func.func @batches(
// CHECK:         op = "aten.bmm.default"
// CHECK:         op = "aten.baddbmm.default"
func.func @batches(%a: tensor<2x8x4xf16>, %b: tensor<2x4x6xf16>, %c: tensor<2x8x6xf16>)
    -> (tensor<2x8x6xf16>, tensor<2x8x6xf16>) {
  %zero = arith.constant dense<0.0> : tensor<2x8x6xf16>
  %m = linalg.batch_matmul ins(%a, %b : tensor<2x8x4xf16>, tensor<2x4x6xf16>)
      outs(%zero : tensor<2x8x6xf16>) -> tensor<2x8x6xf16>
  %n = linalg.batch_matmul ins(%a, %b : tensor<2x8x4xf16>, tensor<2x4x6xf16>)
      outs(%c : tensor<2x8x6xf16>) -> tensor<2x8x6xf16>
  return %m, %n : tensor<2x8x6xf16>, tensor<2x8x6xf16>
}

// -----

// A product that reads an operand transposed, by its map, takes the transposed operand (a view, after
// fusion-normalize). So does a vector times a matrix.

// CHECK-LABEL: func.func @transposed(
// CHECK-SAME:    %[[A:.*]]: tensor<8x32xf32>, %[[B:.*]]: tensor<64x32xf32>, %[[V:.*]]: tensor<64xf32>
// CHECK:         %[[BT:.*]] = linalg.transpose ins(%[[B]] : tensor<64x32xf32>) {{.*}} permutation = [1, 0]
// CHECK:         "fusion.extern"(%[[A]], %[[BT]]) {{.*}}aten.mm.default
// CHECK:         %[[BT2:.*]] = linalg.transpose ins(%[[B]] : tensor<64x32xf32>)
// CHECK:         "fusion.extern"(%[[U:.*]], %[[BT2]], %[[V]]) {{.*}}aten.addmv.default
func.func @transposed(%a: tensor<8x32xf32>, %b: tensor<64x32xf32>, %v: tensor<64xf32>, %u: tensor<32xf32>)
    -> (tensor<8x64xf32>, tensor<32xf32>) {
  %zero = arith.constant 0.0 : f32
  %i = tensor.empty() : tensor<8x64xf32>
  %f = linalg.fill ins(%zero : f32) outs(%i : tensor<8x64xf32>) -> tensor<8x64xf32>
  %m = linalg.matmul
      indexing_maps = [affine_map<(m, n, k) -> (m, k)>, affine_map<(m, n, k) -> (n, k)>, affine_map<(m, n, k) -> (m, n)>]
      ins(%a, %b : tensor<8x32xf32>, tensor<64x32xf32>) outs(%f : tensor<8x64xf32>) -> tensor<8x64xf32>
  %n = linalg.vecmat ins(%v, %b : tensor<64xf32>, tensor<64x32xf32>) outs(%u : tensor<32xf32>) -> tensor<32xf32>
  return %m, %n : tensor<8x64xf32>, tensor<32xf32>
}

// -----

// A convolution over a broadcast bias takes the bias; without one, its place in `args` is none.

// CHECK-LABEL: func.func @convolution(
// CHECK-SAME:    %[[X:.*]]: tensor<1x3x8x8xf32>, %[[W:.*]]: tensor<4x3x3x3xf32>, %[[BIAS:.*]]: tensor<4xf32>)
// CHECK:         "fusion.extern"(%[[X]], %[[W]], %[[BIAS]])
// CHECK-SAME:      #fusion.operand<2>, [1, 1], [0, 0], [1, 1], false, [0, 0], 1], op = "aten.convolution.default"
// CHECK:         "fusion.extern"(%[[X]], %[[W]])
// CHECK-SAME:      #fusion.operand<1>, unit, [2, 2], [0, 0], [1, 1], false, [0, 0], 1]
func.func @convolution(%x: tensor<1x3x8x8xf32>, %w: tensor<4x3x3x3xf32>, %bias: tensor<4xf32>)
    -> (tensor<1x4x6x6xf32>, tensor<1x4x3x3xf32>) {
  %zero = arith.constant 0.0 : f32
  %i = tensor.empty() : tensor<1x4x6x6xf32>
  %b = linalg.broadcast ins(%bias : tensor<4xf32>) outs(%i : tensor<1x4x6x6xf32>) dimensions = [0, 2, 3]
  %m = linalg.conv_2d_nchw_fchw {dilations = dense<1> : vector<2xi64>, strides = dense<1> : vector<2xi64>}
      ins(%x, %w : tensor<1x3x8x8xf32>, tensor<4x3x3x3xf32>) outs(%b : tensor<1x4x6x6xf32>) -> tensor<1x4x6x6xf32>
  %j = tensor.empty() : tensor<1x4x3x3xf32>
  %f = linalg.fill ins(%zero : f32) outs(%j : tensor<1x4x3x3xf32>) -> tensor<1x4x3x3xf32>
  %n = linalg.conv_2d_nchw_fchw {dilations = dense<1> : vector<2xi64>, strides = dense<2> : vector<2xi64>}
      ins(%x, %w : tensor<1x3x8x8xf32>, tensor<4x3x3x3xf32>) outs(%f : tensor<1x4x3x3xf32>) -> tensor<1x4x3x3xf32>
  return %m, %n : tensor<1x4x6x6xf32>, tensor<1x4x3x3xf32>
}

// -----

// Left to be compiled: ATen has no product of bf16 into f32, CUDA none of integers, and none broadcasts an operand.

// CHECK-LABEL: func.func @left(
// CHECK-NOT:     fusion.extern
// CHECK:         return
func.func @left(%a: tensor<8x4xbf16>, %b: tensor<4x6xbf16>, %c: tensor<8x6xf32>, %p: tensor<8x4xi32>,
                %q: tensor<4x6xi32>, %r: tensor<8x6xi32>, %v: tensor<4xf32>, %w: tensor<4x6xf32>)
    -> (tensor<8x6xf32>, tensor<8x6xi32>, tensor<8x6xf32>) {
  %m = linalg.matmul ins(%a, %b : tensor<8x4xbf16>, tensor<4x6xbf16>) outs(%c : tensor<8x6xf32>) -> tensor<8x6xf32>
  %n = linalg.matmul ins(%p, %q : tensor<8x4xi32>, tensor<4x6xi32>) outs(%r : tensor<8x6xi32>) -> tensor<8x6xi32>
  %o = linalg.matmul
      indexing_maps = [affine_map<(m, n, k) -> (k)>, affine_map<(m, n, k) -> (k, n)>, affine_map<(m, n, k) -> (m, n)>]
      ins(%v, %w : tensor<4xf32>, tensor<4x6xf32>) outs(%c : tensor<8x6xf32>) -> tensor<8x6xf32>
  return %m, %n, %o : tensor<8x6xf32>, tensor<8x6xi32>, tensor<8x6xf32>
}
