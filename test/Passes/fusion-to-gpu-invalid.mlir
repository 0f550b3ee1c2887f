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
  // expected-error @+1 {{unknown schedule 'pointwize', did you mean 'pointwise'?; allowed: transpose, pointwise, inner_reduction, row_and_column, outer_reduction, generic}}
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

// -----

func.func @one_writes_what_another_reads(%x: memref<4xf32>, %y: memref<4xf32>, %z: memref<4xf32>) {
  // expected-error @+1 {{writes memory that another kernel of its batch uses}}
  "fusion.kernel"(%x, %y) ({
  ^bb0(%a: tensor<4xf32>):
    "fusion.yield"(%a) : (tensor<4xf32>) -> ()
  }) {batch = 0 : i64, name = "k", operandSegmentSizes = array<i32: 1, 1>,
      schedule = #fusion.schedule<"pointwise", {threads = 4, unroll = 1, vector = 1}, "">}
    : (memref<4xf32>, memref<4xf32>) -> ()
  "fusion.kernel"(%y, %z) ({
  ^bb0(%a: tensor<4xf32>):
    "fusion.yield"(%a) : (tensor<4xf32>) -> ()
  }) {batch = 0 : i64, name = "l", operandSegmentSizes = array<i32: 1, 1>,
      schedule = #fusion.schedule<"pointwise", {threads = 4, unroll = 1, vector = 1}, "">}
    : (memref<4xf32>, memref<4xf32>) -> ()
  return
}

// -----

func.func @blocks_of_two_sizes(%x: memref<4xf32>, %y: memref<4xf32>, %z: memref<4xf32>) {
  "fusion.kernel"(%x, %y) ({
  ^bb0(%a: tensor<4xf32>):
    "fusion.yield"(%a) : (tensor<4xf32>) -> ()
  }) {batch = 0 : i64, name = "k", operandSegmentSizes = array<i32: 1, 1>,
      schedule = #fusion.schedule<"pointwise", {threads = 4, unroll = 1, vector = 1}, "">}
    : (memref<4xf32>, memref<4xf32>) -> ()
  // expected-error @+1 {{kernels of a batch need as many threads a block; got 4 and 8}}
  "fusion.kernel"(%x, %z) ({
  ^bb0(%a: tensor<4xf32>):
    "fusion.yield"(%a) : (tensor<4xf32>) -> ()
  }) {batch = 0 : i64, name = "l", operandSegmentSizes = array<i32: 1, 1>,
      schedule = #fusion.schedule<"pointwise", {threads = 8, unroll = 1, vector = 1}, "">}
    : (memref<4xf32>, memref<4xf32>) -> ()
  return
}
