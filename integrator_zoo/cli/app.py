"""The commands. Heavy imports happen inside them, so that help is instant."""

from __future__ import annotations

import os
import shlex
import sys
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from ..errors import Interrupted, ZooError, one_line, unknown
from . import output
from .relaunch import with_huge_pages

if TYPE_CHECKING:
    from ..lab import Experiment, Progress
    from ..registry import Registry
    from ..runs import Record, Store

MANY_SEEDS = 32
"""Seeds that tell more than a few."""

app = typer.Typer(
    add_completion=True,
    pretty_exceptions_enable=False,
    no_args_is_help=True,
    rich_markup_mode=None,
    help="A zoo of integrators for residual networks: swap the rule, keep the network.",
)

AsJson = Annotated[bool, typer.Option("--json", help="Print JSON alone on stdout.")]
Plugin = Annotated[
    list[Path] | None,
    typer.Option("--plugin", help="Load this plugin file too; may be repeated.", metavar="FILE"),
]
Strict = Annotated[bool, typer.Option("--strict", help="A broken plugin is an error (exit 1).")]
Spec = Annotated[
    list[str] | None,
    typer.Option("-i", "--integrator", help="As in ledger:mu=0.6; may be repeated."),
]
Settings = Annotated[
    list[str] | None,
    typer.Option("--set", help="Change a setting: depth=64; may be repeated.", metavar="KEY=VALUE"),
]
Preset = Annotated[str | None, typer.Option(help="Named settings; see zoo info EXPERIMENT.")]
Out = Annotated[Path, typer.Option(help="Where run folders live.", metavar="DIR")]
Corpus = Annotated[
    str | None, typer.Option(help="For language models: a known corpus or a text file.")
]
StopAt = Annotated[
    int | None, typer.Option(min=1, help="Stop a long training at this step.", metavar="STEP")
]
MaxMinutes = Annotated[
    float | None,
    typer.Option(min=0, help="Stop long trainings after so long, with a checkpoint.", metavar="M"),
]
Resume = Annotated[bool, typer.Option("--resume", help="Insist on going on from checkpoints.")]
Fresh = Annotated[bool, typer.Option("--fresh", help="Repeat runs that are finished already.")]


@app.command("list")
def list_command(as_json: AsJson = False, plugin: Plugin = None, strict: Strict = False) -> None:
    """List the integrators and experiments that are installed."""
    registry = registry_with(plugin, strict)
    integrators, experiments = output.listing(registry)
    if as_json:
        output.print_json({"integrators": integrators, "experiments": experiments})
    else:
        output.print_listing(integrators, experiments)


@app.command()
def info(name: str, as_json: AsJson = False, plugin: Plugin = None, strict: Strict = False) -> None:
    """Show one integrator or experiment: equation, traits, options with defaults."""
    registry = registry_with(plugin, strict)
    for kind in ("integrator", "experiment"):
        if name in registry.entries[kind]:
            facts = output.facts(kind, registry.entry(kind, name))
            output.print_json(facts) if as_json else output.print_facts(facts)
            return
    names = [*registry.entries["integrator"], *registry.entries["experiment"]]
    raise unknown("integrator or experiment", name, names, "See: zoo list")


@app.command()
def run(
    experiment: str,
    integrator: Spec = None,
    seed: Annotated[int, typer.Option(help="The seed of the run.")] = 0,
    preset: Preset = None,
    settings: Settings = None,
    corpus: Corpus = None,
    stop_at: StopAt = None,
    max_minutes: MaxMinutes = None,
    resume: Resume = False,
    out: Out = Path("runs"),
    fresh: Fresh = False,
    as_json: AsJson = False,
    plugin: Plugin = None,
    strict: Strict = False,
) -> None:
    """Run an experiment under one integrator and one seed."""
    registry = registry_with(plugin, strict)
    settings = [*(settings or []), *_shortcuts(corpus=corpus, stop_at=stop_at)]
    chosen = chosen_experiment(registry, experiment, preset, settings)
    if len(integrator or []) != 1:
        raise ZooError(
            f"zoo run takes one integrator, {len(integrator or [])} given.",
            f"zoo run {experiment} -i euler, or zoo compare {experiment} -i euler -i ledger",
        )
    if not 0 <= seed < 2**32:
        raise ZooError(f"--seed {seed} is not between 0 and 2^32 - 1.", "As in --seed 0")
    records, _ = perform_all(
        registry, [chosen], integrator, [seed], out, fresh, strict, resume, max_minutes
    )
    if as_json:
        output.print_json(output.comparison(chosen, records))
    else:
        output.print_record(chosen, records[0])


@app.command()
def compare(
    experiment: str,
    integrator: Spec = None,
    seeds: Annotated[int | None, typer.Option(help="How many seeds, from 0.", metavar="N")] = None,
    preset: Preset = None,
    settings: Settings = None,
    corpus: Corpus = None,
    stop_at: StopAt = None,
    max_minutes: MaxMinutes = None,
    resume: Resume = False,
    out: Out = Path("runs"),
    fresh: Fresh = False,
    as_json: AsJson = False,
    plugin: Plugin = None,
    strict: Strict = False,
) -> None:
    """Compare integrators on an experiment: a table, run folders and pictures."""
    registry = registry_with(plugin, strict)
    settings = [*(settings or []), *_shortcuts(corpus=corpus, stop_at=stop_at)]
    chosen = chosen_experiment(registry, experiment, preset, settings)
    specs = integrator or list(chosen.default_specs)
    count = chosen.default_seeds if seeds is None else seeds
    if count < 1:
        raise ZooError(f"--seeds {count}: at least one seed is needed.", "As in --seeds 3")
    if not chosen.random and count > 1:
        output.note(f"{experiment} draws nothing at random: one seed tells all")
        count = 1
    records, store = perform_all(
        registry, [chosen], specs, range(count), out, fresh, strict, resume, max_minutes
    )
    pictures, report = _pictures(registry, chosen, records, store)
    summary = output.comparison(chosen, records)
    summary |= {"pictures": [str(path) for path in pictures], "report": report and str(report)}
    if as_json:
        output.print_json(summary)
        return
    output.print_comparison(chosen, records, summary)
    if chosen.random and count < MANY_SEEDS and "--seeds" not in sys.argv:
        said = shlex.join(sys.argv[1:])
        output.print_line(f"more      zoo {said} --seeds {MANY_SEEDS}")


def _shortcuts(**said: Any) -> list[str]:
    """Flags that stand for a setting, as settings."""
    return [f"{key}={value}" for key, value in said.items() if value is not None]


def registry_with(files: list[Path] | None, strict: bool) -> Registry:
    """The registry with the extra files; broken plugins named on stderr, fatal when strict."""
    from ..registry import current

    registry = current()
    for file in files or []:
        registry.load_file(file)
    for broken in registry.broken:
        output.note(str(broken))
    if strict and registry.broken:
        raise typer.Exit(1)
    return registry


def chosen_experiment(
    registry: Registry, name: str, preset: str | None, settings: list[str] | None
) -> Experiment:
    """The experiment with its preset and settings applied, all checked."""
    chosen = registry.get("experiment", name)
    if preset is not None:
        if preset not in chosen.presets:
            raise unknown(f"preset of {name}", preset, chosen.presets, f"See: zoo info {name}")
        chosen = chosen.with_options(chosen.presets[preset])
    said: dict[str, str] = {}
    for setting in settings or []:
        key, equals, value = (part.strip() for part in setting.partition("="))
        if not (key and equals and value):
            raise ZooError(f"--set {setting!r} is not key=value.", "As in --set depth=64")
        said[key] = value
    return chosen.with_options(said)


def perform_all(
    registry: Registry,
    experiments: Sequence[Experiment],
    specs: list[str] | None,
    seeds: Any,
    out: Path,
    fresh: bool,
    strict: bool,
    resume: bool = False,
    max_minutes: float | None = None,
) -> tuple[list[Record], Store]:
    """Check everything that can be checked, then do the runs."""
    rules = list(dict.fromkeys(registry.get("integrator", spec) for spec in specs or []))
    with working(experiments, out) as (store, progress):
        from ..runs import perform

        records = perform(
            experiments,
            rules,
            seeds,
            store,
            fresh=fresh,
            resume=resume,
            max_minutes=max_minutes,
            progress=progress,
            note=output.note,
        )
    failed = [record for record in records if record.status == "failed"]
    if failed and (strict or len(failed) == len(records)):
        raise typer.Exit(1)
    return records, store


@contextmanager
def working(experiments: Iterable[Experiment], out: Path) -> Iterator[tuple[Store, Progress]]:
    """A checked store, all cores and a progress bar; an interrupt ends the command in one line."""
    experiments = list(experiments)
    if any(experiment.huge_pages for experiment in experiments):
        with_huge_pages()
    for experiment in experiments:
        experiment.check()
    from ..runs import Store

    store = Store(out)
    store.check_writable()
    _use_all_cores()
    try:
        with output.progress_bar() as progress:
            yield store, progress
    except Interrupted as stopped:
        line = f"interrupted; {stopped}, the same command goes on from there"
        output.leave(line, output.INTERRUPTED)


def _use_all_cores() -> None:
    """One CPU device a core, unless the user has said otherwise; before JAX's first use."""
    import jax

    if "JAX_NUM_CPU_DEVICES" not in os.environ and jax.config.values["jax_num_cpu_devices"] < 1:
        cores = getattr(os, "process_cpu_count", os.cpu_count)() or 1
        if hasattr(os, "sched_getaffinity"):
            cores = len(os.sched_getaffinity(0))
        jax.config.update("jax_num_cpu_devices", cores)


def _pictures(
    registry: Registry, experiment: Experiment, records: list[Record], store: Store
) -> tuple[list[Path], Path | None]:
    """The comparison's pictures and report; made anew only when a run is newer than they are."""
    from ..runs.perform import comparison_folder
    from ..runs.store import replacing

    folder = comparison_folder(store, experiment, records)
    page = folder / "report.html"
    newest = max((record.folder / "record.json").stat().st_mtime for record in records)
    if not page.is_file() or folder.stat().st_mtime < newest:
        try:
            with replacing(folder) as made:
                drawn = experiment.pictures(records, made)
                _report(registry, records, made / page.name, drawn)
        except ZooError:
            raise
        except Exception as error:  # the table is worth more than a picture
            output.note(f"the pictures could not be drawn: {one_line(error)}")
    return sorted(folder.glob("*.png")), page if page.is_file() else None


def _report(registry: Registry, records: list[Record], page: Path, drawn: list[Path]) -> None:
    """Write the report of a comparison; without it, the pictures are kept all the same."""
    try:
        from ..report import chapters, write_report

        write_report(chapters(records, registry), page, drawn=drawn, note=output.note)
    except Exception as error:
        output.note(f"the report could not be written: {one_line(error)}")
