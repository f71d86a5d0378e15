"""Checks under JAX's transformations: jit, scan, vmap, grad, memory modes, leaks, retracing."""

from __future__ import annotations

from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from .. import depth
from ..contract import Step
from ..errors import PluginError, ZooError
from . import probe
from .base import Measured, Subject, check

ROUNDING = 1e-12
"""Two orders of the same 64-bit arithmetic agree to this, on a few steps of size-1 numbers."""
MODES_AGREE = 1e-6
"""Bound of the gradients of two memory modes, relative to the largest entry."""
WALKS = ("scan", "dtype-float64")
"""What must hold before a walk through depth in 64-bit says anything else."""


def _agree(gap: float, bound: float = ROUNDING) -> Measured:
    return Measured(gap <= bound, f"{gap:.1e} apart", f"{bound:.0e}", value=gap)


@check("jit", "compiled and eager steps are the same step", needs=("state-structure",))
def jit(subject: Subject) -> Measured:
    with jax.enable_x64(True):
        w, x0 = probe.weights(dtype=jnp.float64), probe.start(dtype=jnp.float64)
        how = {"velocity": probe.opening_velocity(subject.rule, x0)}
        eager = probe.by_hand(subject.rule, w, x0, **how)
        return _agree(probe.distance(probe.by_hand(subject.rule, w, x0, jit=True, **how), eager))


@check("scan", "depth is a compiled loop: index and time are traced", needs=("state-structure",))
def scan(subject: Subject) -> Measured:
    with jax.enable_x64(True):
        w, x0 = probe.weights(dtype=jnp.float64), probe.start(dtype=jnp.float64)
        how = {"velocity": probe.opening_velocity(subject.rule, x0)}
        looped = probe.walk(subject.rule, w, x0, **how).state
        return _agree(probe.distance(probe.by_hand(subject.rule, w, x0, jit=True, **how), looped))


@check("vmap", "a point's path does not depend on its batch", needs=WALKS)
def vmap(subject: Subject) -> Measured:
    with jax.enable_x64(True):
        w = probe.weights(dtype=jnp.float64)
        points = probe.start(probe.BATCH, probe.WIDTH, dtype=jnp.float64)

        speed = probe.opening_velocity(subject.rule, points)

        def end(x0: Any, v0: Any) -> Any:
            return probe.walk(subject.rule, w, x0, velocity=v0).position

        alone = jax.vmap(end, in_axes=(0, None if speed is None else 0))(points, speed)
        return _agree(probe.distance(alone, end(points, speed)))


@check("grad", "training follows the derivative of the step", needs=WALKS)
def grad(subject: Subject) -> Measured:
    rule = subject.rule
    with jax.enable_x64(True):
        w, x0 = probe.weights(dtype=jnp.float64), probe.start(dtype=jnp.float64)
        velocity = probe.opening_velocity(rule, x0)
        toward = jax.tree.map(lambda a: np.cos(np.arange(a.size)).reshape(a.shape), (w, x0))

        @jax.jit
        def loss(w: Any, x0: Any) -> Any:
            end = probe.walk(rule, w, x0, velocity=velocity).position
            return jnp.sum(jnp.sin(end + 0.1 * jnp.arange(probe.WIDTH)))

        def shifted(by: float) -> float:
            return float(loss(*jax.tree.map(lambda a, t: np.asarray(a) + by * t, (w, x0), toward)))

        slope = jax.jit(jax.grad(loss, (0, 1)))(w, x0)
        along = sum(
            float(np.vdot(g, t))
            for g, t in zip(jax.tree.leaves(slope), jax.tree.leaves(toward), strict=True)
        )
        eps = 1e-3  # fourth-order differences: truncation and rounding both near 1e-12
        numeric = 8 * (shifted(eps) - shifted(-eps)) - (shifted(2 * eps) - shifted(-2 * eps))
        gap = abs(along - numeric / (12 * eps)) / max(1.0, abs(along))
    return Measured(gap <= 1e-6, f"{gap:.1e} off differences", "1e-06", value=gap)


@check("no-leak", "a value kept from inside a compiled step breaks the next one", needs=("scan",))
def no_leak(subject: Subject) -> Measured:
    w, x0 = probe.weights(), probe.start()
    velocity = probe.opening_velocity(subject.rule, x0)
    jax.eval_shape(lambda x: probe.walk(subject.rule, w, x, velocity=velocity).state, x0)
    try:
        with jax.checking_leaks():
            jax.make_jaxpr(lambda x: probe.walk(subject.rule, w, x, velocity=velocity).state)(x0)
    except Exception as error:
        if "leak" not in str(error).lower():
            raise
        return Measured(False, "a tracer is kept after the step", "no tracer is kept")
    return Measured(True, "no tracer is kept", "no tracer is kept")


@check("no-recompilation", "a second call must not compile again", needs=("state-structure", "jit"))
def no_recompilation(subject: Subject) -> Measured:
    rule, w, traces = subject.rule, probe.weights(), []
    own = probe.own_parameters(rule)

    @jax.jit
    def step(state: Any, layer: Any, index: Any) -> Any:
        traces.append(index)
        at = Step(index * probe.H, probe.H, index, probe.DEPTH)
        return rule.step(state, lambda x: probe.branch(layer, index, x), at, own)

    x0 = probe.start()
    at = probe.place(0)
    state = rule.init(x0, probe.bound_field(w, 0), at, probe.opening_velocity(rule, x0))
    for index in range(probe.DEPTH):
        layer = jax.tree.map(lambda leaf, i=index: leaf[i], w)
        state = step(state, layer, jnp.int32(index))
    count = len(traces)
    calls = f"in {probe.DEPTH} calls"
    return Measured(count == 1, f"{count} compilations {calls}", f"1 {calls}", value=count)


@check(
    "memory-modes",
    "recomputation must see the same step, dropout masks included",
    needs=(*WALKS, "grad"),
)
def memory_modes(subject: Subject) -> Measured:
    """Gradients with dropout 0 and 0.5 in the field, every memory mode against `store`."""
    rule = subject.rule
    worst, modes, refused = 0.0, [], []
    with jax.enable_x64(True):
        w = probe.weights(2 * probe.DEPTH, dtype=jnp.float64)
        x0 = probe.start(dtype=jnp.float64)
        velocity = probe.opening_velocity(rule, x0)

        def slopes(mode: str) -> Any:
            """Gradients with everything kept, and with half of each branch dropped."""

            def loss(w: Any, x0: Any, keep: Any) -> Any:
                def noisy(layer: Any, index: Any, x: Any) -> Any:
                    key = jax.random.fold_in(jax.random.key(0), index)
                    *own, kept = layer
                    return probe.branch(own, index, x) * jax.random.bernoulli(key, kept, x.shape)

                how = {"branch": noisy, "velocity": velocity, "memory": mode}
                kept = jnp.full(len(w[0]), keep)
                return jnp.sum(jnp.sin(probe.walk(rule, (*w, kept), x0, **how).position))

            both = jax.jit(jax.grad(loss, (0, 1)))
            return [both(w, x0, keep) for keep in (1.0, 0.5)]

        reference = slopes("store")
        for mode in depth.MEMORY:
            if mode == "store":
                continue
            try:
                worst = max(worst, probe.distance(slopes(mode), reference))
                modes.append(mode)
            except PluginError:
                raise
            except ZooError:  # the mode says why it does not serve this rule
                refused.append(mode)
    said = f"{worst:.1e} apart: store, {', '.join(modes)}"
    said += f"; refused: {', '.join(refused)}" if refused else ""
    return Measured(worst <= MODES_AGREE and bool(modes), said, f"{MODES_AGREE:.0e}", value=worst)
