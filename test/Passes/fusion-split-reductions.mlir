// RUN: fusion-opt %s --split-input-file --pass-pipeline='builtin.module(fusion-split-reductions)' | FileCheck %s
// RUN: fusion-opt %s --split-input-file --pass-pipeline='builtin.module(fusion-split-reductions{target=cpu})' | FileCheck %s --check-prefix=CPU

// RUN: not fusion-opt %s --split-input-file --pass-pipeline='builtin.module(fusion-split-reductions{target=sm_9})' 2>&1 | FileCheck %s --check-prefix=UNKNOWN

// UNKNOWN: unknown target 'sm_9'; did you mean 'sm_90'?

// A CPU has no multiprocessors to fill: nothing changes.
// CPU-NOT: fusion.partial

#map = affine_map<(d0, d1) -> (d0, d1)>
#column = affine_map<(d0, d1) -> (d1)>

// 2048 columns are 16 strips of 512 bytes; 32 parts of them make 512 blocks, about four a multiprocessor.

// CHECK:       #[[POINT:.*]] = affine_map<(d0, d1, d2) -> (d0, d1, d2)>
// CHECK:       #[[PART:.*]] = affine_map<(d0, d1, d2) -> (d0, d2)>
// CHECK:       #[[JOINED:.*]] = affine_map<(d0, d1) -> (d1)>
// CHECK-LABEL: func.func @columns
// CHECK:       ^bb0(%[[X:.*]]: tensor<65536x2048xf32>)
// CHECK:         %[[INIT:.*]] = linalg.fill {{.*}} outs(%{{.*}} : tensor<2048xf32>)
// CHECK:         %[[CUT:.*]] = tensor.expand_shape %[[X]] {{\[\[}}0, 1], [2]] output_shape [32, 2048, 2048]
// CHECK:         %[[NEUTRAL:.*]] = linalg.fill {{.*}} outs(%{{.*}} : tensor<32x2048xf32>)
// CHECK:         %[[PARTIAL:.*]] = linalg.generic {indexing_maps = [#[[POINT]], #[[PART]]], iterator_types = ["parallel", "reduction", "parallel"]} ins(%[[CUT]] : tensor<32x2048x2048xf32>) outs(%[[NEUTRAL]] : tensor<32x2048xf32>) attrs = {fusion.partial}
// CHECK:           arith.addf
// CHECK:         %[[SUM:.*]] = linalg.generic {indexing_maps = [#{{.*}}, #[[JOINED]]], iterator_types = ["reduction", "parallel"]} ins(%[[PARTIAL]] : tensor<32x2048xf32>) outs(%[[INIT]] : tensor<2048xf32>)
// CHECK:           arith.addf
// CHECK:         "fusion.yield"(%[[SUM]])
func.func @columns(%x: tensor<65536x2048xf32>) -> tensor<2048xf32> {
  %r = "fusion.region"(%x) ({
  ^bb0(%a: tensor<65536x2048xf32>):
    %zero = arith.constant 0.0 : f32
    %e = tensor.empty() : tensor<2048xf32>
    %init = linalg.fill ins(%zero : f32) outs(%e : tensor<2048xf32>) -> tensor<2048xf32>
    %sum = linalg.generic {indexing_maps = [#map, #column], iterator_types = ["reduction", "parallel"]}
        ins(%a : tensor<65536x2048xf32>) outs(%init : tensor<2048xf32>) {
    ^bb0(%in: f32, %out: f32):
      %1 = arith.addf %in, %out : f32
      linalg.yield %1 : f32
    } -> tensor<2048xf32>
    "fusion.yield"(%sum) : (tensor<2048xf32>) -> ()
  }) : (tensor<65536x2048xf32>) -> tensor<2048xf32>
  return %r : tensor<2048xf32>
}

// -----

#id = affine_map<(d0) -> (d0)>
#scalar = affine_map<(d0) -> ()>

// A prime number of elements: what the parts leave over is reduced by itself, into what the join starts from. A
// maximum's parts start from what changes no maximum.

// CHECK-LABEL: func.func @prime
// CHECK:       ^bb0(%[[X:.*]]: tensor<100000007xf32>)
// CHECK:         %[[INIT:.*]] = linalg.fill
// CHECK:         %[[MOST:.*]] = tensor.extract_slice %[[X]][0] [100000000] [1]
// CHECK:         %[[CUT:.*]] = tensor.expand_shape %[[MOST]] {{.*}} into tensor<500x200000xf32>
// CHECK:         %[[NEUTRAL:.*]] = arith.constant 0xFF800000 : f32
// CHECK:         linalg.fill ins(%[[NEUTRAL]] : f32)
// CHECK:         %[[PARTIAL:.*]] = linalg.generic {{.*}} ins(%[[CUT]] {{.*}} attrs = {fusion.partial}
// CHECK:           arith.maximumf
// CHECK:         %[[REST:.*]] = tensor.extract_slice %[[X]][100000000] [7] [1]
// CHECK:         %[[LAST:.*]] = linalg.generic {{.*}} ins(%[[REST]] : tensor<7xf32>) outs(%[[INIT]] : tensor<f32>)
// CHECK:         linalg.generic {{.*}} iterator_types = ["reduction"]} ins(%[[PARTIAL]] : tensor<500xf32>) outs(%[[LAST]] : tensor<f32>)
func.func @prime(%x: tensor<100000007xf32>) -> tensor<f32> {
  %r = "fusion.region"(%x) ({
  ^bb0(%a: tensor<100000007xf32>):
    %least = arith.constant 0xFF800000 : f32
    %e = tensor.empty() : tensor<f32>
    %init = linalg.fill ins(%least : f32) outs(%e : tensor<f32>) -> tensor<f32>
    %max = linalg.generic {indexing_maps = [#id, #scalar], iterator_types = ["reduction"]}
        ins(%a : tensor<100000007xf32>) outs(%init : tensor<f32>) {
    ^bb0(%in: f32, %out: f32):
      %1 = arith.maximumf %in, %out : f32
      linalg.yield %1 : f32
    } -> tensor<f32>
    "fusion.yield"(%max) : (tensor<f32>) -> ()
  }) : (tensor<100000007xf32>) -> tensor<f32>
  return %r : tensor<f32>
}

// -----

#map = affine_map<(d0, d1, d2, d3) -> (d0, d1, d2, d3)>
#bias = affine_map<(d0, d1, d2, d3) -> (0, d1, 0, 0)>

// Channels of a batch of images: the images are parts as they are, no dimension is cut.

// CHECK-LABEL: func.func @channels
// CHECK-NOT:     tensor.expand_shape
// CHECK:         linalg.generic {{.*}} iterator_types = ["parallel", "parallel", "reduction", "reduction"]} {{.*}} outs(%{{.*}} : tensor<64x1x8x1x1xf32>) attrs = {fusion.partial}
// CHECK:         linalg.generic {{.*}} iterator_types = ["reduction", "parallel", "parallel", "parallel", "parallel"]} ins(%{{.*}} : tensor<64x1x8x1x1xf32>)
func.func @channels(%x: tensor<64x8x224x224xf32>) -> tensor<1x8x1x1xf32> {
  %r = "fusion.region"(%x) ({
  ^bb0(%a: tensor<64x8x224x224xf32>):
    %zero = arith.constant 0.0 : f32
    %e = tensor.empty() : tensor<1x8x1x1xf32>
    %init = linalg.fill ins(%zero : f32) outs(%e : tensor<1x8x1x1xf32>) -> tensor<1x8x1x1xf32>
    %sum = linalg.generic {indexing_maps = [#map, #bias], iterator_types = ["reduction", "parallel", "reduction", "reduction"]}
        ins(%a : tensor<64x8x224x224xf32>) outs(%init : tensor<1x8x1x1xf32>) {
    ^bb0(%in: f32, %out: f32):
      %1 = arith.addf %in, %out : f32
      linalg.yield %1 : f32
    } -> tensor<1x8x1x1xf32>
    "fusion.yield"(%sum) : (tensor<1x8x1x1xf32>) -> ()
  }) : (tensor<64x8x224x224xf32>) -> tensor<1x8x1x1xf32>
  return %r : tensor<1x8x1x1xf32>
}

// -----

#map = affine_map<(d0, d1) -> (d0, d1)>
#row = affine_map<(d0, d1) -> (d0)>
#column = affine_map<(d0, d1) -> (d1)>

// The rows fill the target, and the columns' sum is too small to be worth another launch: both stay whole.

// CHECK-LABEL: func.func @enough
// CHECK-NOT:     fusion.partial
func.func @enough(%x: tensor<65536x2048xf32>, %y: tensor<512x512xf32>) -> (tensor<65536xf32>, tensor<512xf32>) {
  %r:2 = "fusion.region"(%x, %y) ({
  ^bb0(%a: tensor<65536x2048xf32>, %b: tensor<512x512xf32>):
    %zero = arith.constant 0.0 : f32
    %e = tensor.empty() : tensor<65536xf32>
    %init = linalg.fill ins(%zero : f32) outs(%e : tensor<65536xf32>) -> tensor<65536xf32>
    %rows = linalg.generic {indexing_maps = [#map, #row], iterator_types = ["parallel", "reduction"]}
        ins(%a : tensor<65536x2048xf32>) outs(%init : tensor<65536xf32>) {
    ^bb0(%in: f32, %out: f32):
      %1 = arith.addf %in, %out : f32
      linalg.yield %1 : f32
    } -> tensor<65536xf32>
    %e2 = tensor.empty() : tensor<512xf32>
    %init2 = linalg.fill ins(%zero : f32) outs(%e2 : tensor<512xf32>) -> tensor<512xf32>
    %columns = linalg.generic {indexing_maps = [#map, #column], iterator_types = ["reduction", "parallel"]}
        ins(%b : tensor<512x512xf32>) outs(%init2 : tensor<512xf32>) {
    ^bb0(%in: f32, %out: f32):
      %1 = arith.addf %in, %out : f32
      linalg.yield %1 : f32
    } -> tensor<512xf32>
    "fusion.yield"(%rows, %columns) : (tensor<65536xf32>, tensor<512xf32>) -> ()
  }) : (tensor<65536x2048xf32>, tensor<512x512xf32>) -> (tensor<65536xf32>, tensor<512xf32>)
  return %r#0, %r#1 : tensor<65536xf32>, tensor<512xf32>
}

// -----

#window = affine_map<(d0, d1) -> (d0 + d1)>
#kernel = affine_map<(d0, d1) -> (d0)>
#out = affine_map<(d0, d1) -> (d1)>

// The reduced dimension is only a part of where the input is read: there is nothing to cut.

// CHECK-LABEL: func.func @window
// CHECK-NOT:     fusion.partial
func.func @window(%x: tensor<8388609xf32>, %k: tensor<8388608xf32>) -> tensor<2xf32> {
  %r = "fusion.region"(%x, %k) ({
  ^bb0(%a: tensor<8388609xf32>, %b: tensor<8388608xf32>):
    %zero = arith.constant 0.0 : f32
    %e = tensor.empty() : tensor<2xf32>
    %init = linalg.fill ins(%zero : f32) outs(%e : tensor<2xf32>) -> tensor<2xf32>
    %sum = linalg.generic {indexing_maps = [#window, #kernel, #out], iterator_types = ["reduction", "parallel"]}
        ins(%a, %b : tensor<8388609xf32>, tensor<8388608xf32>) outs(%init : tensor<2xf32>) {
    ^bb0(%in: f32, %w: f32, %out: f32):
      %0 = arith.mulf %in, %w : f32
      %1 = arith.addf %0, %out : f32
      linalg.yield %1 : f32
    } -> tensor<2xf32>
    "fusion.yield"(%sum) : (tensor<2xf32>) -> ()
  }) : (tensor<8388609xf32>, tensor<8388608xf32>) -> tensor<2xf32>
  return %r : tensor<2xf32>
}

// -----

#id = affine_map<(d0) -> (d0)>
#scalar = affine_map<(d0) -> ()>

// Where the largest element is can't be joined from parts by one operation: it is left whole.

// CHECK-LABEL: func.func @argmax
// CHECK-NOT:     fusion.partial
func.func @argmax(%x: tensor<100000000xf32>) -> tensor<i64> {
  %r = "fusion.region"(%x) ({
  ^bb0(%a: tensor<100000000xf32>):
    %least = arith.constant 0xFF800000 : f32
    %none = arith.constant 0 : i64
    %e = tensor.empty() : tensor<f32>
    %f = tensor.empty() : tensor<i64>
    %init = linalg.fill ins(%least : f32) outs(%e : tensor<f32>) -> tensor<f32>
    %first = linalg.fill ins(%none : i64) outs(%f : tensor<i64>) -> tensor<i64>
    %max:2 = linalg.generic {indexing_maps = [#id, #scalar, #scalar], iterator_types = ["reduction"]}
        ins(%a : tensor<100000000xf32>) outs(%init, %first : tensor<f32>, tensor<i64>) {
    ^bb0(%in: f32, %out: f32, %at: i64):
      %0 = linalg.index 0 : index
      %1 = arith.index_cast %0 : index to i64
      %2 = arith.cmpf ogt, %in, %out : f32
      %3 = arith.select %2, %in, %out : f32
      %4 = arith.select %2, %1, %at : i64
      linalg.yield %3, %4 : f32, i64
    } -> (tensor<f32>, tensor<i64>)
    "fusion.yield"(%max#1) : (tensor<i64>) -> ()
  }) : (tensor<100000000xf32>) -> tensor<i64>
  return %r : tensor<i64>
}

// -----

#map = affine_map<(d0, d1) -> (d0, d1)>
#column = affine_map<(d0, d1) -> (d1)>
#id = affine_map<(d0) -> (d0)>

// What fusion-dataflow notes of the source's order is kept: the two pieces stand where the sum did.

// CHECK-LABEL: func.func @order
// CHECK-SAME:    fusion.source = {order = array<i64: 1, 1, 0, 2>, peak_bytes = 8704 : i64}
// CHECK-NOT:     fusion.place
func.func @order(%x: tensor<65536x2048xf32>, %y: tensor<64xf32>) -> (tensor<2048xf32>, tensor<64xf32>, tensor<64xf32>)
    attributes {fusion.source = {order = array<i64: 1, 0, 2>, peak_bytes = 8704 : i64}} {
  %r = "fusion.region"(%x) ({
  ^bb0(%a: tensor<65536x2048xf32>):
    %zero = arith.constant 0.0 : f32
    %e = tensor.empty() : tensor<2048xf32>
    %init = linalg.fill ins(%zero : f32) outs(%e : tensor<2048xf32>) -> tensor<2048xf32>
    %sum = linalg.generic {indexing_maps = [#map, #column], iterator_types = ["reduction", "parallel"]}
        ins(%a : tensor<65536x2048xf32>) outs(%init : tensor<2048xf32>) {
    ^bb0(%in: f32, %out: f32):
      %1 = arith.addf %in, %out : f32
      linalg.yield %1 : f32
    } -> tensor<2048xf32>
    "fusion.yield"(%sum) : (tensor<2048xf32>) -> ()
  }) : (tensor<65536x2048xf32>) -> tensor<2048xf32>
  %s:2 = "fusion.region"(%y) ({
  ^bb0(%a: tensor<64xf32>):
    %e = tensor.empty() : tensor<64xf32>
    %exp = linalg.generic {indexing_maps = [#id, #id], iterator_types = ["parallel"]}
        ins(%a : tensor<64xf32>) outs(%e : tensor<64xf32>) {
    ^bb0(%in: f32, %out: f32):
      %1 = math.exp %in : f32
      linalg.yield %1 : f32
    } -> tensor<64xf32>
    %log = linalg.generic {indexing_maps = [#id, #id], iterator_types = ["parallel"]}
        ins(%exp : tensor<64xf32>) outs(%e : tensor<64xf32>) {
    ^bb0(%in: f32, %out: f32):
      %1 = math.log %in : f32
      linalg.yield %1 : f32
    } -> tensor<64xf32>
    "fusion.yield"(%exp, %log) : (tensor<64xf32>, tensor<64xf32>) -> ()
  }) : (tensor<64xf32>) -> (tensor<64xf32>, tensor<64xf32>)
  return %r, %s#0, %s#1 : tensor<2048xf32>, tensor<64xf32>, tensor<64xf32>
}

// -----

#map = affine_map<(d0, d1) -> (d0, d1)>
#column = affine_map<(d0, d1) -> (d1)>

// Columns enough for all multiprocessors, but no wide access divides their number: eight rows are read as one. What is
// left of them has a reduction of its own; a second kernel joins all of it. With few rows that is not worth a launch.

// CHECK-LABEL: func.func @odd_width
// CHECK:         ^bb0(%[[X:.*]]: tensor<4095x50257xbf16>, %[[Y:.*]]: tensor<99x50257xbf16>)
// CHECK:         %[[MOST:.*]] = tensor.extract_slice %[[X]][0, 0] [4088, 50257] [1, 1]
// CHECK:         %[[AS_ONE:.*]] = tensor.expand_shape %[[MOST]] {{\[\[}}0, 1, 2], [3]] output_shape [1, 511, 8, 50257]
// CHECK:         linalg.generic {{.*}}iterator_types = ["parallel", "reduction", "parallel", "parallel"]} ins(%[[AS_ONE]]
// CHECK:           -> tensor<1x8x50257xbf16>
// CHECK:         linalg.generic {{.*}}ins(%[[Y]] : tensor<99x50257xbf16>)
func.func @odd_width(%x: tensor<4095x50257xbf16>, %y: tensor<99x50257xbf16>) -> (tensor<50257xbf16>, tensor<50257xbf16>) {
  %r:2 = "fusion.region"(%x, %y) ({
  ^bb0(%a: tensor<4095x50257xbf16>, %b: tensor<99x50257xbf16>):
    %least = arith.constant 0xFF80 : bf16
    %e = tensor.empty() : tensor<50257xbf16>
    %init = linalg.fill ins(%least : bf16) outs(%e : tensor<50257xbf16>) -> tensor<50257xbf16>
    %m = linalg.generic {indexing_maps = [#map, #column], iterator_types = ["reduction", "parallel"]}
        ins(%a : tensor<4095x50257xbf16>) outs(%init : tensor<50257xbf16>) {
    ^bb0(%in: bf16, %out: bf16):
      %1 = arith.maximumf %in, %out : bf16
      linalg.yield %1 : bf16
    } -> tensor<50257xbf16>
    %n = linalg.generic {indexing_maps = [#map, #column], iterator_types = ["reduction", "parallel"]}
        ins(%b : tensor<99x50257xbf16>) outs(%init : tensor<50257xbf16>) {
    ^bb0(%in: bf16, %out: bf16):
      %1 = arith.maximumf %in, %out : bf16
      linalg.yield %1 : bf16
    } -> tensor<50257xbf16>
    "fusion.yield"(%m, %n) : (tensor<50257xbf16>, tensor<50257xbf16>) -> ()
  }) : (tensor<4095x50257xbf16>, tensor<99x50257xbf16>) -> (tensor<50257xbf16>, tensor<50257xbf16>)
  return %r#0, %r#1 : tensor<50257xbf16>, tensor<50257xbf16>
}
