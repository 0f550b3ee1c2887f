"""Caches: each stage is keyed by its input and the options that affect it, kernels by their code; the disk is safe."""

from __future__ import annotations

import logging
import os
import random
import subprocess
import threading
import time
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from mlir_fusion.dialects.mlir import ir
from mlir_fusion.driver import fingerprint
from mlir_fusion.driver.build import Artifact, build
from mlir_fusion.driver.cache import STAGES, Counts, Memory
from mlir_fusion.driver.cached_stages import forget_stages
from mlir_fusion.driver.fingerprint import code_generator, compiler
from mlir_fusion.driver.kernel_code import NativeCode, forget_kernels
from mlir_fusion.driver.options import Declaration, Options, Value, declarations
from mlir_fusion.driver.runner import make_context
from mlir_fusion.runtime import disk_cache
from mlir_fusion.runtime.disk_cache import ABANDONED_SECONDS, DiskCache, cache_folder
from mlir_fusion.runtime.image import Entry
from mlir_fusion.targets import cpu
from test_driver_option_effects import SHOWN

PROGRAM = """
func.func @main(%x: tensor<64xf32>) -> (tensor<64xf32>, tensor<64xf32>) {
  %0 = tensor.empty() : tensor<64xf32>
  %y = linalg.exp ins(%x : tensor<64xf32>) outs(%0 : tensor<64xf32>) -> tensor<64xf32>
  %z = "fusion.extern"(%y) {op = "aten.cos.default", args = [#fusion.operand<0>]} : (tensor<64xf32>) -> tensor<64xf32>
  %v = linalg.exp ins(%z : tensor<64xf32>) outs(%0 : tensor<64xf32>) -> tensor<64xf32>
  return %y, %v : tensor<64xf32>, tensor<64xf32>
}
"""
OTHER = """
func.func @main(%a: tensor<64xf32>, %b: tensor<8xf32>) -> (tensor<8xf32>, tensor<64xf32>) {
  %0 = tensor.empty() : tensor<8xf32>
  %1 = tensor.empty() : tensor<64xf32>
  %s = linalg.log ins(%b : tensor<8xf32>) outs(%0 : tensor<8xf32>) -> tensor<8xf32>
  %c = "fusion.extern"(%s) {op = "aten.cos.default", args = [#fusion.operand<0>]} : (tensor<8xf32>) -> tensor<8xf32>
  %e = linalg.exp ins(%a : tensor<64xf32>) outs(%1 : tensor<64xf32>) -> tensor<64xf32>
  return %c, %e : tensor<8xf32>, tensor<64xf32>
}
"""
CPU = Options(target="cpu")
KEY = "0" * 64


def compiled(options: Options = CPU, program: str = PROGRAM) -> tuple[Artifact, dict[str, tuple[int, int]]]:
    """The artifact, and (hits, misses) by stage."""
    counts = Counts()
    with make_context():
        artifact = build(ir.Module.parse(program), options, counts)
    return artifact, {stage: (count.hits, count.misses) for stage, count in counts.table().items()}


def counts(*hits_and_misses: str) -> dict[str, tuple[int, int]]:
    """`counts("1/0", ...)`: one entry a stage."""
    return {stage: tuple(map(int, text.split("/"))) for stage, text in zip(STAGES, hits_and_misses, strict=True)}  # pyright: ignore


def new_process() -> None:
    forget_stages()
    forget_kernels()


@pytest.mark.parametrize("options", [CPU, Options()], ids=["cpu", "gpu"])
def test_stages_run_once_and_equal_kernels_compile_once(cold: Path, options: Options):
    assert compiled(options)[1] == counts("0/1", "0/1", "0/1", "0/1", "0/1")
    assert compiled(options)[1] == counts("1/0", "1/0", "1/0", "1/0", "1/0")
    new_process()
    assert compiled(options)[1] == counts("1/0", "1/0", "1/0", "1/0", "1/0")


CHANGES = {
    "disk_cache_mib=7": counts("1/0", "1/0", "1/0", "1/0", "1/0"),
    "disk_cache=false": counts("1/0", "1/0", "1/0", "1/0", "1/0"),
    "cuda_graphs=true": counts("1/0", "1/0", "1/0", "1/0", "1/0"),
    "kernel_reuse=false": counts("1/0", "1/0", "1/0", "0/1", "0/2"),
    "vectorize=false": counts("1/0", "1/0", "0/1", "0/1", "0/1"),
    "index32=false": counts("1/0", "1/0", "1/0", "0/1", "1/0"),
    "matmul_epilogue=false": counts("1/0", "0/1", "0/1", "0/1", "1/0"),
    # The same kernels in the end, which are found by their content
    "max_region_ops=3": counts("0/1", "0/1", "0/1", "0/1", "1/0"),
    "fast_math=on": counts("0/1", "0/1", "0/1", "0/1", "0/1"),
}


@pytest.mark.parametrize("change", CHANGES)
def test_an_option_runs_the_stages_that_it_affects(cold: Path, change: str):
    compiled()
    assert compiled(CPU.override([change]))[1] == CHANGES[change]
    assert compiled()[1] == counts("1/0", "1/0", "1/0", "1/0", "1/0")


def test_an_equal_kernel_of_another_program_is_not_compiled_again(cold: Path):
    first, _ = compiled()
    second, found = compiled(CPU, OTHER)
    assert found["kernels"] == (1, 1)
    assert isinstance(first.code, NativeCode) and isinstance(second.code, NativeCode)
    assert second.code.kernels["exp_0"] is first.code.kernels["exp_0"]


def test_no_option_finds_what_another_value_made(cold: Path):
    plain, _ = compiled(Options())
    scalar, _ = compiled(Options(vectorize=False))
    codes = [str(artifact.code.kernels["exp_0"].image.code) for artifact in (plain, scalar)]  # pyright: ignore
    assert "ld.global.v4" in codes[0]
    assert "ld.global.v4" not in codes[1]


def made(options: Options, program: str) -> tuple[str, dict[str, object]]:
    """The host program and the kernels' code, as text and bytes; native code by name only."""
    artifact, _ = compiled(options, program)
    kernels = artifact.code.kernels
    codes = {name: entry.image.code if isinstance(entry, Entry) else "" for name, entry in kernels.items()}
    return str(artifact.host), codes


@pytest.mark.parametrize("option", declarations(), ids=lambda option: option.name)
def test_options_in_turn_find_nothing_of_one_another(cold: Path, option: Declaration, monkeypatch):
    """For every option, in both orders, in a process and from disk: what is made is what a new process makes."""
    if option.name == "autotune":
        pytest.skip("what is measured differs: test_autotune.py")
    program, base, value, _ = SHOWN.get(option.name, (PROGRAM, Options(), other_value(option), ""))
    variants = [base, replace(base, **{option.name: value})]
    expected = []
    for variant in variants:
        new_process()
        expected.append(made(replace(variant, disk_cache=False), program))
    assert option.name not in SHOWN or expected[0] != expected[1]
    for order in ((0, 1, 0), (1, 0, 1)):
        monkeypatch.setenv("MLIR_FUSION_CACHE_DIR", str(cold / str(order)))
        for _ in range(2):
            new_process()
            assert [made(variants[number], program) for number in order] == [expected[number] for number in order]


def other_value(option: Declaration) -> Value:
    if isinstance(option.default, bool):
        return not option.default
    return next(choice for choice in option.choices or (option.at_most,) if choice != option.default)


def test_code_from_disk_computes_the_same(cold: Path):
    compiled()
    new_process()
    artifact, found = compiled()
    assert sum(misses for _, misses in found.values()) == 0
    x, y = np.linspace(-2, 2, 64, dtype=np.float32), np.empty(64, np.float32)
    artifact.code.function("exp_0", 2)(x.ctypes.data, y.ctypes.data)  # pyright: ignore
    np.testing.assert_allclose(y, np.exp(x), rtol=1e-6)


def test_another_machine_with_the_same_folder_makes_its_own_code(cold: Path, monkeypatch):
    compiled()
    code_generator.cache_clear()
    monkeypatch.setattr(cpu, "host_features", lambda: "+another")
    new_process()
    try:
        assert compiled()[1] == counts("0/1", "0/1", "0/1", "0/1", "0/1")
    finally:
        code_generator.cache_clear()


def test_a_change_of_our_own_source_or_of_a_package_makes_all_code_anew(cold: Path, monkeypatch):
    for name, changed in (("_source", lambda: "changed"), ("package_version", lambda package: f"{package} 99")):
        compiled()
        with monkeypatch.context() as patch:
            patch.setattr(fingerprint, name, changed)
            compiler.cache_clear()
            code_generator.cache_clear()
            new_process()
            assert compiled()[1] == counts("0/1", "0/1", "0/1", "0/1", "0/1")
        compiler.cache_clear()
        code_generator.cache_clear()


def test_without_the_disk_nothing_is_written(cold: Path):
    compiled(replace(CPU, disk_cache=False))
    assert not cold.exists()


@pytest.mark.parametrize("options", [CPU, Options()], ids=["cpu", "gpu"])
def test_a_kernel_made_without_the_disk_is_kept_once_a_program_wants_that(cold: Path, options: Options):
    compiled(replace(options, disk_cache=False))
    compiled(options)
    new_process()
    assert compiled(options)[1] == counts("1/0", "1/0", "1/0", "1/0", "1/0")


def test_entries_are_data(cold: Path):
    compiled()
    files = [path for path in cold.rglob("*") if path.is_file()]
    assert {path.relative_to(cold).parts[0] for path in files} - {"conversions"} == {"programs", "kernels"}
    assert all(path.read_bytes().startswith(disk_cache.MAGIC) for path in files)


@pytest.mark.parametrize("damage", ["torn", "altered", "empty", "another's", "foreign"])
def test_a_bad_entry_is_made_again_and_reported_once(cold: Path, damage: str, caplog: pytest.LogCaptureFixture):
    compiled()
    (kernel,) = (path for path in (cold / "kernels").rglob("*") if path.is_file())
    good = kernel.read_bytes()
    kernel.write_bytes(
        {
            "torn": good[: len(good) // 2],
            "altered": good[:-1] + bytes([good[-1] ^ 1]),
            "empty": b"",
            "another's": disk_cache._encode(KEY, {}, b"code"),
            "foreign": b"#!/bin/sh\n",
        }[damage]
    )
    new_process()
    with caplog.at_level(logging.WARNING):
        assert compiled()[1]["kernels"] == (0, 1)
    assert [record.message for record in caplog.records if str(kernel) in record.message]
    assert len(caplog.records) == 1
    assert kernel.read_bytes() == good
    new_process()
    assert compiled()[1]["kernels"] == (1, 0)


def test_a_folder_that_can_not_be_written_costs_the_cache_only(tmp_path: Path, monkeypatch, caplog):
    obstacle = tmp_path / "file"
    obstacle.write_text("")
    monkeypatch.setenv("MLIR_FUSION_CACHE_DIR", str(obstacle / "cache"))
    new_process()
    with caplog.at_level(logging.WARNING):
        for _ in range(2):
            assert compiled(replace(CPU, max_region_ops=11))[0].code
    assert len({record.message for record in caplog.records}) == len(caplog.records) > 0


def test_a_full_disk_leaves_nothing_behind(tmp_path: Path, monkeypatch, caplog):
    def full(*_: object) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(os, "replace", full)
    cache = DiskCache(tmp_path, 1 << 20)
    cache.put("kernels", KEY, {}, b"code")
    assert cache.get("kernels", KEY) is None
    assert not [path for path in tmp_path.rglob("*") if path.is_file()]
    assert "No space left on device" in caplog.text


def test_a_disk_that_is_really_full_costs_the_cache_only(tmp_path: Path, monkeypatch, caplog):
    mounted = subprocess.run(["mount", "-t", "tmpfs", "-o", "size=40k", "tmpfs", str(tmp_path)], capture_output=True)
    if mounted.returncode:
        pytest.skip("may not mount a small file system")
    try:
        monkeypatch.setenv("MLIR_FUSION_CACHE_DIR", str(tmp_path))
        new_process()
        with caplog.at_level(logging.WARNING):
            for most in range(1, 12):
                x, y = np.linspace(-2, 2, 64, dtype=np.float32), np.empty(64, np.float32)
                artifact, _ = compiled(replace(CPU, max_region_ops=most))
                artifact.code.function("exp_0", 2)(x.ctypes.data, y.ctypes.data)  # pyright: ignore
                np.testing.assert_allclose(y, np.exp(x), rtol=1e-6)
        assert [record.message for record in caplog.records if "No space left" in record.message]
        assert len(caplog.records) == 1
        entries = [path for path in tmp_path.rglob("*") if path.is_file()]
        assert entries and all(path.read_bytes().startswith(disk_cache.MAGIC) for path in entries)
        new_process()
        assert compiled(replace(CPU, max_region_ops=1))[1] == counts("1/0", "1/0", "1/0", "1/0", "1/0")
    finally:
        subprocess.run(["umount", str(tmp_path)], check=True)


def test_a_read_only_folder_is_read(cold: Path, monkeypatch, caplog):
    compiled()
    new_process()

    def refuse(*_: object, **__: object) -> None:
        raise PermissionError(13, "Read-only file system")

    monkeypatch.setattr(disk_cache.tempfile, "mkstemp", refuse)
    monkeypatch.setattr(disk_cache.os, "utime", refuse)
    with caplog.at_level(logging.WARNING):
        assert compiled()[1] == counts("1/0", "1/0", "1/0", "1/0", "1/0")
        assert not caplog.records
        assert compiled(replace(CPU, max_region_ops=13))[0].code
        assert compiled(replace(CPU, max_region_ops=14))[0].code
    assert ["Read-only file system" in record.message for record in caplog.records] == [True]


def test_the_folder_is_bounded_and_the_oldest_go(tmp_path: Path):
    cache = DiskCache(tmp_path, 10_000)
    for number in range(50):
        cache.put("kernels", f"{number:064}", {}, bytes(1000))
        os.utime(cache._path("kernels", f"{number:064}"), (number, number))
    cache.trim()
    sizes = [path.stat().st_size for path in tmp_path.rglob("*") if path.is_file()]
    assert 5_000 < sum(sizes) <= 10_000
    assert cache.get("kernels", f"{49:064}") is not None
    assert cache.get("kernels", f"{0:064}") is None
    cache.put("kernels", KEY, {}, bytes(20_000))
    assert cache.get("kernels", KEY) is None


def test_what_killed_processes_left_is_removed_in_time(tmp_path: Path):
    cache = DiskCache(tmp_path, 10_000)
    cache.put("kernels", KEY, {}, b"code")
    old, new = (cache._path("kernels", KEY).parent / f"{disk_cache.TEMPORARY}{name}" for name in ("old", "new"))
    for path in (old, new):
        path.write_bytes(b"half")
    long_ago = time.time() - 2 * ABANDONED_SECONDS
    os.utime(old, (long_ago, long_ago))
    cache.trim()
    assert (old.exists(), new.exists()) == (False, True)
    assert cache.clear() == 1
    assert cache.info().kinds == {}


def test_where_the_folder_is():
    assert cache_folder({"MLIR_FUSION_CACHE_DIR": "/x", "XDG_CACHE_HOME": "/y"}) == Path("/x")
    assert cache_folder({"XDG_CACHE_HOME": "/y"}) == Path("/y/mlir-fusion")
    assert cache_folder({}) == Path.home() / ".cache" / "mlir-fusion"


def test_threads_make_a_thing_once():
    memory: Memory[int] = Memory(100)
    made, results = [], []
    start = threading.Barrier(8)

    def make() -> int:
        time.sleep(0.01)
        made.append(1)
        return 7

    def ask() -> None:
        start.wait()
        results.append(memory.get_or_make("key", make))

    threads = [threading.Thread(target=ask) for _ in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert (len(made), sorted(results)) == (1, [(7, False), *[(7, True)] * 7])


def test_what_failed_is_tried_again_and_the_oldest_is_forgotten():
    memory: Memory[str] = Memory(10, len)
    with pytest.raises(KeyError):
        memory.get_or_make("a", lambda: {}["a"])
    assert memory.get_or_make("a", lambda: "12345678") == ("12345678", False)
    assert memory.get_or_make("b", lambda: "123") == ("123", False)
    assert memory.get_or_make("b", lambda: "")[1]
    assert not memory.get_or_make("a", lambda: "x")[1]


LONG = "MLIR_FUSION_TEST_LONG" in os.environ


@pytest.mark.parametrize("seed", range(20 if LONG else 1))
def test_random_options_give_what_a_new_process_gives(cold: Path, seed: int):
    """And exactly the stages run whose program and options were not seen before."""
    generator = random.Random(seed)
    seen: set[object] = set()
    results = []
    for _ in range(40 if LONG else 12):
        options, program = _random_options(generator), generator.choice([PROGRAM, OTHER])
        artifact, found = compiled(options, program)
        results.append((options, program, str(artifact.host), run(artifact)))
        for stage in ("fusion", "segment", "schedule", "codegen"):
            key = (stage, program, tuple(options.affecting(stage).items()))
            assert found[stage] == ((1, 0) if key in seen else (0, 1))
            seen.add(key)
    for options, program, host, values in results:
        new_process()
        artifact, _ = compiled(replace(options, disk_cache=False), program)
        assert (str(artifact.host), run(artifact)) == (host, values)


def _random_options(generator: random.Random) -> Options:
    return Options(
        fusion_type=generator.choice(["consecutive", "dataflow", "none"]),
        target="cpu",
        vectorize=generator.random() < 0.5,
        kernel_reuse=generator.random() < 0.7,
        max_region_ops=generator.choice([1, 100]),
    )


def run(artifact: Artifact) -> list[bytes]:
    """What each kernel that takes an input and an output computes."""
    assert isinstance(artifact.code, NativeCode)
    x = np.linspace(0.5, 2, 64, dtype=np.float32)
    results = []
    for name in artifact.code.kernels:
        y = np.zeros(64, np.float32)
        artifact.code.function(name, 2)(x.ctypes.data, y.ctypes.data)
        results.append(y.tobytes())
    return results
