"""The GPT backbone: parameters, causality, dropout, the plain block."""

from __future__ import annotations

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from flax import nnx

import integrator_zoo as zoo
from integrator_zoo.backbones.attention import (
    causal_attention,
    dropped_share,
    join_heads,
    keep_mask,
    query_blocks,
    split_heads,
)
from integrator_zoo.registry import current

SMALL = {"context": 16, "width": 16, "depth": 2, "heads": 2, "mlp_hidden": 32}
SPECS = sorted(current().entries["integrator"])


def small(spec: str, **changes) -> zoo.GPT:
    return zoo.GPT(20, **{**SMALL, **changes}, integrator=zoo.get(spec), rngs=nnx.Rngs(0))


@pytest.mark.parametrize(
    ("spec", "published"),
    [("euler", 2724864), ("ledger", 2724864), ("ngpt-lite", 2722560), ("ngpt-ledger", 2722560)],
)
def test_parameters_are_the_published_ones(spec, published):
    net = nnx.eval_shape(lambda: zoo.GPT(80, integrator=zoo.get(spec), rngs=nnx.Rngs(0)))
    assert zoo.parameter_count(net) == published


@pytest.mark.parametrize("spec", SPECS)
def test_a_future_token_leaves_earlier_logits_unchanged_bit_for_bit(spec):
    net = small(spec, depth=1, context=72)
    net.eval()
    tokens = jax.random.randint(jax.random.key(1), (3, 72), 0, 20)
    changed = tokens.at[:, 66].set((tokens[:, 66] + 7) % 20)
    forward = jax.jit(lambda t: net(t))
    before, after = np.asarray(forward(tokens)), np.asarray(forward(changed))
    if zoo.get(spec).traits.evaluations is None:
        # step sizes are chosen from the error of the whole batch: equal to the tolerance only
        np.testing.assert_allclose(before[:, :66], after[:, :66], rtol=1e-3, atol=1e-4)
    else:
        assert np.array_equal(before[:, :66], after[:, :66])
    assert np.all(np.any(before[:, 66:] != after[:, 66:], axis=-1))  # the control: it does arrive


def test_euler_is_the_hand_written_block():
    net = small("euler", unroll=1)
    net.eval()
    tokens = jax.random.randint(jax.random.key(1), (2, 16), 0, 20)
    logits, path = net(tokens, collect=True)
    graph, stacked = nnx.split(net.stack.parts)
    x = net.token(tokens) + net.place.embedding[...]
    for i in range(2):
        for part in nnx.merge(graph, jax.tree.map(lambda leaf, i=i: leaf[i], stacked)):
            x = x + part(x)
    np.testing.assert_allclose(path.nodes[-1], x, rtol=1e-5, atol=1e-5)
    np.testing.assert_allclose(logits, net.head(net.norm(x)), rtol=1e-5, atol=1e-5)


@pytest.mark.parametrize("length", [8, 70])
def test_attention_and_its_gradient_are_jax_s_own(length):
    q, k, v, g = jax.random.normal(jax.random.key(0), (4, 3, length, 4))
    key, blocks = jax.random.key(5), query_blocks(length)
    keep = np.zeros((3, length, length), bool)
    for part, (start, stop) in zip(jax.random.split(key, len(blocks)), blocks, strict=True):
        keep[:, start:stop, :stop] = keep_mask(part, 0.25, (3, stop - start, stop))

    def ours(q, k, v):
        return (causal_attention(q, k, v, key=key, rate=0.25) * g).sum()

    def plain(q, k, v):
        causal = jnp.tril(jnp.ones((length, length), bool))
        scores = jnp.where(causal, q @ k.mT / 2, -jnp.inf)
        return ((jnp.where(keep, jax.nn.softmax(scores) / 0.75, 0) @ v) * g).sum()

    for mine, theirs in zip(
        jax.grad(ours, (0, 1, 2))(q, k, v), jax.grad(plain, (0, 1, 2))(q, k, v), strict=True
    ):
        np.testing.assert_allclose(mine, theirs, rtol=2e-5, atol=2e-6)


def test_heads_are_split_joined_and_differentiated_as_reshapes_are():
    joint = jax.random.normal(jax.random.key(0), (2, 5, 3 * 4 * 6))

    def plain(joint):
        return [
            part.reshape(2, 5, 4, 6).swapaxes(1, 2).reshape(8, 5, 6)
            for part in jnp.split(joint, 3, -1)
        ]

    mine, back = jax.vjp(lambda joint: split_heads(joint, 4), joint)
    theirs, back_too = jax.vjp(plain, joint)
    np.testing.assert_array_equal(mine, theirs)
    np.testing.assert_array_equal(back(mine)[0], back_too(theirs)[0])
    np.testing.assert_array_equal(join_heads(mine[1], 4), joint[..., 24:48])
    assert not np.array_equal(back(mine[::-1])[0], back(mine)[0])


def test_masks_have_their_rate_and_differ_by_layer_and_place():
    keep = np.asarray(keep_mask(jax.random.key(0), 0.15, (1000, 999)))
    assert abs(1 - keep.mean() - dropped_share(0.15)) < 2e-3
    assert abs(dropped_share(0.15) - 0.15) <= 1 / 512
    assert abs(np.corrcoef(keep[:500].ravel(), keep[500:].ravel())[0, 1]) < 5e-3
    net = small("euler", dropout=0.5)
    tokens = jnp.zeros((1, 16), int)
    _, path = net(tokens, key=jax.random.key(3), collect=True)
    zero = np.asarray(path.nodes[1:] == path.nodes[:-1]).reshape(4, -1)
    assert np.all(np.abs(zero.mean(1) - 0.5) < 0.15)
    assert len({row.tobytes() for row in zero}) == 4
    again, other = net(tokens, key=jax.random.key(3)), net(tokens, key=jax.random.key(4))
    assert np.array_equal(net(tokens, key=jax.random.key(3)), again)
    assert not np.array_equal(again, other)


def test_bfloat16_computes_close_and_keeps_float32_parameters():
    full, half = small("ledger"), small("ledger", dtype=jnp.bfloat16)
    full.eval(), half.eval()
    tokens = jax.random.randint(jax.random.key(1), (2, 16), 0, 20)
    assert {leaf.dtype for leaf in jax.tree.leaves(nnx.state(half, nnx.Param))} == {
        jnp.dtype("float32")
    }
    gap = np.abs(np.asarray(full(tokens) - half(tokens)))
    assert 0 < gap.max() < 0.1


def test_bad_shapes_are_refused():
    with pytest.raises(zoo.ZooError, match="multiple of heads"):
        small("euler", width=15)
    with pytest.raises(zoo.ZooError, match="longer than the context"):
        small("euler")(jnp.zeros((1, 17), int))
