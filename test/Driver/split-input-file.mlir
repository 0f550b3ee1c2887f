// Modules are cut apart at the marker, handled one by one, and put together again.
//
// RUN: fusion-opt %s --split-input-file --emit=linalg | FileCheck %s
// RUN: fusion-opt %s --split-input-file --report=json | FileCheck %s --check-prefix=JSON

// CHECK-LABEL: func.func @same_name
// CHECK:         math.exp
// CHECK:       // -----
// CHECK-LABEL: func.func @same_name
// CHECK:         math.log
// JSON:        "function": "same_name"
// JSON-NEXT:   "function": "same_name"
func.func @same_name(%x: tensor<8xf32>) -> tensor<8xf32> {
  %0 = tensor.empty() : tensor<8xf32>
  %y = linalg.exp ins(%x : tensor<8xf32>) outs(%0 : tensor<8xf32>) -> tensor<8xf32>
  return %y : tensor<8xf32>
}

// -----

func.func @same_name(%x: tensor<8xf32>) -> tensor<8xf32> {
  %0 = tensor.empty() : tensor<8xf32>
  %y = linalg.log ins(%x : tensor<8xf32>) outs(%0 : tensor<8xf32>) -> tensor<8xf32>
  return %y : tensor<8xf32>
}
