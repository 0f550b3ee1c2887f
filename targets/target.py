"""What the hardware can do.

A schedule must know how many threads a block may have or whether blocks can form clusters; it must not know
that 9.0 is Hopper. So a `Target` is a bag of capabilities, made once at the edge (`Target.parse("sm_90a")`
from an option, `Target.detect()` from the machine) and asked from then on. Nothing compares versions.

Adding a GPU is adding a row to the table below: limits from the CUDA programming guide's table of compute
capabilities, speeds and sizes from the data sheet of one typical product.

`simt` stands for a GPU interpreted on the CPU (runtime/simt/): it has a GPU's limits, so that it takes the same
schedules, but none of the units that only exist in hardware.
"""

from __future__ import annotations

import difflib
from dataclasses import dataclass, replace
from typing import Literal

KIB = 1024
MIB = 1024 * KIB


@dataclass(frozen=True)
class Target:
    """Capabilities of a processor; two equal targets accept the same code."""

    name: str
    kind: Literal["gpu", "cpu", "simt"]
    warp_size: int
    max_threads_per_block: int
    shared_memory_per_block: int
    """Bytes, the most that a kernel may opt in to."""
    max_registers_per_thread: int
    multiprocessors: int
    memory_bandwidth: float
    """GB/s, as the data sheet has it."""
    f32_tflops: float
    """Arithmetic in f32 outside the matrix units, as the data sheet has it."""
    matrix_tflops: float
    """Products of 16-bit matrices without sparsity, as the data sheet has it."""
    l2_bytes: int
    has_clusters: bool
    """Blocks of a cluster can read each other's shared memory."""
    cluster_groups: tuple[int, ...]
    """Multiprocessors of each group that a cluster lies within: as many as every such product has, some have more."""
    has_tma: bool
    """Bulk asynchronous copies of tiles."""
    has_wgmma: bool
    """Matrix products by a warp group, operands in shared memory."""
    vector_bytes: int
    """The widest access of one thread."""
    ptx_chip: str
    """What `.target` says; empty where there is no PTX."""
    ptx_feature: str
    """LLVM's name of the PTX version: the lowest with what the chip has, so that old assemblers take it."""

    def clusters_at_once(self, blocks: int) -> int:
        """How many clusters of so many blocks have a multiprocessor for each block."""
        if blocks == 1:
            return self.multiprocessors
        return sum(multiprocessors // blocks for multiprocessors in self.cluster_groups)

    @staticmethod
    def parse(name: str) -> Target:
        """The target of this name."""
        if name in TARGETS:
            return TARGETS[name]
        nearest = difflib.get_close_matches(name, TARGETS, n=1, cutoff=0.0)[0]
        raise ValueError(f"unknown target {name!r}; did you mean {nearest!r}? Allowed: {', '.join(TARGETS)}")

    @staticmethod
    def detect() -> Target:
        """The current CUDA device, or the CPU where there is none that we can compile for."""
        device = _current_device()
        if device is None:
            return CPU
        capability, shared_memory = device
        usable = [name for minimum, name in DEVICES if capability >= minimum]
        if not usable:
            return CPU
        target = TARGETS[usable[0]]
        return replace(target, shared_memory_per_block=min(target.shared_memory_per_block, shared_memory))

    def least_seconds(self, bytes_moved: int, flops: int = 0, on_matrix_units: bool = False) -> float:
        """The time below which nothing that moves these bytes and computes this much can run: a roofline's."""
        rate = self.matrix_tflops if on_matrix_units else self.f32_tflops
        return max(bytes_moved / (self.memory_bandwidth * 1e9), flops / (rate * 1e12))


# A100 SXM 80 GB
SM_80 = Target(
    name="sm_80",
    kind="gpu",
    warp_size=32,
    max_threads_per_block=1024,
    shared_memory_per_block=163 * KIB,
    max_registers_per_thread=255,
    multiprocessors=108,
    memory_bandwidth=2039,
    f32_tflops=19.5,
    matrix_tflops=312,
    l2_bytes=40 * MIB,
    has_clusters=False,
    cluster_groups=(),
    has_tma=False,
    has_wgmma=False,
    vector_bytes=16,
    ptx_chip="sm_80",
    ptx_feature="+ptx78",
)

# H200 SXM
SM_90 = replace(
    SM_80,
    name="sm_90",
    shared_memory_per_block=227 * KIB,
    multiprocessors=132,
    memory_bandwidth=4800,
    f32_tflops=67,
    matrix_tflops=989,
    l2_bytes=50 * MIB,
    has_clusters=True,
    # Measured: 15 clusters of 8 or of 7 run at once, and 7 of 16
    cluster_groups=(16,) * 7 + (8,),
    has_tma=True,
    ptx_chip="sm_90",
    ptx_feature="+ptx80",
)

# The same, with instructions that only this generation has
SM_90A = replace(SM_90, name="sm_90a", has_wgmma=True, ptx_chip="sm_90a")

# B200
SM_100 = replace(
    SM_90,
    name="sm_100",
    multiprocessors=148,
    cluster_groups=(16,) * 8,
    memory_bandwidth=8000,
    f32_tflops=75,
    matrix_tflops=2250,
    l2_bytes=126 * MIB,
    ptx_chip="sm_100",
    ptx_feature="+ptx86",
)

SIMT = replace(
    SM_90,
    name="simt",
    kind="simt",
    has_tma=False,
    has_wgmma=False,
    ptx_chip="",
    ptx_feature="",
)

CPU = Target(
    name="cpu",
    kind="cpu",
    warp_size=1,
    max_threads_per_block=1,
    shared_memory_per_block=0,
    max_registers_per_thread=32,
    multiprocessors=1,
    memory_bandwidth=50,
    # One core of a server: two vectors of 8 floats, multiplied and added, a cycle of 3 GHz
    f32_tflops=0.1,
    matrix_tflops=0.1,
    l2_bytes=1 * MIB,
    has_clusters=False,
    cluster_groups=(),
    has_tma=False,
    has_wgmma=False,
    vector_bytes=64,
    ptx_chip="",
    ptx_feature="",
)

TARGETS = {target.name: target for target in (CPU, SIMT, SM_80, SM_90, SM_90A, SM_100)}

LEAST_GPU = SM_80
"""No GPU has less of anything, so that what is chosen for this one suits all."""

# From which compute capability on a device runs which target's code, best first. Code of an `a` target runs
# on exactly its own capability: a later 9.x would take sm_90's.
DEVICES = [((10, 0), "sm_100"), ((9, 1), "sm_90"), ((9, 0), "sm_90a"), ((8, 0), "sm_80")]


def _current_device() -> tuple[tuple[int, int], int] | None:
    """Compute capability and opt-in shared memory of the current device, else of the first one."""
    try:
        from cuda.bindings import driver  # pyright: ignore[reportAttributeAccessIssue]
    except ImportError:
        return None
    try:
        # Without a driver library, the first call raises RuntimeError
        (status,) = driver.cuInit(0)
    except RuntimeError:
        return None
    if status != driver.CUresult.CUDA_SUCCESS:
        return None
    status, device = driver.cuCtxGetDevice()
    if status != driver.CUresult.CUDA_SUCCESS:
        status, device = driver.cuDeviceGet(0)
    if status != driver.CUresult.CUDA_SUCCESS:
        return None
    kind = driver.CUdevice_attribute
    major, minor, shared_memory = (
        int(driver.cuDeviceGetAttribute(attribute, device)[1])
        for attribute in (
            kind.CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MAJOR,
            kind.CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MINOR,
            kind.CU_DEVICE_ATTRIBUTE_MAX_SHARED_MEMORY_PER_BLOCK_OPTIN,
        )
    )
    return (major, minor), shared_memory
