// A report of a program with dynamic sizes, for the sizes given. Fusion decides for all sizes.
//
// RUN: fusion-opt %s --report=json --fusion=dataflow --sizes=s0=128 | FileCheck %s --check-prefix=MANY
// RUN: fusion-opt %s --report=json --fusion=dataflow --sizes=s0=1 | FileCheck %s --check-prefix=ONE
// RUN: fusion-opt %s --emit=region --fusion=dataflow | fusion-opt - --report=json --fusion=dataflow --sizes=s0=128 \
// RUN:   | FileCheck %s --check-prefix=LATE
// RUN: not fusion-opt %s --report=json 2>&1 | FileCheck %s --check-prefix=MISSING
// RUN: not fusion-opt %s --report=json --sizes=s1=8 2>&1 | FileCheck %s --check-prefix=UNKNOWN
// RUN: not fusion-opt %s --report=json --sizes=s0 2>&1 | FileCheck %s --check-prefix=NUMBER
// RUN: not fusion-opt %s --emit=kernel --sizes=s0=8 2>&1 | FileCheck %s --check-prefix=ONLY
//
// Three operations of 32 bytes a row each: eager holds all three at the end. The kernel reads one tensor and writes two,
// the call reads one and the weights, 256 bytes, and writes one.
// MANY:      "ops": 3, "regions": 1, "kernels": 1, "extern_calls": 1, "bytes_moved": 20736,
// MANY-SAME: "peak_bytes": 12288, "source_peak_bytes": 12288
// MANY-SAME: "ops": 2, "bytes": 12288, "schedule": "pointwise"
// ONE:       "bytes_moved": 416, "peak_bytes": 96, "source_peak_bytes": 96
// LATE:      "regions": 1, {{.*}}"bytes_moved": 20736, "peak_bytes": 12288, "source_peak_bytes": null
// MISSING: report-sizes.mlir:[[# @LINE + 5]]:1: error: the program has dynamic sizes; give them: --sizes=s0=...
// UNKNOWN: error: unknown size 's1', did you mean 's0'?; the program's sizes: s0
// NUMBER: error: a size is written NAME=NUMBER, with a whole number of 0 or more; got 's0'
// ONLY: error: --sizes is for --report
#id = affine_map<(i, j) -> (i, j)>
func.func @main(%x: tensor<?x8xf32> {fusion.shape = ["s0", 8]}, %w: tensor<8x8xf32>)
    -> (tensor<?x8xf32>, tensor<?x8xf32>) {
  %c0 = arith.constant 0 : index
  %zero = arith.constant 0.0 : f32
  %d = tensor.dim %x, %c0 : tensor<?x8xf32>
  %e = tensor.empty(%d) : tensor<?x8xf32>
  %y = linalg.exp ins(%x : tensor<?x8xf32>) outs(%e : tensor<?x8xf32>) -> tensor<?x8xf32>
  %f = linalg.fill ins(%zero : f32) outs(%e : tensor<?x8xf32>) -> tensor<?x8xf32>
  %m = linalg.matmul ins(%y, %w : tensor<?x8xf32>, tensor<8x8xf32>) outs(%f : tensor<?x8xf32>) -> tensor<?x8xf32>
  %z = linalg.negf ins(%y : tensor<?x8xf32>) outs(%e : tensor<?x8xf32>) -> tensor<?x8xf32>
  return %m, %z : tensor<?x8xf32>, tensor<?x8xf32>
}
