"""Functions and random options for test_random_calls.py, which also runs this file as a new process for one call.

python random_calls.py FUNCTION ROWS OPTION=VALUE,...      the result's bytes in hexadecimal

The folder of compiled code is the environment's: the test gives the process an empty one.
"""

from __future__ import annotations

import random
import sys

import torch
import torch.nn.functional as F
from mlir_fusion.driver.options import declarations
from torch import Tensor

import mlir_fusion


def softmax(x: Tensor) -> Tensor:
    return (x * 2 + 1).softmax(-1)


def gelu(x: Tensor) -> Tensor:
    return F.gelu(x.half(), approximate="tanh").float() + x.sum(0)


def products(x: Tensor) -> Tensor:
    return (x @ x.t()).exp().cos() + x.amax(-1)


FUNCTIONS = {function.__name__: function for function in (softmax, gelu, products)}
CHOICES = {
    "fusion_type": ("none", "consecutive", "dataflow"),
    "max_region_ops": ("1", "2", "256"),
    "optimization_fuel": ("-1", "1"),
    "matmul": ("off", "auto", "on"),
    "fast_math": ("off", "auto", "on"),
    "disk_cache_mib": ("1", "1024"),
    **{option.name: ("true", "false") for option in declarations() if isinstance(option.default, bool)},
}
# What is measured may be another schedule in another process
del CHOICES["autotune"]


def random_options(generator: random.Random) -> list[str]:
    """A value for a few options."""
    names = generator.sample(sorted(CHOICES), 3)
    return [f"{name}={generator.choice(CHOICES[name])}" for name in names]


def make_input(rows: int) -> Tensor:
    return torch.randn((rows, 24), generator=torch.Generator().manual_seed(rows))


def data(result: Tensor) -> bytes:
    return result.contiguous().numpy().tobytes()


if __name__ == "__main__":
    function, rows, options = FUNCTIONS[sys.argv[1]], int(sys.argv[2]), sys.argv[3].split(",")
    fast = mlir_fusion.compile(function, enable_options=options)
    print(data(fast(make_input(rows))).hex())
