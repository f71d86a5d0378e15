"""Rings, moons and spirals: the momentum-ResNet study under any integrator.

A ResNet of width 2 (hidden 16, total time 8) learns to separate two classes of the plane by a line
at its end; the trajectory of the test points through depth is what we look at.
"""

from __future__ import annotations

import time
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from integrator_zoo.hookspecs import hookimpl
from integrator_zoo.lab import Column, Experiment, Job, Progress, Result, experiment, option
from integrator_zoo.memory import MEMORY, UNDOING

if TYPE_CHECKING:
    from integrator_zoo.runs import Record
    from integrator_zoo.training import Load

WIDTH = 2
"""Features of the stream: those of the data."""
DRAWN_POINTS = 256
"""Test points whose trajectories are recorded, half of each class."""
GRID = 100
"""Points a side of the grid on which the decision is recorded."""
CHUNKS = 80
"""Calls into which a training is divided, for progress and the accuracy curve."""
EARLY = range(5, 100, 5)
"""Steps at which accuracy is measured besides: it is decided early."""


class Planar(Experiment):
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

    columns = (
        Column("evaluations_per_step", "F/step", ".4g"),
        Column("test_accuracy", "test accuracy, %", ".2f", 100, spread=True),
        Column("path_length", "path", ".1f"),
        Column("turning_angle_degrees", "turn, deg/layer", ".1f"),
    )

    def headline(self) -> str:
        return (
            f"{self.name}, depth {self.depth}, {self.steps:,} steps, "
            f"{self.train_points:,} training and {self.test_points:,} test points, float32"
        )

    def check(self) -> None:
        from integrator_zoo.data import planar_data

        planar_data(self.name, 0, self.train_points, self.test_points)

    def run(self, jobs: Sequence[Job], progress: Progress) -> Iterator[Result]:
        from integrator_zoo.training import run_fleet

        yield from run_fleet(jobs, self._train, progress, self.memory not in UNDOING)

    def _train(self, load: Load, tick: Any) -> Iterator[Result]:
        """Train the stacked runs of one program on the current device, and measure them."""
        import jax
        import jax.numpy as jnp
        import optax
        from flax import nnx

        from integrator_zoo import ResNet
        from integrator_zoo.data import planar_data
        from integrator_zoo.training import advance, begin, parameter_count
        from integrator_zoo.training.fleet import over_runs
        from integrator_zoo.training.loop import cross_entropy

        optimizer = optax.adam(self.lr)
        sets = [
            planar_data(self.name, job.seed, self.train_points, self.test_points)
            for job in load.jobs
        ]
        data = [jnp.asarray(np.stack(part)) for part in zip(*sets, strict=True)]
        values = load.option_arrays()

        def network(seed: Any) -> ResNet:
            return ResNet(
                self.depth,
                WIDTH,
                self.hidden,
                integrator=load.rule,
                total_time=self.total_time,
                tied=self.tied,
                memory=self.memory,
                rngs=nnx.Rngs(jax.random.key(seed)),
            )

        graph, shapes = nnx.split(nnx.eval_shape(lambda: network(0)))

        def start(seed: Any) -> Any:
            return begin(nnx.state(network(seed), nnx.Param), optimizer, self.steps)

        def train(run: Any, options: Any, x: Any, y: Any, test_x: Any, test_y: Any, until: Any):
            rule = load.rule.with_traced(options)

            def logits(params: Any, points: Any) -> Any:
                return nnx.merge(graph, params)(points, integrator=rule)

            def loss(params: Any, step: Any) -> Any:
                return cross_entropy(logits(params, x), y)

            run = advance(run, loss, optimizer, until)
            return run, (logits(run.params, test_x).argmax(-1) == test_y).mean()

        tick(0.0, "compiling")
        seeds = jnp.asarray([job.seed for job in load.jobs], jnp.uint32)
        runs = jax.jit(over_runs(start))(seeds)
        stops = self._stops()
        untils = np.broadcast_to(stops[:, None].astype(np.int32), (len(stops), len(seeds)))
        clock = time.perf_counter()
        program = jax.jit(over_runs(train), donate_argnums=0)
        compiled = program.lower(runs, values, *data, untils[0]).compile()
        compile_seconds = time.perf_counter() - clock

        clock, curve = time.perf_counter(), []
        for i, until in enumerate(untils):
            runs, accuracy = compiled(runs, values, *data, until)
            curve.append(np.asarray(accuracy))
            tick(i / (len(untils) - 1), f"step {stops[i]:,} of {self.steps:,}")
        run_seconds = (time.perf_counter() - clock) / len(seeds)

        measured = jax.jit(over_runs(self._measure(graph, load)))(runs.params, values, *data)
        measured, losses = jax.tree.map(np.asarray, (measured, runs.losses))
        size = parameter_count(shapes)
        evaluations = self._evaluations(graph, runs.params, load, data[2])
        devices = jax.local_devices()
        facts = {"dtype": "float32", "device": devices[0].device_kind, "devices": len(devices)}
        for i, job in enumerate(load.jobs):
            yield self._result(
                job,
                jax.tree.map(lambda leaf, i=i: leaf[i], measured),
                losses[i],
                {
                    "accuracy_by_step": np.array([point[i] for point in curve]),
                    "curve_steps": stops,
                    "test_points": _thin(sets[i].test_x),
                    "test_labels": _thin(sets[i].test_y),
                },
                {"parameters": size, "evaluations_per_step": evaluations},
                {"data_hash": sets[i].digest(), **facts},
                (compile_seconds, run_seconds),
            )

    def _stops(self) -> np.ndarray:
        """The steps after which accuracy is measured: evenly, and often at first."""
        evenly = np.linspace(0, self.steps, CHUNKS + 1).astype(int)
        return np.unique([*evenly, *(step for step in EARLY if step < self.steps)])

    def _measure(self, graph: Any, load: Load) -> Any:
        """A function of one run's parameters that measures the trained network."""
        import jax.numpy as jnp
        from flax import nnx

        from integrator_zoo import trajectory

        def measure(params: Any, options: Any, x: Any, y: Any, test_x: Any, test_y: Any) -> Any:
            net = nnx.merge(graph, params)
            rule = load.rule.with_traced(options)
            logits, path = net(test_x, collect=True, integrator=rule)
            reach = jnp.abs(test_x).max() * 1.1
            axis = jnp.linspace(-reach, reach, GRID)
            grid = jnp.stack(jnp.meshgrid(axis, axis), -1).reshape(-1, 2)
            field = net(grid, integrator=rule)
            norms = trajectory.norms(path)
            arrays = {
                "nodes": path.nodes[:, _picks(self.test_points)],
                "norm_by_node": norms.mean(1),
                "step_length_by_sub_update": trajectory.step_lengths(path).mean(1),
                "turning_angle_degrees_by_sub_update": trajectory.turning_angles(path).mean(1),
                "decision": (field[:, 1] - field[:, 0]).reshape(GRID, GRID),
                "decision_axis": axis,
            }
            metrics = {
                "test_accuracy": (logits.argmax(-1) == test_y).mean(),
                "path_length": trajectory.path_length(path).mean(),
                "turning_angle_degrees": trajectory.turning_angles(path).mean(),
                "straightness": trajectory.straightness(path).mean(),
                "norm_end": norms[-1].mean(),
                "norm_max": norms.mean(1).max(),
            }
            if "velocity" in path.observed:
                kinetic = (path.observed["velocity"] ** 2).sum(-1).mean(1) / 2
                arrays["kinetic_energy_by_node"] = kinetic
                metrics["kinetic_energy_end"] = kinetic[-1]
            return metrics, arrays

        return measure

    def _evaluations(self, graph: Any, params: Any, load: Load, test_x: Any) -> float:
        """Field evaluations a sub-update, counted on the first trained network of the load."""
        import jax
        from flax import nnx

        from integrator_zoo.depth import count_evaluations

        first = jax.tree.map(lambda leaf: leaf[0], params)
        rule, points = load.jobs[0].rule, test_x[0, : self.test_points // 4]

        def run(mark: Any) -> Any:
            def forward(weights: Any, x: Any) -> Any:
                return nnx.merge(graph, weights)(x, integrator=rule, mark=mark)

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

    def pictures(
        self, records: Sequence[Record], folder: Path, *, dark: bool = False
    ) -> list[Path]:
        from integrator_zoo.figures import planar

        return planar.draw_all(records, folder, dark=dark)


def _picks(points: int) -> np.ndarray:
    """Indices of the recorded test points, evenly over both classes."""
    return np.linspace(0, points - 1, min(DRAWN_POINTS, points)).astype(int)


def _thin(values: np.ndarray) -> np.ndarray:
    return values[_picks(len(values))]


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
