"""A process that compiles kernels, in an order of its own, with a folder shared by many; test_cache_stress.py runs it.

    python cache_stress.py SEED KERNELS      compiles until all are right, or it is killed; a wrong result is status 1

Needs no torch, so that many can start.
"""

from __future__ import annotations

import random
import sys

import numpy as np
from mlir_fusion.dialects.mlir import ir
from mlir_fusion.driver.build import build
from mlir_fusion.driver.kernel_code import NativeCode
from mlir_fusion.driver.options import Options
from mlir_fusion.driver.runner import make_context

SIZE = 32
PROGRAM = """
func.func @main(%x: tensor<32xf32>) -> tensor<32xf32> {{
  %0 = tensor.empty() : tensor<32xf32>
  %y = linalg.map ins(%x : tensor<32xf32>) outs(%0 : tensor<32xf32>) (%a: f32, %b: f32) {{
    %c = arith.constant {value} : f32
    %d = arith.addf %a, %c : f32
    linalg.yield %d : f32
  }}
  return %y : tensor<32xf32>
}}
"""


def check(number: int) -> bool:
    """Whether kernel `number`, from the folder or not, adds `number`."""
    with make_context():
        code = build(ir.Module.parse(PROGRAM.format(value=f"{number}.0")), Options(target="cpu")).code
    assert isinstance(code, NativeCode)
    x, y = np.arange(SIZE, dtype=np.float32), np.empty(SIZE, np.float32)
    (name,) = code.kernels
    code.function(name, 2)(x.ctypes.data, y.ctypes.data)
    return bool((y == x + number).all())


def main() -> int:
    seed, kernels = map(int, sys.argv[1:])
    order = list(range(1, kernels + 1))
    random.Random(seed).shuffle(order)
    return 0 if all(check(number) for number in order) else 1


if __name__ == "__main__":
    sys.exit(main())
