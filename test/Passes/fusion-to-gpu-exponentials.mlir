// RUN: fusion-opt %s --split-input-file --pass-pipeline='builtin.module(fusion-to-gpu,canonicalize,cse)' | FileCheck %s

#map = affine_map<(d0) -> (d0)>

// An approximate exponential that is added to 1 is one instruction; one that is a result itself, or exact, is not.

// CHECK-LABEL: gpu.func @sigmoid
// CHECK:         %[[SCALED:.*]] = arith.mulf %{{.*}}, %{{.*}} : f32
// CHECK:         llvm.call_intrinsic "llvm.nvvm.ex2.approx.ftz.f"(%[[SCALED]])
// CHECK:         math.exp %{{.*}} fastmath<afn> : f32
// CHECK:         math.exp %{{[^ ]*}} : f32
// CHECK-NOT:     ex2.approx
func.func @main(%x: memref<64xf32>, %y: memref<64xf32>, %z: memref<64xf32>, %w: memref<64xf32>) {
  "fusion.kernel"(%x, %y, %z, %w) ({
  ^bb0(%a: tensor<64xf32>):
    %one = arith.constant 1.0 : f32
    %e = tensor.empty() : tensor<64xf32>
    %r:3 = linalg.generic {indexing_maps = [#map, #map, #map, #map], iterator_types = ["parallel"]}
        ins(%a : tensor<64xf32>) outs(%e, %e, %e : tensor<64xf32>, tensor<64xf32>, tensor<64xf32>) {
    ^bb0(%in: f32, %o1: f32, %o2: f32, %o3: f32):
      %1 = math.exp %in fastmath<afn> : f32
      %2 = arith.addf %1, %one : f32
      %n = arith.negf %in : f32
      %3 = math.exp %n fastmath<afn> : f32
      %4 = math.exp %2 : f32
      %5 = arith.addf %4, %one : f32
      linalg.yield %2, %3, %5 : f32, f32, f32
    } -> (tensor<64xf32>, tensor<64xf32>, tensor<64xf32>)
    "fusion.yield"(%r#0, %r#1, %r#2) : (tensor<64xf32>, tensor<64xf32>, tensor<64xf32>) -> ()
  }) {name = "sigmoid", operandSegmentSizes = array<i32: 1, 3>,
      schedule = #fusion.schedule<"pointwise", {vector = 1, threads = 64, unroll = 1}, "">}
    : (memref<64xf32>, memref<64xf32>, memref<64xf32>, memref<64xf32>) -> ()
  return
}
