"""What the integrators are: order, inverse, geometry, limits. Chosen by trait, never by name."""

from __future__ import annotations

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from conftest import ALL
from flax import nnx

import integrator_zoo as zoo
from integrator_zoo import problems
from integrator_zoo.contract import Step
from integrator_zoo.depth import integrate

RULES = {name: zoo.get(name) for name in ALL}
INVERTIBLE = [n for n, r in RULES.items() if r.traits.inverse != "none"]
SYMPLECTIC = [n for n, r in RULES.items() if r.traits.symplectic]
ON_SPHERE = [n for n, r in RULES.items() if r.traits.manifold == "sphere"]
ORDERED = [n for n, r in RULES.items() if r.traits.order and n not in ON_SPHERE]
LIMITS = [(n, *limit) for n, r in RULES.items() for limit in r.traits.reduces_to]


def test_the_groups_are_not_empty():
    assert min(map(len, (INVERTIBLE, SYMPLECTIC, ON_SPHERE, ORDERED, LIMITS))) >= 2


def test_an_inverse_is_declared_exactly_where_there_is_one():
    for name, rule in RULES.items():
        assert isinstance(rule, zoo.Invertible) == (name in INVERTIBLE)


@pytest.mark.parametrize("name", [n for n in ORDERED if RULES[n].traits.order <= 3])
def test_order_on_kepler(name):
    fit = problems.observed_order(RULES[name], problems.Kepler(), span=1.9)
    assert fit.order == pytest.approx(RULES[name].traits.order, abs=0.2)


def test_order_control_a_wrong_declaration_would_fail():
    fit = problems.observed_order(RULES["euler"], problems.Kepler(), span=1.9)
    assert abs(fit.order - 2) > 0.2


@pytest.mark.parametrize("problem", problems.PROBLEMS, ids=lambda p: p.name)
@pytest.mark.parametrize("name", ALL)
def test_every_integrator_runs_on_every_problem(name, problem):
    found = problems.solve(RULES[name], problem(), 0.01, 40)
    assert found.x.shape == (41, problem().start()[0].size)
    assert np.isfinite(found.x).all()
    assert found.x.dtype == np.float64
    if name in ORDERED:
        assert found.error[-1] < 0.3


@pytest.mark.parametrize("name", INVERTIBLE)
@pytest.mark.parametrize("shared", [False, True])
def test_round_trip(name, shared):
    """invert(step(s)) is s to rounding; control: with another field it is not."""
    rule = RULES[name]
    with jax.enable_x64(True):
        x = jax.random.normal(jax.random.key(0), (5, 3), jnp.float64)
        v = jax.random.normal(jax.random.key(1), (5, 3), jnp.float64)
        at = Step(0.0, 0.3, 0, 1, shared)
        start = rule.init(x, jnp.sin, at, v)
        back = rule.invert(rule.step(start, jnp.sin, at, {}), jnp.sin, at, {})
        for a, b in zip(start, back, strict=True):
            np.testing.assert_allclose(a, b, atol=1e-14)
        wrong = rule.invert(rule.step(start, jnp.sin, at, {}), jnp.cos, at, {})
        assert np.abs(np.asarray(wrong[1] - v)).max() > 0.01


@pytest.mark.parametrize("name", SYMPLECTIC)
def test_symplectic_energy_stays_in_a_band_over_many_orbits(name):
    kepler = problems.Kepler()
    found = problems.solve(RULES[name], kepler, 0.02, 24200)  # a hundred orbits
    energy = np.asarray(kepler.energy(found.x, found.v))
    deviation = np.abs(energy - energy[0]) / abs(energy[0])
    assert deviation.max() < 0.02
    assert deviation[-5000:].max() < 1.2 * deviation[:5000].max()


def test_symplectic_control_euler_must_drift():
    kepler = problems.Kepler()
    found = problems.solve(RULES["euler"], kepler, 0.02, 24200)
    energy = np.asarray(kepler.energy(found.x, found.v))
    assert (energy[-1] - energy[0]) / abs(energy[0]) > 0.5


@pytest.mark.parametrize("name", SYMPLECTIC)
def test_the_jacobian_preserves_the_symplectic_form(name):
    rule, at = RULES[name], Step(0.0, 0.3, 0, 1)
    with jax.enable_x64(True):

        def flow(z):
            state = rule.step(rule.init(z[:2], jnp.sin, at, z[2:]), jnp.sin, at, {})
            return jnp.concatenate([state.x, state.v])

        jac = jax.jacobian(flow)(jnp.array([0.3, -0.7, 1.1, 0.2]))
        form = jnp.block([[jnp.zeros((2, 2)), jnp.eye(2)], [-jnp.eye(2), jnp.zeros((2, 2))]])
        np.testing.assert_allclose(jac.T @ form @ jac, form, atol=1e-14)


@pytest.mark.parametrize("name", [n for n in SYMPLECTIC if RULES[n].traits.time_reversible])
def test_time_reversal_returns_to_the_start(name):
    rule = RULES[name]
    with jax.enable_x64(True):
        at = Step(0.0, 0.3, 0, 1)
        x, v = jnp.array([0.3, -0.7]), jnp.array([1.1, 0.2])
        there = rule.step(rule.init(x, jnp.sin, at, v), jnp.sin, at, {})
        back = rule.step(rule.init(there.x, jnp.sin, at, -there.v), jnp.sin, at, {})
        np.testing.assert_allclose(back.x, x, atol=1e-15)
        np.testing.assert_allclose(back.v, -v, atol=1e-15)


@pytest.mark.parametrize("name", ON_SPHERE)
@pytest.mark.parametrize("size", [0.0, 1e-30, 1e-10, 1.0, 1e6, 1e30])
def test_the_sphere_is_kept_and_gradients_are_finite(name, size):
    rule, width = RULES[name], 4
    x = size * jax.random.normal(jax.random.key(0), (6, width))

    def run(x):
        return integrate(
            rule, lambda w, i, z: jnp.tanh(z * w), jnp.ones((3, width)), x, depth=3, h=0.5
        ).position

    radius = jnp.linalg.norm(run(x), axis=-1)
    if size >= 1e-6:
        np.testing.assert_allclose(radius, width**0.5, rtol=1e-6)
    grad = jax.grad(lambda x: run(x)[:, 0].sum())(x)
    assert np.isfinite(np.asarray(run(x))).all()
    assert np.isfinite(np.asarray(grad)).all()


@pytest.mark.parametrize("name", ALL)
def test_zero_state_and_zero_field_are_finite(name):
    def run(weights, x):
        return integrate(
            RULES[name], lambda w, i, z: z * w, weights, x, depth=3, h=0.5
        ).position.sum()

    for weights in (jnp.zeros((3, 2)), jnp.ones((3, 2))):
        value, grads = jax.value_and_grad(run, argnums=(0, 1))(weights, jnp.zeros((4, 2)))
        assert np.isfinite(value)
        assert all(np.isfinite(g).all() for g in jax.tree.leaves(grads))


def _outputs_and_gradients(spec, **options):
    net = zoo.ResNet(8, integrator=zoo.get(spec), rngs=nnx.Rngs(0), **options)
    x = jax.random.normal(jax.random.key(1), (64, 2))
    y = (x[:, 0] > 0).astype(jnp.int32)
    graph, params = nnx.split(net, nnx.Param)

    @jax.jit
    def run(params):
        logits = nnx.merge(graph, params)(x)
        return -jax.nn.log_softmax(logits)[jnp.arange(64), y].mean(), logits

    (_, logits), grads = jax.value_and_grad(run, has_aux=True)(params)
    return [logits, *jax.tree.leaves(grads)]


@pytest.mark.parametrize(("name", "options", "limit"), LIMITS)
@pytest.mark.parametrize("memory", ["store", "remat"])
def test_declared_limits_hold_bit_for_bit_under_jit(name, options, limit, memory):
    """Outputs and gradients of a float32 ResNet; control: just off the limit they differ."""
    key = options.split("=")[0]
    ours = _outputs_and_gradients(f"{name}:{options}", memory=memory)
    theirs = _outputs_and_gradients(limit, memory=memory)
    off = _outputs_and_gradients(f"{name}:{key}=0.001", memory=memory)
    for a, b in zip(ours, theirs, strict=True):
        np.testing.assert_array_equal(a, b)
    assert not np.array_equal(off[0], theirs[0])


def test_the_gain_matched_control_has_the_gains_of_a_ledger():
    """With constant fields both end at the same point; Euler does not."""
    n, mu = 6, 0.8
    fields = jax.random.normal(jax.random.key(0), (n, 3))

    def end(spec):
        return integrate(
            zoo.get(spec), lambda w, i, x: w + 0 * x, fields, jnp.zeros(3), depth=n, h=0.5
        ).position

    np.testing.assert_allclose(
        end(f"euler-gain-matched:mu={mu}"), end(f"ledger:mu={mu}"), rtol=1e-5
    )
    assert np.abs(np.asarray(end("euler") - end("ledger:mu=0.8"))).max() > 0.1


def test_adaptive_says_so_when_it_cannot_reach_the_tolerance():
    rule = zoo.get("diffrax-adaptive:rtol=1e-6,max_steps=2")
    end = integrate(
        rule, lambda w, i, x: 50 * jnp.sin(40 * x), jnp.zeros(2), jnp.ones(2), depth=2, h=1.0
    ).position
    assert np.isnan(np.asarray(end)).all()
    enough = zoo.get("diffrax-adaptive:rtol=1e-3,max_steps=4000")
    end = integrate(
        enough, lambda w, i, x: 50 * jnp.sin(40 * x), jnp.zeros(2), jnp.ones(2), depth=2, h=1.0
    ).position
    assert np.isfinite(np.asarray(end)).all()
