// RUN: fusion-opt %s --verify-diagnostics --pass-pipeline='builtin.module(fusion-dataflow)'

// Fusion reads one block; control flow is refused, where it stands.

// expected-error @+1 {{fusion needs a function of one block, got 2}}
func.func @two_blocks(%a: tensor<8x8xf32>) -> tensor<8x8xf32> {
  cf.br ^end
^end:
  return %a : tensor<8x8xf32>
}
