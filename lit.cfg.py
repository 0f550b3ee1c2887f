"""How lit runs the tests in test/: real FileCheck, fusion-opt and mlir-fusion of this environment.

    .venv/bin/lit test                      all
    .venv/bin/lit -v test/Driver            one folder, with what failed
    .venv/bin/lit -v test/Passes/fusion-dataflow.mlir

Features, for REQUIRES: `ptxas`, where NVIDIA's assembler is found (`%ptxas` runs it).
"""

import os
import sys
from pathlib import Path

import lit.formats
from lit.TestingConfig import TestingConfig
from mlir_fusion.targets.toolkit import find_ptxas

config: TestingConfig = globals()["config"]

root = Path(__file__).resolve().parent
binaries = Path(sys.executable).parent

config.name = "mlir-fusion"
config.test_format = lit.formats.ShTest(execute_external=False)
config.suffixes = [".mlir"]
config.excludes = ["Inputs", "python", "gpu", "build", ".venv"]
config.test_source_root = str(root)
config.test_exec_root = str(root / "build" / "lit")

# What is under test, and the tools, come from the environment that lit itself runs in
config.environment["PATH"] = os.pathsep.join((str(binaries), os.environ.get("PATH", "")))
for variable in ("MLIR_FUSION_ENABLE", "MLIR_FUSION_DISABLE", "MLIR_FUSION_OPTIONS"):
    config.environment.pop(variable, None)
config.environment["MLIR_FUSION_CACHE_DIR"] = str(root / "build" / "lit" / "cache")

ptxas = find_ptxas()
if ptxas is not None:
    config.available_features.add("ptxas")
    config.substitutions.append(("%ptxas", str(ptxas)))
