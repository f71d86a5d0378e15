"""A character-level GPT whose residual stream is carried by any integrator."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import jax
import jax.numpy as jnp
from flax import nnx
from jax import Array

from ..contract import Integrator
from ..errors import ZooError
from .attention import causal_attention, dropout, join_heads, split_heads
from .residual_stack import ResidualStack


class Branch(nnx.Module):
    """What both branches share: a pre-LayerNorm or none, and a stream of dropout keys.

    `norm` is left out where the integrator declares that its branches read the raw stream.
    """

    def __init__(self, width: int, rate: float, normalise: bool, dtype: Any, rngs: nnx.Rngs):
        self.norm = nnx.LayerNorm(width, dtype=dtype, rngs=rngs) if normalise else None
        self.masks = rngs.dropout.fork()
        self.rate, self.dtype = rate, dtype
        self.deterministic = False

    def read(self, x: Array) -> Array:
        """The stream as the branch reads it, in the dtype it computes in."""
        return x.astype(self.dtype) if self.norm is None else self.norm(x)

    def key(self) -> Array | None:
        """The next dropout key, or None where nothing is dropped."""
        return None if self.deterministic or self.rate == 0 else self.masks()

    def give(self, force: Array, like: Array) -> Array:
        """The branch's value: dropped, in the stream's dtype."""
        key = self.key()
        force = force if key is None else dropout(force, key, self.rate)
        return force.astype(like.dtype)


class Attention(Branch):
    """Causal self-attention: dropout on its weights and on its value."""

    def __init__(
        self, width: int, heads: int, rate: float, normalise: bool, dtype: Any, rngs: nnx.Rngs
    ) -> None:
        super().__init__(width, rate, normalise, dtype, rngs)
        self.heads = heads
        self.qkv = nnx.Linear(width, 3 * width, dtype=dtype, rngs=rngs)
        self.out = nnx.Linear(width, width, dtype=dtype, rngs=rngs)

    def __call__(self, x: Array) -> Array:
        q, k, v = split_heads(self.qkv(self.read(x)), self.heads)
        mixed = causal_attention(q, k, v, key=self.key(), rate=self.rate)
        return self.give(self.out(join_heads(mixed, self.heads)), x)


class FeedForward(Branch):
    """W2 gelu(W1 x + b1) + b2 with the tanh approximation of GELU."""

    def __init__(
        self, width: int, hidden: int, rate: float, normalise: bool, dtype: Any, rngs: nnx.Rngs
    ) -> None:
        super().__init__(width, rate, normalise, dtype, rngs)
        self.up = nnx.Linear(width, hidden, dtype=dtype, rngs=rngs)
        self.down = nnx.Linear(hidden, width, dtype=dtype, rngs=rngs)

    def __call__(self, x: Array) -> Array:
        return self.give(self.down(jax.nn.gelu(self.up(self.read(x)), approximate=True)), x)


class GPT(nnx.Module):
    """Embed, residual stack, LayerNorm, untied head without bias.

    Each layer is two sub-updates, attention and MLP, each with its own pre-LayerNorm (or none,
    where the integrator's traits say it reads the raw stream); an integrator's velocity is shared
    by all sub-updates of all layers.

    Args:
        vocabulary: number of different tokens.
        context: longest sequence; positions are learned.
        width: features of the stream, a multiple of `heads`.
        depth: number of layers.
        mlp_hidden: hidden units of the MLP.
        integrator: the rule.
        h: step size of a sub-update.
        dropout: rate on the embedding, on each branch's value and on attention weights, rounded
            to a multiple of 1/256.
        dtype: the dtype branches and head compute in; parameters, stream and logits are float32.
        memory, unroll: see `ResidualStack`.
        rngs: `params` for the weights (Flax's default initialisers), `dropout` for the masks.

    Calling it with tokens [batch, length] gives logits [batch, length, vocabulary]; with
    `collect=True` also the trajectory, nodes [2 depth + 1, batch, length, width]. Call `.eval()`
    for a network without dropout.

    Raises:
        ZooError: `width` is not a multiple of `heads`, or a sequence is longer than `context`.
    """

    def __init__(
        self,
        vocabulary: int,
        context: int = 128,
        width: int = 192,
        depth: int = 6,
        heads: int = 4,
        mlp_hidden: int = 768,
        *,
        integrator: Integrator,
        h: float = 1.0,
        dropout: float = 0.15,
        dtype: Any = jnp.float32,
        memory: str = "store",
        unroll: int | bool = True,
        rngs: nnx.Rngs,
    ) -> None:
        if width % heads:
            raise ZooError(
                f"width={width} is not a multiple of heads={heads}.",
                f"Give width={heads * max(1, round(width / heads))}.",
            )
        self.context, self.rate = context, dropout
        normalise = integrator.traits.reads == "normalised"
        self.token = nnx.Embed(vocabulary, width, rngs=rngs)
        self.place = nnx.Embed(context, width, rngs=rngs)
        self.masks = rngs.dropout.fork()
        self.deterministic = False

        def layer(layer_rngs: nnx.Rngs) -> tuple[nnx.Module, nnx.Module]:
            return (
                Attention(width, heads, dropout, normalise, dtype, layer_rngs),
                FeedForward(width, mlp_hidden, dropout, normalise, dtype, layer_rngs),
            )

        self.stack = ResidualStack(
            layer, depth, width, integrator, h=h, memory=memory, unroll=unroll, rngs=rngs
        )
        self.norm = nnx.LayerNorm(width, dtype=dtype, rngs=rngs)
        self.head = nnx.Linear(width, vocabulary, use_bias=False, dtype=dtype, rngs=rngs)

    def __call__(
        self,
        tokens: Array,
        *,
        key: Array | None = None,
        collect: bool = False,
        integrator: Integrator | None = None,
        mark: Callable[[Array], Array] | None = None,
    ) -> Any:
        """Logits, and with `collect` the trajectory.

        Args:
            tokens: [batch, length] integers.
            key: dropout key; by default one is drawn from the module's own stream in training.
            collect, integrator, mark: see `ResidualStack`.
        """
        length = tokens.shape[-1]
        if length > self.context:
            raise ZooError(
                f"a sequence of {length} tokens is longer than the context of {self.context}.",
                f"Give at most {self.context}.",
            )
        x = self.token(tokens) + self.place.embedding[...][:length]
        if not self.deterministic and self.rate:
            key = self.masks() if key is None else key
            key, embedding_key = jax.random.split(key)
            x = dropout(x, embedding_key, self.rate)
        end = self.stack(x, key=key, collect=collect, integrator=integrator, mark=mark)
        end, path = end if collect else (end, None)
        logits = self.head(self.norm(end)).astype(jnp.float32)
        return (logits, path) if collect else logits
