// RUN: fusion-opt %s --split-input-file --pass-pipeline='builtin.module(fusion-to-gpu,canonicalize,cse)' | FileCheck %s

#map = affine_map<(d0) -> (d0)>

// Pointwise: a vector a thread, and a scalar tail for what the vectors leave over. Equal kernels are one function.

// CHECK-LABEL: func.func @pointwise
// CHECK-SAME:    (%[[X:.*]]: memref<1030xf32>, %[[Y:.*]]: memref<1030xf32>, %[[Z:.*]]: memref<1030xf32>)
// CHECK-DAG:   %[[BLOCKS:.*]] = arith.constant 9 : index
// CHECK-DAG:   %[[THREADS:.*]] = arith.constant 32 : index
// CHECK:       gpu.launch_func @kernels::@exp_0 blocks in (%[[BLOCKS]], {{.*}}) threads in (%[[THREADS]], {{.*}}) args(%[[X]] : memref<1030xf32>, %[[Y]] : memref<1030xf32>)
// CHECK:       gpu.launch_func @kernels::@exp_0 {{.*}} args(%[[Y]] : memref<1030xf32>, %[[Z]] : memref<1030xf32>)
// CHECK:       gpu.module @kernels
// CHECK:       gpu.func @exp_0(%[[IN:.*]]: memref<1030xf32>, %[[OUT:.*]]: memref<1030xf32>) kernel
// CHECK-SAME:    known_block_size = array<i32: 32, 1, 1>
// CHECK:       %[[B:.*]] = gpu.block_id x
// CHECK:       %[[FIRST:.*]] = arith.muli %[[B]],
// CHECK:       %[[T:.*]] = gpu.thread_id x
// CHECK:       %[[UNIT:.*]] = arith.addi %[[FIRST]], %[[T]]
// CHECK:       scf.if
// CHECK:         %[[V:.*]] = vector.load %{{.*}} {alignment = 16 : i64} : memref<1030xf32>, vector<4xf32>
// CHECK:         %[[E:.*]] = math.exp %[[V]] : vector<4xf32>
// CHECK:         vector.store %[[E]], %{{.*}} {alignment = 16 : i64}
// CHECK:       scf.if
// CHECK:         %[[S:.*]] = memref.load
// CHECK:         math.exp %[[S]] : f32
// CHECK:         memref.store
// CHECK-NOT:   gpu.func
func.func @pointwise(%x: memref<1030xf32>, %y: memref<1030xf32>, %z: memref<1030xf32>) {
  "fusion.kernel"(%x, %y) ({
  ^bb0(%a: tensor<1030xf32>):
    %e = tensor.empty() : tensor<1030xf32>
    %r = linalg.generic {indexing_maps = [#map, #map], iterator_types = ["parallel"]}
        ins(%a : tensor<1030xf32>) outs(%e : tensor<1030xf32>) {
    ^bb0(%in: f32, %out: f32):
      %1 = math.exp %in : f32
      linalg.yield %1 : f32
    } -> tensor<1030xf32>
    "fusion.yield"(%r) : (tensor<1030xf32>) -> ()
  }) {name = "exp_0", operandSegmentSizes = array<i32: 1, 1>,
      schedule = #fusion.schedule<"pointwise", {vector = 4, threads = 32, unroll = 1}, "">}
    : (memref<1030xf32>, memref<1030xf32>) -> ()
  "fusion.kernel"(%y, %z) ({
  ^bb0(%a: tensor<1030xf32>):
    %e = tensor.empty() : tensor<1030xf32>
    %r = linalg.generic {indexing_maps = [#map, #map], iterator_types = ["parallel"]}
        ins(%a : tensor<1030xf32>) outs(%e : tensor<1030xf32>) {
    ^bb0(%in: f32, %out: f32):
      %1 = math.exp %in : f32
      linalg.yield %1 : f32
    } -> tensor<1030xf32>
    "fusion.yield"(%r) : (tensor<1030xf32>) -> ()
  }) {name = "exp_1", operandSegmentSizes = array<i32: 1, 1>,
      schedule = #fusion.schedule<"pointwise", {vector = 4, threads = 32, unroll = 1}, "">}
    : (memref<1030xf32>, memref<1030xf32>) -> ()
  return
}

// -----

#map = affine_map<(d0, d1) -> (d0, d1)>
#row = affine_map<(d0, d1) -> (d0)>

// A row a block: the chunks stay in registers, lanes and threads are joined by shuffles, warps through shared
// memory with one barrier, and the row is not read again.

// CHECK-LABEL: gpu.func @softmax_like
// CHECK-SAME:    workgroup(%[[SHARED:.*]] : memref<2xf32, #gpu.address_space<workgroup>> {llvm.align = 16 : i64})
// CHECK:       %[[ROW:.*]] = gpu.block_id x
// CHECK:       %[[V0:.*]] = vector.load
// CHECK:       arith.addf %[[V0]],
// CHECK:       %[[V1:.*]] = vector.load
// CHECK:       arith.addf %{{.*}}, %[[V1]] : vector<4xf32>
// CHECK-COUNT-5: gpu.shuffle xor
// CHECK:       scf.if
// CHECK:         memref.store %{{.*}}, %[[SHARED]]
// CHECK:       gpu.barrier
// CHECK:       memref.load %[[SHARED]]
// CHECK:       gpu.shuffle xor
// CHECK:       %[[TOTAL:.*]] = vector.broadcast
// CHECK:       arith.divf %[[V0]], %[[TOTAL]]
// CHECK:       arith.divf %[[V1]], %[[TOTAL]]
// CHECK-NOT:   vector.load
// CHECK:       vector.store
// CHECK:       vector.store
// CHECK-NOT:   gpu.barrier
// CHECK:       gpu.return
func.func @main(%x: memref<3x512xf32>, %y: memref<3x512xf32>) {
  "fusion.kernel"(%x, %y) ({
  ^bb0(%a: tensor<3x512xf32>):
    %zero = arith.constant 0.0 : f32
    %e = tensor.empty() : tensor<3xf32>
    %init = linalg.fill ins(%zero : f32) outs(%e : tensor<3xf32>) -> tensor<3xf32>
    %sum = linalg.generic {indexing_maps = [#map, #row], iterator_types = ["parallel", "reduction"]}
        ins(%a : tensor<3x512xf32>) outs(%init : tensor<3xf32>) {
    ^bb0(%in: f32, %out: f32):
      %1 = arith.addf %in, %out : f32
      linalg.yield %1 : f32
    } -> tensor<3xf32>
    %e2 = tensor.empty() : tensor<3x512xf32>
    %r = linalg.generic {indexing_maps = [#map, #row, #map], iterator_types = ["parallel", "parallel"]}
        ins(%a, %sum : tensor<3x512xf32>, tensor<3xf32>) outs(%e2 : tensor<3x512xf32>) {
    ^bb0(%in: f32, %s: f32, %out: f32):
      %1 = arith.divf %in, %s : f32
      linalg.yield %1 : f32
    } -> tensor<3x512xf32>
    "fusion.yield"(%r) : (tensor<3x512xf32>) -> ()
  }) {name = "softmax_like", operandSegmentSizes = array<i32: 1, 1>, schedule = #fusion.schedule<
      "inner_reduction", {vector = 4, aligned = 0, threads = 64, cluster = 1, groups = 0, row = "registers", rows = 1, chunks = 2, unroll = 1}, "">}
    : (memref<3x512xf32>, memref<3x512xf32>) -> ()
  return
}

// -----

#map = affine_map<(d0, d1) -> (d0, d1)>
#row = affine_map<(d0, d1) -> (d0)>

// Two blocks share a row. The first walk puts it into shared memory, whose size the launch says; each warp leaves its
// sum with both blocks, and all wait once.

// CHECK-LABEL: func.func @main
// CHECK:         %[[BYTES:.*]] = arith.constant 2048 : i32
// CHECK:         gpu.launch_func @kernels::@shared blocks in (%{{.*}}) threads in (%{{.*}}) dynamic_shared_memory_size %[[BYTES]]
// CHECK-LABEL: gpu.func @shared
// CHECK-SAME:    workgroup(%[[SLOTS:.*]] : memref<4xf32, #gpu.address_space<workgroup>>
// CHECK-SAME:    known_cluster_size = array<i32: 2, 1, 1>
// CHECK:         %[[ALL:.*]] = gpu.dynamic_shared_memory
// CHECK:         %[[OWN:.*]] = memref.view %[[ALL]]{{.*}} to memref<512xf32, #gpu.address_space<workgroup>>
// CHECK:         nvvm.cluster.arrive {aligned}
// CHECK:         scf.for
// CHECK:           %[[LOADED:.*]] = vector.load
// CHECK:           vector.store %[[LOADED]], %[[OWN]]
// CHECK:           arith.addf
// CHECK:         nvvm.cluster.wait {aligned}
// CHECK:         scf.if
// CHECK:           %[[THERE:.*]] = nvvm.mapa
// CHECK:           llvm.store %{{.*}}, %[[THERE]] : f32, !llvm.ptr<7>
// CHECK:         nvvm.cluster.arrive {aligned}
// CHECK:         nvvm.cluster.wait {aligned}
// CHECK:         memref.load %[[SLOTS]]
// CHECK-NOT:     gpu.barrier
// CHECK:         scf.for
// CHECK:           vector.load %[[OWN]]
// CHECK:           arith.divf
// CHECK:           vector.store
func.func @main(%x: memref<3x1024xf32>, %y: memref<3x1024xf32>) {
  "fusion.kernel"(%x, %y) ({
  ^bb0(%a: tensor<3x1024xf32>):
    %zero = arith.constant 0.0 : f32
    %e = tensor.empty() : tensor<3xf32>
    %init = linalg.fill ins(%zero : f32) outs(%e : tensor<3xf32>) -> tensor<3xf32>
    %sum = linalg.generic {indexing_maps = [#map, #row], iterator_types = ["parallel", "reduction"]}
        ins(%a : tensor<3x1024xf32>) outs(%init : tensor<3xf32>) {
    ^bb0(%in: f32, %out: f32):
      %1 = arith.addf %in, %out : f32
      linalg.yield %1 : f32
    } -> tensor<3xf32>
    %e2 = tensor.empty() : tensor<3x1024xf32>
    %r = linalg.generic {indexing_maps = [#map, #row, #map], iterator_types = ["parallel", "parallel"]}
        ins(%a, %sum : tensor<3x1024xf32>, tensor<3xf32>) outs(%e2 : tensor<3x1024xf32>) {
    ^bb0(%in: f32, %s: f32, %out: f32):
      %1 = arith.divf %in, %s : f32
      linalg.yield %1 : f32
    } -> tensor<3x1024xf32>
    "fusion.yield"(%r) : (tensor<3x1024xf32>) -> ()
  }) {name = "shared", operandSegmentSizes = array<i32: 1, 1>, schedule = #fusion.schedule<
      "inner_reduction", {vector = 4, aligned = 0, threads = 64, cluster = 2, groups = 0, row = "shared", rows = 1, chunks = 0, unroll = 1}, "">}
    : (memref<3x1024xf32>, memref<3x1024xf32>) -> ()
  return
}

// -----

#map = affine_map<(d0, d1) -> (d0, d1)>
#row = affine_map<(d0, d1) -> (d0)>

// One cluster takes the rows in turn. What is stored makes place for the next row, if there is one: it is on its way
// until the first pass waits for it, a turn after the other. Blocks that are done with a row say so, and wait for the
// others before they write to their memory again.

// CHECK-LABEL: gpu.func @in_turn
// CHECK-SAME:    (%[[IN:[a-z0-9]+]]: memref<3x1024xf32>
// CHECK:         %[[GROUP:.*]] = nvgpu.device_async_create_group
// CHECK:         %[[X:.*]] = memref.reinterpret_cast %[[IN]]
// CHECK:         nvvm.cluster.arrive {aligned}
// CHECK:         %[[FIRST:.*]] = gpu.cluster_id x
// CHECK:         scf.for
// CHECK:           scf.if
// CHECK:             nvgpu.device_async_copy %[[X]][%{{.*}}], %[[OWN:.*]][%{{.*}}], 4 {bypassL1}
// CHECK:           nvgpu.device_async_create_group
// CHECK:         scf.for %[[ROW:.*]] = %[[FIRST]]
// CHECK:           %[[NEXT:.*]] = arith.addi %[[ROW]], %{{.*}} : index
// CHECK:           %[[EXISTS:.*]] = arith.cmpi ult, %[[NEXT]], %{{.*}} : index
// CHECK:           scf.for
// CHECK:             nvgpu.device_async_create_group
// CHECK-NEXT:        nvgpu.device_async_wait %[[GROUP]] {numGroups = 2 : i32}
// CHECK:             %[[V:.*]] = vector.load %[[OWN]]
// CHECK:             arith.addf %{{.*}}, %[[V]]
// CHECK:           nvvm.cluster.wait {aligned}
// CHECK:           nvvm.cluster.arrive {aligned}
// CHECK:           nvvm.cluster.wait {aligned}
// CHECK:           scf.for
// CHECK:             %[[W:.*]] = vector.load %[[OWN]][%[[PLACE:.*]]] {alignment
// CHECK:             arith.divf %[[W]]
// CHECK:             vector.store
// CHECK:             scf.if %[[EXISTS]]
// CHECK:               nvgpu.device_async_copy %[[X]][%{{.*}}], %[[OWN]][%[[PLACE]]], 4 {bypassL1}
// CHECK:             nvgpu.device_async_create_group
// CHECK:           nvvm.cluster.arrive {aligned}
// CHECK:         nvvm.cluster.wait {aligned}
func.func @main(%x: memref<3x1024xf32>, %y: memref<3x1024xf32>) {
  "fusion.kernel"(%x, %y) ({
  ^bb0(%a: tensor<3x1024xf32>):
    %zero = arith.constant 0.0 : f32
    %e = tensor.empty() : tensor<3xf32>
    %init = linalg.fill ins(%zero : f32) outs(%e : tensor<3xf32>) -> tensor<3xf32>
    %sum = linalg.generic {indexing_maps = [#map, #row], iterator_types = ["parallel", "reduction"]}
        ins(%a : tensor<3x1024xf32>) outs(%init : tensor<3xf32>) {
    ^bb0(%in: f32, %out: f32):
      %1 = arith.addf %in, %out : f32
      linalg.yield %1 : f32
    } -> tensor<3xf32>
    %e2 = tensor.empty() : tensor<3x1024xf32>
    %r = linalg.generic {indexing_maps = [#map, #row, #map], iterator_types = ["parallel", "parallel"]}
        ins(%a, %sum : tensor<3x1024xf32>, tensor<3xf32>) outs(%e2 : tensor<3x1024xf32>) {
    ^bb0(%in: f32, %s: f32, %out: f32):
      %1 = arith.divf %in, %s : f32
      linalg.yield %1 : f32
    } -> tensor<3x1024xf32>
    "fusion.yield"(%r) : (tensor<3x1024xf32>) -> ()
  }) {name = "in_turn", operandSegmentSizes = array<i32: 1, 1>, schedule = #fusion.schedule<
      "inner_reduction", {vector = 4, aligned = 0, threads = 64, cluster = 2, groups = 1, row = "shared", rows = 1, chunks = 0, unroll = 1}, "">}
    : (memref<3x1024xf32>, memref<3x1024xf32>) -> ()
  return
}

// -----

#map = affine_map<(d0, d1) -> (d0, d1)>
#column = affine_map<(d0, d1) -> (d1)>

// Generic: a thread an output element, the reduction a loop in it. A strided argument is read where it lies, and
// a boolean result is a byte in memory.

// CHECK-LABEL: gpu.func @columns
// CHECK-SAME:    %[[X:.*]]: memref<3x5xf32, strided<[1, 7]>>, %[[Y:.*]]: memref<5xi8>
// CHECK:       memref.reinterpret_cast %[[X]] to offset: [0], sizes: [31], strides: [1]
// CHECK:       %[[SUM:.*]] = scf.for {{.*}} iter_args
// CHECK:         memref.load
// CHECK:         arith.addf
// CHECK:       %[[BIT:.*]] = arith.cmpf ogt, %[[SUM]]
// CHECK:       %[[BYTE:.*]] = arith.extui %[[BIT]] : i1 to i8
// CHECK:       memref.store %[[BYTE]]
func.func @main(%x: memref<3x5xf32, strided<[1, 7]>>, %y: memref<5xi8>) {
  "fusion.kernel"(%x, %y) ({
  ^bb0(%a: tensor<3x5xf32>):
    %zero = arith.constant 0.0 : f32
    %e = tensor.empty() : tensor<5xf32>
    %init = linalg.fill ins(%zero : f32) outs(%e : tensor<5xf32>) -> tensor<5xf32>
    %sum = linalg.generic {indexing_maps = [#map, #column], iterator_types = ["reduction", "parallel"]}
        ins(%a : tensor<3x5xf32>) outs(%init : tensor<5xf32>) {
    ^bb0(%in: f32, %out: f32):
      %1 = arith.addf %in, %out : f32
      linalg.yield %1 : f32
    } -> tensor<5xf32>
    %e2 = tensor.empty() : tensor<5xi1>
    %r = linalg.generic {indexing_maps = [affine_map<(d0) -> (d0)>, affine_map<(d0) -> (d0)>], iterator_types = ["parallel"]}
        ins(%sum : tensor<5xf32>) outs(%e2 : tensor<5xi1>) {
    ^bb0(%in: f32, %out: i1):
      %1 = arith.cmpf ogt, %in, %zero : f32
      linalg.yield %1 : i1
    } -> tensor<5xi1>
    "fusion.yield"(%r) : (tensor<5xi1>) -> ()
  }) {name = "columns", operandSegmentSizes = array<i32: 1, 1>,
      schedule = #fusion.schedule<"generic", {threads = 128}, "">}
    : (memref<3x5xf32, strided<[1, 7]>>, memref<5xi8>) -> ()
  return
}

// -----

// No kernel: nothing to do, and no gpu.module.

// CHECK-LABEL: func.func @nothing
// CHECK-NOT:   gpu.module
func.func @nothing(%x: memref<3xf32>) -> memref<3xf32> {
  return %x : memref<3xf32>
}
