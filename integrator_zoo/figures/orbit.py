"""Pictures of orbits: where each integrator takes the planet, its energy, its order."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import seaborn as sns
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.lines import Line2D
from matplotlib.text import Text

from . import alive, array, by_integrator, number, style, why
from .animation import Growing
from .panels import Panels, one_scale, panels, square

if TYPE_CHECKING:
    from ..runs.store import Record

VIEW = 3.0
"""A panel shows at most so many times the reach of the exact orbit to each side."""
LOST = 1e6
"""Beyond so many times that reach the planet is no longer followed."""
TINY = 1e-30
"""Errors and steps below, and zeros, are left out of the log axes."""
EXACT = (0, (4, 2))
"""Dashes of the exact orbit."""
SUN = {"color": "#f2b01e", "marker": "o", "markersize": 6}
WINDOWS = 400
"""Energy is drawn as the largest deviation in each of so many windows."""


def draw_all(records: Sequence[Record], folder: Path, *, dark: bool | None = None) -> list[Path]:
    """Draw `orbits` and `order` into a folder; the paths written."""
    runs = {spec: of[0] for spec, of in by_integrator(records).items()}
    return style.draw_each((orbits, order), runs, folder, dark)


def orbits(runs: dict[str, Record], looks: dict[str, style.Look]) -> Figure:
    """One panel an integrator: its orbit over the exact one, about the sun; below, the energy."""
    return orbits_growing(runs, looks)[0].fig


def orbits_growing(
    runs: dict[str, Record], looks: dict[str, style.Look]
) -> tuple[Panels, Text, list[Growing]]:
    """The picture `orbits`, its remark, and its lines that grow with time."""
    sheet = panels(list(runs), "x (length units)", "y (length units)", foot=list(runs))
    grown: list[Growing] = []
    for ax, (spec, run) in zip(sheet.axes, runs.items(), strict=True):
        reach = _orbit(sheet, ax, run, looks[spec], grown)
        sheet.headline(ax, spec, looks[spec], _far(reach))
    one_scale(sheet.axes)
    entries = {
        "exact orbit": {"color": style.ink(0.6), "linestyle": EXACT, "linewidth": 1.6},
        "sun": SUN,
        "planet": {"color": style.ink(), "marker": "o", "markersize": 3.5},
    }
    if any(run.status != "ok" for run in runs.values()):
        entries["lost"] = {"color": style.ink(), "marker": "X", "markersize": 6}
    assert sheet.foot is not None
    sheet.names(_energy(sheet.foot, runs, looks, grown))
    return sheet, sheet.legend(entries), grown


def _far(reach: float | None) -> str:
    if reach is None:
        return ""
    return f"farthest reach {reach:.3f}" if reach < 1000 else f"farthest reach {reach:.3g}"


def _orbit(
    sheet: Panels, ax: Axes, run: Record, look: style.Look, grown: list[Growing]
) -> float | None:
    """Draw one orbit; how far it went, or None where there is nothing to draw."""
    x, exact = array(run, "x", 2), array(run, "exact", 2)
    known = exact is not None and alive(exact) == len(exact)
    size = np.linalg.norm(exact, axis=1).max() if exact is not None and known else 0.0
    if x is None or exact is None or not size:
        sheet.blank(ax, why(run) if run.status != "ok" else "no orbit was recorded")
        return None
    lived = alive(x, LOST * size)
    if lived == 0:
        sheet.blank(ax, why(run))
        return None
    x = x[:lived]
    radius = np.linalg.norm(x, axis=1)
    reach = number(run, "farthest_reach") or float(radius.max())
    ax.plot(*_once(run, exact).T, color=style.ink(0.6), linestyle=EXACT, linewidth=1.6, zorder=2)
    shown = x * np.minimum(1.0, 50 * size / np.maximum(radius, 1e-300))[:, None]
    (trail,) = ax.plot(*shown.T, color=look.color, linewidth=0.7, alpha=0.85, zorder=3)
    ax.plot(0, 0, **SUN, zorder=4)
    lost = run.status != "ok"
    mark: dict[str, Any] = {"marker": "X" if lost else "o", "markersize": 6 if lost else 3.5}
    (head,) = ax.plot(*shown[-1:].T, ls="", color=style.ink(), zorder=5, **mark)
    times = array(run, "times", 1)
    if times is not None and len(times) >= lived:
        grown.append(Growing(trail, times[:lived], head))
    clips = square(ax, np.concatenate([x, exact]), VIEW * size, (0, 0))
    if lost:
        sheet.note(ax, why(run), head=bool(shown[-1, 1] < np.mean(ax.get_ylim())))
    elif clips:
        sheet.note(ax, f"leaves the view, goes out to {reach:.4g}")
    return reach


def _once(run: Record, exact: np.ndarray) -> np.ndarray:
    """The first revolution: dashes drawn over and over would make a solid line."""
    times, period = array(run, "times", 1), number(run, "period")
    if times is None or period is None or len(times) != len(exact):
        return exact
    return exact[: int(np.searchsorted(times, period)) + 1]


def _energy(
    ax: Axes, runs: dict[str, Record], looks: dict[str, style.Look], grown: list[Growing]
) -> dict[str, Line2D]:
    """Relative deviation of the energy against time; the lines by name, the highest first."""
    ends: dict[str, tuple[float, Line2D]] = {}
    missing = []
    for spec, run in runs.items():
        times, deviation = array(run, "times", 1), array(run, "energy_deviation", 1)
        if times is None or deviation is None or len(times) != len(deviation):
            missing.append(spec)
            continue
        period = number(run, "period") or 1.0
        turns = times / period
        lived = min(alive(deviation), alive(times))
        t, size = _envelope(turns[:lived], np.abs(deviation[:lived]))
        if not len(t):
            missing.append(spec)
            continue
        look = looks[spec]
        sns.lineplot(x=t, y=size, ax=ax, color=look.color, linestyle=look.dashes, linewidth=1.2,
                     estimator=None)  # fmt: skip
        grown.append(Growing(ax.lines[-1], t * period))
        lost = run.status != "ok"
        if lost:
            ax.plot(t[-1], size[-1], "X", color=look.color, markersize=7)
        handle = Line2D([], [], color=look.color, linestyle=look.dashes)
        ends[f"{spec} ({run.status})" if lost else spec] = (size[-1], handle)
    timed = any(number(run, "period") for run in runs.values())
    ax.set(
        yscale="log",
        xlabel="time (orbits)" if timed else "time (time units)",
        ylabel="relative energy deviation",
    )
    _log_limits(ax, 1e-16, 1e3)
    style.note_missing(ax, missing, alone=not ends)
    highest_first = sorted(ends.items(), key=lambda end: -end[1][0])
    return {name: handle for name, (_, handle) in highest_first}


def _envelope(times: np.ndarray, values: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """The largest value in each window of time: zero crossings would hide all else on a log axis.

    A deviation of zero has no place on that axis and is left out.
    """
    if not len(times):
        return times, values
    starts = np.unique(np.linspace(0, len(times), WINDOWS + 1).astype(int)[:-1])
    largest, middle = np.maximum.reduceat(values, starts), times[starts]
    return middle[largest > 0], largest[largest > 0]


def order(runs: dict[str, Record], looks: dict[str, style.Look]) -> Figure:
    """Relative error against the step, with the fitted slopes."""
    fig = Figure(figsize=(style.WIDTH, 4.0), layout="constrained")
    ax = fig.add_subplot()
    sns.despine(ax=ax)
    entries: dict[str, Line2D] = {}
    missing, sloped = [], []
    for spec, run in runs.items():
        steps, errors = _errors(run)
        if not len(steps):
            missing.append(spec)
            continue
        look, slope = looks[spec], number(run, "observed_order")
        drawn: dict[str, Any] = {"color": look.color, "linestyle": look.dashes, "linewidth": 1.1}
        drawn |= {"marker": look.marker, "markersize": 4, "markeredgewidth": 0}
        sns.lineplot(x=steps, y=errors, ax=ax, estimator=None, **drawn)
        entries[f"{'none' if slope is None else f'{slope:.2f}'}, {spec}"] = Line2D([], [], **drawn)
        if slope is not None and 0.5 < slope < 20:
            sloped.append((slope, steps, errors))
    ax.set(xscale="log", yscale="log", xlabel="step size (time units)")
    ax.set_ylabel("relative error of the position")
    ax.margins(x=0.03)
    _log_limits(ax, 1e-15, 1e2)
    _triangles(ax, sloped)
    style.legend(fig, entries, "fitted slope, integrator")
    style.note_missing(ax, missing, alone=not entries)
    return fig


def _errors(run: Record) -> tuple[np.ndarray, np.ndarray]:
    """Step sizes and errors, where they were measured and have a place on a log axis."""
    steps, errors = array(run, "order_steps", 1), array(run, "order_errors", 1)
    if steps is None or errors is None or len(steps) != len(errors):
        return np.zeros(0), np.zeros(0)
    good = np.isfinite(errors) & (errors > TINY) & (errors < LOST) & (steps > TINY) & (steps < LOST)
    return steps[good], errors[good]


def _triangles(ax: Axes, sloped: Sequence[tuple[float, np.ndarray, np.ndarray]]) -> None:
    """A triangle for each whole order that was found, under the most accurate curve that has it."""
    for p in sorted({round(slope) for slope, *_ in sloped}):
        near = [(steps, errors) for slope, steps, errors in sloped if abs(slope - p) < 0.3]
        corners = [_corner(steps, errors) for steps, errors in near]
        if not corners:
            continue
        x, y = min(corners, key=lambda corner: corner[1] / corner[0] ** p)
        wide, y = 10 ** min(0.45, 1.6 / p), y / 3.5
        ax.fill([x, x * wide, x * wide], [y, y, y * wide**p], facecolor=style.ink(0.06),
                edgecolor=style.ink(0.45), linewidth=0.7, zorder=1)  # fmt: skip
        place = (x * wide, y * wide ** (p / 2))
        ax.annotate(f"{p}", place, (3, 0), textcoords="offset points", va="center", fontsize=7,
                    color=style.ink(0.8), bbox=style.ground())  # fmt: skip


def _corner(steps: np.ndarray, errors: np.ndarray) -> tuple[float, float]:
    """A point of a curve low on its straight part, where a triangle has room."""
    small = np.argsort(steps)
    at = small[len(small) // 4]
    return float(steps[at]), float(errors[at])


def _log_limits(ax: Axes, least: float, most: float) -> None:
    """Limits of what is drawn, on a log axis; an empty axis and an explosion stay readable."""
    drawn = [np.asarray(line.get_ydata(), float) for line in ax.lines]
    values = np.concatenate([*drawn, np.zeros(0)])
    values = values if values.size else np.ones(1)
    low, high = np.clip([values.min(), values.max()], least, most)
    ax.set_ylim(low / 2, max(high, 10 * low) * 2)
