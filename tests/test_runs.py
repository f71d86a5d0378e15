"""Run folders: atomic, found again, strict JSON, safe beside other writers."""

from __future__ import annotations

import json
import math
import os
import subprocess
import sys
import threading

import numpy as np
import pytest

import integrator_zoo as zoo
from integrator_zoo.lab import Job
from integrator_zoo.registry import current
from integrator_zoo.runs import Store, perform
from integrator_zoo.runs.perform import config_of
from integrator_zoo.runs.store import finite, read, replacing

QUICK = "kepler:orbits=0.1"


def experiment():
    return current().get("experiment", QUICK)


def names(folder):
    return sorted(path.name for path in folder.rglob("*"))


def test_a_run_is_written_found_again_and_repeated_when_asked(tmp_path):
    store, notes = Store(tmp_path), []
    first = perform(experiment(), [zoo.get("euler")], [0], store, note=notes.append)
    assert notes == []
    again = perform(experiment(), [zoo.get("euler")], [0], store, note=notes.append)
    assert "1 of 1 runs were finished before" in notes[0]
    assert again[0].data == first[0].data
    fresh = perform(experiment(), [zoo.get("euler")], [0], store, fresh=True)
    assert fresh[0].folder == first[0].folder
    assert len(list((tmp_path / "kepler").iterdir())) == 1
    assert sorted(p.name for p in first[0].folder.iterdir()) == [
        "arrays.npz",
        "config.toml",
        "record.json",
    ]


def test_the_record_says_what_was_run(tmp_path):
    (record,) = perform(experiment(), [zoo.get("ledger:mu=0.6")], [0], Store(tmp_path))
    assert record.config["settings"]["orbits"] == 0.1
    assert record.config["integrator"]["options"] == {"mu": 0.6}
    assert record.config["integrator"]["distribution"] == "integrator-zoo"
    assert record.data["environment"]["packages"]["jax"]
    assert record.facts["dtype"] == "float64"
    assert record.arrays["x"].shape[1] == 2


def test_settings_seed_and_options_each_make_another_run():
    configs = [
        config_of(current().get("experiment", spec), Job(zoo.get(rule), seed))
        for spec, rule, seed in [
            ("rings", "ledger", 0),
            ("rings:depth=8", "ledger", 0),
            ("rings", "ledger:mu=0.5", 0),
            ("rings", "ledger", 1),
            ("moons", "ledger", 0),
        ]
    ]
    store = Store("anywhere")
    assert len({store.folder(config) for config in configs}) == len(configs)


def test_an_edited_plugin_is_run_anew(tmp_path, scratch_registry):
    source = (
        "from integrator_zoo import Integrator, integrator\n"
        "@integrator('mine', equation='x', reference='a test', order=1)\n"
        "class Mine(Integrator):\n"
        "    def step(self, state, field, at, params):\n"
        "        return state + {gain} * at.h * field(state)\n"
    )
    folders = []
    for gain, name in [(1, "a"), (2, "b")]:
        file = tmp_path / f"{name}.py"
        file.write_text(source.format(gain=gain))
        scratch_registry.entries["integrator"].pop("mine", None)
        scratch_registry.load_file(file)
        config = config_of(experiment(), Job(zoo.get("mine")))
        folders.append(Store(tmp_path).folder(config))
    assert folders[0] != folders[1]


def test_half_written_and_foreign_folders_are_not_found(tmp_path):
    store = Store(tmp_path)
    (record,) = perform(experiment(), [zoo.get("euler")], [0], store)
    config = config_of(experiment(), Job(zoo.get("euler")))
    assert store.find(config) is not None
    (record.folder / "record.json").write_text('{"format": 1, "sta')
    assert store.find(config) is None
    (record.folder / "record.json").write_text('{"format": 99, "status": "ok"}')
    assert store.find(config) is None
    assert store.find({**config, "seed": 5}) is None


def test_failed_runs_are_tried_again(tmp_path, scratch_registry):
    @zoo.register
    @zoo.integrator("shifty", equation="x", reference="a test", order=1)
    class Shifty(zoo.Integrator):
        def step(self, state, field, at, params):
            return (state, state)

    notes = []
    for _ in range(2):
        records = perform(
            experiment(), [Shifty(), zoo.get("euler")], [0], Store(tmp_path), note=notes.append
        )
        assert [record.status for record in records] == ["failed", "ok"]
    assert sum("shifty, seed 0: failed" in line for line in notes) == 2


class HalfError(Exception):
    pass


def test_an_error_while_writing_leaves_nothing(tmp_path):
    target = tmp_path / "run"

    def half_a_run():
        with replacing(target) as made:
            (made / "record.json").write_text("half")
            raise HalfError

    with pytest.raises(HalfError):
        half_a_run()
    assert names(tmp_path) == []


def test_an_interrupted_comparison_keeps_its_finished_runs(tmp_path, monkeypatch):
    whole = type(experiment()).run

    def interrupted(self, jobs, progress):
        yield from whole(self, jobs[:1], progress)
        raise KeyboardInterrupt

    store, rules = Store(tmp_path), [zoo.get("euler"), zoo.get("leapfrog")]
    monkeypatch.setattr(type(experiment()), "run", interrupted)
    with pytest.raises(KeyboardInterrupt, match="1 of 2 runs are kept"):
        perform(experiment(), rules, [0], store)
    monkeypatch.undo()
    notes = []
    perform(experiment(), rules, [0], store, note=notes.append)
    assert "1 of 2 runs were finished before" in notes[0]


def test_two_writers_at_once_end_with_whole_runs(tmp_path):
    store = Store(tmp_path)
    config = config_of(experiment(), Job(zoo.get("euler")))
    data = {"format": 1, "status": "ok", "reason": None, "metrics": {}, "facts": {}}

    def write(seed):
        for _ in range(20):
            store.write({**config, "seed": seed}, data, {"x": np.arange(100)})

    threads = [threading.Thread(target=write, args=(seed,)) for seed in (0, 1)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    folders = list((tmp_path / "kepler").iterdir())
    assert len(folders) == 2
    assert all(read(folder).status == "ok" for folder in folders)


def test_what_is_not_finite_is_null():
    value = finite({"a": np.float32(np.nan), "b": [math.inf, np.arange(2)], "c": None, "d": 1})
    assert json.loads(json.dumps(value, allow_nan=False)) == {
        "a": None,
        "b": [None, [0, 1]],
        "c": None,
        "d": 1,
    }


def test_a_place_that_cannot_be_written_is_one_line(tmp_path):
    blocked = tmp_path / "file"
    blocked.write_text("not a folder")
    with pytest.raises(zoo.ZooError, match=r"cannot write to .*--out DIR"):
        Store(blocked / "runs").check_writable()
    Store(tmp_path / "new" / "runs").check_writable()
    assert os.listdir(tmp_path / "new" / "runs") == []


WRITER = """
import sys
from integrator_zoo.runs import Store
store = Store(sys.argv[1])
for round in range(int(sys.argv[2])):
    for seed in range(5):
        config = {"experiment": "e", "integrator": {"spec": "x"}, "seed": seed}
        data = {"format": 1, "status": "ok", "reason": None, "metrics": {"round": round},
                "facts": {}, "seconds": {}}
        store.write(config, data, {"values": [float(seed)] * 2000})
        print(round, flush=True)
"""


def writer(folder, rounds):
    words = [sys.executable, "-c", WRITER, str(folder), str(rounds)]
    return subprocess.Popen(words, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)


def whole(folder):
    """The records of a folder, each of them complete."""
    found = [read(file.parent) for file in sorted((folder / "e").glob("x-s*/record.json"))]
    for record in found:
        assert (record.arrays["values"] == record.seed).all()
    return found


def test_two_writers_of_the_same_runs_end_with_their_union(tmp_path):
    writers = [writer(tmp_path, 40) for _ in range(2)]
    assert [w.communicate()[1] for w in writers] == ["", ""]
    assert [w.returncode for w in writers] == [0, 0]
    assert [record.seed for record in whole(tmp_path)] == list(range(5))
    assert len(list((tmp_path / "e").iterdir())) == 5  # and nothing is left beside them


def test_a_kill_at_any_moment_leaves_no_half_record(tmp_path):
    seen = 0
    for lines in (1, 7, 13, 22, 31):
        process = writer(tmp_path, 1000)
        for _ in range(lines):
            process.stdout.readline()
        process.kill()
        process.communicate()
        seen = max(seen, len(whole(tmp_path)))
    assert seen == 5
