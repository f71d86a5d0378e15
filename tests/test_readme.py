"""The README is true: its Python runs, its rule joins a comparison, its commands exist."""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

import integrator_zoo as zoo
from integrator_zoo.registry import current
from integrator_zoo.runs import Store, perform

ROOT = Path(__file__).resolve().parents[1]
README = (ROOT / "README.md").read_text()
BLOCKS = re.findall(r"```python\n(.*?)```", README, re.DOTALL)


def test_there_are_blocks():
    assert len(BLOCKS) == 3


@pytest.mark.parametrize("number", range(len(BLOCKS)))
def test_a_block_runs_as_a_script(number, tmp_path):
    done = subprocess.run(
        [sys.executable, "-c", BLOCKS[number]], cwd=tmp_path, capture_output=True, text=True
    )
    assert done.returncode == 0, done.stderr
    if number == 0:
        accuracy = float(re.search(r"accuracy ([\d.]+)%", done.stdout)[1])
        assert accuracy > 95
    elif number == 1:
        assert "(8, 64)" in done.stdout


def test_the_first_example_is_short():
    assert len(BLOCKS[0].strip().splitlines()) < 15


def test_its_own_rule_joins_a_comparison(tmp_path, scratch_registry):
    file = tmp_path / "nesterov.py"
    file.write_text(next(block for block in BLOCKS if "class Nesterov" in block))
    scratch_registry.load_file(file)
    assert not scratch_registry.broken
    experiment = current().get("experiment", "rings:depth=4,steps=100")
    rules = [zoo.get("nesterov"), zoo.get("ledger")]
    ours, ledger = perform(experiment, rules, [0], Store(tmp_path / "runs"))
    assert ours.status == "ok"
    assert not np.array_equal(ours.arrays["loss"], ledger.arrays["loss"])


def test_the_first_screen_sets_everything_up():
    """Two commands, each complete: install and compare, install and test."""
    first = README[:1500]
    compare, tests = re.findall(r"python3 -m venv .*", first)
    assert compare.endswith("zoo compare rings")
    assert tests.endswith("python -m pytest")
    assert "grep -m1 'm pytest' README.md" in (ROOT / ".ci/run").read_text()


def test_its_findings_are_those_of_the_pages():
    """The counts of the page of claims, and every "n of m" of the findings' pages."""
    findings = README.split("## Findings")[1].split("\n## ")[0]
    page = (ROOT / "docs/reproduction.md").read_text()
    judged = re.search(r"(\d+) claims: (\d+) hold, (\d+) differ, (\d+) not run", page)
    said = re.search(
        r"Of (\d+) published figures (\d+) hold, (\d+) differ and (\d+) need", findings
    )
    assert judged
    assert said
    assert said.groups() == judged.groups()
    pages = " ".join(file.read_text() for file in (ROOT / "docs/findings").glob("*.md"))
    shares = re.findall(r"\d+ of \d+", findings)
    assert len(shares) >= 3
    assert [share for share in shares if share not in pages] == []
