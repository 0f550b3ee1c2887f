// Every stage prints, reads back and goes on to the same code.
//
// RUN: fusion-opt %s --emit=linalg -o %t.linalg
// RUN: FileCheck %s --check-prefix=LINALG < %t.linalg
// RUN: fusion-opt %t.linalg --emit=region -o %t.region
// RUN: FileCheck %s --check-prefix=REGION < %t.region
// RUN: fusion-opt %t.region --emit=kernel -o %t.kernel
// RUN: FileCheck %s --check-prefix=KERNEL < %t.kernel
// RUN: fusion-opt %t.kernel --emit=gpu -o %t.gpu
// RUN: FileCheck %s --check-prefix=GPU < %t.gpu
// RUN: fusion-opt %t.gpu --emit=nvvm -o %t.nvvm
// RUN: FileCheck %s --check-prefix=NVVM < %t.nvvm
// RUN: fusion-opt %t.nvvm --emit=ptx -o %t.ptx
// RUN: FileCheck %s --check-prefix=PTX < %t.ptx
// RUN: fusion-opt %s --emit=ptx | diff - %t.ptx
//
// Without --emit, what is beyond regions is printed as it is; and there is no way back.
// RUN: fusion-opt %t.kernel | diff - %t.kernel
// RUN: not fusion-opt %t.kernel --emit=linalg 2>&1 | FileCheck %s --check-prefix=BACK
// BACK: fusion-opt: error: the module is at stage 'kernel' already, past 'linalg'
//
// For the CPU, loops and native code in place of threads and PTX.
// RUN: fusion-opt %t.kernel --target=cpu --emit=gpu | FileCheck %s --check-prefix=LOOPS
// RUN: fusion-opt %t.kernel --target=cpu --emit=llvm | FileCheck %s --check-prefix=LLVM

//
// Kernels are for one kind of target, and a module holds those of one program.
// RUN: not fusion-opt %t.gpu --target=cpu --emit=llvm 2>&1 | FileCheck %s --check-prefix=IS-FOR-A
// RUN: not fusion-opt %t.nvvm --target=cpu --emit=llvm 2>&1 | FileCheck %s --check-prefix=IS-FOR-A
// RUN: not mlir-fusion run %t.gpu 2>&1 | FileCheck %s --check-prefix=IS-FOR-A
// RUN: fusion-opt %t.kernel --target=cpu --emit=gpu -o %t.loops
// RUN: not fusion-opt %t.loops --emit=ptx 2>&1 | FileCheck %s --check-prefix=IS-FOR-B
// RUN: cat %t.gpu %t.gpu > %t.two
// RUN: not fusion-opt %t.two --emit=ptx 2>&1 | FileCheck %s --check-prefix=TWO
// RUN: not mlir-fusion run %t.two 2>&1 | FileCheck %s --check-prefix=TWO
// IS-FOR-A:   {{.*}}:[[#]]:3: error: kernels for a GPU, which target cpu can't take
// IS-FOR-A-NOT: {{.}}
// IS-FOR-B:   {{.*}}:[[#]]:3: error: kernels for the CPU, which target sm_90 can't take
// TWO:       {{.*}}:1:1: error: a module can't stand inside a module; with lines of // ----- between {{.*}} one by one{{$}}
// TWO-NOT:   {{.}}

// LINALG:     linalg.generic
// LINALG:       math.exp
// LINALG-NOT: fusion.
// REGION:     "fusion.region"
// REGION-NOT: fusion.kernel
// KERNEL:     func.func @main(%[[X:.*]]: memref<1024xf32>) -> memref<1024xf32>
// KERNEL:       %[[Y:.*]] = memref.alloc() : memref<1024xf32>
// KERNEL:       "fusion.kernel"(%[[X]], %[[Y]])
// KERNEL:       name = "[[NAME:.*]]", operandSegmentSizes {{.*}}schedule = #fusion.schedule<"pointwise"
// KERNEL:       return %[[Y]]
// GPU:        gpu.launch_func @kernels::@[[NAME:.*]] blocks
// GPU:        gpu.module @kernels
// GPU:          gpu.func @[[NAME]]({{.*}}) kernel
// NVVM:       gpu.launch_func @kernels::@[[NAME:.*]] blocks
// NVVM:       llvm.func @[[NAME]](%{{.*}}: !llvm.ptr, %{{.*}}: !llvm.ptr)
// NVVM-NOT:   builtin.unrealized_conversion_cast
// PTX:        .target sm_90
// PTX:        .visible .entry
// PTX:        ld.global.v4
// PTX:        st.global.v4
// LOOPS:      call @[[NAME:[a-z_0-9]+]](
// LOOPS:      module @kernels
// LOOPS:        func.func @[[NAME]]
// LOOPS:          scf.for
// LLVM:       module @kernels
// LLVM:         llvm.func @{{.*}}(%{{.*}}: !llvm.ptr, %{{.*}}: !llvm.ptr)
func.func @main(%x: tensor<1024xf32>) -> tensor<1024xf32> {
  %0 = tensor.empty() : tensor<1024xf32>
  %y = linalg.exp ins(%x : tensor<1024xf32>) outs(%0 : tensor<1024xf32>) -> tensor<1024xf32>
  %z = linalg.add ins(%x, %y : tensor<1024xf32>, tensor<1024xf32>) outs(%0 : tensor<1024xf32>) -> tensor<1024xf32>
  return %z : tensor<1024xf32>
}
