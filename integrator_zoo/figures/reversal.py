"""Pictures of depth undone: the error of a rewind, and what each memory mode costs."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
from matplotlib.figure import Figure

DASHES = {"float32": "-", "mixed": ":", "float64": "--"}
MARKERS = {"store": "o", "remat": "s", "reversible": "^", "exact": "D"}


def draw_all(records: Sequence[Any], folder: Path, name: str, draw: Any, panels: int) -> list[Path]:
    """One picture of the records that are ok; none where there are none."""
    good = [record for record in records if record.status == "ok"]
    if not good:
        return []
    figure = Figure(figsize=(3.6 * panels, 3.4), layout="constrained")
    draw(good, figure.subplots(1, panels, squeeze=False)[0])
    folder.mkdir(parents=True, exist_ok=True)
    path = folder / f"{name}.png"
    figure.savefig(path, dpi=150)
    return [path]


def draw_rewind(records: Sequence[Any], folder: Path) -> list[Path]:
    """Error against layers undone, one panel a rule, with the law as a grey line."""
    return draw_all(records, folder, "rewind", _rewind, len(records))


def _rewind(records: Sequence[Any], axes: Any) -> None:
    for record, axis in zip(records, axes, strict=False):
        for way, dashes in DASHES.items():
            errors = np.asarray(record.arrays[f"error_{way}"])[::-1]
            undone = np.arange(len(errors))
            axis.semilogy(undone[errors > 0], errors[errors > 0], dashes, color="C0", label=way)
            if way == "float32":
                law = errors[-1] * record.metrics["law_per_layer"] ** (undone - undone[-1])
                axis.semilogy(undone, law, color="0.7", zorder=0, label="law")
        axis.set(title=record.integrator, xlabel="layers undone", ylabel="largest error")
    axes[0].legend(frameon=False)


def draw_memory(records: Sequence[Any], folder: Path) -> list[Path]:
    """Temporary memory, step time and gradient cosine against depth, one picture a rule."""
    paths = []
    for record in records:
        name = "memory-" + record.integrator.replace(":", "-").replace("=", "")
        paths += draw_all([record], folder, name, _memory, 3)
    return paths


def _memory(records: Sequence[Any], axes: Any) -> None:
    (record,) = records
    arrays = record.arrays
    headings = {
        "temp_mb": "temporary memory, MB",
        "step_seconds": "seconds a step",
        "cosine": "cosine with the 64-bit gradient",
    }
    for (quantity, heading), axis in zip(headings.items(), axes, strict=True):
        for mode, marker in MARKERS.items():
            axis.plot(arrays["depths"], arrays[f"{quantity}_{mode}"], marker=marker, label=mode)
        axis.set(xscale="log", xlabel="depth", title=heading)
        axis.set_yscale("linear" if quantity == "cosine" else "log")
    safe = record.metrics.get("safe_depth")
    if safe is not None:
        axes[2].axvline(safe, color="0.7", zorder=0, label="predicted safe depth")
    axes[2].legend(frameon=False)
