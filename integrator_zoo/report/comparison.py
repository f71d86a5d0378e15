"""The comparison table, as the prompt and the page show it: a row an integrator, means of seeds."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from ..figures import by_integrator, why
from ..lab import Column

if TYPE_CHECKING:
    from ..lab import Experiment
    from ..runs.store import Record

PARAMETERS = Column("parameters", "params", ",.0f", meaning="trained numbers of the network")
SECONDS = {
    "compile, s": "seconds of compiling; runs that share a program compile once",
    "run, s": "seconds of training and measuring, all seeds together",
}
UNEQUAL = "parameters or field evaluations differ from the first row's: not at equal cost"


@dataclass(frozen=True)
class Cell:
    """What a cell shows, and the number it is sorted by."""

    text: str
    value: float | None


@dataclass(frozen=True)
class Row:
    """One integrator."""

    spec: str
    cells: tuple[Cell, ...]
    equal: bool
    """Whether it has the parameters and field evaluations of the first row."""


def headings(experiment: Experiment) -> tuple[str, ...]:
    """Above the cells of a row, with units."""
    return (*(column.heading for column in (PARAMETERS, *experiment.columns)), *SECONDS)


def meanings(experiment: Experiment) -> list[tuple[str, str]]:
    """What stands under each heading, where the experiment says it."""
    columns = (PARAMETERS, *experiment.columns)
    said = [(column.heading, column.meaning) for column in columns if column.meaning]
    return [*said, *SECONDS.items()]


def rows(experiment: Experiment, records: Sequence[Record]) -> list[Row]:
    """A row for each integrator, in the order given."""
    groups = by_integrator(records)
    unequal = _unequal(groups)
    return [Row(spec, _cells(experiment, of), spec not in unequal) for spec, of in groups.items()]


def remarks(records: Sequence[Record]) -> list[str]:
    """A line for all runs of an integrator that ended alike, and not well."""
    seeds: dict[tuple[str, str], list[str]] = {}
    for record in records:
        if record.status != "ok":
            seeds.setdefault((record.integrator, why(record)), []).append(str(record.seed))
    return [
        f"{spec}, seed{'s' * (len(of) > 1)} {', '.join(of)}: {reason}"
        for (spec, reason), of in seeds.items()
    ]


def _cells(experiment: Experiment, of: Sequence[Record]) -> tuple[Cell, ...]:
    good = [record for record in of if record.status in ("ok", "stopped")]
    seconds = [record.data["seconds"] for record in of]
    compiling = max(s["compile_seconds"] for s in seconds)
    running = sum(s["run_seconds"] for s in seconds)
    return (
        _cell(of, PARAMETERS),
        *(_cell(good, column) for column in experiment.columns),
        Cell(f"{compiling:.1f}", compiling),
        Cell(f"{running:.1f}", running),
    )


def _cell(of: Sequence[Record], column: Column) -> Cell:
    values = [v for run in of if (v := run.metrics.get(column.metric)) is not None]
    if not values:
        return Cell("-", None)
    mean = sum(values) / len(values)
    text = column.show(mean)
    if column.spread and len(values) > 1:
        text += f" ({column.show(min(values))} to {column.show(max(values))})"
    return Cell(text, mean)


def _unequal(groups: dict[str, list[Record]]) -> set[str]:
    """Integrators whose rows are not comparable with the first at equal cost."""
    costs = {
        spec: tuple(of[0].metrics.get(key) for key in ("parameters", "evaluations_per_step"))
        for spec, of in groups.items()
        if of[0].status != "failed"
    }
    first = next(iter(costs.values()), None)
    return {spec for spec, cost in costs.items() if cost != first}
