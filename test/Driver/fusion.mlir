// The two fusion passes on one program, c = a + b; d = c @ b; e = a - c, with the matmul left to the library.
//
// RUN: fusion-opt %s --fusion=consecutive | FileCheck %s --check-prefixes=CHECK,CONSECUTIVE
// RUN: fusion-opt %s --fusion=dataflow | FileCheck %s --check-prefixes=CHECK,DATAFLOW
// RUN: fusion-opt %s --fusion=none | FileCheck %s --check-prefixes=CHECK,CONSECUTIVE
//
// Without --fusion it is consecutive, and standard input is read without a file.
// RUN: cat %s | fusion-opt | FileCheck %s --check-prefixes=CHECK,CONSECUTIVE

// CHECK-LABEL: func.func @main
// CHECK-SAME:    (%[[A:.*]]: tensor<64x64xf32>, %[[B:.*]]: tensor<64x64xf32>)

// In source order, the call closes the first region.
// CONSECUTIVE:      %[[C:.*]] = "fusion.region"(%[[A]], %[[B]])
// CONSECUTIVE:        arith.addf
// CONSECUTIVE:      %[[D:.*]] = "fusion.extern"(%[[C]], %[[B]]) {{.*}}op = "aten.mm.default"
// CONSECUTIVE-NEXT: %[[E:.*]] = "fusion.region"(%[[A]], %[[C]])
// CONSECUTIVE:        arith.subf
// CONSECUTIVE:      return %[[D]], %[[E]]

// By data flow, e is computed with c: one kernel, and c is read from registers.
// DATAFLOW:         %[[R:.*]]:2 = "fusion.region"(%[[A]], %[[B]])
// DATAFLOW:           %[[C:.*]] = linalg.generic
// DATAFLOW:           arith.addf
// DATAFLOW:           %[[E:.*]] = linalg.generic {{.*}} ins(%{{.*}}, %[[C]]
// DATAFLOW:           arith.subf
// DATAFLOW:         %[[D:.*]] = "fusion.extern"(%[[R]]#{{[01]}}, %[[B]]) {{.*}}op = "aten.mm.default"
// DATAFLOW-NOT:     fusion.region
// DATAFLOW:         return %[[D]], %[[R]]#{{[01]}}
func.func @main(%a: tensor<64x64xf32>, %b: tensor<64x64xf32>) -> (tensor<64x64xf32>, tensor<64x64xf32>) {
  %0 = tensor.empty() : tensor<64x64xf32>
  %c = linalg.add ins(%a, %b : tensor<64x64xf32>, tensor<64x64xf32>) outs(%0 : tensor<64x64xf32>) -> tensor<64x64xf32>
  %d = "fusion.extern"(%c, %b) {op = "aten.mm.default", args = [#fusion.operand<0>, #fusion.operand<1>]}
      : (tensor<64x64xf32>, tensor<64x64xf32>) -> tensor<64x64xf32>
  %e = linalg.sub ins(%a, %c : tensor<64x64xf32>, tensor<64x64xf32>) outs(%0 : tensor<64x64xf32>) -> tensor<64x64xf32>
  return %d, %e : tensor<64x64xf32>, tensor<64x64xf32>
}
