// What the verifiers of the fusion dialect refuse, and what they say.
//
// RUN: fusion-opt %s --split-input-file --verify-diagnostics

// ---- fusion.region

func.func @result_of_another_type(%a: tensor<4xf32>) -> tensor<8xf32> {
  // expected-error @+1 {{'fusion.region' op result 0 has type tensor<8xf32> but yielded value 0 has type tensor<4xf32>}}
  %r = "fusion.region"(%a) ({
  ^bb0(%x: tensor<4xf32>):
    "fusion.yield"(%x) : (tensor<4xf32>) -> ()
  }) : (tensor<4xf32>) -> tensor<8xf32>
  return %r : tensor<8xf32>
}

// -----

func.func @argument_of_another_type(%a: tensor<4xf32>) {
  // expected-error @+1 {{'fusion.region' op operand 0 has type tensor<4xf32> but block argument 0 has type tensor<4xf16>}}
  "fusion.region"(%a) ({
  ^bb0(%x: tensor<4xf16>):
    "fusion.yield"() : () -> ()
  }) : (tensor<4xf32>) -> ()
  return
}

// -----

func.func @operand_without_argument(%a: tensor<4xf32>) {
  // expected-error @+1 {{'fusion.region' op has 1 operands but 0 block arguments}}
  "fusion.region"(%a) ({
    "fusion.yield"() : () -> ()
  }) : (tensor<4xf32>) -> ()
  return
}

// -----

func.func @result_not_yielded(%a: tensor<4xf32>) {
  // expected-error @+1 {{'fusion.region' op has 2 results but 1 yielded values}}
  %r:2 = "fusion.region"(%a) ({
  ^bb0(%x: tensor<4xf32>):
    "fusion.yield"(%x) : (tensor<4xf32>) -> ()
  }) : (tensor<4xf32>) -> (tensor<4xf32>, tensor<4xf32>)
  return
}

// -----

func.func @not_isolated(%a: tensor<4xf32>) -> tensor<4xf32> {
  // expected-error @+1 {{'fusion.region' op is isolated from above, but its 'fusion.yield' uses a value from outside}}
  %r = "fusion.region"() ({
    "fusion.yield"(%a) : (tensor<4xf32>) -> ()
  }) : () -> tensor<4xf32>
  return %r : tensor<4xf32>
}

// -----

func.func @no_body() {
  // expected-error @+1 {{'fusion.region' op must have a body of one block, got 0}}
  "fusion.region"() ({}) : () -> ()
  return
}

// -----

func.func @no_yield() {
  // expected-error @+1 {{'fusion.region' op must end with fusion.yield}}
  "fusion.region"() ({
    %c = arith.constant 0 : index
  }) : () -> ()
  return
}

// -----

// ---- fusion.yield

func.func @yield_outside(%a: tensor<4xf32>) {
  // expected-error @+1 {{'fusion.yield' op must end a fusion.region or a fusion.kernel}}
  "fusion.yield"(%a) : (tensor<4xf32>) -> ()
  return
}

// -----

func.func @yield_twice() {
  "fusion.region"() ({
    // expected-error @+1 {{'fusion.yield' op must be the last operation of its block}}
    "fusion.yield"() : () -> ()
    "fusion.yield"() : () -> ()
  }) : () -> ()
  return
}

// -----

// ---- fusion.kernel

func.func @no_name() {
  // expected-error @+1 {{'fusion.kernel' op needs a string attribute 'name'}}
  "fusion.kernel"() ({
    "fusion.yield"() : () -> ()
  }) {operandSegmentSizes = array<i32: 0, 0>} : () -> ()
  return
}

// -----

func.func @no_segments() {
  // expected-error @+1 {{'fusion.kernel' op needs 'operandSegmentSizes = array<i32: ins, outs>'}}
  "fusion.kernel"() ({
    "fusion.yield"() : () -> ()
  }) {name = "k"} : () -> ()
  return
}

// -----

func.func @wrong_segments(%a: tensor<4xf32>) {
  // expected-error @+1 {{'fusion.kernel' op needs 'operandSegmentSizes = array<i32: ins, outs>'}}
  "fusion.kernel"(%a) ({
  ^bb0(%x: tensor<4xf32>):
    "fusion.yield"() : () -> ()
  }) {name = "k", operandSegmentSizes = array<i32: 2, -1>} : (tensor<4xf32>) -> ()
  return
}

// -----

func.func @schedule_is_text() {
  // expected-error @+1 {{'fusion.kernel' op 'schedule' must be #fusion.schedule<"family", {parameters}, "why">}}
  "fusion.kernel"() ({
    "fusion.yield"() : () -> ()
  }) {name = "k", operandSegmentSizes = array<i32: 0, 0>, schedule = "pointwise"} : () -> ()
  return
}

// -----

func.func @schedule_is_incomplete() {
  // expected-error @+1 {{'fusion.kernel' op 'schedule' must be #fusion.schedule<"family", {parameters}, "why">}}
  "fusion.kernel"() ({
    "fusion.yield"() : () -> ()
  }) {name = "k", operandSegmentSizes = array<i32: 0, 0>, schedule = #fusion.schedule<"pointwise">} : () -> ()
  return
}

// -----

func.func @outs_on_tensors(%a: tensor<4xf32>) {
  // expected-error @+1 {{'fusion.kernel' op on tensors has results, not 'outs'}}
  "fusion.kernel"(%a) ({
    "fusion.yield"() : () -> ()
  }) {name = "k", operandSegmentSizes = array<i32: 0, 1>} : (tensor<4xf32>) -> ()
  return
}

// -----

func.func @results_on_memrefs(%a: memref<4xf32>) {
  // expected-error @+1 {{'fusion.kernel' op on memrefs stores to 'outs' and has no results}}
  %r = "fusion.kernel"(%a) ({
  ^bb0(%x: tensor<4xf32>):
    "fusion.yield"(%x) : (tensor<4xf32>) -> ()
  }) {name = "k", operandSegmentSizes = array<i32: 1, 0>} : (memref<4xf32>) -> tensor<4xf32>
  return
}

// -----

func.func @too_few_outs(%a: memref<4xf32>) {
  // expected-error @+1 {{'fusion.kernel' op needs a block argument for each of 'ins' and a yielded value for each of 'outs'}}
  "fusion.kernel"(%a) ({
  ^bb0(%x: tensor<4xf32>):
    "fusion.yield"(%x) : (tensor<4xf32>) -> ()
  }) {name = "k", operandSegmentSizes = array<i32: 1, 0>} : (memref<4xf32>) -> ()
  return
}

// -----

func.func @memory_of_another_shape(%a: memref<4xf32>, %b: memref<8xf32>) {
  // expected-error @+1 {{'fusion.kernel' op a memref of type memref<8xf32> can't hold a tensor of type tensor<4xf32>}}
  "fusion.kernel"(%a, %b) ({
  ^bb0(%x: tensor<4xf32>):
    "fusion.yield"(%x) : (tensor<4xf32>) -> ()
  }) {name = "k", operandSegmentSizes = array<i32: 1, 1>} : (memref<4xf32>, memref<8xf32>) -> ()
  return
}

// -----

func.func @memory_of_bits(%a: memref<4xi1>, %b: memref<4xi1>) {
  // expected-error @+1 {{'fusion.kernel' op a memref of type memref<4xi1> can't hold a tensor of type tensor<4xi1>}}
  "fusion.kernel"(%a, %b) ({
  ^bb0(%x: tensor<4xi1>):
    "fusion.yield"(%x) : (tensor<4xi1>) -> ()
  }) {name = "k", operandSegmentSizes = array<i32: 1, 1>} : (memref<4xi1>, memref<4xi1>) -> ()
  return
}

// -----

// ---- fusion.extern

func.func @no_op(%a: tensor<4xf32>) {
  // expected-error @+1 {{'fusion.extern' op needs a string attribute 'op' such as "aten.mm.default"}}
  "fusion.extern"(%a) {op = "mm", args = [#fusion.operand<0>]} : (tensor<4xf32>) -> ()
  return
}

// -----

func.func @no_args() {
  // expected-error @+1 {{'fusion.extern' op needs an array attribute 'args', one entry a schema argument}}
  "fusion.extern"() {op = "aten.mm.default"} : () -> ()
  return
}

// -----

func.func @unknown_operand(%a: tensor<4xf32>) {
  // expected-error @+1 {{'fusion.extern' op 'args' names operand 1, but there are 1 operands}}
  "fusion.extern"(%a) {op = "aten.mm.default", args = [#fusion.operand<0>, #fusion.operand<1>]} : (tensor<4xf32>) -> ()
  return
}

// -----

func.func @unused_operand(%a: tensor<4xf32>) {
  // expected-error @+1 {{'fusion.extern' op operand 0 does not occur in 'args'}}
  "fusion.extern"(%a) {op = "aten.mm.default", args = [1, [2]]} : (tensor<4xf32>) -> ()
  return
}

// -----

func.func @malformed_operand(%a: tensor<4xf32>) {
  // expected-error @+1 {{'fusion.extern' op 'args' holds #fusion.operand<"a">, which is neither a constant nor #fusion.operand<i>}}
  "fusion.extern"(%a) {op = "aten.mm.default", args = [#fusion.operand<"a">]} : (tensor<4xf32>) -> ()
  return
}

// -----

func.func @unknown_effect() {
  // expected-error @+1 {{'fusion.extern' op effect 'randm' is not one of random, collective, opaque}}
  "fusion.extern"() {op = "aten.mm.default", args = [], effects = ["randm"]} : () -> ()
  return
}

// -----

func.func @effect_is_a_number() {
  // expected-error @+1 {{'fusion.extern' op 'effects' must be an array of strings}}
  "fusion.extern"() {op = "aten.mm.default", args = [], effects = [1]} : () -> ()
  return
}

// -----

func.func @too_many_dtypes(%a: tensor<4xf32>) {
  // expected-error @+1 {{'fusion.extern' op 'dtypes' must be an array with one entry for each operand, 1 in all}}
  "fusion.extern"(%a) {op = "aten.mm.default", args = [#fusion.operand<0>], dtypes = ["int8", "int8"]}
      : (tensor<4xf32>) -> ()
  return
}

// -----

func.func @tied_to_nothing(%a: tensor<4xf32>) {
  // expected-error @+1 {{'fusion.extern' op 'tied' names operand 0 and result 0: out of range}}
  "fusion.extern"(%a) {op = "aten.relu_.default", args = [#fusion.operand<0>], tied = [[0, 0]]} : (tensor<4xf32>) -> ()
  return
}

// -----

func.func @tied_is_no_pair(%a: tensor<4xf32>) {
  // expected-error @+1 {{'fusion.extern' op 'tied' must be an array of pairs [operand, result]}}
  %r = "fusion.extern"(%a) {op = "aten.relu_.default", args = [#fusion.operand<0>], tied = [0, 0]}
      : (tensor<4xf32>) -> tensor<4xf32>
  return
}

// -----

func.func @tied_to_another_type(%a: tensor<4xf32>) {
  // expected-error @+1 {{'fusion.extern' op tied operand 0 has type tensor<4xf32>, its result tensor<8xf32>}}
  %r = "fusion.extern"(%a) {op = "aten.relu_.default", args = [#fusion.operand<0>], tied = [[0, 0]]}
      : (tensor<4xf32>) -> tensor<8xf32>
  return
}

// -----

func.func @old_value_used(%a: tensor<4xf32>) -> tensor<4xf32> {
  // expected-error @+1 {{'fusion.extern' op operand 0 is written here but its old value is used later}}
  %r = "fusion.extern"(%a) {op = "aten.relu_.default", args = [#fusion.operand<0>], tied = [[0, 0]]}
      : (tensor<4xf32>) -> tensor<4xf32>
  return %a : tensor<4xf32>
}

// -----

// ---- fusion.view

func.func @view_without_strides(%a: tensor<4xf32>) {
  // expected-error @+1 {{'fusion.view' op needs one operand, one result and the attributes 'offset', 'sizes' and 'strides'}}
  %r = "fusion.view"(%a) {offset = 0, sizes = array<i64: 4>} : (tensor<4xf32>) -> tensor<4xf32>
  return
}

// -----

func.func @view_of_an_index(%a: index) {
  // expected-error @+1 {{'fusion.view' op views tensors, as tensors}}
  %r = "fusion.view"(%a) {offset = 0, sizes = array<i64: 4>, strides = array<i64: 1>} : (index) -> tensor<4xf32>
  return
}

// -----

func.func @sizes_are_text(%a: tensor<4xf32>) {
  // expected-error @+1 {{'fusion.view' op 'sizes' and 'strides' must be arrays of integers}}
  %r = "fusion.view"(%a) {offset = 0, sizes = "4", strides = array<i64: 1>} : (tensor<4xf32>) -> tensor<4xf32>
  return
}

// -----

func.func @view_of_another_rank(%a: tensor<4xf32>) {
  // expected-error @+1 {{'fusion.view' op needs 1 sizes and strides, got 1 and 2}}
  %r = "fusion.view"(%a) {offset = 0, sizes = array<i64: 4>, strides = array<i64: 4, 1>} : (tensor<4xf32>) -> tensor<4xf32>
  return
}

// -----

func.func @view_of_another_shape(%a: tensor<4xf32>) {
  // expected-error @+1 {{'fusion.view' op has sizes [2] but its result has shape [4]}}
  %r = "fusion.view"(%a) {offset = 0, sizes = array<i64: 2>, strides = array<i64: 1>} : (tensor<4xf32>) -> tensor<4xf32>
  return
}

// -----

func.func @backwards(%a: tensor<4xf32>) {
  // expected-error @+1 {{'fusion.view' op needs an offset and strides that are not negative}}
  %r = "fusion.view"(%a) {offset = 3, sizes = array<i64: 4>, strides = array<i64: -1>} : (tensor<4xf32>) -> tensor<4xf32>
  return
}

// -----

func.func @view_past_the_end(%a: tensor<4xf32>) {
  %b = "fusion.region"(%a) ({
  ^bb0(%x: tensor<4xf32>):
    "fusion.yield"(%x) : (tensor<4xf32>) -> ()
  }) : (tensor<4xf32>) -> tensor<4xf32>
  // expected-error @+1 {{'fusion.view' op reaches element 6 of a source of 4 elements}}
  %r = "fusion.view"(%b) {offset = 0, sizes = array<i64: 4>, strides = array<i64: 2>} : (tensor<4xf32>) -> tensor<4xf32>
  return
}

// -----

// ---- fusion.random

func.func @unknown_kind(%seed: tensor<i64>, %offset: tensor<i64>) {
  // expected-error @+1 {{'fusion.random' op 'kind' must be one of uniform, normal, bits, got 'gauss'}}
  %r = "fusion.random"(%seed, %offset) {kind = "gauss"} : (tensor<i64>, tensor<i64>) -> tensor<4xf32>
  return
}

// -----

func.func @scalar_seed(%seed: i64, %offset: tensor<i64>) {
  // expected-error @+1 {{'fusion.random' op the seed must be a tensor<i64>, got i64}}
  %r = "fusion.random"(%seed, %offset) {kind = "bits"} : (i64, tensor<i64>) -> tensor<4xi32>
  return
}

// -----

func.func @wide_normal(%seed: tensor<i64>, %offset: tensor<i64>) {
  // expected-error @+1 {{'fusion.random' op numbers of kind 'normal' are elements of type f32, got tensor<4xf64>}}
  %r = "fusion.random"(%seed, %offset) {kind = "normal"} : (tensor<i64>, tensor<i64>) -> tensor<4xf64>
  return
}

// -----

func.func @no_seed() {
  // expected-error @+1 {{'fusion.random' op needs two operands, seed and offset, and one result}}
  %r = "fusion.random"() {kind = "normal"} : () -> tensor<4xf32>
  return
}

// -----

// ---- #fusion.layout

// expected-error @+1 {{the layout of argument 0 has 1 strides for a tensor of type tensor<4x8xf32>}}
func.func @too_few_strides(%a: tensor<4x8xf32> {fusion.layout = #fusion.layout<[1], 0, 16>}) {
  return
}

// -----

// expected-error @+1 {{the layout of argument 0 has alignment 12, which is not a power of two}}
func.func @odd_alignment(%a: tensor<4xf32> {fusion.layout = #fusion.layout<[1], 0, 12>}) {
  return
}

// -----

// expected-error @+1 {{the layout of argument 0 has a negative offset or stride}}
func.func @negative_stride(%a: tensor<4xf32> {fusion.layout = #fusion.layout<[-1], 0, 16>}) {
  return
}

// -----

// expected-error @+1 {{the layout of argument 1 must be #fusion.layout<[strides], offset, alignment>, got "row-major"}}
func.func @layout_is_text(%a: tensor<4xf32>, %b: tensor<4xf32> {fusion.layout = "row-major"}) {
  return
}

// -----

// expected-error @+1 {{result 0 of type index can't have a layout}}
func.func @layout_of_an_index(%a: index) -> (index {fusion.layout = #fusion.layout<[], 0, 1>}) {
  return %a : index
}

// -----

// ---- operations that don't exist

func.func @misspelt(%a: tensor<4xf32>) {
  // expected-error @+1 {{unregistered operation 'fusion.regoin'; did you mean 'fusion.region'?}}
  "fusion.regoin"(%a) ({}) : (tensor<4xf32>) -> ()
  return
}

// -----

func.func @misspelt_inside(%a: tensor<4xf32>) -> tensor<4xf32> {
  %e = tensor.empty() : tensor<4xf32>
  %r = linalg.map ins(%a : tensor<4xf32>) outs(%e : tensor<4xf32>) (%x: f32, %o: f32) {
    // expected-error @+1 {{unregistered operation 'math.expp'}}
    %y = "math.expp"(%x) : (f32) -> f32
    linalg.yield %y : f32
  }
  return %r : tensor<4xf32>
}

// -----

// ---- what no function may hold

// expected-error @+1 {{'fusion.extern' op can't end a block of a function: a return must}}
func.func @no_return(%a: tensor<4xf32>) -> tensor<4xf32> {
  %r = "fusion.extern"(%a) {op = "aten.relu.default", args = [#fusion.operand<0>]} : (tensor<4xf32>) -> tensor<4xf32>
}

// -----

func.func @too_large() -> tensor<2147483648x65536xf32> {
  // expected-error @+1 {{no memory holds a value of type tensor<2147483648x65536xf32>}}
  %0 = arith.constant dense<0.0> : tensor<2147483648x65536xf32>
  return %0 : tensor<2147483648x65536xf32>
}

// -----

// expected-error @+1 {{the layout of argument 0 reaches further than any memory}}
func.func @far_layout(%a: tensor<4xf32> {fusion.layout = #fusion.layout<[9223372036854775807], 0, 4>}) {
  return
}

// -----

func.func @far_view(%a: tensor<4xf32>) -> tensor<2xf32> {
  // expected-error @+1 {{'fusion.view' op reaches further than any memory}}
  %v = "fusion.view"(%a) {offset = 0 : i64, sizes = array<i64: 2>, strides = array<i64: 9223372036854775807>}
      : (tensor<4xf32>) -> tensor<2xf32>
  return %v : tensor<2xf32>
}

// -----

func.func @dimensions_of_a_reshape(%x: tensor<3x5x4xf32>) -> tensor<3x20xf32> {
  // expected-error @+1 {{'tensor.collapse_shape' op has dimensions}}
  %c = tensor.collapse_shape %x [[8589934592], [1, 2]] : tensor<3x5x4xf32> into tensor<3x20xf32>
  return %c : tensor<3x20xf32>
}
