// --pass-pipeline runs exactly these passes, ours and upstream's in any mixture.
//
// RUN: fusion-opt %s --pass-pipeline='builtin.module(func.func(cse,canonicalize{max-iterations=3}),fusion-normalize,cse,fusion-consecutive{max-region-ops=1},canonicalize)' \
// RUN:   | FileCheck %s --check-prefix=MIXED
//
// Without the anchor around it, it is understood; and passes take no options from the environment.
// RUN: env MLIR_FUSION_OPTIONS=max_region_ops=1 fusion-opt %s --pass-pipeline='fusion-normalize,fusion-consecutive' \
// RUN:   | FileCheck %s --check-prefix=ONE
//
// The whole of ours has a name. Options of the environment reach it, and its own go before those.
// RUN: fusion-opt %s --pass-pipeline='builtin.module(fusion-pipeline{fusion=dataflow target=sm_80 emit=ptx})' \
// RUN:   | FileCheck %s --check-prefix=PTX
// RUN: env MLIR_FUSION_OPTIONS=max_region_ops=1 fusion-opt %s --pass-pipeline='builtin.module(cse,fusion-pipeline)' \
// RUN:   | FileCheck %s --check-prefix=MIXED
// RUN: env MLIR_FUSION_OPTIONS=max_region_ops=1 fusion-opt %s \
// RUN:   --pass-pipeline='builtin.module(fusion-pipeline{max-region-ops=2},canonicalize)' | FileCheck %s --check-prefix=ONE

// MIXED-LABEL:   func.func @main
// MIXED-COUNT-2:   "fusion.region"
// MIXED-NOT:       "fusion.region"
// ONE-LABEL:     func.func @main
// ONE:             "fusion.region"
// ONE-NOT:         "fusion.region"
// PTX:           .target sm_80
// PTX-COUNT-1:   .visible .entry
func.func @main(%x: tensor<1024xf32>) -> tensor<1024xf32> {
  %0 = tensor.empty() : tensor<1024xf32>
  %y = linalg.exp ins(%x : tensor<1024xf32>) outs(%0 : tensor<1024xf32>) -> tensor<1024xf32>
  %z = linalg.add ins(%x, %y : tensor<1024xf32>, tensor<1024xf32>) outs(%0 : tensor<1024xf32>) -> tensor<1024xf32>
  return %z : tensor<1024xf32>
}
