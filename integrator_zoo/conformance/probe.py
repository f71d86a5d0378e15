"""Small networks on which a step is examined: per-layer weights, smooth and bounded branches."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jax import Array

from ..contract import Integrator, Step
from ..depth import integrate

WIDTH, BATCH, DEPTH = 4, 3, 3
H = 0.25
Weights = tuple[Any, Any]


def weights(depth: int = DEPTH, dtype: Any = jnp.float32, seed: int = 0) -> Weights:
    """W [depth, width, width] with singular values below 1, and b [depth, width]."""
    draw = np.random.default_rng(seed)
    square = draw.normal(size=(depth, WIDTH, WIDTH))
    square /= 1.1 * np.linalg.norm(square, ord=2, axis=(1, 2), keepdims=True)
    shift = 0.3 * draw.normal(size=(depth, WIDTH))
    return jnp.asarray(square, dtype), jnp.asarray(shift, dtype)


def branch(layer: Any, index: Any, x: Array) -> Array:
    """tanh(W x + b), features last. Its Lipschitz constant is below 1."""
    w, b = layer
    return jnp.tanh(x @ w.T + b)


def start(*shape: int, dtype: Any = jnp.float32, seed: int = 1) -> Array:
    """A position of the given shape, [width] by default."""
    draw = np.random.default_rng(seed)
    return jnp.asarray(draw.normal(size=shape or (WIDTH,)), dtype)


def walk(rule: Integrator, w: Weights, x0: Array, **how: Any) -> Any:
    """`integrate` over the probe's layers; the depth is that of the weights."""
    return integrate(rule, how.pop("branch", branch), w, x0, depth=len(w[0]), h=H, **how)


def place(index: int, count: int = DEPTH, **how: Any) -> Step:
    """Where a hand-written loop stands."""
    return Step(index * H, H, index, count, **how)


def own_parameters(rule: Integrator) -> dict[str, Array]:
    """The learnable parameters of one sub-update."""
    return rule.parameters(WIDTH)


def bound_field(w: Weights, index: int) -> Callable[[Array], Array]:
    """The field of one layer."""
    layer = jax.tree.map(lambda leaf: leaf[index], w)
    return lambda x: branch(layer, index, x)


def by_hand(rule: Integrator, w: Weights, x0: Array, velocity: Array | None = None) -> Any:
    """The final state after a plain Python loop over the layers."""
    count, own = len(w[0]), own_parameters(rule)
    state = rule.init(x0, bound_field(w, 0), place(0, count), velocity)
    for index in range(count):
        state = rule.step(state, bound_field(w, index), place(index, count), own)
    return state


def opening_velocity(rule: Integrator, x0: Array) -> Array | None:
    """A velocity to start with, for rules that integrate x'' = F(x)."""
    if rule.traits.dynamics == "first":
        return None
    return 0.3 * start(*x0.shape, dtype=x0.dtype, seed=2)


def distance(one: Any, other: Any) -> float:
    """Largest difference of two pytrees, relative to the largest entry of the second (or 1)."""
    worst = 0.0
    for a, b in zip(jax.tree.leaves(one), jax.tree.leaves(other), strict=True):
        a, b = np.asarray(a, np.float64), np.asarray(b, np.float64)
        if a.shape != b.shape:
            return float("inf")
        gap = np.abs(a - b).max(initial=0.0) / max(1.0, np.abs(b).max(initial=0.0))
        worst = max(worst, float("inf") if np.isnan(gap) else float(gap))
    return worst


def same_bits(one: Any, other: Any) -> bool:
    """Whether two pytrees have the same structure and the same bits, dtypes included."""
    if jax.tree.structure(one) != jax.tree.structure(other):
        return False
    pairs = zip(jax.tree.leaves(one), jax.tree.leaves(other), strict=True)
    return all(
        np.asarray(a).dtype == np.asarray(b).dtype
        and np.asarray(a).shape == np.asarray(b).shape
        and np.asarray(a).tobytes() == np.asarray(b).tobytes()
        for a, b in pairs
    )


def all_finite(tree: Any) -> bool:
    return all(np.isfinite(np.asarray(leaf, np.float64)).all() for leaf in jax.tree.leaves(tree))
