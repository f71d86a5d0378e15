"""Pictures of planar classification: accuracy, decision regions, hidden trajectories, training."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import seaborn as sns
from matplotlib.axes import Axes
from matplotlib.collections import LineCollection
from matplotlib.figure import Figure
from matplotlib.lines import Line2D
from matplotlib.ticker import MaxNLocator

from . import alive, array, by_integrator, number, over_runs, style, why

if TYPE_CHECKING:
    from ..runs.store import Record

Runs = Mapping[str, Sequence["Record"]]
Looks = Mapping[str, style.Look]
Curve = tuple["Record", np.ndarray, np.ndarray]

CERTAIN = 6.0
"""Logit difference at which the decision's colours end: a probability of 99.75 %."""
FAR = 3.0
"""A view shows at most so many times the extent that nine tenths of the points keep within."""
FIRST = "first feature of the {} (data units)"
SECOND = "second feature (data units)"
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
ZOOM = 6.0
"""The accuracy axis shows at most so many times the median integrator's error."""


def draw_all(records: Sequence[Record], folder: Path, *, dark: bool = False) -> list[Path]:
    """Draw `accuracy`, `decision`, `trajectories` and `training` as PNG; the paths written."""
    runs = by_integrator(records)
    drawings = (accuracy, decision, trajectories, training)
    return style.draw_each(drawings, runs, folder, dark)


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


def decision(runs: Runs, looks: Looks) -> Figure:
    """What each trained network says over the plane, with the recorded test points."""
    sheet = style.panels(list(runs), FIRST.format("input"), SECOND, bar=True)
    image, usual = None, min(run.seed for of in runs.values() for run in of)
    for ax, (spec, of) in zip(sheet.axes, runs.items(), strict=True):
        run, reason = _first_sound(of, "decision", 2)
        drawn = _decision(ax, run) if run is not None else None
        if drawn is None:
            sheet.blank(ax, reason or "no decision axis was recorded")
        image = drawn or image
        sheet.headline(ax, spec, looks[spec], _told(run, ("test_accuracy", "accuracy {:.2%}")))
        _other_seed(sheet, ax, run, usual)
    if image is not None:
        sheet.color_bar(image, "logit difference, second class minus first")
    line = {"color": style.ink(), "linestyle": "-", "linewidth": 1.2}
    sheet.legend({**_classes(), "decision boundary": line}, f"seed {usual}")
    return sheet.fig


def _decision(ax: Axes, run: Record) -> Any:
    """One decision region; the image, or None where the record holds none."""
    field, axis = array(run, "decision", 2), array(run, "decision_axis", 1)
    if field is None or axis is None or field.shape != (len(axis), len(axis)):
        return None
    box = (axis[0], axis[-1], axis[0], axis[-1])
    if alive(axis, 1e12) < len(axis) or box[0] >= box[1]:
        return None
    image = ax.imshow(
        np.clip(field, -1e6, 1e6), origin="lower", extent=box, cmap=style.diverging(),
        vmin=-CERTAIN, vmax=CERTAIN, interpolation="bilinear", alpha=0.75,
    )  # fmt: skip
    if np.nanmin(field) < 0 < np.nanmax(field):
        ax.contour(axis, axis, field, levels=[0], colors=[style.ink()], linewidths=1.2)
    points, labels = _test_points(run)
    for label, color in enumerate(style.CLASSES):
        ax.scatter(
            *points[labels == label].T, s=7, color=color, linewidths=0.4,
            edgecolors=ax.get_facecolor(), zorder=3,
        )  # fmt: skip
    ax.grid(False)
    ax.set(xlim=box[:2], ylim=box[2:])
    return image


def _test_points(run: Record) -> tuple[np.ndarray, np.ndarray]:
    """Recorded test points and their labels; none where the arrays do not fit together.

    A rule that keeps the stream on a manifold moves the points before its first node, so that
    `test_points`, where recorded, is what the network was given.
    """
    points, labels = array(run, "test_points", 2), array(run, "test_labels", 1)
    nodes = array(run, "nodes", 3)
    points = nodes[0] if points is None and nodes is not None else points
    if points is None or labels is None or points.shape != (len(labels), 2):
        return np.zeros((0, 2)), np.zeros(0)
    return points, labels


def trajectories(runs: Runs, looks: Looks) -> Figure:
    """The way of some test points through the layers."""
    sheet = style.panels(list(runs), FIRST.format("stream"), SECOND)
    each, usual = 24 if len(runs) <= 3 else 14, min(run.seed for of in runs.values() for run in of)
    for ax, (spec, of) in zip(sheet.axes, runs.items(), strict=True):
        run, reason = _first_sound(of, "nodes", 3)
        if run is None:
            sheet.blank(ax, reason)
        else:
            _trajectories(sheet, ax, run, each)
        told = ("path_length", "path {:.1f}"), ("turning_angle_degrees", "turn {:.0f}°/layer")
        sheet.headline(ax, spec, looks[spec], _told(run, *told))
        _other_seed(sheet, ax, run, usual)
    ends = {"color": style.ink(), "marker": "o", "ms": 4}
    sheet.legend({**_classes(), "input": {**ends, "mfc": "none"}, "output": ends}, f"seed {usual}")
    return sheet.fig


def _trajectories(sheet: style.Panels, ax: Axes, run: Record, each: int) -> None:
    nodes, labels = array(run, "nodes", 3), array(run, "test_labels", 1)
    assert nodes is not None
    nodes = nodes[: alive(nodes, 1e12), :, :2]
    if labels is None or len(labels) != nodes.shape[1]:
        labels = np.zeros(nodes.shape[1])
    for label, color in enumerate(style.CLASSES):
        mine = np.flatnonzero(labels == label)
        picked = mine[:: max(1, len(mine) // each)]
        ways = nodes[:, picked].swapaxes(0, 1)
        ax.add_collection(LineCollection(list(ways), colors=color, linewidths=0.7, alpha=0.55))
        ax.scatter(
            *ways[:, 0].T, s=8, facecolors="none", edgecolors=color, linewidths=0.7, zorder=3
        )
        ax.scatter(*ways[:, -1].T, s=9, color=color, linewidths=0, zorder=4)
    points = nodes.reshape(-1, 2)
    low, high = np.quantile(points, [0.05, 0.95], axis=0)
    if style.square(ax, points, FAR * float((high - low).max()) / 2, (low + high) / 2):
        sheet.note(ax, f"leaves the view, goes out to {np.abs(points).max():.3g}")


def _first_sound(of: Sequence[Record], name: str, rank: int) -> tuple[Record | None, str]:
    """The lowest seed that is ok and holds an array; or None, and why."""
    for run in of:
        found = array(run, name, rank) if run.status == "ok" else None
        if found is not None and alive(found, 1e12):
            return run, ""
    lost = [run for run in of if run.status != "ok"]
    return None, why(lost[0]) if lost else f"no {name} was recorded"


def _told(run: Record | None, *wanted: tuple[str, str]) -> str:
    """A line of figures about one run."""
    values = ((number(run, name), text) for name, text in wanted if run is not None)
    return ", ".join(text.format(value) for value, text in values if value is not None)


def _other_seed(sheet: style.Panels, ax: Axes, run: Record | None, usual: int) -> None:
    if run is not None and run.seed != usual:
        sheet.note(ax, f"seed {run.seed}", head=True)


def _classes() -> dict[str, dict[str, Any]]:
    dots = [{"color": color, "marker": "o", "ms": 4} for color in style.CLASSES]
    return dict(zip(("first class", "second class"), dots, strict=True))


def training(runs: Runs, looks: Looks) -> Figure:
    """Loss and test accuracy by step: mean of the sound seeds, band from least to most."""
    fig = Figure(figsize=(style.WIDTH, 5.2), layout="constrained")
    top, bottom = fig.subplots(2, 1, sharex=True)
    first = [loss[0] for of in runs.values() for run in of if alive(loss := _loss(run)[1])]
    span = (LEAST, EXPLODED * max([LEAST, *first]))
    entries: dict[str, Line2D] = {}
    missing = []
    for spec, of in runs.items():
        drawn = _curves(top, [(run, *_loss(run)) for run in of], looks[spec], span)
        drawn |= _curves(bottom, [(run, *_accuracy(run)) for run in of], looks[spec], (0.0, 100.0))
        if not drawn:
            missing.append(spec)
            continue
        lost = sum(run.status != "ok" for run in of)
        name = f"{spec} ({lost} of {len(of)} lost)" if lost else spec
        entries[name] = Line2D([], [], color=looks[spec].color, linestyle=looks[spec].dashes)
    bottom.set(xlabel="optimiser steps", ylabel="test accuracy (%)")
    top.set(ylabel="training loss (nats)", yscale="log")
    bottom.yaxis.set_major_locator(MaxNLocator(6, steps=[1, 2, 5, 10]))
    for ax in (top, bottom):
        sns.despine(ax=ax)
    style.legend(fig, entries)
    style.note_missing(bottom, missing, alone=not entries)
    return fig


def _loss(run: Record) -> tuple[np.ndarray, np.ndarray]:
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
