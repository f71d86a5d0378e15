"""The velocity ledger: heavy ball through depth."""

from __future__ import annotations

import math

from integrator_zoo.contract import (
    Drift,
    Fade,
    Invertible,
    Kick,
    Moving,
    MovingIntegrator,
    exactly,
    integrator,
    option,
)
from integrator_zoo.hookspecs import hookimpl


@integrator(
    "ledger",
    equation="v' = mu v + (1 - mu) F(x);  x' = x + h v'",
    reference="Sander, Ablin, Blondel, Peyre (2021), Momentum Residual Neural Networks",
    order=1,
    inverse="algebraic",
    reduces_to={"mu=0": "euler"},
)
class Ledger(MovingIntegrator, Invertible):
    """Heavy ball: v' = mu v + (1 - mu) F(x); x' = x + h v'. Order 1, one evaluation.

    The velocity starts at rest and is the exponential mean of the branch outputs: each
    sub-update is entered in the ledger and paid out over the next 1/(1 - mu). As h goes to 0 it
    follows x' = F(x); friction is 1 - mu. Undoing a step divides by mu, so a rounding error grows
    by 1/mu a layer backward. At mu = 0 it *is* Euler, bit for bit, and cannot be undone.
    """

    mu: float = option(0.9, "memory of the velocity; friction is 1 - mu", low=0.0, below=1.0)

    def step(self, state, field, at, params):
        force = field(state.x)
        v = force if exactly(self.mu, 0) else self.mu * state.v + (1 - self.mu) * force
        return Moving(state.x + at.h * v, v)

    def invert(self, state, field, at, params):
        x = state.x - at.h * state.v
        return Moving(x, (state.v - (1 - self.mu) * field(x)) / self.mu)

    def amplification(self):
        return math.inf if exactly(self.mu, 0) else 1 / self.mu

    def moves(self, h):
        return Fade(self.mu), Kick(1 - self.mu), Drift(h)


@hookimpl
def zoo_integrators():
    return [Ledger]
