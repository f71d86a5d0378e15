"""Forward Euler: the plain residual block, and its gain-matched control."""

from __future__ import annotations

from integrator_zoo.contract import Integrator, exactly, integrator, option
from integrator_zoo.hookspecs import hookimpl


@integrator(
    "euler",
    equation="x' = x + h F(x)",
    reference="Euler (1768), Institutionum calculi integralis; He et al. (2016) as a network",
    order=1,
)
class Euler(Integrator):
    """The residual block itself: x' = x + h F(x). Order 1, one evaluation.

    On an orbit it gains energy at every step. Not symplectic Euler (`symplectic-euler`).
    """

    def step(self, state, field, at, params):
        return state + at.h * field(state)


@integrator(
    "euler-gain-matched",
    equation="x' = x + h g F(x),  g = 1 - mu^(n-i) or 1 - mu^(i+1),  i of n sub-updates, from 0",
    reference="control for the ledger; the gains follow from Sander et al. (2021)",
    order=1,
    reduces_to={"mu=0": "euler"},
)
class EulerGainMatched(Integrator):
    """Euler whose sub-updates have the gains that a ledger of the same depth gives them.

    In a ledger of n sub-updates, the force of sub-update i (from 0) reaches the output with gain
    1 - mu^(n-i): late ones are cut short (`match=output`). A constant force moves step i by
    1 - mu^(i+1) of it: early steps are small (`match=step`). This rule has either gain and no
    velocity, so it tells what of a ledger's short path is inertia and what only a small gain.
    """

    mu: float = option(0.9, "the memory of the ledger that is matched", low=0.0, below=1.0)
    match: str = option("output", "which gain is matched", choices=("output", "step"))

    def step(self, state, field, at, params):
        import jax.numpy as jnp

        if exactly(self.mu, 0):
            return state + at.h * field(state)
        power = at.count - at.index if self.match == "output" else at.index + 1
        gain = jnp.asarray(1 - self.mu**power, state.dtype)
        return state + at.h * gain * field(state)


@hookimpl
def zoo_integrators():
    return [Euler, EulerGainMatched]
