"""Memory: what each memory mode costs and gives, at ever greater depth."""

from __future__ import annotations

import re
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
    from integrator_zoo.runs import Record

MODES = ("store", "remat", "reversible", "exact")
SPECS = {"reversible": "reversible:unsafe=allow"}
"""The cliff is what we want to see."""
MEGABYTE = 2**20
TEMPORARY = "the compiler's temporary memory for a gradient at the greatest depth"
SECONDS = "time of that gradient, the fastest of the repeats"
COSINE = "of this gradient with the stored 64-bit one; 1: the same direction"


@experiment(
    "memory",
    summary="store, remat, reversible, exact: memory, time and gradient as depth grows",
    default_specs=("ledger", "ledger:mu=0.6"),
    presets={"published": {"deepest": 1024}, "quick": {"deepest": 32, "points": 128}},
)
class Memory(Experiment):
    """The gradient of a mean square over depths 8, 32, 128, ..., in each memory mode.

    `temp_mb` is the compiler's temporary memory, `peak_mb` the process's largest resident memory
    while the program ran (0 where the system does not tell), `cosine` that of the float32
    gradient with the stored 64-bit one. Metrics are those of the greatest depth; all depths are
    in the arrays. A rule that cannot be undone has only the first two modes.
    """

    deepest: int = option(512, "greatest depth; the others are 8, 32, 128, ... below it", low=8)
    width: int = option(32, "features of the stream", low=1)
    hidden: int = option(64, "hidden units of a branch", low=1)
    points: int = option(256, "points in the batch", low=1)
    tied: bool = option(True, "one layer's weights for all layers")
    total_time: float = option(8.0, "T; the step is T / depth", above=0.0)
    repeats: int = option(3, "timed runs, of which the fastest counts", low=1)

    columns = (
        *(Column(f"temp_mb_{mode}", f"{mode}, MB", ".1f", meaning=TEMPORARY) for mode in MODES),
        *(
            Column(f"step_seconds_{mode}", f"{mode}, ms", ".0f", 1000, meaning=SECONDS)
            for mode in MODES
        ),
        *(Column(f"cosine_{mode}", f"{mode}, cos", ".6f", meaning=COSINE) for mode in MODES[2:]),
        Column("safe_depth", "safe depth", ".0f", meaning="greatest that `reversible` takes"),
    )

    def depths(self) -> list[int]:
        found = [8 * 4**i for i in range(20) if 8 * 4**i < self.deepest]
        return [*found, self.deepest]

    def headline(self) -> str:
        weights = "weights shared" if self.tied else "weights of each layer its own"
        return (
            f"memory, depth {self.deepest}, width {self.width}, hidden {self.hidden}, "
            f"{self.points} points, {weights}, float32 against float64"
        )

    def run(self, jobs: Sequence[Job], progress: Progress) -> Iterator[Result]:
        for done, job in enumerate(jobs):
            try:
                yield self._one(
                    job,
                    lambda share, words, job=job, done=done: progress(
                        job.rule.spec, (done + share) / len(jobs), words
                    ),
                )
            except Exception as error:
                yield Result(job, "failed", {}, reason=one_line(error, type(job.rule)))
        progress("memory", 1.0, "done")

    def _one(self, job: Job, tick: Any) -> Result:
        from integrator_zoo.contract import Invertible
        from integrator_zoo.memory import safe_depth

        clock, depths = time.perf_counter(), self.depths()
        names = ("temp_mb", "peak_mb", "step_seconds", "cosine")
        arrays = {
            f"{name}_{mode}": np.full(len(depths), np.nan) for name in names for mode in MODES
        }
        for i, depth in enumerate(depths):
            referee = self._gradient(job, depth, "store", 64)[0]
            for j, mode in enumerate(MODES):
                tick((i + j / len(MODES)) / len(depths), f"depth {depth}, {mode}")
                try:
                    found, *costs = self._gradient(job, depth, SPECS.get(mode, mode), 32)
                except ZooError:  # it cannot be undone
                    continue
                for name, value in zip(names, (*costs, _cosine(found, referee)), strict=True):
                    arrays[f"{name}_{mode}"][i] = value
        metrics: dict[str, Any] = {name: _finite(values[-1]) for name, values in arrays.items()}
        if isinstance(job.rule, Invertible):
            metrics["safe_depth"] = _finite(safe_depth(job.rule, 2.0**-23))
        return Result(
            job,
            "ok",
            metrics,
            {**arrays, "depths": np.array(depths)},
            {"dtype": "float32 against float64", "devices": 1},
            run_seconds=time.perf_counter() - clock,
        )

    def _gradient(self, job: Job, depth: int, memory: str, bits: int) -> tuple[Any, ...]:
        """The gradient as one vector, temporary and peak memory in MB, seconds of a step."""
        import jax
        import jax.numpy as jnp

        from integrator_zoo import integrate

        rng = np.random.default_rng(job.seed)
        lead = () if self.tied else (depth,)
        shapes = ((*lead, self.width, self.hidden), (*lead, self.hidden, self.width))
        drawn = [rng.normal(size=s).astype(np.float32) / s[-2] ** 0.5 for s in shapes]
        points = rng.normal(size=(2, self.points, self.width)).astype(np.float32)

        def loss(weights: Any, x: Any, target: Any) -> Any:
            end = integrate(
                job.rule,
                lambda w, index, z: jnp.tanh(z @ w[0]) @ w[1],
                weights,
                x,
                depth=depth,
                h=self.total_time / depth,
                tied=self.tied,
                memory=memory,
            ).position
            return ((end - target) ** 2).mean()

        with jax.enable_x64(bits == 64):
            dtype = jnp.float64 if bits == 64 else jnp.float32
            weights, (x, target) = jax.tree.map(lambda a: jnp.asarray(a, dtype), (drawn, [*points]))
            program = jax.jit(jax.grad(loss)).lower(weights, x, target).compile()
            analysis = program.memory_analysis()
            temp = analysis.temp_size_in_bytes / MEGABYTE if analysis else np.nan
            _reset_peak()
            found = jax.block_until_ready(program(weights, x, target))
            peak, seconds = _peak(), np.inf
            for _ in range(self.repeats if bits == 32 else 0):
                clock = time.perf_counter()
                jax.block_until_ready(program(weights, x, target))
                seconds = min(seconds, time.perf_counter() - clock)
            flat = np.concatenate([np.asarray(leaf, np.float64).ravel() for leaf in found])
        return flat, temp, peak, seconds

    def claims(self) -> Sequence[Claim]:
        from .claims.memory import CLAIMS

        return CLAIMS

    def pictures(self, records: Sequence[Record], folder: Path) -> list[Path]:
        from integrator_zoo.figures import reversal

        return reversal.draw_memory(records, folder)


def _cosine(one: np.ndarray, other: np.ndarray) -> float:
    with np.errstate(all="ignore"):
        scaled = one / np.abs(one).max()  # a collapsed gradient may be huge
        return float(scaled @ other / np.linalg.norm(scaled) / np.linalg.norm(other))


def _reset_peak() -> None:
    """Let the system forget the largest resident memory so far (Linux)."""
    try:
        Path("/proc/self/clear_refs").write_text("5")
    except OSError:
        return


def _peak() -> float:
    """Largest resident memory of this process in MB; NaN where the system does not tell."""
    try:
        found = re.search(r"VmHWM:\s+(\d+) kB", Path("/proc/self/status").read_text())
    except OSError:
        return np.nan
    return int(found[1]) / 1024 if found else np.nan


def _finite(value: Any) -> Any:
    return float(value) if np.isfinite(value) else None


@hookimpl
def zoo_experiments():
    return [Memory]
