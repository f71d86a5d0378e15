"""Problems: exact solutions against an independent integration, and a configuration untouched."""

from __future__ import annotations

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from scipy.integrate import solve_ivp

import integrator_zoo as zoo
from integrator_zoo import problems

STARTS = [
    problems.Kepler(),
    problems.Kepler(gm=2.5, x=0.7, y=-0.4, vx=0.6, vy=1.1),
    problems.Oscillator(omega=1.7, x=0.4, v=-0.9),
    problems.DampedOscillator(omega=1.3, damping=0.4, x=0.5, v=1.0),
    problems.Pendulum(omega=1.2, x=2.4, v=0.3),
    problems.Rotation(omega=0.8),
]


@pytest.mark.parametrize("problem", STARTS, ids=lambda p: p.spec)
def test_the_exact_solution_solves_the_equation(problem):
    lifted = problems.Lifted(problem, "first")
    times = np.linspace(0, 20, 41)
    with jax.enable_x64(True):
        start, _ = lifted.start()
        field = jax.jit(lifted.field)
        found = solve_ivp(
            lambda _, y: np.asarray(field(jnp.asarray(y))),
            (0, 20),
            start,
            "DOP853",
            t_eval=times,
            rtol=1e-11,
            atol=1e-12,
        )
    exact = problem.exact(times)
    np.testing.assert_allclose(found.y.T[:, : exact.shape[1]], exact, atol=1e-7)


@pytest.mark.parametrize("problem", STARTS, ids=lambda p: p.spec)
@pytest.mark.parametrize("rule", ["diffrax-dopri8", "leapfrog"])
def test_both_lifts_reach_the_exact_solution(problem, rule):
    coarse, fine = (
        problems.solve(zoo.get(rule), problem, h, n) for h, n in [(0.04, 50), (0.01, 200)]
    )
    bound = 1e-10 if rule == "diffrax-dopri8" else 5e-3
    assert fine.error[-1] < bound
    if rule == "leapfrog":
        assert fine.error.max() < coarse.error.max() / 8  # second order: 16 at best


def test_importing_and_solving_leave_the_configuration_alone():
    before = jnp.ones(2).dtype
    found = problems.solve(zoo.get("euler"), problems.Kepler(), 0.1, 3)
    assert found.x.dtype == np.float64
    assert jnp.ones(2).dtype == before == jnp.float32
    assert not jax.config.jax_enable_x64


def test_one_trace_serves_a_sweep_over_step_sizes():
    from integrator_zoo.problems.solve import _last

    rule, kepler = zoo.get("leapfrog"), problems.Kepler()
    problems.final_position(rule, kepler, 0.01, 10)
    size = _last._cache_size()
    for h, steps in [(0.02, 10), (0.005, 40), (0.1, 3)]:
        problems.final_position(rule, kepler, h, steps)
    assert _last._cache_size() == size


def test_many_orbits_at_once_are_the_single_ones():
    x = np.array([[1.0, 0.8, 1.2], [0.0, 0.1, -0.3]])
    v = np.array([[0.0, 0.1, 0.2], [0.9, 1.0, 0.8]])
    for spec in ("leapfrog", "euler"):
        ends = problems.final_position(zoo.get(spec), problems.Kepler(), 0.02, 100, (x, v))
        for i in range(3):
            one = problems.Kepler(x=x[0, i], y=x[1, i], vx=v[0, i], vy=v[1, i])
            found = problems.solve(zoo.get(spec), one, 0.02, 100)
            np.testing.assert_allclose(ends[:, i], found.x[-1], rtol=1e-12)


@pytest.mark.parametrize(
    ("make", "words"),
    [
        (lambda: problems.Kepler(vy=2.0).period(), "not bound"),
        (lambda: problems.Kepler(x=0.0, y=0.0).period(), "the sun itself"),
        (lambda: problems.Kepler(gm=-1.0), "outside"),
        (lambda: problems.DampedOscillator(damping=2.0).start(), "not below omega"),
        (lambda: problems.solve(zoo.get("euler"), problems.Kepler(), -0.1, 3), "positive"),
        (lambda: problems.solve(zoo.get("euler"), problems.Kepler(), 0.1, 0), "positive"),
    ],
)
def test_bad_problems(make, words):
    with pytest.raises(zoo.ZooError, match=words):
        make()


def test_leapfrog_takes_one_evaluation_a_step_on_an_orbit():
    kepler = problems.Kepler()
    assert problems.evaluations_per_step(zoo.get("leapfrog"), kepler, 0.02) == 1
    assert problems.evaluations_per_step(zoo.get("diffrax-heun"), kepler, 0.02) == 2
    assert problems.evaluations_per_step(zoo.get("diffrax-adaptive"), kepler, 0.02) > 6
