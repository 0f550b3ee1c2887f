// RUN: fusion-opt %s --split-input-file --pass-pipeline='builtin.module(fusion-schedule{target=sm_90})' | FileCheck %s
// RUN: fusion-opt %s --split-input-file --pass-pipeline='builtin.module(fusion-schedule{target=cpu})' | FileCheck %s --check-prefix=CPU
// RUN: fusion-opt %s --split-input-file --pass-pipeline='builtin.module(fusion-schedule{target=sm_80})' | FileCheck %s --check-prefix=SM80
// RUN: fusion-opt %s --split-input-file --pass-pipeline='builtin.module(fusion-schedule{cluster=false persistent=false})' | FileCheck %s --check-prefix=OFF

#map = affine_map<(d0, d1) -> (d0, d1)>

// Contiguous from end to end: one dimension, eight bf16 an access. On the CPU the same family.

// CHECK-LABEL: func.func @flat
// CHECK:       schedule = #fusion.schedule<"pointwise", {threads = 256, unroll = 1, vector = 8},
// CHECK-SAME:    "4096 points in one dimension: 8 elements an access, 1 in flight a thread">
// CPU-LABEL: func.func @flat
// CPU:         #fusion.schedule<"pointwise"
func.func @flat(%x: tensor<64x64xbf16>) -> tensor<64x64xbf16> {
  %r = "fusion.kernel"(%x) ({
  ^bb0(%a: tensor<64x64xbf16>):
    %e = tensor.empty() : tensor<64x64xbf16>
    %y = linalg.generic {indexing_maps = [#map, #map], iterator_types = ["parallel", "parallel"]}
        ins(%a : tensor<64x64xbf16>) outs(%e : tensor<64x64xbf16>) {
    ^bb0(%in: bf16, %out: bf16):
      %1 = arith.negf %in : bf16
      linalg.yield %1 : bf16
    } -> tensor<64x64xbf16>
    "fusion.yield"(%y) : (tensor<64x64xbf16>) -> ()
  }) {name = "k", operandSegmentSizes = array<i32: 1, 0>} : (tensor<64x64xbf16>) -> tensor<64x64xbf16>
  return %r : tensor<64x64xbf16>
}

// -----

#map = affine_map<(d0, d1) -> (d0, d1)>
#bias = affine_map<(d0, d1) -> (d1)>

// A bias keeps two dimensions apart, and the vector has to divide the inner one.

// CHECK-LABEL: func.func @bias
// CHECK:       "pointwise", {{{.*}}vector = 2}, "640 points in an inner dimension of 10
func.func @bias(%x: tensor<64x10xf32>, %b: tensor<10xf32>) -> tensor<64x10xf32> {
  %r = "fusion.kernel"(%x, %b) ({
  ^bb0(%a: tensor<64x10xf32>, %c: tensor<10xf32>):
    %e = tensor.empty() : tensor<64x10xf32>
    %y = linalg.generic {indexing_maps = [#map, #bias, #map], iterator_types = ["parallel", "parallel"]}
        ins(%a, %c : tensor<64x10xf32>, tensor<10xf32>) outs(%e : tensor<64x10xf32>) {
    ^bb0(%in: f32, %in2: f32, %out: f32):
      %1 = arith.addf %in, %in2 : f32
      linalg.yield %1 : f32
    } -> tensor<64x10xf32>
    "fusion.yield"(%y) : (tensor<64x10xf32>) -> ()
  }) {name = "k", operandSegmentSizes = array<i32: 2, 0>} : (tensor<64x10xf32>, tensor<10xf32>) -> tensor<64x10xf32>
  return %r : tensor<64x10xf32>
}

// -----

#map = affine_map<(d0, d1) -> (d0, d1)>
#row = affine_map<(d0, d1) -> (d0)>

// A row of 4096 stays in the registers of 128 threads; the CPU walks it.

// CHECK-LABEL: func.func @row
// CHECK:       "inner_reduction", {aligned = 0, chunks = 4, cluster = 1, groups = 0, row = "registers", rows = 1, threads = 128, unroll = 1, vector = 8},
// CHECK-SAME:    "4096 columns stay in registers: 128 threads with 4 vectors of 8 each"
// CPU-LABEL: func.func @row
// CPU:         "inner_reduction", {aligned = 0, chunks = 0, cluster = 1, groups = 0, row = "memory", rows = 1, threads = 1, unroll = 2, vector = 16}
func.func @row(%x: tensor<8x4096xbf16>) -> tensor<8xbf16> {
  %r = "fusion.kernel"(%x) ({
  ^bb0(%a: tensor<8x4096xbf16>):
    %least = arith.constant 0xFF80 : bf16
    %e = tensor.empty() : tensor<8xbf16>
    %init = linalg.fill ins(%least : bf16) outs(%e : tensor<8xbf16>) -> tensor<8xbf16>
    %m = linalg.generic {indexing_maps = [#map, #row], iterator_types = ["parallel", "reduction"]}
        ins(%a : tensor<8x4096xbf16>) outs(%init : tensor<8xbf16>) {
    ^bb0(%in: bf16, %out: bf16):
      %1 = arith.maximumf %in, %out : bf16
      linalg.yield %1 : bf16
    } -> tensor<8xbf16>
    "fusion.yield"(%m) : (tensor<8xbf16>) -> ()
  }) {name = "k", operandSegmentSizes = array<i32: 1, 0>} : (tensor<8x4096xbf16>) -> tensor<8xbf16>
  return %r : tensor<8xbf16>
}

// -----

#map = affine_map<(d0, d1) -> (d0, d1)>
#row = affine_map<(d0, d1) -> (d0)>

// A row of 262144 is more than registers hold, but it is needed once only: it is walked.

// CHECK-LABEL: func.func @long_row
// CHECK:       "inner_reduction", {aligned = 0, chunks = 0, cluster = 1, groups = 0, row = "memory", rows = 1, threads = 1024, unroll = 4, vector = 4}
func.func @long_row(%x: tensor<8x262144xf32>) -> tensor<8xf32> {
  %r = "fusion.kernel"(%x) ({
  ^bb0(%a: tensor<8x262144xf32>):
    %zero = arith.constant 0.0 : f32
    %e = tensor.empty() : tensor<8xf32>
    %init = linalg.fill ins(%zero : f32) outs(%e : tensor<8xf32>) -> tensor<8xf32>
    %m = linalg.generic {indexing_maps = [#map, #row], iterator_types = ["parallel", "reduction"]}
        ins(%a : tensor<8x262144xf32>) outs(%init : tensor<8xf32>) {
    ^bb0(%in: f32, %out: f32):
      %1 = arith.addf %in, %out : f32
      linalg.yield %1 : f32
    } -> tensor<8xf32>
    "fusion.yield"(%m) : (tensor<8xf32>) -> ()
  }) {name = "k", operandSegmentSizes = array<i32: 1, 0>} : (tensor<8x262144xf32>) -> tensor<8xf32>
  return %r : tensor<8xf32>
}

// -----

#map = affine_map<(d0, d1) -> (d0, d1)>
#row = affine_map<(d0, d1) -> (d0)>

// A row that is needed twice stays in shared memory: that of a cluster's blocks, if the target has such, so that each
// has little of it. A row of 4 MiB is more than eight blocks can keep.

// CHECK-LABEL: func.func @long_row_twice
// CHECK:       "inner_reduction", {aligned = 0, chunks = 0, cluster = 4, groups = 0, row = "shared", rows = 1, threads = 256, unroll = 2, vector = 8},
// CHECK-SAME:    "65536 columns stay in the shared memory of a cluster of 4 blocks: 256 threads with 8 vectors of 8 each"
// CHECK:       "inner_reduction", {aligned = 0, chunks = 0, cluster = 1, groups = 0, row = "memory", rows = 1, threads = 1024, unroll = 4, vector = 8},
// CHECK-SAME:    "2097152 columns are more than the chip holds, or needed once: 1024 threads walk them at each level"
// SM80-LABEL: func.func @long_row_twice
// SM80:        "inner_reduction", {aligned = 0, chunks = 0, cluster = 1, groups = 0, row = "shared", rows = 1, threads = 512, unroll = 4, vector = 8},
// SM80-SAME:     "65536 columns stay in the shared memory of a block: 512 threads with 16 vectors of 8 each"
func.func @long_row_twice(%x: tensor<8x65536xbf16>, %y: tensor<8x2097152xbf16>)
    -> (tensor<8x65536xbf16>, tensor<8x2097152xbf16>) {
  %r = "fusion.kernel"(%x) ({
  ^bb0(%a: tensor<8x65536xbf16>):
    %least = arith.constant 0xFF80 : bf16
    %e = tensor.empty() : tensor<8xbf16>
    %init = linalg.fill ins(%least : bf16) outs(%e : tensor<8xbf16>) -> tensor<8xbf16>
    %m = linalg.generic {indexing_maps = [#map, #row], iterator_types = ["parallel", "reduction"]}
        ins(%a : tensor<8x65536xbf16>) outs(%init : tensor<8xbf16>) {
    ^bb0(%in: bf16, %out: bf16):
      %1 = arith.maximumf %in, %out : bf16
      linalg.yield %1 : bf16
    } -> tensor<8xbf16>
    %e2 = tensor.empty() : tensor<8x65536xbf16>
    %z = linalg.generic {indexing_maps = [#map, #row, #map], iterator_types = ["parallel", "parallel"]}
        ins(%a, %m : tensor<8x65536xbf16>, tensor<8xbf16>) outs(%e2 : tensor<8x65536xbf16>) {
    ^bb0(%in: bf16, %s: bf16, %out: bf16):
      %1 = arith.minimumf %in, %s : bf16
      linalg.yield %1 : bf16
    } -> tensor<8x65536xbf16>
    "fusion.yield"(%z) : (tensor<8x65536xbf16>) -> ()
  }) {name = "k", operandSegmentSizes = array<i32: 1, 0>} : (tensor<8x65536xbf16>) -> tensor<8x65536xbf16>
  %s = "fusion.kernel"(%y) ({
  ^bb0(%a: tensor<8x2097152xbf16>):
    %least = arith.constant 0xFF80 : bf16
    %e = tensor.empty() : tensor<8xbf16>
    %init = linalg.fill ins(%least : bf16) outs(%e : tensor<8xbf16>) -> tensor<8xbf16>
    %m = linalg.generic {indexing_maps = [#map, #row], iterator_types = ["parallel", "reduction"]}
        ins(%a : tensor<8x2097152xbf16>) outs(%init : tensor<8xbf16>) {
    ^bb0(%in: bf16, %out: bf16):
      %1 = arith.maximumf %in, %out : bf16
      linalg.yield %1 : bf16
    } -> tensor<8xbf16>
    %e2 = tensor.empty() : tensor<8x2097152xbf16>
    %z = linalg.generic {indexing_maps = [#map, #row, #map], iterator_types = ["parallel", "parallel"]}
        ins(%a, %m : tensor<8x2097152xbf16>, tensor<8xbf16>) outs(%e2 : tensor<8x2097152xbf16>) {
    ^bb0(%in: bf16, %s: bf16, %out: bf16):
      %1 = arith.minimumf %in, %s : bf16
      linalg.yield %1 : bf16
    } -> tensor<8x2097152xbf16>
    "fusion.yield"(%z) : (tensor<8x2097152xbf16>) -> ()
  }) {name = "k", operandSegmentSizes = array<i32: 1, 0>} : (tensor<8x2097152xbf16>) -> tensor<8x2097152xbf16>
  return %r, %s : tensor<8x65536xbf16>, tensor<8x2097152xbf16>
}

// -----

#map = affine_map<(d0, d1) -> (d0, d1)>
#row = affine_map<(d0, d1) -> (d0)>

// Rows of 50257 start anywhere: vectors start where memory is aligned.

// CHECK-LABEL: func.func @odd_row
// CHECK:       "inner_reduction", {aligned = 1, chunks = 0, cluster = 1, groups = 0, row = "memory", rows = 1, threads = 512, unroll = 4, vector = 8},
// SM80-LABEL: func.func @odd_row
func.func @odd_row(%x: tensor<8x50257xbf16>) -> tensor<8xbf16> {
  %r = "fusion.kernel"(%x) ({
  ^bb0(%a: tensor<8x50257xbf16>):
    %least = arith.constant 0xFF80 : bf16
    %e = tensor.empty() : tensor<8xbf16>
    %init = linalg.fill ins(%least : bf16) outs(%e : tensor<8xbf16>) -> tensor<8xbf16>
    %m = linalg.generic {indexing_maps = [#map, #row], iterator_types = ["parallel", "reduction"]}
        ins(%a : tensor<8x50257xbf16>) outs(%init : tensor<8xbf16>) {
    ^bb0(%in: bf16, %out: bf16):
      %1 = arith.maximumf %in, %out : bf16
      linalg.yield %1 : bf16
    } -> tensor<8xbf16>
    "fusion.yield"(%m) : (tensor<8xbf16>) -> ()
  }) {name = "k", operandSegmentSizes = array<i32: 1, 0>} : (tensor<8x50257xbf16>) -> tensor<8xbf16>
  return %r : tensor<8xbf16>
}

// -----

#map = affine_map<(d0, d1) -> (d0, d1)>
#row = affine_map<(d0, d1) -> (d0)>
#weight = affine_map<(d0, d1) -> (d1)>

// Many long rows, and weights that all of them read. Without clusters, a row of 80 KiB with weights of as much is all that a multiprocessor
// holds: its block takes rows in turn, and one is on its way while another is computed.

// CHECK-LABEL: func.func @many_long_rows
// CHECK:       "inner_reduction", {aligned = 0, chunks = 0, cluster = 4, groups = 0, row = "shared", rows = 1, threads = 256, unroll = 2, vector = 8},
// SM80-LABEL: func.func @many_long_rows
// SM80:        cluster = 1, groups = 108, row = "shared", rows = 1, threads = 320
// SM80-SAME:     "40960 columns stay in the shared memory of a block: 320 threads with 16 vectors of 8 each; 108 blocks, one a multiprocessor, take rows in turn, and hold 8 of the vectors in registers"
// OFF-LABEL:  func.func @many_long_rows
// OFF:         cluster = 1, groups = 0
func.func @many_long_rows(%x: tensor<4096x40960xbf16>, %w: tensor<40960xbf16>) -> tensor<4096x40960xbf16> {
  %r = "fusion.kernel"(%x, %w) ({
  ^bb0(%a: tensor<4096x40960xbf16>, %b: tensor<40960xbf16>):
    %least = arith.constant 0xFF80 : bf16
    %e = tensor.empty() : tensor<4096xbf16>
    %init = linalg.fill ins(%least : bf16) outs(%e : tensor<4096xbf16>) -> tensor<4096xbf16>
    %m = linalg.generic {indexing_maps = [#map, #row], iterator_types = ["parallel", "reduction"]}
        ins(%a : tensor<4096x40960xbf16>) outs(%init : tensor<4096xbf16>) {
    ^bb0(%in: bf16, %out: bf16):
      %1 = arith.maximumf %in, %out : bf16
      linalg.yield %1 : bf16
    } -> tensor<4096xbf16>
    %e2 = tensor.empty() : tensor<4096x40960xbf16>
    %z = linalg.generic {indexing_maps = [#map, #row, #weight, #map], iterator_types = ["parallel", "parallel"]}
        ins(%a, %m, %b : tensor<4096x40960xbf16>, tensor<4096xbf16>, tensor<40960xbf16>) outs(%e2 : tensor<4096x40960xbf16>) {
    ^bb0(%in: bf16, %s: bf16, %t: bf16, %out: bf16):
      %1 = arith.minimumf %in, %s : bf16
      %2 = arith.maximumf %1, %t : bf16
      linalg.yield %2 : bf16
    } -> tensor<4096x40960xbf16>
    "fusion.yield"(%z) : (tensor<4096x40960xbf16>) -> ()
  }) {name = "k", operandSegmentSizes = array<i32: 2, 0>} : (tensor<4096x40960xbf16>, tensor<40960xbf16>) -> tensor<4096x40960xbf16>
  return %r : tensor<4096x40960xbf16>
}

// -----

#map = affine_map<(d0, d1) -> (d0, d1)>
#row = affine_map<(d0, d1) -> (d0)>

// Rows of 1.2 MiB take eight multiprocessors each. As many clusters as run at once take them in turn.

// CHECK-LABEL: func.func @longest_rows
// CHECK:       "inner_reduction", {aligned = 0, chunks = 14, cluster = 8, groups = 15, row = "shared", rows = 1, threads = 352, unroll = 7, vector = 4},
// CHECK-SAME:    "313600 columns stay in the shared memory of a cluster of 8 blocks: 352 threads with 28 vectors of 4 each; 15 clusters, all that there is room for, take rows in turn, and hold 14 of the vectors in registers"
// SM80-LABEL: func.func @longest_rows
// SM80:        cluster = 1, groups = 0, row = "memory"
// OFF-LABEL:  func.func @longest_rows
// OFF:         cluster = 1, groups = 0, row = "memory"
func.func @longest_rows(%x: tensor<256x313600xf32>) -> tensor<256x313600xf32> {
  %r = "fusion.kernel"(%x) ({
  ^bb0(%a: tensor<256x313600xf32>):
    %zero = arith.constant 0.0 : f32
    %e = tensor.empty() : tensor<256xf32>
    %init = linalg.fill ins(%zero : f32) outs(%e : tensor<256xf32>) -> tensor<256xf32>
    %m = linalg.generic {indexing_maps = [#map, #row], iterator_types = ["parallel", "reduction"]}
        ins(%a : tensor<256x313600xf32>) outs(%init : tensor<256xf32>) {
    ^bb0(%in: f32, %out: f32):
      %1 = arith.addf %in, %out : f32
      linalg.yield %1 : f32
    } -> tensor<256xf32>
    %e2 = tensor.empty() : tensor<256x313600xf32>
    %z = linalg.generic {indexing_maps = [#map, #row, #map], iterator_types = ["parallel", "parallel"]}
        ins(%a, %m : tensor<256x313600xf32>, tensor<256xf32>) outs(%e2 : tensor<256x313600xf32>) {
    ^bb0(%in: f32, %s: f32, %out: f32):
      %1 = arith.divf %in, %s : f32
      linalg.yield %1 : f32
    } -> tensor<256x313600xf32>
    "fusion.yield"(%z) : (tensor<256x313600xf32>) -> ()
  }) {name = "k", operandSegmentSizes = array<i32: 1, 0>} : (tensor<256x313600xf32>) -> tensor<256x313600xf32>
  return %r : tensor<256x313600xf32>
}

// No more rows than clusters: none has a second one to ask for.

// CHECK-LABEL: func.func @few_longest_rows
// CHECK:       "inner_reduction", {aligned = 0, chunks = 0, cluster = 8, groups = 0, row = "shared"
func.func @few_longest_rows(%x: tensor<15x313600xf32>) -> tensor<15x313600xf32> {
  %r = "fusion.kernel"(%x) ({
  ^bb0(%a: tensor<15x313600xf32>):
    %zero = arith.constant 0.0 : f32
    %e = tensor.empty() : tensor<15xf32>
    %init = linalg.fill ins(%zero : f32) outs(%e : tensor<15xf32>) -> tensor<15xf32>
    %m = linalg.generic {indexing_maps = [#map, #row], iterator_types = ["parallel", "reduction"]}
        ins(%a : tensor<15x313600xf32>) outs(%init : tensor<15xf32>) {
    ^bb0(%in: f32, %out: f32):
      %1 = arith.addf %in, %out : f32
      linalg.yield %1 : f32
    } -> tensor<15xf32>
    %e2 = tensor.empty() : tensor<15x313600xf32>
    %z = linalg.generic {indexing_maps = [#map, #row, #map], iterator_types = ["parallel", "parallel"]}
        ins(%a, %m : tensor<15x313600xf32>, tensor<15xf32>) outs(%e2 : tensor<15x313600xf32>) {
    ^bb0(%in: f32, %s: f32, %out: f32):
      %1 = arith.divf %in, %s : f32
      linalg.yield %1 : f32
    } -> tensor<15x313600xf32>
    "fusion.yield"(%z) : (tensor<15x313600xf32>) -> ()
  }) {name = "k", operandSegmentSizes = array<i32: 1, 0>} : (tensor<15x313600xf32>) -> tensor<15x313600xf32>
  return %r : tensor<15x313600xf32>
}

// -----

#map = affine_map<(d0, d1) -> (d0, d1)>
#column = affine_map<(d0, d1) -> (d1)>

// A sum over rows: threads side by side hold neighbouring columns, and the rows are shared among threads below.

// CHECK-LABEL: func.func @columns
// CHECK:       "outer_reduction", {across = 8, chunks = 1, down = 64, unroll = 1, vector = 4}
// CHECK-SAME:  "64 rows of 64 columns: 8 threads side by side with 4 columns each, 64 down, the rows in registers"
func.func @columns(%x: tensor<64x64xf32>) -> tensor<64xf32> {
  %r = "fusion.kernel"(%x) ({
  ^bb0(%a: tensor<64x64xf32>):
    %zero = arith.constant 0.0 : f32
    %e = tensor.empty() : tensor<64xf32>
    %init = linalg.fill ins(%zero : f32) outs(%e : tensor<64xf32>) -> tensor<64xf32>
    %m = linalg.generic {indexing_maps = [#map, #column], iterator_types = ["reduction", "parallel"]}
        ins(%a : tensor<64x64xf32>) outs(%init : tensor<64xf32>) {
    ^bb0(%in: f32, %out: f32):
      %1 = arith.addf %in, %out : f32
      linalg.yield %1 : f32
    } -> tensor<64xf32>
    "fusion.yield"(%m) : (tensor<64xf32>) -> ()
  }) {name = "k", operandSegmentSizes = array<i32: 1, 0>} : (tensor<64x64xf32>) -> tensor<64xf32>
  return %r : tensor<64xf32>
}

// -----

#map = affine_map<(d0, d1) -> (d0, d1)>

// What the function returns in another order of dimensions is written in it: the five do not merge with the eight.

// CHECK-LABEL: func.func @returned_in_another_order
// CHECK:       schedule = #fusion.schedule<"pointwise", {threads = 256, unroll = 1, vector = 1}
func.func @returned_in_another_order(%x: tensor<8x5xf32>)
    -> (tensor<8x5xf32> {fusion.layout = #fusion.layout<[1, 8], 0, 1>}) {
  %r = "fusion.kernel"(%x) ({
  ^bb0(%a: tensor<8x5xf32>):
    %e = tensor.empty() : tensor<8x5xf32>
    %y = linalg.generic {indexing_maps = [#map, #map], iterator_types = ["parallel", "parallel"]}
        ins(%a : tensor<8x5xf32>) outs(%e : tensor<8x5xf32>) {
    ^bb0(%in: f32, %out: f32):
      %1 = arith.negf %in : f32
      linalg.yield %1 : f32
    } -> tensor<8x5xf32>
    "fusion.yield"(%y) : (tensor<8x5xf32>) -> ()
  }) {name = "k", operandSegmentSizes = array<i32: 1, 0>} : (tensor<8x5xf32>) -> tensor<8x5xf32>
  return %r : tensor<8x5xf32>
}

// -----

#map = affine_map<(d0) -> (d0)>

// A schedule written by hand stays.

// CHECK-LABEL: func.func @by_hand
// CHECK:       schedule = #fusion.schedule<"pointwise", {vector = 1, threads = 32, unroll = 1}, "mine">
func.func @by_hand(%x: tensor<64xf32>) -> tensor<64xf32> {
  %r = "fusion.kernel"(%x) ({
  ^bb0(%a: tensor<64xf32>):
    %e = tensor.empty() : tensor<64xf32>
    %y = linalg.generic {indexing_maps = [#map, #map], iterator_types = ["parallel"]}
        ins(%a : tensor<64xf32>) outs(%e : tensor<64xf32>) {
    ^bb0(%in: f32, %out: f32):
      %1 = arith.negf %in : f32
      linalg.yield %1 : f32
    } -> tensor<64xf32>
    "fusion.yield"(%y) : (tensor<64xf32>) -> ()
  }) {name = "k", operandSegmentSizes = array<i32: 1, 0>,
      schedule = #fusion.schedule<"pointwise", {vector = 1, threads = 32, unroll = 1}, "mine">}
    : (tensor<64xf32>) -> tensor<64xf32>
  return %r : tensor<64xf32>
}

// -----

#map = affine_map<(d0, d1) -> (d0, d1)>
#transposed = affine_map<(d0, d1) -> (d1, d0)>

// Read along one axis, written along the other: tiles, through shared memory.

// CHECK-LABEL: func.func @transposed
// CHECK:       "transpose", {across = 64, down = 64, threads = 256, vector = 8},
// CHECK-SAME:    "1 of 2 inputs run along another axis, of 256: tiles of 64x64"
func.func @transposed(%x: tensor<512x256xbf16>, %y: tensor<256x512xbf16>) -> tensor<256x512xbf16> {
  %r = "fusion.kernel"(%x, %y) ({
  ^bb0(%a: tensor<512x256xbf16>, %b: tensor<256x512xbf16>):
    %e = tensor.empty() : tensor<256x512xbf16>
    %s = linalg.generic {indexing_maps = [#transposed, #map, #map], iterator_types = ["parallel", "parallel"]}
        ins(%a, %b : tensor<512x256xbf16>, tensor<256x512xbf16>) outs(%e : tensor<256x512xbf16>) {
    ^bb0(%in: bf16, %in2: bf16, %out: bf16):
      %1 = arith.maximumf %in, %in2 : bf16
      linalg.yield %1 : bf16
    } -> tensor<256x512xbf16>
    "fusion.yield"(%s) : (tensor<256x512xbf16>) -> ()
  }) {name = "k", operandSegmentSizes = array<i32: 2, 0>} : (tensor<512x256xbf16>, tensor<256x512xbf16>) -> tensor<256x512xbf16>
  return %r : tensor<256x512xbf16>
}

// -----

#map = affine_map<(d0, d1, d2) -> (d0, d1, d2)>
#last = affine_map<(d0, d1, d2) -> (d2, d0, d1)>

// Three channels only: a line of the input holds what ten neighbours need, so caches do without tiles.

// CHECK-LABEL: func.func @channels
// CHECK:       "pointwise", {{{.*}}vector = 1}
func.func @channels(%x: tensor<3x32x32xf32>) -> tensor<32x32x3xf32> {
  %r = "fusion.kernel"(%x) ({
  ^bb0(%a: tensor<3x32x32xf32>):
    %e = tensor.empty() : tensor<32x32x3xf32>
    %s = linalg.generic {indexing_maps = [#last, #map], iterator_types = ["parallel", "parallel", "parallel"]}
        ins(%a : tensor<3x32x32xf32>) outs(%e : tensor<32x32x3xf32>) {
    ^bb0(%in: f32, %out: f32):
      %1 = arith.negf %in : f32
      linalg.yield %1 : f32
    } -> tensor<32x32x3xf32>
    "fusion.yield"(%s) : (tensor<32x32x3xf32>) -> ()
  }) {name = "k", operandSegmentSizes = array<i32: 1, 0>} : (tensor<3x32x32xf32>) -> tensor<32x32x3xf32>
  return %r : tensor<32x32x3xf32>
}
