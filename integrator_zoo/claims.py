"""Published claims as data: what was said, how it is measured from runs, and what counts as held.

A claim asks for runs, measures one number on their records and holds where that number lies within
its bounds. Nothing is judged by eye, and no run is trained here.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Literal

import numpy as np

from .intervals import Interval, exact, mean, proportion

Verdict = Literal["holds", "differs", "not run"]
Effort = Literal["minutes", "hours", "days"]
"""What the runs of a claim cost on two cores."""
EFFORTS: tuple[Effort, ...] = ("minutes", "hours", "days")

Groups = Sequence[Sequence[Any]]
"""The records of each request, in the order of the requests."""


@dataclass(frozen=True)
class Request:
    """Runs that are needed: an experiment with settings, under one integrator, seeds from 0."""

    experiment: str
    integrator: str
    seeds: int = 1
    preset: str | None = None
    settings: Mapping[str, Any] = field(default_factory=dict, hash=False)

    def command(self) -> str:
        """The command that does these runs."""
        words = ["zoo compare", self.experiment, f"-i {self.integrator}", f"--seeds {self.seeds}"]
        words += [f"--preset {self.preset}"] if self.preset else []
        return " ".join([*words, *(f"--set {key}={value}" for key, value in self.settings.items())])


@dataclass(frozen=True)
class Claim:
    """One published figure, and the bounds within which ours must lie."""

    id: str
    statement: str
    published: float
    low: float
    high: float
    why: str
    """Where the bounds come from."""
    requests: tuple[Request, ...]
    measure: Callable[[Groups], Interval]
    form: str = ".4g"
    scale: float = 1.0
    """Factor from the measured number to the unit of the statement."""
    effort: Effort = "minutes"
    remark: str = ""
    """What else a reader should know, such as where published sources disagree."""

    def judge(self, groups: Groups | None) -> Judgement:
        """The verdict on records; `not run` where they are missing."""
        if groups is None or not all(groups):
            return Judgement(self, None, "not run")
        if bad := [r for group in groups for r in group if r.status not in ("ok", "stopped")]:
            found, why = None, f"{bad[0].integrator}, seed {bad[0].seed}: {bad[0].status}"
            return Judgement(self, found, "differs", why)
        found = self.measure(groups)
        holds = self.low <= found.value <= self.high  # a NaN does not hold
        return Judgement(self, found, "holds" if holds else "differs")

    def shown(self, value: float) -> str:
        """A number in the claim's unit."""
        return "never" if math.isinf(value) else format(value * self.scale, self.form)

    def accepted(self) -> str:
        """The bounds in words."""
        low, high = self.shown(self.low), self.shown(self.high)
        if math.isinf(self.high):
            return f"at least {low}"
        if math.isinf(self.low):
            return f"at most {high}"
        return low if self.low == self.high else f"{low} to {high}"


@dataclass(frozen=True)
class Judgement:
    """A claim held against records."""

    claim: Claim
    measured: Interval | None
    verdict: Verdict
    reason: str = ""

    def ours(self) -> str:
        """The measured number with its interval."""
        if self.measured is None:
            return self.reason or "-"
        if math.isinf(self.measured.value):
            return "never"
        return self.measured.show(self.claim.form, self.claim.scale)

    def as_json(self) -> dict[str, Any]:
        """What `zoo reproduce --json` prints of it."""
        found = self.measured
        return {
            "id": self.claim.id,
            "statement": self.claim.statement,
            "published": self.claim.published,
            "accepted": [self.claim.low, self.claim.high],
            "measured": found and found.value,
            "interval": found and [found.low, found.high],
            "interval_kind": found and found.kind,
            "verdict": self.verdict,
        }


@dataclass(frozen=True)
class Study:
    """A question, the runs that answer it, and the page that says what was measured."""

    name: str
    title: str
    question: str
    requests: tuple[Request, ...]
    report: Callable[[Groups, Path], Sequence[str]]
    """report(groups, folder) draws its pictures into the folder and gives the page's lines."""


def near(published: float, relative: float) -> tuple[float, float]:
    """Bounds about a published figure."""
    reach = abs(published) * relative
    return published - reach, published + reach


def within_factor(published: float, factor: float) -> tuple[float, float]:
    """Bounds from published / factor to published times factor."""
    return published / factor, published * factor


@dataclass(frozen=True)
class Mean:
    """Mean over seeds of a metric, or of one entry of a metric by step."""

    metric: str
    key: str | None = None

    def __call__(self, groups: Groups) -> Interval:
        return mean(values(groups[0], self.metric, self.key))


@dataclass(frozen=True)
class Share:
    """How many of the seeds reach a bound."""

    metric: str
    at_least: float

    def __call__(self, groups: Groups) -> Interval:
        found = values(groups[0], self.metric)
        return proportion(sum(value >= self.at_least for value in found), len(found))


@dataclass(frozen=True)
class Ratio:
    """A metric of the first request over that of the second, paired by seed."""

    metric: str
    key: str | None = None

    def __call__(self, groups: Groups) -> Interval:
        above, below = (np.array(values(group, self.metric, self.key)) for group in groups[:2])
        with np.errstate(all="ignore"):
            return mean(above / below)


@dataclass(frozen=True)
class Range:
    """Greatest minus least mean of a metric over the requests."""

    metric: str

    def __call__(self, groups: Groups) -> Interval:
        means = [float(np.mean(values(group, self.metric))) for group in groups]
        return exact(max(means) - min(means), len(means))


@dataclass(frozen=True)
class Rank:
    """Place, from 1 for the greatest, of the first request's mean among all requests'."""

    metric: str

    def __call__(self, groups: Groups) -> Interval:
        means = [float(np.mean(values(group, self.metric))) for group in groups]
        return exact(1 + sum(other > means[0] for other in means[1:]), len(means))


@dataclass(frozen=True)
class Separation:
    """Distance between the ends of the first runs of two requests."""

    metrics: tuple[str, ...]

    def __call__(self, groups: Groups) -> Interval:
        one, other = ([group[0].metrics[name] for name in self.metrics] for group in groups[:2])
        return exact(math.dist(one, other))


@dataclass(frozen=True)
class FirstReach:
    """Step at which a recorded curve first reaches a level; infinite where it never does."""

    curve: str
    steps: str
    level: float

    def __call__(self, groups: Groups) -> Interval:
        found = []
        for record in groups[0]:
            reached = np.asarray(record.arrays[self.curve]) >= self.level
            steps = np.asarray(record.arrays[self.steps])
            found.append(float(steps[np.argmax(reached)]) if reached.any() else math.inf)
        if not np.isfinite(found).all():
            return Interval(math.inf, min(found), math.inf, "range", len(found))
        return mean(found)


@dataclass(frozen=True)
class Growth:
    """Last over first entry of a recorded array."""

    array: str

    def __call__(self, groups: Groups) -> Interval:
        curves = [np.asarray(record.arrays[self.array], float) for record in groups[0]]
        return mean([float(curve[-1] / curve[0]) for curve in curves])


@dataclass(frozen=True)
class Entry:
    """One entry of a recorded array."""

    array: str
    index: int

    def __call__(self, groups: Groups) -> Interval:
        return mean([float(record.arrays[self.array][self.index]) for record in groups[0]])


@dataclass(frozen=True)
class Monotony:
    """Spearman's rank correlation of the last row of a recorded array with its index."""

    array: str

    def __call__(self, groups: Groups) -> Interval:
        from scipy.stats import spearmanr

        rows = [np.asarray(record.arrays[self.array], float)[-1] for record in groups[0]]
        ranks: list[Any] = [spearmanr(np.arange(len(row)), row) for row in rows]
        return mean([float(rank.statistic) for rank in ranks])


def values(records: Sequence[Any], metric: str, key: str | None = None) -> list[float]:
    """A metric of each record; NaN where it was not recorded."""
    found = [record.metrics.get(metric) for record in records]
    if key is not None:
        found = [(by_step or {}).get(key) for by_step in found]
    return [math.nan if value is None else float(value) for value in found]
