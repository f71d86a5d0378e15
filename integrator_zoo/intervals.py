"""Honest numbers from few runs: an estimate with its 95 % interval, and how it was got.

Nothing here is our own statistics: the intervals are scipy's.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

LEVEL = 0.95
LEVEL_TEXT = "95 %"
RESAMPLES = 10_000
FEW = 5
"""Below so many values a bootstrap interval says little: the range is given instead."""


@dataclass(frozen=True)
class Interval:
    """A value between bounds."""

    value: float
    low: float
    high: float
    kind: str = "95 %"
    """What the bounds are: `95 %`, `range` (of all values) or `exact` (no chance in it)."""
    count: int = 1
    """Values it was made from."""

    def show(self, form: str = ".4g", scale: float = 1.0) -> str:
        """As `99.61 (99.46 to 99.80, range of 3)`; the value alone where nothing is uncertain."""
        text = format(self.value * scale, form)
        if self.kind == "exact":
            return text
        ends = f"{format(self.low * scale, form)} to {format(self.high * scale, form)}"
        return f"{text} ({ends}, {self.kind} of {self.count})"


def exact(value: float, count: int = 1) -> Interval:
    """A number in which there is no chance."""
    return Interval(float(value), float(value), float(value), "exact", count)


def proportion(hits: int, of: int) -> Interval:
    """hits / of with the exact binomial interval (Clopper and Pearson 1934)."""
    from scipy.stats import binomtest

    if of < 1:
        return Interval(math.nan, 0.0, 1.0, LEVEL_TEXT, 0)
    ends = binomtest(hits, of).proportion_ci(LEVEL, "exact")
    return Interval(hits / of, float(ends.low), float(ends.high), LEVEL_TEXT, of)


def mean(values: Sequence[float] | np.ndarray) -> Interval:
    """Mean over runs: bootstrapped from `FEW` values on, below that with their range."""
    found = np.asarray(values, float)
    if not len(found) or not np.isfinite(found).all():
        return Interval(math.nan, math.nan, math.nan, "range", len(found))
    middle = float(found.mean())
    if len(found) == 1:
        return exact(middle)
    if len(found) < FEW or np.ptp(found) == 0:
        return Interval(middle, float(found.min()), float(found.max()), "range", len(found))
    from scipy.stats import bootstrap

    ends = bootstrap(
        (found,), np.mean, confidence_level=LEVEL, n_resamples=RESAMPLES, method="BCa", rng=0
    ).confidence_interval
    return Interval(middle, float(ends.low), float(ends.high), LEVEL_TEXT, len(found))


def difference(first: Sequence[float], second: Sequence[float]) -> Interval:
    """Mean of second - first, paired: entry i of both is the same seed and the same data."""
    if len(first) != len(second):
        raise ValueError(f"{len(first)} values cannot be paired with {len(second)}")
    return mean(np.asarray(second, float) - np.asarray(first, float))


def effect(first: Sequence[float], second: Sequence[float]) -> float | None:
    """Paired difference over its own standard deviation between seeds; None where that is zero."""
    gaps = np.asarray(second, float) - np.asarray(first, float)
    noise = gaps.std(ddof=1) if len(gaps) > 1 else 0.0
    return float(gaps.mean() / noise) if noise > 0 else None
