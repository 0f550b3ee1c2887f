// RUN: fusion-opt %s --split-input-file --pass-pipeline='builtin.module(fusion-segment,fusion-schedule)' | FileCheck %s --check-prefix=SCHEDULE
// RUN: fusion-opt %s --split-input-file --pass-pipeline='builtin.module(fusion-segment,fusion-schedule,fusion-plan-memory,fusion-to-gpu,canonicalize,cse)' | FileCheck %s
// RUN: fusion-opt %s --split-input-file --emit=ptx | FileCheck %s --check-prefix=PTX

#map = affine_map<(d0, d1) -> (d0, d1)>
#row = affine_map<(d0, d1) -> (d0)>
#point = affine_map<(d0, d1, d2) -> (d0, d1, d2)>
#part = affine_map<(d0, d1, d2) -> (d0, d2)>

// Rows are reduced, what is left of each element is stored, and columns of it are summed in 256 parts: one kernel, a
// block a part, that reads every row once. The loop carries the sums and the next rows; it has one barrier, for both of
// a thread's rows, and memory that is there twice.

// SCHEDULE-LABEL: func.func @rows_and_columns
// SCHEDULE-COUNT-1: "fusion.kernel"
// SCHEDULE:       schedule = #fusion.schedule<"row_and_column", {across = 256, ahead = 1, chunks = 1, cluster = 1, down = 2, stages = 0, unroll = 2, vector = 4}

// CHECK-LABEL: func.func @rows_and_columns
// CHECK-DAG:   %[[BLOCKS:.*]] = arith.constant 256 : index
// CHECK-DAG:   %[[THREADS:.*]] = arith.constant 512 : index
// CHECK:       gpu.launch_func @kernels::@addf_subf_0 blocks in (%[[BLOCKS]], {{.*}}) threads in (%[[THREADS]],
// CHECK:       gpu.func @addf_subf_0(
// CHECK-SAME:    memref<32xf32, #gpu.address_space<workgroup>>
// CHECK-DAG:   %[[ONE:.*]] = arith.constant 1 : index
// CHECK:       vector.load {{.*}} {alignment = 16 : i64} : memref<33554432xf32>, vector<4xf32>
// CHECK:       vector.load {{.*}} {alignment = 16 : i64} : memref<33554432xf32>, vector<4xf32>
// CHECK:       %[[R:.*]]:4 = scf.for {{.*}} iter_args(%[[TURN:.*]] = %{{.*}}, %[[SUM:.*]] = %{{.*}}, %[[A:.*]] = %{{.*}}, %[[B:.*]] = %{{.*}})
// CHECK:         vector.load {{.*}} : memref<33554432xf32>, vector<4xf32>
// CHECK:         vector.load {{.*}} : memref<33554432xf32>, vector<4xf32>
// CHECK:         gpu.shuffle
// CHECK:         gpu.barrier
// CHECK-NOT:     gpu.barrier
// CHECK:         vector.store {{.*}} {alignment = 16 : i64}
// CHECK:         vector.store {{.*}} {alignment = 16 : i64}
// CHECK:         arith.xori %[[TURN]], %[[ONE]]
// CHECK:         scf.yield
// CHECK:       gpu.barrier
// CHECK-NOT:   gpu.barrier
// CHECK:       scf.if
// CHECK:         vector.store {{.*}} : memref<262144xf32>, vector<4xf32>

// PTX:     ld.global.v4
// PTX:     st.global.v4
// PTX-NOT: {{[.]local|atom[.]|[^a-z]red[.]}}
func.func @rows_and_columns(%x: tensor<32768x1024xf32>) -> (tensor<32768x1024xf32>, tensor<256x1024xf32>) {
  %r:2 = "fusion.region"(%x) ({
  ^bb0(%a: tensor<32768x1024xf32>):
    %zero = arith.constant 0.0 : f32
    %e = tensor.empty() : tensor<32768xf32>
    %init = linalg.fill ins(%zero : f32) outs(%e : tensor<32768xf32>) -> tensor<32768xf32>
    %rows = linalg.generic {indexing_maps = [#map, #row], iterator_types = ["parallel", "reduction"]}
        ins(%a : tensor<32768x1024xf32>) outs(%init : tensor<32768xf32>) {
    ^bb0(%in: f32, %out: f32):
      %1 = arith.addf %in, %out : f32
      linalg.yield %1 : f32
    } -> tensor<32768xf32>
    %e2 = tensor.empty() : tensor<32768x1024xf32>
    %y = linalg.generic {indexing_maps = [#map, #row, #map], iterator_types = ["parallel", "parallel"]}
        ins(%a, %rows : tensor<32768x1024xf32>, tensor<32768xf32>) outs(%e2 : tensor<32768x1024xf32>) {
    ^bb0(%in: f32, %s: f32, %out: f32):
      %1 = arith.subf %in, %s : f32
      linalg.yield %1 : f32
    } -> tensor<32768x1024xf32>
    %cut = tensor.expand_shape %y [[0, 1], [2]] output_shape [256, 128, 1024]
        : tensor<32768x1024xf32> into tensor<256x128x1024xf32>
    %e3 = tensor.empty() : tensor<256x1024xf32>
    %init3 = linalg.fill ins(%zero : f32) outs(%e3 : tensor<256x1024xf32>) -> tensor<256x1024xf32>
    %columns = linalg.generic {indexing_maps = [#point, #part], iterator_types = ["parallel", "reduction", "parallel"]}
        ins(%cut : tensor<256x128x1024xf32>) outs(%init3 : tensor<256x1024xf32>) attrs = {fusion.partial} {
    ^bb0(%in: f32, %out: f32):
      %1 = arith.addf %in, %out : f32
      linalg.yield %1 : f32
    } -> tensor<256x1024xf32>
    "fusion.yield"(%y, %columns) : (tensor<32768x1024xf32>, tensor<256x1024xf32>) -> ()
  }) : (tensor<32768x1024xf32>) -> (tensor<32768x1024xf32>, tensor<256x1024xf32>)
  return %r#0, %r#1 : tensor<32768x1024xf32>, tensor<256x1024xf32>
}

// -----

#map = affine_map<(d0, d1) -> (d0, d1)>
#row = affine_map<(d0, d1) -> (d0)>
#point = affine_map<(d0, d1, d2) -> (d0, d1, d2)>
#part = affine_map<(d0, d1, d2) -> (d0, d2)>

// A thread's 24 columns leave no registers for its next ones: they are on their way to shared memory, of which four
// iterations have a part in turn.

// SCHEDULE-LABEL: func.func @wide_rows
// SCHEDULE:       schedule = #fusion.schedule<"row_and_column", {across = 512, ahead = 1, chunks = 6, cluster = 1, down = 1, stages = 4, unroll = 1, vector = 4}

// CHECK-LABEL: func.func @wide_rows
// CHECK:       dynamic_shared_memory_size %{{.*}} args
// CHECK:       gpu.func @addf_subf_0(
// CHECK:       %[[GROUP:.*]] = nvgpu.device_async_create_group
// CHECK-COUNT-18: nvgpu.device_async_copy
// CHECK:       scf.for
// CHECK:         nvgpu.device_async_wait %[[GROUP]] {numGroups = 2 : i32}
// CHECK:         %[[EXISTS:.*]] = arith.cmpi ult
// CHECK:         scf.if %[[EXISTS]] {
// CHECK-COUNT-6:   nvgpu.device_async_copy
// CHECK:         nvgpu.device_async_create_group
// CHECK:         gpu.barrier
// CHECK:         vector.store

// PTX:     cp.async.cg.shared.global
// PTX:     cp.async.wait_group 2
func.func @wide_rows(%x: tensor<4096x12288xf32>) -> (tensor<4096x12288xf32>, tensor<128x12288xf32>) {
  %r:2 = "fusion.region"(%x) ({
  ^bb0(%a: tensor<4096x12288xf32>):
    %zero = arith.constant 0.0 : f32
    %e = tensor.empty() : tensor<4096xf32>
    %init = linalg.fill ins(%zero : f32) outs(%e : tensor<4096xf32>) -> tensor<4096xf32>
    %rows = linalg.generic {indexing_maps = [#map, #row], iterator_types = ["parallel", "reduction"]}
        ins(%a : tensor<4096x12288xf32>) outs(%init : tensor<4096xf32>) {
    ^bb0(%in: f32, %out: f32):
      %1 = arith.addf %in, %out : f32
      linalg.yield %1 : f32
    } -> tensor<4096xf32>
    %e2 = tensor.empty() : tensor<4096x12288xf32>
    %y = linalg.generic {indexing_maps = [#map, #row, #map], iterator_types = ["parallel", "parallel"]}
        ins(%a, %rows : tensor<4096x12288xf32>, tensor<4096xf32>) outs(%e2 : tensor<4096x12288xf32>) {
    ^bb0(%in: f32, %s: f32, %out: f32):
      %1 = arith.subf %in, %s : f32
      linalg.yield %1 : f32
    } -> tensor<4096x12288xf32>
    %cut = tensor.expand_shape %y [[0, 1], [2]] output_shape [128, 32, 12288]
        : tensor<4096x12288xf32> into tensor<128x32x12288xf32>
    %e3 = tensor.empty() : tensor<128x12288xf32>
    %init3 = linalg.fill ins(%zero : f32) outs(%e3 : tensor<128x12288xf32>) -> tensor<128x12288xf32>
    %columns = linalg.generic {indexing_maps = [#point, #part], iterator_types = ["parallel", "reduction", "parallel"]}
        ins(%cut : tensor<128x32x12288xf32>) outs(%init3 : tensor<128x12288xf32>) attrs = {fusion.partial} {
    ^bb0(%in: f32, %out: f32):
      %1 = arith.addf %in, %out : f32
      linalg.yield %1 : f32
    } -> tensor<128x12288xf32>
    "fusion.yield"(%y, %columns) : (tensor<4096x12288xf32>, tensor<128x12288xf32>) -> ()
  }) : (tensor<4096x12288xf32>) -> (tensor<4096x12288xf32>, tensor<128x12288xf32>)
  return %r#0, %r#1 : tensor<4096x12288xf32>, tensor<128x12288xf32>
}

// -----

#map = affine_map<(d0, d1) -> (d0, d1)>
#row = affine_map<(d0, d1) -> (d0)>
#point = affine_map<(d0, d1, d2) -> (d0, d1, d2)>
#part = affine_map<(d0, d1, d2) -> (d0, d2)>

// Four blocks share a row, and leave each other what their parts of it come to.

// SCHEDULE-LABEL: func.func @widest_rows
// SCHEDULE:       schedule = #fusion.schedule<"row_and_column", {across = 512, ahead = 1, chunks = 4, cluster = 4, down = 1, stages = 0, unroll = 1, vector = 4}
// SCHEDULE-SAME:    "32768 columns stay with 512 threads in each of 4 blocks, 4 vectors of 4 each; 1 x 1 rows at once"

// CHECK-LABEL: func.func @widest_rows
// CHECK-DAG:   %[[BLOCKS:.*]] = arith.constant 256 : index
// CHECK:       gpu.launch_func @kernels::@addf_subf_0 blocks in (%[[BLOCKS]],
// CHECK:       gpu.func @addf_subf_0(
// CHECK-SAME:    memref<128xf32, #gpu.address_space<workgroup>>
// CHECK-SAME:    known_cluster_size = array<i32: 4, 1, 1>
// CHECK:       nvvm.cluster.arrive
// CHECK:       nvvm.cluster.wait
// CHECK:       gpu.cluster_id x
// CHECK:       scf.for
// CHECK:         nvvm.mapa
// CHECK:         llvm.store
// CHECK:         nvvm.cluster.arrive
// CHECK:         nvvm.cluster.wait
// CHECK-NOT:     gpu.barrier
// CHECK:         vector.store

// PTX:     barrier.cluster.arrive
func.func @widest_rows(%x: tensor<1024x32768xf32>) -> (tensor<1024x32768xf32>, tensor<64x32768xf32>) {
  %r:2 = "fusion.region"(%x) ({
  ^bb0(%a: tensor<1024x32768xf32>):
    %zero = arith.constant 0.0 : f32
    %e = tensor.empty() : tensor<1024xf32>
    %init = linalg.fill ins(%zero : f32) outs(%e : tensor<1024xf32>) -> tensor<1024xf32>
    %rows = linalg.generic {indexing_maps = [#map, #row], iterator_types = ["parallel", "reduction"]}
        ins(%a : tensor<1024x32768xf32>) outs(%init : tensor<1024xf32>) {
    ^bb0(%in: f32, %out: f32):
      %1 = arith.addf %in, %out : f32
      linalg.yield %1 : f32
    } -> tensor<1024xf32>
    %e2 = tensor.empty() : tensor<1024x32768xf32>
    %y = linalg.generic {indexing_maps = [#map, #row, #map], iterator_types = ["parallel", "parallel"]}
        ins(%a, %rows : tensor<1024x32768xf32>, tensor<1024xf32>) outs(%e2 : tensor<1024x32768xf32>) {
    ^bb0(%in: f32, %s: f32, %out: f32):
      %1 = arith.subf %in, %s : f32
      linalg.yield %1 : f32
    } -> tensor<1024x32768xf32>
    %cut = tensor.expand_shape %y [[0, 1], [2]] output_shape [64, 16, 32768]
        : tensor<1024x32768xf32> into tensor<64x16x32768xf32>
    %e3 = tensor.empty() : tensor<64x32768xf32>
    %init3 = linalg.fill ins(%zero : f32) outs(%e3 : tensor<64x32768xf32>) -> tensor<64x32768xf32>
    %columns = linalg.generic {indexing_maps = [#point, #part], iterator_types = ["parallel", "reduction", "parallel"]}
        ins(%cut : tensor<64x16x32768xf32>) outs(%init3 : tensor<64x32768xf32>) attrs = {fusion.partial} {
    ^bb0(%in: f32, %out: f32):
      %1 = arith.addf %in, %out : f32
      linalg.yield %1 : f32
    } -> tensor<64x32768xf32>
    "fusion.yield"(%y, %columns) : (tensor<1024x32768xf32>, tensor<64x32768xf32>) -> ()
  }) : (tensor<1024x32768xf32>) -> (tensor<1024x32768xf32>, tensor<64x32768xf32>)
  return %r#0, %r#1 : tensor<1024x32768xf32>, tensor<64x32768xf32>
}

// -----

#point = affine_map<(d0, d1, d2) -> (d0, d1, d2)>
#part = affine_map<(d0, d1, d2) -> (d0, d2)>

// Sums of columns alone have nothing of rows: the family does not take them.

// SCHEDULE-LABEL: func.func @columns
// SCHEDULE:       #fusion.schedule<"outer_reduction"
// CHECK-LABEL: func.func @columns
func.func @columns(%x: tensor<256x128x1024xf32>) -> tensor<256x1024xf32> {
  %r = "fusion.region"(%x) ({
  ^bb0(%a: tensor<256x128x1024xf32>):
    %zero = arith.constant 0.0 : f32
    %e = tensor.empty() : tensor<256x1024xf32>
    %init = linalg.fill ins(%zero : f32) outs(%e : tensor<256x1024xf32>) -> tensor<256x1024xf32>
    %columns = linalg.generic {indexing_maps = [#point, #part], iterator_types = ["parallel", "reduction", "parallel"]}
        ins(%a : tensor<256x128x1024xf32>) outs(%init : tensor<256x1024xf32>) attrs = {fusion.partial} {
    ^bb0(%in: f32, %out: f32):
      %1 = arith.addf %in, %out : f32
      linalg.yield %1 : f32
    } -> tensor<256x1024xf32>
    "fusion.yield"(%columns) : (tensor<256x1024xf32>) -> ()
  }) : (tensor<256x128x1024xf32>) -> tensor<256x1024xf32>
  return %r : tensor<256x1024xf32>
}
