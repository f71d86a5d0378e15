"""The Kepler orbit: what each integrator does to a planet over twenty revolutions, in 64-bit."""

from __future__ import annotations

import time
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from integrator_zoo.errors import ZooError, one_line
from integrator_zoo.hookspecs import hookimpl
from integrator_zoo.lab import Column, Experiment, Job, Progress, Result, experiment, option

if TYPE_CHECKING:
    from integrator_zoo.claims import Claim
    from integrator_zoo.problems import Kepler as KeplerProblem
    from integrator_zoo.runs import Record

SAMPLES = 4000
"""Energy and reach are sampled about so often, as in the published table."""
MOST_STEPS = 10_000_000
"""Every node is kept in memory."""
BLOWN_UP = 1e6
"""A planet farther away than this many initial radii counts as diverged."""


@experiment(
    "kepler",
    summary="a planet for twenty orbits: energy drift, reach, phase error, observed order",
    default_specs=("euler", "leapfrog"),
    presets={"published": {}, "quick": {"orbits": 2.0}},
    random=False,
)
class Kepler(Experiment):
    """r'' = -GM r / |r|^3 from a start, with a fixed step.

    First-order integrators run on the stacked (r, v). Energy drift is (E_end - E_0) / |E_0|;
    the largest deviation is max |E - E_0| / |E_0|; separation is the distance from the exact
    solution at the end. `observed_order` is measured on the same orbit with ever smaller steps.
    """

    dt: float = option(0.02, "step size", above=0.0)
    orbits: float = option(20.0, "how many revolutions", above=0.0)
    gm: float = option(1.0, "gravitational parameter GM", above=0.0)
    x: float = option(1.0, "initial position, x")
    y: float = option(0.0, "initial position, y")
    vx: float = option(0.0, "initial velocity, x")
    vy: float = option(0.9, "initial velocity, y")

    columns = (
        Column("evaluations_per_step", "F/step", ".4g", meaning="evaluations of the force a step"),
        Column(
            "energy_drift",
            "energy drift, %",
            "+.3g",
            100,
            meaning="energy gained by the end; exact: 0",
        ),
        Column(
            "max_energy_deviation",
            "largest deviation, %",
            ".3g",
            100,
            meaning="of the energy, at any step",
        ),
        Column(
            "farthest_reach", "farthest reach", ".3f", meaning="greatest distance from the centre"
        ),
        Column(
            "separation",
            "off the exact",
            ".3g",
            meaning="distance from the exact position at the end",
        ),
        Column("observed_order", "order", ".2f", meaning="p of error ~ step^p, on this orbit"),
    )

    def problem(self) -> KeplerProblem:
        from integrator_zoo.problems import Kepler as KeplerProblem

        return KeplerProblem(gm=self.gm, x=self.x, y=self.y, vx=self.vx, vy=self.vy)

    def steps(self) -> int:
        return max(1, round(self.orbits * self.problem().period() / self.dt))

    def check(self) -> None:
        if self.steps() > MOST_STEPS:
            raise ZooError(
                f"kepler: dt={self.dt:g} needs {self.steps():,} steps, more than {MOST_STEPS:,}.",
                "Give a larger dt or fewer orbits.",
            )

    def headline(self) -> str:
        period = self.problem().period()
        return (
            f"kepler, dt {self.dt:g}, {self.steps():,} steps, {self.orbits:g} orbits of period "
            f"{period:.6g}, GM {self.gm:g}, float64"
        )

    def run(self, jobs: Sequence[Job], progress: Progress) -> Iterator[Result]:
        for done, job in enumerate(jobs):
            progress(job.rule.spec, done / len(jobs), f"orbit {done + 1} of {len(jobs)}")
            try:
                yield self._orbit(job)
            except Exception as error:
                yield Result(job, "failed", {}, reason=one_line(error, type(job.rule)))
        progress("kepler", 1.0, "done")

    def _orbit(self, job: Job) -> Result:
        from integrator_zoo.problems import evaluations_per_step, observed_order, solve

        problem, steps = self.problem(), self.steps()
        clock = time.perf_counter()
        solve(job.rule, problem, self.dt, steps)  # compiles
        compiled = time.perf_counter()
        found = solve(job.rule, problem, self.dt, steps)
        run_seconds = time.perf_counter() - compiled
        assert found.v is not None
        sampled = np.arange(0, steps + 1, max(1, steps // SAMPLES))
        with np.errstate(all="ignore"):
            radius = np.linalg.norm(found.x, axis=1)
            energy = np.asarray(problem.energy(found.x, found.v))
        deviation = (energy - energy[0]) / abs(energy[0])
        bad = _first_bad(radius, energy)
        fit = observed_order(job.rule, problem, span=0.4 * problem.period())
        metrics: dict[str, Any] = {
            "parameters": 0,
            "evaluations_per_step": evaluations_per_step(job.rule, problem, self.dt),
            "steps": steps,
            "observed_order": None if job.rule.traits.order is None else fit.order,
        }
        if bad is None:
            metrics |= {
                "energy_drift": deviation[-1],
                "max_energy_deviation": np.abs(deviation[sampled]).max(),
                "farthest_reach": radius[sampled].max(),
                "separation": found.error[-1],
                "final_x": found.x[-1, 0],
                "final_y": found.x[-1, 1],
            }
        else:
            metrics["first_bad_step"] = bad
        keep = np.unique(np.append(sampled, steps))
        return Result(
            job,
            "ok" if bad is None else "diverged",
            metrics,
            {
                "times": found.times[keep],
                "x": found.x[keep],
                "v": found.v[keep],
                "energy_deviation": deviation[keep],
                "exact": problem.exact(found.times[keep]),
                "order_steps": fit.steps,
                "order_errors": fit.errors,
            },
            {"dtype": "float64", "device": "cpu", "devices": 1, "period": problem.period()},
            None if bad is None else f"the planet is lost at step {bad:,}",
            compile_seconds=max(0.0, compiled - clock - run_seconds),
            run_seconds=run_seconds,
        )

    def pairs(self, records: Sequence[Record]) -> dict[str, dict[str, float]]:
        """`final_separation`: distance between the final positions of each two integrators."""
        ends = [
            (record.integrator, np.array([record.metrics["final_x"], record.metrics["final_y"]]))
            for record in records
            if record.metrics.get("final_x") is not None
        ]
        return {
            "final_separation": {
                f"{one} | {other}": float(np.linalg.norm(a - b))
                for i, (one, a) in enumerate(ends)
                for other, b in ends[i + 1 :]
            }
        }

    def claims(self) -> Sequence[Claim]:
        from .claims.kepler import CLAIMS

        return CLAIMS

    def pictures(self, records: Sequence[Record], folder: Path) -> list[Path]:
        from integrator_zoo.figures import orbit

        return orbit.draw_all(records, folder)


def _first_bad(radius: np.ndarray, energy: np.ndarray) -> int | None:
    """The first step at which the planet is lost."""
    with np.errstate(invalid="ignore"):
        bad = ~np.isfinite(radius + energy) | (radius > BLOWN_UP * radius[0])
    return int(np.argmax(bad)) if bad.any() else None


@hookimpl
def zoo_experiments():
    return [Kepler]
