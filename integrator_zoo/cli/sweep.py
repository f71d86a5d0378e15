"""`zoo sweep`: a grid of experiments, settings, integrators and seeds as one request."""

from __future__ import annotations

import itertools
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from ..errors import ZooError
from . import output
from .app import (
    AsJson,
    Fresh,
    Out,
    Plugin,
    Preset,
    Settings,
    Spec,
    Strict,
    app,
    chosen_experiment,
    perform_all,
    registry_with,
)

if TYPE_CHECKING:
    from ..lab import Column, Experiment
    from ..registry import Registry
    from ..runs import Record
    from ..runs.table import Cell


@app.command()
def sweep(
    experiments: Annotated[
        list[str] | None, typer.Argument(help="Experiments; by default all that have a grid.")
    ] = None,
    grid: Annotated[
        list[str] | None,
        typer.Option("--grid", help="As in depth=8,32,128; may be repeated.", metavar="KEY=V1,V2"),
    ] = None,
    integrator: Spec = None,
    seeds: Annotated[int, typer.Option(min=1, help="How many seeds, from 0.", metavar="N")] = 3,
    preset: Preset = None,
    settings: Settings = None,
    out: Out = Path("runs"),
    fresh: Fresh = False,
    as_json: AsJson = False,
    plugin: Plugin = None,
    strict: Strict = False,
) -> None:
    """Run a grid: experiments x settings x integrators x seeds. Finished runs are not repeated.

    Alone, `zoo sweep` runs the published grid: 54 planar networks.
    """
    registry = registry_with(plugin, strict)
    names = experiments or _with_grid(registry)
    family = [
        cell
        for name in names
        for cell in _cells_of(chosen_experiment(registry, name, preset, settings), grid)
    ]
    specs = integrator or list(dict.fromkeys(s for e in family for s in e.default_specs))
    records, store = perform_all(registry, family, specs, range(seeds), out, fresh, strict)
    from ..runs.sweep import write_tables
    from ..runs.table import cells

    column = next((c for c in family[0].columns if c.spread), family[0].columns[0])
    found = cells(records, column)
    files = write_tables(records, found, store, [_pictures_of(name, family) for name in names])
    if as_json:
        rows = [cell.as_json() for cell in found]
        output.print_json({"metric": column.metric, "cells": rows, "files": list(map(str, files))})
        return
    print(f"{len(records)} runs, {column.heading}, {seeds} seed{'s' * (seeds > 1)} a cell\n")
    _print_cells(found, column)
    print()
    for path in files:
        output.print_line(f"{'picture' if path.suffix == '.png' else 'table':<10}{path}")


def _pictures_of(name: str, family: Sequence[Experiment]) -> Any:
    """What draws one experiment's runs into a folder of its name."""
    drawer = next(experiment for experiment in family if experiment.name == name)

    def draw(records: Sequence[Record], folder: Path) -> None:
        mine = [record for record in records if record.config["experiment"] == name]
        drawer.pictures(mine, folder / name)

    return draw


def _with_grid(registry: Registry) -> list[str]:
    return [name for name, e in registry.entries["experiment"].items() if e.default.grid]


def _cells_of(experiment: Experiment, said: Sequence[str] | None) -> list[Experiment]:
    """The experiment in every setting of the grid."""
    grid: Mapping[str, Sequence[Any]] = dict(map(_axis, said)) if said else experiment.grid
    if not grid:
        raise ZooError(
            f"{experiment.name} has no grid of its own.", "Give one: --grid depth=8,32,128"
        )
    places = itertools.product(*grid.values())
    return [experiment.with_options(dict(zip(grid, place, strict=True))) for place in places]


def _axis(said: str) -> tuple[str, list[str]]:
    key, equals, values = (part.strip() for part in said.partition("="))
    found = [value.strip() for value in values.split(",") if value.strip()]
    if not (key and equals and found):
        raise ZooError(f"--grid {said!r} is not KEY=V1,V2.", "As in --grid depth=8,32,128")
    return key, list(dict.fromkeys(found))


def _print_cells(found: Sequence[Cell], column: Column) -> None:
    """One line a cell: mean and range, exact interval, perfect seeds, difference from the first."""
    from ..report.comparison import UNEQUAL
    from ..runs.table import unequal

    keys = [key for key, _ in found[0].settings]
    share = any(cell.pooled for cell in found)
    more = ("exact 95 %", "at 100 %") if share else ()
    table = output.new_table(
        "experiment", *keys, "integrator", "params", "F/step", column.heading, *more,
        "minus the first", "in noise", left=("experiment", "integrator"),
    )  # fmt: skip
    marked = unequal(found)
    for cell in found:
        shown = [cell.experiment, *(str(value) for _, value in cell.settings)]
        shown.append(cell.integrator + (" *" if cell in marked else ""))
        shown += [_number(cell.parameters, ",.0f"), _number(cell.evaluations, ".4g")]
        shown.append(_spread(cell, column))
        if share:
            ends = cell.pooled
            shown.append(f"{column.show(ends.low)} to {column.show(ends.high)}" if ends else "-")
            shown.append(f"{cell.perfect} of {cell.runs}")
        shown.append(cell.against.show("+.2f", column.scale) if cell.against else "")
        shown.append(_number(cell.effect, "+.1f") if cell.against else "")
        table.add_row(*shown)
    output.print_table(table)
    if marked:
        print(f"* {UNEQUAL}")
    print(
        "exact: all test points of all seeds, binomial; minus the first: paired by seed and data;"
    )
    print("in noise: that difference over its standard deviation between seeds")


def _spread(cell: Cell, column: Column) -> str:
    if cell.mean is None or cell.low is None or cell.high is None:
        return "-"
    text = f"{column.show(cell.mean)} ({column.show(cell.low)} to {column.show(cell.high)})"
    return text + (f", {cell.diverged} diverged" if cell.diverged else "")


def _number(value: float | None, form: str) -> str:
    return "-" if value is None else format(value, form)
