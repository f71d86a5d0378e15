"""Training a language model: batches by step, validation, telemetry and checkpoints as it goes.

Everything random is drawn from fold_in(role key, step), and everything that happens does so at
steps fixed beforehand: neither the validation interval nor a resumption changes a weight.
"""

from __future__ import annotations

import math
import time
from collections.abc import Callable, Iterator, Mapping
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import optax
from flax import nnx
from jax import Array

from ..depth import count_evaluations
from ..lab import Job
from ..trajectory import profile
from . import checkpoints
from .fleet import Load, over_runs, over_runs_sharing
from .loop import Progression, advance, begin, cross_entropy, first_bad_step, over_pieces
from .recipe import DATA, MASKS, Plan, Trained, role_key, unrolled
from .weights import rngs_of, taken_apart

SAVE_SECONDS = 60.0
"""A checkpoint about so often, where nothing is said in steps."""


class LanguageTrainer:
    """Trains the runs of one load, stacked, on the current default device.

    Args:
        network: makes the model from random streams; its parameters' shapes are the same for all.
        load: the jobs; they share a program.
        plan: what happens when.
        optimizer: as from `adamw`.
        train, validation: tokens.
        fixed: validation windows used during the run, [n, context + 1].
        probe: windows on which the geometry is measured.
        about: plain values stored with each checkpoint.
    """

    def __init__(
        self,
        network: Callable[[nnx.Rngs], nnx.Module],
        load: Load,
        plan: Plan,
        optimizer: optax.GradientTransformation,
        train: np.ndarray,
        fixed: np.ndarray,
        probe: np.ndarray,
        about: Callable[[Job], dict[str, Any]],
    ) -> None:
        self.network, self.load, self.plan, self.optimizer = network, load, plan, optimizer
        self.tokens, self.fixed, self.probe = jnp.asarray(train), fixed, jnp.asarray(probe)
        self.about = about
        self.graph, self.shapes, self.rest = taken_apart(network)
        self.options = load.option_arrays()
        self._losses = jax.jit(over_runs_sharing(self._window_losses))
        self._profile = jax.jit(over_runs_sharing(self._measure))
        self._profile_shapes = jax.eval_shape(
            self._measure, self.shapes, _slice(self.options, 0), self.probe
        )

    def model(self, params: Any, training: bool) -> nnx.Module:
        """The network with these parameters. Its own random state is replaced by explicit keys."""
        made = nnx.merge(self.graph, params, self.rest)
        made.train() if training else made.eval()
        return made

    def _window_losses(self, params: Any, options: Any, batch: Array) -> Array:
        """Mean loss of each window: [windows]."""
        rule = self.load.rule.with_traced(options)
        logits = self.model(params, False)(batch[:, :-1], integrator=rule)
        losses = optax.softmax_cross_entropy_with_integer_labels(logits, batch[:, 1:])
        return losses.mean(-1)

    def _measure(self, params: Any, options: Any, batch: Array) -> dict[str, Array]:
        rule = self.load.rule.with_traced(options)
        _, path = self.model(params, False)(batch[:, :-1], integrator=rule, collect=True)
        return profile(path)

    def evaluate(self, params: Any, batch: np.ndarray, size: int | None = None) -> np.ndarray:
        """Mean loss in nats a token of each stacked run: [runs]. `size` windows at a time.

        Each window's loss is taken by itself and the mean in 64-bit on the host, so that the
        batch size does not matter.
        """
        size = min(size or self.plan.evaluation_batch, len(batch))
        found = []
        for start in range(0, len(batch), size):
            part = batch[start : start + size]
            full = np.resize(part, (size, part.shape[1]))
            losses = np.asarray(self._losses(params, self.options, full))
            found.append(losses[:, : len(part)].astype(np.float64))
        return np.concatenate(found, 1).mean(1)

    def evaluations(self, params: Any) -> int:
        """Field evaluations of one forward pass of the first run, counted as they happen."""

        def run(mark: Any) -> Any:
            def forward(params: Any, tokens: Array) -> Any:
                rule = self.load.jobs[0].rule
                return self.model(params, False)(tokens, integrator=rule, mark=mark)

            return jax.jit(forward)(_slice(params, 0), self.probe[:1, :-1])

        return count_evaluations(run)

    def train(self, tick: Callable[[float, str], None]) -> Iterator[tuple[int, Trained]]:
        """Train until the plan's stop, and yield (index of the job, how it went) for each."""
        runs, notes = self._start()
        plan, jobs = self.plan, self.load.jobs
        tick(0.0, "compiling")
        clock = time.perf_counter()
        seeds = jnp.asarray([job.seed for job in jobs], jnp.uint32)
        program = jax.jit(over_runs(self._advance), donate_argnums=0)
        compiled = program.lower(
            runs, self.options, seeds, jnp.zeros(len(jobs), jnp.int32)
        ).compile()
        compile_seconds = time.perf_counter() - clock
        begun, saved = time.perf_counter(), time.monotonic()
        first = min(note.step for note in notes)
        ended = False
        for stop in plan.stops():
            if stop < max(first, 0):
                continue
            due = {i: note for i, note in enumerate(notes) if note.step < stop}
            if not due:
                continue
            runs = compiled(runs, self.options, seeds, jnp.full(len(jobs), stop, jnp.int32))
            losses = np.asarray(runs.losses)
            self._look(stop, runs.params, due)
            for i, note in due.items():
                note.step, note.first_bad = stop, _first_bad(losses[i], stop)
            ended = stop == plan.stop or all(note.first_bad is not None for note in notes)
            over = _past(jobs[0].session.deadline)
            late = time.monotonic() - saved > SAVE_SECONDS and not plan.save_every
            if ended or over or late or (plan.save_every and stop % plan.save_every == 0):
                self._save(runs, due)
                saved = time.monotonic()
            tick(stop / plan.stop, self._words(stop, first, losses, time.perf_counter() - begun))
            if ended or over:
                break
        self._finish(runs.params, dict(enumerate(notes)))
        seconds = (time.perf_counter() - begun) / len(jobs)
        for i, note in enumerate(notes):
            note.params = _slice(runs.params, i)
            note.losses = np.asarray(runs.losses[i])
            note.compile_seconds, note.run_seconds = compile_seconds, seconds
            note.stopped = note.step < plan.stop and note.first_bad is None
            taken = note.step - max(first, 0)
            if taken > 0:
                note.tokens_per_second = taken * plan.batch * plan.context / seconds
            yield i, note

    def _advance(self, run: Progression, options: Any, seed: Array, until: Array) -> Progression:
        rule, plan = self.load.rule.with_traced(options), self.plan
        data, masks = role_key(seed, DATA), role_key(seed, MASKS)
        offsets = jnp.arange(plan.context + 1)
        pieces = plan.pieces if jax.default_backend() == "cpu" else 1

        def loss(params: Any, step: Array, piece: Any) -> Array:
            key = jax.random.fold_in(data, step)
            starts = jax.random.randint(key, (plan.batch,), 0, len(self.tokens) - plan.context)
            batch = self.tokens[starts.reshape(pieces, -1)[piece][:, None] + offsets]
            mask_key = jax.random.fold_in(jax.random.fold_in(masks, step), piece)
            logits = self.model(params, True)(batch[:, :-1], key=mask_key, integrator=rule)
            return cross_entropy(logits, batch[:, 1:])

        return advance(
            run, over_pieces(loss, pieces, 2 if unrolled(rule) else 1), self.optimizer, until
        )

    def _fresh(self, seed: Any) -> Progression:
        params = nnx.state(self.network(rngs_of(seed)), nnx.Param)
        return begin(params, self.optimizer, self.plan.steps)

    def _start(self) -> tuple[Any, list[Trained]]:
        """Each run at its last intact checkpoint, or before its first step."""
        seeds = jnp.asarray([job.seed for job in self.load.jobs], jnp.uint32)
        fresh = jax.jit(over_runs(self._fresh))(seeds)
        states, notes = [], []
        for i, job in enumerate(self.load.jobs):
            state = _slice(fresh, i)
            note = Trained(-1, None, state.params, state.losses, math.inf, 0, {}, {})
            folder = job.session.scratch
            like = self._stored(state, note)
            found = folder and checkpoints.latest(folder, like, job.session.note, self.plan.stop)
            if folder and found:
                state, note = self._restored(*found)
                note.checkpoint = folder / f"step-{found[0]:08}"
                job.session.note(f"goes on from its checkpoint at step {found[0]:,}")
            states.append(state)
            notes.append(note)
        return jax.tree.map(lambda *leaves: jnp.stack(leaves), *states), notes

    def _look(self, stop: int, params: Any, notes: Mapping[int, Trained]) -> None:
        """Do what is due at a step: validate, keep the best weights, measure the geometry."""
        if stop in self.plan.validated():
            self._validate(stop, params, notes)
        if stop in self.plan.measured():
            self._survey(stop, params, notes)

    def _validate(self, stop: int, params: Any, notes: Mapping[int, Trained]) -> None:
        values = self.evaluate(params, self.fixed)
        for i, note in notes.items():
            note.curve[stop] = float(values[i])
            if values[i] < note.best_loss:
                note.best_loss, note.best_step = float(values[i]), stop
                note.best_params = _slice(params, i)

    def _survey(self, stop: int, params: Any, notes: Mapping[int, Trained]) -> None:
        found = jax.tree.map(np.asarray, self._profile(params, self.options, self.probe))
        for i, note in notes.items():
            note.telemetry[stop] = {name: value[i] for name, value in found.items()}

    def _finish(self, params: Any, notes: Mapping[int, Trained]) -> None:
        """Validate and measure an end that is off the schedule.

        This comes after the last checkpoint and is not in it: a run that goes on from there is
        the one that never stopped.
        """
        for stop in {note.step for note in notes.values()}:
            here = {i: note for i, note in notes.items() if note.step == stop}
            if any(stop not in note.curve for note in here.values()):
                self._validate(stop, params, here)
            if any(stop not in note.telemetry for note in here.values()):
                self._survey(stop, params, here)

    def _save(self, runs: Progression, notes: Mapping[int, Trained]) -> None:
        for i, note in notes.items():
            job = self.load.jobs[i]
            if (folder := job.session.scratch) is not None:
                state = self._stored(_slice(runs, i), note)
                note.checkpoint = checkpoints.save(folder, note.step, state, self.about(job))

    def _stored(self, run: Progression, note: Trained) -> dict[str, Any]:
        """All of a run as a pytree of arrays of fixed shapes: what a checkpoint holds."""
        plan = self.plan
        curve = np.full(plan.steps + 1, np.nan)
        curve[list(note.curve)] = list(note.curve.values())
        telemetry = {}
        for name, shape in self._profile_shapes.items():
            kept = np.full((len(plan.telemetry), *shape.shape), np.nan, np.float32)
            for place, step in enumerate(plan.telemetry):
                if step in note.telemetry:
                    kept[place] = note.telemetry[step][name]
            telemetry[name] = kept
        return {
            "run": run,
            "best": note.best_params,
            "best_loss": np.float64(note.best_loss),
            "best_step": np.int32(note.best_step),
            "curve": curve,
            "telemetry": telemetry,
        }

    def _restored(self, step: int, state: Any) -> tuple[Progression, Trained]:
        run = jax.tree.map(jnp.asarray, state["run"])
        curve = {
            int(i): float(state["curve"][i]) for i in np.flatnonzero(~np.isnan(state["curve"]))
        }
        telemetry = {
            at: {name: kept[place] for name, kept in state["telemetry"].items()}
            for place, at in enumerate(self.plan.telemetry)
            if at <= step and not np.isnan(state["telemetry"]["path_length"][place])
        }
        note = Trained(
            step,
            None,
            jax.tree.map(jnp.asarray, state["best"]),
            state["run"].losses,
            float(state["best_loss"]),
            int(state["best_step"]),
            curve,
            telemetry,
            _first_bad(state["run"].losses, step),
        )
        return run, note

    def _words(self, stop: int, first: int, losses: np.ndarray, seconds: float) -> str:
        """Progress in a few words: step, loss, speed."""
        plan, done = self.plan, stop - max(first, 0)
        words = f"step {stop:,} of {plan.stop:,}"
        if not done:
            return words
        rate = done / seconds
        speed = rate * plan.batch * plan.context * len(self.load.jobs)
        loss = losses[:, max(0, stop - 20) : stop].mean()
        return f"{words}, loss {loss:.3f}, {speed:,.0f} tokens/s"


def _slice(tree: Any, i: int) -> Any:
    return jax.tree.map(lambda leaf: leaf[i], tree)


def _first_bad(losses: np.ndarray, done: int) -> int | None:
    return first_bad_step(losses[:done]) if done else None


def _past(deadline: float | None) -> bool:
    return deadline is not None and time.monotonic() > deadline
