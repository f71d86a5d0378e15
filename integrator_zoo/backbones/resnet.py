"""The planar ResNet of the momentum-ResNet study: a few features, carried by any integrator."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import jax
import jax.numpy as jnp
from flax import nnx
from jax import Array, lax

from ..contract import Integrator
from .residual_stack import ResidualStack

FEW = 4
"""Features up to which a product is taken feature by feature."""


class MLP(nnx.Module):
    """F(x) = W2 tanh(W1 x + b1) + b2, features on axis 0.

    With only a few features the points belong on the contiguous axis: [features, points] runs
    twice as fast as [points, features]. Weights are normal with standard deviation
    1/sqrt(fan_in), biases zero. Differentiable in reverse mode, any number of times; jax refuses
    forward mode (`jax.jvp`), since the gradient is written out for speed.
    """

    def __init__(self, width: int, hidden: int, *, rngs: nnx.Rngs) -> None:
        self.w1 = nnx.Param(_scaled_normal(rngs, (hidden, width)))
        self.b1 = nnx.Param(jnp.zeros(hidden))
        self.w2 = nnx.Param(_scaled_normal(rngs, (width, hidden)))
        self.b2 = nnx.Param(jnp.zeros(width))

    def __call__(self, x: Array) -> Array:
        return _two_layers(self.w1[...], self.b1[...], self.w2[...], self.b2[...], x)


def _two_layers_forward(w1: Array, b1: Array, w2: Array, b2: Array, x: Array) -> tuple[Array, Any]:
    inner = jnp.tanh(w1 @ x + b1[:, None])
    return w2 @ inner + b2[:, None], (w1, w2, x, inner)


@jax.custom_vjp
def _two_layers(w1: Array, b1: Array, w2: Array, b2: Array, x: Array) -> Array:
    """W2 tanh(W1 x + b1) + b2, with a gradient that takes half the derived one's time on CPU.

    The derived one keeps 1 - tanh^2 beside tanh in every layer, makes the gradients of `inner` and
    `x` with points first, to transpose them afterwards, and takes products that CPUs do slowly.
    """
    return _two_layers_forward(w1, b1, w2, b2, x)[0]


def _two_layers_backward(kept: Any, of_force: Array) -> tuple[Array, ...]:
    w1, w2, x, inner = kept
    of_sum = (w2.T @ of_force) * (1 - inner * inner)
    over_points = jnp.ones(x.shape[1], x.dtype)  # a product, which is faster than .sum(1)
    of_b1, of_b2 = of_sum @ over_points, of_force @ over_points
    of_w1, of_w2 = _times_transposed(of_sum, x), _times_transposed(inner, of_force).T
    turned = lax.optimization_barrier(w1.T)  # turned first: inside a product it takes twice as long
    return of_w1, of_b1, of_w2, of_b2, turned @ of_sum


def _times_transposed(many: Array, few: Array) -> Array:
    """many @ few.T over long rows; by the row, on CPU half the time where rows are few."""
    if len(few) > FEW:
        return many @ few.T
    return jnp.stack([many @ row for row in few], 1)


_two_layers.defvjp(_two_layers_forward, _two_layers_backward)


class ResNet(nnx.Module):
    """x0 -> residual stack -> linear read-out.

    Args:
        depth: number of layers.
        width: features of the stream, equal to the features of the input.
        hidden: hidden units of each branch.
        integrator: the rule.
        total_time: T; the step size is T / depth.
        classes: number of logits.
        tied, memory, unroll: see `ResidualStack`.
        rngs: random streams for the weights.

    Calling it with x [points, width] gives logits [points, classes]; with `collect=True` also the
    trajectory, nodes [depth + 1, points, width].
    """

    def __init__(
        self,
        depth: int,
        width: int = 2,
        hidden: int = 16,
        *,
        integrator: Integrator,
        total_time: float = 8.0,
        classes: int = 2,
        tied: bool = False,
        memory: str = "store",
        unroll: int | bool = 1,
        rngs: nnx.Rngs,
    ) -> None:
        self.stack = ResidualStack(
            lambda layer_rngs: MLP(width, hidden, rngs=layer_rngs),
            depth,
            width,
            integrator,
            total_time=total_time,
            tied=tied,
            memory=memory,
            unroll=unroll,
            axis=0,
            rngs=rngs,
        )
        self.readout = nnx.Param(_scaled_normal(rngs, (classes, width)))
        self.bias = nnx.Param(jnp.zeros(classes))

    def __call__(
        self,
        x: Array,
        *,
        collect: bool = False,
        integrator: Integrator | None = None,
        mark: Callable[[Array], Array] | None = None,
    ) -> Any:
        """Logits [points, classes], and with `collect` the trajectory; see `ResidualStack`."""
        end = self.stack(x.T, collect=collect, integrator=integrator, mark=mark)
        end, path = end if collect else (end, None)
        logits = (self.readout[...] @ end + self.bias[...][:, None]).T
        if not collect:
            return logits
        return logits, jax.tree.map(lambda nodes: jnp.swapaxes(nodes, 1, 2), path)


def _scaled_normal(rngs: nnx.Rngs, shape: tuple[int, int]) -> Array:
    return jax.random.normal(rngs.params(), shape) / jnp.sqrt(shape[1])
