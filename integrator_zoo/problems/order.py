"""The order of accuracy, measured."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from ..contract import Integrator
from .catalogue import Problem
from .solve import final_positions

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
    counts = np.unique(np.round(2 ** np.arange(2, np.log2(most) + 0.25, 0.5)).astype(int))
    spans = span * np.linspace(1, 2, 7)
    targets = problem.exact(spans)
    sizes = np.linalg.norm(targets, axis=1)
    errors = np.full(len(counts), np.nan)
    with np.errstate(all="ignore"):
        for i, count in enumerate(counts):
            ends = final_positions(rule, problem, spans / count, int(count))
            gaps = np.linalg.norm(ends - targets, axis=1)
            errors[i] = np.exp(np.mean(np.log(gaps / sizes + 1e-300)))
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
