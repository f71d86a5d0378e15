"""Checks of geometry: the symplectic form, bounded energy, time reversal, the sphere."""

from __future__ import annotations

import functools
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from ..depth import integrate
from ..problems import Kepler, Lifted, Toda, solve
from . import probe
from .base import Measured, Subject, check
from .transforms import WALKS

FORM, RETURN, SPHERE = 1e-10, 1e-10, 1e-6
ORBITS, STEPS_AN_ORBIT, BAND, GROWTH = 100, 200, 0.1, 1.5


@functools.partial(jax.jit, static_argnums=(0, 3, 4, 5))
def flow(rule: Any, x: Any, v: Any, h: float, steps: int, shared: bool) -> tuple[Any, Any]:
    """(x, v) after some steps on a small Toda ring; first-order rules run on the stacked pair."""
    lifted = Lifted(Toda(count=4), rule.traits.dynamics)
    x0, velocity = (jnp.concatenate([x, v]), None) if lifted.stacked else (x, v)
    passed = integrate(
        rule,
        lambda _, index, y: lifted.field(y),
        (),
        x0,
        depth=steps,
        h=h,
        velocity=velocity,
        tied=True,
        shared=shared,
        axis=0,
    )
    if lifted.stacked:
        return tuple(jnp.split(passed.position, 2))  # type: ignore[return-value]
    return passed.position, rule.observe(passed.state)["velocity"]


def _pair(seed: int) -> tuple[Any, Any]:
    draw = np.random.default_rng(seed)
    return tuple(jnp.asarray(0.5 * draw.normal(size=4)) for _ in "xv")  # type: ignore[return-value]


@check(
    "symplectic-form",
    "a symplectic step preserves the form dx ^ dv, exactly, at every point",
    needs=(*WALKS, "start"),
    unless=lambda rule: "declares no symplecticity" * (not rule.traits.symplectic),
)
def symplectic_form(subject: Subject) -> Measured:
    """max |J^T Omega J - Omega| of one step, at three points, field shared or not."""
    omega = np.kron([[0, 1], [-1, 0]], np.eye(4))
    worst = 0.0
    with jax.enable_x64(True):
        for shared in (True, False):
            jacobian = jax.jit(
                jax.jacfwd(
                    lambda z, shared=shared: jnp.concatenate(
                        flow(subject.rule, *jnp.split(z, 2), 0.2, 1, shared)
                    )
                )
            )
            for seed in range(3):
                j = np.asarray(jacobian(jnp.concatenate(_pair(seed))))
                worst = max(worst, float(np.abs(j.T @ omega @ j - omega).max()))
    said = f"form changed by {worst:.1e}"
    return Measured(worst <= FORM, said, f"{FORM:.0e}", "symplectic", worst)


@check(
    "energy-band",
    "over a hundred orbits the energy stays in a band instead of drifting",
    needs=("symplectic-form",),
    unless=lambda rule: "declares no symplecticity" * (not rule.traits.symplectic),
)
def energy_band(subject: Subject) -> Measured:
    first, last = (float(abs(part).max()) for part in _first_and_last_tenth(subject.rule))
    held = last <= BAND and last <= max(GROWTH * first, 1e-10)
    said = f"{first:.2%} in the first ten orbits, {last:.2%} in the last"
    return Measured(held, said, f"at most {GROWTH} times, {BAND:.0%}", "symplectic", last)


def _first_and_last_tenth(rule: Any) -> tuple[np.ndarray, np.ndarray]:
    """Relative energy deviation on Kepler, in the first ten and the last ten of 100 orbits."""
    planet = Kepler()
    found = solve(rule, planet, planet.period() / STEPS_AN_ORBIT, ORBITS * STEPS_AN_ORBIT)
    energy = np.asarray(planet.energy(found.x, found.v))
    off = (energy - energy[0]) / abs(energy[0])
    tenth = len(off) // 10
    return off[:tenth], off[-tenth:]


@check(
    "time-reversal",
    "turned round, a reversible path leads back to its start",
    needs=(*WALKS, "start"),
    unless=lambda rule: "declares no time reversal" * (not rule.traits.time_reversible),
)
def time_reversal(subject: Subject) -> Measured:
    with jax.enable_x64(True):
        x, v = _pair(0)
        there = flow(subject.rule, x, v, 0.1, 64, True)
        back = flow(subject.rule, there[0], -there[1], 0.1, 64, True)
        gap = probe.distance((back[0], -back[1]), (x, v))
    said = f"{gap:.1e} off the start"
    return Measured(gap <= RETURN, said, f"{RETURN:.0e}", "time-reversible", gap)


@check(
    "manifold",
    "the stream stays on the sphere to rounding, also from far off it",
    needs=("scan",),
    unless=lambda rule: "declares no manifold" * (rule.traits.manifold == "none"),
)
def manifold(subject: Subject) -> Measured:
    w, worst = probe.weights(), 0.0
    for scale in (0.1, 1.0, 1e3, 1e6):
        x0 = scale * probe.start(probe.BATCH, probe.WIDTH)
        path = probe.walk(subject.rule, w, x0, collect=True).trajectory
        norms = np.linalg.norm(np.asarray(path.nodes, np.float64), axis=-1)
        worst = max(worst, float(np.abs(norms / np.sqrt(probe.WIDTH) - 1).max()))
    said = f"{worst:.1e} off the sphere"
    return Measured(worst <= SPHERE, said, f"{SPHERE:.0e}", subject.traits.manifold, worst)
