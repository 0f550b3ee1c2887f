// RUN: fusion-opt %s --pass-pipeline='builtin.module(fusion-schedule,fusion-batch,fusion-plan-memory,fusion-to-gpu)' | FileCheck %s

#map = affine_map<(d0) -> (d0)>

// One launch for three kernels: block 0 or 1 runs one of the two equal ones, block 2 the third.

// CHECK-LABEL: func.func @siblings
// CHECK:         %[[BLOCKS:.+]] = arith.constant 3 : index
// CHECK:         gpu.launch_func @kernels::@batch_0_a_and_2_more blocks in (%[[BLOCKS]],
// CHECK-SAME:      args(%arg0 : memref<64xf32>, %{{.+}} : memref<64xf32>, %arg1 : memref<64xf32>,
// CHECK-NOT:     gpu.launch_func
// CHECK:       gpu.func @batch_0_a_and_2_more(%[[X:.+]]: memref<64xf32>, %[[A:.+]]: memref<64xf32>, %[[Y:.+]]: memref<64xf32>, %[[B:.+]]: memref<64xf32>, %[[Z:.+]]: memref<100xf32>, %[[C:.+]]: memref<100xf32>)
// CHECK:         %[[BLOCK:.+]] = gpu.block_id x
// CHECK:         %[[TWO:.+]] = arith.constant 2 : index
// CHECK:         %[[EQUAL:.+]] = arith.cmpi ult, %[[BLOCK]], %[[TWO]] : index
// CHECK:         scf.if %[[EQUAL]] {
// CHECK:           scf.index_switch
// CHECK:           case 0 {
// CHECK:             scf.yield %[[X]], %[[A]]
// CHECK:           default {
// CHECK:             scf.yield %[[Y]], %[[B]]
// CHECK:           arith.negf
// CHECK:         } else {
// CHECK:           arith.subi %[[BLOCK]]
// CHECK:           arith.mulf
func.func @siblings(%x: tensor<64xf32>, %y: tensor<64xf32>, %z: tensor<100xf32>)
    -> (tensor<64xf32>, tensor<64xf32>, tensor<100xf32>) {
  %a = "fusion.kernel"(%x) ({
  ^bb0(%v: tensor<64xf32>):
    %e = tensor.empty() : tensor<64xf32>
    %r = linalg.generic {indexing_maps = [#map, #map], iterator_types = ["parallel"]}
        ins(%v : tensor<64xf32>) outs(%e : tensor<64xf32>) {
    ^bb0(%in: f32, %out: f32):
      %1 = arith.negf %in : f32
      linalg.yield %1 : f32
    } -> tensor<64xf32>
    "fusion.yield"(%r) : (tensor<64xf32>) -> ()
  }) {name = "a", operandSegmentSizes = array<i32: 1, 0>} : (tensor<64xf32>) -> tensor<64xf32>
  %b = "fusion.kernel"(%y) ({
  ^bb0(%v: tensor<64xf32>):
    %e = tensor.empty() : tensor<64xf32>
    %r = linalg.generic {indexing_maps = [#map, #map], iterator_types = ["parallel"]}
        ins(%v : tensor<64xf32>) outs(%e : tensor<64xf32>) {
    ^bb0(%in: f32, %out: f32):
      %1 = arith.negf %in : f32
      linalg.yield %1 : f32
    } -> tensor<64xf32>
    "fusion.yield"(%r) : (tensor<64xf32>) -> ()
  }) {name = "b", operandSegmentSizes = array<i32: 1, 0>} : (tensor<64xf32>) -> tensor<64xf32>
  %c = "fusion.kernel"(%z) ({
  ^bb0(%v: tensor<100xf32>):
    %e = tensor.empty() : tensor<100xf32>
    %r = linalg.generic {indexing_maps = [#map, #map], iterator_types = ["parallel"]}
        ins(%v : tensor<100xf32>) outs(%e : tensor<100xf32>) {
    ^bb0(%in: f32, %out: f32):
      %1 = arith.mulf %in, %in : f32
      linalg.yield %1 : f32
    } -> tensor<100xf32>
    "fusion.yield"(%r) : (tensor<100xf32>) -> ()
  }) {name = "c", operandSegmentSizes = array<i32: 1, 0>} : (tensor<100xf32>) -> tensor<100xf32>
  return %a, %b, %c : tensor<64xf32>, tensor<64xf32>, tensor<100xf32>
}

