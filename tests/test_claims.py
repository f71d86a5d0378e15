"""Claims: every verdict flips when its record is wrong; the pages say what was judged."""

from __future__ import annotations

import json
import math
import subprocess
import sys
from types import SimpleNamespace

import numpy as np
import pytest

import integrator_zoo as zoo
from integrator_zoo import ZooError, claims, intervals
from integrator_zoo.claims import Claim, Request
from integrator_zoo.registry import current
from integrator_zoo.runs import Store, perform, reproduce

ALL = reproduce.all_claims()


def record(**said):
    """A stand-in for a run record."""
    blank = {"status": "ok", "metrics": {}, "arrays": {}, "facts": {}, "integrator": "x", "seed": 0}
    return SimpleNamespace(**{**blank, **said})


def planted(claim: Claim, value: float):
    """Records on which the claim's measure gives `value`."""
    measure, sizes = claim.measure, [request.seeds for request in claim.requests]

    def groups(*metrics_by_group):
        return [
            [record(**said) for _ in range(size)]
            for said, size in zip(metrics_by_group, sizes, strict=True)
        ]

    match measure:
        case claims.Mean(metric=metric, key=None):
            return groups({"metrics": {metric: value}})
        case claims.Mean(metric=metric, key=key):
            return groups({"metrics": {metric: {key: value}}})
        case claims.Share(metric=metric):
            hits = round(value * sizes[0])
            return [[record(metrics={metric: float(i < hits)}) for i in range(sizes[0])]]
        case claims.Ratio(metric=metric):
            return groups({"metrics": {metric: value}}, {"metrics": {metric: 1.0}})
        case claims.Range(metric=metric):
            low = [{"metrics": {metric: 1.0}}] * (len(sizes) - 1)
            return groups({"metrics": {metric: 1.0 + value}}, *low)
        case claims.Rank(metric=metric):
            others = [1.0 if i < value - 1 else 0.0 for i in range(len(sizes) - 1)]
            return groups(
                {"metrics": {metric: 0.5}}, *({"metrics": {metric: other}} for other in others)
            )
        case claims.Separation(metrics=names):
            here = {"metrics": dict.fromkeys(names, 0.0)}
            return groups(here, {"metrics": {**here["metrics"], names[0]: value}})
        case claims.FirstReach(curve=curve, steps=steps, level=level):
            return groups(
                {"arrays": {curve: np.array([0.0, level, 0.0]), steps: np.array([0, value, 1e6])}}
            )
        case claims.Growth(array=array):
            return groups({"arrays": {array: np.array([1.0, value])}})
        case claims.Entry(array=array, index=index):
            return groups({"arrays": {array: np.full(index + 1, value)}})
        case claims.Monotony(array=array):
            row = np.arange(9.0) if value > 0 else -np.arange(9.0)
            return groups({"arrays": {array: np.stack([np.zeros(9), row])}})
    if measure.__name__ == "parameters_at_published_vocabulary":
        return groups({"metrics": {"parameters": value}, "facts": {"vocabulary": 80}})
    assert measure.__name__ == "path_over_training"
    return groups({"metrics": {"path_length": value, "path_length_by_step": {"0": 1.0}}})


def wrong(claim: Claim) -> float:
    """A figure outside the claim's bounds."""
    if isinstance(claim.measure, claims.Share):
        return 0.0 if claim.low > 0 else 1.0
    if math.isinf(claim.high):
        return claim.low / 2
    if isinstance(claim.measure, claims.Monotony):
        return -1.0
    if isinstance(claim.measure, claims.Rank):
        return claim.high + 1
    return claim.high + 0.1 * (abs(claim.high) + 1e-6)


@pytest.mark.parametrize("claim", ALL.values(), ids=ALL)
def test_the_verdict_flips_when_the_record_is_wrong(claim):
    right = claim.published
    if not claim.low <= right <= claim.high:  # a claim in words: its bounds say what is meant
        right = claim.low if math.isfinite(claim.low) else claim.high
    assert claim.judge(planted(claim, right)).verdict == "holds"
    assert claim.judge(planted(claim, wrong(claim))).verdict == "differs"
    assert claim.judge(None).verdict == "not run"


def test_a_diverged_run_or_a_missing_figure_never_holds():
    claim = ALL["rings/turning-ledger"]
    good = planted(claim, claim.published)
    assert claim.judge(good).verdict == "holds"
    good[0][1].status = "diverged"
    assert claim.judge(good).verdict == "differs"
    missing = planted(claim, claim.published)
    missing[0][0].metrics.clear()
    assert claim.judge(missing).verdict == "differs"


def test_every_published_cell_and_orbit_is_claimed():
    families = {id.split("/")[0] for id in ALL}
    assert families >= {"orbit", "rings", "moons", "spirals", "rewind", "memory", "gpt"}
    assert sum(id.startswith("orbit/") for id in ALL) == 4 * 5 + 3
    assert sum("/accuracy-" in id for id in ALL) == 18
    assert sum("ceiling" in id for id in ALL) == 12


def test_claims_are_chosen_by_name_or_family():
    assert [c.id for c in reproduce.select(ALL, ["orbit"])] == [i for i in ALL if "orbit/" in i]
    assert len(reproduce.select(ALL, [])) == len(ALL)
    with pytest.raises(ZooError, match="rings/turning-ledger"):
        reproduce.select(ALL, ["rings/turning-leger"])


def test_from_no_records_the_page_names_the_commands(tmp_path):
    found = reproduce.judge(list(ALL.values()), Store(tmp_path))
    assert {judgement.verdict for judgement in found} == {"not run"}
    text = reproduce.page(found)
    assert f"{len(ALL)} claims: 0 hold, 0 differ, {len(ALL)} not run" in text
    assert "zoo compare kepler -i leapfrog --seeds 1 --set dt=0.005" in text


def test_orbit_claims_from_nothing_and_from_records_alone(tmp_path):
    """The command runs and judges; `--no-run` then finds the same; a wrong record differs."""

    def zoo(*said):
        words = [sys.executable, "-c", "from integrator_zoo.cli import main; main()", "reproduce"]
        done = subprocess.run([*words, *said], capture_output=True, text=True, cwd=tmp_path)
        assert done.returncode == 0, done.stderr
        return done.stdout

    wanted = ["orbit/euler-drift-0.05", "orbit/leapfrog-deviation-0.05"]
    page = ["--page", "docs/reproduction.md"]
    first = json.loads(zoo(*wanted, "--json", *page))["claims"]
    assert [claim["verdict"] for claim in first] == ["holds", "holds"]
    assert "5 hold, 0 differ" in (tmp_path / "docs" / "reproduction.md").read_text()
    assert json.loads(zoo(*wanted, "--json", "--no-run"))["claims"] == first
    (file,) = (tmp_path / "runs" / "kepler").glob("euler-*/record.json")
    said = json.loads(file.read_text())
    said["metrics"]["energy_drift"] *= 1.01
    file.write_text(json.dumps(said))
    again = json.loads(zoo(*wanted, "--json", "--no-run"))["claims"]
    assert [claim["verdict"] for claim in again] == ["differs", "holds"]


def test_studies_name_runs_that_exist():
    studies = current().get("experiment", "rings").studies()
    assert {study.name for study in studies} == {"ceiling", "inertia", "transfer", "friction"}
    for study in studies:
        jobs = [job for request in study.requests for job in reproduce.jobs_of(request)]
        assert len(jobs) == len(set(jobs)) >= 9, study.name


def test_intervals_are_scipys_and_say_what_they_are():
    few = intervals.mean([0.9, 1.0, 0.95])
    assert (few.low, few.high, few.kind) == (0.9, 1.0, "range")
    values = np.random.default_rng(0).normal(5, 1, 200)
    many = intervals.mean(values)
    assert many.kind == "95 %"
    assert many.low < values.mean() < many.high
    assert many.high - many.low == pytest.approx(4 * values.std() / math.sqrt(200), rel=0.1)
    assert intervals.proportion(32, 32).low == pytest.approx(0.025 ** (1 / 32))
    assert intervals.proportion(0, 32).high == pytest.approx(1 - 0.025 ** (1 / 32))
    assert math.isnan(intervals.mean([1.0, math.nan]).value)


def test_differences_are_paired():
    """The same spread between seeds in both: the pairs differ by exactly one; unpaired, they
    would not be told apart."""
    noise = np.random.default_rng(0).normal(0, 100, 30)
    found = intervals.difference(noise, noise + 1)
    assert found.value == pytest.approx(1)
    assert found.high - found.low < 1e-9
    shuffled = intervals.difference(noise, np.random.default_rng(1).permutation(noise + 1))
    assert shuffled.low < 0 < shuffled.high
    with pytest.raises(ValueError, match="cannot be paired"):
        intervals.difference([1.0], [1.0, 2.0])


def test_a_request_says_its_command():
    request = Request("rings", "ledger", 3, settings={"depth": 8})
    assert request.command() == "zoo compare rings -i ledger --seeds 3 --set depth=8"


def test_the_ceiling_looks_at_more_points_than_a_run_has(tmp_path):
    """What it gets wrong is as much as its accuracy says, and that under another rule is not."""
    from integrator_zoo_experiments.studies import ceiling

    settings = {"depth": 3, "steps": 30, "train_points": 64, "test_points": 64}
    experiment = current().get("experiment", "rings").with_options(settings)
    (run,) = perform(experiment, [zoo.get("ledger")], [0], Store(tmp_path))
    wrong = ceiling._wrong(run, "ledger") / ceiling.MORE
    assert wrong == pytest.approx(1 - run.metrics["test_accuracy"], abs=0.1)
    assert abs(ceiling._wrong(run, "ledger:mu=0") / ceiling.MORE - wrong) > 0.1  # the control
    assert ceiling._thin_channels([run]) == []
    full = SimpleNamespace(metrics={"test_accuracy": 1.0}, config=run.config, arrays=run.arrays)
    assert "every test point right: 1 of 1" in ceiling._thin_channels([full])[0]
