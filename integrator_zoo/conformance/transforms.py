"""Checks under JAX's transformations: jit, scan, vmap, grad, memory modes, leaks, retracing."""

from __future__ import annotations

import sys
from collections import deque
from collections.abc import Mapping
from types import CellType, FunctionType
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jax.core import Tracer

from ..contract import Integrator, Step
from . import probe
from .base import Measured, Subject, check

ROUNDING = 1e-12
"""Two orders of the same 64-bit arithmetic agree to this, on a few steps of size-1 numbers."""
ROUNDING_32 = 1e-5
"""The same for 32-bit arithmetic."""
SLOPE = 1e-6
"""Bound of a derivative beside differences, relative."""
WALKS = ("scan", "dtype-float64")
"""What must hold before a walk through depth in 64-bit says anything else."""


def _agree(gap: float, bound: float = ROUNDING) -> Measured:
    return Measured(gap <= bound, f"{gap:.1e} apart", f"{bound:.0e}", value=gap)


@check("jit", "compiled and eager steps are the same step", needs=("state-structure",))
def jit(subject: Subject) -> Measured:
    rule, x0, own = subject.rule, probe.start(), probe.own_parameters(subject.rule)
    field, at = probe.bound_field(probe.weights(), 0), probe.place(0)
    state = rule.init(x0, field, at, probe.opening_velocity(rule, x0))
    compiled = jax.jit(lambda state: rule.step(state, field, at, own))(state)
    return _agree(probe.distance(compiled, rule.step(state, field, at, own)), ROUNDING_32)


@check("scan", "depth is a compiled loop: index and time are traced", needs=("jit",))
def scan(subject: Subject) -> Measured:
    w, x0 = probe.weights(), probe.start()
    how = {"velocity": probe.opening_velocity(subject.rule, x0)}
    looped = probe.walk(subject.rule, w, x0, **how).state
    return _agree(probe.distance(probe.by_hand(subject.rule, w, x0, **how), looped), ROUNDING_32)


@check("shapes", "streams come as [D], [batch, D], [batch, time, D]", needs=("scan",))
def shapes(subject: Subject) -> Measured:
    said = []
    for shape in ((probe.WIDTH,), (2, probe.WIDTH), (2, 3, probe.WIDTH)):
        got = _traced_path(subject, probe.start(*shape)).shape
        said += [] if got[1:] == shape else [f"{list(shape)} to {list(got[1:])}"]
    return Measured(not said, "; ".join(said) or "kept for 1, 2 and 3 axes", "kept")


def _traced_path(subject: Subject, x0: Any) -> Any:
    """Shape and dtype of all nodes, without computing them."""
    w, velocity = probe.weights(dtype=x0.dtype), probe.opening_velocity(subject.rule, x0)

    def nodes(w: Any, x0: Any) -> Any:
        path = probe.walk(subject.rule, w, x0, velocity=velocity, collect=True).trajectory
        return path.nodes

    return jax.eval_shape(nodes, w, x0)


def _dtype(subject: Subject, dtype: Any) -> Measured:
    with jax.enable_x64(True):
        kept = _traced_path(subject, probe.start(dtype=dtype)).dtype
    name = jnp.dtype(dtype).name
    return Measured(kept == dtype, f"{kept.name}", name)


@check("dtype-bfloat16", "one silent promotion undoes mixed precision", needs=("scan",))
def dtype_bfloat16(subject: Subject) -> Measured:
    return _dtype(subject, jnp.bfloat16)


@check("dtype-float32", "the dtype of most networks, also while 64-bit is on", needs=("scan",))
def dtype_float32(subject: Subject) -> Measured:
    return _dtype(subject, jnp.float32)


@check("dtype-float64", "a silent cast down spoils 64-bit references", needs=("scan",))
def dtype_float64(subject: Subject) -> Measured:
    return _dtype(subject, jnp.float64)


@check("vmap", "a point's path does not depend on its batch", needs=WALKS)
def vmap(subject: Subject) -> Measured:
    with jax.enable_x64(True):
        w = probe.weights(2, dtype=jnp.float64)
        points = probe.start(probe.BATCH, probe.WIDTH, dtype=jnp.float64)
        speed = probe.opening_velocity(subject.rule, points)

        def end(x0: Any, v0: Any) -> Any:
            return probe.walk(subject.rule, w, x0, velocity=v0).position

        alone = jax.vmap(end, in_axes=(0, None if speed is None else 0))(points, speed)
        return _agree(probe.distance(alone, end(points, speed)))


def slopes(subject: Subject, mode: str) -> Any:
    """(w, x0, keep) -> value and gradients of a loss, in 64-bit, under a memory mode.

    `keep` is the share of each branch that dropout keeps; the masks belong to the sub-updates.
    """
    rule = subject.rule

    def loss(w: Any, x0: Any, keep: Any) -> Any:
        def noisy(layer: Any, index: Any, x: Any) -> Any:
            *own, kept = layer
            key = jax.random.fold_in(jax.random.key(0), index)
            return probe.branch(own, index, x) * jax.random.bernoulli(key, kept, x.shape)

        velocity = probe.opening_velocity(rule, x0)
        how = {"branch": noisy, "velocity": velocity, "memory": mode}
        kept = jnp.full(len(w[0]), keep)
        return jnp.sum(jnp.sin(probe.walk(rule, (*w, kept), x0, **how).position))

    return subject.once(f"slopes {mode}", lambda: jax.jit(jax.value_and_grad(loss, (0, 1))))


def case_64() -> Any:
    """Weights and a start in 64-bit, as numpy arrays."""
    w, x0 = probe.weights(dtype=jnp.float64), probe.start(dtype=jnp.float64)
    return jax.tree.map(np.asarray, (w, x0))


@check("grad", "training follows the derivative of the step", needs=WALKS)
def grad(subject: Subject) -> Measured:
    with jax.enable_x64(True):
        case, both = case_64(), slopes(subject, "store")
        toward = jax.tree.map(lambda a: np.cos(np.arange(a.size)).reshape(a.shape), case)

        def shifted(by: float) -> float:
            return float(both(*jax.tree.map(lambda a, t: a + by * t, case, toward), 1.0)[0])

        slope = jax.tree.map(np.vdot, both(*case, 1.0)[1], toward)
        along = sum(map(float, jax.tree.leaves(slope)))
        eps = 1e-3  # fourth-order differences: truncation and rounding both near 1e-12
        numeric = 8 * (shifted(eps) - shifted(-eps)) - (shifted(2 * eps) - shifted(-2 * eps))
        gap = abs(along - numeric / (12 * eps)) / max(1.0, abs(along))
    return Measured(gap <= SLOPE, f"{gap:.1e} off differences", f"{SLOPE:.0e}", value=gap)


@check("no-leak", "a value kept from inside a compiled step breaks the next one", needs=("scan",))
def no_leak(subject: Subject) -> Measured:
    """Tracers that the rule, its class or its module hold after tracing.

    JAX's own checker, and a count of all living tracers, also report what a solver library caches.
    """
    w, x0 = probe.weights(), probe.start()
    velocity = probe.opening_velocity(subject.rule, x0)
    before = _held_tracers(subject.rule)
    jax.make_jaxpr(lambda x: probe.walk(subject.rule, w, x, velocity=velocity).state)(x0)
    kept = len(_held_tracers(subject.rule) - before)
    said = f"{kept} tracers kept" if kept else "no tracer is kept"
    return Measured(not kept, said, "no tracer is kept", value=kept)


def _held_tracers(rule: Integrator) -> set[int]:
    """The tracers in reach of a rule's own variables: attributes, closures, globals."""
    homes = {base.__module__ for base in type(rule).__mro__} - {"builtins", "abc"}
    reach: list[Any] = [rule, *(vars(sys.modules[home]) for home in homes if home in sys.modules)]
    reach += [vars(base) for base in type(rule).__mro__]  # a class may be local to a function
    seen, found = set(), set()
    while reach:
        thing = reach.pop()
        if id(thing) in seen:
            continue
        seen.add(id(thing))
        if isinstance(thing, Tracer):
            found.add(id(thing))
        elif isinstance(thing, Mapping):
            reach += thing.values()
        elif isinstance(thing, (list, tuple, set, frozenset, deque)):
            reach += thing
        elif isinstance(thing, FunctionType):
            cells = [cell for cell in thing.__closure__ or () if cell != CellType()]
            reach += [*(cell.cell_contents for cell in cells), thing.__defaults__, vars(thing)]
        elif (thing if isinstance(thing, type) else type(thing)).__module__ in homes:
            reach += [getattr(thing, "__dict__", None)]
    return found


@check("no-recompilation", "a second call must not compile again", needs=("scan",))
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
