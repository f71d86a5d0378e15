"""Problems with known solutions, and the two lifts that let every integrator run on each.

Positions are laid out [features] or [features, batch]: features on axis 0, so that a batch of
orbits is contiguous. A problem is a frozen dataclass of its constants and its start. Everything
here is computed in 64-bit inside a local context; the caller's configuration stays as it is.
"""

from __future__ import annotations

import functools
from abc import ABC, abstractmethod
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, ClassVar, Literal, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from jax import Array
from scipy.integrate import solve_ivp
from scipy.optimize import newton

from .contract import Integrator
from .depth import count_evaluations, integrate
from .errors import ZooError
from .options import Options, declare, option

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
        return _reference(
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


PROBLEMS: tuple[type[Problem], ...] = (Kepler, Oscillator, DampedOscillator, Pendulum, Rotation)


def _reference(field: Any, start: Sequence[float], times: np.ndarray) -> np.ndarray:
    times = np.asarray(times, float)
    order = np.argsort(times)
    span = (0.0, float(times.max()) or 1.0)
    found = solve_ivp(field, span, start, "DOP853", t_eval=times[order], rtol=1e-13, atol=1e-14)
    return found.y.T[np.argsort(order)]


@dataclass(frozen=True)
class Lifted:
    """A problem in the form that a rule integrates.

    A first-order rule meets x'' = F(x) as y' = (v, F(x)) on the stacked y = (x, v). A second-order
    rule meets x' = F(x) as x'' = DF(x) F(x) with initial velocity F(x0), which has the same
    solution. Otherwise the problem is taken as it is.
    """

    problem: Problem
    dynamics: Literal["first", "second"]

    @property
    def stacked(self) -> bool:
        """Whether positions are (x, v) of the problem."""
        return self.dynamics == "first" and self.problem.dynamics == "second"

    def start(self, given: Start | None = None) -> Start:
        """The lifted start; by default that of the problem itself. Without a velocity: at rest."""
        x, v = given or self.problem.start()
        if self.stacked:
            return np.concatenate([x, np.zeros_like(x) if v is None else v]), None
        if self.dynamics == "second" and self.problem.dynamics == "first":
            return x, np.asarray(self.problem.field(jnp.asarray(x, float)))
        return x, v

    def field(self, y: Array) -> Array:
        if self.stacked:
            x, v = jnp.split(y, 2)
            return jnp.concatenate([v, self.problem.field(x)])
        if self.dynamics == "second" and self.problem.dynamics == "first":
            return jax.jvp(self.problem.field, (y,), (self.problem.field(y),))[1]
        return self.problem.field(y)


class Solution(NamedTuple):
    """A solved problem, as float64 numpy arrays."""

    times: np.ndarray
    """[steps + 1]"""
    x: np.ndarray
    """Positions [steps + 1, features]."""
    v: np.ndarray | None
    """Velocities, where the problem has them."""
    error: np.ndarray
    """Distance from the exact position at each time."""


def solve(rule: Integrator, problem: Problem, h: float, steps: int) -> Solution:
    """Integrate a problem in 64-bit with `steps` steps of size h.

    Raises:
        ZooError: h is not positive, or there is no step.
    """
    _check(h, steps)
    with jax.enable_x64(True):
        lifted = Lifted(problem, rule.traits.dynamics)
        y, velocity = _walk(rule, lifted, h, steps, *lifted.start())
        nodes = np.asarray(y)
        speeds = None if velocity is None else np.asarray(velocity)
    if lifted.stacked:
        nodes, speeds = np.split(nodes, 2, axis=-1)
    times = h * np.arange(steps + 1)
    known = problem.dynamics == "second"
    gap = nodes - problem.exact(times)
    return Solution(times, nodes, speeds if known else None, np.sqrt((gap * gap).sum(-1)))


@functools.partial(jax.jit, static_argnums=(0, 1, 3))
def _walk(rule: Integrator, lifted: Lifted, h: Any, steps: int, x0: Any, v0: Any) -> Any:
    passed = integrate(
        rule,
        lambda _, index, x: lifted.field(x),
        (),
        jnp.asarray(x0),
        depth=steps,
        h=jnp.asarray(h),
        velocity=None if v0 is None else jnp.asarray(v0),
        tied=True,
        shared=True,
        axis=0,
        collect=True,
    )
    assert passed.trajectory is not None
    has_velocity = lifted.dynamics == "second" and "velocity" in passed.trajectory.observed
    return passed.trajectory.nodes, passed.trajectory.observed["velocity"] if has_velocity else None


def final_position(
    rule: Integrator, problem: Problem, h: float, steps: int, start: Start | None = None
) -> np.ndarray:
    """Only where a problem ends after `steps` steps of size h, in 64-bit.

    Args:
        start: positions, and velocities where the problem has them, [features] or
            [features, batch] for many orbits at once; by default the problem's own.

    One compilation serves every h and every number of steps.

    Raises:
        ZooError: h is not positive, or there is no step.
    """
    _check(h, steps)
    with jax.enable_x64(True):
        lifted = Lifted(problem, rule.traits.dynamics)
        x0, v0 = lifted.start(start)
        end = np.asarray(_last(rule, lifted, h, steps, x0, v0))
    return np.split(end, 2)[0] if lifted.stacked else end


@functools.partial(jax.jit, static_argnums=(0, 1))
def _last(rule: Integrator, lifted: Lifted, h: Any, steps: Any, x0: Any, v0: Any) -> Array:
    return integrate(
        rule,
        lambda _, index, x: lifted.field(x),
        (),
        jnp.asarray(x0, float),
        depth=steps,
        h=jnp.asarray(h),
        velocity=None if v0 is None else jnp.asarray(v0, float),
        tied=True,
        shared=True,
        axis=0,
    ).position


def _check(h: float, steps: int) -> None:
    if h <= 0 or steps < 1:
        raise ZooError(f"h={h:g}, steps={steps}: both must be positive.", "Give a larger h.")


FITTED = 5
"""Errors to which an order is fitted."""


class OrderFit(NamedTuple):
    """Order of accuracy, measured."""

    order: float | None
    """Slope of log-error against log-step; None where too few errors lie in the window."""
    steps: np.ndarray
    """Step sizes."""
    errors: np.ndarray
    """Relative errors, geometric mean over the spans."""
    used: np.ndarray
    """Which of them the slope was fitted to."""


def observed_order(
    rule: Integrator, problem: Problem, span: float = 2.0, most: int = 524288
) -> OrderFit:
    """Measure the order on a problem: error at fixed times, the step shrinking by sqrt(2).

    The error is the geometric mean over seven spans, from `span` to twice that, so that no chance
    zero crossing passes for accuracy. The slope is fitted to the five smallest errors that
    rounding does not touch and that are small enough to be asymptotic (below
    3e-2). The starting procedure is included.
    """
    counts = np.unique(np.round(2 ** np.arange(3, np.log2(most) + 0.25, 0.5)).astype(int))
    spans = span * np.linspace(1, 2, 7)
    targets = problem.exact(spans)
    errors = np.full(len(counts), np.nan)
    for i, count in enumerate(counts):
        logs = []
        for time, target in zip(spans, targets, strict=True):
            end = final_position(rule, problem, time / count, int(count))
            gap = np.linalg.norm(end - target)
            logs.append(np.log(gap / np.linalg.norm(target) + 1e-300))
        errors[i] = np.exp(np.mean(logs))
        if errors[i] < 1e-12:
            break
    rounding = np.maximum(1e-12, 2e-16 * counts)
    fit = np.flatnonzero((errors > rounding) & (errors < 3e-2))[-FITTED:]
    steps = span / counts
    used = np.zeros(len(counts), bool)
    if len(fit) < FITTED:
        return OrderFit(None, steps, errors, used)
    used[fit] = True
    slope = np.polyfit(np.log(steps[fit]), np.log(errors[fit]), 1)[0]
    return OrderFit(float(slope), steps, errors, used)


def evaluations_per_step(rule: Integrator, problem: Problem, h: float, steps: int = 8) -> float:
    """Field evaluations a step in steady state, counted while they are executed."""
    with jax.enable_x64(True):
        lifted = Lifted(problem, rule.traits.dynamics)
        x0, v0 = lifted.start()

        def run(count: int, marker: Any) -> Any:
            def go() -> Array:
                return integrate(
                    rule,
                    lambda _, index, x: marker(lifted.field(x)),
                    (),
                    jnp.asarray(x0),
                    depth=count,
                    h=h,
                    velocity=None if v0 is None else jnp.asarray(v0),
                    tied=True,
                    shared=True,
                    axis=0,
                ).position

            return jax.jit(go)()

        more = count_evaluations(functools.partial(run, 2 * steps))
        fewer = count_evaluations(functools.partial(run, steps))
    return (more - fewer) / steps
