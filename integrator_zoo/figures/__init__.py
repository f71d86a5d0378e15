"""The pictures of a comparison, and how they read records.

Each experiment has its module with a `draw_all(records, folder)`. A run that diverged or failed may
lack any array, or hold numbers that are not finite: it is marked in the picture, never an error.
"""

from __future__ import annotations

import zipfile
from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING

import numpy as np

if TYPE_CHECKING:
    from ..runs.store import Record

LARGE = 1e150
"""What is larger counts as infinite: its square would be."""


def by_integrator(records: Iterable[Record]) -> dict[str, list[Record]]:
    """The records of each spec, in the order given, lowest seed first."""
    found: dict[str, list[Record]] = {}
    for record in records:
        found.setdefault(record.integrator, []).append(record)
    return {spec: sorted(runs, key=lambda run: run.seed) for spec, runs in found.items()}


def array(record: Record, name: str, ndim: int) -> np.ndarray | None:
    """A recorded array in float64; None where it is missing, empty or of another rank."""
    try:
        found = record.arrays.get(name)
    except (OSError, ValueError, zipfile.BadZipFile):
        return None
    if found is None or found.ndim != ndim or not found.size:
        return None
    return np.asarray(found, np.float64)


def number(record: Record, name: str) -> float | None:
    """A finite metric or fact; None where there is none."""
    value = record.metrics.get(name, record.facts.get(name))
    return float(value) if isinstance(value, (int, float)) and np.isfinite(value) else None


def alive(values: np.ndarray, most: float = np.inf) -> int:
    """How many leading rows are finite and at most `most` in size: what came before the end."""
    rows = np.abs(values).max(tuple(range(1, values.ndim)))  # a NaN makes its row NaN
    with np.errstate(invalid="ignore"):
        bad = ~(rows <= min(most, LARGE))
    return int(np.argmax(bad)) if bad.any() else len(values)


def why(record: Record) -> str:
    """The status of a run that is not ok, with its reason."""
    return f"{record.status}: {record.reason}" if record.reason else record.status


def over_runs(curves: Sequence[tuple[np.ndarray, np.ndarray]]) -> np.ndarray:
    """Steps, mean, least and largest value [4, steps] of curves whose steps may differ."""
    grid = np.unique(np.concatenate([x for x, _ in curves]))
    stack = np.full((len(curves), len(grid)), np.nan)
    for row, (x, y) in zip(stack, curves, strict=True):
        row[np.searchsorted(grid, x)] = y
    return np.stack([grid, np.nanmean(stack, 0), np.nanmin(stack, 0), np.nanmax(stack, 0)])
