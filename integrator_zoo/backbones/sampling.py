"""Text from a language model, a few tokens a compiled call."""

from __future__ import annotations

import functools
from collections.abc import Iterator
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from flax import nnx
from jax import Array, lax

from .gpt import GPT

CHUNK = 32
"""Tokens drawn in one compiled call."""


def generate(
    net: GPT,
    prompt: np.ndarray,
    count: int,
    *,
    temperature: float = 0.8,
    top_k: int = 0,
    seed: int = 0,
) -> Iterator[np.ndarray]:
    """Continue a prompt; yields the new tokens a chunk at a time.

    Token i is drawn from softmax(logits / temperature) with fold_in(key, i). One program serves
    all lengths, temperatures and k: nothing is compiled anew for a token.

    Args:
        net: the model, in evaluation mode.
        prompt: at least one token; the model sees the last `net.context` of prompt and text.
        count: tokens to draw.
        temperature: 0 always takes the most likely token.
        top_k: draw among the k most likely tokens only; 0 for all.
        seed: of the draws.
    """
    graph, state = nnx.split(net)
    seen = np.asarray(prompt, np.int32)[-net.context :]
    window = jnp.zeros(net.context, jnp.int32).at[: len(seen)].set(seen)
    length, key = jnp.int32(len(seen)), jax.random.key(seed)
    for start in range(0, count, CHUNK):
        window, length, drawn = _draw(
            graph, state, window, length, jnp.int32(start), key, temperature, top_k
        )
        yield np.asarray(drawn)[: count - start]


@functools.partial(jax.jit, static_argnums=0)
def _draw(
    graph: Any,
    state: Any,
    window: Array,
    length: Array,
    start: Array,
    key: Array,
    temperature: Array,
    top_k: Array,
) -> tuple[Array, Array, Array]:
    """Draw CHUNK tokens. The window is filled from the left and then moves along the text.

    What stands behind `length` is not seen by what stands before it, since attention is causal.
    """
    net = nnx.merge(graph, state)
    full = window.shape[0]

    def one(carry: tuple[Array, Array], index: Array) -> tuple[tuple[Array, Array], Array]:
        window, length = carry
        logits = net(window[None])[0, length - 1]
        token = _choose(logits, jax.random.fold_in(key, index), temperature, top_k)
        moved = jnp.where(length < full, window, jnp.roll(window, -1))
        place = jnp.minimum(length, full - 1)
        return (moved.at[place].set(token), jnp.minimum(length + 1, full)), token

    indices = start + jnp.arange(CHUNK)
    (window, length), drawn = lax.scan(one, (window, length), indices)
    return window, length, drawn


def _choose(logits: Array, key: Array, temperature: Array, top_k: Array) -> Array:
    """One token: the most likely at temperature 0, else drawn, among the top k where given."""
    last = jnp.where(top_k > 0, jnp.clip(top_k, 1, len(logits)), len(logits)) - 1
    least = jnp.sort(logits, descending=True)[last]
    heated = jnp.where(logits >= least, logits, -jnp.inf) / jnp.where(
        temperature > 0, temperature, 1
    )
    drawn = jax.random.categorical(key, heated)
    return jnp.where(temperature > 0, drawn, logits.argmax()).astype(jnp.int32)
