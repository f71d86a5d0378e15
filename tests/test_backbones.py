"""ResidualStack and ResNet: a user's own branches, masks, tying, refusals."""

from __future__ import annotations

import jax
import jax.numpy as jnp
import numpy as np
import optax
import pytest
from conftest import ALL
from flax import nnx

import integrator_zoo as zoo
from integrator_zoo import trajectory
from integrator_zoo.backbones.resnet import MLP

WIDTH = 4


class Branch(nnx.Module):
    def __init__(self, rngs, rate=0.0):
        self.norm = nnx.LayerNorm(WIDTH, rngs=rngs)
        self.linear = nnx.Linear(WIDTH, WIDTH, rngs=rngs)
        self.dropout = nnx.Dropout(rate, rngs=rngs)

    def __call__(self, x):
        return self.dropout(nnx.gelu(self.linear(self.norm(x))))


class Normed(nnx.Module):
    def __init__(self, rngs, running):
        self.norm = nnx.BatchNorm(WIDTH, use_running_average=running, rngs=rngs)

    def __call__(self, x):
        return self.norm(x)


def stack(spec="euler", rate=0.0, depth=3, **options):
    return zoo.ResidualStack(
        lambda rngs: Branch(rngs, rate),
        depth,
        WIDTH,
        zoo.get(spec),
        **{"h": 1.0} | options,
        rngs=nnx.Rngs(0),
    )


X = jax.random.normal(jax.random.key(5), (8, WIDTH))


def test_the_stack_is_the_hand_written_network():
    net = stack()
    graph, state = nnx.split(net.parts[0])
    x = X
    for i in range(3):
        x = x + nnx.merge(graph, jax.tree.map(lambda leaf, i=i: leaf[i], state))(x)
    np.testing.assert_allclose(net(X), x, rtol=1e-5)


def test_layers_do_not_share_weights_unless_tied():
    kernel = stack().parts[0].linear.kernel[...]
    assert kernel.shape == (3, WIDTH, WIDTH)
    assert not np.array_equal(kernel[0], kernel[1])
    tied = stack(tied=True)
    assert tied.parts[0].linear.kernel.shape == (WIDTH, WIDTH)
    assert zoo.parameter_count(stack()) == 3 * zoo.parameter_count(tied)


def test_masks_differ_by_layer_and_call_and_repeat_with_the_key():
    net = stack(rate=0.5)
    assert not np.array_equal(net(X), net(X))
    key = jax.random.key(3)
    one, other = net(X, key=key), net(X, key=key)
    np.testing.assert_array_equal(one, other)
    assert not np.array_equal(one, net(X, key=jax.random.key(4)))
    net.eval()
    np.testing.assert_array_equal(net(X), net(X))


def test_every_stage_of_a_step_sees_the_same_mask():
    """With a constant branch, Heun equals Euler exactly when both of its stages share a mask."""

    class Constant(nnx.Module):
        def __init__(self, rngs):
            self.dropout = nnx.Dropout(0.5, rngs=rngs)
            self.bias = nnx.Param(jnp.ones(WIDTH))

        def __call__(self, x):
            return self.dropout(self.bias[...] + 0 * x)

    ends = [
        zoo.ResidualStack(Constant, 4, WIDTH, zoo.get(spec), h=1.0, rngs=nnx.Rngs(0))(
            X, key=jax.random.key(1)
        )
        for spec in ("euler", "diffrax-heun")
    ]
    np.testing.assert_allclose(*ends, rtol=1e-6)


@pytest.mark.parametrize("rate", [0.0, 0.5])
@pytest.mark.parametrize("spec", ["euler", "ledger", "diffrax-heun", "ngpt-ledger"])
def test_gradients_agree_in_all_memory_modes_with_dropout(spec, rate):
    def grads(memory):
        net = stack(spec, rate, memory=memory)
        graph, params, rest = nnx.split(net, nnx.Param, ...)

        @jax.jit
        def loss(params):
            return (nnx.merge(graph, params, rest)(X, key=jax.random.key(2)) ** 2).sum()

        return jax.tree.leaves(jax.grad(loss)(params))

    for kept, again in zip(grads("store"), grads("remat"), strict=True):
        np.testing.assert_allclose(kept, again, rtol=1e-5, atol=1e-5)


def test_a_branch_that_changes_itself_is_refused():
    def make(running):
        return zoo.ResidualStack(
            lambda rngs: Normed(rngs, running), 2, WIDTH, zoo.get("euler"), h=1.0, rngs=nnx.Rngs(0)
        )

    with pytest.raises(zoo.ZooError, match=r"changes its own state.*BatchNorm with use_running"):
        make(False)(X)
    assert make(True)(X).shape == X.shape


def test_a_branch_must_keep_the_shape():
    with pytest.raises(zoo.ZooError, match=r"maps float32\[8, 4\] to float32\[8, 3\]"):
        zoo.ResidualStack(
            lambda rngs: nnx.Linear(WIDTH, 3, rngs=rngs),
            2,
            WIDTH,
            zoo.get("euler"),
            h=1.0,
            rngs=nnx.Rngs(0),
        )(X)


@pytest.mark.parametrize(
    ("options", "words"),
    [
        ({"depth": 0}, "at least one layer"),
        ({"total_time": 1.0}, "exactly one of h and total_time"),
        ({"h": None}, "exactly one of h and total_time"),
    ],
)
def test_bad_stacks(options, words):
    with pytest.raises(zoo.ZooError, match=words):
        stack(**options)


@pytest.mark.parametrize("spec", ALL)
def test_the_resnet_runs_and_its_learnables_get_gradients(spec):
    net = zoo.ResNet(4, integrator=zoo.get(spec), rngs=nnx.Rngs(0))
    x = X[:, :2]
    logits, path = net(x, collect=True)
    assert logits.shape == (8, 2)
    assert path.nodes.shape == (5, 8, 2)
    assert trajectory.turning_angles(path).shape == (3, 8)
    np.testing.assert_allclose(logits, net(x), rtol=1e-6)
    grads = nnx.grad(lambda net: net(x)[:, 0].sum())(net)
    assert all(np.isfinite(g).all() for g in jax.tree.leaves(grads))
    for learned in jax.tree.leaves(grads["stack"].get("learned", {})):
        assert np.abs(learned).max() > 0


def test_two_parts_and_an_ordinary_flax_training_step():
    """The engineer's entry point: own branches, nnx.Optimizer, nnx.jit."""

    class Net(nnx.Module):
        def __init__(self, rngs):
            self.stack = zoo.ResidualStack(
                lambda r: (Branch(r, 0.1), Branch(r, 0.1)),
                3,
                WIDTH,
                zoo.get("ledger"),
                h=0.5,
                rngs=rngs,
            )
            self.head = nnx.Linear(WIDTH, 1, rngs=rngs)

        def __call__(self, x):
            return self.head(self.stack(x))[:, 0]

    net = Net(nnx.Rngs(0))
    optimizer = nnx.Optimizer(net, optax.adam(1e-2), wrt=nnx.Param)

    @nnx.jit
    def step(net, optimizer):
        loss, grads = nnx.value_and_grad(lambda net: ((net(X) - X[:, 0]) ** 2).mean())(net)
        optimizer.update(net, grads)
        return loss

    losses = [float(step(net, optimizer)) for _ in range(60)]
    assert net.stack.sub_updates == 6
    assert losses[-1] < losses[0] / 3


def test_another_rule_on_the_same_weights():
    net = zoo.ResNet(8, integrator=zoo.get("euler"), rngs=nnx.Rngs(0))
    same = zoo.ResNet(8, integrator=zoo.get("leapfrog"), rngs=nnx.Rngs(0))
    x = X[:, :2]
    np.testing.assert_array_equal(net(x, integrator=zoo.get("leapfrog")), same(x))


def _plain(weights, x):
    """The formula of `MLP` as it stands, for jax to differentiate."""
    w1, b1, w2, b2 = weights
    return w2 @ jnp.tanh(w1 @ x + b1[:, None]) + b2[:, None]


def _of_gradients(field, weights, x):
    """Gradients, and gradients of their size: what a first and a second derivative give."""

    def first(weights, x):
        return jax.grad(lambda *at: (field(*at) ** 3).sum(), (0, 1))(weights, x)

    def size(weights, x):
        return sum((leaf**2).sum() for leaf in jax.tree.leaves(first(weights, x)))

    return first(weights, x), jax.grad(size, (0, 1))(weights, x)


@pytest.mark.parametrize("width", [3, 5])  # products by the row, and whole
@pytest.mark.parametrize("bend", [jnp.tanh, jnp.sin])
def test_the_written_gradient_of_the_mlp_is_the_derived_one(bend, width, monkeypatch):
    keys = jax.random.split(jax.random.key(0), 5)
    shapes = ((6, width), (6,), (width, 6), (width,), (width, 40))
    *weights, x = (jax.random.normal(*both) for both in zip(keys, shapes, strict=True))
    graph = nnx.graphdef(MLP(width, 6, rngs=nnx.Rngs(0)))

    def ours(weights, x):
        named = dict(zip(("w1", "b1", "w2", "b2"), weights, strict=True))
        return nnx.merge(graph, nnx.State({name: nnx.Param(w) for name, w in named.items()}))(x)

    monkeypatch.setattr(jnp, "tanh", bend)  # what is written is right for tanh and nothing else
    derived = jax.tree.leaves(_of_gradients(_plain, weights, x))
    written = jax.tree.leaves(_of_gradients(ours, weights, x))
    apart = max(
        float(jnp.abs(a - b).max() / jnp.abs(b).max())
        for a, b in zip(written, derived, strict=True)
    )
    assert (apart < 1e-5) == (bend is not jnp.sin), apart
