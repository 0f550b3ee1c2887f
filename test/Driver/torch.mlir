// The torch dialect is read too; a call that torch-mlir doesn't know stays a call.
//
// RUN: fusion-opt %s | FileCheck %s

// CHECK-LABEL: func.func @main
// CHECK-SAME:    (%[[A:.*]]: tensor<4x8xf32>) -> tensor<4x8xf32>
// CHECK:         %[[E:.*]] = "fusion.region"(%[[A]])
// CHECK:           math.exp
// CHECK:         %[[S:.*]] = "fusion.extern"(%[[E]]) {args = [#fusion.operand<0>, 1], op = "aten.cumsum.default"}
// CHECK:         return %[[S]]
func.func @main(%a: !torch.vtensor<[4,8],f32>) -> !torch.vtensor<[4,8],f32> {
  %0 = torch.aten.exp %a : !torch.vtensor<[4,8],f32> -> !torch.vtensor<[4,8],f32>
  %dim = torch.constant.int 1
  %1 = torch.operator "torch.aten.cumsum"(%0, %dim)
      : (!torch.vtensor<[4,8],f32>, !torch.int) -> !torch.vtensor<[4,8],f32>
  return %1 : !torch.vtensor<[4,8],f32>
}
