"""The option autotune: of the parameters that a kernel's schedule could have, those that run fastest here.

After stage schedule, each kernel is compiled by itself with the parameters that its family chose and with variations
of them (passes/schedules/variations.py), run on random inputs of its shapes, and keeps the fastest; at most
`MOST_SECONDS` a kernel. What was found is kept, in the process and on disk, by the kernel and the device. With
`deterministic` only what computes the same bits is tried.

Where there is no such device, or the inputs don't fit, the family's choice stays. (This module runs
kernels, so lower.py imports it when it is needed: fusion-opt never does.)
"""

from __future__ import annotations

import logging
import math
import time
from dataclasses import dataclass, replace
from typing import cast

from ..dialects import fusion
from ..dialects.mlir import func, ir
from ..passes.graph import functions, kernel_ops
from ..passes.layouts import layout_of
from ..passes.schedules.family import Parameters
from ..passes.schedules.variations import KEEP_ORDER, variations
from ..runtime.disk_cache import DiskCache
from ..runtime.stopwatch import Inputs, gpu_name, outside_tracing, random_inputs, seconds
from ..targets.target import Target
from .build import build, disk_cache
from .cache import Counts, Memory
from .fingerprint import code_generator, digest
from .launchers import make_launcher
from .options import Options
from .programs import make_program

LOG = logging.getLogger("mlir_fusion.autotune")
MOST_SECONDS = 2.0
ENOUGH = 0.97
"""A variation must need less than this part of the time that the family's choice does."""
MOST_KERNELS = 4096
DISK_KIND = "schedules"

_found: Memory[Parameters] = Memory(MOST_KERNELS)


def forget_measurements() -> None:
    """Makes the process forget what was measured; for tests."""
    _found.clear()


def device_measured_on(options: Options) -> str | None:
    """What identifies the device on which kernels would be measured; None where there is none for the target."""
    target = Target.parse(options.target)
    if target.kind == "cpu":
        return code_generator("cpu")
    here = Target.detect()
    fits = target.kind == "gpu" and here.name.rstrip("a") == target.name.rstrip("a")
    return gpu_name() if fits else None


def tune(module: ir.Module, options: Options) -> None:
    """Replaces the schedules of a module at stage schedule by the fastest that were found."""
    device = device_measured_on(options)
    if device is None:
        LOG.warning("autotune: no device for %s here to measure on; schedules stay as chosen", options.target)
        return
    tuner = _Tuner(options, device, disk_cache(options))
    for kernel in kernel_ops(module):
        tuner.tune(kernel)


@dataclass(frozen=True)
class _Tuner:
    options: Options
    device: str
    disk: DiskCache | None

    def tune(self, kernel: ir.Operation) -> None:
        """Gives one kernel its best schedule."""
        schedule = fusion.read_schedule(kernel.attributes["schedule"])
        assert schedule is not None, "the verifier refuses any other attribute"
        tried = self._tried(schedule)
        if not tried:
            return
        alone = _alone(kernel)
        text = alone.operation.get_asm(use_local_scope=True, print_generic_op_form=True)
        key = digest("schedule", code_generator(self._kind), self.device, repr(self._affecting), text)
        best, _ = _found.get_or_make(key, lambda: self._look_up(key, alone, [schedule.parameters, *tried]))
        why = f"the fastest measured; else: {schedule.why}" if best != schedule.parameters else schedule.why
        with kernel.context:
            kernel.attributes["schedule"] = fusion.schedule(schedule.family, best, why)

    @property
    def _kind(self) -> str:
        return Target.parse(self.options.target).kind

    @property
    def _affecting(self) -> dict[str, object]:
        return dict(self.options.affecting("codegen"))

    def _tried(self, schedule: fusion.Schedule) -> list[Parameters]:
        if self.options.deterministic and schedule.family not in KEEP_ORDER:
            return []
        return variations(schedule.family, schedule.parameters, self._kind)

    def _look_up(self, key: str, alone: ir.Module, candidates: list[Parameters]) -> Parameters:
        entry = self.disk.get(DISK_KIND, key) if self.disk else None
        if entry is not None:
            return cast(Parameters, entry.header["parameters"])
        best = self._fastest(alone, candidates)
        if self.disk and best is not None:
            self.disk.put(DISK_KIND, key, {"parameters": best}, b"")
        return best or candidates[0]

    def _fastest(self, alone: ir.Module, candidates: list[Parameters]) -> Parameters | None:
        """None where not even the first can be run."""
        begin, times = time.monotonic(), list[float]()
        with outside_tracing():
            for candidate in candidates:
                if times and time.monotonic() - begin > MOST_SECONDS:
                    break
                times.append(self._seconds_or_never(alone, candidate))
        if times[0] == math.inf:
            return None
        best = min(range(len(times)), key=times.__getitem__)
        best = best if times[best] < times[0] * ENOUGH else 0
        LOG.info("%s: %.3g s; the first of %d: %.3g s", candidates[best], times[best], len(times), times[0])
        return candidates[best]

    def _seconds_or_never(self, alone: ir.Module, candidate: Parameters) -> float:
        """Memory may not suffice, and a variation may need more registers than there are."""
        try:
            return self._seconds(alone, candidate)
        except RuntimeError as error:
            LOG.warning("autotune: %s can't be measured: %s", candidate, error)
            return math.inf

    def _seconds(self, alone: ir.Module, parameters: Parameters) -> float:
        with alone.context, ir.Location.unknown():
            module = ir.Module.parse(str(alone))
            (kernel,) = kernel_ops(module)
            schedule = fusion.read_schedule(kernel.attributes["schedule"])
            assert schedule is not None
            kernel.attributes["schedule"] = fusion.schedule(schedule.family, parameters, schedule.why)
            # Kept nowhere: most of it is never needed again
            options = replace(self.options, autotune=False, disk_cache=False, kernel_reuse=False, cuda_graphs=False)
            artifact = build(module, options, Counts())
        launcher = make_launcher(artifact.code, options)
        program, inputs = make_program(artifact.host, launcher), _inputs_of(alone, launcher.device_type)
        return seconds(lambda: program(*inputs), launcher.device_type)


def _alone(kernel: ir.Operation) -> ir.Module:
    """A module whose @main is the kernel: on arguments that lie as its operands do, with nothing else around."""
    types, results = [value.type for value in kernel.operands], [value.type for value in kernel.results]
    with kernel.context, ir.Location.unknown():
        layouts = [fusion.layout(layout.strides, layout.offset) for layout in map(layout_of, kernel.operands)]
        module = ir.Module.create()
        with ir.InsertionPoint(module.body):
            function = func.FuncOp("main", ir.FunctionType.get(types, results))
            function.attributes["arg_attrs"] = ir.ArrayAttr.get(
                [ir.DictAttr.get({"fusion.layout": layout}) for layout in layouts]
            )
            block = function.add_entry_block()
        copy = kernel.clone(ip=ir.InsertionPoint(block))
        for number, argument in enumerate(block.arguments):
            copy.operands[number] = argument
        copy.attributes["name"] = ir.StringAttr.get("kernel")
        with ir.InsertionPoint(block):
            func.ReturnOp(list(copy.results))
    return module


def _inputs_of(alone: ir.Module, device: str) -> Inputs:
    (function,) = functions(alone)
    arguments = list(function.regions[0].blocks[0].arguments)
    types = [ir.RankedTensorType(argument.type) for argument in arguments]
    places = [
        (tuple(type_.shape), layout_of(argument).strides) for type_, argument in zip(types, arguments, strict=True)
    ]
    return random_inputs(places, [type_.element_type for type_ in types], device)
