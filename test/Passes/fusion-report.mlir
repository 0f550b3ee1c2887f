// fusion-report notes in the function what its present form shows, and adds to what earlier stages noted.
//
// RUN: fusion-opt %s --pass-pipeline='fusion-report' | FileCheck %s --check-prefix=SOURCE
// RUN: fusion-opt %s --pass-pipeline='fusion-report,fusion-consecutive,fusion-report' | FileCheck %s --check-prefix=REGION
// RUN: fusion-opt %s --pass-pipeline='fusion-report,fusion-consecutive,fusion-report,fusion-segment,fusion-schedule,fusion-plan-memory,fusion-report' \
// RUN:   | FileCheck %s --check-prefix=MEMORY
//
// What begins after fusion can't tell what the source would hold.
// RUN: fusion-opt %s --pass-pipeline='fusion-consecutive,fusion-report' | FileCheck %s --check-prefix=LATE

// Two operations of 1 KiB; eager holds both, and x is the caller's. The view and the constant count nothing.
// SOURCE-LABEL: func.func @chain
// SOURCE-SAME:    fusion.report = {ops = 2 : i64, regions = 0 : i64, source_peak_bytes = 2048 : i64}
// REGION-LABEL: func.func @chain
// REGION-SAME:    fusion.report = {ops = 2 : i64, regions = 1 : i64, source_peak_bytes = 2048 : i64}
// MEMORY-LABEL: func.func @chain
// MEMORY-SAME:    bytes_moved = 2048 : i64, call_list = [], extern_calls = 0 : i64
// MEMORY-SAME:    kernel_list = [{bytes = 2048 : i64, flops = 512 : i64, lines = ["{{[^"]*}}:[[#EXP:]]",
// MEMORY-SAME:    "{{[^"]*}}:[[#EXP + 6]]"],
// MEMORY-SAME:    name = "{{.*}}", ops = 2 : i64, schedule = "pointwise", why = "{{.+}}"}]
// MEMORY-SAME:    kernels = 1 : i64, ops = 2 : i64, peak_bytes = 1024 : i64, regions = 1 : i64, source_peak_bytes = 2048 : i64
// MEMORY-SAME:    timeline = array<i64: 1024>
// LATE-LABEL:   func.func @chain
// LATE-SAME:      fusion.report = {ops = 2 : i64, regions = 1 : i64}
#map = affine_map<(d0, d1) -> (d0, d1)>
func.func @chain(%x: tensor<16x16xf32>) -> tensor<16x16xf32> {
  %0 = tensor.empty() : tensor<16x16xf32>
  %1 = linalg.generic {indexing_maps = [#map, #map], iterator_types = ["parallel", "parallel"]}
      ins(%x : tensor<16x16xf32>) outs(%0 : tensor<16x16xf32>) {
  ^bb0(%a: f32, %o: f32):
    %e = math.exp %a : f32
    linalg.yield %e : f32
  } -> tensor<16x16xf32>
  %2 = linalg.generic {indexing_maps = [#map, #map], iterator_types = ["parallel", "parallel"]}
      ins(%1 : tensor<16x16xf32>) outs(%0 : tensor<16x16xf32>) {
  ^bb0(%a: f32, %o: f32):
    %e = arith.negf %a : f32
    linalg.yield %e : f32
  } -> tensor<16x16xf32>
  return %2 : tensor<16x16xf32>
}

// Calls move bytes as well; a view is no call and no operation, but keeps what it shows alive. At the second call
// the first result and its own are live, 2 KiB.
// SOURCE-LABEL: func.func @calls
// SOURCE-SAME:    fusion.report = {ops = 2 : i64, regions = 0 : i64, source_peak_bytes = 2048 : i64}
// MEMORY-LABEL: func.func @calls
// MEMORY-SAME:    bytes_moved = 4096 : i64, call_list = [
// MEMORY-SAME:    {bytes = 2048 : i64, dtype = "f32", lines = ["{{[^"]*}}:[[#COS:]]"], op = "aten.cos.default"},
// MEMORY-SAME:    {bytes = 2048 : i64, dtype = "f32", lines = ["{{[^"]*}}:[[#COS + 2]]"], op = "aten.sin.default"}]
// MEMORY-SAME:    extern_calls = 2 : i64, kernel_list = [], kernels = 0 : i64
// MEMORY-SAME:    peak_bytes = 2048 : i64
// MEMORY-SAME:    timeline = array<i64: 1024, 2048>
func.func @calls(%x: tensor<16x16xf32>) -> tensor<16x16xf32> {
  %0 = "fusion.extern"(%x) {op = "aten.cos.default", args = [#fusion.operand<0>]} : (tensor<16x16xf32>) -> tensor<16x16xf32>
  %1 = "fusion.view"(%0) {offset = 0, sizes = array<i64: 16, 16>, strides = array<i64: 1, 16>} : (tensor<16x16xf32>) -> tensor<16x16xf32>
  %2 = "fusion.extern"(%1) {op = "aten.sin.default", args = [#fusion.operand<0>]} : (tensor<16x16xf32>) -> tensor<16x16xf32>
  return %2 : tensor<16x16xf32>
}
