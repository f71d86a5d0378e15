"""A plugin's life: made, checked, installed, listed, broken, removed."""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
from pathlib import Path

import pytest
from test_registry import GOOD, distribution

from integrator_zoo.conformance import table
from integrator_zoo.registry import Registry

ROOT = Path(__file__).resolve().parents[1]
PAGE = ROOT / "entry_points.md"
HOOK = "from integrator_zoo import hookimpl\n@hookimpl\ndef {}():\n    {}\n"
EIGHT = {  # kind: (source, what doctor says)
    "import-error": ("import no_such_module_at_all", "ModuleNotFoundError: No module named"),
    "syntax-error": ("def broken(:", "SyntaxError"),
    "system-exit": ("raise SystemExit('leaving')", "SystemExit: leaving"),
    "wrong-type": (HOOK.format("zoo_integrators", "return 3"), "returned int, not a list"),
    "duplicate": (GOOD.format(name="euler"), "'euler' is taken by integrator-zoo"),
    "undecorated": (
        GOOD.format(name="plain").replace("@hookimpl\n", ""),
        "zoo_integrators() is not decorated: write @hookimpl above it",
    ),
    "misspelt": (
        HOOK.format("zoo_integratos", "return []"),
        "zoo_integratos() is not a hook; did you mean zoo_integrators()?",
    ),
    "needs-newer": (GOOD.format(name="future"), "it needs integrator-zoo>=99, this is 0."),
}


@pytest.fixture(scope="module")
def broken_site(tmp_path_factory):
    """Eight broken distributions and two good ones, side by side."""
    site = tmp_path_factory.mktemp("site")
    for kind, (source, _) in EIGHT.items():
        distribution(site, f"zoo-{kind}", f"zp_{kind.replace('-', '_')}", source)
    with (site / "zoo_needs_newer-1.0.dist-info" / "METADATA").open("a") as metadata:
        metadata.write("Requires-Dist: integrator-zoo>=99\n")
    for name in ("one", "two"):
        distribution(site, f"zoo-good-{name}", f"zp_good_{name}", GOOD.format(name=f"good-{name}"))
    return site


def zoo(*words, site=None, cwd=None, **environment):
    """Run the command in a process of its own."""
    path = os.pathsep.join(filter(None, [str(site or ""), os.environ.get("PYTHONPATH", "")]))
    return subprocess.run(
        [sys.executable, "-c", "from integrator_zoo.cli import main; main()", *words],
        capture_output=True,
        text=True,
        cwd=cwd,
        env={**os.environ, "PYTHONPATH": path, **environment},
    )


def test_eight_broken_distributions_list_goes_on(broken_site):
    done = zoo("list", "--json", site=broken_site)
    assert done.returncode == 0
    names = {row["name"] for row in json.loads(done.stdout)["integrators"]}
    assert {"good-one", "good-two", "euler", "ledger"} <= names
    assert not {"plain", "future"} & names
    assert done.stderr.count("left out") == 8


def test_doctor_explains_all_eight(broken_site):
    done = zoo("doctor", "--json", site=broken_site)
    assert done.returncode == 0
    rows = {row["distribution"]: row for row in json.loads(done.stdout)["broken"]}
    assert len(rows) == 8
    for kind, (_, words) in EIGHT.items():
        row = rows[f"zoo-{kind}"]
        assert words in row["reason"]
        assert f"pip uninstall zoo-{kind}" in row["advice"]
    plain = zoo("doctor", site=broken_site)
    assert plain.stdout.count("broken    ") == 8


@pytest.mark.parametrize("command", ["list", "doctor", "plugins"])
def test_strict_is_an_error_only_where_something_is_broken(command, broken_site):
    assert zoo(command, "--strict", site=broken_site).returncode == 1
    assert zoo(command, "--strict").returncode == 0


def test_plugins_says_what_each_registered(broken_site):
    rows = json.loads(zoo("plugins", "--json", site=broken_site).stdout)["plugins"]
    good = next(row for row in rows if row["distribution"] == "zoo-good-one")
    assert good["registered"] == ["good-one"]
    assert good["version"] == "1.0"
    assert 0 <= good["seconds"] < 60
    assert next(r for r in rows if r["distribution"] == "zoo-duplicate")["registered"] == []


@pytest.mark.parametrize(
    ("chosen", "expected"),
    [
        ("", set()),
        ("zoo-good-one", {"good-one"}),
        ("zoo_good_one, zoo-good-two", {"good-one", "good-two"}),
    ],
)
def test_zoo_plugins_restricts_loading(chosen, expected, broken_site, monkeypatch):
    monkeypatch.syspath_prepend(str(broken_site))
    monkeypatch.setenv("ZOO_PLUGINS", chosen)
    registry = Registry()
    registry.load_entry_points()
    foreign = {
        name
        for name, entry in registry.entries["integrator"].items()
        if entry.origin.distribution != "integrator-zoo"
    }
    assert foreign == expected
    assert "euler" in registry.entries["integrator"]
    assert not registry.broken


def test_zoo_plugins_names_what_is_not_installed(monkeypatch):
    monkeypatch.setenv("ZOO_PLUGINS", "zoo-nowhere")
    registry = Registry()
    registry.load_entry_points()
    assert [str(broken) for broken in registry.broken] == [
        "plugin zoo-nowhere (ZOO_PLUGINS) left out: no plugin of this name is installed"
    ]


def test_a_shadowed_version_is_told(tmp_path):
    for version in ("2.0", "1.0"):
        site = tmp_path / version
        site.mkdir()
        distribution(site, "zoo-twice", "zp_twice", GOOD.format(name="twice"), version)
    both = os.pathsep.join(str(tmp_path / version) for version in ("2.0", "1.0"))
    out = zoo("doctor", site=both).stdout
    assert "zoo-twice 2.0 is used; 1.0 further down sys.path is not" in out


def test_new_writes_a_project_that_checks_itself(tmp_path):
    done = zoo("new", "half-step", cwd=tmp_path)
    assert done.returncode == 0, done.stderr
    assert "pip install -e half-step" in done.stdout
    assert "zoo compare rings -i euler -i half-step" in done.stdout
    made = tmp_path / "half-step"
    assert sorted(path.name for path in made.iterdir()) == [
        "README.md",
        "pyproject.toml",
        "test_zoo_half_step.py",
        "zoo_half_step.py",
    ]
    assert 'half-step = "zoo_half_step"' in (made / "pyproject.toml").read_text()
    assert not re.search(r"\$\w|\$\{", "".join(p.read_text() for p in made.iterdir()))
    again = zoo("new", "half-step", cwd=tmp_path)
    assert (again.returncode, again.stderr) == (
        2,
        "zoo: 'half-step' exists already.  Choose another name, or --dir DIR.\n",
    )
    green = subprocess.run(
        [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider"],
        cwd=made, capture_output=True, text=True,
    )  # fmt: skip
    assert green.returncode == 0, green.stdout
    assert int(re.search(r"(\d+) passed", green.stdout)[1]) >= 12


@pytest.mark.parametrize("name", ["Half_Step", "euler", "-x", ""])
def test_new_refuses_a_bad_name_in_one_line(name, tmp_path):
    done = zoo("new", "--", name, cwd=tmp_path)
    assert done.returncode == 2
    assert len(done.stderr.strip().splitlines()) == 1
    assert not list(tmp_path.iterdir())


def test_check_of_a_file_before_it_is_packaged(tmp_path):
    good, lying = tmp_path / "good.py", tmp_path / "lying.py"
    source = GOOD.format(name="filed").split("@hookimpl")[0]
    good.write_text(
        source.replace("(Integrator):", '(Integrator):\n    """Euler once more, in a file."""')
    )
    lying.write_text(good.read_text().replace("order=1", "order=2").replace("filed", "lying"))
    done = zoo("check", str(good), "--no-picture", "--json")
    assert done.returncode == 0, done.stderr
    report = json.loads(done.stdout)
    assert report["passed"]
    assert {"id", "status", "measured", "bound", "reason"} <= set(report["checks"][0])
    done = zoo("check", str(lying), "--no-picture")
    assert done.returncode == 1
    assert "order: declared 2, measured 1.000, bound 1.8 to 2.2." in done.stdout


def test_check_says_what_is_wrong_with_a_file(tmp_path):
    file = tmp_path / "broken.py"
    file.write_text("def broken(:")
    done = zoo("check", str(file))
    assert done.returncode == 2
    assert "SyntaxError" in done.stderr
    assert "Traceback" not in done.stderr
    assert zoo("check", "eulr").stderr.startswith("zoo: no integrator 'eulr'")


def test_the_page_is_up_to_date():
    """All words are as generated. `zoo docs --check` measures the figures again (slow)."""
    page = PAGE.read_text()
    figures = table.written(page)
    made = table.filled(page, lambda rule: figures.get(rule.name, ("missing", "missing")))
    assert table.drift(page, made) == ""


@pytest.mark.slow
def test_the_measured_figures_are_up_to_date():
    page = PAGE.read_text()
    assert table.drift(page, table.filled(page)) == ""


def test_drift_is_seen_in_words_and_in_figures():
    page = PAGE.read_text()
    row = next(line for line in page.splitlines() if line.startswith("| `leapfrog` |"))
    for old, new, drifted in (
        ("2.00", "2.01", False),
        ("2.00", "2.30", True),
        ("algebraic", "exact", True),
        ("Verlet", "Euler", True),
    ):
        assert old in row
        changed = page.replace(row, row.replace(old, new))
        assert bool(table.drift(changed, page)) is drifted, (old, new)
    assert table.drift(page + "more\n", page)


def test_the_pages_three_lines_run(tmp_path):
    block = next(
        b for b in re.findall(r"```python\n(.*?)```", PAGE.read_text(), re.DOTALL)
        if "check_integrator" in b
    )  # fmt: skip
    assert len([line for line in block.strip().splitlines() if line]) == 3
    done = subprocess.run(
        [sys.executable, "-c", block], capture_output=True, text=True, cwd=tmp_path
    )
    assert done.returncode == 0, done.stderr
    assert "ledger:mu=0.6: " in done.stdout
