// RUN: fusion-opt %s --split-input-file --verify-diagnostics --pass-pipeline='builtin.module(fusion-to-gpu)'

func.func @no_schedule(%x: memref<4xf32>, %y: memref<4xf32>) {
  // expected-error @+1 {{the kernel has no schedule: run fusion-schedule first}}
  "fusion.kernel"(%x, %y) ({
  ^bb0(%a: tensor<4xf32>):
    "fusion.yield"(%a) : (tensor<4xf32>) -> ()
  }) {name = "k", operandSegmentSizes = array<i32: 1, 1>} : (memref<4xf32>, memref<4xf32>) -> ()
  return
}

// -----

func.func @unknown_schedule(%x: memref<4xf32>, %y: memref<4xf32>) {
  // expected-error @+1 {{unknown schedule 'pointwize', did you mean 'pointwise'?; allowed: transpose, pointwise, inner_reduction, outer_reduction, generic}}
  "fusion.kernel"(%x, %y) ({
  ^bb0(%a: tensor<4xf32>):
    "fusion.yield"(%a) : (tensor<4xf32>) -> ()
  }) {name = "k", operandSegmentSizes = array<i32: 1, 1>, schedule = #fusion.schedule<"pointwize", {}, "">}
    : (memref<4xf32>, memref<4xf32>) -> ()
  return
}

// -----

func.func @missing_parameter(%x: memref<4xf32>, %y: memref<4xf32>) {
  // expected-error @+1 {{schedule 'pointwise' needs the parameters threads, unroll, vector; got threads}}
  "fusion.kernel"(%x, %y) ({
  ^bb0(%a: tensor<4xf32>):
    "fusion.yield"(%a) : (tensor<4xf32>) -> ()
  }) {name = "k", operandSegmentSizes = array<i32: 1, 1>, schedule = #fusion.schedule<"pointwise", {threads = 4}, "">}
    : (memref<4xf32>, memref<4xf32>) -> ()
  return
}
