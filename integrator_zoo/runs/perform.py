"""Do the runs of a request: find what is finished, run the rest, write each as it is done."""

from __future__ import annotations

import dataclasses
import functools
import hashlib
import importlib.metadata
import inspect
import os
import platform
import shutil
import sys
import time
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Any

from ..contract import Integrator
from ..errors import Interrupted, ZooError
from ..lab import Experiment, Job, Progress, Result, Session
from ..registry import current
from .store import FORMAT, Record, Store


def perform(
    experiments: Experiment | Sequence[Experiment],
    rules: Sequence[Integrator],
    seeds: Sequence[int],
    store: Store,
    *,
    fresh: bool = False,
    resume: bool = False,
    max_minutes: float | None = None,
    progress: Progress = lambda what, share, words: None,
    note: Callable[[str], None] = lambda line: None,
) -> list[Record]:
    """All runs of experiments x rules x seeds, in that order.

    Args:
        experiments: one, or several for a sweep, each with its settings.
        rules, seeds: what to run; each pair is one run of each experiment.
        store: where run folders live. Finished runs found there are not repeated.
        fresh: repeat them all the same, from their first step.
        resume: insist on going on from a checkpoint. Without it, a run that has one goes on
            from it and any other starts anew.
        max_minutes: stop long runs with a checkpoint after so many minutes.
        progress: is told how far the work is.
        note: is given one line for what a user should know: runs found, diverged, failed.

    Raises:
        ZooError: nothing to run, or nothing to resume.
        Interrupted: by Ctrl-C; every run finished by then is in the store.
    """
    chosen = [experiments] if isinstance(experiments, Experiment) else experiments
    jobs = [
        Job(rule, seed, experiment=experiment)
        for experiment in chosen
        for rule in rules
        for seed in (seeds if experiment.random else seeds[:1])
    ]
    if not jobs:
        raise ZooError("nothing to run.", "Name an integrator: -i euler")
    return perform_jobs(
        jobs,
        store,
        fresh=fresh,
        resume=resume,
        max_minutes=max_minutes,
        progress=progress,
        note=note,
    )


def perform_jobs(
    jobs: Sequence[Job],
    store: Store,
    *,
    fresh: bool = False,
    resume: bool = False,
    max_minutes: float | None = None,
    progress: Progress = lambda what, share, words: None,
    note: Callable[[str], None] = lambda line: None,
) -> list[Record]:
    """`perform` for any list of jobs, each of which names its experiment."""
    deadline = None if max_minutes is None else time.monotonic() + 60 * max_minutes
    jobs = [_with_session(job, store, deadline, note) for job in jobs]
    configs = {job: config_of(_experiment(job), job) for job in jobs}
    records: dict[Job, Record] = {}
    if not fresh:
        found = {job: store.find(config) for job, config in configs.items()}
        records = {job: record for job, record in found.items() if record is not None}
        if records:
            note(
                f"{len(records)} of {len(configs)} runs were finished before and are not "
                "repeated (--fresh repeats them)"
            )
    todo = [job for job in configs if job not in records]
    for job in todo:
        if fresh:
            _forget(job)
        elif resume and not (job.session.scratch and job.session.scratch.is_dir()):
            raise ZooError(f"{job}: there is no checkpoint to resume.", "Leave out --resume.")
    try:
        for result in _results(todo, progress):
            records[result.job] = _write(store, configs[result.job], result)
            if result.status != "failed" and not result.resumable:
                _forget(result.job)
            if result.status != "ok":
                note(f"{result.job}: {result.status}: {result.reason}")
    except KeyboardInterrupt:
        raise Interrupted(f"{len(records)} of {len(configs)} runs are kept") from None
    return [records[job] for job in configs]


def _results(jobs: Sequence[Job], progress: Progress) -> Iterator[Result]:
    """The results of all jobs, those of one kin run together."""
    families: dict[Any, list[Job]] = {}
    for job in jobs:
        families.setdefault(_experiment(job).kin(), []).append(job)
    done = 0
    for family in families.values():
        low, high = done / len(jobs), (done + len(family)) / len(jobs)

        def part(what: str, share: float, words: str, low: float = low, high: float = high) -> None:
            progress(what, low + share * (high - low), words)

        yield from _experiment(family[0]).run(family, part)
        done += len(family)


def _experiment(job: Job) -> Experiment:
    assert job.experiment is not None
    return job.experiment


def _write(store: Store, config: dict[str, Any], result: Result) -> Record:
    return store.write(
        config,
        {
            "format": FORMAT,
            "status": result.status,
            "reason": result.reason,
            "metrics": result.metrics,
            "facts": result.facts,
            "seconds": {
                "compile_seconds": result.compile_seconds,
                "run_seconds": result.run_seconds,
            },
            "environment": environment(),
        },
        result.arrays,
        result.folders,
    )


def _forget(job: Job) -> None:
    """Drop what an earlier, interrupted run left for this one to go on from."""
    if job.session.scratch is not None:
        shutil.rmtree(job.session.scratch, ignore_errors=True)


def _with_session(
    job: Job,
    store: Store,
    deadline: float | None,
    note: Callable[[str], None],
) -> Job:
    """The job with a scratch folder that it shares with the runs that differ only in length."""
    experiment = _experiment(job)
    config = config_of(experiment, job)
    settings = {k: v for k, v in config["settings"].items() if k not in experiment.limits}
    scratch = store.scratch({**config, "settings": settings})
    said = Session(scratch, deadline, lambda line: note(f"{job}: {line}"))
    return dataclasses.replace(job, session=said)


def config_of(experiment: Experiment, job: Job) -> dict[str, Any]:
    """Everything that decides a run's result, resolved; its hash is the run's key."""
    origin = current().entry("integrator", job.rule.name).origin
    return {
        "experiment": experiment.name,
        "experiment_code": _code_digest(type(experiment)),
        "settings": experiment.option_values(),
        "integrator": {
            "spec": job.rule.spec,
            "options": job.rule.option_values(),
            "distribution": origin.distribution,
            "version": origin.version,
            "code": _code_digest(type(job.rule)),
        },
        "seed": job.seed if experiment.random else 0,
    }


@functools.cache
def _code_digest(cls: type) -> str:
    """Hash of the files that define a class, so that an edited plugin is run anew."""
    texts = []
    for base in cls.__mro__:
        module = sys.modules.get(base.__module__)
        if module is None or base.__module__.split(".")[0] in ("builtins", "abc", "integrator_zoo"):
            continue
        try:
            texts.append(inspect.getsource(module))
        except (OSError, TypeError):  # typed at a prompt: the class alone tells
            codes = (getattr(value, "__code__", None) for value in vars(base).values())
            texts.append(repr([code.co_code for code in codes if code]))
    return hashlib.sha256("\n".join(texts).encode()).hexdigest()[:8]


@functools.cache
def environment() -> dict[str, Any]:
    """Versions and machine, for the record."""
    packages = ("integrator-zoo", "jax", "flax", "optax", "diffrax", "numpy")
    return {
        "python": platform.python_version(),
        "platform": platform.platform(),
        "cores": os.cpu_count(),
        "packages": {name: importlib.metadata.version(name) for name in packages},
    }


def comparison_folder(store: Store, experiment: Experiment, records: Sequence[Record]) -> Path:
    """Where the pictures of a set of runs live: the same set, the same folder."""
    return store.root / f"{experiment.name}-{key_of_runs(records)}"


def key_of_runs(records: Sequence[Record]) -> str:
    """Four hexadecimal digits that stand for a set of runs."""
    names = "\n".join(sorted(record.folder.name for record in records))
    return hashlib.sha256(names.encode()).hexdigest()[:4]
