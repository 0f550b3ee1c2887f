"""What every test runs in: no settings of the user's, and a folder of its own for compiled code."""

import hypothesis
import pytest
from mlir_fusion.driver.cached_stages import forget_stages
from mlir_fusion.driver.kernel_code import forget_kernels

# How long an example takes says more about the machine than about the code
hypothesis.settings.register_profile("untimed", deadline=None)
hypothesis.settings.load_profile("untimed")


@pytest.fixture(scope="session", autouse=True)
def _environment(tmp_path_factory):
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("MLIR_FUSION_CACHE_DIR", str(tmp_path_factory.mktemp("compiled")))
        for variable in ("MLIR_FUSION_ENABLE", "MLIR_FUSION_DISABLE", "MLIR_FUSION_OPTIONS"):
            patch.delenv(variable, raising=False)
        yield


@pytest.fixture
def cold(tmp_path, monkeypatch):
    """As in a new process with an empty folder, which is returned."""
    folder = tmp_path / "cache"
    monkeypatch.setenv("MLIR_FUSION_CACHE_DIR", str(folder))
    forget_stages()
    forget_kernels()
    return folder
