"""The figures behind the picture of `zoo check`: order, energy, stability, round trip."""

from __future__ import annotations

import functools
from dataclasses import dataclass
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from ..contract import Integrator, Step
from ..problems import Kepler, OrderFit, fitting, observed_order, solve
from .accuracy import MOST_STEPS, SPAN
from .inverse import predicted, round_trip

ORBITS, STEPS_AN_ORBIT = 20, 200
TRIPS = (1, 2, 4, 8, 16, 32, 64)
LEFT, RIGHT, HIGH, GRID = -5.0, 1.5, 4.0, 81


@dataclass(frozen=True)
class Portrait:
    """What an integrator looks like."""

    spec: str
    equation: str
    dynamics: str
    """What F is: `x' = F(x)` or `x'' = F(x)`."""
    order: OrderFit
    declared_order: int | None
    orbits: np.ndarray
    """Time in Kepler orbits."""
    energy: np.ndarray
    """Relative energy deviation at each."""
    stability: np.ndarray | None
    """Spectral radius of a step on F(x) = z x, h = 1, over `plane()`; None on a manifold."""
    trips: np.ndarray | None
    """Error of a round trip at the depths `TRIPS`; None without an inverse."""
    trips_predicted: np.ndarray | None


def portrait(rule: Integrator) -> Portrait:
    """Measure everything that the picture shows."""
    planet, steps = Kepler(), ORBITS * STEPS_AN_ORBIT
    found = solve(rule, planet, planet.period() / STEPS_AN_ORBIT, steps)
    with np.errstate(all="ignore"):
        energy = np.asarray(planet.energy(found.x, found.v))
        off = np.abs(energy - energy[0]) / abs(energy[0])
    trips = expected = None
    if rule.traits.inverse != "none":
        with jax.enable_x64(True):
            eps = float(jnp.finfo(jnp.float64).eps)
            trips = np.array([round_trip(rule, depth, jnp.float64)[0] for depth in TRIPS])
            expected = np.array([predicted(rule, depth, eps) for depth in TRIPS])
    return Portrait(
        rule.spec,
        rule.traits.equation,
        {"first": "x' = F(x)", "second": "x'' = F(x)"}[rule.traits.dynamics],
        observed_order(rule, fitting(rule.traits), SPAN, MOST_STEPS),
        rule.traits.order,
        found.times / planet.period(),
        off,
        stability(rule) if rule.traits.manifold == "none" else None,
        trips,
        expected,
    )


def plane() -> tuple[np.ndarray, np.ndarray]:
    """Real and imaginary parts of z: h lambda for x' = lambda x, h^2 lambda for x'' = lambda x."""
    return np.meshgrid(np.linspace(LEFT, RIGHT, GRID), np.linspace(-HIGH, HIGH, GRID))


def stability(rule: Integrator) -> np.ndarray:
    """Spectral radius of one step on F(x) = z x with h = 1, for every z of the plane.

    The step is applied to the unit vectors of its state, so every memory of the rule counts.
    """
    real, imaginary = plane()
    with jax.enable_x64(True):
        matrices = np.array(_matrices(rule, real.ravel(), imaginary.ravel()))
    bad = ~np.isfinite(matrices).all(axis=(1, 2))
    matrices[bad] = 0
    radius = np.abs(np.linalg.eigvals(matrices)).max(axis=1)
    radius[bad] = np.inf
    return radius.reshape(real.shape)


@functools.partial(jax.jit, static_argnums=0)
def _matrices(rule: Integrator, real: Any, imaginary: Any) -> Any:
    at, own = Step(0.0, 1.0, 0, 1_000_000, True), rule.parameters(2)

    def matrix(a: Any, b: Any) -> Any:
        def field(x: Any) -> Any:
            return jnp.stack([a * x[0] - b * x[1], b * x[0] + a * x[1]])

        state = rule.init(jnp.zeros(2), field, at)
        leaves, form = jax.tree.flatten(state)
        sizes = np.cumsum([leaf.size for leaf in leaves])

        def step(flat: Any) -> Any:
            parts = jnp.split(flat, sizes[:-1])
            shaped = [p.reshape(leaf.shape) for p, leaf in zip(parts, leaves, strict=True)]
            after = rule.step(jax.tree.unflatten(form, shaped), field, at, own)
            return jnp.concatenate([leaf.ravel() for leaf in jax.tree.leaves(after)])

        return jax.vmap(step, out_axes=1)(jnp.eye(sizes[-1]))

    return jax.vmap(matrix)(real, imaginary)
