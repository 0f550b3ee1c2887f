// RUN: fusion-opt %s --split-input-file --verify-diagnostics --pass-pipeline='builtin.module(fusion-expand-copies)' | FileCheck %s

#shared = #gpu.address_space<workgroup>

// An index of 32 bits stays one until the last addition; 16 bytes go past the first level of the cache.
// CHECK-LABEL: gpu.func @short_index
// CHECK-SAME:    %[[X:[a-z0-9]+]]: memref<64xf32>
// CHECK-SAME:    workgroup(%[[S:.*]] : memref<64xf32
// CHECK:         %[[I:.*]] = gpu.thread_id x
// CHECK:         %[[BASE:.*]] = memref.extract_aligned_pointer_as_index %[[S]]
// CHECK:         %[[BYTES:.*]] = arith.muli %[[I]], %{{.*}} : index
// CHECK:         %[[SUM:.*]] = arith.addi %[[BASE]], %[[BYTES]] : index
// CHECK:         %[[SUM64:.*]] = arith.index_castui %[[SUM]] : index to i64
// CHECK:         %[[TO:.*]] = llvm.inttoptr %[[SUM64]] : i64 to !llvm.ptr<3>
// CHECK:         %[[PARTS:.*]] = builtin.unrealized_conversion_cast %[[X]] : memref<64xf32> to !llvm.struct<(ptr, ptr, i32, array<1 x i32>, array<1 x i32>)>
// CHECK:         %[[POINTER:.*]] = llvm.extractvalue %[[PARTS]][1]
// CHECK:         %[[GLOBAL:.*]] = llvm.addrspacecast %[[POINTER]] : !llvm.ptr to !llvm.ptr<1>
// CHECK:         %[[I64:.*]] = arith.index_castui %[[I]] : index to i64
// CHECK:         %[[FROM:.*]] = llvm.getelementptr %[[GLOBAL]][%[[I64]]]
// CHECK:         nvvm.cp.async.shared.global %[[TO]], %[[FROM]], 16, cache = cg
// CHECK-NEXT:    nvvm.cp.async.commit.group
// CHECK-NEXT:    nvvm.cp.async.wait.group 1
// CHECK-NEXT:    gpu.return
gpu.module @kernels attributes {dlti.dl_spec = #dlti.dl_spec<index = 32 : i64>} {
  gpu.func @short_index(%x: memref<64xf32>) workgroup(%s: memref<64xf32, #shared>) kernel {
    %i = gpu.thread_id x
    %copy = nvgpu.device_async_copy %x[%i], %s[%i], 4 {bypassL1} : memref<64xf32> to memref<64xf32, #shared>
    %group = nvgpu.device_async_create_group %copy
    nvgpu.device_async_wait %group {numGroups = 1 : i32}
    gpu.return
  }
}

// -----

#shared = #gpu.address_space<workgroup>

// Without a note of the module, an index has 64 bits; fewer bytes go through all levels of the cache.
// CHECK-LABEL: gpu.func @long_index
// CHECK:         to !llvm.struct<(ptr, ptr, i64, array<1 x i64>, array<1 x i64>)>
// CHECK:         nvvm.cp.async.shared.global %{{.*}}, %{{.*}}, 8, cache = ca
// CHECK:         nvvm.cp.async.wait.group 0
gpu.module @kernels {
  gpu.func @long_index(%x: memref<64xbf16>) workgroup(%s: memref<64xbf16, #shared>) kernel {
    %i = gpu.thread_id x
    %copy = nvgpu.device_async_copy %x[%i], %s[%i], 4 : memref<64xbf16> to memref<64xbf16, #shared>
    %group = nvgpu.device_async_create_group %copy
    nvgpu.device_async_wait %group
    gpu.return
  }
}

// -----

// What is not asynchronous is left alone.
// CHECK-LABEL: gpu.func @others
// CHECK-NEXT:    %[[I:.*]] = gpu.thread_id x
// CHECK-NEXT:    %[[V:.*]] = memref.load %{{.*}}[%[[I]]]
// CHECK-NEXT:    memref.store %[[V]], %{{.*}}[%[[I]]]
// CHECK-NEXT:    gpu.return
gpu.module @kernels {
  gpu.func @others(%x: memref<64xf32>, %y: memref<64xf32>) kernel {
    %i = gpu.thread_id x
    %v = memref.load %x[%i] : memref<64xf32>
    memref.store %v, %y[%i] : memref<64xf32>
    gpu.return
  }
}

// -----

#shared = #gpu.address_space<workgroup>

gpu.module @kernels {
  gpu.func @two_dimensions(%x: memref<8x8xf32>) workgroup(%s: memref<64xf32, #shared>) kernel {
    %i = gpu.thread_id x
    // expected-error @below {{an asynchronous copy takes one-dimensional memory and whole elements}}
    %copy = nvgpu.device_async_copy %x[%i, %i], %s[%i], 4 : memref<8x8xf32> to memref<64xf32, #shared>
    gpu.return
  }
}
