// RUN: fusion-opt %s --split-input-file --verify-diagnostics --pass-pipeline='builtin.module(fusion-import-extern)'

func.func @not_a_constant(%x: !torch.vtensor<[4],f32>, %n: !torch.int) -> !torch.vtensor<[4],f32> {
  // expected-error @+1 {{takes a !torch.int that is no constant}}
  %0 = torch.operator "torch.aten.cumsum"(%x, %n) : (!torch.vtensor<[4],f32>, !torch.int) -> !torch.vtensor<[4],f32>
  return %0 : !torch.vtensor<[4],f32>
}

// -----

func.func @not_a_tensor(%x: !torch.vtensor<[4],f32>) -> !torch.float {
  // expected-error @+1 {{has a value of type !torch.float; only tensors}}
  %0 = torch.operator "torch.aten.item"(%x) : (!torch.vtensor<[4],f32>) -> !torch.float
  return %0 : !torch.float
}

// -----

func.func @draw_without_offset(%seed: !torch.vtensor<[],si64>) -> !torch.vtensor<[4],f32> {
  // expected-error @+1 {{torch.mlir_fusion.random takes a seed and has attributes offset and kind}}
  %0 = torch.operator "torch.mlir_fusion.random"(%seed) {kind = "uniform"}
      : (!torch.vtensor<[],si64>) -> !torch.vtensor<[4],f32>
  return %0 : !torch.vtensor<[4],f32>
}
