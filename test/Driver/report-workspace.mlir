// Partial results of a reduction that is split are counted, but apart: eager holds the sum, and so does the plan.
//
// RUN: fusion-opt %s --report=json --fusion=dataflow | FileCheck %s
// RUN: fusion-opt %s --report=table --fusion=dataflow --target=cpu | FileCheck %s --check-prefix=CPU
//
// CHECK:      "kernels": 2, "extern_calls": 0,
// CHECK-SAME: "peak_bytes": 8192, "source_peak_bytes": 8192, "workspace_bytes": 262144,
// CHECK-SAME: "schedule": "outer_reduction", {{.*}}"schedule": "outer_reduction", {{[^]]*}}]}], "call_list": []

// CPU:      kernels 1
// CPU:      peak_bytes 8,192
// CPU-NEXT: source_peak_bytes 8,192
// CPU-NEXT: workspace_bytes 0
func.func @main(%x: tensor<65536x2048xf32>) -> tensor<2048xf32> {
  %zero = arith.constant 0.0 : f32
  %0 = tensor.empty() : tensor<2048xf32>
  %init = linalg.fill ins(%zero : f32) outs(%0 : tensor<2048xf32>) -> tensor<2048xf32>
  %sum = linalg.reduce ins(%x : tensor<65536x2048xf32>) outs(%init : tensor<2048xf32>) dimensions = [0]
    (%in: f32, %out: f32) {
      %1 = arith.addf %in, %out : f32
      linalg.yield %1 : f32
    }
  return %sum : tensor<2048xf32>
}
