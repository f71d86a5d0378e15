"""Pictures of language models: loss, and the geometry of the path through depth."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np
import seaborn as sns
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.lines import Line2D
from matplotlib.ticker import MaxNLocator

from ..trajectory import shadow
from . import alive, array, by_integrator, number, over_runs, style, why
from .panels import panels

if TYPE_CHECKING:
    from ..runs.store import Record

Runs = Mapping[str, Sequence["Record"]]
Looks = Mapping[str, style.Look]

NATS = "validation loss (nats/character)"
STREAM = "units of the stream; bends alternate left and right"
DEPTH = "sub-update (attention and MLP in turn)"


def draw_all(records: Sequence[Record], folder: Path, *, dark: bool | None = None) -> list[Path]:
    """Draw every picture of a comparison; the paths written."""
    runs = by_integrator(records)
    drawings = (best_loss, validation, geometry, sub_updates, shadows, path_length)
    return style.draw_each(drawings, runs, folder, dark)


def best_loss(runs: Runs, looks: Looks) -> Figure:
    """Best validation loss of every seed, one row an integrator."""
    fig, ax = _rows(runs)
    for row, (spec, of) in enumerate(runs.items()):
        found = [number(run, "best_val_loss") for run in of if run.status != "diverged"]
        values = [value for value in found if value is not None]
        spots = np.linspace(-0.15, 0.15, len(values)) if len(values) > 1 else np.zeros(len(values))
        ax.plot(values, row + spots, "o", color=looks[spec].color, ms=5)
        words = f"{np.mean(values):.4f}" if values else why(of[0])
        _beside(ax, row, words)
    ax.set_xlabel("best " + NATS)
    return fig


def validation(runs: Runs, looks: Looks) -> Figure:
    """Validation loss over training, the mean of the seeds in a band of their range."""
    fig, ax = _plot("optimiser step", NATS)
    for spec, of in runs.items():
        curves = [
            (steps, losses)
            for run in of
            if (steps := array(run, "validation_steps", 1)) is not None
            and (losses := array(run, "validation_loss", 1)) is not None
        ]
        _band(ax, curves, looks[spec])
    _legend(fig, looks)
    return fig


def geometry(runs: Runs, looks: Looks) -> Figure:
    """Path length and turning angle at the end of training."""
    fig = Figure(figsize=(style.WIDTH, 1.2 + 0.3 * len(runs)), layout="constrained")
    pairs = (("path_length", "path length"), ("turning_angle_degrees", "turning angle (degrees)"))
    for ax, (metric, label) in zip(fig.subplots(1, 2, sharey=True), pairs, strict=True):
        for row, (spec, of) in enumerate(runs.items()):
            values = [value for run in of if (value := number(run, metric)) is not None]
            if not values:
                continue
            ax.barh(row, np.mean(values), 0.62, color=looks[spec].color, lw=0)
            if len(values) > 1:
                ax.plot(values, np.full(len(values), row), "|", color=style.ink(), ms=9)
            _beside(ax, row, f"{np.mean(values):.1f}")
        ax.set(xlabel=label, ylim=(len(runs) - 0.5, -0.5))
        ax.set_yticks(range(len(runs)), [style.plain(spec, 28) for spec in runs])
        ax.grid(False, axis="y")
        sns.despine(ax=ax)
    return fig


def sub_updates(runs: Runs, looks: Looks) -> Figure:
    """How far each sub-update moves the stream, and the velocity's norm, after training."""
    fig = Figure(figsize=(style.WIDTH, 3.1), layout="constrained")
    left, right = fig.subplots(1, 2)
    for spec, of in runs.items():
        look = looks[spec]
        for ax, name in ((left, "step_length"), (right, "velocity_norm")):
            _band(ax, _profiles(of, name), look)
    left.set(xlabel=DEPTH, ylabel="displacement")
    right.set(xlabel=DEPTH, ylabel="norm of the velocity")
    if not right.lines:
        right.set(xticks=[], yticks=[])
        style.note(right, "no rule here keeps a velocity", 0.5)
    for ax in (left, right):
        if ax.lines:
            ax.set_ylim(bottom=0)
            ax.xaxis.set_major_locator(MaxNLocator(integer=True))
        sns.despine(ax=ax)
    _legend(fig, looks)
    return fig


def shadows(runs: Runs, looks: Looks) -> Figure:
    """The two-dimensional shadow of each path: true segment lengths, true bends."""
    sheet = panels(list(runs), STREAM, "")
    for ax, (spec, of) in zip(sheet.axes, runs.items(), strict=True):
        run = of[0]
        lengths = array(run, "step_length_by_sub_update", 2)
        angles = array(run, "turning_angle_degrees_by_sub_update", 2)
        if lengths is None or angles is None or alive(lengths) < len(lengths):
            sheet.blank(ax, why(run) if run.status != "ok" else "no path was recorded")
            continue
        before, after = (shadow(lengths[at], angles[at]) for at in (0, -1))
        ax.plot(*before.T, color=style.ink(0.35), lw=1.0, marker="o", ms=2)
        ax.plot(*after.T, color=looks[spec].color, lw=1.6, marker="o", ms=3)
        ax.plot(0, 0, "o", color=style.ink(), ms=4, zorder=4)
        ax.set_aspect("equal", adjustable="datalim")
        length, turn = number(run, "path_length"), number(run, "turning_angle_degrees")
        told = f"path {length:.1f}, turn {turn:.0f}°" if None not in (length, turn) else ""
        sheet.headline(ax, spec, looks[spec], told)
    line = {"linestyle": "-", "marker": "o", "ms": 3}
    sheet.legend(
        {
            "untrained": {**line, "color": style.ink(0.35)},
            "trained": {**line, "color": style.ink()},
        },
        f"seed {min(run.seed for of in runs.values() for run in of)}",
    )
    return sheet.fig


def path_length(runs: Runs, looks: Looks) -> Figure:
    """Path length over training."""
    fig, ax = _plot("optimiser step", "path length")
    for spec, of in runs.items():
        curves = [
            (steps, lengths)
            for run in of
            if (steps := array(run, "telemetry_steps", 1)) is not None
            and (lengths := array(run, "path_length", 1)) is not None
        ]
        _band(ax, curves, looks[spec], "o")
    ax.set_ylim(bottom=0)
    _legend(fig, looks)
    return fig


def _profiles(of: Sequence[Record], name: str) -> list[tuple[np.ndarray, np.ndarray]]:
    """The last profile of each run, against the index of the sub-update from 1."""
    found = [array(run, f"{name}_by_sub_update", 2) for run in of]
    return [(np.arange(1, part.shape[1] + 1), part[-1]) for part in found if part is not None]


def _band(
    ax: Axes,
    curves: Sequence[tuple[np.ndarray, np.ndarray]],
    look: style.Look,
    marker: str | None = None,
) -> None:
    """The mean of some curves in a band from their least to their largest value."""
    sound = [(x[:n], y[:n]) for x, y in curves if (n := alive(y)) > 0]
    if not sound:
        return
    x, mean, least, most = over_runs(sound)
    ax.plot(x, mean, color=look.color, ls=look.dashes, marker=marker, ms=3.5, lw=1.5)
    if len(sound) > 1:
        ax.fill_between(x, least, most, color=look.color, alpha=0.18, lw=0)


def _plot(across: str, up: str) -> tuple[Figure, Axes]:
    fig = Figure(figsize=(style.WIDTH, 3.3), layout="constrained")
    ax = fig.add_subplot()
    ax.set(xlabel=across, ylabel=up)
    sns.despine(ax=ax)
    return fig, ax


def _rows(runs: Runs) -> tuple[Figure, Axes]:
    """Axes with one row an integrator."""
    fig = Figure(figsize=(style.WIDTH, 1.0 + 0.3 * len(runs)), layout="constrained")
    ax = fig.add_subplot()
    ax.set_ylim(len(runs) - 0.5, -0.5)
    ax.set_yticks(range(len(runs)), [style.plain(spec, 32) for spec in runs])
    sns.despine(ax=ax)
    return fig, ax


def _legend(fig: Figure, looks: Looks) -> None:
    style.legend(
        fig,
        {spec: Line2D([], [], color=look.color, ls=look.dashes) for spec, look in looks.items()},
    )


def _beside(ax: Axes, row: int, words: str) -> None:
    """A few words at the right of a row."""
    ax.annotate(
        words, (1, row), (4, 0), xycoords=("axes fraction", "data"), textcoords="offset points",
        va="center", fontsize=7.5, annotation_clip=False,
    )  # fmt: skip
