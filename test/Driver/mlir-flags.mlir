// The flags of mlir-opt, with our passes beside upstream's.
//
// RUN: fusion-opt %s --emit=ptx --mlir-print-ir-after-all --mlir-timing -o /dev/null 2>&1 | FileCheck %s --check-prefix=AFTER
// AFTER:     IR Dump After FusionNormalize: fusion-normalize
// AFTER:     IR Dump After FusionConsecutive: fusion-consecutive
// AFTER:     "fusion.region"
// AFTER:     Execution time report
// AFTER:     FusionConsecutive
// AFTER:     IR Dump After FusionPlanMemory: fusion-plan-memory
// AFTER:     IR Dump After FusionToGpu: fusion-to-gpu
// AFTER:     IR Dump After ConvertGpuOpsToNVVMOps: convert-gpu-to-nvvm
//
// RUN: fusion-opt %s --pass-pipeline='builtin.module(fusion-normalize,cse)' --mlir-print-ir-before-all -o /dev/null 2>&1 \
// RUN:   | FileCheck %s --check-prefix=BEFORE
// BEFORE:    IR Dump Before FusionNormalize: fusion-normalize
// BEFORE:    linalg.exp
// BEFORE:    IR Dump Before CSEPass: cse
// BEFORE:    linalg.generic
//
// A file for each pass; a folder for each stage of our own pipeline.
// RUN: rm -rf %t && fusion-opt %s --mlir-print-ir-tree-dir=%t/stages -o /dev/null
// RUN: FileCheck %s --check-prefix=TREE < %t/stages/1-region/builtin_module_no-symbol-name/0_fusion-consecutive.mlir
// RUN: fusion-opt %s --pass-pipeline='fusion-normalize,func.func(cse)' --mlir-print-ir-tree-dir=%t/passes -o /dev/null
// RUN: test -f %t/passes/builtin_module_no-symbol-name/0_fusion-normalize.mlir
// RUN: test -f %t/passes/builtin_module_no-symbol-name/func_func_main/0_0_cse.mlir
// TREE:      fusion.region
//
// One dash does too.
// RUN: fusion-opt %s -mlir-print-op-generic -emit=linalg | FileCheck %s --check-prefix=GENERIC
// GENERIC:   "func.func"() <{function_type
// GENERIC:   "linalg.generic"
//
// RUN: fusion-opt --list-passes | FileCheck %s --check-prefix=LIST
// LIST:      fusion-normalize{fma=true fast-math=auto}{{$}}
// LIST-NEXT: {{^    .+}}
// LIST:      fusion-dataflow{horizontal=true memory-aware=true {{.*}}max-region-ops={{[0-9]+}}
// LIST:      fusion-to-gpu
//
// RUN: fusion-opt --help | FileCheck %s --check-prefix=HELP
// HELP:      --fusion TYPE consecutive, dataflow, none (default: consecutive)
// HELP:      --target NAME cpu, simt, sm_80, sm_90, sm_90a, sm_100
// HELP:      horizontal=true dataflow merges independent siblings too
// HELP:      fusion-to-gpu
func.func @main(%x: tensor<1024xf32>) -> tensor<1024xf32> {
  %0 = tensor.empty() : tensor<1024xf32>
  %y = linalg.exp ins(%x : tensor<1024xf32>) outs(%0 : tensor<1024xf32>) -> tensor<1024xf32>
  return %y : tensor<1024xf32>
}
