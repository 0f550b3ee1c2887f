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

// -----

// A schedule written by hand, for a body that is no reduction as it knows them.

#map = affine_map<(d0, d1) -> (d0, d1)>
#row = affine_map<(d0, d1) -> (d0)>
func.func @schedule_that_refuses(%x: memref<3x1024xf32>, %y: memref<3xf32>) {
  // expected-error @+1 {{schedule 'inner_reduction' can't run this kernel: }}
  "fusion.kernel"(%x, %y) ({
  ^bb0(%a: tensor<3x1024xf32>):
    %zero = arith.constant 0.0 : f32
    %e = tensor.empty() : tensor<3xf32>
    %init = linalg.fill ins(%zero : f32) outs(%e : tensor<3xf32>) -> tensor<3xf32>
    %sum = linalg.generic {indexing_maps = [#map, #row], iterator_types = ["parallel", "reduction"]}
        ins(%a : tensor<3x1024xf32>) outs(%init : tensor<3xf32>) {
    ^bb0(%in: f32, %out: f32):
      %1 = arith.addf %in, %in : f32
      linalg.yield %1 : f32
    } -> tensor<3xf32>
    "fusion.yield"(%sum) : (tensor<3xf32>) -> ()
  }) {name = "k", operandSegmentSizes = array<i32: 1, 1>, schedule = #fusion.schedule<
      "inner_reduction", {vector = 4, aligned = 0, threads = 64, cluster = 1, groups = 1, row = "memory", rows = 1, chunks = 0, unroll = 1}, "">}
    : (memref<3x1024xf32>, memref<3xf32>) -> ()
  return
}
