// RUN: fusion-opt %s --pass-pipeline='fusion-specialize-sizes{sizes={s0=64,n=3}}' | FileCheck %s
// RUN: fusion-opt %s --pass-pipeline='fusion-dataflow,fusion-specialize-sizes{sizes={s0=64,n=3}}' \
// RUN:   | FileCheck %s --check-prefix=REGION
// RUN: not fusion-opt %s --pass-pipeline='fusion-specialize-sizes{sizes={s0=64,n=many}}' 2>&1 \
// RUN:   | FileCheck %s --check-prefix=NUMBER
// RUN: not fusion-opt %s --pass-pipeline='fusion-specialize-sizes{sizes={s0=64,n=3,n=4}}' 2>&1 \
// RUN:   | FileCheck %s --check-prefix=TWICE

// NUMBER: a size is written NAME=NUMBER, with a whole number of 0 or more; got 'n=many'
// TWICE: size 'n' is given twice

// Every tensor gets the sizes that follow from those of the arguments; sizes that were computed are computed no more.

// CHECK-LABEL: func.func @follow(
// CHECK-SAME:    %[[X:.*]]: tensor<64x8xf32> {{.*}}, %[[W:.*]]: tensor<8x6xf32> {{.*}}) -> (tensor<64x6xf32>, tensor<512xf32>)
// CHECK-NOT:     tensor.dim
// CHECK:         %[[E:.*]] = tensor.empty() : tensor<64x8xf32>
// CHECK:         %[[Y:.*]] = linalg.exp ins(%[[X]] : tensor<64x8xf32>) outs(%[[E]] : tensor<64x8xf32>) -> tensor<64x8xf32>
// CHECK:         "fusion.extern"(%[[Y]], %[[W]]) {{.*}} -> tensor<64x6xf32>
// CHECK:         tensor.collapse_shape %[[Y]] {{.*}} into tensor<512xf32>

// What a fusion pass has decided stays, and the source's peak is a number now: %y, 2048 bytes, and the result of the
// call, 1536. (fusion-dataflow leaves room for it.)

// REGION-LABEL: func.func @follow(
// REGION:         %[[R:.*]] = "fusion.region"(%{{.*}}) ({
// REGION-NEXT:    ^bb0(%{{.*}}: tensor<64x8xf32>):
// REGION:         }) : (tensor<64x8xf32>) -> tensor<64x8xf32>
// REGION:         "fusion.extern"(%[[R]]
func.func @follow(%x: tensor<?x8xf32> {fusion.shape = ["s0", 8]}, %w: tensor<8x?xf32> {fusion.shape = [8, "2*n"]})
    -> (tensor<?x?xf32>, tensor<?xf32>) {
  %c0 = arith.constant 0 : index
  %d = tensor.dim %x, %c0 : tensor<?x8xf32>
  %e = tensor.empty(%d) : tensor<?x8xf32>
  %y = linalg.exp ins(%x : tensor<?x8xf32>) outs(%e : tensor<?x8xf32>) -> tensor<?x8xf32>
  %m = "fusion.extern"(%y, %w) {op = "aten.mm.default", args = [#fusion.operand<0>, #fusion.operand<1>]}
      : (tensor<?x8xf32>, tensor<8x?xf32>) -> tensor<?x?xf32>
  %f = tensor.collapse_shape %y [[0, 1]] : tensor<?x8xf32> into tensor<?xf32>
  return %m, %f : tensor<?x?xf32>, tensor<?xf32>
}

// What a call gives, where nothing follows: it says so itself, or the function says it of its result.

// CHECK-LABEL: func.func @said(
// CHECK:         "fusion.extern"{{.*}} -> tensor<3x8xf32>
// CHECK:         "fusion.extern"{{.*}} -> tensor<4xf32>
func.func @said(%x: tensor<?x8xf32> {fusion.shape = ["n", 8]}) -> (tensor<?xf32> {fusion.shape = ["n + 1"]}) {
  %a = "fusion.extern"(%x) {op = "aten.cumsum.default", args = [#fusion.operand<0>, 0], result_shapes = [["n", 8]]}
      : (tensor<?x8xf32>) -> tensor<?x8xf32>
  %b = "fusion.extern"(%a) {op = "test.strange.default", args = [#fusion.operand<0>]} : (tensor<?x8xf32>) -> tensor<?xf32>
  return %b : tensor<?xf32>
}

// Nothing is dynamic: unchanged.

// CHECK-LABEL: func.func @static(
// CHECK-SAME:    %[[X:.*]]: tensor<8xf32>) -> tensor<8xf32>
// CHECK-NEXT:    return %[[X]]
func.func @static(%x: tensor<8xf32>) -> tensor<8xf32> {
  return %x : tensor<8xf32>
}
