"""Rings, moons and spirals: the momentum-ResNet study under any integrator.

A ResNet of width 2 (hidden 16, total time 8) learns to separate two classes of the plane by a line
at its end; the trajectory of the test points through depth is what we look at.
"""

from __future__ import annotations

import functools
import time
from collections.abc import Hashable, Iterator, Mapping, Sequence
from pathlib import Path
from types import MappingProxyType
from typing import TYPE_CHECKING, Any

import numpy as np

from integrator_zoo.hookspecs import hookimpl
from integrator_zoo.lab import Column, Experiment, Job, Progress, Result, experiment, option
from integrator_zoo.memory import MEMORY, UNDOING

from .measures import FILM_POINTS, Measures, thin

if TYPE_CHECKING:
    from integrator_zoo import ResNet
    from integrator_zoo.claims import Claim, Study
    from integrator_zoo.contract import Integrator
    from integrator_zoo.data.planar import PlanarData
    from integrator_zoo.runs import Record
    from integrator_zoo.training import Load
    from integrator_zoo.training.classifier import ClassifierProgram

WIDTH = 2
"""Features of the stream: those of the data."""
CHUNKS = 80
"""Calls into which a training is divided, for progress and the accuracy curve."""
ACCURACY = "test points in the right class; mean of the seeds (least to most)"
EARLY = range(5, 100, 5)
"""Steps at which accuracy is measured besides: it is decided early."""
FRAMES = 28
"""Moments of the film of a training, evenly over those at which accuracy is measured."""


class Planar(Measures, Experiment):
    """One planar set; the settings are those of the study."""

    depth: int = option(32, "number of layers", low=1)
    steps: int = option(4000, "optimiser steps, full batch", low=1)
    lr: float = option(0.003, "Adam's learning rate", above=0.0)
    hidden: int = option(16, "hidden units of a branch", low=1)
    total_time: float = option(8.0, "T; the step is T / depth", above=0.0)
    train_points: int = option(1024, "training points", low=2)
    test_points: int = option(2048, "test points", low=2)
    tied: bool = option(False, "one layer's weights for all layers")
    memory: str = option("store", "what the backward pass keeps", choices=MEMORY)

    grid = MappingProxyType({"depth": (8, 32, 128)})
    columns = (
        Column("evaluations_per_step", "F/step", ".4g", meaning="evaluations of F a layer"),
        Column("test_accuracy", "test accuracy, %", ".2f", 100, True, "test_points", ACCURACY),
        Column("path_length", "path", ".1f", meaning="length of a point's way through depth"),
        Column("turning_angle_degrees", "turn, deg/layer", ".1f", meaning="bend a layer; 0: none"),
    )

    def headline(self) -> str:
        return (
            f"{self.name}, depth {self.depth}, {self.steps:,} steps, "
            f"{self.train_points:,} training and {self.test_points:,} test points, float32"
        )

    def check(self) -> None:
        self.data(seed=0)

    def kin(self) -> Hashable:
        return Planar  # the data are an argument, so that the three sets share programs

    def cost(self) -> float:
        return float(self.depth * self.steps * self.train_points)

    def run(self, jobs: Sequence[Job], progress: Progress) -> Iterator[Result]:
        import jax

        from integrator_zoo.training import Once, run_fleet

        programs = Once()

        def train(load: Load, tick: Any) -> Iterator[Result]:
            chosen: Any = load.jobs[0].experiment or self
            program = programs.get(load.program, lambda: chosen.program(load))
            yield from chosen._train(load, program, tick)

        one_by_one = 1 if jax.default_backend() == "cpu" else None
        yield from run_fleet(jobs, train, progress, self.memory not in UNDOING, one_by_one)

    def network(self, rule: Integrator, seed: Any) -> ResNet:
        """The untrained network with these settings."""
        import jax
        from flax import nnx

        from integrator_zoo import ResNet

        return ResNet(
            self.depth,
            WIDTH,
            self.hidden,
            integrator=rule,
            total_time=self.total_time,
            tied=self.tied,
            memory=self.memory,
            rngs=nnx.Rngs(jax.random.key(seed)),
        )

    def program(self, load: Load) -> ClassifierProgram:
        """What trains and measures the runs of all loads of one program."""
        import optax

        from integrator_zoo.training.classifier import ClassifierProgram

        return ClassifierProgram(
            lambda seed: self.network(load.rule, seed),
            load.rule,
            optax.adam(self.lr),
            self.steps,
            self.measure,
            self.film,
        )

    def _train(self, load: Load, program: ClassifierProgram, tick: Any) -> Iterator[Result]:
        """Train the stacked runs of one load on the current device, and measure them."""
        import jax
        import jax.numpy as jnp

        from integrator_zoo.training import parameter_count
        from integrator_zoo.training.weights import recorded

        kin: list[Any] = [job.experiment or self for job in load.jobs]
        sets = [one.data(job.seed) for one, job in zip(kin, load.jobs, strict=True)]
        data = [jnp.asarray(np.stack(part)) for part in zip(*sets, strict=True)]
        values = load.option_arrays()
        tick(0.0, "compiling")
        runs = program.start(jnp.asarray([job.seed for job in load.jobs], jnp.uint32))
        stops = self._stops()
        untils = np.broadcast_to(stops[:, None].astype(np.int32), (len(stops), len(sets)))
        clock = time.perf_counter()
        runs, accuracy = program.train(runs, values, *data, untils[0])  # no step yet: it compiles
        curve, film = [np.asarray(accuracy)], [jax.tree.map(np.array, runs.params)]
        frames = np.unique(np.linspace(0, len(stops) - 1, FRAMES).astype(int))
        compile_seconds, clock = time.perf_counter() - clock, time.perf_counter()
        for i, until in enumerate(untils[1:], 1):
            runs, accuracy = program.train(runs, values, *data, until)
            curve.append(np.asarray(accuracy))
            if i in frames:
                film.append(jax.tree.map(np.array, runs.params))
            tick(i / (len(untils) - 1), f"step {stops[i]:,} of {self.steps:,}")
        run_seconds = (time.perf_counter() - clock) / len(sets)

        measured = program.measure(runs.params, values, *data[2:])
        moments = jax.tree.map(lambda *moments: np.stack(moments, 1), *film)
        films = program.film(moments, values, data[2])
        found = (measured, films, runs.losses, runs.params)
        measured, films, losses, params = jax.tree.map(np.asarray, found)
        counts = {
            "parameters": parameter_count(program.shapes),
            "evaluations_per_step": program.evaluations.get(
                load.jobs[0].rule, lambda: self._evaluations(program, runs.params, load, data[2])
            ),
        }
        devices = jax.local_devices()
        facts = {"dtype": "float32", "device": devices[0].device_kind, "devices": len(devices)}
        for i, job in enumerate(load.jobs):
            one = functools.partial(jax.tree.map, lambda leaf, i=i: leaf[i])
            yield self._result(
                job,
                one(measured),
                losses[i],
                {
                    "accuracy_by_step": np.array([point[i] for point in curve]),
                    "curve_steps": stops,
                    "test_points": thin(sets[i].test_x),
                    "test_labels": thin(sets[i].test_y),
                    "film_steps": stops[frames],
                    "film_labels": thin(sets[i].test_y, FILM_POINTS),
                    **{f"film_{name}": part[i] for name, part in films.items()},
                    **recorded(one(params)),
                },
                counts,
                {"data_hash": sets[i].digest(), **facts},
                (compile_seconds, run_seconds),
            )

    def data(self, seed: int) -> PlanarData:
        """The points of a seed."""
        from integrator_zoo.data import planar_data

        return planar_data(self.name, seed, self.train_points, self.test_points)

    def _stops(self) -> np.ndarray:
        """The steps after which accuracy is measured: evenly, and often at first."""
        evenly = np.linspace(0, self.steps, CHUNKS + 1).astype(int)
        return np.unique([*evenly, *(step for step in EARLY if step < self.steps)])

    def _evaluations(self, program: Any, params: Any, load: Load, test_x: Any) -> float:
        """Field evaluations a sub-update, counted on the first trained network of a rule."""
        import jax

        from integrator_zoo.depth import count_evaluations

        first = jax.tree.map(lambda leaf: leaf[0], params)
        rule, points = load.jobs[0].rule, test_x[0, : self.test_points // 4]

        def run(mark: Any) -> Any:
            def forward(weights: Any, x: Any) -> Any:
                return program.merged(weights)(x, integrator=rule, mark=mark)

            return jax.jit(forward)(first, points)

        return count_evaluations(run) / self.depth

    def _result(
        self,
        job: Job,
        measured: tuple[Mapping[str, Any], Mapping[str, Any]],
        losses: np.ndarray,
        arrays: Mapping[str, Any],
        counts: Mapping[str, float],
        facts: Mapping[str, Any],
        seconds: tuple[float, float],
    ) -> Result:
        from integrator_zoo.training import first_bad_step

        metrics: dict[str, Any] = dict(counts)
        metrics |= {name: float(value) for name, value in measured[0].items()}
        metrics["train_loss"] = float(losses[-1])
        bad = first_bad_step(losses)
        kept = np.unique([*range(0, self.steps, max(1, self.steps // 400)), self.steps - 1])
        return Result(
            job,
            "ok" if bad is None else "diverged",
            metrics if bad is None else {**metrics, "first_bad_step": bad},
            {**measured[1], **arrays, "loss": losses[kept], "loss_steps": kept},
            facts,
            None if bad is None else f"the loss blew up at step {bad:,} (loss {losses[bad]:.3g})",
            *seconds,
        )

    def claims(self) -> Sequence[Claim]:
        from .claims.planar import CLAIMS

        return [claim for claim in CLAIMS if claim.id.startswith(f"{self.name}/")]

    def studies(self) -> Sequence[Study]:
        from .studies import STUDIES

        return STUDIES.get(self.name, ())

    def overview(self, records: Sequence[Record], folder: Path) -> list[Path]:
        from integrator_zoo.figures import planar

        return planar.draw_overview(records, folder)

    def pictures(self, records: Sequence[Record], folder: Path) -> list[Path]:
        from integrator_zoo.figures import planar

        return planar.draw_all(records, folder)


_QUICK: Mapping[str, Mapping[str, Any]] = {"quick": {"steps": 500}, "published": {}}


def _planar(name: str, summary: str) -> type[Planar]:
    made = type(name.title(), (Planar,), {"__doc__": summary, "__module__": __name__})
    return experiment(
        name,
        summary=summary,
        default_specs=("euler", "ledger"),
        presets=_QUICK,
        default_seeds=3,
    )(made)


Rings = _planar("rings", "a disk inside an annulus: no planar flow can separate them")
Moons = _planar("moons", "two interleaved half circles")
Spirals = _planar("spirals", "two spiral arms of 1.75 turns")


@hookimpl
def zoo_experiments():
    return [Rings, Moons, Spirals]
