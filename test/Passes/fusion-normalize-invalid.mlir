// RUN: not fusion-opt %s --pass-pipeline='builtin.module(fusion-normalize)' 2>&1 | FileCheck %s

// CHECK: fusion-normalize-invalid.mlir:[[@LINE+2]]:8: error: 'tensor.generate' is not something fusion can compile; keep it a library call
func.func @generate(%n: index) -> tensor<?xindex> {
  %s = tensor.generate %n {
  ^bb0(%i: index):
    tensor.yield %i : index
  } : tensor<?xindex>
  return %s : tensor<?xindex>
}
