"""Residual streams on a sphere: any integrator, its displacement scaled, then retracted."""

from __future__ import annotations

from typing import Any, NamedTuple

from integrator_zoo.contract import Integrator, integrator, option
from integrator_zoo.hookspecs import hookimpl

from .euler import Euler
from .ledger import Ledger

_NGPT = "Loshchilov, Hsieh, Sun, Ginsburg (2024), nGPT; without its weight normalisation"


def retract(z, axis=-1):
    """The point of the sphere of radius sqrt(D) in the direction of z: z sqrt(D) / (|z| + 1e-8).

    D is the size of `axis`. Finite, with finite gradients, for z = 0 and for every magnitude: the
    norm is taken of z over its largest entry, a factor that cancels and so needs no gradient.
    """
    import jax.numpy as jnp
    from jax.lax import stop_gradient

    largest = stop_gradient(jnp.max(jnp.abs(z), axis=axis, keepdims=True))
    scale = jnp.where(largest > 0, largest, 1)
    square = jnp.sum(jnp.square(z / scale), axis=axis, keepdims=True)
    norm = scale * jnp.where(square > 0, jnp.sqrt(jnp.where(square > 0, square, 1)), 0)
    return z * (z.shape[axis] ** 0.5 / (norm + 1e-8))


class OnSphere(NamedTuple):
    """A position on the sphere, and the inner state, whose position is the raw step."""

    x: Any
    inner: Any


class SphereIntegrator(Integrator):
    """x' = retract(x + alpha * d), d the displacement of an inner rule; alpha starts at 1.

    alpha is learned for each sub-update and feature. The inner rule runs in coordinates that
    start at 0, on the field z -> F(x + z), so that its new position *is* the displacement,
    without the cancellation of subtracting two positions. Any rule can be the inner one.
    """

    def inner(self) -> Integrator:
        """The rule that is put on the sphere."""
        raise TypeError(f"{type(self).__name__} names no inner integrator")

    def init(self, x0, field, at, velocity=None):
        x = retract(x0, at.axis)
        return OnSphere(x, self.inner().init(0 * x, lambda z: field(x + z), at, velocity))

    def step(self, state, field, at, params):
        rule, x = self.inner(), state.x
        start = rule.relocate(state.inner, 0 * x)
        after = rule.step(start, lambda z: field(x + z), at, params)
        alpha = at.along_features(params["alpha"], x).astype(x.dtype)
        move = alpha * rule.position(after)
        return OnSphere(retract(x + move, at.axis), rule.relocate(after, move))

    def position(self, state):
        return state.x

    def relocate(self, state, x):
        return state._replace(x=x)

    def parameters(self, width):
        import jax.numpy as jnp

        return {**self.inner().parameters(width), "alpha": jnp.ones(width)}

    def observe(self, state):
        rule = self.inner()
        return {**rule.observe(state.inner), "raw_step": rule.position(state.inner)}


@integrator(
    "ngpt-lite",
    equation="x' = retract(x + h alpha * F(x)),  retract(z) = z sqrt(D) / (|z| + 1e-8)",
    reference=_NGPT,
    order=1,
    manifold="sphere",
    reads="raw",
)
class NGPTLite(SphereIntegrator):
    """Euler on the sphere of radius sqrt(D), as nGPT's blocks; the branch reads the raw stream.

    "Lite": the stream is normalised, the weights are not.
    """

    def inner(self):
        return Euler()


@integrator(
    "ngpt-ledger",
    equation="v' = mu v + (1 - mu) F(x);  x' = retract(x + h alpha * v')",
    reference=_NGPT + ", with the velocity of Sander et al. (2021)",
    order=1,
    manifold="sphere",
    reads="raw",
    reduces_to={"mu=0": "ngpt-lite"},
)
class NGPTLedger(SphereIntegrator):
    """A ledger on the sphere: an ambient velocity, and a position that is retracted."""

    mu: float = option(0.9, "memory of the velocity; friction is 1 - mu", low=0.0, below=1.0)

    def inner(self):
        return Ledger().with_traced({"mu": self.mu})


@hookimpl
def zoo_integrators():
    return [NGPTLite, NGPTLedger]
