// RUN: fusion-opt %s --pass-pipeline='builtin.module(fusion-host-to-llvm)' --split-input-file --verify-diagnostics

// expected-error @below {{there is no function @main to run}}
module {
  func.func private @main(memref<4xf32>)
}

// -----

func.func @main(%x: memref<4xf32>, %y: memref<4xf32>) {
  // expected-error @below {{'memref.copy' op has no place in a host function}}
  memref.copy %x, %y : memref<4xf32> to memref<4xf32>
  return
}

// -----

func.func @main(%n: index) -> memref<?xf32> {
  // expected-error @below {{the host program allocates static sizes only, got memref<?xf32>}}
  %a = memref.alloc(%n) : memref<?xf32>
  return %a : memref<?xf32>
}
