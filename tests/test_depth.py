"""The drive through depth: what integrate() does with layers, parts, memory and dtypes."""

from __future__ import annotations

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from conftest import ALL

import integrator_zoo as zoo
from integrator_zoo.depth import MEMORY, count_evaluations, integrate

DEPTH, WIDTH = 5, 3


def layers(key=0, dtype=jnp.float32):
    w = jax.random.normal(jax.random.key(key), (DEPTH, WIDTH, WIDTH), dtype) / 2
    b = jax.random.normal(jax.random.key(key + 1), (DEPTH, WIDTH), dtype) / 2
    return {"w": w, "b": b}


def branch(weights, index, x):
    return jnp.tanh(x @ weights["w"] + weights["b"])


def points(dtype=jnp.float32):
    return jax.random.normal(jax.random.key(9), (7, WIDTH), dtype)


def walk(rule, weights, x, **options):
    return integrate(zoo.get(rule), branch, weights, x, depth=DEPTH, h=0.5, **options)


def test_euler_is_the_hand_written_block_bit_for_bit():
    weights, x = layers(), points()

    @jax.jit
    def by_hand(weights, x):
        for i in range(DEPTH):
            x = x + 0.5 * jnp.tanh(x @ weights["w"][i] + weights["b"][i])
        return x

    ours = jax.jit(lambda w, x: walk("euler", w, x).position)(weights, x)
    np.testing.assert_array_equal(ours, by_hand(weights, x))
    assert not np.array_equal(ours, walk("leapfrog", weights, x).position)


def test_nodes_are_all_positions_from_start_to_end():
    passed = walk("ledger", layers(), points(), collect=True)
    path = passed.trajectory
    assert path.nodes.shape == (DEPTH + 1, 7, WIDTH)
    assert path.observed["velocity"].shape == path.nodes.shape
    np.testing.assert_array_equal(path.nodes[0], points())
    np.testing.assert_array_equal(path.nodes[-1], passed.position)
    moved = path.nodes[1:] - path.nodes[:-1]
    np.testing.assert_allclose(moved, 0.5 * path.observed["velocity"][1:], atol=1e-6)


def test_parts_follow_one_another_and_see_their_index():
    seen = []

    def part(number):
        def evaluate(weights, index, x):
            seen.append(number)
            return jnp.zeros_like(x) + jnp.asarray(index, x.dtype)

        return evaluate

    passed = integrate(
        zoo.get("euler"),
        [part(0), part(1)],
        layers(),
        jnp.zeros((1, WIDTH)),
        depth=DEPTH,
        h=1.0,
        collect=True,
    )
    steps = np.diff(np.asarray(passed.trajectory.nodes[:, 0, 0]))
    np.testing.assert_array_equal(steps, np.arange(2 * DEPTH))
    assert seen[-2:] == [0, 1]


def test_time_is_not_accumulated():
    times = []

    @zoo.integrator("clock", equation="x' = t", reference="a test", order=1)
    class Clock(zoo.Integrator):
        def step(self, state, field, at, params):
            jax.debug.callback(lambda t: times.append(float(t)), at.t, ordered=True)
            return state

    with jax.enable_x64(True):
        integrate(Clock(), branch, layers(), points(), depth=DEPTH, h=0.1, t0=2.0)
    jax.effects_barrier()
    np.testing.assert_allclose(times, 2 + 0.1 * np.arange(DEPTH), rtol=1e-6)


@pytest.mark.parametrize("name", ALL)
def test_all_memory_modes_agree(name):
    """Values and gradients; control: another rule differs by far more."""

    def loss(weights, x, rule, memory):
        return (walk(rule, weights, x, memory=memory).position ** 2).sum()

    grad = jax.jit(jax.value_and_grad(loss, argnums=(0, 1)), static_argnums=(2, 3))
    kept = grad(layers(), points(), name, "store")
    undoes = zoo.get(name).traits.inverse != "none"
    for memory in MEMORY:
        if memory in ("reversible", "exact") and not undoes:
            with pytest.raises(zoo.ZooError, match="inverse"):
                grad(layers(), points(), name, memory)
            continue
        near = 2e-6 if memory in ("store", "remat") else 1e-4
        other = grad(layers(), points(), name, memory)
        for a, b in zip(jax.tree.leaves(kept), jax.tree.leaves(other), strict=True):
            np.testing.assert_allclose(a, b, rtol=near, atol=near)
    control = grad(layers(), points(), "ledger:mu=0.35", "store")
    assert abs(control[0] - kept[0]) > 1e-3


@pytest.mark.parametrize("dtype", ["float32", "bfloat16", "float64"])
@pytest.mark.parametrize("name", ALL)
def test_shapes_and_dtypes_are_kept(name, dtype):
    with jax.enable_x64(dtype == "float64"):
        kind = jnp.dtype(dtype)
        passed = walk(name, layers(dtype=kind), points(kind), collect=True)
        assert passed.position.dtype == kind
        assert passed.position.shape == (7, WIDTH)
        assert passed.trajectory.nodes.dtype == kind
        assert np.isfinite(np.asarray(passed.position, float)).all()


@pytest.mark.parametrize("name", ALL)
def test_the_second_call_does_not_recompile(name):
    traces = []

    @jax.jit
    def run(weights, x, h):
        traces.append(name)
        return integrate(zoo.get(name), branch, weights, x, depth=DEPTH, h=h).position

    run(layers(), points(), jnp.asarray(0.5))
    run(layers(3), points() + 1, jnp.asarray(0.25))
    assert len(traces) == 1


def test_features_may_lie_on_the_first_axis():
    weights = layers()

    def upright(w, index, x):
        return jnp.tanh(w["w"].T @ x + w["b"][:, None])

    for name in ("ngpt-ledger", "leapfrog", "euler-gain-matched"):
        lying = walk(name, weights, points()).position
        standing = integrate(
            zoo.get(name), upright, weights, points().T, depth=DEPTH, h=0.5, axis=0
        ).position
        np.testing.assert_allclose(lying, standing.T, rtol=1e-5, atol=1e-6)


def test_a_traced_depth_serves_all_depths():
    weights = jax.tree.map(lambda leaf: leaf[0], layers())
    traces = []

    @jax.jit
    def run(depth):
        traces.append(1)
        return integrate(
            zoo.get("ledger"), branch, weights, points(), depth=depth, h=0.5, tied=True
        ).position

    for depth in (1, 4):
        fixed = integrate(
            zoo.get("ledger"), branch, weights, points(), depth=depth, h=0.5, tied=True
        )
        np.testing.assert_allclose(run(jnp.int32(depth)), fixed.position, rtol=1e-6)
    assert len(traces) == 1


class _Shifty(zoo.Integrator):
    def position(self, state):
        return state[0] if isinstance(state, tuple) else state


@pytest.mark.parametrize(
    ("step", "words"),
    [
        (lambda self, state, field, at, params: (state, state), "changed the structure"),
        (
            lambda self, state, field, at, params: state.astype(jnp.float16),
            "changed a leaf of the state, from float32.* to float16",
        ),
        (lambda self, state, field, at, params: state[:1], "changed a leaf"),
    ],
)
def test_a_step_that_changes_its_state_is_named(step, words):
    cls = type("Shifty", (_Shifty,), {"step": step, "__module__": __name__})
    made = zoo.integrator("shifty", equation="x", reference="a test", order=1)(cls)
    with pytest.raises(zoo.PluginError, match=f"integrator 'shifty'.*{words}"):
        integrate(made(), branch, layers(), points(), depth=DEPTH, h=0.5)


@pytest.mark.parametrize(
    ("options", "words"),
    [
        ({"depth": 0}, "at least one layer"),
        ({"memory": "stor"}, "Did you mean 'store'"),
    ],
)
def test_bad_arguments(options, words):
    with pytest.raises(zoo.ZooError, match=words):
        integrate(
            zoo.get("euler"), branch, layers(), points(), **{"depth": DEPTH, "h": 1.0} | options
        )
    with pytest.raises(zoo.ZooError, match="int32 cannot be integrated"):
        integrate(zoo.get("euler"), branch, layers(), jnp.arange(3), depth=DEPTH, h=1.0)


@pytest.mark.parametrize("name", ALL)
def test_declared_evaluations_are_the_counted_ones(name):
    traits = zoo.get(name).traits

    def run(mark):
        def counted(weights, index, x):
            return mark(branch(weights, index, x))

        return jax.jit(
            lambda w, x: integrate(zoo.get(name), counted, w, x, depth=DEPTH, h=0.5).position
        )(layers(), points())

    counted = count_evaluations(run)
    if traits.evaluations is None:
        assert counted > DEPTH
    else:
        assert counted == traits.evaluations * DEPTH
