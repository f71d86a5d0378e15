"""The house: imports go downward only, and looking at the zoo loads no jax."""

from __future__ import annotations

import ast
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[1]
FLOORS = [
    {"errors", "options", "contract", "lab", "trajectory", "claims", "intervals"},
    {
        "hookspecs",
        "discovery",
        "registry",
        "course",
        "depth",
        "memory",
        "reversible",
        "exact",
        "problems",
    },
    {"backbones", "data", "conformance"},
    {"training", "runs"},
    {"figures"},
    {"report"},
    {"cli"},
]
FLOOR = {room: floor for floor, rooms in enumerate(FLOORS) for room in rooms}
CORE = sorted((ROOT / "integrator_zoo").rglob("*.py"))
PLUGINS = sorted((ROOT / "plugins").glob("*.py"))
EXPERIMENTS = sorted((ROOT / "experiments").glob("*.py"))


def imported(file: Path) -> set[str]:
    """Absolute names of all modules a file imports, also inside functions."""
    package = file.relative_to(ROOT).with_suffix("").parts[:-1]
    names: set[str] = set()
    for node in ast.walk(ast.parse(file.read_text())):
        if isinstance(node, ast.Import):
            names |= {alias.name for alias in node.names}
        elif isinstance(node, ast.ImportFrom):
            base = package[: len(package) - node.level + 1] if node.level else ()
            module = ".".join([*base, *([node.module] if node.module else [])])
            names |= {module} | {f"{module}.{alias.name}" for alias in node.names}
    return names


def room(module: str) -> str | None:
    parts = module.split(".")
    return parts[1] if parts[0] == "integrator_zoo" and len(parts) > 1 else None


@pytest.mark.parametrize("file", CORE, ids=lambda f: str(f.relative_to(ROOT)))
def test_imports_go_downward(file):
    own = file.relative_to(ROOT / "integrator_zoo").parts[0].removesuffix(".py")
    if own == "__init__":
        return  # the package's face hands on names from every floor, when first used
    assert own in FLOOR, f"{own} has no floor: add it to FLOORS and to docs/architecture.md"
    for module in imported(file):
        other = room(module)
        if other in FLOOR:
            assert FLOOR[other] <= FLOOR[own], f"{own} imports {other}, a floor above"
        assert not module.startswith(("integrator_zoo_plugins", "integrator_zoo_experiments"))


@pytest.mark.parametrize("file", PLUGINS, ids=lambda f: f.name)
def test_a_plugin_imports_only_the_contract(file):
    allowed = {"contract", "hookspecs"}
    rooms = {room(module) for module in imported(file)} - {None}
    assert rooms <= allowed, f"{file.name} imports {rooms - allowed}"


@pytest.mark.parametrize("file", EXPERIMENTS, ids=lambda f: f.name)
def test_an_experiment_names_no_integrator_in_its_logic(file):
    from conftest import ALL

    tree = ast.parse(file.read_text())
    data = {
        id(leaf)
        for node in ast.walk(tree)
        if isinstance(node, ast.keyword) and node.arg == "default_specs"
        for leaf in ast.walk(node)
    }
    named = [
        node.value
        for node in ast.walk(tree)
        if isinstance(node, ast.Constant) and node.value in ALL and id(node) not in data
    ]
    assert not named
    assert "cli" not in {room(module) for module in imported(file)}


def test_the_law_catches_an_upward_import(tmp_path, monkeypatch):
    """Control: the test above fails on a planted upward import."""
    monkeypatch.setattr(sys.modules[__name__], "ROOT", tmp_path)
    file = tmp_path / "integrator_zoo" / "contract.py"
    file.parent.mkdir()
    file.write_text("from .training import fit\n")
    with pytest.raises(AssertionError, match="a floor above"):
        test_imports_go_downward(file)


@pytest.mark.parametrize(
    "code",
    [
        "import integrator_zoo",
        "import integrator_zoo.cli.app",
        "from integrator_zoo.registry import current; assert not current().broken",
    ],
    ids=["import", "help", "list"],
)
def test_looking_loads_no_jax(code):
    probe = f"{code}\nimport sys; print(sorted({{'jax', 'flax', 'diffrax'}} & set(sys.modules)))"
    out = subprocess.run([sys.executable, "-c", probe], capture_output=True, text=True, check=True)
    assert out.stdout.strip() == "[]"


def test_files_can_be_read_in_a_sitting():
    long = {
        str(file.relative_to(ROOT)): lines
        for file in [*CORE, *PLUGINS, *(ROOT / "experiments").rglob("*.py")]
        if (lines := len(file.read_text().splitlines())) > 320
    }
    assert not long


def test_every_public_name_resolves_and_is_documented():
    import integrator_zoo as zoo

    for name in zoo.__all__:
        thing = getattr(zoo, name)
        assert getattr(thing, "__doc__", None) or name == "Field", name
