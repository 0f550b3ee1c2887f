// mlir-fusion run --target=simt runs what becomes PTX, checked; a finding is an error at the operation.
//
// RUN: split-file %s %t
// RUN: mlir-fusion run %t/clean.mlir --target=simt --compare=none | FileCheck %s --check-prefix=CLEAN
// RUN: not mlir-fusion run %t/race.mlir --target=simt 2>&1 | FileCheck %s --check-prefix=RACE
// RUN: fusion-opt %t/clean.mlir --target=simt --emit=gpu | FileCheck %s --check-prefix=GPU

// CLEAN: result 0: 16x32 float32 differs in 0 of 512 elements

// RACE: race.mlir:9:{{[0-9]+}}: error: race: reads what another thread writes, with no barrier in between (thread 1 of block 0), by thread 0 of block 0 and 31 more; in kernel @k: %{{.*}} = memref.load

// GPU: gpu.func @exp_0({{.*}}) kernel

//--- clean.mlir
func.func @main(%x: tensor<16x32xf32>) -> tensor<16x32xf32> {
  %0 = tensor.empty() : tensor<16x32xf32>
  %y = linalg.exp ins(%x : tensor<16x32xf32>) outs(%0 : tensor<16x32xf32>) -> tensor<16x32xf32>
  return %y : tensor<16x32xf32>
}

//--- race.mlir
module attributes {gpu.container_module} {
  gpu.module @kernels {
    gpu.func @k(%x: memref<32xf32>) workgroup(%s: memref<32xf32, #gpu.address_space<workgroup>>) kernel {
      %t = gpu.thread_id x
      %c1 = arith.constant 1 : index
      %v = memref.load %x[%t] : memref<32xf32>
      memref.store %v, %s[%t] : memref<32xf32, #gpu.address_space<workgroup>>
      %other = arith.xori %t, %c1 : index
      %w = memref.load %s[%other] : memref<32xf32, #gpu.address_space<workgroup>>
      memref.store %w, %x[%t] : memref<32xf32>
      gpu.return
    }
  }
  func.func @main(%x: memref<32xf32>) -> memref<32xf32> {
    %c1 = arith.constant 1 : index
    %c32 = arith.constant 32 : index
    gpu.launch_func @kernels::@k blocks in (%c1, %c1, %c1) threads in (%c32, %c1, %c1) args(%x : memref<32xf32>)
    return %x : memref<32xf32>
  }
}
