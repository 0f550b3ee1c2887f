// Kernels written by hand may have one name, or a function's: their functions' names are made different.
//
// RUN: fusion-opt %s --pass-pipeline='builtin.module(fusion-to-gpu)' | FileCheck %s
// RUN: fusion-opt %s --pass-pipeline='builtin.module(fusion-to-cpu)' | FileCheck %s --check-prefix=CPU

// CHECK-LABEL: func.func @main(
// CHECK:         gpu.launch_func @kernels::@k blocks
// CHECK:         gpu.launch_func @kernels::@k_1 blocks
// CHECK:         gpu.launch_func @kernels::@main_1 blocks
// CHECK:       gpu.func @k(
// CHECK:       gpu.func @k_1(
// CHECK:       gpu.func @main_1(

// CPU-LABEL:   func.func @main(
// CPU:           call @k(
// CPU:           call @k_1(
// CPU:           call @main_1(
func.func @main(%x: memref<4xf32>, %y: memref<4xf32>, %z: memref<8xf32>, %w: memref<4xf64>) {
  "fusion.kernel"(%x, %y) ({
  ^bb0(%a: tensor<4xf32>):
    "fusion.yield"(%a) : (tensor<4xf32>) -> ()
  }) {name = "k", operandSegmentSizes = array<i32: 1, 1>, schedule = #fusion.schedule<"generic", {threads = 128}, "">}
    : (memref<4xf32>, memref<4xf32>) -> ()
  "fusion.kernel"(%z, %z) ({
  ^bb0(%a: tensor<8xf32>):
    "fusion.yield"(%a) : (tensor<8xf32>) -> ()
  }) {name = "k", operandSegmentSizes = array<i32: 1, 1>, schedule = #fusion.schedule<"generic", {threads = 128}, "">}
    : (memref<8xf32>, memref<8xf32>) -> ()
  "fusion.kernel"(%w, %w) ({
  ^bb0(%a: tensor<4xf64>):
    "fusion.yield"(%a) : (tensor<4xf64>) -> ()
  }) {name = "main", operandSegmentSizes = array<i32: 1, 1>, schedule = #fusion.schedule<"generic", {threads = 128}, "">}
    : (memref<4xf64>, memref<4xf64>) -> ()
  return
}
