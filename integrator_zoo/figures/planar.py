"""Pictures of planar classification: accuracy, the ceiling, training; those of the plane."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np
import seaborn as sns
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.lines import Line2D

from . import alive, array, by_integrator, number, over_runs, style
from .plane import Looks, Runs, decision, keeps_velocity, layers, ledger, trajectories

if TYPE_CHECKING:
    from ..runs.store import Record

Curve = tuple["Record", np.ndarray, np.ndarray]

LEAST = 1e-12
"""A smaller training loss, such as one rounded to zero, is drawn as this one."""
EXPLODED = 100.0
"""The loss axis ends at so many times the first loss."""
MARKS = {
    "o": ("one seed", 4.5),
    "|": ("mean of the seeds", 11),
    "<": ("below the axis", 5),
    "X": ("diverged or failed", 6),
}
WIDENED = "test accuracy (%), wider near 100"
ZOOM = 6.0
"""The accuracy axis shows at most so many times the median integrator's error."""


def draw_all(records: Sequence[Record], folder: Path, *, dark: bool | None = None) -> list[Path]:
    """Draw the pictures of a comparison; the paths written.

    Runs of several depths give `ceiling`; all other pictures show those of the greatest depth.
    """
    deepest = max(map(depth, records), default=0)
    deep = by_integrator(run for run in records if depth(run) == deepest)
    drawings = [accuracy, decision, trajectories, layers, training]
    drawings += [ledger] if any(map(keeps_velocity, deep.values())) else []
    above = draw_overview(records, folder, dark=dark)
    return above + style.draw_each(drawings, deep, folder, dark)


def draw_overview(
    records: Sequence[Record], folder: Path, *, dark: bool | None = None
) -> list[Path]:
    """Draw `ceiling`, where the runs are of several depths; the paths written."""
    several = len({depth(run) for run in records}) > 1
    return style.draw_each([ceiling] if several else [], by_integrator(records), folder, dark)


def depth(run: Record) -> int:
    """How many layers a run's network has; 0 where its config does not tell."""
    return int(run.config["settings"].get("depth", 0))


def accuracy(runs: Runs, looks: Looks) -> Figure:
    """Test accuracy of every seed, one row an integrator, with the mean of the sound runs."""
    fig = Figure(figsize=(style.WIDTH, 1.3 + 0.26 * len(runs)), layout="constrained")
    ax = fig.add_subplot()
    least = _zoom([value for of in runs.values() for value in _sound(of)])
    ax.axvline(100, color=style.ink(0.6), linewidth=1, linestyle=(0, (4, 2)))
    used = set[str]()
    for row, (spec, of) in enumerate(runs.items()):
        used |= _row(ax, row, of, looks[spec], least)
    ax.set(xlim=(least, 100 + 0.04 * (100 - least)), ylim=(len(runs) - 0.5, -0.5))
    ax.set_yticks(range(len(runs)), [style.plain(spec, 32) for spec in runs])
    ax.set(xlabel="test accuracy (%)", ylabel="")
    sns.despine(ax=ax)
    drawn = {"color": style.ink(), "ls": "", "mew": 1.5}
    marks = [(mark, name, size) for mark, (name, size) in MARKS.items() if mark in used]
    style.legend(fig, {name: Line2D([], [], marker=m, ms=size, **drawn) for m, name, size in marks})
    return fig


def _sound(of: Sequence[Record]) -> list[float]:
    """Test accuracies of the runs that are ok, in percent."""
    values = [number(run, "test_accuracy") for run in of if run.status == "ok"]
    return [100 * min(max(value, 0.0), 1.0) for value in values if value is not None]


def _zoom(values: Sequence[float]) -> float:
    """Where the accuracy axis starts: so that one untrained run does not squeeze all others."""
    if not values:
        return 0.0
    error = 100 - np.array(values)
    shown = error[error <= max(ZOOM * float(np.median(error)), 1.0)]
    return 100 - max(1.12 * float(shown.max()), 0.2)


def _row(ax: Axes, row: int, of: Sequence[Record], look: style.Look, least: float) -> set[str]:
    """The seeds of one integrator, and their mean in figures at the right; the marks used."""
    sound = _sound(of)
    lost = [run for run in of if run.status != "ok"]
    seen = [value for value in sound if value >= least]
    if seen:
        spots = np.linspace(-0.18, 0.18, len(seen)) if len(seen) > 1 else np.zeros(1)
        sns.scatterplot(x=seen, y=row + spots, ax=ax, color=look.color, s=22, alpha=0.8, zorder=3)
    edge = {"color": look.color, "clip_on": False, "zorder": 4, "ls": ""}
    if len(seen) < len(sound):
        ax.plot(least, row, "<", markersize=6, **edge)
    for run in lost:
        value = 100 * (number(run, "test_accuracy") or 0.0)
        ax.plot(np.clip(value, least, 100), row, "X", markersize=7, **edge)
    averaged = len(sound) > 1 and np.mean(sound) >= least
    if averaged:
        ax.plot(np.mean(sound), row, "|", color=style.ink(), markersize=13, mew=1.5, zorder=2)
    words = [f"{np.mean(sound):.2f} %"] if sound else []
    stati = [run.status for run in lost]
    words += [f"{stati.count(what)} {what}" for what in sorted(set(stati))]
    ax.annotate(
        ", ".join(words), (1, row), (6, 0), xycoords=("axes fraction", "data"),
        textcoords="offset points", va="center", fontsize=7.5, annotation_clip=False,
    )  # fmt: skip
    used = {"o": seen, "|": averaged, "<": len(seen) < len(sound), "X": lost}
    return {mark for mark, there in used.items() if there}


def ceiling(runs: Runs, looks: Looks) -> Figure:
    """Test accuracy of every seed against depth, under the line of 100 %."""
    fig = Figure(figsize=(style.WIDTH, 3.6), layout="constrained")
    ax = fig.add_subplot()
    depths = sorted({depth(run) for of in runs.values() for run in of})
    wide = 0.8 / len(runs)
    values = [value for of in runs.values() for value in _sound(of)]
    entries: dict[str, Line2D] = {}
    for i, (spec, of) in enumerate(runs.items()):
        look, place = looks[spec], (i + 0.5) * wide - 0.4
        means = []
        for at, size in enumerate(depths):
            here = [run for run in of if depth(run) == size]
            sound = _sound(here)
            spread = np.linspace(-0.3, 0.3, len(sound)) if len(sound) > 1 else np.zeros(len(sound))
            ax.plot(at + place + wide * spread, sound, "o", color=look.color, ms=4, alpha=0.7)
            if sound:
                means.append((at + place, np.mean(sound)))
            if len(sound) < len(here):
                ax.plot(at + place, 0, "X", color=look.color, ms=7, clip_on=False,
                        transform=ax.get_xaxis_transform())  # fmt: skip
        ax.plot(*np.array(means).reshape(-1, 2).T, color=look.color, ls=look.dashes, lw=1.2)
        entries[spec] = Line2D([], [], color=look.color, ls=look.dashes, marker="o", ms=4)
    style.near_hundred(ax, _percent_floor(values))
    ax.axhline(100, color=style.ink(0.6), linewidth=1, linestyle=(0, (4, 2)), clip_on=False)
    ax.set_xticks(range(len(depths)), [f"{size:,}" for size in depths])
    ax.set(xlabel="depth (layers); dots are seeds, lines their means", ylabel=WIDENED)
    ax.grid(False, axis="x")
    sns.despine(ax=ax)
    style.legend(fig, entries)
    return fig


def _percent_floor(values: Sequence[float]) -> float:
    """Where an axis that ends at 100 % starts."""
    missing = 100 - min(values, default=0.0)
    return max(0.0, 100 - max(1.25 * missing, 1.0))


def training(runs: Runs, looks: Looks) -> Figure:
    """Loss and test accuracy by step: mean of the sound seeds, band from least to most."""
    fig = Figure(figsize=(style.WIDTH, 5.2), layout="constrained")
    top, bottom = fig.subplots(2, 1, sharex=True)
    first = [loss[0] for of in runs.values() for run in of if alive(loss := loss_curve(run)[1])]
    span = (LEAST, EXPLODED * max([LEAST, *first]))
    entries: dict[str, Line2D] = {}
    missing = []
    for spec, of in runs.items():
        drawn = _curves(top, [(run, *loss_curve(run)) for run in of], looks[spec], span)
        drawn |= _curves(bottom, [(run, *_accuracy(run)) for run in of], looks[spec], (0.0, 100.0))
        if not drawn:
            missing.append(spec)
            continue
        lost = sum(run.status != "ok" for run in of)
        name = f"{spec} ({lost} of {len(of)} lost)" if lost else spec
        entries[name] = Line2D([], [], color=looks[spec].color, linestyle=looks[spec].dashes)
    bottom.set(xlabel="optimiser steps", ylabel=WIDENED)
    top.set(ylabel="training loss (nats)", yscale="log")
    reached = [y for line in bottom.lines for y in np.asarray(line.get_ydata(), float)]
    style.near_hundred(bottom, max(_percent_floor(reached), 0.0))
    for ax in (top, bottom):
        sns.despine(ax=ax)
    style.legend(fig, entries)
    style.note_missing(bottom, missing, alone=not entries)
    return fig


def loss_curve(run: Record) -> tuple[np.ndarray, np.ndarray]:
    """Steps and training loss."""
    return _by_step(run, "loss_steps", "loss")


def _accuracy(run: Record) -> tuple[np.ndarray, np.ndarray]:
    steps, values = _by_step(run, "curve_steps", "accuracy_by_step")
    return steps, 100 * values


def _by_step(run: Record, at: str, name: str) -> tuple[np.ndarray, np.ndarray]:
    """A recorded curve; empty where the record lacks it or its parts do not fit."""
    steps, values = array(run, at, 1), array(run, name, 1)
    if steps is None or values is None or len(steps) != len(values):
        return np.zeros(0), np.zeros(0)
    return steps, values


def _curves(ax: Axes, curves: Sequence[Curve], look: style.Look, span: tuple[float, float]) -> bool:
    """Mean and band of the sound runs, each lost run up to its end; whether any was drawn."""
    cut = [(run, x[: alive(y)], np.clip(y[: alive(y)], *span)) for run, x, y in curves]
    sound = [(x, y) for run, x, y in cut if run.status == "ok" and len(x)]
    lost = [(x, y) for run, x, y in cut if run.status != "ok" and len(x)]
    drawn = {"color": look.color, "linestyle": look.dashes, "estimator": None, "ax": ax}
    if sound:
        steps, mean, low, high = over_runs(sound)
        if len(sound) > 1:
            ax.fill_between(steps, low, high, color=look.color, alpha=0.18, linewidth=0)
        sns.lineplot(x=steps, y=mean, linewidth=1.3, **drawn)
    for x, y in lost:
        sns.lineplot(x=x, y=y, linewidth=0.8, **drawn)
        ax.plot(x[-1], y[-1], "X", color=look.color, markersize=7, clip_on=False)
    return bool(sound or lost)
