// RUN: not fusion-opt %s --split-input-file --pass-pipeline='builtin.module(fusion-normalize)' 2>&1 | FileCheck %s

// CHECK: fusion-normalize-invalid.mlir:[[@LINE+2]]:8: error: 'tensor.generate' can't be compiled; what can: linalg on tensors, {{.*}} is written as fusion.extern
func.func @generate(%n: index) -> tensor<?xindex> {
  %s = tensor.generate %n {
  ^bb0(%i: index):
    tensor.yield %i : index
  } : tensor<?xindex>
  return %s : tensor<?xindex>
}

// -----

// CHECK: fusion-normalize-invalid.mlir:[[@LINE+2]]:3: error: 'linalg.exp' is on memrefs: fusion takes linalg on tensors
func.func @memory(%x: memref<4xf32>, %y: memref<4xf32>) {
  linalg.exp ins(%x : memref<4xf32>) outs(%y : memref<4xf32>)
  return
}
