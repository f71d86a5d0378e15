"""The published figures, recomputed. Each with a control that must fail."""

from __future__ import annotations

import statistics

import numpy as np
import pytest

import integrator_zoo as zoo
from integrator_zoo.registry import current
from integrator_zoo.runs import Store, perform

# dt, Euler's energy drift, leapfrog's largest deviation, Euler's reach, final separation
ORBITS = [
    (0.05, 0.7615661, 0.001005462, 5.165722, 2.980207),
    (0.02, 0.6831306, 0.0001624144, 3.368737, 2.574578),
    (0.01, 0.5884022, 4.065905e-05, 2.562096, 1.971496),
    (0.005, 0.4755364, 1.016823e-05, 2.073854, 1.133586),
]


def orbit(tmp_path, dt):
    experiment = current().get("experiment", f"kepler:dt={dt}")
    rules = [zoo.get("euler"), zoo.get("leapfrog")]
    records = perform(experiment, rules, [0], Store(tmp_path))
    return records, experiment.pairs(records)["final_separation"]["euler | leapfrog"]


@pytest.mark.parametrize(("dt", "drift", "deviation", "reach", "separation"), ORBITS)
def test_the_orbit_table(tmp_path, dt, drift, deviation, reach, separation):
    (euler, leapfrog), apart = orbit(tmp_path, dt)
    assert euler.metrics["energy_drift"] == pytest.approx(drift, rel=1e-5)
    assert leapfrog.metrics["max_energy_deviation"] == pytest.approx(deviation, rel=1e-5)
    assert euler.metrics["farthest_reach"] == pytest.approx(reach, rel=1e-6)
    assert leapfrog.metrics["farthest_reach"] == pytest.approx(1.0, abs=1e-9)
    # the published separation at the finest step is that of its last sample, one step earlier
    assert apart == pytest.approx(separation, rel=1e-6 if dt > 0.005 else 3e-3)
    assert leapfrog.metrics["evaluations_per_step"] == 1
    assert leapfrog.metrics["observed_order"] == pytest.approx(2, abs=0.01)


def test_leapfrogs_error_falls_by_four_per_halving_and_eulers_does_not(tmp_path):
    coarse, fine = (orbit(tmp_path, dt)[0] for dt in (0.02, 0.01))
    ratios = [a.metrics["max_energy_deviation"] / b.metrics["max_energy_deviation"]
              for a, b in zip(coarse, fine, strict=True)]  # fmt: skip
    assert ratios[1] == pytest.approx(4, abs=0.05)
    assert ratios[0] < 1.5


def test_the_rings_ceiling(tmp_path):
    """Depth 32, 4,000 steps, of the published three seeds the first; `zoo reproduce` has all."""
    records = perform(
        current().get("experiment", "rings"),
        [zoo.get("euler"), zoo.get("ledger")],
        range(1),
        Store(tmp_path),
    )
    euler, ledger = records[:1], records[1:]
    accuracy = [record.metrics["test_accuracy"] for record in euler]
    assert 0.985 <= statistics.mean(accuracy) <= 0.9999
    assert all(record.metrics["test_accuracy"] == 1 for record in ledger)
    turns = [
        statistics.mean(r.metrics["turning_angle_degrees"] for r in g) for g in (euler, ledger)
    ]
    assert 40 <= turns[0] <= 65
    assert 6 <= turns[1] <= 14


def test_the_adaptive_flow_agrees_with_a_hundred_dopri8_sub_steps():
    """On a trained network's field, in 64-bit, to 1e-7; control: one step of it does not."""
    import jax
    from flax import nnx

    from integrator_zoo.data import planar_data
    from integrator_zoo.depth import integrate

    data = planar_data("rings", 0, 256, 64)
    net = zoo.ResNet(4, integrator=zoo.get("euler"), rngs=nnx.Rngs(0))
    zoo.fit(net, data.train_x, data.train_y, steps=300)
    with jax.enable_x64(True):
        graph, weights = nnx.split(net.stack.parts)
        wide = jax.tree.map(lambda leaf: np.asarray(leaf, np.float64), weights)
        x = jax.numpy.asarray(data.test_x.T, np.float64)

        def field(layer_weights, index, x):
            return nnx.merge(graph, layer_weights)[0](x)

        def end(spec, repeat):
            fine = jax.tree.map(lambda leaf: np.repeat(leaf, repeat, 0), wide)
            return integrate(
                zoo.get(spec), field, fine, x, depth=4 * repeat, h=2.0 / repeat, axis=0
            ).position

        exact = end("diffrax-adaptive:rtol=1e-8,atol=1e-10,max_steps=4096", 1)
        reference = end("diffrax-dopri8", 100)
        np.testing.assert_allclose(exact, reference, rtol=1e-7, atol=1e-7)
        assert np.abs(np.asarray(exact - end("diffrax-dopri8", 1))).max() > 1e-6
