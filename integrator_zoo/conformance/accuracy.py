"""Checks against exact solutions and counters: consistency, order, cost."""

from __future__ import annotations

from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from ..contract import Integrator
from ..depth import count_evaluations
from ..problems import OrderFit, evaluations_per_step, fitting, observed_order, solve
from . import probe
from .base import Measured, Subject, check
from .transforms import ROUNDING, WALKS

SPAN, MOST_STEPS = 3.0, 32768
ORDER_WITHIN = 0.2
FOLLOWS = 1e-2
"""Relative error allowed to a rule without an order, which follows the flow to a tolerance."""


def order_fit(subject: Subject) -> OrderFit:
    """The errors on the fitting problem, measured once."""
    problem = fitting(subject.traits)
    return subject.once(
        "order fit", lambda: observed_order(subject.rule, problem, SPAN, MOST_STEPS)
    )


def _no_order(rule: Integrator) -> str:
    return "declares no order: it follows the flow to a tolerance" * (rule.traits.order is None)


@check(
    "consistency",
    "as h goes to 0 the path must become that of the field itself",
    needs=(*WALKS, "start"),
)
def consistency(subject: Subject) -> Measured:
    if subject.traits.order is None:
        error = float(solve(subject.rule, fitting(subject.traits), SPAN / 16, 16).error[-1])
        return Measured(error <= FOLLOWS, f"{error:.1e} off the flow", f"{FOLLOWS:.0e}", "", error)
    errors = order_fit(subject).errors
    errors = errors[: np.flatnonzero(~np.isnan(errors)).max(initial=-1) + 1]
    if len(errors) == 0:
        return Measured(False, "not finite", "errors that shrink")
    last, before = float(errors[-1]), float(errors[max(0, len(errors) - 9)])
    shrinks = last <= before / 2 or last <= 1e-11
    said = f"{before:.1e} to {last:.1e} as h shrinks 16-fold"
    return Measured(shrinks, said, "at most half", value=last)


@check(
    "order",
    "error against work is what an order promises; the start counts too",
    needs=("consistency",),
    unless=_no_order,
)
def order(subject: Subject) -> Measured:
    declared = subject.traits.order
    assert declared is not None
    slope = order_fit(subject).order
    if slope is None:
        return Measured(False, "too few asymptotic errors", f"within {ORDER_WITHIN}", str(declared))
    low, high = declared - ORDER_WITHIN, declared + ORDER_WITHIN
    bound = f"{low:.1f} to {high:.1f}"
    return Measured(low <= slope <= high, f"{slope:.3f}", bound, str(declared), slope)


def _counted(declared: int, counted: float) -> Measured:
    return Measured(
        counted == declared, f"{counted:g} a step", f"{declared}", str(declared), counted
    )


@check(
    "evaluations",
    "field evaluations are the cost that comparisons are made at",
    needs=WALKS,
    unless=lambda rule: "declares that they vary" * (rule.traits.evaluations is None),
)
def evaluations(subject: Subject) -> Measured:
    rule, count = subject.rule, 4

    def run(depth: int, marker: Any) -> Any:
        w, x0 = probe.weights(depth), probe.start()

        def marked(layer: Any, index: Any, x: Any) -> Any:
            return marker(probe.branch(layer, index, x))

        velocity = probe.opening_velocity(rule, x0)
        walk = jax.jit(
            lambda w, x0: probe.walk(rule, w, x0, branch=marked, velocity=velocity).state
        )
        return walk(w, x0)

    twice = count_evaluations(lambda marker: run(2 * count, marker))
    once = count_evaluations(lambda marker: run(count, marker))
    assert subject.traits.evaluations is not None
    return _counted(subject.traits.evaluations, (twice - once) / count)


@check(
    "evaluations-shared",
    "on an orbit a force may be used twice, and is then counted once",
    needs=WALKS,
    unless=lambda rule: "declares that they vary" * (rule.traits.evaluations_shared is None),
)
def evaluations_shared(subject: Subject) -> Measured:
    assert subject.traits.evaluations_shared is not None
    counted = evaluations_per_step(subject.rule, fitting(subject.traits), 0.05)
    return _counted(subject.traits.evaluations_shared, counted)


@check("shared-field", "reusing a shared field's force must not change the path", needs=WALKS)
def shared_field(subject: Subject) -> Measured:
    with jax.enable_x64(True):
        w, x0 = probe.weights(2, dtype=jnp.float64), probe.start(dtype=jnp.float64)
        w = jax.tree.map(lambda leaf: jnp.broadcast_to(leaf[:1], leaf.shape), w)
        velocity = probe.opening_velocity(subject.rule, x0)
        ends = [
            probe.walk(subject.rule, w, x0, velocity=velocity, shared=shared).position
            for shared in (True, False)
        ]
    gap = probe.distance(*ends)
    return Measured(gap <= ROUNDING, f"{gap:.1e} apart", f"{ROUNDING:.0e}", value=gap)
