"""Targets: parsing, detection, and that capabilities are consistent."""

import pytest
from mlir_fusion.targets import target as targets
from mlir_fusion.targets.target import TARGETS, Target


@pytest.mark.parametrize("name", ["cpu", "simt", "sm_80", "sm_90", "sm_90a", "sm_100"])
def test_every_allowed_name_parses_to_itself(name):
    assert Target.parse(name).name == name


def test_unknown_name_says_what_is_allowed_and_what_is_near():
    with pytest.raises(ValueError, match=r"unknown target 'sm90a'; did you mean 'sm_90a'\? Allowed: cpu, simt, "):
        Target.parse("sm90a")


def test_simt_has_the_limits_of_sm_90_but_no_ptx():
    simt, gpu = Target.parse("simt"), Target.parse("sm_90")
    for limit in ("warp_size", "max_threads_per_block", "shared_memory_per_block", "multiprocessors"):
        assert getattr(simt, limit) == getattr(gpu, limit)
    assert simt.kind == "simt" and not simt.ptx_chip


def test_only_sm_90a_has_wgmma():
    assert [name for name, target in TARGETS.items() if target.has_wgmma] == ["sm_90a"]


@pytest.mark.parametrize(
    ("device", "name"),
    [
        (None, "cpu"),
        (((7, 5), 65536), "cpu"),
        (((8, 0), 166912), "sm_80"),
        (((8, 9), 101376), "sm_80"),
        (((9, 0), 232448), "sm_90a"),
        (((10, 0), 232448), "sm_100"),
        (((12, 0), 101376), "sm_100"),
    ],
)
def test_detection_takes_the_best_target_that_the_device_runs(monkeypatch, device, name):
    monkeypatch.setattr(targets, "_current_device", lambda: device)
    detected = Target.detect()
    assert detected.name == name
    if detected.kind == "gpu":
        assert detected.shared_memory_per_block == min(TARGETS[name].shared_memory_per_block, device[1])
