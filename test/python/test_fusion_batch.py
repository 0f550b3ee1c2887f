"""Batches of random programs: no kernel writes what another of its batch touches, and neighbours do find together."""

from __future__ import annotations

import numpy as np
import pytest
from mlir_fusion.dialects import fusion
from mlir_fusion.dialects.mlir import ir
from mlir_fusion.driver.lower import lower
from mlir_fusion.driver.options import Options
from random_graphs import random_program, text

PROGRAMS = 40


@pytest.mark.parametrize("fusion_type", ["consecutive", "dataflow"])
def test_kernels_of_a_batch_touch_memory_of_their_own(fusion_type: str):
    """fusion-to-gpu asks once more, of memory as it was planned, and raises if they don't."""
    batched = 0
    for seed in range(PROGRAMS):
        rng = np.random.default_rng(seed)
        program = random_program(rng, int(rng.integers(2, 60)), calls=0.2)
        context = ir.Context()
        fusion.load(context)
        with context, ir.Location.unknown():
            module = ir.Module.parse(text(program))
            lower(module, Options(fusion_type=fusion_type, target="sm_90", max_region_ops=2), "gpu")
            batched += str(module).count("gpu.func @batch_")
    assert batched > PROGRAMS // 4


def test_a_foreach_step_is_one_launch():
    """Sixty tensors of three sizes, all updated alike."""
    shapes = [f"{8 + number % 3}x5" for number in range(60)]
    arguments = ", ".join(f"%a{number}: tensor<{shape}xf32>" for number, shape in enumerate(shapes))
    lines = []
    for number, shape in enumerate(shapes):
        type_ = f"tensor<{shape}xf32>"
        lines += [
            f"%e{number} = tensor.empty() : {type_}",
            f"%m{number} = linalg.mul ins(%a{number}, %a{number} : {type_}, {type_}) outs(%e{number} : {type_})"
            f" -> {type_}",
        ]
    types = ", ".join(f"tensor<{shape}xf32>" for shape in shapes)
    results = ", ".join(f"%m{number}" for number in range(60))
    source = f"func.func @main({arguments}) -> ({types}) {{\n" + "\n".join(lines) + f"\nreturn {results} : {types}\n}}"
    context = ir.Context()
    fusion.load(context)
    with context, ir.Location.unknown():
        module = ir.Module.parse(source)
        lower(module, Options(fusion_type="dataflow", target="sm_90"), "gpu")
    printed = str(module)
    assert printed.count("gpu.launch_func") == 1
    assert printed.count("scf.index_switch") == 3  # a body for each size
