// RUN: fusion-opt %s --pass-pipeline='builtin.module(fusion-to-gpu,canonicalize,cse)' | FileCheck %s

#map = affine_map<(d0, d1, d2) -> (d0, d1, d2)>
#transposed = affine_map<(d0, d1, d2) -> (d0, d2, d1)>

// A tile of a batch of matrices: both loads before the barrier, 16 bytes each; the store along the other axis. 48
// is no multiple of the tile, so the store is guarded; the loads stand at the last element that there is.

// CHECK-LABEL: func.func @transpose
// CHECK-DAG:   %[[BLOCKS:.*]] = arith.constant 16 : index
// CHECK-DAG:   %[[THREADS:.*]] = arith.constant 256 : index
// CHECK:       gpu.launch_func @kernels::@k blocks in (%[[BLOCKS]], {{.*}}) threads in (%[[THREADS]],
// CHECK:       gpu.func @k(%[[X:.*]]: memref<4x64x48xf32>, %[[Y:.*]]: memref<4x48x64xf32>, %[[Z:.*]]: memref<4x48x64xf32>)
// CHECK-SAME:    workgroup(%[[TILE:.*]] : memref<1024xf32, #gpu.address_space<workgroup>> {llvm.align = 16 : i64})
// CHECK:       %[[B:.*]] = gpu.block_id x
// CHECK:       %[[T:.*]] = gpu.thread_id x
// CHECK:       arith.minui
// CHECK:       %[[V:.*]] = vector.load %{{.*}} {alignment = 16 : i64} : memref<12288xf32>, vector<4xf32>
// CHECK:       %[[W:.*]] = vector.load %{{.*}} {alignment = 16 : i64} : memref<12288xf32>, vector<4xf32>
// CHECK:       arith.xori
// CHECK:       vector.store %[[V]], %[[TILE]][%{{.*}}] {alignment = 16 : i64}
// CHECK:       gpu.barrier
// CHECK:       %[[E0:.*]] = memref.load %[[TILE]]
// CHECK:       %[[E1:.*]] = memref.load %[[TILE]]
// CHECK:       %[[E2:.*]] = memref.load %[[TILE]]
// CHECK:       %[[E3:.*]] = memref.load %[[TILE]]
// CHECK:       %[[E:.*]] = vector.from_elements %[[E0]], %[[E1]], %[[E2]], %[[E3]]
// CHECK:       %[[S:.*]] = arith.addf %[[E]], %[[W]] : vector<4xf32>
// CHECK:       scf.if
// CHECK:         vector.store %[[S]], %{{.*}} {alignment = 16 : i64}
func.func @transpose(%x: memref<4x64x48xf32>, %y: memref<4x48x64xf32>, %z: memref<4x48x64xf32>) {
  "fusion.kernel"(%x, %y, %z) ({
  ^bb0(%a: tensor<4x64x48xf32>, %b: tensor<4x48x64xf32>):
    %e = tensor.empty() : tensor<4x48x64xf32>
    %r = linalg.generic {indexing_maps = [#transposed, #map, #map], iterator_types = ["parallel", "parallel", "parallel"]}
        ins(%a, %b : tensor<4x64x48xf32>, tensor<4x48x64xf32>) outs(%e : tensor<4x48x64xf32>) {
    ^bb0(%in: f32, %in2: f32, %out: f32):
      %1 = arith.addf %in, %in2 : f32
      linalg.yield %1 : f32
    } -> tensor<4x48x64xf32>
    "fusion.yield"(%r) : (tensor<4x48x64xf32>) -> ()
  }) {name = "k", operandSegmentSizes = array<i32: 2, 1>,
      schedule = #fusion.schedule<"transpose", {across = 32, down = 32, threads = 256, vector = 4}, "">}
    : (memref<4x64x48xf32>, memref<4x48x64xf32>, memref<4x48x64xf32>) -> ()
  return
}
