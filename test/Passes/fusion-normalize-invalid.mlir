// RUN: not fusion-opt %s --pass-pipeline='builtin.module(fusion-normalize)' 2>&1 | FileCheck %s

// CHECK: fusion-normalize-invalid.mlir:[[@LINE+3]]:8: error: 'linalg.softmax' is not something fusion can compile; keep it a library call
func.func @softmax(%x: tensor<2x3xf32>) -> tensor<2x3xf32> {
  %i = tensor.empty() : tensor<2x3xf32>
  %s = linalg.softmax dimension(1) ins(%x : tensor<2x3xf32>) outs(%i : tensor<2x3xf32>) -> tensor<2x3xf32>
  return %s : tensor<2x3xf32>
}
