// RUN: fusion-opt %s --split-input-file --verify-diagnostics --pass-pipeline='builtin.module(fusion-segment)'

// An operation whose result has no elements that a schedule could compute one by one.

func.func @unknown(%x: tensor<8xf32>) -> tensor<8xf32> {
  %r = "fusion.region"(%x) ({
  ^bb0(%a: tensor<8xf32>):
    %i = arith.constant 0 : index
    %v = arith.constant 1.0 : f32
    // expected-error @+1 {{'tensor.insert' can't be part of a kernel}}
    %y = tensor.insert %v into %a[%i] : tensor<8xf32>
    "fusion.yield"(%y) : (tensor<8xf32>) -> ()
  }) : (tensor<8xf32>) -> tensor<8xf32>
  return %r : tensor<8xf32>
}

// -----

// What was not brought into one form says how it is.

func.func @named(%x: tensor<8xf32>) -> tensor<8xf32> {
  %r = "fusion.region"(%x) ({
  ^bb0(%a: tensor<8xf32>):
    %e = tensor.empty() : tensor<8xf32>
    // expected-error @+1 {{'linalg.exp' can't be part of a kernel; run fusion-normalize first}}
    %y = linalg.exp ins(%a : tensor<8xf32>) outs(%e : tensor<8xf32>) -> tensor<8xf32>
    "fusion.yield"(%y) : (tensor<8xf32>) -> ()
  }) : (tensor<8xf32>) -> tensor<8xf32>
  return %r : tensor<8xf32>
}
