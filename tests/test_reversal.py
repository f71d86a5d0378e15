"""Depth undone: the memory modes agree, exact means equal, and what cannot be undone is refused."""

from __future__ import annotations

import math

import jax
import jax.flatten_util
import jax.numpy as jnp
import numpy as np
import pytest
from conftest import ALL
from flax import nnx
from hypothesis import given, settings
from hypothesis import strategies as st

import integrator_zoo as zoo
from integrator_zoo import exact
from integrator_zoo.contract import Invertible
from integrator_zoo.depth import integrate, rewind
from integrator_zoo.errors import ZooError
from integrator_zoo.memory import MEMORY, UNDOING, safe_depth

UNDONE = [name for name in ALL if isinstance(zoo.get(name), Invertible)]
EXACT = [name for name in UNDONE if zoo.get(name).moves(1.0)]


def layers(depth, width=3, key=0, tied=False):
    keys = jax.random.split(jax.random.key(key), 2)
    lead = () if tied else (depth,)
    return {
        "w": jax.random.normal(keys[0], (*lead, width, width)) / width**0.5,
        "b": jax.random.normal(keys[1], (*lead, width)) / 2,
    }


def branch(weights, index, x):
    return jnp.tanh(x @ weights["w"] + weights["b"])


def points(n=7, width=3, key=9):
    return jax.random.normal(jax.random.key(key), (n, width))


def far(found, expected):
    """Relative distance of two pytrees."""
    a, b = (np.concatenate([np.ravel(x) for x in jax.tree.leaves(t)]) for t in (found, expected))
    return np.linalg.norm(a - b) / np.linalg.norm(b)


@settings(deadline=None, max_examples=4, derandomize=True)
@given(
    name=st.sampled_from(UNDONE),
    rate=st.sampled_from([0.0, 0.5]),
    tied=st.booleans(),
    collect=st.booleans(),
    seed=st.integers(0, 99),
)
def test_gradients_of_all_modes_agree(name, rate, tied, collect, seed):
    weights, x, key = layers(6, key=seed, tied=tied), points(key=seed), jax.random.key(seed)

    def loss(memory, weights, x, h, velocity, slope, key):
        def masked(weights, index, x):  # closes over traced values: a key, and a learned slope
            keep = jax.random.bernoulli(jax.random.fold_in(key, index), 1 - rate, x.shape)
            return branch(weights, index, slope * x) * keep / (1 - rate)

        passed = integrate(
            zoo.get(name), [masked, branch], weights, x, depth=6, h=h, velocity=velocity,
            tied=tied, collect=collect, memory=memory,
        )  # fmt: skip
        seen = jnp.sin(passed.trajectory.nodes).sum() if collect else 0.0
        return (passed.position**2).sum() + seen

    args = (weights, x, jnp.float32(0.3), x[::-1], jnp.float32(0.8))
    grads = {
        memory: jax.jit(jax.grad(lambda *a, m=memory: loss(m, *a), argnums=range(5)))(*args, key)
        for memory in MEMORY[: 4 if name in EXACT else 3]
    }
    assert far(grads["remat"], grads["store"]) < 1e-6
    assert far(grads["reversible"], grads["store"]) < 1e-5 * zoo.get(name).amplification() ** 12
    if name in EXACT:
        assert far(grads["exact"], grads["store"]) < 2e-5
    other = jax.grad(lambda *a: loss("store", *a), argnums=range(5))(*args, jax.random.key(1000))
    assert (far(other, grads["store"]) > 1e-2) == (rate > 0)  # the control: another mask


@pytest.mark.parametrize("mu", [0.99, 0.9, 0.6, 0.5, 0.3, 0.1, 0.7312])
@pytest.mark.parametrize("depth", [8, 128])
def test_exact_means_equal_and_costs_the_bound(mu, depth):
    rule, weights = zoo.get(f"ledger:mu={mu}"), layers(depth)
    x, v = points(1000), points(1000, key=3)

    @jax.jit
    def both(weights, x, v):
        there = integrate(
            rule, branch, weights, x, depth=depth, h=8 / depth, velocity=v, memory="exact"
        )
        return there, rewind(rule, branch, weights, there, depth=depth, h=8 / depth)

    there, back = both(weights, x, v)
    assert not there.code.fault
    np.testing.assert_array_equal(back.code.x, jnp.round(x * 2.0**22).astype(jnp.int32))
    np.testing.assert_array_equal(back.code.v, jnp.round(v * 2.0**22).astype(jnp.int32))
    assert back.code.top == 0
    assert not back.code.remainder.any()
    assert not (there.code.x == back.code.x).all()  # the control: it did go somewhere
    keep = exact.rational(mu, "")
    assert exact.SPILL * int(there.code.top) <= exact.bound(keep, depth)
    held = exact.SPILL * int(there.code.top) + math.log2(1 + int(there.code.remainder.max()))
    if depth == 128:  # and no coder can do with less than the bound, but for the last digits
        assert held > exact.bound(keep, depth) - 2


def test_a_damaged_remainder_does_not_come_back():
    rule, weights, x = zoo.get("ledger:mu=0.5"), layers(64), points()
    there = integrate(rule, branch, weights, x, depth=64, h=0.1, memory="exact")
    code = there.code._replace(remainder=there.code.remainder.at[0, 0].add(1))
    back = rewind(rule, branch, weights, there._replace(code=code), depth=64, h=0.1)
    assert back.code.remainder.any() or not (back.code.x == jnp.round(x * 2.0**22)).all()


@pytest.mark.parametrize("name", EXACT)
def test_exact_under_vmap_and_dropout_keys(name):
    rule, weights, x = zoo.get(name), layers(6), jnp.stack([points(key=i) for i in range(3)])

    def grad(x):
        end = lambda w: integrate(rule, branch, w, x, depth=6, h=0.5, memory="exact").position  # noqa: E731
        return jax.grad(lambda w: (end(w) ** 2).sum())(weights)

    one_by_one = [grad(one) for one in x]
    together = jax.vmap(grad)(x)
    for i, alone in enumerate(one_by_one):
        assert far(jax.tree.map(lambda leaf, i=i: leaf[i], together), alone) < 1e-5


def test_overflow_is_an_error_outside_and_nan_inside():
    rule, weights, x = zoo.get("ledger"), layers(4), 600 * points()
    with pytest.raises(ZooError, match=r"left the range of \+-511.*fraction=18"):
        integrate(rule, branch, weights, x, depth=4, h=1.0, memory="exact")
    run = jax.jit(
        lambda x, m: integrate(rule, branch, weights, x, depth=4, h=1.0, memory=m).position,
        static_argnums=1,
    )
    assert jnp.isnan(run(x, "exact")).all()
    assert jnp.isfinite(run(x, "exact:fraction=16")).all()


def test_refusals_say_why_and_what_else():
    weights, x = layers(128), points()

    def walk(spec, memory, depth=128):
        return integrate(zoo.get(spec), branch, weights, x, depth=depth, h=0.05, memory=memory)

    for memory in ("reversible", "exact"):
        with pytest.raises(ZooError, match=r"divide by zero.*remat"):
            walk("ledger:mu=0", memory)
        with pytest.raises(ZooError, match=r"no inverse.*remat"):
            walk("euler", memory)
    with pytest.raises(ZooError, match=r"Safe depth: 22; no digit is left at 31\..*exact"):
        walk("ledger:mu=0.6", "reversible")
    with pytest.warns(UserWarning, match="Safe depth: 22"):
        walk("ledger:mu=0.6", "reversible:unsafe=warn")
    walk("ledger:mu=0.6", "reversible:unsafe=allow")
    walk("leapfrog", "reversible")
    with pytest.raises(ZooError, match="memory mode 'exakt'"):
        walk("ledger", "exakt")
    assert safe_depth(zoo.get("ledger:mu=0.6"), 2.0**-23) == pytest.approx(
        math.log(2**23) / math.log(1 / 0.6)
    )


def test_the_cliff_and_its_cure():
    """Weights shared, depth 128, mu = 0.6: floating-point undoing collapses, exact does not."""
    weights, x = layers(128, tied=True), points(64)

    def grad(memory):
        def loss(w):
            passed = integrate(
                zoo.get("ledger:mu=0.6"), branch, w, x, depth=128, h=1 / 16, tied=True,
                memory=memory,
            )  # fmt: skip
            return ((passed.position - x[::-1]) ** 2).sum()

        flat = jnp.concatenate(
            [g.ravel() for g in jax.tree.leaves(jax.jit(jax.grad(loss))(weights))]
        )
        return flat / jnp.linalg.norm(flat)

    store = grad("store")
    assert store @ grad("exact") > 0.9999
    assert not store @ grad("reversible:unsafe=allow") > 0.9


def test_memory_does_not_grow_with_depth():
    x = points(256, 16)

    def temporary(memory, depth):
        weights = layers(depth, 16)
        loss = lambda w: integrate(  # noqa: E731
            zoo.get("ledger:mu=0.9"), branch, w, x, depth=depth, h=0.1, memory=memory
        ).position.sum()
        program = jax.jit(jax.grad(loss)).lower(weights).compile()
        return program.memory_analysis().temp_size_in_bytes

    words = exact.spills(exact.rational(0.9, ""), 512).words
    bits = words * 2 * x.size
    assert temporary("reversible:unsafe=allow", 512) <= 1.15 * temporary("reversible", 8)
    assert temporary("exact", 512) - bits <= 1.15 * temporary("exact", 8)
    assert temporary("store", 512) > 10 * temporary("store", 8)  # the control


def test_a_field_that_does_not_repeat_itself_gives_nan():
    """Gradients are never quietly wrong: where a recomputed force differs, they are NaN."""
    made = {"calls": 0}

    def moody(weights, index, x):
        made["calls"] += 1  # another constant each time it is traced
        return branch(weights, index, x) + 0.1 * made["calls"]

    def loss(weights):
        return integrate(
            zoo.get("ledger"), moody, weights, points(), depth=4, h=1.0, memory="exact"
        ).position.sum()

    assert all(jnp.isnan(g[0]).all() for g in jax.tree.leaves(jax.grad(loss)(layers(4))))


class Attention(nnx.Module):
    def __init__(self, width, rngs):
        self.norm = nnx.LayerNorm(width, rngs=rngs)
        self.heads = nnx.MultiHeadAttention(
            2, width, dropout_rate=0.5, decode=False, deterministic=False, rngs=rngs
        )

    def __call__(self, x):
        return self.heads(self.norm(x))


class Feed(nnx.Module):
    def __init__(self, width, rngs):
        self.norm, self.up = nnx.LayerNorm(width, rngs=rngs), nnx.Linear(width, 16, rngs=rngs)
        self.down, self.drop = nnx.Linear(16, width, rngs=rngs), nnx.Dropout(0.5, rngs=rngs)

    def __call__(self, x):
        return self.drop(self.down(nnx.gelu(self.up(self.norm(x)))))


def attention_stack(memory, depth=3):
    return zoo.ResidualStack(
        lambda rngs: [Attention(8, rngs), Feed(8, rngs)], depth, 8, zoo.get("ledger"), h=1.0,
        memory=memory, rngs=nnx.Rngs(0),
    )  # fmt: skip


@pytest.mark.slow  # the GPT of the test of both backbones has attention and dropout too
def test_a_stack_with_attention_and_dropout():
    x, key = jax.random.normal(jax.random.key(0), (2, 5, 8)), jax.random.key(4)

    def grad(memory, key):
        return nnx.jit(nnx.grad(lambda net, x: (net(x, key=key) ** 2).sum()))(
            attention_stack(memory), x
        )

    grads = {memory: grad(memory, key) for memory in MEMORY}
    assert far(grads["remat"], grads["store"]) < 1e-6
    assert far(grads["reversible"], grads["store"]) < 1e-4
    assert far(grads["exact"], grads["store"]) < 1e-4
    assert far(grad("store", jax.random.key(5)), grads["store"]) > 0.1  # the control
    net = attention_stack("exact")
    back = net.rewind(net.passage(x, key=key), key=key)
    np.testing.assert_array_equal(back.code.x, jnp.round(x * 2.0**22).astype(jnp.int32))


class Block(nnx.Module):
    def __init__(self, rngs, hidden=9):
        self.up, self.down = nnx.Linear(5, hidden, rngs=rngs), nnx.Linear(hidden, 5, rngs=rngs)

    def change(self, x):
        return self.down(jnp.tanh(self.up(x)))

    def __call__(self, x):
        return x + self.change(x)


def test_an_existing_network_converted_bit_for_bit():
    rngs = nnx.Rngs(0)
    blocks = nnx.List([Block(rngs) for _ in range(3)])
    x = jax.random.normal(jax.random.key(1), (7, 5))

    def original(blocks, x):
        for block in blocks:
            x = block(x)
        return x

    def converted(spec):
        return zoo.from_blocks(
            list(blocks), zoo.get(spec), width=5, branch=lambda block, x: block.change(x)
        )

    run = nnx.jit(lambda net, x: net(x))
    expected = nnx.jit(original)(blocks, x)
    np.testing.assert_array_equal(run(converted("ledger:mu=0"), x), expected)
    assert not jnp.allclose(run(converted("ledger"), x), expected)  # the control
    theirs = nnx.jit(nnx.grad(lambda blocks, x: (original(blocks, x) ** 2).sum()))(blocks, x)
    ours = nnx.jit(nnx.grad(lambda net, x: (net(x) ** 2).sum()))(converted("ledger:mu=0"), x)
    stacked = jax.tree.map(lambda *leaves: jnp.stack(leaves), *(theirs[i] for i in range(3)))
    jax.tree.map(np.testing.assert_array_equal, nnx.to_pure_dict(ours["parts"][0]["block"]),
                 nnx.to_pure_dict(stacked))  # fmt: skip
    with pytest.raises(ZooError, match="block 1"):
        zoo.from_blocks([Block(rngs), Block(rngs, 4)], zoo.get("euler"), width=5)


def test_a_plain_list_and_a_batch_norm_are_refused():
    class Listed(nnx.Module):
        def __init__(self, rngs):
            self.layers = [nnx.Linear(5, 5, rngs=rngs)]

    class Normed(nnx.Module):
        def __init__(self, rngs):
            self.norm = nnx.BatchNorm(5, rngs=rngs)

        def __call__(self, x):
            return self.norm(x)

    def stack(make, memory):
        return zoo.ResidualStack(
            lambda rngs: make(rngs), 3, 5, zoo.get("ledger"), h=1.0, memory=memory, rngs=nnx.Rngs(0)
        )

    with pytest.raises(ZooError, match=r"nnx\.List"):
        stack(Listed, "store")
    for memory in MEMORY:
        with pytest.raises(ZooError, match="changes its own state"):
            stack(Normed, memory)(jnp.ones((4, 5)))


def test_a_traced_option_is_refused_or_works():
    weights, x = layers(4), points()

    def loss(mu, memory):
        rule = zoo.get("ledger").with_traced({"mu": mu})
        return integrate(rule, branch, weights, x, depth=4, h=1.0, memory=memory).position.sum()

    slope = jax.jit(jax.grad(loss), static_argnums=1)
    assert far(slope(0.9, "reversible:unsafe=allow"), slope(0.9, "store")) < 1e-4
    with pytest.raises(ZooError, match="traced options"):
        slope(0.9, "reversible")
    with pytest.raises(ZooError, match="traced value"):
        slope(0.9, "exact")


@pytest.mark.parametrize(
    ("backbone", "rate"),
    [
        ("ResNet", 0.0),
        ("ResNet", 0.5),
        pytest.param("GPT", 0.0, marks=pytest.mark.slow),  # masks or none: 0.5 has all of it
        ("GPT", 0.5),
    ],
)
@settings(deadline=None, max_examples=2, derandomize=True)
@given(spec=st.sampled_from(["ledger", "leapfrog", "leapfrog-dkd", "symplectic-euler", "euler"]))
def test_both_backbones_have_one_gradient_in_all_modes(backbone, rate, spec):
    """store, remat, reversible and exact, with masks drawn; control: another key is another one."""

    def grads(memory, seed=3):
        rule, rngs = zoo.get(spec), nnx.Rngs(0)
        if backbone == "GPT":
            net = zoo.GPT(
                11, 6, 8, 2, 2, 16, integrator=rule, h=0.5, dropout=rate, memory=memory,
                unroll=1, rngs=rngs,
            )  # fmt: skip
            inputs = jax.random.randint(jax.random.key(1), (3, 6), 0, 11)
            call = {"key": jax.random.key(seed)}
        else:
            net = zoo.ResNet(4, integrator=rule, memory=memory, rngs=rngs)
            inputs, call = jax.random.normal(jax.random.key(1), (16, 2)), {}
        graph, params, rest = nnx.split(net, nnx.Param, ...)

        @jax.jit
        def loss(params):
            logits = nnx.merge(graph, params, rest)(inputs, **call)
            return (jax.nn.log_softmax(logits)[..., 0] ** 2).mean()

        return jax.flatten_util.ravel_pytree(jax.grad(loss)(params))[0]

    kept = grads("store")
    for memory in MEMORY[1:]:
        if spec == "euler" and memory in UNDOING:
            with pytest.raises(zoo.ZooError, match="inverse"):
                grads(memory)
            continue
        bound = 1e-6 if memory == "remat" else 1e-4
        assert jnp.linalg.norm(grads(memory) - kept) < bound * jnp.linalg.norm(kept)
    if backbone == "GPT" and rate:
        assert jnp.linalg.norm(grads("store", seed=4) - kept) > 0.01 * jnp.linalg.norm(kept)
