func.func @region(%a: tensor<4xf32>, %b: tensor<8x2xi1>) -> tensor<4xf32> {
  %r:2 = "fusion.region"(%a, %b) ({
  ^bb0(%x: tensor<4xf32>, %y: tensor<8x2xi1>):
    "fusion.yield"(%y, %x) : (tensor<8x2xi1>, tensor<4xf32>) -> ()
  }) : (tensor<4xf32>, tensor<8x2xi1>) -> (tensor<8x2xi1>, tensor<4xf32>)
  return %r#1 : tensor<4xf32>
}
// -----
func.func @call(%a: tensor<4xf32>, %b: tensor<4xf32>) -> tensor<4xf32> {
  %r = "fusion.extern"(%a, %b) {
      op = "aten.invented.default", effects = ["random"], dtypes = ["float32", "float32"],
      args = [[#fusion.operand<1>, #fusion.operand<0>], 1, unit, 0.5 : f32, "mean", true],
      result_layouts = [#fusion.layout<[1], 0, 16>]}
      : (tensor<4xf32>, tensor<4xf32>) -> tensor<4xf32>
  return %r : tensor<4xf32>
}
// -----
func.func @layouts(%a: tensor<4x8xf32> {fusion.layout = #fusion.layout<[1, 4], 2, 16>})
    -> (tensor<4x8xf32> {fusion.layout = #fusion.layout<[8, 1], 0, 1>}) {
  return %a : tensor<4x8xf32>
}
// -----
func.func @result_not_yielded(%a: tensor<4xf32>) {
  %r:2 = "fusion.region"(%a) ({
  ^bb0(%x: tensor<4xf32>):
    "fusion.yield"(%x) : (tensor<4xf32>) -> ()
  }) : (tensor<4xf32>) -> (tensor<4xf32>, tensor<4xf32>)
  return
}
// -----
func.func @yield_twice() {
  "fusion.region"() ({
    "fusion.yield"() : () -> ()
    "fusion.yield"() : () -> ()
  }) : () -> ()
  return
}
// -----
func.func @schedule_is_text() {
  "fusion.kernel"() ({
    "fusion.yield"() : () -> ()
  }) {name = "k", operandSegmentSizes = array<i32: 0, 0>, schedule = "pointwise"} : () -> ()
  return
}
// -----
func.func @too_few_outs(%a: memref<4xf32>) {
  "fusion.kernel"(%a) ({
  ^bb0(%x: tensor<4xf32>):
    "fusion.yield"(%x) : (tensor<4xf32>) -> ()
  }) {name = "k", operandSegmentSizes = array<i32: 1, 0>} : (memref<4xf32>) -> ()
  return
}
// -----
func.func @unknown_operand(%a: tensor<4xf32>) {
  "fusion.extern"(%a) {op = "aten.mm.default", args = [#fusion.operand<0>, #fusion.operand<1>]} : (tensor<4xf32>) -> ()
  return
}
// -----
func.func @effect_is_a_number() {
  "fusion.extern"() {op = "aten.mm.default", args = [], effects = [1]} : () -> ()
  return
}
// -----
func.func @tied_to_another_type(%a: tensor<4xf32>) {
  %r = "fusion.extern"(%a) {op = "aten.relu_.default", args = [#fusion.operand<0>], tied = [[0, 0]]}
      : (tensor<4xf32>) -> tensor<8xf32>
  return
}
// -----
func.func @view_of_another_rank(%a: tensor<4xf32>) {
  %r = "fusion.view"(%a) {offset = 0, sizes = array<i64: 4>, strides = array<i64: 4, 1>} : (tensor<4xf32>) -> tensor<4xf32>
  return
}
// -----
func.func @unknown_kind(%seed: i64, %offset: i64) {
  %r = "fusion.random"(%seed, %offset) {kind = "gauss"} : (i64, i64) -> tensor<4xf32>
  return
}
// -----
func.func @negative_stride(%a: tensor<4xf32> {fusion.layout = #fusion.layout<[-1], 0, 16>}) {
  return
}
// -----
func.func @no_return(%a: tensor<4xf32>) -> tensor<4xf32> {
  %r = "fusion.extern"(%a) {op = "aten.relu.default", args = [#fusion.operand<0>]} : (tensor<4xf32>) -> tensor<4xf32>
}
// -----
module {
func.func @undefined(%x: tensor<8xf32>) -> tensor<8xf32> {
  return %nowhere : tensor<8xf32>
}
}
// -----
func.func @main(%a: tensor<64x64xf32>, %b: tensor<64x64xf32>) -> (tensor<64x64xf32>, tensor<64x64xf32>) {
  %0 = tensor.empty() : tensor<64x64xf32>
  %c = linalg.add ins(%a, %b : tensor<64x64xf32>, tensor<64x64xf32>) outs(%0 : tensor<64x64xf32>) -> tensor<64x64xf32>
  %d = "fusion.extern"(%c, %b) {op = "aten.mm.default", args = [#fusion.operand<0>, #fusion.operand<1>]}
      : (tensor<64x64xf32>, tensor<64x64xf32>) -> tensor<64x64xf32>
  %e = linalg.sub ins(%a, %c : tensor<64x64xf32>, tensor<64x64xf32>) outs(%0 : tensor<64x64xf32>) -> tensor<64x64xf32>
  return %d, %e : tensor<64x64xf32>, tensor<64x64xf32>
}
// -----
#id = affine_map<(i, j) -> (i, j)>
func.func @main(%x: tensor<?x8xf32> {fusion.shape = ["s0", 8]}, %w: tensor<8x8xf32>)
    -> (tensor<?x8xf32>, tensor<?x8xf32>) {
  %c0 = arith.constant 0 : index
  %zero = arith.constant 0.0 : f32
  %d = tensor.dim %x, %c0 : tensor<?x8xf32>
  %e = tensor.empty(%d) : tensor<?x8xf32>
  %y = linalg.exp ins(%x : tensor<?x8xf32>) outs(%e : tensor<?x8xf32>) -> tensor<?x8xf32>
  %f = linalg.fill ins(%zero : f32) outs(%e : tensor<?x8xf32>) -> tensor<?x8xf32>
  %m = linalg.matmul ins(%y, %w : tensor<?x8xf32>, tensor<8x8xf32>) outs(%f : tensor<?x8xf32>) -> tensor<?x8xf32>
  %z = linalg.negf ins(%y : tensor<?x8xf32>) outs(%e : tensor<?x8xf32>) -> tensor<?x8xf32>
  return %m, %z : tensor<?x8xf32>, tensor<?x8xf32>
}
// -----
func.func @same_name(%x: tensor<8xf32>) -> tensor<8xf32> {
  %0 = tensor.empty() : tensor<8xf32>
  %y = linalg.exp ins(%x : tensor<8xf32>) outs(%0 : tensor<8xf32>) -> tensor<8xf32>
  return %y : tensor<8xf32>
}
// -----
#map = affine_map<(d0) -> (d0)>
func.func @siblings(%x: tensor<64xf32>, %y: tensor<64xf32>, %z: tensor<100xf32>)
    -> (tensor<64xf32>, tensor<64xf32>, tensor<100xf32>) {
  %a = "fusion.kernel"(%x) ({
  ^bb0(%v: tensor<64xf32>):
    %e = tensor.empty() : tensor<64xf32>
    %r = linalg.generic {indexing_maps = [#map, #map], iterator_types = ["parallel"]}
        ins(%v : tensor<64xf32>) outs(%e : tensor<64xf32>) {
    ^bb0(%in: f32, %out: f32):
      %1 = arith.negf %in : f32
      linalg.yield %1 : f32
    } -> tensor<64xf32>
    "fusion.yield"(%r) : (tensor<64xf32>) -> ()
  }) {name = "a", operandSegmentSizes = array<i32: 1, 0>} : (tensor<64xf32>) -> tensor<64xf32>
  %b = "fusion.kernel"(%y) ({
  ^bb0(%v: tensor<64xf32>):
    %e = tensor.empty() : tensor<64xf32>
    %r = linalg.generic {indexing_maps = [#map, #map], iterator_types = ["parallel"]}
        ins(%v : tensor<64xf32>) outs(%e : tensor<64xf32>) {
    ^bb0(%in: f32, %out: f32):
      %1 = arith.negf %in : f32
      linalg.yield %1 : f32
    } -> tensor<64xf32>
    "fusion.yield"(%r) : (tensor<64xf32>) -> ()
  }) {name = "b", operandSegmentSizes = array<i32: 1, 0>} : (tensor<64xf32>) -> tensor<64xf32>
  %c = "fusion.kernel"(%z) ({
  ^bb0(%v: tensor<100xf32>):
    %e = tensor.empty() : tensor<100xf32>
    %r = linalg.generic {indexing_maps = [#map, #map], iterator_types = ["parallel"]}
        ins(%v : tensor<100xf32>) outs(%e : tensor<100xf32>) {
    ^bb0(%in: f32, %out: f32):
      %1 = arith.mulf %in, %in : f32
      linalg.yield %1 : f32
    } -> tensor<100xf32>
    "fusion.yield"(%r) : (tensor<100xf32>) -> ()
  }) {name = "c", operandSegmentSizes = array<i32: 1, 0>} : (tensor<100xf32>) -> tensor<100xf32>
  return %a, %b, %c : tensor<64xf32>, tensor<64xf32>, tensor<100xf32>
}
// -----
#map = affine_map<(d0) -> (d0)>
func.func @others(%x: tensor<4x4x4x9xf32>) -> tensor<5xf32> {
  %c3 = arith.constant 3 : index
  %c4 = arith.constant 4 : index
  %e = tensor.empty() : tensor<5xf32>
  %r = linalg.generic {indexing_maps = [#map], iterator_types = ["parallel"]} outs(%e : tensor<5xf32>) {
  ^bb0(%out: f32):
    %i = linalg.index 0 : index
    %twice = arith.addi %i, %i : index
    %v = tensor.extract %x[%i, %c3, %c4, %twice] : tensor<4x4x4x9xf32>
    linalg.yield %v : f32
  } -> tensor<5xf32>
  return %r : tensor<5xf32>
}
// -----
func.func @one_operation(%a: tensor<8xf32>) -> tensor<8xf32> {
  %e = tensor.empty() : tensor<8xf32>
  %f = linalg.exp ins(%a : tensor<8xf32>) outs(%e : tensor<8xf32>) -> tensor<8xf32>
  return %f : tensor<8xf32>
}
// -----
func.func @no_output(%a: tensor<8xf32>) {
  %e = tensor.empty() : tensor<8xf32>
  %f = linalg.exp ins(%a : tensor<8xf32>) outs(%e : tensor<8xf32>) -> tensor<8xf32>
  return
}
// -----
func.func @call_between(%a: tensor<8x8xf32>) -> (tensor<8x8xf32>, tensor<8x8xf32>) {
  %e = tensor.empty() : tensor<8x8xf32>
  %c = linalg.exp ins(%a : tensor<8x8xf32>) outs(%e : tensor<8x8xf32>) -> tensor<8x8xf32>
  %d = "fusion.extern"(%c, %a) {op = "aten.mm.default", args = [#fusion.operand<0>, #fusion.operand<1>]} : (tensor<8x8xf32>, tensor<8x8xf32>) -> tensor<8x8xf32>
  %f = linalg.negf ins(%c : tensor<8x8xf32>) outs(%e : tensor<8x8xf32>) -> tensor<8x8xf32>
  return %d, %f : tensor<8x8xf32>, tensor<8x8xf32>
}
// -----
func.func @crossing(%p: tensor<8x8xf32>, %q: tensor<8x8xf32>, %w: tensor<8x8xf32>) -> (tensor<8x8xf32>, tensor<8x8xf32>) {
  %e = tensor.empty() : tensor<8x8xf32>
  %y = linalg.exp ins(%p : tensor<8x8xf32>) outs(%e : tensor<8x8xf32>) -> tensor<8x8xf32>
  %a = linalg.negf ins(%q : tensor<8x8xf32>) outs(%e : tensor<8x8xf32>) -> tensor<8x8xf32>
  %o = "fusion.extern"(%y, %w) {op = "aten.mm.default", args = [#fusion.operand<0>, #fusion.operand<1>]} : (tensor<8x8xf32>, tensor<8x8xf32>) -> tensor<8x8xf32>
  %b = linalg.add ins(%a, %o : tensor<8x8xf32>, tensor<8x8xf32>) outs(%e : tensor<8x8xf32>) -> tensor<8x8xf32>
  %c = "fusion.extern"(%a, %w) {op = "aten.mm.default", args = [#fusion.operand<0>, #fusion.operand<1>]} : (tensor<8x8xf32>, tensor<8x8xf32>) -> tensor<8x8xf32>
  %x = linalg.add ins(%y, %c : tensor<8x8xf32>, tensor<8x8xf32>) outs(%e : tensor<8x8xf32>) -> tensor<8x8xf32>
  return %b, %x : tensor<8x8xf32>, tensor<8x8xf32>
}
// -----
func.func @read_before_write(%a: tensor<8x8xf32>) -> tensor<8x8xf32> {
  %e = tensor.empty() : tensor<8x8xf32>
  %c = linalg.exp ins(%a : tensor<8x8xf32>) outs(%e : tensor<8x8xf32>) -> tensor<8x8xf32>
  %d = "fusion.extern"(%a) {op = "aten.add_.Tensor", args = [#fusion.operand<0>], tied = [[0, 0]]} : (tensor<8x8xf32>) -> tensor<8x8xf32>
  %f = linalg.add ins(%c, %d : tensor<8x8xf32>, tensor<8x8xf32>) outs(%e : tensor<8x8xf32>) -> tensor<8x8xf32>
  return %f : tensor<8x8xf32>
}
// -----
func.func @early_results(%a: tensor<8x8xf32>, %w: tensor<8x8xf32>) -> tensor<8x8xf32> {
  %e = tensor.empty() : tensor<8x8xf32>
  %r1 = linalg.exp ins(%a : tensor<8x8xf32>) outs(%e : tensor<8x8xf32>) -> tensor<8x8xf32>
  %s1 = "fusion.extern"(%r1, %w) {op = "aten.mm.default", args = [#fusion.operand<0>, #fusion.operand<1>]} : (tensor<8x8xf32>, tensor<8x8xf32>) -> tensor<8x8xf32>
  %r2 = linalg.exp ins(%a : tensor<8x8xf32>) outs(%e : tensor<8x8xf32>) -> tensor<8x8xf32>
  %s2 = "fusion.extern"(%s1, %r2, %w) {op = "aten.addmm.default", args = [#fusion.operand<0>, #fusion.operand<1>, #fusion.operand<2>]} : (tensor<8x8xf32>, tensor<8x8xf32>, tensor<8x8xf32>) -> tensor<8x8xf32>
  %r3 = linalg.exp ins(%a : tensor<8x8xf32>) outs(%e : tensor<8x8xf32>) -> tensor<8x8xf32>
  %s3 = "fusion.extern"(%s2, %r3, %w) {op = "aten.addmm.default", args = [#fusion.operand<0>, #fusion.operand<1>, #fusion.operand<2>]} : (tensor<8x8xf32>, tensor<8x8xf32>, tensor<8x8xf32>) -> tensor<8x8xf32>
  %r4 = linalg.exp ins(%a : tensor<8x8xf32>) outs(%e : tensor<8x8xf32>) -> tensor<8x8xf32>
  %s4 = "fusion.extern"(%s3, %r4, %w) {op = "aten.addmm.default", args = [#fusion.operand<0>, #fusion.operand<1>, #fusion.operand<2>]} : (tensor<8x8xf32>, tensor<8x8xf32>, tensor<8x8xf32>) -> tensor<8x8xf32>
  return %s4 : tensor<8x8xf32>
}
// -----
func.func @path_through_a_call(%a: tensor<8x8xf32>) -> tensor<8x8xf32> {
  %e = tensor.empty() : tensor<8x8xf32>
  %c = linalg.exp ins(%a : tensor<8x8xf32>) outs(%e : tensor<8x8xf32>) -> tensor<8x8xf32>
  %d = "fusion.extern"(%c, %a) {op = "aten.mm.default", args = [#fusion.operand<0>, #fusion.operand<1>]} : (tensor<8x8xf32>, tensor<8x8xf32>) -> tensor<8x8xf32>
  %f = linalg.add ins(%c, %d : tensor<8x8xf32>, tensor<8x8xf32>) outs(%e : tensor<8x8xf32>) -> tensor<8x8xf32>
  return %f : tensor<8x8xf32>
}
// -----
func.func private @declared(tensor<8x8xf32>)
// -----
func.func @not_a_constant(%x: !torch.vtensor<[4],f32>, %n: !torch.int) -> !torch.vtensor<[4],f32> {
  %0 = torch.operator "torch.aten.cumsum"(%x, %n) : (!torch.vtensor<[4],f32>, !torch.int) -> !torch.vtensor<[4],f32>
  return %0 : !torch.vtensor<[4],f32>
}
// -----
func.func @compiled(%x: !torch.vtensor<[4],f32>) -> !torch.vtensor<[4],f32> {
  %0 = torch.aten.exp %x : !torch.vtensor<[4],f32> -> !torch.vtensor<[4],f32>
  return %0 : !torch.vtensor<[4],f32>
}
// -----
#map = affine_map<(d0, d1) -> (d0, d1)>
#row = affine_map<(d0, d1) -> (d0)>
func.func @no_input(%x: tensor<4x64xf32>) -> tensor<4xf32> {
  %zero = arith.constant 0.0 : f32
  %least = arith.constant 0xFF800000 : f32
  %e = tensor.empty() : tensor<4x64xf32>
  %r = tensor.empty() : tensor<4xf32>
  %z = linalg.fill ins(%zero : f32) outs(%r : tensor<4xf32>) -> tensor<4xf32>
  %l = linalg.fill ins(%least : f32) outs(%r : tensor<4xf32>) -> tensor<4xf32>
  %m = linalg.generic {indexing_maps = [#map, #row], iterator_types = ["parallel", "reduction"]}
      ins(%x : tensor<4x64xf32>) outs(%l : tensor<4xf32>) {
  ^bb0(%in: f32, %out: f32):
    %v = arith.maximumf %in, %out : f32
    linalg.yield %v : f32
  } -> tensor<4xf32>
  %d = linalg.generic {indexing_maps = [#map, #row, #map], iterator_types = ["parallel", "parallel"]}
      ins(%x, %m : tensor<4x64xf32>, tensor<4xf32>) outs(%e : tensor<4x64xf32>) {
  ^bb0(%in: f32, %max: f32, %out: f32):
    %v = arith.subf %in, %max : f32
    linalg.yield %v : f32
  } -> tensor<4x64xf32>
  %p = linalg.generic {indexing_maps = [#map, #map], iterator_types = ["parallel", "parallel"]}
      ins(%d : tensor<4x64xf32>) outs(%e : tensor<4x64xf32>) {
  ^bb0(%in: f32, %out: f32):
    %v = math.exp %out : f32
    linalg.yield %v : f32
  } -> tensor<4x64xf32>
  %s = linalg.generic {indexing_maps = [#map, #row], iterator_types = ["parallel", "reduction"]}
      ins(%p : tensor<4x64xf32>) outs(%z : tensor<4xf32>) {
  ^bb0(%in: f32, %out: f32):
    %v = arith.addf %in, %out : f32
    linalg.yield %v : f32
  } -> tensor<4xf32>
  return %s : tensor<4xf32>
}
// -----
#map = affine_map<(d0) -> (d0)>
func.func @difference(%x: tensor<64xf32>, %y: tensor<64xf32>) -> (tensor<64xbf16>, tensor<64xbf16>) {
  %e32 = tensor.empty() : tensor<64xf32>
  %e16 = tensor.empty() : tensor<64xbf16>
  %1 = linalg.generic {indexing_maps = [#map, #map], iterator_types = ["parallel"]}
      ins(%x : tensor<64xf32>) outs(%e32 : tensor<64xf32>) {
  ^bb0(%in: f32, %out: f32):
    %v = math.exp %in : f32
    linalg.yield %v : f32
  } -> tensor<64xf32>
  %2:2 = linalg.generic {indexing_maps = [#map, #map, #map, #map], iterator_types = ["parallel"]}
      ins(%1, %y : tensor<64xf32>, tensor<64xf32>) outs(%e16, %e16 : tensor<64xbf16>, tensor<64xbf16>) {
  ^bb0(%in: f32, %other: f32, %out: bf16, %out2: bf16):
    %d = arith.subf %in, %other : f32
    %v = arith.truncf %d : f32 to bf16
    %w = arith.truncf %in : f32 to bf16
    linalg.yield %v, %w : bf16, bf16
  } -> (tensor<64xbf16>, tensor<64xbf16>)
  return %2#0, %2#1 : tensor<64xbf16>, tensor<64xbf16>
}

func.func @shown(%x: tensor<64xf32>) -> (tensor<64xbf16>, tensor<64xf32>) {
  %e32 = tensor.empty() : tensor<64xf32>
  %e16 = tensor.empty() : tensor<64xbf16>
  %1 = linalg.generic {indexing_maps = [#map, #map], iterator_types = ["parallel"]}
      ins(%x : tensor<64xf32>) outs(%e32 : tensor<64xf32>) {
  ^bb0(%in: f32, %out: f32):
    %v = math.exp %in : f32
    linalg.yield %v : f32
  } -> tensor<64xf32>
  %2 = linalg.generic {indexing_maps = [#map, #map], iterator_types = ["parallel"]}
      ins(%1 : tensor<64xf32>) outs(%e16 : tensor<64xbf16>) {
  ^bb0(%in: f32, %out: bf16):
    %v = arith.truncf %in : f32 to bf16
    linalg.yield %v : bf16
  } -> tensor<64xbf16>
  return %2, %1 : tensor<64xbf16>, tensor<64xf32>
}
// -----
func.func @copy_of_an_argument(%x: tensor<8xf32>) -> (tensor<8xf32>, tensor<8xf32>) {
  %e = tensor.empty() : tensor<8xf32>
  %old = linalg.copy ins(%x : tensor<8xf32>) outs(%e : tensor<8xf32>) -> tensor<8xf32>
  %w = "fusion.extern"(%x) {op = "test.shift_.default", args = [#fusion.operand<0>], tied = [[0, 0]]}
      : (tensor<8xf32>) -> tensor<8xf32>
  return %w, %old : tensor<8xf32>, tensor<8xf32>
}
// -----
func.func @nothing_to_keep(%x: tensor<8xf32>) -> tensor<8xf32> {
  %e = tensor.empty() : tensor<8xf32>
  %a = linalg.exp ins(%x : tensor<8xf32>) outs(%e : tensor<8xf32>) -> tensor<8xf32>
  %w = "fusion.extern"(%a) {op = "test.shift_.default", args = [#fusion.operand<0>], tied = [[0, 0]]}
      : (tensor<8xf32>) -> tensor<8xf32>
  return %w : tensor<8xf32>
}
// -----
func.func @softmax(%x: tensor<4x8xf32>) -> tensor<4x8xf32> {
  %0 = tensor.empty() : tensor<4x8xf32>
  %y = linalg.softmax dimension(1) ins(%x : tensor<4x8xf32>) outs(%0 : tensor<4x8xf32>) -> tensor<4x8xf32>
  return %y : tensor<4x8xf32>
}
// -----
func.func @wide(%x: tensor<8xf32>) -> tensor<8xf32> {
  %r = math.exp %x : tensor<8xf32>
  return %r : tensor<8xf32>
}
// -----
func.func @reshape_of_strided_argument(%x: tensor<3x5x4xf32> {fusion.layout = #fusion.layout<[1, 3, 15], 0, 1>})
    -> tensor<3x20xf32> {
  %c = tensor.collapse_shape %x [[0], [1, 2]] : tensor<3x5x4xf32> into tensor<3x20xf32>
  return %c : tensor<3x20xf32>
}
// -----
func.func @overwritten(%x: tensor<2x3xf32>) -> (tensor<2x3xf32>, tensor<3x2xf32>) {
  %i = tensor.empty() : tensor<3x2xf32>
  %t = linalg.transpose ins(%x : tensor<2x3xf32>) outs(%i : tensor<3x2xf32>) permutation = [1, 0]
  %w = "fusion.extern"(%x) {op = "test.shift_.default", args = [#fusion.operand<0>], tied = [[0, 0]]}
      : (tensor<2x3xf32>) -> tensor<2x3xf32>
  return %w, %t : tensor<2x3xf32>, tensor<3x2xf32>
}
// -----
#map = affine_map<(d0) -> (d0)>
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
// -----
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
#map = affine_map<(d0, d1) -> (d0, d1)>
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
#row = affine_map<(d0, d1) -> (d0)>
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
#transposed = affine_map<(d0, d1) -> (d1, d0)>
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
#left = affine_map<(i, j, k) -> (i, k)>
#right = affine_map<(i, j, k) -> (k, j)>
#out = affine_map<(i, j, k) -> (i, j)>
#id = affine_map<(i, j) -> (i, j)>
func.func @product(%x: tensor<8x16xf32>, %y: tensor<16x8xf32>) -> tensor<8x8xbf16> {
  %r = "fusion.region"(%x, %y) ({
  ^bb0(%a: tensor<8x16xf32>, %b: tensor<16x8xf32>):
    %zero = arith.constant 0.0 : f32
    %e0 = tensor.empty() : tensor<8x16xf32>
    %before = linalg.generic {indexing_maps = [#id, #id], iterator_types = ["parallel", "parallel"]}
        ins(%a : tensor<8x16xf32>) outs(%e0 : tensor<8x16xf32>) {
    ^bb0(%in: f32, %out: f32):
      %1 = arith.negf %in : f32
      linalg.yield %1 : f32
    } -> tensor<8x16xf32>
    %e1 = tensor.empty() : tensor<8x8xf32>
    %init = linalg.fill ins(%zero : f32) outs(%e1 : tensor<8x8xf32>) -> tensor<8x8xf32>
    %product = linalg.generic {indexing_maps = [#left, #right, #out], iterator_types = ["parallel", "parallel", "reduction"]}
        ins(%before, %b : tensor<8x16xf32>, tensor<16x8xf32>) outs(%init : tensor<8x8xf32>) {
    ^bb0(%p: f32, %q: f32, %sum: f32):
      %1 = arith.mulf %p, %q : f32
      %2 = arith.addf %sum, %1 : f32
      linalg.yield %2 : f32
    } -> tensor<8x8xf32>
    %e2 = tensor.empty() : tensor<8x8xbf16>
    %rounded = linalg.generic {indexing_maps = [#id, #id], iterator_types = ["parallel", "parallel"]}
        ins(%product : tensor<8x8xf32>) outs(%e2 : tensor<8x8xbf16>) {
    ^bb0(%in: f32, %out: bf16):
      %1 = arith.truncf %in : f32 to bf16
      linalg.yield %1 : bf16
    } -> tensor<8x8xbf16>
    %after = linalg.generic {indexing_maps = [#id, #id], iterator_types = ["parallel", "parallel"]}
        ins(%rounded : tensor<8x8xbf16>) outs(%e2 : tensor<8x8xbf16>) {
    ^bb0(%in: bf16, %out: bf16):
      %1 = arith.negf %in : bf16
      linalg.yield %1 : bf16
    } -> tensor<8x8xbf16>
    "fusion.yield"(%after) : (tensor<8x8xbf16>) -> ()
  }) : (tensor<8x16xf32>, tensor<16x8xf32>) -> tensor<8x8xbf16>
  return %r : tensor<8x8xbf16>
}
// -----
#map = affine_map<(i) -> (i)>
func.func @other_order(%x: tensor<4096xf32>) -> (tensor<8xf32>, tensor<8xf32>)
    attributes {fusion.source = {order = array<i64: 0, 2, 1, 3>, peak_bytes = 16448 : i64}} {
  %a = "fusion.region"(%x) ({
  ^bb0(%v: tensor<4096xf32>):
    %e = tensor.empty() : tensor<4096xf32>
    %r = linalg.generic {indexing_maps = [#map, #map], iterator_types = ["parallel"]}
        ins(%v : tensor<4096xf32>) outs(%e : tensor<4096xf32>) {
    ^bb0(%in: f32, %out: f32):
      %1 = math.exp %in : f32
      linalg.yield %1 : f32
    } -> tensor<4096xf32>
    "fusion.yield"(%r) : (tensor<4096xf32>) -> ()
  }) : (tensor<4096xf32>) -> tensor<4096xf32>
  %b = "fusion.region"(%x) ({
  ^bb0(%v: tensor<4096xf32>):
    %e = tensor.empty() : tensor<4096xf32>
    %r = linalg.generic {indexing_maps = [#map, #map], iterator_types = ["parallel"]}
        ins(%v : tensor<4096xf32>) outs(%e : tensor<4096xf32>) {
    ^bb0(%in: f32, %out: f32):
      %1 = math.sin %in : f32
      linalg.yield %1 : f32
    } -> tensor<4096xf32>
    "fusion.yield"(%r) : (tensor<4096xf32>) -> ()
  }) : (tensor<4096xf32>) -> tensor<4096xf32>
  %c = "fusion.extern"(%a) {op = "test.shrink.default", args = [#fusion.operand<0>]} : (tensor<4096xf32>) -> tensor<8xf32>
  %d = "fusion.extern"(%b) {op = "test.shrink.default", args = [#fusion.operand<0>]} : (tensor<4096xf32>) -> tensor<8xf32>
  return %c, %d : tensor<8xf32>, tensor<8xf32>
}
// -----
func.func @products(%a: tensor<8x32xf32>, %b: tensor<32x64xf32>, %c: tensor<8x64xf32>)
    -> (tensor<8x64xf32>, tensor<8x64xf32>) {
  %zero = arith.constant 0.0 : f32
  %i = tensor.empty() : tensor<8x64xf32>
  %f = linalg.fill ins(%zero : f32) outs(%i : tensor<8x64xf32>) -> tensor<8x64xf32>
  %m = linalg.matmul ins(%a, %b : tensor<8x32xf32>, tensor<32x64xf32>) outs(%f : tensor<8x64xf32>) -> tensor<8x64xf32>
  %n = linalg.matmul ins(%a, %b : tensor<8x32xf32>, tensor<32x64xf32>) outs(%c : tensor<8x64xf32>) -> tensor<8x64xf32>
  return %m, %n : tensor<8x64xf32>, tensor<8x64xf32>
}
// -----
func.func @left(%a: tensor<8x4xbf16>, %b: tensor<4x6xbf16>, %c: tensor<8x6xf32>, %p: tensor<8x4xi32>,
                %q: tensor<4x6xi32>, %r: tensor<8x6xi32>, %v: tensor<4xf32>, %w: tensor<4x6xf32>)
    -> (tensor<8x6xf32>, tensor<8x6xi32>, tensor<8x6xf32>) {
  %m = linalg.matmul ins(%a, %b : tensor<8x4xbf16>, tensor<4x6xbf16>) outs(%c : tensor<8x6xf32>) -> tensor<8x6xf32>
  %n = linalg.matmul ins(%p, %q : tensor<8x4xi32>, tensor<4x6xi32>) outs(%r : tensor<8x6xi32>) -> tensor<8x6xi32>
  %o = linalg.matmul
      indexing_maps = [affine_map<(m, n, k) -> (k)>, affine_map<(m, n, k) -> (k, n)>, affine_map<(m, n, k) -> (m, n)>]
      ins(%v, %w : tensor<4xf32>, tensor<4x6xf32>) outs(%c : tensor<8x6xf32>) -> tensor<8x6xf32>
  return %m, %n, %o : tensor<8x6xf32>, tensor<8x6xi32>, tensor<8x6xf32>
}
// -----
func.func @no_size(%x: tensor<?xf32> {fusion.shape = ["s0**2"]}) {
  return
}
// -----
#map = affine_map<(d0, d1) -> (d0, d1)>
#column = affine_map<(d0, d1) -> (d1)>
func.func @columns(%x: tensor<65536x2048xf32>) -> tensor<2048xf32> {
  %r = "fusion.region"(%x) ({
  ^bb0(%a: tensor<65536x2048xf32>):
    %zero = arith.constant 0.0 : f32
    %e = tensor.empty() : tensor<2048xf32>
    %init = linalg.fill ins(%zero : f32) outs(%e : tensor<2048xf32>) -> tensor<2048xf32>
    %sum = linalg.generic {indexing_maps = [#map, #column], iterator_types = ["reduction", "parallel"]}
        ins(%a : tensor<65536x2048xf32>) outs(%init : tensor<2048xf32>) {
    ^bb0(%in: f32, %out: f32):
      %1 = arith.addf %in, %out : f32
      linalg.yield %1 : f32
    } -> tensor<2048xf32>
    "fusion.yield"(%sum) : (tensor<2048xf32>) -> ()
  }) : (tensor<65536x2048xf32>) -> tensor<2048xf32>
  return %r : tensor<2048xf32>
}
// -----
#window = affine_map<(d0, d1) -> (d0 + d1)>
#kernel = affine_map<(d0, d1) -> (d0)>
#out = affine_map<(d0, d1) -> (d1)>
func.func @window(%x: tensor<8388609xf32>, %k: tensor<8388608xf32>) -> tensor<2xf32> {
  %r = "fusion.region"(%x, %k) ({
  ^bb0(%a: tensor<8388609xf32>, %b: tensor<8388608xf32>):
    %zero = arith.constant 0.0 : f32
    %e = tensor.empty() : tensor<2xf32>
    %init = linalg.fill ins(%zero : f32) outs(%e : tensor<2xf32>) -> tensor<2xf32>
    %sum = linalg.generic {indexing_maps = [#window, #kernel, #out], iterator_types = ["reduction", "parallel"]}
        ins(%a, %b : tensor<8388609xf32>, tensor<8388608xf32>) outs(%init : tensor<2xf32>) {
    ^bb0(%in: f32, %w: f32, %out: f32):
      %0 = arith.mulf %in, %w : f32
      %1 = arith.addf %0, %out : f32
      linalg.yield %1 : f32
    } -> tensor<2xf32>
    "fusion.yield"(%sum) : (tensor<2xf32>) -> ()
  }) : (tensor<8388609xf32>, tensor<8388608xf32>) -> tensor<2xf32>
  return %r : tensor<2xf32>
}
// -----
#map = affine_map<(d0) -> (d0)>
func.func @siblings(%x: tensor<64xf32>, %y: tensor<64xf32>, %z: tensor<100xf32>)
    -> (tensor<64xf32>, tensor<64xf32>, tensor<100xf32>) {
  %a = "fusion.kernel"(%x) ({
  ^bb0(%v: tensor<64xf32>):
    %e = tensor.empty() : tensor<64xf32>
    %r = linalg.generic {indexing_maps = [#map, #map], iterator_types = ["parallel"]}
        ins(%v : tensor<64xf32>) outs(%e : tensor<64xf32>) {
    ^bb0(%in: f32, %out: f32):
      %1 = arith.negf %in : f32
      linalg.yield %1 : f32
    } -> tensor<64xf32>
    "fusion.yield"(%r) : (tensor<64xf32>) -> ()
  }) {name = "a", operandSegmentSizes = array<i32: 1, 0>} : (tensor<64xf32>) -> tensor<64xf32>
  %b = "fusion.kernel"(%y) ({
  ^bb0(%v: tensor<64xf32>):
    %e = tensor.empty() : tensor<64xf32>
    %r = linalg.generic {indexing_maps = [#map, #map], iterator_types = ["parallel"]}
        ins(%v : tensor<64xf32>) outs(%e : tensor<64xf32>) {
    ^bb0(%in: f32, %out: f32):
      %1 = arith.negf %in : f32
      linalg.yield %1 : f32
    } -> tensor<64xf32>
    "fusion.yield"(%r) : (tensor<64xf32>) -> ()
  }) {name = "b", operandSegmentSizes = array<i32: 1, 0>} : (tensor<64xf32>) -> tensor<64xf32>
  %c = "fusion.kernel"(%z) ({
  ^bb0(%v: tensor<100xf32>):
    %e = tensor.empty() : tensor<100xf32>
    %r = linalg.generic {indexing_maps = [#map, #map], iterator_types = ["parallel"]}
        ins(%v : tensor<100xf32>) outs(%e : tensor<100xf32>) {
    ^bb0(%in: f32, %out: f32):
      %1 = arith.mulf %in, %in : f32
      linalg.yield %1 : f32
    } -> tensor<100xf32>
    "fusion.yield"(%r) : (tensor<100xf32>) -> ()
  }) {name = "c", operandSegmentSizes = array<i32: 1, 0>} : (tensor<100xf32>) -> tensor<100xf32>
  return %a, %b, %c : tensor<64xf32>, tensor<64xf32>, tensor<100xf32>
}
// -----
func.func @one_writes_what_another_reads(%x: memref<4xf32>, %y: memref<4xf32>, %z: memref<4xf32>) {
  "fusion.kernel"(%x, %y) ({
  ^bb0(%a: tensor<4xf32>):
    "fusion.yield"(%a) : (tensor<4xf32>) -> ()
  }) {batch = 0 : i64, name = "k", operandSegmentSizes = array<i32: 1, 1>,
      schedule = #fusion.schedule<"pointwise", {threads = 4, unroll = 1, vector = 1}, "">}
    : (memref<4xf32>, memref<4xf32>) -> ()
  "fusion.kernel"(%y, %z) ({
  ^bb0(%a: tensor<4xf32>):
    "fusion.yield"(%a) : (tensor<4xf32>) -> ()
  }) {batch = 0 : i64, name = "l", operandSegmentSizes = array<i32: 1, 1>,
      schedule = #fusion.schedule<"pointwise", {threads = 4, unroll = 1, vector = 1}, "">}
    : (memref<4xf32>, memref<4xf32>) -> ()
  return
}
// -----
#map = affine_map<(d0, d1) -> (d0, d1)>
#row = affine_map<(d0, d1) -> (d0)>
#point = affine_map<(d0, d1, d2) -> (d0, d1, d2)>
#part = affine_map<(d0, d1, d2) -> (d0, d2)>
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
#map1 = affine_map<(d0, d1) -> (d0)>
#map2 = affine_map<(d0, d1) -> (d1)>
module {
  func.func @main(%arg0: tensor<8x64xf32>, %arg1: tensor<64xf32>) -> (tensor<8x64xf32>, tensor<8xf32>) {
    %cst = arith.constant 0.000000e+00 : f32
    %0 = tensor.empty() : tensor<8x64xf32>
    %1 = tensor.empty() : tensor<8xf32>
    %2 = linalg.fill ins(%cst : f32) outs(%1 : tensor<8xf32>) -> tensor<8xf32>
    %3 = linalg.generic {indexing_maps = [#map, #map], iterator_types = ["parallel", "parallel"]} ins(%arg0 : tensor<8x64xf32>) outs(%0 : tensor<8x64xf32>) {
    ^bb0(%in: f32, %out: f32):
      %7 = math.exp %in : f32
      linalg.yield %7 : f32
    } -> tensor<8x64xf32>
    %4 = linalg.generic {indexing_maps = [#map, #map1], iterator_types = ["parallel", "reduction"]} ins(%3 : tensor<8x64xf32>) outs(%2 : tensor<8xf32>) {
    ^bb0(%in: f32, %out: f32):
      %7 = arith.addf %in, %out : f32
      linalg.yield %7 : f32
    } -> tensor<8xf32>
    %5 = linalg.generic {indexing_maps = [#map2, #map], iterator_types = ["parallel", "parallel"]} ins(%arg1 : tensor<64xf32>) outs(%0 : tensor<8x64xf32>) {
    ^bb0(%in: f32, %out: f32):
      linalg.yield %in : f32
    } -> tensor<8x64xf32>
    %6 = linalg.generic {indexing_maps = [#map, #map, #map], iterator_types = ["parallel", "parallel"]} ins(%3, %5 : tensor<8x64xf32>, tensor<8x64xf32>) outs(%0 : tensor<8x64xf32>) {
    ^bb0(%in: f32, %in_0: f32, %out: f32):
      %7 = arith.mulf %in, %in_0 : f32
      linalg.yield %7 : f32
    } -> tensor<8x64xf32>
    return %6, %4 : tensor<8x64xf32>, tensor<8xf32>
  }
}
// -----
#map = affine_map<(d0, d1) -> (d0, d1)>
#map1 = affine_map<(d0, d1) -> (d0)>
#map2 = affine_map<(d0, d1) -> (d1)>
module {
  func.func @main(%arg0: tensor<8x64xf32>, %arg1: tensor<64xf32>) -> (tensor<8x64xf32>, tensor<8xf32>) {
    %0:2 = "fusion.region"(%arg0, %arg1) ({
    ^bb0(%arg2: tensor<8x64xf32>, %arg3: tensor<64xf32>):
      %1 = tensor.empty() : tensor<8x64xf32>
      %2 = linalg.generic {indexing_maps = [#map, #map], iterator_types = ["parallel", "parallel"]} ins(%arg2 : tensor<8x64xf32>) outs(%1 : tensor<8x64xf32>) {
      ^bb0(%in: f32, %out: f32):
        %8 = math.exp %in : f32
        linalg.yield %8 : f32
      } -> tensor<8x64xf32>
      %3 = tensor.empty() : tensor<8xf32>
      %cst = arith.constant 0.000000e+00 : f32
      %4 = linalg.fill ins(%cst : f32) outs(%3 : tensor<8xf32>) -> tensor<8xf32>
      %5 = linalg.generic {indexing_maps = [#map, #map1], iterator_types = ["parallel", "reduction"]} ins(%2 : tensor<8x64xf32>) outs(%4 : tensor<8xf32>) {
      ^bb0(%in: f32, %out: f32):
        %8 = arith.addf %in, %out : f32
        linalg.yield %8 : f32
      } -> tensor<8xf32>
      %6 = linalg.generic {indexing_maps = [#map2, #map], iterator_types = ["parallel", "parallel"]} ins(%arg3 : tensor<64xf32>) outs(%1 : tensor<8x64xf32>) {
      ^bb0(%in: f32, %out: f32):
        linalg.yield %in : f32
      } -> tensor<8x64xf32>
      %7 = linalg.generic {indexing_maps = [#map, #map, #map], iterator_types = ["parallel", "parallel"]} ins(%2, %6 : tensor<8x64xf32>, tensor<8x64xf32>) outs(%1 : tensor<8x64xf32>) {
      ^bb0(%in: f32, %in_0: f32, %out: f32):
        %8 = arith.mulf %in, %in_0 : f32
        linalg.yield %8 : f32
      } -> tensor<8x64xf32>
      "fusion.yield"(%5, %7) : (tensor<8xf32>, tensor<8x64xf32>) -> ()
    }) : (tensor<8x64xf32>, tensor<64xf32>) -> (tensor<8xf32>, tensor<8x64xf32>)
    return %0#1, %0#0 : tensor<8x64xf32>, tensor<8xf32>
  }
}
// -----
#map = affine_map<(d0, d1) -> (d0, d1)>
#map1 = affine_map<(d0, d1) -> (d0)>
#map2 = affine_map<(d0, d1) -> (d1)>
module {
  func.func @main(%arg0: memref<8x64xf32>, %arg1: memref<64xf32>) -> (memref<8x64xf32>, memref<8xf32>) {
    %alloc = memref.alloc() : memref<8xf32>
    %alloc_0 = memref.alloc() : memref<8x64xf32>
    "fusion.kernel"(%arg0, %arg1, %alloc, %alloc_0) ({
    ^bb0(%arg2: tensor<8x64xf32>, %arg3: tensor<64xf32>):
      %0 = tensor.empty() : tensor<8x64xf32>
      %1 = linalg.generic {indexing_maps = [#map, #map], iterator_types = ["parallel", "parallel"]} ins(%arg2 : tensor<8x64xf32>) outs(%0 : tensor<8x64xf32>) {
      ^bb0(%in: f32, %out: f32):
        %7 = math.exp %in : f32
        linalg.yield %7 : f32
      } -> tensor<8x64xf32>
      %2 = tensor.empty() : tensor<8xf32>
      %cst = arith.constant 0.000000e+00 : f32
      %3 = linalg.fill ins(%cst : f32) outs(%2 : tensor<8xf32>) -> tensor<8xf32>
      %4 = linalg.generic {indexing_maps = [#map, #map1], iterator_types = ["parallel", "reduction"]} ins(%1 : tensor<8x64xf32>) outs(%3 : tensor<8xf32>) {
      ^bb0(%in: f32, %out: f32):
        %7 = arith.addf %in, %out : f32
        linalg.yield %7 : f32
      } -> tensor<8xf32>
      %5 = linalg.generic {indexing_maps = [#map2, #map], iterator_types = ["parallel", "parallel"]} ins(%arg3 : tensor<64xf32>) outs(%0 : tensor<8x64xf32>) {
      ^bb0(%in: f32, %out: f32):
        linalg.yield %in : f32
      } -> tensor<8x64xf32>
      %6 = linalg.generic {indexing_maps = [#map, #map, #map], iterator_types = ["parallel", "parallel"]} ins(%1, %5 : tensor<8x64xf32>, tensor<8x64xf32>) outs(%0 : tensor<8x64xf32>) {
      ^bb0(%in: f32, %in_1: f32, %out: f32):
        %7 = arith.mulf %in, %in_1 : f32
        linalg.yield %7 : f32
      } -> tensor<8x64xf32>
      "fusion.yield"(%4, %6) : (tensor<8xf32>, tensor<8x64xf32>) -> ()
    }) {name = "exp_addf_mulf_0", operandSegmentSizes = array<i32: 2, 2>, schedule = #fusion.schedule<"inner_reduction", {aligned = 0, chunks = 1, cluster = 1, groups = 0, row = "registers", rows = 16, threads = 16, unroll = 1, vector = 4}, "64 columns stay in registers: 16 threads with 1 vectors of 4 each">} : (memref<8x64xf32>, memref<64xf32>, memref<8xf32>, memref<8x64xf32>) -> ()
    return %alloc_0, %alloc : memref<8x64xf32>, memref<8xf32>
  }
}
// -----
module attributes {gpu.container_module} {
  func.func @main(%arg0: memref<8x64xf32>, %arg1: memref<64xf32>) -> (memref<8x64xf32>, memref<8xf32>) {
    %alloc = memref.alloc() : memref<8xf32>
    %alloc_0 = memref.alloc() : memref<8x64xf32>
    %c1 = arith.constant 1 : index
    %c1_1 = arith.constant 1 : index
    %c256 = arith.constant 256 : index
    gpu.launch_func  @kernels::@exp_addf_mulf_0 blocks in (%c1_1, %c1, %c1) threads in (%c256, %c1, %c1)  args(%arg0 : memref<8x64xf32>, %arg1 : memref<64xf32>, %alloc : memref<8xf32>, %alloc_0 : memref<8x64xf32>)
    return %alloc_0, %alloc : memref<8x64xf32>, memref<8xf32>
  }
  gpu.module @kernels attributes {dlti.dl_spec = #dlti.dl_spec<index = 32 : i64>} {
    gpu.func @exp_addf_mulf_0(%arg0: memref<8x64xf32>, %arg1: memref<64xf32>, %arg2: memref<8xf32>, %arg3: memref<8x64xf32>) kernel attributes {known_block_size = array<i32: 256, 1, 1>} {
      %reinterpret_cast = memref.reinterpret_cast %arg0 to offset: [0], sizes: [512], strides: [1] : memref<8x64xf32> to memref<512xf32>
      %reinterpret_cast_0 = memref.reinterpret_cast %arg1 to offset: [0], sizes: [64], strides: [1] : memref<64xf32> to memref<64xf32>
      %reinterpret_cast_1 = memref.reinterpret_cast %arg2 to offset: [0], sizes: [8], strides: [1] : memref<8xf32> to memref<8xf32>
      %reinterpret_cast_2 = memref.reinterpret_cast %arg3 to offset: [0], sizes: [512], strides: [1] : memref<8x64xf32> to memref<512xf32>
      %thread_id_x = gpu.thread_id x
      %block_id_x = gpu.block_id x
      %c16 = arith.constant 16 : index
      %0 = arith.divui %thread_id_x, %c16 : index
      %c16_3 = arith.constant 16 : index
      %1 = arith.muli %block_id_x, %c16_3 : index
      %2 = arith.addi %1, %0 : index
      %c16_4 = arith.constant 16 : index
      %3 = arith.remui %thread_id_x, %c16_4 : index
      %c8 = arith.constant 8 : index
      %4 = arith.cmpi ult, %2, %c8 : index
      %c7 = arith.constant 7 : index
      %5 = arith.select %4, %2, %c7 : index
      %c0 = arith.constant 0 : index
      %c0_5 = arith.constant 0 : index
      %6 = arith.addi %c0, %c0_5 : index
      %c16_6 = arith.constant 16 : index
      %7 = arith.muli %6, %c16_6 : index
      %8 = arith.addi %7, %3 : index
      %c4 = arith.constant 4 : index
      %9 = arith.muli %8, %c4 : index
      %cst = arith.constant 0.000000e+00 : f32
      %10 = vector.broadcast %cst : f32 to vector<4xf32>
      %c64 = arith.constant 64 : index
      %11 = arith.muli %5, %c64 : index
      %12 = arith.addi %11, %9 : index
      %13 = vector.load %reinterpret_cast[%12] {alignment = 16 : i64} : memref<512xf32>, vector<4xf32>
      %14 = math.exp %13 : vector<4xf32>
      %15 = arith.addf %10, %14 : vector<4xf32>
      %16 = vector.extract %15[0] : f32 from vector<4xf32>
      %17 = vector.extract %15[1] : f32 from vector<4xf32>
      %18 = vector.extract %15[2] : f32 from vector<4xf32>
      %19 = vector.extract %15[3] : f32 from vector<4xf32>
      %20 = arith.addf %16, %18 : f32
      %21 = arith.addf %17, %19 : f32
      %22 = arith.addf %20, %21 : f32
      %c8_i32 = arith.constant 8 : i32
      %c32_i32 = arith.constant 32 : i32
      %shuffleResult, %valid = gpu.shuffle xor %22, %c8_i32, %c32_i32 : f32
      %23 = arith.addf %22, %shuffleResult : f32
      %c4_i32 = arith.constant 4 : i32
      %c32_i32_7 = arith.constant 32 : i32
      %shuffleResult_8, %valid_9 = gpu.shuffle xor %23, %c4_i32, %c32_i32_7 : f32
      %24 = arith.addf %23, %shuffleResult_8 : f32
      %c2_i32 = arith.constant 2 : i32
      %c32_i32_10 = arith.constant 32 : i32
      %shuffleResult_11, %valid_12 = gpu.shuffle xor %24, %c2_i32, %c32_i32_10 : f32
      %25 = arith.addf %24, %shuffleResult_11 : f32
      %c1_i32 = arith.constant 1 : i32
      %c32_i32_13 = arith.constant 32 : i32
      %shuffleResult_14, %valid_15 = gpu.shuffle xor %25, %c1_i32, %c32_i32_13 : f32
      %26 = arith.addf %25, %shuffleResult_14 : f32
      %27 = vector.load %reinterpret_cast_0[%9] {alignment = 16 : i64} : memref<64xf32>, vector<4xf32>
      %28 = arith.mulf %14, %27 : vector<4xf32>
      scf.if %4 {
        %c64_17 = arith.constant 64 : index
        %31 = arith.muli %5, %c64_17 : index
        %32 = arith.addi %31, %9 : index
        vector.store %28, %reinterpret_cast_2[%32] {alignment = 16 : i64} : memref<512xf32>, vector<4xf32>
      }
      %c0_16 = arith.constant 0 : index
      %29 = arith.cmpi eq, %3, %c0_16 : index
      %30 = arith.andi %29, %4 : i1
      scf.if %30 {
        memref.store %26, %reinterpret_cast_1[%5] : memref<8xf32>
      }
      gpu.return
    }
  }
}
// -----
module attributes {gpu.container_module} {
  func.func @main(%arg0: memref<8x64xf32>, %arg1: memref<64xf32>) -> (memref<8x64xf32>, memref<8xf32>) {
    %alloc = memref.alloc() : memref<8xf32>
    %alloc_0 = memref.alloc() : memref<8x64xf32>
    %c1 = arith.constant 1 : index
    %c1_1 = arith.constant 1 : index
    %c256 = arith.constant 256 : index
    gpu.launch_func  @kernels::@exp_addf_mulf_0 blocks in (%c1_1, %c1, %c1) threads in (%c256, %c1, %c1)  args(%arg0 : memref<8x64xf32>, %arg1 : memref<64xf32>, %alloc : memref<8xf32>, %alloc_0 : memref<8x64xf32>)
    return %alloc_0, %alloc : memref<8x64xf32>, memref<8xf32>
  }
  gpu.module @kernels attributes {dlti.dl_spec = #dlti.dl_spec<index = 32 : i64>} {
    llvm.func @__nv_expf(f32) -> f32
    llvm.func @exp_addf_mulf_0(%arg0: !llvm.ptr, %arg1: !llvm.ptr, %arg2: !llvm.ptr, %arg3: !llvm.ptr) attributes {gpu.kernel, gpu.known_block_size = array<i32: 256, 1, 1>, nvvm.kernel, nvvm.maxntid = array<i32: 256, 1, 1>} {
      %0 = llvm.mlir.constant(-1 : i32) : i32
      %1 = llvm.mlir.constant(3 : i64) : i64
      %2 = llvm.mlir.constant(2 : i64) : i64
      %3 = llvm.mlir.constant(1 : i64) : i64
      %4 = llvm.mlir.constant(0 : i64) : i64
      %5 = llvm.mlir.constant(3 : i32) : i32
      %6 = llvm.mlir.constant(0 : i32) : i32
      %7 = llvm.mlir.poison : vector<4xf32>
      %8 = llvm.mlir.constant(16 : index) : i32
      %9 = llvm.mlir.constant(7 : index) : i32
      %10 = llvm.mlir.constant(4 : index) : i32
      %11 = llvm.mlir.constant(8 : i32) : i32
      %12 = llvm.mlir.constant(32 : i32) : i32
      %13 = llvm.mlir.constant(4 : i32) : i32
      %14 = llvm.mlir.constant(2 : i32) : i32
      %15 = llvm.mlir.constant(1 : i32) : i32
      %16 = llvm.mlir.constant(dense<0.000000e+00> : vector<4xf32>) : vector<4xf32>
      %17 = llvm.mlir.constant(64 : index) : i32
      %18 = llvm.mlir.constant(8 : index) : i32
      %19 = llvm.mlir.constant(0 : index) : i32
      %20 = nvvm.read.ptx.sreg.tid.x range <i32, 0, 256> : i32
      %21 = nvvm.read.ptx.sreg.ctaid.x : i32
      %22 = llvm.udiv %20, %8 : i32
      %23 = llvm.mul %21, %8 : i32
      %24 = llvm.add %23, %22 : i32
      %25 = llvm.urem %20, %8 : i32
      %26 = llvm.icmp "ult" %24, %18 : i32
      %27 = llvm.select %26, %24, %9 : i1, i32
      %28 = llvm.mul %25, %10 : i32
      %29 = llvm.mul %27, %17 : i32
      %30 = llvm.add %29, %28 : i32
      %31 = llvm.getelementptr %arg0[%30] : (!llvm.ptr, i32) -> !llvm.ptr, f32
      %32 = llvm.load %31 {alignment = 16 : i64} : !llvm.ptr -> vector<4xf32>
      %33 = llvm.extractelement %32[%6 : i32] : vector<4xf32>
      %34 = llvm.call @__nv_expf(%33) : (f32) -> f32
      %35 = llvm.insertelement %34, %7[%6 : i32] : vector<4xf32>
      %36 = llvm.extractelement %32[%15 : i32] : vector<4xf32>
      %37 = llvm.call @__nv_expf(%36) : (f32) -> f32
      %38 = llvm.insertelement %37, %35[%15 : i32] : vector<4xf32>
      %39 = llvm.extractelement %32[%14 : i32] : vector<4xf32>
      %40 = llvm.call @__nv_expf(%39) : (f32) -> f32
      %41 = llvm.insertelement %40, %38[%14 : i32] : vector<4xf32>
      %42 = llvm.extractelement %32[%5 : i32] : vector<4xf32>
      %43 = llvm.call @__nv_expf(%42) : (f32) -> f32
      %44 = llvm.insertelement %43, %41[%5 : i32] : vector<4xf32>
      %45 = llvm.fadd %44, %16 : vector<4xf32>
      %46 = llvm.extractelement %45[%4 : i64] : vector<4xf32>
      %47 = llvm.extractelement %45[%3 : i64] : vector<4xf32>
      %48 = llvm.extractelement %45[%2 : i64] : vector<4xf32>
      %49 = llvm.extractelement %45[%1 : i64] : vector<4xf32>
      %50 = llvm.fadd %46, %48 : f32
      %51 = llvm.fadd %47, %49 : f32
      %52 = llvm.fadd %50, %51 : f32
      %53 = llvm.sub %12, %12 : i32
      %54 = llvm.lshr %0, %53 : i32
      %55 = llvm.sub %12, %15 : i32
      %56 = nvvm.shfl.sync bfly %54, %52, %11, %55 : f32 -> f32
      %57 = llvm.fadd %52, %56 : f32
      %58 = nvvm.shfl.sync bfly %54, %57, %13, %55 : f32 -> f32
      %59 = llvm.fadd %57, %58 : f32
      %60 = nvvm.shfl.sync bfly %54, %59, %14, %55 : f32 -> f32
      %61 = llvm.fadd %59, %60 : f32
      %62 = nvvm.shfl.sync bfly %54, %61, %15, %55 : f32 -> f32
      %63 = llvm.fadd %61, %62 : f32
      %64 = llvm.getelementptr %arg1[%28] : (!llvm.ptr, i32) -> !llvm.ptr, f32
      %65 = llvm.load %64 {alignment = 16 : i64} : !llvm.ptr -> vector<4xf32>
      %66 = llvm.fmul %44, %65 : vector<4xf32>
      llvm.cond_br %26, ^bb1, ^bb2
    ^bb1:  // pred: ^bb0
      %67 = llvm.getelementptr %arg3[%30] : (!llvm.ptr, i32) -> !llvm.ptr, f32
      llvm.store %66, %67 {alignment = 16 : i64} : vector<4xf32>, !llvm.ptr
      llvm.br ^bb2
    ^bb2:  // 2 preds: ^bb0, ^bb1
      %68 = llvm.icmp "eq" %25, %19 : i32
      %69 = llvm.and %68, %26 : i1
      llvm.cond_br %69, ^bb3, ^bb4
    ^bb3:  // pred: ^bb2
      %70 = llvm.getelementptr inbounds|nuw %arg2[%27] : (!llvm.ptr, i32) -> !llvm.ptr, f32
      llvm.store %63, %70 : f32, !llvm.ptr
      llvm.br ^bb4
    ^bb4:  // 2 preds: ^bb2, ^bb3
      llvm.return
    }
  }
}
