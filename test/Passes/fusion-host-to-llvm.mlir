// RUN: fusion-opt %s --pass-pipeline='builtin.module(fusion-host-to-llvm)' --split-input-file | FileCheck %s
// RUN: fusion-opt %s --pass-pipeline='builtin.module(fusion-host-to-llvm{hold=true})' --split-input-file \
// RUN:   | FileCheck %s --check-prefix=HOLD

// A frame of 8 words, 3 objects and 4 cells: arguments are at word 8 and 9 and in cells 11 and 12, the pool is at word
// 10 and in cell 13. An argument goes after its last reader, but for one that is returned.

// CHECK-LABEL: func.func @main
// CHECK-SAME:    (%[[PROGRAM:.*]]: !llvm.ptr, %[[INPUTS:.*]]: !llvm.ptr) -> !llvm.ptr
// CHECK:         %[[SIZE:.*]] = arith.constant 15 : i64
// CHECK:         %[[FRAME:.*]] = llvm.alloca %[[SIZE]] x i64
// CHECK:         %[[OBJECTS:.*]] = arith.constant 3 : i64
// CHECK:         call @fusion_begin(%[[FRAME]], %[[PROGRAM]], %[[INPUTS]], %[[OBJECTS]])
// CHECK:         %[[TEN:.*]] = arith.constant 10 : i64
// CHECK:         %[[THIRTEEN:.*]] = arith.constant 13 : i64
// CHECK:         %[[FIRST:.*]] = arith.constant 0 : i64
// CHECK:         call @fusion_allocate(%[[FRAME]], %[[TEN]], %[[THIRTEEN]], %[[FIRST]])
// CHECK:         %[[AT:.*]] = llvm.getelementptr %[[FRAME]][13]
// CHECK:         %[[POOL:.*]] = llvm.load %[[AT]] : !llvm.ptr -> i64
// CHECK:         %[[INSIDE:.*]] = arith.addi %[[POOL]],
// CHECK:         %[[CELL:.*]] = llvm.getelementptr %[[FRAME]][14]
// CHECK:         llvm.store %[[INSIDE]], %[[CELL]]
// CHECK:         %[[WORDS:.*]] = llvm.mlir.addressof @words_0
// CHECK:         call @fusion_launch(%[[FRAME]], {{.*}}, %[[WORDS]])
// CHECK:         %[[EIGHT:.*]] = arith.constant 8 : i64
// CHECK:         call @fusion_release(%[[FRAME]], %[[EIGHT]])
// CHECK:         %[[SAME_WORDS:.*]] = llvm.mlir.addressof @words_1
// CHECK:         call @fusion_launch(%[[FRAME]], {{.*}}, %[[SAME_WORDS]])
// CHECK:         call @fusion_release(%[[FRAME]], %{{.*}})
// CHECK-NOT:     fusion_release
// CHECK:         %[[RESULT:.*]] = call @fusion_finish(%[[FRAME]], %{{.*}}, %{{.*}}, %{{.*}}) {{.*}} -> !llvm.ptr
// CHECK:         return %[[RESULT]]
// CHECK-NOT:     gpu.module
// CHECK:         @words_0(dense<[11, 14]> : tensor<2xi64>)
// CHECK:         @words_1(dense<[14, 12]> : tensor<2xi64>)
// CHECK:         @words_2(dense<9> : tensor<1xi64>)

// Held back, launches start at once, and only then is what they use released. The plan has a number, the first of the
// cells with the sizes, and the cells, for each.

// HOLD-LABEL:  func.func @main
// HOLD:          %[[FRAME:.*]] = llvm.alloca
// HOLD-NOT:      fusion_launch
// HOLD-NOT:      fusion_release
// HOLD:          %[[PLAN:.*]] = llvm.mlir.addressof @words_0
// HOLD:          call @fusion_start(%[[FRAME]], %{{.*}}, %{{.*}}, %[[PLAN]])
// HOLD:          call @fusion_release
// HOLD:          call @fusion_release
// HOLD:          call @fusion_finish
// HOLD:          @words_0(dense<[0, 15, 2, 11, 14, 1, 22, 2, 14, 12]>
module attributes {gpu.container_module} {
  gpu.module @kernels {
    gpu.func @relu(%a: memref<16xf32>, %b: memref<16xf32>) kernel { gpu.return }
  }
  func.func @main(%x: memref<16xf32>, %y: memref<16xf32>) -> memref<16xf32> {
    %pool = memref.alloc() : memref<512xi8>
    %c256 = arith.constant 256 : index
    %a = memref.view %pool[%c256][] : memref<512xi8> to memref<16xf32>
    %c1 = arith.constant 1 : index
    %c32 = arith.constant 32 : index
    gpu.launch_func @kernels::@relu blocks in (%c1, %c1, %c1) threads in (%c32, %c1, %c1)
        args(%x : memref<16xf32>, %a : memref<16xf32>)
    gpu.launch_func @kernels::@relu blocks in (%c1, %c1, %c1) threads in (%c32, %c1, %c1)
        args(%a : memref<16xf32>, %y : memref<16xf32>)
    memref.dealloc %pool : memref<512xi8>
    return %y : memref<16xf32>
  }
}

// -----

// Sizes are values: one that comes as an argument is multiplied where it was, and handed to kernel and library.
// A kernel of the CPU is called through a function of its type; a library's result has an address for kernels only.

// CHECK-LABEL: func.func @main
// CHECK:         %[[FRAME:.*]] = llvm.alloca
// CHECK:         %[[PLACE:.*]] = llvm.getelementptr %[[FRAME]][14]
// CHECK:         %[[WIDE:.*]] = llvm.load %[[PLACE]] : !llvm.ptr -> i64
// CHECK:         %[[N:.*]] = arith.index_cast %[[WIDE]] : i64 to index
// CHECK:         %[[TWICE:.*]] = arith.muli %[[N]], %{{.*}} : index
// CHECK:         %[[STORED:.*]] = arith.index_cast %[[TWICE]] : index to i64
// CHECK:         llvm.store %[[STORED]], %{{.*}}
// CHECK:         %[[THUNK:.*]] = constant @thunk_0
// CHECK:         call @fusion_call(%[[FRAME]], %{{.*}}, %[[THUNK]],
// CHECK:         %[[AGAIN:.*]] = arith.index_cast %[[TWICE]] : index to i64
// CHECK:         call @fusion_number(%[[FRAME]], %{{.*}}, %[[AGAIN]])
// CHECK:         call @fusion_library(%[[FRAME]],
// CHECK:         call @fusion_library(%[[FRAME]],
// CHECK-NEXT:    arith.constant
// CHECK:         call @fusion_address(%[[FRAME]],
// CHECK-NOT:     fusion_address
// CHECK:         call @fusion_call(%[[FRAME]],
// CHECK:         func.func private @thunk_0(%[[KERNEL:.*]]: !llvm.ptr, %{{.*}}: !llvm.ptr) -> i32
// CHECK:         %[[CELL0:.*]] = llvm.load %{{.*}} : !llvm.ptr -> !llvm.ptr
// CHECK:         %[[POINTER:.*]] = llvm.load %[[CELL0]] : !llvm.ptr -> !llvm.ptr
// CHECK:         %[[CELL1:.*]] = llvm.load %{{.*}} : !llvm.ptr -> !llvm.ptr
// CHECK:         %[[NUMBER:.*]] = llvm.load %[[CELL1]] : !llvm.ptr -> i64
// CHECK:         %[[STATUS:.*]] = llvm.call %[[KERNEL]](%[[POINTER]], %[[NUMBER]]) : !llvm.ptr, (!llvm.ptr, i64) -> i32
// CHECK:         return %[[STATUS]]
func.func private @fill(memref<16xf32>, index) -> i32
func.func @main(%x: memref<16xf32>, %n: index) -> memref<16xf32> {
  %c2 = arith.constant 2 : index
  %twice = arith.muli %n, %c2 : index
  %s = func.call @fill(%x, %twice) : (memref<16xf32>, index) -> i32
  %a = "fusion.extern"(%x, %twice) {op = "aten.add.Scalar", args = [#fusion.operand<0>, #fusion.operand<1>]}
      : (memref<16xf32>, index) -> memref<16xf32>
  %b = "fusion.extern"(%a) {op = "aten.cos.default", args = [#fusion.operand<0>]} : (memref<16xf32>) -> memref<16xf32>
  %t = func.call @fill(%b, %twice) : (memref<16xf32>, index) -> i32
  return %b : memref<16xf32>
}
