"""Causal attention and dropout masks in the form that was measured fastest on CPU.

Both are plain `jax.numpy`, so they run wherever jax runs.
"""

from __future__ import annotations

import math
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jax import Array, lax

MASKED = -1e30
"""A score that the softmax turns into exactly zero; finite, so that no NaN can arise."""


def keep_mask(key: Array, rate: float, shape: tuple[int, ...]) -> Array:
    """Which entries a dropout of about `rate` keeps: boolean, of the given shape.

    Each 32-bit random word decides four entries, a byte each, which costs a fifth of
    `jax.random.bernoulli`. The rate is therefore a multiple of 1/256: see `dropped_share`.
    """
    size = math.prod(shape)
    words = jax.random.bits(key, (-(-size // 4),), jnp.uint32)
    numbers = lax.bitcast_convert_type(words, jnp.uint8).reshape(-1)[:size]
    return numbers.reshape(shape) >= round(rate * 256)


def dropped_share(rate: float) -> float:
    """The probability with which `keep_mask` drops: `rate` rounded to a multiple of 1/256."""
    return round(rate * 256) / 256


def dropout(x: Array, key: Array, rate: float) -> Array:
    """x with entries set to zero at random, the rest scaled so that the mean is unchanged."""
    keep = keep_mask(key, rate, x.shape)
    return jnp.where(keep, x * jnp.asarray(1 / (1 - dropped_share(rate)), x.dtype), 0)


def causal_attention(
    queries: Array, keys: Array, values: Array, *, key: Array | None = None, rate: float = 0.0
) -> Array:
    """softmax(Q K^T / sqrt(d), causal), its weights dropped at `rate`, times V.

    Args:
        queries, keys, values: [sequences, length, d], sequences being batch times heads.
        key: dropout key; None keeps all weights.
        rate: dropout rate of the attention weights.

    Returns:
        [sequences, length, d]. Entry t depends on entries 0 to t only, bit for bit.
    """
    scaled = queries * jnp.asarray(queries.shape[-1] ** -0.5, queries.dtype)
    if key is None or rate == 0:
        return _attend(scaled, keys, values, None, 1.0)
    shape = (queries.shape[0], queries.shape[1], queries.shape[1])
    return _attend(scaled, keys, values, keep_mask(key, rate, shape), 1 - dropped_share(rate))


@jax.custom_vjp
def _attend(q: Array, k: Array, v: Array, keep: Array | None, kept: Any) -> Array:
    return _forward(q, k, v, keep, kept)[0]


def _forward(q: Array, k: Array, v: Array, keep: Array | None, kept: Any) -> Any:
    length = q.shape[1]
    causal = np.tril(np.ones((length, length), bool))
    scores = jnp.einsum("ntd,nsd->nts", q, k, preferred_element_type=jnp.float32)
    scores = jnp.where(causal, scores, MASKED)
    powers = jnp.exp(scores - scores.max(-1, keepdims=True))
    weights = (powers / powers.sum(-1, keepdims=True)).astype(v.dtype)
    out = jnp.einsum("nts,nsd->ntd", _thinned(weights, keep, kept), v)
    return out, (q, k, v, keep, kept, weights, out)


def _thinned(weights: Array, keep: Array | None, kept: Any) -> Array:
    if keep is None:
        return weights
    return jnp.where(keep, weights * jnp.asarray(1 / kept, weights.dtype), 0)


def _backward(stored: Any, grad: Array) -> Any:
    """The softmax's sum over dropped weights equals grad . out, so nothing else is stored."""
    q, k, v, keep, kept, weights, out = stored
    thinned = _thinned(weights, keep, kept)
    inner = (grad * out).sum(-1, keepdims=True)
    grad_v = jnp.einsum("nts,ntd->nsd", thinned, grad)
    grad_scores = thinned * jnp.einsum("ntd,nsd->nts", grad, v) - weights * inner
    grad_q = jnp.einsum("nts,nsd->ntd", grad_scores, k)
    grad_k = jnp.einsum("nts,ntd->nsd", grad_scores, q)
    return grad_q, grad_k, grad_v, None, None


_attend.defvjp(_forward, _backward)
