"""Which runs a report is about, how they belong together, and how each is made again."""

from __future__ import annotations

import json
import shlex
from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from ..figures import by_integrator
from ..options import format_value
from ..runs.store import Record

if TYPE_CHECKING:
    from ..lab import Experiment
    from ..registry import Registry


@dataclass(frozen=True)
class Setting:
    """Runs that differ in integrator and seed only: one comparison."""

    experiment: Experiment
    """With the settings of the runs."""
    records: tuple[Record, ...]
    differs: dict[str, str]
    """The settings in which it differs from the chapter's others."""

    @property
    def name(self) -> str:
        return ", ".join(f"{key} {value}" for key, value in self.differs.items())

    def commands(self) -> list[str]:
        """What to type to make all of its runs again."""
        seeds = {frozenset(r.seed for r in of) for of in by_integrator(self.records).values()}
        count = len(next(iter(seeds)))
        if len(seeds) > 1 or seeds != {frozenset(range(count))}:
            return [command_of(self.experiment, record) for record in self.records]
        specs = [word for spec in by_integrator(self.records) for word in ("-i", spec)]
        many = ["--seeds", str(count)] if self.experiment.random else []
        said = [*_settings(self.experiment), *_plugins(self.records)]
        return [shlex.join(["zoo", "compare", self.experiment.name, *specs, *many, *said])]


@dataclass(frozen=True)
class Chapter:
    """All runs of one experiment."""

    experiment: Experiment
    settings: tuple[Setting, ...]

    @property
    def records(self) -> list[Record]:
        return [record for setting in self.settings for record in setting.records]

    @property
    def differing(self) -> tuple[str, ...]:
        """The settings in which its comparisons differ."""
        return tuple(self.settings[0].differs)


def chapters(records: Sequence[Record], registry: Registry) -> list[Chapter]:
    """The runs by experiment, and in each by settings.

    Raises:
        ZooError: an experiment is not installed, or its settings are no longer known.
    """
    groups: dict[str, dict[str, list[Record]]] = {}
    for record in records:
        key = json.dumps(record.config["settings"], sort_keys=True)
        groups.setdefault(record.config["experiment"], {}).setdefault(key, []).append(record)
    return [
        _chapter(registry.get("experiment", name), list(of.values())) for name, of in groups.items()
    ]


def _chapter(plain: Experiment, groups: Sequence[list[Record]]) -> Chapter:
    chosen = [plain.with_options(group[0].config["settings"]) for group in groups]
    values = [experiment.option_values() for experiment in chosen]
    differ = [key for key in values[0] if len({str(v[key]) for v in values}) > 1]
    order = sorted(range(len(groups)), key=lambda i: [_sortable(values[i][key]) for key in differ])
    return Chapter(
        plain,
        tuple(
            Setting(
                chosen[i],
                tuple(run for of in by_integrator(groups[i]).values() for run in of),
                {key: format_value(values[i][key]) for key in differ},
            )
            for i in order
        ),
    )


def _sortable(value: Any) -> tuple[float, str]:
    """Numbers by size, before words."""
    return (float(value), "") if isinstance(value, (int, float)) else (float("inf"), str(value))


def command_of(experiment: Experiment, record: Record) -> str:
    """What to type to make one run again."""
    seed = ["--seed", str(record.seed)] if experiment.random else []
    said = [*_settings(experiment), *_plugins([record])]
    return shlex.join(["zoo", "run", experiment.name, "-i", record.integrator, *seed, *said])


def _settings(experiment: Experiment) -> list[str]:
    """The flags for all settings that are not as they come."""
    fields = experiment.option_fields()
    return [
        word
        for key, value in experiment.option_values().items()
        if value != fields[key].default
        for word in ("--set", f"{key}={format_value(value)}")
    ]


def _plugins(records: Sequence[Record]) -> list[str]:
    """The flags for integrators that came from single files."""
    sources = dict.fromkeys(record.config["integrator"]["distribution"] for record in records)
    return [word for name in sources if name.endswith(".py") for word in ("--plugin", name)]
