// An operation that is refused after the text is read: the message has the name of the file, or of standard input.
//
// RUN: not mlir-fusion run - < %s 2>&1 | FileCheck %s --check-prefix=STDIN
// RUN: not mlir-fusion run %s 2>&1 | FileCheck %s --check-prefix=FILE
// RUN: not fusion-opt < %s 2>&1 | FileCheck %s --check-prefix=STDIN
// STDIN: <stdin>:[[# @LINE + 6]]:8: error: 'scf.for' can't be compiled
// FILE:  {{.*}}for-loop.mlir:[[# @LINE + 5]]:8: error: 'scf.for' can't be compiled
func.func @main(%x: tensor<4xf32>) -> tensor<4xf32> {
  %c0 = arith.constant 0 : index
  %c4 = arith.constant 4 : index
  %c1 = arith.constant 1 : index
  %r = scf.for %i = %c0 to %c4 step %c1 iter_args(%a = %x) -> tensor<4xf32> {
    %0 = linalg.exp ins(%a : tensor<4xf32>) outs(%a : tensor<4xf32>) -> tensor<4xf32>
    scf.yield %0 : tensor<4xf32>
  }
  return %r : tensor<4xf32>
}
