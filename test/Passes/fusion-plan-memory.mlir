// RUN: fusion-opt %s --split-input-file --verify-diagnostics --pass-pipeline='builtin.module(fusion-plan-memory)' | FileCheck %s
// RUN: fusion-opt %s --split-input-file --verify-diagnostics --pass-pipeline='builtin.module(fusion-plan-memory{in-place=false})' | FileCheck %s --check-prefix=APART

// What is returned is an allocation of its own, what is not lies in a pool. The pool is allocated before its
// first writer and freed after its last reader; the library allocates its own results.

#id = affine_map<(i, j) -> (i, j)>

// CHECK-LABEL: func.func @pool_and_output
// CHECK-SAME:    (%[[X:.*]]: memref<8x8xf32>, %[[W:.*]]: memref<8x8xf32>) -> memref<8x8xf32>
// CHECK-NEXT:    %[[POOL:.*]] = memref.alloc() {alignment = 256 : i64} : memref<256xi8>
// CHECK-NEXT:    %[[ZERO:.*]] = arith.constant 0 : index
// CHECK-NEXT:    %[[A:.*]] = memref.view %[[POOL]][%[[ZERO]]][] : memref<256xi8> to memref<8x8xf32>
// CHECK-NEXT:    "fusion.kernel"(%[[X]], %[[A]]) ({
// CHECK-NEXT:    ^bb0(%{{.*}}: tensor<8x8xf32>):
// CHECK:           "fusion.yield"(%{{.*}}) : (tensor<8x8xf32>) -> ()
// CHECK-NEXT:    }) {name = "negate", operandSegmentSizes = array<i32: 1, 1>
// CHECK-SAME:    : (memref<8x8xf32>, memref<8x8xf32>) -> ()
// CHECK-NEXT:    %[[B:.*]] = "fusion.extern"(%[[A]], %[[W]])
// CHECK-SAME:    (memref<8x8xf32>, memref<8x8xf32>) -> memref<8x8xf32>
// CHECK-NEXT:    memref.dealloc %[[POOL]]
// CHECK-NEXT:    %[[C:.*]] = memref.alloc() : memref<8x8xf32>
// CHECK-NEXT:    "fusion.kernel"(%[[B]], %[[C]])
// CHECK:         memref.dealloc %[[B]]
// CHECK-NEXT:    return %[[C]] : memref<8x8xf32>
func.func @pool_and_output(%x: tensor<8x8xf32>, %w: tensor<8x8xf32>) -> tensor<8x8xf32> {
  %a = "fusion.kernel"(%x) ({
  ^bb0(%p: tensor<8x8xf32>):
    %e = tensor.empty() : tensor<8x8xf32>
    %n = linalg.generic {indexing_maps = [#id, #id], iterator_types = ["parallel", "parallel"]}
        ins(%p : tensor<8x8xf32>) outs(%e : tensor<8x8xf32>) {
    ^bb0(%in: f32, %out: f32):
      %r = arith.negf %in : f32
      linalg.yield %r : f32
    } -> tensor<8x8xf32>
    "fusion.yield"(%n) : (tensor<8x8xf32>) -> ()
  }) {name = "negate", operandSegmentSizes = array<i32: 1, 0>} : (tensor<8x8xf32>) -> tensor<8x8xf32>
  %b = "fusion.extern"(%a, %w) {op = "aten.mm.default", args = [#fusion.operand<0>, #fusion.operand<1>]}
      : (tensor<8x8xf32>, tensor<8x8xf32>) -> tensor<8x8xf32>
  %c = "fusion.kernel"(%b) ({
  ^bb0(%p: tensor<8x8xf32>):
    "fusion.yield"(%p) : (tensor<8x8xf32>) -> ()
  }) {name = "copy", operandSegmentSizes = array<i32: 1, 0>} : (tensor<8x8xf32>) -> tensor<8x8xf32>
  return %c : tensor<8x8xf32>
}

// -----

// A pointwise kernel takes over an input that dies with it, here the library's result.

#id = affine_map<(i, j) -> (i, j)>

// CHECK-LABEL: func.func @in_place
// CHECK:         %[[B:.*]] = "fusion.extern"
// CHECK-NEXT:    "fusion.kernel"(%[[B]], %[[B]])
// CHECK:         return %[[B]]
// APART-LABEL: func.func @in_place
// APART:         %[[B:.*]] = "fusion.extern"
// APART-NEXT:    %[[C:.*]] = memref.alloc()
// APART-NEXT:    "fusion.kernel"(%[[B]], %[[C]])
// APART:         memref.dealloc %[[B]]
// APART-NEXT:    return %[[C]]
func.func @in_place(%x: tensor<8x8xf32>) -> tensor<8x8xf32> {
  %b = "fusion.extern"(%x) {op = "aten.cos.default", args = [#fusion.operand<0>]}
      : (tensor<8x8xf32>) -> tensor<8x8xf32>
  %c = "fusion.kernel"(%b) ({
  ^bb0(%p: tensor<8x8xf32>):
    %e = tensor.empty() : tensor<8x8xf32>
    %n = linalg.generic {indexing_maps = [#id, #id], iterator_types = ["parallel", "parallel"]}
        ins(%p : tensor<8x8xf32>) outs(%e : tensor<8x8xf32>) {
    ^bb0(%in: f32, %out: f32):
      %r = arith.negf %in : f32
      linalg.yield %r : f32
    } -> tensor<8x8xf32>
    "fusion.yield"(%n) : (tensor<8x8xf32>) -> ()
  }) {name = "negate", operandSegmentSizes = array<i32: 1, 0>, schedule = #fusion.schedule<"pointwise", {}, "">}
      : (tensor<8x8xf32>) -> tensor<8x8xf32>
  return %c : tensor<8x8xf32>
}

// -----

// A transposed read is of another position than the one written: the kernel must not run in place.

#id = affine_map<(i, j) -> (i, j)>
#transposed = affine_map<(i, j) -> (j, i)>

// CHECK-LABEL: func.func @not_in_place
// CHECK:         %[[B:.*]] = "fusion.extern"
// CHECK-NEXT:    %[[C:.*]] = memref.alloc() : memref<8x8xf32>
// CHECK-NEXT:    "fusion.kernel"(%[[B]], %[[C]])
// CHECK:         return %[[C]]
func.func @not_in_place(%x: tensor<8x8xf32>) -> tensor<8x8xf32> {
  %b = "fusion.extern"(%x) {op = "aten.cos.default", args = [#fusion.operand<0>]}
      : (tensor<8x8xf32>) -> tensor<8x8xf32>
  %c = "fusion.kernel"(%b) ({
  ^bb0(%p: tensor<8x8xf32>):
    %e = tensor.empty() : tensor<8x8xf32>
    %n = linalg.generic {indexing_maps = [#transposed, #id], iterator_types = ["parallel", "parallel"]}
        ins(%p : tensor<8x8xf32>) outs(%e : tensor<8x8xf32>) {
    ^bb0(%in: f32, %out: f32):
      linalg.yield %in : f32
    } -> tensor<8x8xf32>
    "fusion.yield"(%n) : (tensor<8x8xf32>) -> ()
  }) {name = "turn", operandSegmentSizes = array<i32: 1, 0>, schedule = #fusion.schedule<"pointwise", {}, "">}
      : (tensor<8x8xf32>) -> tensor<8x8xf32>
  return %c : tensor<8x8xf32>
}

// -----

// A view keeps what it looks at: %a's memory is not free while %v is read, so %b lies behind it; %c moves in
// where %a was.

// CHECK-LABEL: func.func @view_extends_a_lifetime
// CHECK:         %[[POOL:.*]] = memref.alloc() {alignment = 256 : i64} : memref<512xi8>
// CHECK-DAG:     %[[C0:.*]] = arith.constant 0 : index
// CHECK:         %[[A:.*]] = memref.view %[[POOL]][%[[C0]]][]
// CHECK:         %[[V:.*]] = memref.reinterpret_cast %[[A]] to offset: [4], sizes: [2, 3], strides: [8, 1]
// CHECK-SAME:      : memref<64xf32> to memref<2x3xf32, strided<[8, 1], offset: 4>>
// CHECK:         %[[C256:.*]] = arith.constant 256 : index
// CHECK:         %[[B:.*]] = memref.view %[[POOL]][%[[C256]]][]
// CHECK:         "fusion.kernel"(%[[V]], %[[B]])
// CHECK:         %[[C:.*]] = memref.view %[[POOL]][%{{.*}}][]
// CHECK:         "fusion.kernel"(%[[B]], %[[C]])
// CHECK:         "fusion.extern"(%[[C]])
// CHECK-NEXT:    memref.dealloc %[[POOL]]
func.func @view_extends_a_lifetime(%x: tensor<64xf32>) {
  %a = "fusion.kernel"(%x) ({
  ^bb0(%p: tensor<64xf32>):
    "fusion.yield"(%p) : (tensor<64xf32>) -> ()
  }) {name = "a", operandSegmentSizes = array<i32: 1, 0>} : (tensor<64xf32>) -> tensor<64xf32>
  %v = "fusion.view"(%a) {offset = 4 : i64, sizes = array<i64: 2, 3>, strides = array<i64: 8, 1>}
      : (tensor<64xf32>) -> tensor<2x3xf32>
  %b = "fusion.kernel"(%v) ({
  ^bb0(%p: tensor<2x3xf32>):
    "fusion.yield"(%p) : (tensor<2x3xf32>) -> ()
  }) {name = "b", operandSegmentSizes = array<i32: 1, 0>} : (tensor<2x3xf32>) -> tensor<2x3xf32>
  %c = "fusion.kernel"(%b) ({
  ^bb0(%p: tensor<2x3xf32>):
    "fusion.yield"(%p) : (tensor<2x3xf32>) -> ()
  }) {name = "c", operandSegmentSizes = array<i32: 1, 0>} : (tensor<2x3xf32>) -> tensor<2x3xf32>
  "fusion.extern"(%c) {op = "mylib.consume.default", args = [#fusion.operand<0>], effects = ["opaque"]}
      : (tensor<2x3xf32>) -> ()
  return
}

// -----

// A pool that is half empty when the library allocates would raise the total: it is split.

// CHECK-LABEL: func.func @split_pools
// CHECK:         %[[BIG:.*]] = memref.alloc() {alignment = 256 : i64} : memref<4096xi8>
// CHECK:         %[[SMALL:.*]] = memref.alloc() {alignment = 256 : i64} : memref<256xi8>
// CHECK:         name = "small"
// CHECK:         memref.dealloc %[[BIG]]
// CHECK-NEXT:    %[[L:.*]] = "fusion.extern"
// CHECK-NEXT:    memref.dealloc %[[SMALL]]
// CHECK-NEXT:    return %[[L]]
func.func @split_pools(%x: tensor<1024xf32>, %y: tensor<4xf32>) -> tensor<1024xf32> {
  %a = "fusion.kernel"(%x) ({
  ^bb0(%p: tensor<1024xf32>):
    "fusion.yield"(%p) : (tensor<1024xf32>) -> ()
  }) {name = "big", operandSegmentSizes = array<i32: 1, 0>} : (tensor<1024xf32>) -> tensor<1024xf32>
  %b = "fusion.kernel"(%a, %y) ({
  ^bb0(%p: tensor<1024xf32>, %q: tensor<4xf32>):
    "fusion.yield"(%q) : (tensor<4xf32>) -> ()
  }) {name = "small", operandSegmentSizes = array<i32: 2, 0>} : (tensor<1024xf32>, tensor<4xf32>) -> tensor<4xf32>
  %l = "fusion.extern"(%b) {op = "mylib.grow.default", args = [#fusion.operand<0>]}
      : (tensor<4xf32>) -> tensor<1024xf32>
  return %l : tensor<1024xf32>
}

// -----

// A returned view keeps its base, which is then an allocation of its own and never freed here. An argument
// may be returned as it is, and a value twice.

// CHECK-LABEL: func.func @returned_view
// CHECK-SAME:    (%[[X:.*]]: memref<64xf32>)
// CHECK:         %[[A:.*]] = memref.alloc() : memref<64xf32>
// CHECK:         %[[V:.*]] = memref.reinterpret_cast %[[A]] to offset: [0], sizes: [4], strides: [16]
// CHECK-NOT:     dealloc
// CHECK:         return %[[V]], %[[X]], %[[V]] : memref<4xf32, strided<[16]>>, memref<64xf32>, memref<4xf32, strided<[16]>>
func.func @returned_view(%x: tensor<64xf32>) -> (tensor<4xf32>, tensor<64xf32>, tensor<4xf32>) {
  %a = "fusion.kernel"(%x) ({
  ^bb0(%p: tensor<64xf32>):
    "fusion.yield"(%p) : (tensor<64xf32>) -> ()
  }) {name = "a", operandSegmentSizes = array<i32: 1, 0>} : (tensor<64xf32>) -> tensor<64xf32>
  %v = "fusion.view"(%a) {offset = 0 : i64, sizes = array<i64: 4>, strides = array<i64: 16>}
      : (tensor<64xf32>) -> tensor<4xf32>
  return %v, %x, %v : tensor<4xf32>, tensor<64xf32>, tensor<4xf32>
}

// -----

// Booleans take a byte; what torch calls them is noted. Layouts of arguments and results become strides.

// CHECK-LABEL: func.func @booleans_and_layouts
// CHECK-SAME:    (%[[M:.*]]: memref<4xi8> {fusion.dtype = "bool"}
// CHECK-SAME:     %[[X:.*]]: memref<4x8xf32, strided<[1, 4]>> {fusion.layout = #fusion.layout<[1, 4], 0, 16>})
// CHECK-SAME:    -> (memref<4xi8> {fusion.dtype = "bool"}, memref<4x8xf32, strided<[1, 4]>> {fusion.layout
// CHECK:         %[[N:.*]] = "fusion.extern"(%[[M]])
// CHECK-SAME:      dtypes = ["bool"]
// CHECK-SAME:      (memref<4xi8>) -> memref<4xi8>
// CHECK:         %[[Y:.*]] = memref.alloc() : memref<4x8xf32, strided<[1, 4]>>
// CHECK:         "fusion.kernel"(%[[X]], %[[Y]])
// CHECK:         return %[[N]], %[[Y]]
func.func @booleans_and_layouts(
    %m: tensor<4xi1>, %x: tensor<4x8xf32> {fusion.layout = #fusion.layout<[1, 4], 0, 16>})
    -> (tensor<4xi1>, tensor<4x8xf32> {fusion.layout = #fusion.layout<[1, 4], 0, 16>}) {
  %n = "fusion.extern"(%m) {op = "aten.logical_not.default", args = [#fusion.operand<0>]}
      : (tensor<4xi1>) -> tensor<4xi1>
  %y = "fusion.kernel"(%x) ({
  ^bb0(%p: tensor<4x8xf32>):
    "fusion.yield"(%p) : (tensor<4x8xf32>) -> ()
  }) {name = "y", operandSegmentSizes = array<i32: 1, 0>} : (tensor<4x8xf32>) -> tensor<4x8xf32>
  return %n, %y : tensor<4xi1>, tensor<4x8xf32>
}

// -----

// A library's result with a layout of its own, and a call that writes its operand: its result is that memory.

// CHECK-LABEL: func.func @library_results
// CHECK:         %[[A:.*]] = "fusion.extern"(%{{.*}})
// CHECK-SAME:      -> memref<4x8xf32, strided<[1, 4]>>
// CHECK:         %[[B:.*]] = "fusion.extern"(%[[A]])
// CHECK-SAME:      tied = {{\[}}[0, 0]]
// CHECK-SAME:      (memref<4x8xf32, strided<[1, 4]>>) -> memref<4x8xf32, strided<[1, 4]>>
// CHECK-NEXT:    %[[C:.*]] = memref.alloc() : memref<4x8xf32>
// CHECK-NEXT:    "fusion.kernel"(%[[B]], %[[C]])
// CHECK:         memref.dealloc %[[B]]
// CHECK-NEXT:    return
func.func @library_results(%x: tensor<4x8xf32>) -> tensor<4x8xf32> {
  %a = "fusion.extern"(%x) {op = "aten.cos.default", args = [#fusion.operand<0>], result_layouts = [#fusion.layout<[1, 4], 0, 16>]}
      : (tensor<4x8xf32>) -> tensor<4x8xf32>
  %b = "fusion.extern"(%a) {op = "aten.relu_.default", args = [#fusion.operand<0>], tied = [[0, 0]]}
      : (tensor<4x8xf32>) -> tensor<4x8xf32>
  %c = "fusion.kernel"(%b) ({
  ^bb0(%p: tensor<4x8xf32>):
    "fusion.yield"(%p) : (tensor<4x8xf32>) -> ()
  }) {name = "c", operandSegmentSizes = array<i32: 1, 0>} : (tensor<4x8xf32>) -> tensor<4x8xf32>
  return %c : tensor<4x8xf32>
}

// -----

// Constants become globals, booleans bytes; a kernel without elements to compute is dropped.

// CHECK:       memref.global "private" constant @constant_0 : memref<2xi8> = dense<[1, 0]>
// CHECK-LABEL: func.func @constants_and_nothing
// CHECK:         %[[C:.*]] = memref.get_global @constant_0 : memref<2xi8>
// CHECK-NOT:     fusion.kernel
// CHECK:         "fusion.extern"(%[[C]])
// CHECK-SAME:      dtypes = ["bool"]
func.func @constants_and_nothing(%x: tensor<0x8xf32>) -> (tensor<0x8xf32>, tensor<2xi1>) {
  %c = arith.constant dense<[true, false]> : tensor<2xi1>
  %y = "fusion.kernel"(%x) ({
  ^bb0(%p: tensor<0x8xf32>):
    "fusion.yield"(%p) : (tensor<0x8xf32>) -> ()
  }) {name = "y", operandSegmentSizes = array<i32: 1, 0>} : (tensor<0x8xf32>) -> tensor<0x8xf32>
  %n = "fusion.extern"(%c) {op = "aten.logical_not.default", args = [#fusion.operand<0>]}
      : (tensor<2xi1>) -> tensor<2xi1>
  return %y, %n : tensor<0x8xf32>, tensor<2xi1>
}

// -----

func.func @too_early(%x: tensor<4xf32>) -> tensor<4xf32> {
  // expected-error@+1 {{'tensor.cast' op is not part of a fusion.kernel; run fusion-segment first}}
  %y = tensor.cast %x : tensor<4xf32> to tensor<4xf32>
  return %y : tensor<4xf32>
}

// -----

// expected-error@+1 {{memory is planned for static sizes only, got tensor<?xf32>}}
func.func @dynamic(%x: tensor<?xf32>) -> tensor<?xf32> {
  return %x : tensor<?xf32>
}
