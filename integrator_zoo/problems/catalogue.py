"""The catalogue: problems with exact or 64-bit reference solutions."""

from __future__ import annotations

from abc import ABC, abstractmethod
from typing import Any, ClassVar, Literal

import jax.numpy as jnp
import numpy as np
from jax import Array
from scipy.integrate import solve_ivp
from scipy.optimize import newton

from ..errors import ZooError
from ..options import Options, declare, option

Start = tuple[np.ndarray, np.ndarray | None]
"""Positions, and velocities where the dynamics is second order."""


class Problem(Options, ABC):
    """x' = F(x) or x'' = F(x) from a start, with an exact or 64-bit reference solution."""

    dynamics: ClassVar[Literal["first", "second"]]

    @abstractmethod
    def start(self) -> Start:
        """Initial position [features], and initial velocity where the dynamics is second order."""

    @abstractmethod
    def field(self, x: Array) -> Array:
        """F(x), features on axis 0."""

    @abstractmethod
    def exact(self, times: np.ndarray) -> np.ndarray:
        """Exact positions [len(times), features] in float64."""

    def energy(self, x: Any, v: Any) -> Any:
        """A conserved quantity of positions and velocities [..., features]; None without one."""
        return None


def problem(name: str) -> Any:
    """Class decorator: a frozen, named problem whose fields are options."""
    return lambda cls: declare(cls, name)


@problem("kepler")
class Kepler(Problem):
    """A planet about a fixed sun: r'' = -GM r / |r|^3, in the plane. Bound orbits only."""

    dynamics = "second"
    gm: float = option(1.0, "gravitational parameter GM", above=0.0)
    x: float = option(1.0, "initial position, x")
    y: float = option(0.0, "initial position, y")
    vx: float = option(0.0, "initial velocity, x")
    vy: float = option(0.9, "initial velocity, y")

    def start(self):
        return np.array([self.x, self.y]), np.array([self.vx, self.vy])

    def field(self, x):
        square = jnp.sum(x * x, axis=0, keepdims=True)
        return x * (-self.gm / (square * jnp.sqrt(square)))

    def energy(self, x, v):
        kinetic = (v * v).sum(-1) / 2
        return kinetic - self.gm / (x * x).sum(-1) ** 0.5

    def semi_major_axis(self) -> float:
        """a = -GM / (2 E).

        Raises:
            ZooError: the start is at the sun, or the orbit is not bound.
        """
        r, v = self.start()
        if not np.any(r):
            raise ZooError(
                "kepler: the start x=0, y=0 is the sun itself.", "Give x or y other than 0."
            )
        energy = float(self.energy(r, v))
        if energy >= 0:
            raise ZooError(
                f"kepler: energy {energy:g} is not negative, so the orbit is not bound.",
                "Give a smaller vx, vy or a larger gm.",
            )
        return -self.gm / (2 * energy)

    def period(self) -> float:
        """T = 2 pi sqrt(a^3 / GM)."""
        return 2 * np.pi * np.sqrt(self.semi_major_axis() ** 3 / self.gm)

    def exact(self, times):
        """Kepler's equation M = E - e sin E, solved by Newton's method."""
        r0, v0 = self.start()
        a, motion = self.semi_major_axis(), 2 * np.pi / self.period()
        dot, radius = r0 @ v0, np.linalg.norm(r0)
        e_cos, e_sin = 1 - radius / a, dot / np.sqrt(self.gm * a)
        eccentricity = np.hypot(e_cos, e_sin)
        anomaly0 = np.arctan2(e_sin, e_cos)
        mean = anomaly0 - e_sin + motion * np.asarray(times, float)
        whole = 2 * np.pi * np.round(mean / (2 * np.pi))
        mean = mean - whole
        anomaly = newton(
            lambda E: E - eccentricity * np.sin(E) - mean,
            np.sign(mean) * np.minimum(np.abs(mean) + eccentricity, np.pi),
            lambda E: 1 - eccentricity * np.cos(E),
            tol=1e-14,
            maxiter=100,
        )
        moved = anomaly + whole - anomaly0  # Lagrange's f and g carry (r0, v0) by that angle
        f = 1 - a / radius * (1 - np.cos(moved))
        g = np.asarray(times, float) - (moved - np.sin(moved)) / motion
        return f[:, None] * r0 + g[:, None] * v0


@problem("oscillator")
class Oscillator(Problem):
    """A spring: x'' = -omega^2 x."""

    dynamics = "second"
    omega: float = option(1.0, "angular frequency", above=0.0)
    x: float = option(1.0, "initial position")
    v: float = option(0.0, "initial velocity")

    def start(self):
        return np.array([self.x]), np.array([self.v])

    def field(self, x):
        return -(self.omega**2) * x

    def energy(self, x, v):
        return ((v * v) + self.omega**2 * (x * x)).sum(-1) / 2

    def exact(self, times):
        angle = self.omega * np.asarray(times, float)[:, None]
        return self.x * np.cos(angle) + self.v / self.omega * np.sin(angle)


@problem("damped-oscillator")
class DampedOscillator(Problem):
    """A spring with friction, on y = (q, p): q' = p, p' = -omega^2 q - 2 damping p.

    The force depends on the velocity, so this is a first-order problem: a symplectic method for
    x'' = F(x) does not apply to it as it stands, only through the second-order lift. Underdamped.
    """

    dynamics = "first"
    omega: float = option(1.0, "angular frequency without friction", above=0.0)
    damping: float = option(0.1, "friction, below omega", low=0.0)
    x: float = option(1.0, "initial position")
    v: float = option(0.0, "initial velocity")

    def start(self):
        if self.damping >= self.omega:
            raise ZooError(
                f"damped-oscillator: damping={self.damping} is not below omega={self.omega}.",
                "Give a smaller damping.",
            )
        return np.array([self.x, self.v]), None

    def field(self, x):
        q, p = x[0], x[1]
        return jnp.stack([p, -(self.omega**2) * q - 2 * self.damping * p])

    def exact(self, times):
        t = np.asarray(times, float)
        c, beat = self.damping, np.sqrt(self.omega**2 - self.damping**2)
        a, b = self.x, (self.v + c * self.x) / beat
        decay, cos, sin = np.exp(-c * t), np.cos(beat * t), np.sin(beat * t)
        q = decay * (a * cos + b * sin)
        p = decay * ((b * beat - c * a) * cos - (a * beat + c * b) * sin)
        return np.stack([q, p], -1)


@problem("pendulum")
class Pendulum(Problem):
    """A nonlinear pendulum: x'' = -omega^2 sin x. Reference: DOP853 at rtol 1e-13."""

    dynamics = "second"
    omega: float = option(1.0, "angular frequency of small swings", above=0.0)
    x: float = option(2.0, "initial angle, radians")
    v: float = option(0.0, "initial angular velocity")

    def start(self):
        return np.array([self.x]), np.array([self.v])

    def field(self, x):
        return -(self.omega**2) * jnp.sin(x)

    def energy(self, x, v):
        cosine = jnp.cos(x) if isinstance(x, Array) else np.cos(x)
        return ((v * v) / 2 - self.omega**2 * cosine).sum(-1)

    def exact(self, times):
        return reference_solution(
            lambda _, y: [y[1], -(self.omega**2) * np.sin(y[0])], [self.x, self.v], times
        )[:, :1]


@problem("rotation")
class Rotation(Problem):
    """A point turned about the axis (1, 2, 2)/3 on the sphere of radius sqrt(3): x' = w x x."""

    dynamics = "first"
    omega: float = option(1.0, "angular velocity", above=0.0)

    def axis(self) -> np.ndarray:
        return np.array([1.0, 2.0, 2.0]) / 3

    def start(self):
        return np.array([1.0, 1.0, -1.0]), None

    def field(self, x):
        a, b, c = (self.omega * self.axis()).tolist()
        return jnp.stack([b * x[2] - c * x[1], c * x[0] - a * x[2], a * x[1] - b * x[0]])

    def exact(self, times):
        """Rodrigues' formula."""
        k, x = self.axis(), self.start()[0]
        angle = self.omega * np.asarray(times, float)[:, None]
        along = k * (k @ x)
        return along + (x - along) * np.cos(angle) + np.cross(k, x) * np.sin(angle)


def reference_solution(field: Any, start: Any, times: Any) -> np.ndarray:
    """DOP853 at rtol 1e-13: states [len(times), ...] of y' = field(t, y) from y(0) = start."""
    times = np.asarray(times, float)
    order = np.argsort(times)
    span = (0.0, float(times.max()) or 1.0)
    found = solve_ivp(field, span, start, "DOP853", t_eval=times[order], rtol=1e-13, atol=1e-14)
    return found.y.T[np.argsort(order)]
