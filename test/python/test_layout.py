"""The tree's conventions: packages, the direction of imports, and one name for a pass and all that belongs to it."""

import ast
import re
import tomllib
from collections.abc import Iterator
from pathlib import Path

import pytest
from mlir_fusion.passes import PASSES

ROOT = Path(__file__).resolve().parents[2]
PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text())

# What each folder may import of the others; the order is that of the architecture
MAY_IMPORT = {
    "dialects": set(),
    "targets": {"dialects"},
    "passes": {"dialects", "targets"},
    "runtime": {"dialects"},
    "driver": {"dialects", "passes", "targets", "runtime"},
    "frontend": {"dialects", "passes", "targets", "runtime", "driver"},
    "tools": {"dialects", "passes", "targets", "runtime", "driver", "frontend"},
    "mlir_fusion": {"frontend", "driver"},
}
TORCH_USERS = {"frontend", "runtime"}
LOADED_LATE = {"tools/execute.py": "imported by mlir-fusion run, when it runs"}
SOURCES = sorted(path for folder in MAY_IMPORT for path in (ROOT / folder).rglob("*.py"))


def test_every_package_of_the_tree_is_listed():
    packages = {path.parent for folder in MAY_IMPORT for path in (ROOT / folder).rglob("__init__.py")}
    names = {str(path.relative_to(ROOT)): path for path in packages}
    listed = PROJECT["tool"]["setuptools"]["package-dir"]
    assert set(listed.values()) == set(names)
    assert set(PROJECT["tool"]["setuptools"]["packages"]) == set(listed)
    for package, folder in listed.items():
        assert package == ("mlir_fusion" if folder == "mlir_fusion" else f"mlir_fusion.{folder.replace('/', '.')}")


@pytest.mark.parametrize("path", SOURCES, ids=lambda path: str(path.relative_to(ROOT)))
def test_imports_go_one_way(path: Path):
    folder = path.relative_to(ROOT).parts[0]
    for module in _imported(path):
        first, *rest = module
        if first == "mlir_fusion":
            other = rest[0] if rest else "mlir_fusion"
            assert other == folder or other in MAY_IMPORT[folder], f"{folder} imports {other}"
        assert first != "torch_mlir" or str(path.relative_to(ROOT)) == "dialects/mlir.py"
        assert first not in MAY_IMPORT or first == "mlir_fusion", f"{first} must be imported relatively"


@pytest.mark.parametrize("path", SOURCES, ids=lambda path: str(path.relative_to(ROOT)))
def test_only_the_frontend_and_the_runtime_import_torch(path: Path):
    name = str(path.relative_to(ROOT))
    folder = path.relative_to(ROOT).parts[0]
    if folder not in TORCH_USERS and name not in LOADED_LATE:
        assert "torch" not in {module[0] for module in _imported(path)}


def test_passes_use_nothing_of_targets_but_capabilities():
    for path in (ROOT / "passes").rglob("*.py"):
        for module in _imported(path):
            if module[:2] == ("mlir_fusion", "targets"):
                assert module == ("mlir_fusion", "targets", "target"), path


def test_the_two_fusion_passes_do_not_import_each_other():
    consecutive, dataflow = (set(_imported(ROOT / f"passes/fusion_{name}.py")) for name in ("consecutive", "dataflow"))
    assert ("mlir_fusion", "passes", "fusion_dataflow") not in consecutive
    assert ("mlir_fusion", "passes", "fusion_consecutive") not in dataflow


@pytest.mark.parametrize("name", PASSES)
def test_a_pass_has_one_name(name: str):
    cls = PASSES[name]
    assert name == cls.name
    assert cls.__name__ == "".join(word.capitalize() for word in name.split("-"))
    assert cls.__module__ == f"mlir_fusion.passes.{name.replace('-', '_')}"
    test = ROOT / "test" / "Passes" / f"{name}.mlir"
    assert test.is_file()
    assert name in test.read_text()


def test_every_pass_is_registered():
    files = {path.stem for path in (ROOT / "passes").glob("fusion_*.py")}
    assert files == {name.replace("-", "_") for name in PASSES}


def test_every_module_starts_by_teaching():
    for path in SOURCES:
        if path.name != "__init__.py" or path.read_text().strip():
            assert ast.get_docstring(ast.parse(path.read_text())), path


def test_every_lit_test_says_how_it_runs():
    tests = [path for path in (ROOT / "test").rglob("*.mlir") if path.parent.name != "Inputs"]
    for path in tests:
        assert re.search(r"// RUN: ", path.read_text()), path


def _imported(path: Path) -> Iterator[tuple[str, ...]]:
    """Absolute names of what a file imports: of `from ..dialects import fusion`, mlir_fusion.dialects.fusion."""
    parts = path.relative_to(ROOT).with_suffix("").parts
    package = parts[:-1] if parts[0] == "mlir_fusion" else ("mlir_fusion", *parts[:-1])
    for node in ast.walk(ast.parse(path.read_text())):
        if isinstance(node, ast.Import):
            yield from (tuple(alias.name.split(".")) for alias in node.names)
        elif isinstance(node, ast.ImportFrom):
            base = package[: len(package) - node.level + 1] if node.level else ()
            module = (*base, *(node.module.split(".") if node.module else ()))
            yield module
            if _is_package(module):
                yield from ((*module, alias.name) for alias in node.names)


def _is_package(module: tuple[str, ...]) -> bool:
    folder = ROOT.joinpath(*module[1:]) if len(module) > 1 else ROOT / "mlir_fusion"
    return module[0] == "mlir_fusion" and (folder / "__init__.py").is_file()
