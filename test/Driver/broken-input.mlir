// Broken MLIR: where and what, on standard error, and nothing on standard output or in the file.
//
// RUN: rm -f %t.out && not fusion-opt %s --split-input-file -o %t.out 2>&1 | FileCheck %s --strict-whitespace
// RUN: test ! -e %t.out
// RUN: not fusion-opt - --split-input-file < %s 2>&1 | FileCheck %s --check-prefix=STDIN

// CHECK:      {{.*}}broken-input.mlir:[[# @LINE + 10]]:10: error: use of undeclared SSA value name
// STDIN:      <stdin>:[[# @LINE + 9]]:10: error: use of undeclared SSA value name
// The second module is fine; the third is not. Line numbers are those of the file.
// CHECK-NEXT: {{.*}}broken-input.mlir:[[# @LINE + 20]]:8: error: 'linalg.add' op
// CHECK-NOT:  error
// CHECK-NOT:  Traceback

module {
func.func @undefined(%x: tensor<8xf32>) -> tensor<8xf32> {
  // The value does not exist.
  return %nowhere : tensor<8xf32>
}
}

// -----

func.func @fine(%x: tensor<8xf32>) -> tensor<8xf32> {
  return %x : tensor<8xf32>
}

// -----

func.func @shapes_differ(%x: tensor<8xf32>, %w: tensor<4xf32>) -> tensor<8xf32> {
  %y = linalg.add ins(%x, %w : tensor<8xf32>, tensor<4xf32>) outs(%x : tensor<8xf32>) -> tensor<8xf32>
  return %y : tensor<8xf32>
}
