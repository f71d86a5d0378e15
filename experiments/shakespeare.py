"""Shakespeare: a character-level GPT whose residual stream is moved by any integrator.

Trained on the plays, early-stopped; its path is measured before, during and after training.
"""

from __future__ import annotations

import functools
import math
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from integrator_zoo.errors import ZooError
from integrator_zoo.hookspecs import hookimpl
from integrator_zoo.lab import Column, Experiment, Job, Progress, Result, experiment, option
from integrator_zoo.memory import MEMORY, UNDOING

if TYPE_CHECKING:
    from flax import nnx

    from integrator_zoo import GPT
    from integrator_zoo.claims import Claim
    from integrator_zoo.contract import Integrator
    from integrator_zoo.data import Corpus
    from integrator_zoo.runs import Record
    from integrator_zoo.training import Load
    from integrator_zoo.training.language import LanguageTrainer
    from integrator_zoo.training.recipe import Plan, Trained

TELEMETRY = (0.0, 0.1, 0.5, 1.0)
"""When the geometry is measured, as shares of the whole schedule."""
HELD_OUT = "mean -ln p(next character) on fixed windows of held-out text"

_PUBLISHED = {
    "width": 192,
    "layers": 6,
    "mlp_hidden": 768,
    "context": 128,
    "batch": 64,
    "pieces": 32,
    "steps": 12000,
    "peak_lr": 0.001,
    "end_lr": 0.0001,
    "warmup": 200,
    "validate_every": 250,
}


@experiment(
    "shakespeare",
    summary="a character-level GPT on the plays: loss, and the geometry of its path through depth",
    default_specs=("euler", "ledger", "ngpt-lite", "ngpt-ledger"),
    presets={
        "quick": {},
        "published": _PUBLISHED,
        "cpu-probe": {**_PUBLISHED, "stop_at": 1200},
    },
)
class Shakespeare(Experiment):
    """Character-level language model; losses in nats a character, angles in degrees.

    `best_val_loss` and `final_val_loss` are on fixed validation windows, `full_val_loss` and
    `bits_per_character` are the best weights on the whole validation split. Path length, turning
    angle and straightness are means over a fixed probe batch, dropout off, at the last step.
    """

    corpus: str = option("shakespeare", "shakespeare, gutenberg, generated, or a text file")
    width: int = option(128, "features of the stream", low=1)
    layers: int = option(4, "layers, two sub-updates each", low=1)
    heads: int = option(4, "attention heads", low=1)
    mlp_hidden: int = option(512, "hidden units of the MLP", low=1)
    context: int = option(64, "characters a window", low=2)
    batch: int = option(16, "windows a step", low=1)
    pieces: int = option(2, "equal parts a batch is taken in on CPU, if it can be", low=1)
    steps: int = option(800, "optimiser steps of the whole schedule", low=2)
    stop_at: int = option(0, "stop at this step of the schedule; 0 for its end", low=0)
    peak_lr: float = option(0.002, "AdamW's highest learning rate", above=0.0)
    end_lr: float = option(0.0002, "learning rate at the end of the cosine", low=0.0)
    warmup: int = option(80, "steps of linear warm-up", low=0)
    weight_decay: float = option(0.01, "AdamW's decay of kernels and embeddings", low=0.0)
    clip: float = option(1.0, "largest global norm of a gradient", above=0.0)
    dropout: float = option(0.15, "dropout rate, in steps of 1/256", low=0.0, below=1.0)
    h: float = option(1.0, "step size of a sub-update", above=0.0)
    validate_every: int = option(100, "steps between validations", low=1)
    validation_windows: int = option(256, "fixed validation windows", low=1)
    evaluation_batch: int = option(32, "windows evaluated at a time", low=1)
    probe_windows: int = option(8, "validation windows whose paths are measured", low=1)
    save_every: int = option(0, "steps between checkpoints; 0 for one a minute", low=0)
    dtype: str = option("float32", "what branches compute in", choices=("float32", "bfloat16"))
    memory: str = option("store", "what the backward pass keeps", choices=MEMORY)

    limits = ("stop_at", "save_every")
    huge_pages = True

    columns = (
        Column("evaluations_per_step", "F/step", ".4g", meaning="evaluations of F a sub-update"),
        Column("best_val_loss", "best val, nats", ".4f", spread=True, meaning=HELD_OUT),
        Column("bits_per_character", "bits/char", ".3f", meaning="on all held-out text"),
        Column("blowup_ratio", "final/best", ".4f", meaning="of the loss; above 1: overfitting"),
        Column("path_length", "path", ".1f", meaning="length of a token's way through depth"),
        Column("turning_angle_degrees", "turn, deg", ".1f", meaning="bend a sub-update; 0: none"),
        Column("straightness", "straight", ".3f", meaning="end to end over path; 1: a line"),
    )

    def headline(self) -> str:
        until = f"stopped at {self.end():,} of " if self.end() < self.steps else ""
        return (
            f"{self.name}, {self.layers} layers of {self.width}, context {self.context}, "
            f"batch {self.batch}, {until}{self.steps:,} steps, corpus {self.corpus}, {self.dtype}"
        )

    def end(self) -> int:
        """The step at which the training ends."""
        return min(self.stop_at, self.steps) if self.stop_at else self.steps

    def check(self) -> None:
        if self.width % self.heads:
            raise ZooError(
                f"{self.name}: width={self.width} is not a multiple of heads={self.heads}.",
                "For example --set heads=4 --set width=128",
            )
        _corpus(self.corpus).check(self.context)

    def network(self, vocabulary: int, rule: Integrator, rngs: nnx.Rngs) -> GPT:
        """The model with these settings."""
        from integrator_zoo import GPT
        from integrator_zoo.training.recipe import unrolled

        return GPT(
            vocabulary,
            self.context,
            self.width,
            self.layers,
            self.heads,
            self.mlp_hidden,
            integrator=rule,
            h=self.h,
            dropout=self.dropout,
            dtype=self.dtype,
            memory=self.memory,
            unroll=unrolled(rule),
            rngs=rngs,
        )

    def plan(self) -> Plan:
        """What happens at which step."""
        from integrator_zoo.training.recipe import Plan

        return Plan(
            steps=self.steps,
            stop=self.end(),
            batch=self.batch,
            context=self.context,
            pieces=math.gcd(self.batch, self.pieces),
            validate_every=self.validate_every,
            telemetry=tuple(sorted({round(share * self.steps) for share in TELEMETRY})),
            evaluation_batch=self.evaluation_batch,
            save_every=self.save_every,
        )

    def trainer(self, load: Load) -> LanguageTrainer:
        """What trains the runs of one load."""
        from integrator_zoo.training.language import LanguageTrainer
        from integrator_zoo.training.recipe import adamw, windows

        corpus = _corpus(self.corpus)
        size = len(corpus.vocabulary)

        def about(job: Job) -> dict[str, Any]:
            return {
                "vocabulary": corpus.vocabulary,
                "corpus": corpus.digest,
                "settings": self.option_values(),
                "integrator": job.rule.spec,
                "seed": job.seed,
            }

        return LanguageTrainer(
            lambda rngs: self.network(size, load.rule, rngs),
            load,
            self.plan(),
            adamw(self.peak_lr, self.end_lr, self.warmup, self.steps, self.weight_decay, self.clip),
            corpus.train,
            windows(corpus.validation, self.context, self.validation_windows),
            windows(corpus.validation, self.context, self.probe_windows),
            about,
        )

    def run(self, jobs: Sequence[Job], progress: Progress) -> Iterator[Result]:
        from integrator_zoo.training import run_fleet

        yield from run_fleet(jobs, self._train, progress, self.memory not in UNDOING)

    def _train(self, load: Load, tick: Any) -> Iterator[Result]:
        import jax

        from integrator_zoo.training import parameter_count
        from integrator_zoo.training.recipe import all_windows

        corpus = _corpus(self.corpus)
        trainer = self.trainer(load)
        devices = jax.local_devices()
        facts = {
            "corpus": corpus.name,
            "characters": len(corpus.text),
            "vocabulary": len(corpus.vocabulary),
            "data_hash": corpus.digest,
            "uniform_loss": math.log(len(corpus.vocabulary)),
            "dtype": self.dtype,
            "device": devices[0].device_kind,
            "devices": len(devices),
        }
        trained = [done for _, done in trainer.train(tick)]
        tick(1.0, "the whole validation split")
        best = jax.tree.map(lambda *leaves: np.stack(leaves), *(d.best_params for d in trained))
        full = trainer.evaluate(best, all_windows(corpus.validation, self.context))
        counts = {
            "parameters": parameter_count(trainer.shapes),
            "evaluations_per_step": trainer.evaluations(best) / (2 * self.layers),
        }
        for job, done, loss in zip(load.jobs, trained, full, strict=True):
            yield self._result(job, done, float(loss), counts, facts)

    def _result(
        self, job: Job, done: Trained, full: float, counts: dict[str, Any], facts: dict[str, Any]
    ) -> Result:
        last = done.telemetry[done.step]
        recent = done.losses[: done.step][-100:]
        metrics: dict[str, Any] = {
            **counts,
            "steps": done.step,
            "best_val_loss": done.best_loss,
            "best_step": done.best_step,
            "final_val_loss": done.curve[done.step],
            "blowup_ratio": done.curve[done.step] / done.best_loss,
            "full_val_loss": full,
            "bits_per_character": full / math.log(2),
            "train_loss": float(recent.mean()) if len(recent) else None,
            **{name: float(last[name]) for name in ("path_length", "end_to_end", "straightness")},
            "turning_angle_degrees": float(last["mean_turning_angle_degrees"]),
            "path_length_by_step": _by_step(done, "path_length"),
            "turning_angle_degrees_by_step": _by_step(done, "mean_turning_angle_degrees"),
        }
        steps = sorted(done.telemetry)
        arrays = {
            "loss": done.losses[: done.step],
            "validation_steps": np.array(sorted(done.curve)),
            "validation_loss": np.array([done.curve[at] for at in sorted(done.curve)]),
            "telemetry_steps": np.array(steps),
            **{
                f"{name}_by_sub_update" if value.ndim else name: np.stack(
                    [done.telemetry[at][name] for at in steps]
                )
                for name, value in last.items()
            },
        }
        status, reason = "ok", None
        if done.first_bad is not None:
            status, loss = "diverged", done.losses[done.first_bad]
            reason = f"the loss blew up at step {done.first_bad:,} (loss {loss:.3g})"
            metrics["first_bad_step"] = done.first_bad
        elif done.stopped:
            status = "stopped"
            reason = f"out of minutes at step {done.step:,} of {self.end():,}; repeat the command"
        return Result(
            job,
            status,  # type: ignore[arg-type]
            metrics,
            arrays,
            {**facts, "tokens_per_second": done.tokens_per_second},
            reason,
            done.compile_seconds,
            done.run_seconds,
            {} if done.checkpoint is None else {"checkpoint": done.checkpoint},
            resumable=status == "stopped" or (status == "ok" and self.end() < self.steps),
        )

    def language_model(self, record: Record, rule: Integrator) -> tuple[GPT, str]:
        from integrator_zoo.training import checkpoints
        from integrator_zoo.training.weights import with_weights

        place = record.folder / "checkpoint"
        try:
            vocabulary = checkpoints.about(place)["vocabulary"]
            net = with_weights(lambda rngs: self.network(len(vocabulary), rule, rngs), place)
        except checkpoints.DamagedError as error:
            raise ZooError(
                f"{str(place)!r} holds no intact checkpoint: {error}.",
                "Repeat the run: zoo run ... --fresh",
            ) from None
        return net, vocabulary

    def claims(self) -> Sequence[Claim]:
        from .claims.shakespeare import CLAIMS

        return CLAIMS

    def pictures(self, records: Sequence[Record], folder: Path) -> list[Path]:
        from integrator_zoo.figures import shakespeare

        return shakespeare.draw_all(records, folder)


def _by_step(done: Trained, name: str) -> dict[str, float]:
    return {str(at): float(seen[name]) for at, seen in done.telemetry.items()}


@functools.lru_cache(maxsize=2)
def _corpus(name: str) -> Corpus:
    from integrator_zoo.data import load_corpus

    return load_corpus(name)


@hookimpl
def zoo_experiments():
    return [Shakespeare]
