"""Checks of `invert`: it exists where declared, and undoes what it says to the digit it says."""

from __future__ import annotations

import functools
import math
from typing import Any

import jax
import jax.numpy as jnp

from ..contract import Integrator
from ..depth import integrate, rewind
from . import probe
from .base import Measured, Subject, check
from .transforms import WALKS
from .variants import variants

DEPTHS = (8, 32)
SMALL_H = 1 / 16
SLACK = 32
"""Rounding errors a step, in units of the last place, that the prediction allows."""
MEANINGFUL = 1e-3
"""Depths at which the predicted error is larger say nothing."""


@functools.partial(jax.jit, static_argnums=(0, 3))
def there_and_back(rule: Any, w: Any, x0: Any, shared: bool) -> tuple[Any, Any]:
    """The state before the first step, and the state after walking the depth there and back."""
    depth, velocity = len(w[0]), probe.opening_velocity(rule, x0)
    how = {"depth": depth, "h": SMALL_H, "shared": shared}
    end = integrate(rule, probe.branch, w, x0, velocity=velocity, **how).state
    at = probe.Step(0 * SMALL_H, SMALL_H, 0, depth, shared)
    start = rule.init(x0, probe.bound_field(w, 0), at, velocity)
    return start, rewind(rule, probe.branch, w, end, **how).state


def round_trip(
    rule: Integrator, depth: int, dtype: Any, shared: bool = False
) -> tuple[float, bool]:
    """The largest difference after a round trip, and whether every bit is the same."""
    w = probe.weights(depth, dtype)
    if shared:
        w = jax.tree.map(lambda leaf: jnp.broadcast_to(leaf[:1], leaf.shape), w)
    start, back = there_and_back(rule, w, probe.start(dtype=dtype), shared)
    return probe.distance(back, start), probe.same_bits(back, start)


def predicted(rule: Any, depth: int, eps: float) -> float:
    """Error of a round trip from the declared amplification a: slack eps sum_k (a + h)^k."""
    growth = rule.amplification() + SMALL_H
    return SLACK * eps * sum(growth**k for k in range(1, depth + 1))


@check("inverse-declared", "rewind and reversible memory look at the declaration")
def inverse_declared(subject: Subject) -> Measured:
    declared, has = subject.traits.inverse, hasattr(subject.rule, "invert")
    said = "invert() is defined" if has else "no invert()"
    bound = "no invert()" if declared == "none" else "invert() is defined"
    return Measured(has == (declared != "none"), said, bound, f"inverse {declared}")


def _not(kind: str) -> Any:
    return lambda rule: (
        "" if rule.traits.inverse == kind else f"declares inverse {rule.traits.inverse}"
    )


@check(
    "inverse-algebraic",
    "depth is run backward: an error may grow only as predicted",
    needs=(*WALKS, "inverse-declared"),
    unless=_not("algebraic"),
)
def inverse_algebraic(subject: Subject) -> Measured:
    """Round trips at depths 8 and 32, several settings, one field a layer and one for all."""
    worst, said, at_default, tried = -1.0, "", 0.0, 0
    with jax.enable_x64(True):
        eps = float(jnp.finfo(jnp.float64).eps)
        for rule in variants(subject.rule):
            if not math.isfinite(rule.amplification()):  # type: ignore[attr-defined]
                continue
            for depth in DEPTHS:
                expected = predicted(rule, depth, eps)
                if expected > MEANINGFUL:
                    continue
                for shared in (False, True):
                    error, _ = round_trip(rule, depth, jnp.float64, shared)
                    tried += 1
                    at_default = max(at_default, error * (rule is subject.rule))
                    if not error / expected <= worst:
                        worst = error / expected
                        said = f"{error:.1e} ({expected:.1e} predicted, {rule.spec}, depth {depth})"
    if not tried:
        return Measured(False, "no setting and depth with a predictable error", "at least one")
    return Measured(worst <= 1, said, "the predicted error", "inverse algebraic", at_default)


@check(
    "inverse-exact",
    "an exact inverse gives back every bit, at any depth",
    needs=(*WALKS, "inverse-declared"),
    unless=_not("exact"),
)
def inverse_exact(subject: Subject) -> Measured:
    worst, lost = 0.0, []
    with jax.enable_x64(True):
        for rule in variants(subject.rule):
            for dtype in (jnp.float32, jnp.float64):
                for depth in DEPTHS:
                    error, same = round_trip(rule, depth, dtype)
                    worst = max(worst, error)
                    lost += [] if same else [f"{rule.spec}, depth {depth}, {jnp.dtype(dtype).name}"]
    said = f"{worst:.1e}" + (f" ({lost[0]}, and {len(lost) - 1} more)" if lost else ", every bit")
    return Measured(not lost, said, "0, every bit", "inverse exact", worst)
