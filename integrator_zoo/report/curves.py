"""The curves of a run, over depth, training or time, as plain JSON values.

A new experiment is shown as well where its arrays are named so: `..._by_sub_update` or
`..._by_node` [sub-updates or nodes], or one such row for each of `telemetry_steps`.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from typing import TYPE_CHECKING, Any

import numpy as np

from ..figures import array
from .paths import SAMPLES, rounded, thinned

if TYPE_CHECKING:
    from ..runs.store import Record

DEPTH, STEP, TIME = "sub-update", "optimiser step", "time"
MEMORY = tuple(f"temp_mb_{mode}" for mode in ("store", "remat", "reversible", "exact"))
SERIES = (
    ("loss_steps", "loss", STEP, "training loss (nats)"),
    ("curve_steps", "accuracy_by_step", STEP, "test accuracy (0 to 1)"),
    ("validation_steps", "validation_loss", STEP, "validation loss (nats/character)"),
    ("telemetry_steps", "path_length", STEP, "path length"),
    ("telemetry_steps", "mean_turning_angle_degrees", STEP, "turning angle (degrees)"),
    ("telemetry_steps", "straightness", STEP, "straightness (0 to 1)"),
    ("times", "energy_deviation", TIME, "relative energy deviation"),
    *(("depths", name, "depth", f"{name[8:]}: temporary memory (MB)") for name in MEMORY),
)
"""(array of x, array of y, what x is, heading of y with its unit)."""
BY_DEPTH = re.compile(r"(.+)_by_(?:sub_update|node)")
REWIND = re.compile(r"error_(float32|float64|mixed)")
WIDE = 100.0
"""A quantity whose largest value is so many times its smallest is drawn on a logarithmic axis."""


def curves(run: Record) -> dict[str, dict[str, Any]]:
    """Every curve of a run by its heading.

    Returns:
        `across`: what x is; `x`; `rows`: y [x], for each of `steps` (training steps; none where
        only the end was recorded).
    """
    return dict((*_by_depth(run), *_series(run)))


def logarithmic(found: Iterable[dict[str, Any]]) -> bool:
    """Whether a quantity, over all its curves, is positive and runs over orders of magnitude."""
    values = [y for curve in found for row in curve["rows"] for y in row if y is not None]
    return bool(values) and min(values) > 0 and max(values) > WIDE * min(values)


def _by_depth(run: Record) -> Iterator[tuple[str, dict[str, Any]]]:
    steps = array(run, "telemetry_steps", 1)
    lengths = _rows(run, "step_length_by_sub_update")
    for name in sorted(run.arrays):
        heading, rows = _heading(name), _rows(run, name)
        if heading is None or rows is None:
            continue
        if steps is not None and len(rows) != len(steps):
            continue
        # a quantity of the nodes starts at node 0; one of the sub-updates, or of the bends
        # between them, at 1
        nodes = lengths is None or rows.shape[1] > lengths.shape[1]
        yield (
            heading,
            {
                "across": DEPTH,
                "x": [at + (not nodes) for at in range(rows.shape[1])],
                "steps": [] if steps is None else steps.astype(int).tolist(),
                "rows": rounded(rows),
            },
        )


def _rows(run: Record, name: str) -> np.ndarray | None:
    """A quantity by depth as [steps, n]; one step where only the end was recorded."""
    rows = array(run, name, 2)
    flat = array(run, name, 1)
    return flat[None] if rows is None and flat is not None else rows


def _heading(name: str) -> str | None:
    """What a quantity by depth is called, with its unit; None for another array."""
    if found := REWIND.fullmatch(name):
        return f"rewind error, {found[1]}"
    if not (found := BY_DEPTH.fullmatch(name)):
        return None
    words, degrees, _ = found[1].replace("_", " ").partition(" degrees")
    return f"{words} by depth" + " (degrees)" * bool(degrees)


def _series(run: Record) -> Iterator[tuple[str, dict[str, Any]]]:
    for at, name, across, heading in SERIES:
        x, y = array(run, at, 1), array(run, name, 1)
        if x is None and y is not None and at == "loss_steps":  # of every step
            x = np.arange(len(y))
        if x is None or y is None or len(x) != len(y):
            continue
        kept = thinned(len(x), SAMPLES)
        yield (
            heading,
            {"across": across, "x": rounded(x[kept]), "steps": [], "rows": [rounded(y[kept])]},
        )
