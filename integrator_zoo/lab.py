"""What an experiment is: settings, runs, columns of its table, pictures of its records.

An experiment trains a backbone whose residual stream is moved by an integrator, and reads the
trajectory. It never names an integrator in its logic; it is handed rules and returns results.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Hashable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, ClassVar, Literal, TypeVar

from .claims import Claim, Study
from .contract import Integrator
from .errors import ZooError
from .options import Options, declare, option

__all__ = ["Column", "Experiment", "Job", "Progress", "Result", "experiment", "option"]

Status = Literal["ok", "diverged", "stopped", "failed"]
"""`stopped`: it ran out of the minutes it was given; the same command goes on from there."""

Progress = Callable[[str, float, str], None]
"""Called as progress(what, share done from 0 to 1, a few words) while work goes on.

It may raise KeyboardInterrupt, which an experiment lets through: finished results were yielded.
"""


@dataclass(frozen=True)
class Session:
    """How a run is done, as against what it is: nothing here changes a result."""

    scratch: Path | None = None
    """A folder that outlives an interruption, for checkpoints; None: keep none."""
    deadline: float | None = None
    """The `time.monotonic()` at which long work stops, with a checkpoint."""
    note: Callable[[str], None] = lambda line: None
    """Takes one line that the user should know."""


@dataclass(frozen=True)
class Job:
    """One run to do: an integrator and a seed, and in a sweep the experiment it belongs to."""

    rule: Integrator
    seed: int = 0
    session: Session = field(default=Session(), compare=False, repr=False)
    experiment: Experiment | None = field(default=None, repr=False)
    """With its settings; None where all jobs are of the one experiment that runs them."""

    def __str__(self) -> str:
        return f"{self.rule.spec}, seed {self.seed}"


@dataclass(frozen=True)
class Result:
    """What one run gave. Arrays are numpy; metrics that do not exist are None, never NaN."""

    job: Job
    status: Status
    metrics: Mapping[str, float | int | None]
    arrays: Mapping[str, Any] = field(default_factory=dict)
    facts: Mapping[str, Any] = field(default_factory=dict)
    """What else belongs in the record: dtype, device, data hash, ..."""
    reason: str | None = None
    """For `diverged` and `failed`: one line, naming the first bad step where there is one."""
    compile_seconds: float = 0.0
    run_seconds: float = 0.0
    folders: Mapping[str, Path] = field(default_factory=dict)
    """Folders that are copied into the run folder, by their name there."""
    resumable: bool = False
    """Whether the session's scratch folder can take the run further, and so must stay."""


@dataclass(frozen=True)
class Column:
    """A metric in the comparison table."""

    metric: str
    heading: str
    """With its unit."""
    format: str = ".3g"
    scale: float = 1.0
    """Factor from the recorded metric to the unit of the heading (100 for percent)."""
    spread: bool = False
    """Show minimum and maximum over the seeds beside the mean."""
    trials: str | None = None
    """For a share: the setting that says of how many independent trials."""
    meaning: str = ""
    """What the number is, in a line, for who has not read the documentation."""

    def show(self, value: float) -> str:
        return format(value * self.scale, self.format)


class Experiment(Options, ABC):
    """An experiment; its options are its settings. Subclass and decorate with `@experiment`."""

    summary: ClassVar[str]
    """One line for `zoo list`."""
    default_specs: ClassVar[tuple[str, ...]]
    """What `zoo compare` compares when no integrator is named."""
    presets: ClassVar[Mapping[str, Mapping[str, Any]]] = {}
    """Named settings."""
    columns: ClassVar[tuple[Column, ...]]
    """The columns of its table between the parameters and the seconds."""
    default_seeds: ClassVar[int] = 1
    """Seeds of `zoo compare` when none are given."""
    random: ClassVar[bool] = True
    """False where nothing is drawn, so that a second seed would repeat the first."""
    limits: ClassVar[tuple[str, ...]] = ()
    """Settings that say only how far a run goes: runs equal in all others share checkpoints."""
    huge_pages: ClassVar[bool] = False
    """Whether the command should start this process with huge memory pages (Linux, glibc)."""
    grid: ClassVar[Mapping[str, Sequence[Any]]] = {}
    """The published values of settings that `zoo sweep` goes through when none are given."""

    def check(self) -> None:
        """Raise ZooError where settings do not fit together, before anything is run or written."""

    def kin(self) -> Hashable:
        """Experiments of equal kin are handed to one `run` together; each job names its own."""
        return self

    def cost(self) -> float:
        """Work of a run, apart from its rule's field evaluations, against others of its kin."""
        return 1.0

    @abstractmethod
    def headline(self) -> str:
        """One line that describes the setting, with units, printed above the table."""

    @abstractmethod
    def run(self, jobs: Sequence[Job], progress: Progress) -> Iterator[Result]:
        """Do the jobs, sharing compiled programs and cores, and yield each result when done."""

    def pictures(self, records: Sequence[Any], folder: Path) -> list[Path]:
        """Draw the records of a comparison into `folder`; the paths of the files written."""
        return []

    def overview(self, records: Sequence[Any], folder: Path) -> list[Path]:
        """Draw runs that differ in what `grid` names, against that; the paths of the files."""
        return []

    def language_model(self, record: Any, rule: Integrator) -> tuple[Any, str]:
        """The trained network of a run, in evaluation mode, and its alphabet: for `zoo sample`.

        Raises:
            ZooError: this experiment trains no language model, or the run holds no weights.
        """
        raise ZooError(
            f"{self.name} trains no language model.", "zoo sample takes a run of one that does."
        )

    def claims(self) -> Sequence[Claim]:
        """Published figures that runs of this experiment are held against: `zoo reproduce`."""
        return ()

    def studies(self) -> Sequence[Study]:
        """Questions that runs of this experiment answer: `zoo study`."""
        return ()

    def pairs(self, records: Sequence[Any]) -> dict[str, dict[str, float]]:
        """Metrics that belong to two rows at once, as {metric: {"one | other": value}}."""
        return {}


_E = TypeVar("_E", bound=Experiment)


def experiment(
    name: str,
    *,
    summary: str,
    default_specs: Sequence[str],
    presets: Mapping[str, Mapping[str, Any]] | None = None,
    default_seeds: int = 1,
    random: bool = True,
) -> Callable[[type[_E]], type[_E]]:
    """Make a class an experiment: a frozen dataclass of settings with a name."""

    def decorate(cls: type[_E]) -> type[_E]:
        made = declare(cls, name)
        made.summary = summary
        made.default_specs = tuple(default_specs)
        made.presets = dict(presets or {})
        made.default_seeds = default_seeds
        made.random = random
        return made

    return decorate
