"""`mlir_fusion.load`: a program that `mlir_fusion.export` wrote, ready to be called. Nothing is compiled.

Arguments are checked before anything runs: RuntimeError for a tensor of another shape, dtype or device, TypeError for
another structure, both naming the argument. Weights are the file's, and buffers that the program changes stay changed.
"""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any, cast

import torch
from torch import Tensor
from torch.utils import _pytree as pytree

from ..dialects.mlir import ir
from ..driver.fingerprint import versions
from ..driver.kernel_code import NativeCode, NativeKernel
from ..driver.native_objects import from_header
from ..driver.package import WEIGHTS, Package, PackageError, read
from ..driver.programs import HostObjects, load_program
from ..driver.runner import make_context
from ..runtime.cuda import CudaLauncher
from ..runtime.dtypes import dtype_named
from ..runtime.host_function import read_host_function
from ..runtime.image import Entry, Image
from ..runtime.launch import Launcher
from ..runtime.native import NativeLauncher
from ..runtime.program import Program
from ..targets import cpu
from ..targets.target import Target


def load(path: str | Path, device: str | torch.device | None = None) -> LoadedProgram:
    """What was exported, its weights on `device` (where it is None: the CPU, or the current GPU).

    Raises PackageError, a ValueError, for a file that is not a whole package of this version for this machine.
    """
    package = read(path)
    _check(path, package)
    kind = "cpu" if package.header["target"] == "cpu" else "cuda"
    return LoadedProgram(package, torch.device(device or kind))


class LoadedProgram:
    """Called like the function or module that was exported."""

    def __init__(self, package: Package, device: torch.device) -> None:
        """Loads the code and moves the weights to `device`."""
        header = cast(dict[str, Any], package.header)
        self._inputs, self._outputs = header["inputs"], header["outputs"]
        self._in_spec, self._out_spec = (pytree.treespec_loads(header[name]) for name in ("in_spec", "out_spec"))
        self._weights = _weights(header["weights"], package.sections[WEIGHTS], device)
        # Exported with tensors on the CPU, perhaps, and compiled for a GPU
        self._moved = {header["device"]: device.type}
        self._program = _program(package)

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        """The results; raises as the module says, before any kernel is launched."""
        given = iter(self._flatten(args, kwargs))
        arguments = [self._weights[one["weight"]] if "weight" in one else next(given) for one in self._inputs]
        for one, value in zip(self._inputs, arguments, strict=True):
            self._check(one, value)
        results = iter(self._program.run([value for value in arguments if isinstance(value, Tensor)]))
        returned = []
        for one in self._outputs:
            value = one["value"] if "value" in one else next(results)
            if "writes" in one:
                arguments[one["writes"]].copy_(value)
            else:
                returned.append(value)
        return pytree.tree_unflatten(returned, self._out_spec)

    def _check(self, described: dict[str, Any], value: object) -> None:
        """What the program itself doesn't look at: numbers, and devices of what only the library reads."""
        if "value" in described and (isinstance(value, Tensor) or value != described["value"]):
            raise RuntimeError(f"{described['user']}: exported for the value {described['value']!r}, got {value!r}")
        if "device" not in described:
            return
        if not isinstance(value, Tensor):
            raise TypeError(f"{described['user']}: expected a tensor, got {type(value).__name__}")
        device = self._moved.get(described["device"], described["device"])
        if value.device.type != device:
            raise RuntimeError(f"{described['user']}: expected a tensor on {device}, got one on {value.device}")

    def state_dict(self) -> dict[str, Tensor]:
        """The weights and buffers as they are now."""
        return dict(self._weights)

    def _flatten(self, args: tuple, kwargs: Mapping[str, object]) -> list[Any]:
        names = self._in_spec.child(1).context
        missing, unknown = [n for n in names if n not in kwargs], [n for n in kwargs if n not in names]
        if missing or unknown:
            problem = (
                f"no keyword argument {unknown[0]!r}" if unknown else f"keyword argument {missing[0]!r} is missing"
            )
            raise TypeError(f"{problem}; it was exported with {list(names)}")
        flat, spec = pytree.tree_flatten((args, {name: kwargs[name] for name in names}))
        if spec != self._in_spec:
            raise TypeError(f"arguments are not structured as exported: expected {self._in_spec}, got {spec}")
        return flat


def _check(path: str | Path, package: Package) -> None:
    for name, version in versions().items():
        made_by = cast(dict[str, str], package.header["versions"]).get(name)
        if made_by != version:
            raise PackageError(f"{path}: made by {name} {made_by}, this is {version}: export it again")
    machine = cast(str, package.header["machine"])
    if machine and machine != cpu.host_features():
        raise PackageError(f"{path}: compiled for a CPU with other features than this machine's: export it here")


def _weights(places: dict[str, Any], content: bytes | memoryview, device: torch.device) -> dict[str, Tensor]:
    return {name: _weight(place, content, device) for name, place in places.items()}


def _weight(place: dict[str, Any], content: bytes | memoryview, device: torch.device) -> Tensor:
    dtype, shape = dtype_named(place["dtype"]), place["shape"]
    count = torch.Size(shape).numel()
    if not count:
        return torch.empty(shape, dtype=dtype, device=device)
    return torch.frombuffer(content, dtype=dtype, count=count, offset=place["start"]).reshape(shape).to(device)


def _program(package: Package) -> Program:
    header = cast(dict[str, Any], package.header)
    results, arguments = ([dtype_named(one) for one in header[f"{name}_dtypes"]] for name in ("result", "argument"))
    context = make_context()
    with context:
        function = read_host_function(ir.Module.parse(bytes(package.sections["host"]).decode()), results, arguments)
    compiled = HostObjects(
        *(from_header(header[name], bytes(package.sections[name])) for name in ("function", "helpers"))
    )
    return load_program(function, _launcher(package), compiled)


def _launcher(package: Package) -> Launcher:
    kernels = cast(dict[str, dict[str, Any]], package.header["kernels"])
    codes = {name: bytes(package.sections[kernel["section"]]) for name, kernel in kernels.items()}
    if package.header["target"] != "cpu":
        Target.parse(cast(str, package.header["target"]))
        return CudaLauncher({name: Entry(Image(codes[name].decode()), kernels[name]["name"]) for name in kernels})
    conversions = from_header(cast(dict, package.header["conversions"]), bytes(package.sections["conversions"]))
    cpu.load_shared(cpu.CONVERSIONS_LIBRARY, conversions, {})
    made = {name: from_header(kernels[name], codes[name]) for name in kernels}
    return NativeLauncher(
        NativeCode({name: NativeKernel(one, cpu.load(one), kernels[name]["name"]) for name, one in made.items()})
    )
