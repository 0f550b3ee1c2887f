// PTX of every target assembles, and a cubin is one file of machine code.
//
// REQUIRES: ptxas
// RUN: fusion-opt %s --fusion=dataflow --emit=ptx --target=sm_80 -o %t.ptx && %ptxas -arch=sm_80 %t.ptx -o %t.cubin
// RUN: fusion-opt %s --fusion=dataflow --emit=ptx --target=sm_90 -o %t.ptx && %ptxas -arch=sm_90 %t.ptx -o %t.cubin
// RUN: fusion-opt %s --fusion=dataflow --emit=ptx --target=sm_90a -o %t.ptx && %ptxas -arch=sm_90a %t.ptx -o %t.cubin
// RUN: fusion-opt %s --fusion=dataflow --emit=cubin --target=sm_90 -o %t.direct && cmp -n 4 %t.direct %t.cubin

// A softmax over the last axis.
func.func @main(%x: tensor<128x1024xf32>) -> tensor<128x1024xf32> {
  %low = arith.constant 0xFF800000 : f32
  %zero = arith.constant 0.0 : f32
  %row = tensor.empty() : tensor<128xf32>
  %all = tensor.empty() : tensor<128x1024xf32>
  %lows = linalg.fill ins(%low : f32) outs(%row : tensor<128xf32>) -> tensor<128xf32>
  %max = linalg.reduce { arith.maximumf } ins(%x : tensor<128x1024xf32>) outs(%lows : tensor<128xf32>) dimensions = [1]
  %maxes = linalg.broadcast ins(%max : tensor<128xf32>) outs(%all : tensor<128x1024xf32>) dimensions = [1]
  %shifted = linalg.sub ins(%x, %maxes : tensor<128x1024xf32>, tensor<128x1024xf32>) outs(%all : tensor<128x1024xf32>) -> tensor<128x1024xf32>
  %exp = linalg.exp ins(%shifted : tensor<128x1024xf32>) outs(%all : tensor<128x1024xf32>) -> tensor<128x1024xf32>
  %zeros = linalg.fill ins(%zero : f32) outs(%row : tensor<128xf32>) -> tensor<128xf32>
  %sum = linalg.reduce { arith.addf } ins(%exp : tensor<128x1024xf32>) outs(%zeros : tensor<128xf32>) dimensions = [1]
  %sums = linalg.broadcast ins(%sum : tensor<128xf32>) outs(%all : tensor<128x1024xf32>) dimensions = [1]
  %y = linalg.div ins(%exp, %sums : tensor<128x1024xf32>, tensor<128x1024xf32>) outs(%all : tensor<128x1024xf32>) -> tensor<128x1024xf32>
  return %y : tensor<128x1024xf32>
}
