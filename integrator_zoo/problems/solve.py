"""Solving a problem with any integrator, through the lift that its dynamics needs."""

from __future__ import annotations

import functools
from dataclasses import dataclass
from typing import Any, Literal, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from jax import Array

from ..contract import Integrator
from ..depth import count_evaluations, integrate
from ..errors import ZooError
from .catalogue import Problem, Start


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


def final_positions(rule: Integrator, problem: Problem, hs: np.ndarray, steps: int) -> np.ndarray:
    """`final_position` for several step sizes at once: [len(hs), features]."""
    with jax.enable_x64(True):
        lifted = Lifted(problem, rule.traits.dynamics)
        ends = np.asarray(_lasts(rule, lifted, hs, steps, *lifted.start()))
    return np.split(ends, 2, axis=1)[0] if lifted.stacked else ends


@functools.partial(jax.jit, static_argnums=(0, 1))
def _lasts(rule: Integrator, lifted: Lifted, hs: Any, steps: Any, x0: Any, v0: Any) -> Array:
    return jax.vmap(lambda h: _last(rule, lifted, h, steps, x0, v0))(hs)


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
