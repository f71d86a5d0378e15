"""The training loop: many optimiser steps in one compiled call."""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
import optax
from flax import nnx
from jax import Array, lax

from ..errors import ZooError

BLOW_UP = 1e3
"""A loss above this multiple of the first one counts as diverged."""


class Progression(NamedTuple):
    """A training run under way."""

    params: Any
    optimizer: Any
    step: Array
    """Steps done."""
    losses: Array
    """[steps]: the loss before each step's update; 0 where not yet done."""


def begin(params: Any, optimizer: optax.GradientTransformation, steps: int) -> Progression:
    """A run before its first step."""
    return Progression(params, optimizer.init(params), jnp.int32(0), jnp.zeros(steps))


def advance(
    run: Progression,
    loss_and_gradient: Callable[[Any, Array], tuple[Array, Any]],
    optimizer: optax.GradientTransformation,
    until: Any,
) -> Progression:
    """Take steps until `until` (traced, so that one compilation serves every length).

    `loss_and_gradient(params, step)` is given the number of steps done: batches and masks are
    drawn from fold_in(key, step), so that where a run is stopped and resumed changes nothing.
    """

    def step(now: Progression) -> Progression:
        value, grads = loss_and_gradient(now.params, now.step)
        updates, state = optimizer.update(grads, now.optimizer, now.params)
        params = optax.apply_updates(now.params, updates)
        losses = now.losses.at[now.step].set(value.astype(now.losses.dtype))
        return Progression(params, state, now.step + 1, losses)

    return lax.while_loop(lambda now: now.step < until, step, run)


def over_pieces(
    loss: Callable[[Any, Array, Any], Array], pieces: int, together: int = 2
) -> Callable[[Any, Array], tuple[Array, Any]]:
    """Value and gradient of the mean of loss(params, step, piece) over 0 <= piece < pieces.

    `together` pieces at a time, whose memory it takes. On CPU some hundred tokens stay in the
    cache, and of two pieces one's small operations run beside the other's large ones.
    """
    of_piece = jax.value_and_grad(loss)
    if pieces == 1:
        return lambda params, step: of_piece(params, step, 0)

    def of_all(params: Any, step: Array) -> tuple[Array, Any]:
        def add(total: Any, piece: Array) -> tuple[Any, None]:
            return jax.tree.map(jnp.add, total, of_piece(params, step, piece)), None

        shapes = jax.eval_shape(of_piece, params, step, 0)
        nothing = jax.tree.map(lambda shape: jnp.zeros(shape.shape, shape.dtype), shapes)
        total, _ = lax.scan(add, nothing, jnp.arange(pieces), unroll=together)
        return jax.tree.map(lambda leaf: leaf / pieces, total)

    return of_all


def first_bad_step(losses: np.ndarray) -> int | None:
    """The first step whose loss is not finite or above BLOW_UP times the first loss."""
    with np.errstate(invalid="ignore"):
        bad = ~np.isfinite(losses) | (losses > BLOW_UP * max(float(losses[0]), 1e-3))
    return int(np.argmax(bad)) if bad.any() else None


def cross_entropy(logits: Array, labels: Array) -> Array:
    """Mean negative log-likelihood in nats: logits [points, classes], labels [points]."""
    return optax.softmax_cross_entropy_with_integer_labels(logits, labels).mean()


def fit(
    model: nnx.Module,
    x: Any,
    y: Any,
    *,
    steps: int = 4000,
    optimizer: optax.GradientTransformation | None = None,
    loss: Callable[[Array, Array], Array] = cross_entropy,
) -> np.ndarray:
    """Train a classifier on one full batch; the model's parameters are changed in place.

    Args:
        model: any NNX module that maps x to logits. It is trained as it is called: without
            random masks, so put dropout in evaluation mode first.
        x, y: inputs [points, features] and integer labels [points].
        steps: optimiser steps, all in one compiled call.
        optimizer: Adam at 3e-3 by default.
        loss: loss(logits, y) -> scalar.

    Returns:
        The loss before each step, [steps].

    Raises:
        ZooError: no step, or as many labels as points are not given.
    """
    if steps < 1 or len(x) != len(y):
        raise ZooError(
            f"steps={steps}, {len(x)} points and {len(y)} labels.",
            "Give steps >= 1 and one label for each point.",
        )
    chosen = optimizer or optax.adam(3e-3)
    graph, params, rest = nnx.split(model, nnx.Param, ...)
    x, y = jnp.asarray(x), jnp.asarray(y)

    @functools.partial(jax.jit, donate_argnums=0)
    def train(run: Progression) -> Progression:
        def objective(params: Any, step: Array) -> Array:
            return loss(nnx.merge(graph, params, rest)(x), y)

        return advance(run, jax.value_and_grad(objective), chosen, steps)

    done = train(begin(jax.tree.map(jnp.copy, params), chosen, steps))
    nnx.update(model, done.params)
    return np.asarray(done.losses)


def parameter_count(model: nnx.Module | Any) -> int:
    """Number of trained scalars of a module or a pytree of parameters."""
    tree = nnx.state(model, nnx.Param) if isinstance(model, nnx.Module) else model
    return sum(leaf.size for leaf in jax.tree.leaves(tree))
