"""Nonlinear problems on which orders show cleanly: several orbits in one state.

On a single orbit the leading error of a high-order method may nearly cancel, so that the slope is
read where it is not yet asymptotic. Over several orbits, or a coupled chain, it does not.
"""

from __future__ import annotations

import jax.numpy as jnp
import numpy as np

from ..contract import Traits
from ..options import option
from .catalogue import Problem, problem, reference_solution

GOLDEN = np.pi * (1 + 5**0.5)
"""Turn between consecutive points of a Fibonacci lattice."""


@problem("rigid-bodies")
class RigidBodies(Problem):
    """Free rigid bodies: x' = x cross (I^-1 x), 1/I = (1, 1/2, 1/4), each on the sphere sqrt(3).

    D = 3 count features, so the whole position stays on the sphere of radius sqrt(D).
    """

    dynamics = "first"
    count: int = option(8, "how many bodies, from evenly spread starts", low=1)

    def start(self):
        k = np.arange(self.count) + 0.5
        z = 1 - 2 * k / self.count
        radius = np.sqrt(1 - z * z)
        points = np.stack([radius * np.cos(GOLDEN * k), radius * np.sin(GOLDEN * k), z])
        return np.sqrt(3) * points.ravel(), None

    def field(self, x):
        a, b, c = x.reshape(3, self.count, *x.shape[1:])
        return jnp.concatenate([-b * c / 4, 3 * a * c / 4, -a * b / 2])

    def exact(self, times):
        def turn(_, x):
            a, b, c = x.reshape(3, self.count)
            return np.concatenate([-b * c / 4, 3 * a * c / 4, -a * b / 2])

        return reference_solution(turn, self.start()[0], times)


@problem("toda")
class Toda(Problem):
    """A ring of Toda's particles: x_i'' = exp(x_(i-1) - x_i) - exp(x_i - x_(i+1))."""

    dynamics = "second"
    count: int = option(8, "particles in the ring", low=2)

    def start(self):
        angle = GOLDEN * np.arange(self.count)
        return 0.5 * np.cos(angle), 0.5 * np.sin(angle)

    def field(self, x):
        push = jnp.exp(x - jnp.roll(x, -1, axis=0))
        return jnp.roll(push, 1, axis=0) - push

    def energy(self, x, v):
        following = jnp.roll(x, -1, axis=-1)
        return (v * v / 2 + jnp.exp(x - following)).sum(-1)

    def exact(self, times):
        def move(_, y):
            x, v = np.split(y, 2)
            push = np.exp(x - np.roll(x, -1))
            return np.concatenate([v, np.roll(push, 1) - push])

        return reference_solution(move, np.concatenate(self.start()), times)[:, : self.count]


def fitting(traits: Traits) -> Problem:
    """The nonlinear problem on which an integrator of these traits is measured."""
    return Toda() if traits.dynamics == "second" else RigidBodies()
