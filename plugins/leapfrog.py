"""Symplectic methods for x'' = F(x): leapfrog in both forms, and symplectic Euler.

None of them is diffrax's `LeapfrogMidpoint`, which is a two-step method for x' = F(x).
"""

from __future__ import annotations

from typing import Any, NamedTuple

from integrator_zoo.contract import (
    Drift,
    Invertible,
    Kick,
    Moving,
    MovingIntegrator,
    integrator,
)
from integrator_zoo.hookspecs import hookimpl

_VERLET = "Verlet (1967); Hairer, Lubich, Wanner (2003), Geometric numerical integration"


class Driven(NamedTuple):
    """Position, velocity, and the force at the position."""

    x: Any
    v: Any
    force: Any


@integrator(
    "leapfrog",
    equation="w = v + h/2 F(x);  x' = x + h w;  v' = w + h/2 F(x')",
    reference=_VERLET,
    order=2,
    evaluations=2,
    evaluations_shared=1,
    dynamics="second",
    inverse="algebraic",
    symplectic=True,
    time_reversible=True,
)
class Leapfrog(MovingIntegrator, Invertible):
    """Kick-drift-kick leapfrog (velocity Verlet) for x'' = F(x). Order 2, symplectic.

    Where all sub-updates share one field, the closing force is kept as the next opening one: one
    evaluation a step. With a field for each layer it is two, both of the layer's own field, or
    the step could not be undone. Drift-kick-drift is `leapfrog-dkd`.
    """

    def init(self, x0, field, at, velocity=None):
        start = super().init(x0, field, at, velocity)
        return Driven(start.x, start.v, field(x0)) if at.shared else start

    def step(self, state, field, at, params):
        force = state.force if at.shared else field(state.x)
        w = state.v + at.h / 2 * force
        x = state.x + at.h * w
        closing = field(x)
        v = w + at.h / 2 * closing
        return Driven(x, v, closing) if at.shared else Moving(x, v)

    def relocate(self, state, x):
        return Moving(x, state.v) if isinstance(state, Moving) else state._replace(x=x)

    def invert(self, state, field, at, params):
        closing = state.force if at.shared else field(state.x)
        w = state.v - at.h / 2 * closing
        x = state.x - at.h * w
        force = field(x)
        v = w - at.h / 2 * force
        return Driven(x, v, force) if at.shared else Moving(x, v)

    def moves(self, h):
        return Kick(h / 2), Drift(h), Kick(h / 2)


@integrator(
    "leapfrog-dkd",
    equation="y = x + h/2 v;  v' = v + h F(y);  x' = y + h/2 v'",
    reference=_VERLET,
    order=2,
    dynamics="second",
    inverse="algebraic",
    symplectic=True,
    time_reversible=True,
)
class LeapfrogDKD(MovingIntegrator, Invertible):
    """Drift-kick-drift leapfrog (position Verlet) for x'' = F(x). Order 2, symplectic.

    One evaluation a step always. Kick-drift-kick is `leapfrog`.
    """

    def step(self, state, field, at, params):
        y = state.x + at.h / 2 * state.v
        v = state.v + at.h * field(y)
        return Moving(y + at.h / 2 * v, v)

    def invert(self, state, field, at, params):
        y = state.x - at.h / 2 * state.v
        v = state.v - at.h * field(y)
        return Moving(y - at.h / 2 * v, v)

    def moves(self, h):
        return Drift(h / 2), Kick(h), Drift(h / 2)


@integrator(
    "symplectic-euler",
    equation="v' = v + h F(x);  x' = x + h v'",
    reference="de Vogelaere (1956); Hairer, Lubich, Wanner (2006), section I.1.2",
    order=1,
    dynamics="second",
    inverse="algebraic",
    symplectic=True,
)
class SymplecticEuler(MovingIntegrator, Invertible):
    """Semi-implicit Euler, kick first, for x'' = F(x). Order 1, symplectic, one evaluation.

    Not plain Euler on (x, v): the drift uses the new velocity.
    """

    def step(self, state, field, at, params):
        v = state.v + at.h * field(state.x)
        return Moving(state.x + at.h * v, v)

    def invert(self, state, field, at, params):
        x = state.x - at.h * state.v
        return Moving(x, state.v - at.h * field(x))

    def moves(self, h):
        return Kick(h), Drift(h)


@hookimpl
def zoo_integrators():
    return [Leapfrog, LeapfrogDKD, SymplecticEuler]
