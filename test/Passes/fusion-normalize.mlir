// RUN: fusion-opt %s --split-input-file --pass-pipeline='builtin.module(fusion-normalize)' | FileCheck %s

// A named op, and an arith op on tensors, is a linalg.generic. A fill stays one.

// CHECK-LABEL: func.func @named(
// CHECK-SAME:    %[[X:.*]]: tensor<4x8xf32>)
// CHECK:         %[[ZERO:.*]] = arith.constant 0.0
// CHECK:         %[[E:.*]] = linalg.generic {{.*}} ins(%[[X]] : tensor<4x8xf32>)
// CHECK:           math.exp
// CHECK:         %[[D:.*]] = linalg.generic {{.*}} ins(%[[E]] : tensor<4x8xf32>)
// CHECK:         ^bb0(%[[IN:.*]]: f32, %{{.*}}: f32):
// CHECK-NEXT:      arith.addf %[[IN]], %[[IN]]
// CHECK:         %[[INIT:.*]] = linalg.fill ins(%[[ZERO]]
// CHECK:         %[[S:.*]] = linalg.generic {{.*}}"parallel", "reduction"]} ins(%[[D]] : {{.*}}) outs(%[[INIT]]
// CHECK:         return %[[S]]
func.func @named(%x: tensor<4x8xf32>) -> tensor<4xf32> {
  %zero = arith.constant 0.0 : f32
  %i = tensor.empty() : tensor<4x8xf32>
  %e = linalg.exp ins(%x : tensor<4x8xf32>) outs(%i : tensor<4x8xf32>) -> tensor<4x8xf32>
  %d = arith.addf %e, %e : tensor<4x8xf32>
  %j = tensor.empty() : tensor<4xf32>
  %f = linalg.fill ins(%zero : f32) outs(%j : tensor<4xf32>) -> tensor<4xf32>
  %s = linalg.reduce { arith.addf } ins(%d : tensor<4x8xf32>) outs(%f : tensor<4xf32>) dimensions = [1]
  return %s : tensor<4xf32>
}

// -----

// f16 and bf16 are computed in f32 and rounded once, at the end of the body; exp may then be approximate. A scalar
// that was rounded for this op alone takes part unrounded.

// CHECK-LABEL: func.func @narrow(
// CHECK:         %[[TENTH:.*]] = arith.constant 1.000000e-01 : f64
// CHECK:         ^bb0(%[[A:.*]]: bf16, %[[B:.*]]: bf16, %{{.*}}: bf16):
// CHECK-NEXT:      %[[SCALAR:.*]] = arith.truncf %[[TENTH]] : f64 to f32
// CHECK-NEXT:      %[[AW:.*]] = arith.extf %[[A]] : bf16 to f32
// CHECK-NEXT:      %[[BW:.*]] = arith.extf %[[B]] : bf16 to f32
// CHECK-NEXT:      %[[S:.*]] = arith.addf %[[AW]], %[[BW]] : f32
// CHECK-NEXT:      %[[P:.*]] = arith.mulf %[[S]], %[[SCALAR]] : f32
// CHECK-NEXT:      %[[T:.*]] = math.exp %[[P]] fastmath<afn> : f32
// CHECK-NEXT:      %[[R:.*]] = arith.truncf %[[T]] : f32 to bf16
// CHECK-NEXT:      linalg.yield %[[R]]
#id = affine_map<(d0) -> (d0)>
func.func @narrow(%x: tensor<8xbf16>, %y: tensor<8xbf16>) -> tensor<8xbf16> {
  %tenth = arith.constant 0.1 : f64
  %i = tensor.empty() : tensor<8xbf16>
  %r = linalg.generic {indexing_maps = [#id, #id, #id], iterator_types = ["parallel"]}
      ins(%x, %y : tensor<8xbf16>, tensor<8xbf16>) outs(%i : tensor<8xbf16>) {
  ^bb0(%a: bf16, %b: bf16, %o: bf16):
    %c = arith.truncf %tenth : f64 to bf16
    %s = arith.addf %a, %b : bf16
    %p = arith.mulf %s, %c : bf16
    %t = math.exp %p : bf16
    linalg.yield %t : bf16
  } -> tensor<8xbf16>
  return %r : tensor<8xbf16>
}

// -----

// A sum in f16 is an f32 sum that another op rounds; a maximum is exact and stays f16.

// CHECK-LABEL: func.func @reductions(
// CHECK-SAME:    %[[X:.*]]: tensor<4x8xf16>)
// CHECK:         %[[INIT:.*]] = linalg.fill ins(%{{.*}} : f32)
// CHECK:         %[[SUM:.*]] = linalg.generic {{.*}} ins(%[[X]] : tensor<4x8xf16>) outs(%[[INIT]] : tensor<4xf32>)
// CHECK-NEXT:    ^bb0(%[[IN:.*]]: f16, %[[ACC:.*]]: f32):
// CHECK-NEXT:      %[[W:.*]] = arith.extf %[[IN]] : f16 to f32
// CHECK-NEXT:      arith.addf %[[ACC]], %[[W]] : f32
// CHECK:         %[[ROUNDED:.*]] = linalg.generic {{.*}} ins(%[[SUM]] : tensor<4xf32>)
// CHECK-NEXT:    ^bb0
// CHECK-NEXT:      arith.truncf
// CHECK:         %[[MAX:.*]] = linalg.generic {{.*}} ins(%[[X]] : tensor<4x8xf16>)
// CHECK-NEXT:    ^bb0
// CHECK-NEXT:      arith.maximumf {{.*}} : f16
// CHECK:         return %[[ROUNDED]], %[[MAX]]
func.func @reductions(%x: tensor<4x8xf16>) -> (tensor<4xf16>, tensor<4xf16>) {
  %zero = arith.constant 0.0 : f16
  %low = arith.constant 0xFC00 : f16
  %i = tensor.empty() : tensor<4xf16>
  %f = linalg.fill ins(%zero : f16) outs(%i : tensor<4xf16>) -> tensor<4xf16>
  %s = linalg.reduce { arith.addf } ins(%x : tensor<4x8xf16>) outs(%f : tensor<4xf16>) dimensions = [1]
  %g = linalg.fill ins(%low : f16) outs(%i : tensor<4xf16>) -> tensor<4xf16>
  %m = linalg.reduce { arith.maximumf } ins(%x : tensor<4x8xf16>) outs(%g : tensor<4xf16>) dimensions = [1]
  return %s, %m : tensor<4xf16>, tensor<4xf16>
}

// -----

// f32 keeps its arithmetic, without fast math: results are bit-equal however it is fused.

// CHECK-LABEL: func.func @wide(
// CHECK:         math.exp %{{[a-z]+}} : f32
func.func @wide(%x: tensor<8xf32>) -> tensor<8xf32> {
  %r = math.exp %x : tensor<8xf32>
  return %r : tensor<8xf32>
}

// -----

// Indices of a maximum that nobody uses go; so do an operand that is given twice, one that is a scalar in disguise,
// and an initial value that the body doesn't read.

// CHECK-LABEL: func.func @needless(
// CHECK-SAME:    %[[X:.*]]: tensor<4x8xf32>)
// CHECK-DAG:     %[[ONE:.*]] = arith.constant 1.0
// CHECK:         %[[EMPTY:.*]] = tensor.empty() : tensor<4xf32>
// CHECK:         %[[MAX:.*]] = linalg.generic {{.*}} ins(%[[X]] : tensor<4x8xf32>) outs(%{{.*}} : tensor<4xf32>)
// CHECK-NEXT:    ^bb0(%[[IN:.*]]: f32, %[[ACC:.*]]: f32):
// CHECK-NEXT:      arith.maximumf %[[IN]], %[[ACC]]
// CHECK-NEXT:      linalg.yield
// CHECK:         linalg.generic {{.*}} ins(%[[MAX]] : tensor<4xf32>) outs(%[[EMPTY]] : tensor<4xf32>)
// CHECK-NEXT:    ^bb0(%[[M:.*]]: f32, %{{.*}}: f32):
// CHECK-NEXT:      %[[P:.*]] = arith.mulf %[[M]], %[[M]]
// CHECK-NEXT:      arith.addf %[[P]], %[[ONE]]
#row = affine_map<(d0, d1) -> (d0)>
#all = affine_map<(d0, d1) -> (d0, d1)>
#id = affine_map<(d0) -> (d0)>
#scalar = affine_map<(d0) -> ()>
func.func @needless(%x: tensor<4x8xf32>) -> tensor<4xf32> {
  %low = arith.constant 0xFF800000 : f32
  %zero = arith.constant 0 : i64
  %one = arith.constant dense<1.0> : tensor<f32>
  %i = tensor.empty() : tensor<4xf32>
  %j = tensor.empty() : tensor<4xi64>
  %f = linalg.fill ins(%low : f32) outs(%i : tensor<4xf32>) -> tensor<4xf32>
  %g = linalg.fill ins(%zero : i64) outs(%j : tensor<4xi64>) -> tensor<4xi64>
  %m:2 = linalg.generic {indexing_maps = [#all, #row, #row], iterator_types = ["parallel", "reduction"]}
      ins(%x : tensor<4x8xf32>) outs(%f, %g : tensor<4xf32>, tensor<4xi64>) {
  ^bb0(%in: f32, %acc: f32, %at: i64):
    %d = linalg.index 1 : index
    %k = arith.index_cast %d : index to i64
    %v = arith.maximumf %in, %acc : f32
    %c = arith.cmpf ogt, %in, %acc : f32
    %s = arith.select %c, %k, %at : i64
    linalg.yield %v, %s : f32, i64
  } -> (tensor<4xf32>, tensor<4xi64>)
  %r = linalg.generic {indexing_maps = [#id, #id, #scalar, #id], iterator_types = ["parallel"]}
      ins(%m#0, %m#0, %one : tensor<4xf32>, tensor<4xf32>, tensor<f32>) outs(%f : tensor<4xf32>) {
  ^bb0(%a: f32, %b: f32, %c: f32, %o: f32):
    %p = arith.mulf %a, %b : f32
    %q = arith.addf %p, %c : f32
    linalg.yield %q : f32
  } -> tensor<4xf32>
  return %r : tensor<4xf32>
}

// -----

// What a library call reads through reshapes, slices and transposes is one view. The transpose stays an operation for
// the linalg op that reads it too.

// CHECK-LABEL: func.func @view_of_operand(
// CHECK-SAME:    %[[X:.*]]: tensor<4x64xf32>, %[[Q:.*]]: tensor<8x4xf32>)
// CHECK:         %[[T:.*]] = linalg.generic {{.*}} outs(%{{.*}} : tensor<16x4xf32>)
// CHECK:         %[[V:.*]] = "fusion.view"(%[[X]])
// CHECK-SAME:      {offset = 16 : i64, sizes = array<i64: 16, 4>, strides = array<i64: 1, 64>}
// CHECK:         %[[M:.*]] = "fusion.extern"(%[[V]], %[[Q]])
// CHECK:         %[[N:.*]] = linalg.generic {{.*}} ins(%[[T]] : tensor<16x4xf32>)
// CHECK:         return %[[M]], %[[N]]
func.func @view_of_operand(%x: tensor<4x64xf32>, %q: tensor<8x4xf32>) -> (tensor<16x8xf32>, tensor<16x4xf32>) {
  %s = tensor.extract_slice %x[0, 16] [4, 16] [1, 1] : tensor<4x64xf32> to tensor<4x16xf32>
  %i = tensor.empty() : tensor<16x4xf32>
  %t = linalg.transpose ins(%s : tensor<4x16xf32>) outs(%i : tensor<16x4xf32>) permutation = [1, 0]
  %m = "fusion.extern"(%t, %q) {op = "test.product.default", args = [#fusion.operand<0>, #fusion.operand<1>]}
      : (tensor<16x4xf32>, tensor<8x4xf32>) -> tensor<16x8xf32>
  %n = linalg.negf ins(%t : tensor<16x4xf32>) outs(%i : tensor<16x4xf32>) -> tensor<16x4xf32>
  return %m, %n : tensor<16x8xf32>, tensor<16x4xf32>
}

// -----

// A view of an argument follows the argument's layout.

// CHECK-LABEL: func.func @view_of_laid_out_argument(
// CHECK:         "fusion.view"(%arg0) {offset = 4 : i64, sizes = array<i64: 2, 4>, strides = array<i64: 1, 8>}
func.func @view_of_laid_out_argument(%x: tensor<4x6xf32> {fusion.layout = #fusion.layout<[8, 1], 0, 16>})
    -> tensor<2x4xf32> {
  %s = tensor.extract_slice %x[0, 4] [4, 2] [1, 1] : tensor<4x6xf32> to tensor<4x2xf32>
  %i = tensor.empty() : tensor<2x4xf32>
  %t = linalg.transpose ins(%s : tensor<4x2xf32>) outs(%i : tensor<2x4xf32>) permutation = [1, 0]
  return %t : tensor<2x4xf32>
}

// -----

// Where strides can't say it, the transpose is carried out and the reshape is a view of it: PyTorch's reshape copies.

// CHECK-LABEL: func.func @copy_of_operand(
// CHECK:         %[[T:.*]] = linalg.generic {{.*}} ins(%arg0 : tensor<4x16xf32>) outs(%{{.*}} : tensor<16x4xf32>)
// CHECK:         %[[V:.*]] = "fusion.view"(%[[T]]) {offset = 0 : i64, sizes = array<i64: 64>, strides = array<i64: 1>}
// CHECK:         return %[[V]]
func.func @copy_of_operand(%x: tensor<4x16xf32>) -> tensor<64xf32> {
  %i = tensor.empty() : tensor<16x4xf32>
  %t = linalg.transpose ins(%x : tensor<4x16xf32>) outs(%i : tensor<16x4xf32>) permutation = [1, 0]
  %c = tensor.collapse_shape %t [[0, 1]] : tensor<16x4xf32> into tensor<64xf32>
  return %c : tensor<64xf32>
}

// -----

// An argument that does not lie row by row is copied so that it does, and the reshape is a view of the copy.

// CHECK-LABEL: func.func @reshape_of_strided_argument(
// CHECK-SAME:    %[[X:.*]]: tensor<3x5x4xf32>
// CHECK:         %[[C:.*]] = linalg.generic {{.*}} ins(%[[X]] : tensor<3x5x4xf32>) outs(%{{.*}} : tensor<3x5x4xf32>)
// CHECK:         %[[V:.*]] = "fusion.view"(%[[C]]) {offset = 0 : i64, sizes = array<i64: 3, 20>, strides = array<i64: 20, 1>}
// CHECK:         return %[[V]]
func.func @reshape_of_strided_argument(%x: tensor<3x5x4xf32> {fusion.layout = #fusion.layout<[1, 3, 15], 0, 1>})
    -> tensor<3x20xf32> {
  %c = tensor.collapse_shape %x [[0], [1, 2]] : tensor<3x5x4xf32> into tensor<3x20xf32>
  return %c : tensor<3x20xf32>
}

// -----

// The result of a library call may lie differently too.

// CHECK-LABEL: func.func @reshape_of_strided_result(
// CHECK:         %[[E:.*]] = "fusion.extern"
// CHECK:         %[[C:.*]] = linalg.generic {{.*}} ins(%[[E]] : tensor<4x5xf32>) outs(%{{.*}} : tensor<4x5xf32>)
// CHECK:         %[[V:.*]] = "fusion.view"(%[[C]]) {offset = 0 : i64, sizes = array<i64: 20>, strides = array<i64: 1>}
// CHECK:         return %[[V]]
func.func @reshape_of_strided_result(%x: tensor<4x5xf32>) -> tensor<20xf32> {
  %e = "fusion.extern"(%x) {op = "aten.relu.default", args = [#fusion.operand<0>],
                            result_layouts = [#fusion.layout<[1, 4], 0, 1>]} : (tensor<4x5xf32>) -> tensor<4x5xf32>
  %c = tensor.collapse_shape %e [[0, 1]] : tensor<4x5xf32> into tensor<20xf32>
  return %c : tensor<20xf32>
}

// -----

// What is returned as new memory is a copy where it would be an argument, or another result; what is not, is not.

// CHECK-LABEL: func.func @new_memory(
// CHECK-SAME:    %[[X:[a-z0-9]+]]: tensor<4xf32>)
// CHECK:         %[[E:.*]] = "fusion.extern"(%[[X]])
// CHECK:         %[[C:.*]] = linalg.generic {{.*}} ins(%[[X]] : tensor<4xf32>)
// CHECK:         %[[D:.*]] = linalg.generic {{.*}} ins(%[[E]] : tensor<4xf32>)
// CHECK-NOT:     linalg.generic
// CHECK:         return %[[X]], %[[C]], %[[D]], %[[E]]
func.func @new_memory(%x: tensor<4xf32>)
    -> (tensor<4xf32>, tensor<4xf32> {fusion.new}, tensor<4xf32> {fusion.new}, tensor<4xf32> {fusion.new}) {
  %e = "fusion.extern"(%x) {op = "aten.relu.default", args = [#fusion.operand<0>]} : (tensor<4xf32>) -> tensor<4xf32>
  return %x, %x, %e, %e : tensor<4xf32>, tensor<4xf32>, tensor<4xf32>, tensor<4xf32>
}

// -----

// A kernel writes its result as the function must return it, unless someone else reads it: then a copy is returned.

// CHECK-LABEL: func.func @returned_with_strides(
// CHECK:         %[[A:.*]] = linalg.generic
// CHECK:         math.sin
// CHECK:         %[[B:.*]] = linalg.generic
// CHECK:         math.cos
// CHECK:         %[[E:.*]] = "fusion.extern"(%[[B]])
// CHECK:         %[[C:.*]] = linalg.generic {{.*}} ins(%[[B]] : tensor<4x5xf32>)
// CHECK:         return %[[A]], %[[C]], %[[E]]
func.func @returned_with_strides(%x: tensor<4x5xf32>) -> (tensor<4x5xf32> {fusion.layout = #fusion.layout<[1, 4], 0, 1>},
    tensor<4x5xf32> {fusion.layout = #fusion.layout<[1, 4], 0, 1>}, tensor<4x5xf32>) {
  %a = math.sin %x : tensor<4x5xf32>
  %b = math.cos %x : tensor<4x5xf32>
  %e = "fusion.extern"(%b) {op = "aten.relu.default", args = [#fusion.operand<0>]} : (tensor<4x5xf32>) -> tensor<4x5xf32>
  return %a, %b, %e : tensor<4x5xf32>, tensor<4x5xf32>, tensor<4x5xf32>
}

// -----

// A tensor that a library call writes must not be seen through a view: the transpose is carried out before.

// CHECK-LABEL: func.func @overwritten(
// CHECK-SAME:    %[[X:.*]]: tensor<2x3xf32>)
// CHECK:         %[[T:.*]] = linalg.generic {{.*}} ins(%[[X]] : tensor<2x3xf32>)
// CHECK-NOT:     fusion.view
// CHECK:         %[[W:.*]] = "fusion.extern"(%[[X]])
// CHECK:         return %[[W]], %[[T]]
func.func @overwritten(%x: tensor<2x3xf32>) -> (tensor<2x3xf32>, tensor<3x2xf32>) {
  %i = tensor.empty() : tensor<3x2xf32>
  %t = linalg.transpose ins(%x : tensor<2x3xf32>) outs(%i : tensor<3x2xf32>) permutation = [1, 0]
  %w = "fusion.extern"(%x) {op = "test.shift_.default", args = [#fusion.operand<0>], tied = [[0, 0]]}
      : (tensor<2x3xf32>) -> tensor<2x3xf32>
  return %w, %t : tensor<2x3xf32>, tensor<3x2xf32>
}

// -----

// A filled tensor that is returned needs an op that writes it. A table of constants, and an argument, don't.

// CHECK-LABEL: func.func @returned(
// CHECK-DAG:     %[[TWO:.*]] = arith.constant 2.0
// CHECK-DAG:     %[[TABLE:.*]] = arith.constant dense<[4, 5]>
// CHECK:         %[[R:.*]] = linalg.generic {{.*}} outs(%{{.*}} : tensor<3xf32>)
// CHECK-NEXT:    ^bb0
// CHECK-NEXT:      linalg.yield %[[TWO]]
// CHECK:         return %[[R]], %[[TABLE]], %arg0
func.func @returned(%x: tensor<3xf32>) -> (tensor<3xf32>, tensor<2xi64>, tensor<3xf32>) {
  %two = arith.constant 2.0 : f32
  %i = tensor.empty() : tensor<3xf32>
  %f = linalg.fill ins(%two : f32) outs(%i : tensor<3xf32>) -> tensor<3xf32>
  %table = arith.constant dense<[4, 5]> : tensor<2xi64>
  return %f, %table, %x : tensor<3xf32>, tensor<2xi64>, tensor<3xf32>
}

// -----

#map = affine_map<(d0, d1) -> (d0, d1)>
#row = affine_map<(d0, d1) -> (d0)>

// A sum over no columns is what it starts from: 0.

// CHECK-LABEL: func.func @sum_of_nothing
// CHECK-NOT:     reduction
// CHECK:         %[[ZERO:.+]] = arith.constant 0.000000e+00 : f32
// CHECK:         %[[SUM:.+]] = linalg.generic
// CHECK-SAME:      outs(%{{.+}} : tensor<3xf32>)
// CHECK:           linalg.yield %[[ZERO]]
// CHECK:         return %[[SUM]]
func.func @sum_of_nothing(%x: tensor<3x0xf32>) -> tensor<3xf32> {
  %zero = arith.constant 0.0 : f32
  %e = tensor.empty() : tensor<3xf32>
  %init = linalg.fill ins(%zero : f32) outs(%e : tensor<3xf32>) -> tensor<3xf32>
  %s = linalg.generic {indexing_maps = [#map, #row], iterator_types = ["parallel", "reduction"]}
      ins(%x : tensor<3x0xf32>) outs(%init : tensor<3xf32>) {
  ^bb0(%in: f32, %out: f32):
    %1 = arith.addf %in, %out : f32
    linalg.yield %1 : f32
  } -> tensor<3xf32>
  return %s : tensor<3xf32>
}

// -----

#map = affine_map<(d0) -> (d0)>

// A call without effects that nobody needs goes, with what only it needs; one that draws random numbers stays.

// CHECK-LABEL: func.func @unused_calls
// CHECK-NOT:     math.exp
// CHECK-NOT:     aten.sort
// CHECK:         "fusion.extern"(){{.*}}aten.rand
// CHECK:         return %arg0
func.func @unused_calls(%x: tensor<8xf32>) -> tensor<8xf32> {
  %e = tensor.empty() : tensor<8xf32>
  %y = linalg.exp ins(%x : tensor<8xf32>) outs(%e : tensor<8xf32>) -> tensor<8xf32>
  %s = "fusion.extern"(%y) {op = "aten.sort", args = [#fusion.operand<0>]} : (tensor<8xf32>) -> tensor<8xf32>
  %r = "fusion.extern"() {op = "aten.rand", args = [[8 : i64]], effects = ["random"]} : () -> tensor<8xf32>
  return %x : tensor<8xf32>
}

// -----

#map = affine_map<(d0) -> (d0)>

// A reciprocal of 0 is infinite: torch-mlir's assertion that there is none goes, that an index is in range stays.

// CHECK-LABEL: func.func @reciprocal(
// CHECK-NOT:     cf.assert
// CHECK:         arith.divf
// CHECK:         cf.assert %{{.*}}, "index"
func.func @reciprocal(%x: tensor<3xf32>, %k: tensor<3xi64>) -> (tensor<3xf32>, tensor<3xi64>) {
  %zero = arith.constant 0.0 : f32
  %one = arith.constant 1.0 : f32
  %none = arith.constant 0 : i64
  %i = tensor.empty() : tensor<3xf32>
  %y = linalg.generic {indexing_maps = [#map, #map], iterator_types = ["parallel"]}
      ins(%x : tensor<3xf32>) outs(%i : tensor<3xf32>) {
  ^bb0(%in: f32, %out: f32):
    %c = arith.cmpf one, %in, %zero : f32
    cf.assert %c, "unimplemented: tensor with zero element"
    %q = arith.divf %one, %in : f32
    linalg.yield %q : f32
  } -> tensor<3xf32>
  %j = tensor.empty() : tensor<3xi64>
  %z = linalg.generic {indexing_maps = [#map, #map], iterator_types = ["parallel"]}
      ins(%k : tensor<3xi64>) outs(%j : tensor<3xi64>) {
  ^bb0(%in: i64, %out: i64):
    %c = arith.cmpi sge, %in, %none : i64
    cf.assert %c, "index"
    linalg.yield %in : i64
  } -> tensor<3xi64>
  return %y, %z : tensor<3xf32>, tensor<3xi64>
}
