"""Plugins: found, isolated, named when broken."""

from __future__ import annotations

import sys
import textwrap
from pathlib import Path

import pytest

import integrator_zoo as zoo
from integrator_zoo.registry import Origin, Registry, current

GOOD = """
from integrator_zoo import Integrator, hookimpl, integrator

@integrator("{name}", equation="x' = x + h F(x)", reference="a test", order=1)
class Rule(Integrator):
    def step(self, state, field, at, params):
        return state + at.h * field(state)

@hookimpl
def zoo_integrators():
    return [Rule]
"""

BROKEN = {
    "import_error": ("import no_such_module_at_all", "ModuleNotFoundError"),
    "syntax_error": ("def broken(:", "SyntaxError"),
    "raises": ("raise RuntimeError('boom')", "RuntimeError: boom"),
    "system_exit": ("raise SystemExit('leaving')", "SystemExit: leaving"),
    "taken": (GOOD.format(name="euler"), "'euler' is taken by integrator-zoo"),
    "not_a_list": (
        "from integrator_zoo import hookimpl\n@hookimpl\ndef zoo_integrators():\n    return 3",
        "returned int, not a list",
    ),
    "not_a_class": (
        "from integrator_zoo import hookimpl\n@hookimpl\ndef zoo_integrators():\n    return [3]",
        "not a class made with @integrator",
    ),
    "no_step": (
        "from integrator_zoo import Integrator, hookimpl, integrator\n"
        "@integrator('idle', equation='x', reference='x', order=1)\n"
        "class Idle(Integrator):\n    pass\n"
        "@hookimpl\ndef zoo_integrators():\n    return [Idle]",
        r"Idle does not define step\(\)",
    ),
    "nothing": ("x = 1", "registers nothing"),
    "misspelt": (
        "from integrator_zoo import hookimpl\n@hookimpl\ndef zoo_integrator():\n    return []",
        "zoo_integrator",
    ),
}


def distribution(site: Path, dist: str, module: str, source: str, version: str = "1.0") -> None:
    """An installed distribution with one plugin module, as pip would leave it."""
    (site / f"{module}.py").write_text(textwrap.dedent(source))
    info = site / f"{dist.replace('-', '_')}-{version}.dist-info"
    info.mkdir()
    (info / "METADATA").write_text(f"Metadata-Version: 2.1\nName: {dist}\nVersion: {version}\n")
    (info / "entry_points.txt").write_text(f"[integrator_zoo]\n{module} = {module}\n")


@pytest.fixture
def site(tmp_path, monkeypatch):
    monkeypatch.syspath_prepend(str(tmp_path))
    yield tmp_path
    for name in [n for n in sys.modules if n.startswith("zp_")]:
        del sys.modules[name]


def test_built_ins_load_and_say_where_from():
    registry = current()
    assert not registry.broken
    assert len(registry.entries["integrator"]) >= 17
    origins = {entry.origin.distribution for entry in registry.entries["integrator"].values()}
    assert origins == {"integrator-zoo"}


def test_every_kind_of_broken_distribution_is_named_and_the_rest_works(site):
    for kind, (source, _) in BROKEN.items():
        distribution(site, f"zoo-{kind.replace('_', '-')}", f"zp_{kind}", source)
    distribution(site, "zoo-good", "zp_good", GOOD.format(name="good"))
    registry = Registry()
    registry.load_entry_points()
    assert registry.get("integrator", "good").name == "good"
    assert registry.entries["integrator"]["euler"].origin.distribution == "integrator-zoo"
    assert registry.entries["integrator"]["good"].origin.version == "1.0"
    lines = {str(broken) for broken in registry.broken}
    assert len(lines) == len(BROKEN)
    for kind, (_, words) in BROKEN.items():
        name = f"zoo-{kind.replace('_', '-')} 1.0"
        (line,) = [line for line in lines if name in line]
        assert "\n" not in line
        with pytest.raises(AssertionError, match=words):
            raise AssertionError(line)


def test_two_plugins_one_name_first_by_distribution_wins_both_named(site):
    distribution(site, "zoo-b", "zp_b", GOOD.format(name="same"))
    distribution(site, "zoo-a", "zp_a", GOOD.format(name="same"))
    registry = Registry()
    registry.load_entry_points()
    assert registry.entries["integrator"]["same"].origin.distribution == "zoo-a"
    (broken,) = registry.broken
    assert "zoo-b" in str(broken)
    assert "zoo-a" in str(broken)


def test_duplicate_metadata_counts_once(site, tmp_path_factory, monkeypatch):
    other = tmp_path_factory.mktemp("second")
    for place in (site, other):
        distribution(place, "zoo-twice", "zp_twice", GOOD.format(name="twice"))
    monkeypatch.syspath_prepend(str(other))
    registry = Registry()
    registry.load_entry_points()
    assert "twice" in registry.entries["integrator"]
    assert not registry.broken


def test_a_single_file_needs_no_hook(tmp_path):
    file = tmp_path / "mine.py"
    file.write_text(GOOD.format(name="mine").split("@hookimpl")[0])
    registry = Registry()
    registry.load_file(file)
    assert list(registry.entries["integrator"]) == ["mine"]
    assert not registry.broken
    with pytest.raises(zoo.ZooError, match="no plugin file"):
        registry.load_file(tmp_path / "other.py")


def test_a_file_named_by_hand_stands_before_the_package_it_became(site, tmp_path):
    distribution(site, "zoo-mine", "zp_mine", GOOD.format(name="mine"))
    registry = Registry()
    registry.load_entry_points()
    file = tmp_path / "draft.py"
    file.write_text(GOOD.format(name="mine"))
    registry.load_file(file)
    assert registry.entries["integrator"]["mine"].origin.distribution == str(file)
    file.write_text(GOOD.format(name="euler"))
    registry.load_file(file)
    assert registry.entries["integrator"]["euler"].origin.distribution == "integrator-zoo"
    assert "'euler' is taken" in str(registry.broken[-1])


def test_an_interrupt_is_not_swallowed(tmp_path):
    file = tmp_path / "interrupts.py"
    file.write_text("raise KeyboardInterrupt")
    with pytest.raises(KeyboardInterrupt):
        Registry().load_file(file)


def test_register_in_this_process(scratch_registry):
    @zoo.register
    @zoo.integrator("mine", equation="x' = x", reference="a test", order=1)
    class Mine(zoo.Integrator):
        gain: float = zoo.option(1.0, "a gain")

        def step(self, state, field, at, params):
            return state + self.gain * at.h * field(state)

    assert zoo.get("mine:gain=2").gain == 2.0
    zoo.register(Mine(gain=3.0))  # again, with another default: replaces
    assert zoo.get("mine").gain == 3.0
    with pytest.raises(zoo.ZooError, match="trait dynamics='2nd' is not one of 'first', 'second'"):
        zoo.integrator("mine", equation="x", reference="x", order=1, dynamics="2nd")
    with pytest.raises(zoo.ZooError, match="is taken by integrator-zoo"):
        zoo.register(
            zoo.integrator("euler", equation="x", reference="x", order=1)(
                type("Other", (Mine,), {"__module__": __name__})
            )
        )


def test_origin_reads_well():
    assert str(Origin("zoo-x", "1.0", "zoo_x")) == "zoo-x 1.0 (zoo_x)"
