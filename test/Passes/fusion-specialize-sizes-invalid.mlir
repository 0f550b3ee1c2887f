// RUN: fusion-opt %s --split-input-file --verify-diagnostics --pass-pipeline='fusion-specialize-sizes{sizes={s0=8}}'

// expected-error @+1 {{the program has dynamic sizes; give them: --sizes=s1=...,s2=...}}
func.func @missing(%x: tensor<?x?xf32> {fusion.shape = ["s1", "s0*s2"]}) {
  return
}

// -----

// expected-error @+1 {{argument 0 has a dynamic size: say it with fusion.shape = [...], got tensor<?xf32>}}
func.func @no_shape(%x: tensor<?xf32>, %y: tensor<?xf32> {fusion.shape = ["s0"]}) {
  return
}

// -----

// expected-error @+1 {{argument 0 is tensor<?x8xf32>, but fusion.shape makes dimension 1 16}}
func.func @other_shape(%x: tensor<?x8xf32> {fusion.shape = ["s0", "2*s0"]}) {
  return
}

// -----

// expected-error @+1 {{'s0**2' is not a size: symbols and numbers, with + - * // % and parentheses}}
func.func @no_size(%x: tensor<?xf32> {fusion.shape = ["s0**2"]}) {
  return
}

// -----

func.func @unknown(%x: tensor<?xf32> {fusion.shape = ["s0"]}) {
  // expected-error @+1 {{the sizes of result 0 of test.strange.default don't follow from its operands; say it with result_shapes, for example result_shapes = [["s0", 8]]}}
  %y = "fusion.extern"(%x) {op = "test.strange.default", args = [#fusion.operand<0>]} : (tensor<?xf32>) -> tensor<?xf32>
  return
}

// -----

// expected-error @+1 {{the shape of argument 0 has 1 entries for a type tensor<?x8xf32>}}
func.func @rank(%x: tensor<?x8xf32> {fusion.shape = ["s0"]}) {
  return
}

// -----

// expected-error @+1 {{the shape of argument 0 must be an array of numbers and expressions, such as ["s0", 8], got "s0"}}
func.func @no_array(%x: tensor<?xf32> {fusion.shape = "s0"}) {
  return
}
