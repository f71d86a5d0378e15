"""Many runs as tables: one row a run for other tools, one row a cell with its intervals."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from ..intervals import Interval, difference, effect, proportion
from ..lab import Column
from .store import Record

if TYPE_CHECKING:
    from pandas import DataFrame


def tidy(records: Sequence[Record]) -> DataFrame:
    """One row a run: experiment, settings, integrator, seed, status, metrics, seconds, folder."""
    from pandas import DataFrame

    return DataFrame([
        {
            "experiment": record.config["experiment"],
            **record.config["settings"],
            "integrator": record.integrator,
            "seed": record.seed,
            "status": record.status,
            **{k: v for k, v in record.metrics.items() if not isinstance(v, Mapping)},
            **record.data["seconds"],
            "run": str(record.folder),
        }
        for record in records
    ])  # fmt: skip


@dataclass(frozen=True)
class Cell:
    """One integrator in one setting, over seeds, and its difference from the setting's first."""

    experiment: str
    settings: tuple[tuple[str, Any], ...]
    """Those that vary in the table."""
    integrator: str
    runs: int
    diverged: int
    parameters: float | None
    evaluations: float | None
    mean: float | None
    low: float | None
    high: float | None
    """Least and greatest over seeds."""
    pooled: Interval | None
    """Of a share: all trials of all seeds together, exact binomial."""
    perfect: int | None
    """Of a share: seeds in which every trial succeeded."""
    against: Interval | None
    """Mean paired difference from the first integrator of the setting."""
    effect: float | None
    """That difference over its standard deviation between seeds."""

    def as_json(self) -> dict[str, Any]:
        """Flat, for a table."""
        flat = {"experiment": self.experiment, **dict(self.settings)}
        for name in ("integrator", "runs", "diverged", "parameters", "evaluations"):
            flat[name] = getattr(self, name)
        flat |= {"mean": self.mean, "min": self.low, "max": self.high, "perfect": self.perfect}
        for name in ("pooled", "against"):
            found: Interval | None = getattr(self, name)
            flat[f"{name}_low"] = found and found.low
            flat[f"{name}_high"] = found and found.high
        return flat | {"difference": self.against and self.against.value, "effect": self.effect}


def cells(records: Sequence[Record], column: Column) -> list[Cell]:
    """The runs grouped by experiment, varying settings and integrator, in the order given."""
    varying = [
        key
        for key in dict.fromkeys(key for r in records for key in r.config["settings"])
        if len({str(r.config["settings"].get(key)) for r in records}) > 1
    ]
    groups: dict[Any, dict[str, list[Record]]] = {}
    for record in records:
        place = tuple((key, record.config["settings"].get(key)) for key in varying)
        setting = groups.setdefault((record.config["experiment"], place), {})
        setting.setdefault(record.integrator, []).append(record)
    made = []
    for (experiment, place), rows in groups.items():
        first = next(iter(rows.values()))
        made += [_cell(experiment, place, runs, first, column) for runs in rows.values()]
    return made


def _cell(
    experiment: str, place: Any, runs: list[Record], first: list[Record], column: Column
) -> Cell:
    by_seed = _by_seed(runs, column.metric)
    found = list(by_seed.values())
    trials = column.trials and runs[0].config["settings"].get(column.trials)
    hits = [round(value * trials) for value in found] if trials else None
    other = _by_seed(first, column.metric)
    seeds = [seed for seed in by_seed if seed in other] if runs is not first else []
    pair = [other[seed] for seed in seeds], [by_seed[seed] for seed in seeds]
    return Cell(
        experiment,
        place,
        runs[0].integrator,
        len(runs),
        len(runs) - len(found),
        runs[0].metrics.get("parameters"),
        runs[0].metrics.get("evaluations_per_step"),
        sum(found) / len(found) if found else None,
        min(found, default=None),
        max(found, default=None),
        proportion(sum(hits), trials * len(hits)) if hits and trials else None,
        sum(hit == trials for hit in hits) if hits is not None else None,
        difference(*pair) if seeds else None,
        effect(*pair) if seeds else None,
    )


def _by_seed(runs: Sequence[Record], metric: str) -> dict[int, float]:
    """The metric of each run that came to its end."""
    good = (record for record in runs if record.status in ("ok", "stopped"))
    return {r.seed: r.metrics[metric] for r in good if r.metrics.get(metric) is not None}


def unequal(cells: Sequence[Cell]) -> set[Cell]:
    """Cells whose parameters or field evaluations differ from their setting's first one."""
    costs: dict[Any, tuple[float | None, float | None]] = {}
    for cell in cells:
        costs.setdefault((cell.experiment, cell.settings), (cell.parameters, cell.evaluations))
    return {
        cell
        for cell in cells
        if (cell.parameters, cell.evaluations) != costs[cell.experiment, cell.settings]
    }
