// RUN: fusion-opt %s --pass-pipeline='builtin.module(fusion-to-cpu,canonicalize,cse)' | FileCheck %s

#map = affine_map<(d0, d1) -> (d0, d1)>
#row = affine_map<(d0, d1) -> (d0)>

// Rows are a loop, chunks of a row another. 20 columns are not a multiple of 16: the second vector overlaps the
// first one, and its first lanes don't count again.

// CHECK-LABEL: func.func @main
// CHECK-SAME:    (%[[X:.*]]: memref<3x20xf32>, %[[Y:.*]]: memref<3xf32>)
// CHECK:       call @sum_0(%[[X]], %[[Y]])
// CHECK:       module @kernels
// CHECK:       func.func @sum_0(%[[A:.*]]: memref<3x20xf32>, %[[B:.*]]: memref<3xf32>)
// CHECK:       scf.for %[[ROW:.*]] =
// CHECK:         %[[ACC:.*]] = scf.for %[[CHUNK:.*]] = {{.*}} iter_args(%[[SO_FAR:.*]] = {{.*}}) -> (vector<16xf32>)
// CHECK:           %[[START:.*]] = arith.muli %[[CHUNK]], %c16
// CHECK:           %[[INSIDE:.*]] = arith.minui %[[START]], %c4
// CHECK:           %[[MASK:.*]] = arith.cmpi {{.*}} : vector<16xindex>
// CHECK:           %[[V:.*]] = vector.load {{.*}} {alignment = 4 : i64} : memref<60xf32>, vector<16xf32>
// CHECK:           %[[MASKED:.*]] = arith.select %[[MASK]], %[[V]],
// CHECK:           arith.addf %[[SO_FAR]], %[[MASKED]]
// CHECK:         memref.store %{{.*}}, %{{.*}}[%[[ROW]]]
// CHECK:       func.func private @sum_0(memref<3x20xf32>, memref<3xf32>)
func.func @main(%x: memref<3x20xf32>, %y: memref<3xf32>) {
  "fusion.kernel"(%x, %y) ({
  ^bb0(%a: tensor<3x20xf32>):
    %zero = arith.constant 0.0 : f32
    %e = tensor.empty() : tensor<3xf32>
    %init = linalg.fill ins(%zero : f32) outs(%e : tensor<3xf32>) -> tensor<3xf32>
    %sum = linalg.generic {indexing_maps = [#map, #row], iterator_types = ["parallel", "reduction"]}
        ins(%a : tensor<3x20xf32>) outs(%init : tensor<3xf32>) {
    ^bb0(%in: f32, %out: f32):
      %1 = arith.addf %in, %out : f32
      linalg.yield %1 : f32
    } -> tensor<3xf32>
    "fusion.yield"(%sum) : (tensor<3xf32>) -> ()
  }) {name = "sum_0", operandSegmentSizes = array<i32: 1, 1>, schedule = #fusion.schedule<
      "inner_reduction", {vector = 16, aligned = 0, threads = 1, cluster = 1, groups = 0, row = "memory", rows = 1, chunks = 0, unroll = 1}, "">}
    : (memref<3x20xf32>, memref<3xf32>) -> ()
  return
}
