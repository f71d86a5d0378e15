"""zoo sweep: the grid, its tables, resumption, and its intervals."""

from __future__ import annotations

import json
import subprocess
import sys

import numpy as np
import pytest

from integrator_zoo.lab import Column
from integrator_zoo.runs.store import Record
from integrator_zoo.runs.table import cells, tidy, unequal

SMALL = [f"--set={s}" for s in ("steps=40", "train_points=64", "test_points=64")]
ACCURACY = Column("test_accuracy", "test accuracy, %", ".2f", 100, True, "test_points")


def zoo(*said, cwd):
    words = [sys.executable, "-c", "from integrator_zoo.cli import main; main()", "sweep", *said]
    return subprocess.run(words, capture_output=True, text=True, cwd=cwd)


def fake(spec, seed, accuracy, *, depth=8, status="ok", parameters=10):
    config = {
        "experiment": "rings",
        "settings": {"depth": depth, "test_points": 200},
        "integrator": {"spec": spec},
        "seed": seed,
    }
    metrics = {
        "test_accuracy": accuracy,
        "parameters": parameters,
        "evaluations_per_step": 1,
        "by_step": {"0": 1.0},
    }
    return Record(f"runs/{spec}{seed}", config, {
        "status": status, "metrics": metrics, "reason": None, "facts": {}, "seconds": {"run": 1.0},
    })  # fmt: skip


def test_a_grid_runs_once_and_leaves_tables(tmp_path):
    grid = ["rings", "moons", "--grid=depth=2,3", "-iledger", "--seeds=1", *SMALL]
    done = zoo(*grid, cwd=tmp_path)
    assert done.returncode == 0, done.stderr
    assert done.stdout.startswith("4 runs, test accuracy, %")
    (folder,) = (tmp_path / "runs").glob("sweep-*")
    import pandas

    table = pandas.read_csv(folder / "runs.csv")
    assert len(table) == 4
    assert set(table.experiment) == {"rings", "moons"}
    assert set(table.depth) == {2, 3}
    again = pandas.read_json(folder / "runs.json")
    np.testing.assert_allclose(again.test_accuracy, table.test_accuracy)
    assert (folder / "rings" / "ceiling.png").is_file()
    stamps = {file: file.stat().st_mtime_ns for file in tmp_path.rglob("record.json")}
    wider = zoo("rings", "--grid=depth=2,3", "-iledger", "--seeds=1", "--json", *SMALL,
                cwd=tmp_path)  # fmt: skip
    assert "2 of 2 runs were finished before" in wider.stderr
    assert len(json.loads(wider.stdout)["cells"]) == 2
    assert {file: file.stat().st_mtime_ns for file in tmp_path.rglob("record.json")} == stamps


@pytest.mark.parametrize(
    ("said", "hint"),
    [
        (["rings", "--grid", "depth"], "--grid depth=8,32,128"),
        (["rings", "--grid", "depht=8"], "depth"),
        (["rings", "--grid", "depth=8,x"], "x"),
        (["kepler"], "--grid"),
        (["ring"], "rings"),
    ],
)
def test_mistakes_are_one_line(tmp_path, said, hint):
    done = zoo(*said, cwd=tmp_path)
    assert done.returncode == 2
    assert len(done.stderr.strip().splitlines()) == 1
    assert hint in done.stderr
    assert not (tmp_path / "runs").exists()


def test_cells_have_exact_intervals_and_paired_differences():
    records = [fake("euler", seed, 0.99 - 0.01 * seed) for seed in range(3)]
    records += [fake("ledger", seed, 1.0 - 0.01 * seed) for seed in range(3)]
    euler, ledger = cells(records, ACCURACY)
    assert (euler.perfect, ledger.perfect) == (0, 1)
    assert ledger.against.value == pytest.approx(0.01)
    assert ledger.against.low == pytest.approx(0.01)  # paired: the seeds' own spread is gone
    assert euler.against is None
    assert euler.pooled.low < euler.mean < euler.pooled.high
    assert euler.pooled.count == 600


def test_a_diverged_run_is_counted_and_left_out():
    records = [fake("euler", 0, 0.9), fake("euler", 1, None, status="diverged")]
    (cell,) = cells(records, ACCURACY)
    assert (cell.runs, cell.diverged, cell.mean) == (2, 1, 0.9)
    (lost,) = cells(records[1:], ACCURACY)
    assert lost.mean is None
    assert lost.pooled is None


def test_unequal_cost_is_marked_within_a_setting_only():
    records = [fake("euler", 0, 0.9), fake("ledger", 0, 0.9), fake("other", 0, 0.9, parameters=11)]
    records += [fake("euler", 0, 0.9, depth=32, parameters=99)]
    marked = {(cell.integrator, cell.settings) for cell in unequal(cells(records, ACCURACY))}
    assert marked == {("other", (("depth", 8),))}


def test_the_tidy_table_has_one_row_a_run_and_plain_columns():
    table = tidy([fake("euler", 0, 0.9), fake("ledger", 0, 1.0)])
    assert list(table.integrator) == ["euler", "ledger"]
    assert "by_step" not in table
    assert list(table.test_accuracy) == [0.9, 1.0]
