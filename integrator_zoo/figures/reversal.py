"""Pictures of depth undone: the way back, its error, and what each memory mode costs."""

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
from matplotlib.ticker import FixedLocator, LogLocator, NullLocator

from . import alive, array, by_integrator, number, style, why
from .panels import panels
from .plane import FIRST, SECOND, frame

if TYPE_CHECKING:
    from ..runs.store import Record

Runs = Mapping[str, "Record"]
Looks = Mapping[str, style.Look]

WAYS = {"float32": "-", "mixed": ":", "float64": (0, (5, 1.2))}
NAMES = {"float32": "float32", "mixed": "float32, back in float64", "float64": "float64"}
MODES = {"store": ("o", "-"), "remat": ("s", ":"), "reversible": ("^", (0, (5, 1.2))),
         "exact": ("D", (0, (5, 1.2, 1.4, 1.2)))}  # fmt: skip
"""Marker and dashes of each memory mode; the colour is the integrator's."""
QUANTITIES = {
    "temp_mb": "temporary memory (MB)",
    "step_seconds": "time of a gradient (ms)",
    "cosine": "cosine with 64-bit",
}
DRAWN = 16
"""Points of each class that are drawn on their way back."""


def draw_rewind(records: Sequence[Record], folder: Path, *, dark: bool | None = None) -> list[Path]:
    """Draw `rewind` and `precision` into a folder; the paths written."""
    return style.draw_each((rewind, precision), _first(records), folder, dark)


def draw_memory(records: Sequence[Record], folder: Path, *, dark: bool | None = None) -> list[Path]:
    """Draw `memory` into a folder; the paths written."""
    return style.draw_each((memory,), _first(records), folder, dark)


def _first(records: Sequence[Record]) -> dict[str, Record]:
    return {spec: of[0] for spec, of in by_integrator(records).items()}


def rewind(runs: Runs, looks: Looks) -> Figure:
    """The way of some points forward and, undone, back; below, the error of the way back."""
    sheet = panels(list(runs), FIRST.format("stream"), SECOND, foot=list(runs))
    assert sheet.foot is not None
    lines: dict[str, Any] = {}
    for ax, (spec, run) in zip(sheet.axes, runs.items(), strict=True):
        look, error = looks[spec], number(run, "rewind_error_float32")
        there, back = array(run, "nodes", 3), array(run, "nodes_back", 3)
        if there is None or back is None:
            sheet.blank(ax, why(run) if run.status != "ok" else "no way back was recorded")
        else:
            _way_back(ax, there, back, look)
        told = "" if error is None else f"off the input by {error:.2g}"
        sheet.headline(ax, spec, look, told)
        undone, errors = errors_undone(run, "float32")
        if len(undone):
            sheet.foot.plot(undone, errors, color=look.color, ls=look.dashes, lw=1.3)
            _law(sheet.foot, run, look.color)
            lines[spec] = Line2D([], [], color=look.color, ls=look.dashes)
    lines["law of the rule"] = Line2D([], [], color=style.ink(0.6), ls=":")
    error_axis(sheet.foot)
    sheet.names(lines)
    sheet.legend(
        {
            "forward": {"color": style.ink(0.4), "linestyle": "-", "lw": 1.6},
            "back": {"color": style.ink(), "linestyle": "-", "lw": 0.8},
            "input": {"color": style.ink(0.7), "marker": "o", "ms": 5, "mfc": "none"},
            "recovered": {"color": style.ink(), "marker": "o", "ms": 2.5},
        },
        "float32",
    )
    return sheet.fig


def _way_back(ax: Axes, there: np.ndarray, back: np.ndarray, look: style.Look) -> None:
    picked = np.linspace(0, there.shape[1] - 1, min(2 * DRAWN, there.shape[1])).astype(int)
    there, back = there[:, picked, :2], back[:, picked, :2]
    sound = len(back) - alive(back[::-1], 1e6)
    back = back[sound:]
    ways = list(there.swapaxes(0, 1))
    ax.add_collection(LineCollection(ways, colors=[style.ink(0.3)], linewidths=1.6))
    back_ways = list(back.swapaxes(0, 1))
    ax.add_collection(LineCollection(back_ways, colors=look.color, linewidths=0.8, zorder=3))
    ring = {"s": 22, "facecolors": "none", "linewidths": 0.8, "zorder": 4}
    ax.scatter(*there[0].T, edgecolors=[style.ink(0.7)], **ring)
    if len(back):
        ax.scatter(*back[0].T, s=6, color=look.color, linewidths=0, zorder=5)
    frame(ax, there)


def errors_undone(run: Record, way: str) -> tuple[np.ndarray, np.ndarray]:
    """Layers undone and the error after each, where it has a place on a log axis."""
    errors = array(run, f"error_{way}", 1)
    if errors is None:
        return np.zeros(0), np.zeros(0)
    errors, undone = errors[::-1], np.arange(len(errors))
    drawn = np.isfinite(errors) & (errors > 0)
    return undone[drawn], errors[drawn]


def error_axis(ax: Axes) -> None:
    """Label axes of the error against the layers undone."""
    ax.set(yscale="log", xlabel="layers undone", ylabel="largest error (data units)")


def _law(ax: Axes, run: Record, color: Any) -> None:
    """The growth that the rule's own amplification predicts, through the last error."""
    undone, errors = errors_undone(run, "float32")
    law = number(run, "law_per_layer")
    if law is not None and len(undone):
        line = errors[-1] * law ** (undone - undone[-1].astype(float))
        ax.plot(undone, line, color=color, ls=":", lw=0.9, zorder=1)


def precision(runs: Runs, looks: Looks) -> Figure:
    """The error of the way back in each precision, a panel an integrator."""
    sheet = panels(list(runs), "layers undone", "largest error (data units)")
    for ax, (spec, run) in zip(sheet.axes, runs.items(), strict=True):
        sheet.headline(ax, spec, looks[spec], _growth(run))
        if not len(errors_undone(run, "float64")[0]):
            sheet.blank(ax, why(run) if run.status != "ok" else "no error was recorded")
            continue
        for way, dashes in WAYS.items():
            ax.plot(*errors_undone(run, way), color=looks[spec].color, ls=dashes, lw=1.3)
        _law(ax, run, style.ink(0.6))
        ax.set(yscale="log")
    drawn = {NAMES[way]: {"color": style.ink(), "linestyle": ls} for way, ls in WAYS.items()}
    sheet.legend({**drawn, "law of the rule": {"color": style.ink(0.6), "linestyle": ":"}})
    return sheet.fig


def _growth(run: Record) -> str:
    found, law = number(run, "growth_per_layer"), number(run, "law_per_layer")
    return "" if found is None or law is None else f"x {found:.2f} a layer, law {law:.2f}"


def memory(runs: Runs, looks: Looks) -> Figure:
    """Memory, time and fidelity of the gradient against depth, one row an integrator."""
    fig = Figure(figsize=(style.WIDTH, 0.5 + 1.75 * len(runs)), layout="constrained")
    rows = fig.subplots(len(runs), len(QUANTITIES), squeeze=False, sharex=True)
    for column, (name, heading) in enumerate(QUANTITIES.items()):
        for ax, (spec, run) in zip(rows[:, column], runs.items(), strict=True):
            _modes(ax, run, name, looks[spec].color)
            ax.set_xscale("log")
            depths = array(run, "depths", 1)
            ax.xaxis.set_major_locator(FixedLocator([] if depths is None else list(depths)))
            ax.set_ylabel(style.plain(spec, 22, 3) if column == 0 else "", fontweight="bold")
            for axis in (ax.xaxis, ax.yaxis):
                axis.set_minor_locator(NullLocator())
                axis.set_major_formatter(lambda value, _: f"{value:.3g}")
            sns.despine(ax=ax)
        rows[0, column].set_title(heading)
        rows[-1, column].set_xlabel("depth (layers)")
    marks = {mode: Line2D([], [], color=style.ink(), marker=marker, ls=dashes, ms=3.5)
             for mode, (marker, dashes) in MODES.items()}  # fmt: skip
    marks["no digit left"] = Line2D([], [], color=style.ink(0.4), lw=3)
    style.legend(fig, marks, above=True)
    return fig


def _modes(ax: Axes, run: Record, name: str, color: Any) -> None:
    """One quantity of one integrator, in every memory mode."""
    depths, scale = array(run, "depths", 1), 1000 if name == "step_seconds" else 1
    for mode, (marker, dashes) in MODES.items():
        values = array(run, f"{name}_{mode}", 1)
        if depths is None or values is None or len(values) != len(depths):
            continue
        ax.plot(depths, scale * values, color=color, marker=marker, ls=dashes, ms=3.5, lw=1.1)
    if not ax.lines:
        style.note(ax, why(run) if run.status != "ok" else "not recorded", 0.5, 26)
    if name != "cosine":
        ax.set_yscale("log")
        ax.yaxis.set_major_locator(LogLocator(subs=(1.0, 2.0, 5.0), numticks=6))
        return
    ax.set_ylim(-0.08, 1.08)
    safe = number(run, "safe_depth")
    if depths is not None and safe is not None and safe <= 2 * depths.max():
        ax.axvline(safe, color=style.ink(0.4), lw=3, alpha=0.5, zorder=0)
