// RUN: fusion-opt %s --split-input-file --pass-pipeline='builtin.module(fusion-import-extern)' | FileCheck %s

// A library call whose arguments are torch constants: they become its `args`, and the constants go.

// CHECK-LABEL: func.func @constants
// CHECK-SAME:    (%[[X:.*]]: !torch.vtensor<[4,8],f32>)
// CHECK-NEXT:  %[[T:.*]] = torch_c.to_builtin_tensor %[[X]] : !torch.vtensor<[4,8],f32> -> tensor<4x8xf32>
// CHECK-NEXT:  %[[C:.*]] = "fusion.extern"(%[[T]]) {args = [#fusion.operand<0>, 1], op = "aten.cumsum.default"} : (tensor<4x8xf32>) -> tensor<4x8xf32>
// CHECK-NEXT:  %[[R:.*]] = torch_c.from_builtin_tensor %[[C]] : tensor<4x8xf32> -> !torch.vtensor<[4,8],f32>
// CHECK-NEXT:  return %[[R]]
func.func @constants(%x: !torch.vtensor<[4,8],f32>) -> !torch.vtensor<[4,8],f32> {
  %dim = torch.constant.int 1
  %0 = torch.operator "torch.aten.cumsum"(%x, %dim) : (!torch.vtensor<[4,8],f32>, !torch.int) -> !torch.vtensor<[4,8],f32>
  return %0 : !torch.vtensor<[4,8],f32>
}

// -----

// How the frontend writes one: tensors only, the rest in `args`. What MLIR's types don't say is kept in `dtypes`.

// CHECK-LABEL: func.func @written_by_the_frontend
// CHECK:       "fusion.extern"(%{{.*}}) {args = [#fusion.operand<0>, "dtype:float16"], dtypes = ["uint8"], effects = ["random"], op = "aten.rand_like.default"} : (tensor<4xi8>) -> tensor<4xf16>
func.func @written_by_the_frontend(%x: !torch.vtensor<[4],ui8>) -> !torch.vtensor<[4],f16> {
  %0 = torch.operator "torch.aten.rand_like.default"(%x) {args = [#fusion.operand<0>, "dtype:float16"], effects = ["random"]}
      : (!torch.vtensor<[4],ui8>) -> !torch.vtensor<[4],f16>
  return %0 : !torch.vtensor<[4],f16>
}

// -----

// What is compiled is none of its business.

// CHECK-LABEL: func.func @compiled
// CHECK-NEXT:  %[[R:.*]] = torch.aten.exp
// CHECK-NEXT:  return %[[R]]
func.func @compiled(%x: !torch.vtensor<[4],f32>) -> !torch.vtensor<[4],f32> {
  %0 = torch.aten.exp %x : !torch.vtensor<[4],f32> -> !torch.vtensor<[4],f32>
  return %0 : !torch.vtensor<[4],f32>
}

// -----

// A draw of random numbers: its seed is a tensor, its offset becomes one.

// CHECK-LABEL: func.func @draw
// CHECK-SAME:    (%[[SEED:.*]]: !torch.vtensor<[],si64>)
// CHECK-DAG:     %[[S:.*]] = torch_c.to_builtin_tensor %[[SEED]] : !torch.vtensor<[],si64> -> tensor<i64>
// CHECK-DAG:     %[[O:.*]] = arith.constant dense<12> : tensor<i64>
// CHECK:         %[[R:.*]] = "fusion.random"(%[[S]], %[[O]]) {kind = "uniform"} : (tensor<i64>, tensor<i64>) -> tensor<4x8xbf16>
// CHECK:         %[[Y:.*]] = torch_c.from_builtin_tensor %[[R]] : tensor<4x8xbf16> -> !torch.vtensor<[4,8],bf16>
// CHECK:         return %[[Y]]
func.func @draw(%seed: !torch.vtensor<[],si64>) -> !torch.vtensor<[4,8],bf16> {
  %0 = torch.operator "torch.mlir_fusion.random"(%seed) {offset = 12 : i64, kind = "uniform"}
      : (!torch.vtensor<[],si64>) -> !torch.vtensor<[4,8],bf16>
  return %0 : !torch.vtensor<[4,8],bf16>
}
