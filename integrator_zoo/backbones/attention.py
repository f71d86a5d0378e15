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
from jax.extend.random import threefry_2x32

MASKED = -1e30
"""A score that the softmax turns into exactly zero; finite, so that no NaN can arise."""
ROWS = 64
"""Queries taken together; keys behind the last of them, which they do not see, are left out."""


def keep_mask(key: Array, rate: float, shape: tuple[int, ...]) -> Array:
    """Which entries a dropout of about `rate` keeps: boolean, of the given shape.

    Each 32-bit random word decides four entries, a byte each, which costs a fifth of
    `jax.random.bernoulli`. The rate is therefore a multiple of 1/256: see `dropped_share`.
    """
    size = math.prod(shape)
    words = _random_words(key, -(-size // 4))
    numbers = lax.bitcast_convert_type(words, jnp.uint8).reshape(-1)[:size]
    return numbers.reshape(shape) >= round(rate * 256)


def _random_words(key: Array, count: int) -> Array:
    """32-bit random words: of threefry both words a block, where `jax.random.bits` keeps one."""
    if str(jax.random.key_impl(key)) == "threefry2x32":
        return threefry_2x32(jax.random.key_data(key), jnp.arange(count, dtype=jnp.uint32))
    return jax.random.bits(key, (count,), jnp.uint32)


def dropped_share(rate: float) -> float:
    """The probability with which `keep_mask` drops: `rate` rounded to a multiple of 1/256."""
    return round(rate * 256) / 256


def dropout(x: Array, key: Array, rate: float) -> Array:
    """x with entries set to zero at random, the rest scaled so that the mean is unchanged."""
    keep = keep_mask(key, rate, x.shape)
    return jnp.where(keep, x * jnp.asarray(1 / (1 - dropped_share(rate)), x.dtype), 0)


def split_heads(joint: Array, heads: int) -> tuple[Array, Array, Array]:
    """Queries, keys and values, each [batch heads, length, d], of a projection to all three.

    Args:
        joint: [batch, length, 3 heads d].
        heads: how many.
    """
    return _split(joint, heads)


def _apart(joint: Array, heads: int) -> tuple[Array, Array, Array]:
    batch, length, _ = joint.shape
    apart = joint.reshape(batch, length, 3, heads, -1).transpose(2, 0, 3, 1, 4)
    q, k, v = apart.reshape(3, batch * heads, length, -1)
    return q, k, v


def _joined(heads: int, _: None, grads: tuple[Array, Array, Array]) -> tuple[Array]:
    """The gradient in one piece; by itself jax would add three arrays that are mostly zero."""
    parts = [join_heads(grad, heads) for grad in grads]
    return (lax.optimization_barrier(jnp.concatenate(parts, -1)),)


_split = jax.custom_vjp(_apart, nondiff_argnums=(1,))
_split.defvjp(lambda joint, heads: (_apart(joint, heads), None), _joined)


def join_heads(x: Array, heads: int) -> Array:
    """[batch heads, length, d] to [batch, length, heads d]."""
    sequences, length, size = x.shape
    apart = x.reshape(sequences // heads, heads, length, size).transpose(0, 2, 1, 3)
    return apart.reshape(sequences // heads, length, heads * size)


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
    blocks = query_blocks(queries.shape[1])
    if key is None or rate == 0:
        return _attend(scaled, keys, values, [None] * len(blocks), 1.0)
    keep = [
        keep_mask(part, rate, (len(queries), stop - start, stop))
        for part, (start, stop) in zip(jax.random.split(key, len(blocks)), blocks, strict=True)
    ]
    return _attend(scaled, keys, values, keep, 1 - dropped_share(rate))


@jax.custom_vjp
def _attend(q: Array, k: Array, v: Array, keep: list[Array | None], kept: Any) -> Array:
    return _forward(q, k, v, keep, kept)[0]


def query_blocks(length: int) -> list[tuple[int, int]]:
    """(start, stop) of the queries taken together; they see keys 0 to stop only."""
    return [(start, min(start + ROWS, length)) for start in range(0, length, ROWS)]


def _forward(q: Array, k: Array, v: Array, keep: list[Array | None], kept: Any) -> Any:
    outs, weights = [], []
    for (start, stop), mask in zip(query_blocks(q.shape[1]), keep, strict=True):
        causal = np.tril(np.ones((stop - start, stop), bool), start)
        scores = jnp.einsum(
            "ntd,nsd->nts", q[:, start:stop], k[:, :stop], preferred_element_type=jnp.float32
        )
        scores = jnp.where(causal, scores, MASKED)
        powers = jnp.exp(scores - scores.max(-1, keepdims=True))
        weights.append((powers / powers.sum(-1, keepdims=True)).astype(v.dtype))
        thinned = _thinned(weights[-1], mask, kept)
        outs.append(jnp.einsum("nts,nsd->ntd", thinned, v[:, :stop]))
    out = jnp.concatenate(outs, 1)
    return out, (q, k, v, keep, kept, weights, out)


def _thinned(weights: Array, keep: Array | None, kept: Any) -> Array:
    if keep is None:
        return weights
    return jnp.where(keep, weights * jnp.asarray(1 / kept, weights.dtype), 0)


def _backward(stored: Any, grad: Array) -> Any:
    """The softmax's sum over dropped weights equals grad . out, so nothing else is stored."""
    q, k, v, keep, kept, weights, out = stored
    inner = (grad * out).sum(-1, keepdims=True)
    grads_q: list[Array] = []
    grad_k = grad_v = grad[:, :0]
    for (start, stop), mask, weight in zip(query_blocks(q.shape[1]), keep, weights, strict=True):
        here = grad[:, start:stop]
        thinned = _thinned(weight, mask, kept)
        grad_scores = thinned * jnp.einsum("ntd,nsd->nts", here, v[:, :stop])
        grad_scores -= weight * inner[:, start:stop]
        grads_q.append(jnp.einsum("nts,nsd->ntd", grad_scores, k[:, :stop]))
        grad_k = _added(grad_k, jnp.einsum("nts,ntd->nsd", grad_scores, q[:, start:stop]))
        grad_v = _added(grad_v, jnp.einsum("nts,ntd->nsd", thinned, here))
    return jnp.concatenate(grads_q, 1), grad_k, grad_v, None, None


def _added(short: Array, long: Array) -> Array:
    """The sum of gradients of the first keys and of more keys: [sequences, more keys, d]."""
    seen = short.shape[1]
    return jnp.concatenate([short + long[:, :seen], long[:, seen:]], 1)


_attend.defvjp(_forward, _backward)
