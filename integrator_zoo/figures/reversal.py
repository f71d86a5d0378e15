"""Pictures of depth undone: the error of a rewind, and what each memory mode costs."""

from __future__ import annotations

import re
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
from matplotlib.figure import Figure

from . import array, by_integrator, number, style

if TYPE_CHECKING:
    from ..runs.store import Record

WAYS = {"float32": "-", "mixed": ":", "float64": (0, (5, 1.2))}
MODES = {"store": "o", "remat": "s", "reversible": "^", "exact": "D"}
GREY = "0.6"


def draw_rewind(records: Sequence[Record], folder: Path, *, dark: bool = False) -> list[Path]:
    """`rewind.png`: error against layers undone, a panel a rule, the law in grey."""
    runs = [of[0] for of in by_integrator(records).values() if of[0].status == "ok"]
    if not runs:
        return []
    with style.theme(dark):
        looks = style.looks([run.integrator for run in runs], dark=dark)
        fig = Figure(figsize=(2.6 * len(runs), 2.8), layout="constrained")
        shown: dict[str, Any] = {}
        for run, ax in zip(runs, fig.subplots(1, len(runs), squeeze=False)[0], strict=True):
            for way, dashes in WAYS.items():
                errors = array(run, f"error_{way}", 1)
                if errors is None:
                    continue
                errors, undone = errors[::-1], np.arange(len(errors))
                drawn = np.isfinite(errors) & (errors > 0)
                color = looks[run.integrator].color
                (shown[way],) = ax.plot(undone[drawn], errors[drawn], color=color, ls=dashes)
                law = number(run, "law_per_layer")
                if way == "float32" and law is not None and drawn[-1]:
                    line = errors[-1] * law ** (undone - undone[-1])
                    (shown["law"],) = ax.plot(undone, line, color=GREY, zorder=0)
            ax.set(yscale="log", title=style.plain(run.integrator), xlabel="layers undone")
        fig.axes[0].set_ylabel("largest error")
        style.legend(fig, shown)
        return [style.save(fig, folder, "rewind.png")]


def draw_memory(records: Sequence[Record], folder: Path, *, dark: bool = False) -> list[Path]:
    """`memory-SPEC.png`: temporary memory, step time and gradient cosine against depth."""
    runs = [of[0] for of in by_integrator(records).values() if of[0].status == "ok"]
    with style.theme(dark):
        return [_memory(run, folder) for run in runs]


def _memory(run: Record, folder: Path) -> Path:
    quantities = {
        "temp_mb": "temporary memory, MB",
        "step_seconds": "seconds a step",
        "cosine": "cosine with 64-bit",
    }
    fig = Figure(figsize=(style.WIDTH, 2.8), layout="constrained")
    depths, shown = array(run, "depths", 1), {}
    for (name, heading), ax in zip(quantities.items(), fig.subplots(1, 3), strict=True):
        for mode, marker in MODES.items():
            values = array(run, f"{name}_{mode}", 1)
            if depths is not None and values is not None:
                (shown[mode],) = ax.plot(depths, values, marker=marker, ms=3.5)
        ax.set(xscale="log", xlabel="depth", title=heading)
        ax.set_yscale("linear" if name == "cosine" else "log")
    safe = number(run, "safe_depth")
    if safe is not None:
        shown["no digit left"] = fig.axes[2].axvline(safe, color=GREY, zorder=0)
    style.legend(fig, shown)
    return style.save(fig, folder, f"memory-{re.sub(r'[^a-z0-9.]+', '-', run.integrator)}.png")
