"""The experiments `rewind` and `memory`, small."""

from __future__ import annotations

import numpy as np
import pytest

import integrator_zoo as zoo
from integrator_zoo.registry import current
from integrator_zoo.runs import Store, perform


def run(name, specs, tmp_path, **settings):
    experiment = current().get("experiment", name).with_options(settings)
    rules = [zoo.get(spec) for spec in specs]
    records = perform(experiment, rules, [0], Store(tmp_path))
    return records, experiment.pictures(records, tmp_path / "pictures")


def test_rewind_follows_the_law_and_says_why_not(tmp_path):
    specs = ["ledger:mu=0.3", "leapfrog", "euler"]
    (ledger, leapfrog, euler), drawn = run("rewind", specs, tmp_path, depth=16, steps=20, points=8)
    assert ledger.metrics["growth_per_layer"] == pytest.approx(1 / 0.3, rel=0.15)
    assert ledger.metrics["growth_per_layer_untrained"] == pytest.approx(1 / 0.3, rel=0.05)
    assert ledger.metrics["growth_per_layer_linearised"] == pytest.approx(1 / 0.3, rel=0.15)
    assert ledger.metrics["rewind_error_float32"] > 1e-2
    assert ledger.metrics["rewind_error_exact"] == 0
    bits = 16 * ledger.metrics["remainder_bits_per_layer"]
    assert 16 * 1.737 - 4 < bits < 16 * 1.737 + 32  # the bound, and one word in all
    assert leapfrog.metrics["rewind_error_float32"] < 1e-4  # the control: no friction, no growth
    assert leapfrog.metrics["rewind_error_exact"] == 0
    assert euler.status == "failed"
    assert "no inverse" in euler.reason
    there, back = (ledger.arrays[name] for name in ("nodes", "nodes_back"))
    assert there.shape == back.shape == (17, 8, 2)
    assert np.abs(there - back)[0].max() == pytest.approx(ledger.metrics["rewind_error_float32"])
    assert np.array_equal(there[-1], back[-1])
    assert [path.name for path in drawn] == ["rewind.png", "precision.png"]
    assert all(path.stat().st_size > 10_000 for path in drawn)


def test_memory_shows_the_price_and_the_cliff(tmp_path):
    settings = {"deepest": 64, "width": 4, "hidden": 8, "points": 64, "repeats": 1}
    (ledger, euler), drawn = run("memory", ["ledger:mu=0.5", "euler"], tmp_path, **settings)
    metrics = ledger.metrics
    assert metrics["temp_mb_store"] > 4 * metrics["temp_mb_reversible"]
    assert metrics["cosine_store"] > 0.9999
    assert metrics["cosine_exact"] > 0.9999
    assert not (metrics["cosine_reversible"] or 0) > 0.99  # 64 is beyond the safe depth
    assert metrics["safe_depth"] == pytest.approx(23)
    assert euler.status == "ok"
    assert euler.metrics["temp_mb_reversible"] is None
    assert [path.name for path in drawn] == ["memory.png"]
