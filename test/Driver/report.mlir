// A report instead of IR: one JSON object a function, or a table for people.
//
// RUN: fusion-opt %s --report=json --fusion=dataflow | FileCheck %s --check-prefix=JSON
// RUN: fusion-opt %s --report=table --fusion=consecutive | FileCheck %s --check-prefix=TABLE
//
// Three operations (the fill and the empty tensors are parts of them), of 16 KiB each: eager holds c, d and e at
// the end. The kernel reads two and writes two, the call reads two and writes one; c's memory is freed then.
// JSON:      {"function": "main", "fusion_type": "dataflow", "ops": 3, "regions": 1, "kernels": 1, "extern_calls": 1,
// JSON-SAME: "bytes_moved": 114688, "peak_bytes": 49152, "source_peak_bytes": 49152,
// JSON-SAME: "kernel_list": [{"name": "{{[a-z_0-9]+}}", "ops": 2, "bytes": 65536, "schedule": "pointwise",
// JSON-SAME: "why": "4096 points in one dimension{{[^"]*}}", "flops": 8192, "seconds": {{[0-9.e-]+}},
// JSON-SAME: "lines": ["{{[^"]*}}report.mlir:[[#C:]]",
// JSON-SAME: "{{[^"]*}}report.mlir:[[#C + 3]]"]}]
// JSON-SAME: "call_list": [{"op": "aten.mm.default", "bytes": 49152, "flops": 524288, "seconds": {{[0-9.e-]+}},
// JSON-SAME: "lines": ["{{[^"]*}}report.mlir:[[#C + 1]]"]}], "timeline": [32768, 49152]}
// A function of no operation has no kernel.
// JSON-NEXT: {"function": "nothing", {{.*}}"ops": 0, "regions": 0, "kernels": 0, "extern_calls": 0, "bytes_moved": 0,
// JSON-SAME: "peak_bytes": 0, "source_peak_bytes": 0, "workspace_bytes": 0, "kernel_list": [], "call_list": [], "timeline": []}
// JSON-NOT:  {{.}}

// TABLE:      @main, fusion type consecutive, target sm_90
// TABLE-NEXT:   ops 3
// TABLE-NEXT:   regions 2
// TABLE-NEXT:   kernels 2
// TABLE-NEXT:   extern_calls 1
// TABLE-NEXT:   bytes_moved 147,456
// TABLE:      kernel ops bytes flops least time schedule from
// TABLE-NEXT: addf_0 1 49,152 4,096 {{[0-9.]+}} ns pointwise report.mlir:[[#ADD:]]
// TABLE-NEXT: subf_0 1 49,152 4,096 {{[0-9.]+}} ns pointwise report.mlir:
// TABLE-SAME: [[#ADD + 3]]
// TABLE:      schedules
// TABLE-NEXT:   addf_0: 4096 points
// TABLE:      call bytes flops least time from
// TABLE-NEXT: aten.mm.default 49,152 524,288 {{.*}} report.mlir:
// TABLE-SAME: [[#ADD + 1]]
// TABLE:      bytes alive, launch by launch, 32,768 at most
func.func @main(%a: tensor<64x64xf32>, %b: tensor<64x64xf32>) -> (tensor<64x64xf32>, tensor<64x64xf32>) {
  %0 = tensor.empty() : tensor<64x64xf32>
  %c = linalg.add ins(%a, %b : tensor<64x64xf32>, tensor<64x64xf32>) outs(%0 : tensor<64x64xf32>) -> tensor<64x64xf32>
  %d = "fusion.extern"(%c, %b) {op = "aten.mm.default", args = [#fusion.operand<0>, #fusion.operand<1>]}
      : (tensor<64x64xf32>, tensor<64x64xf32>) -> tensor<64x64xf32>
  %e = linalg.sub ins(%a, %c : tensor<64x64xf32>, tensor<64x64xf32>) outs(%0 : tensor<64x64xf32>) -> tensor<64x64xf32>
  return %d, %e : tensor<64x64xf32>, tensor<64x64xf32>
}

func.func @nothing(%a: tensor<64x64xf32>) -> tensor<64x64xf32> {
  return %a : tensor<64x64xf32>
}
