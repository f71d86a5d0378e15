"""What a language-model training is: optimiser, keys, windows, and what happens at which step."""

from __future__ import annotations

import math
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import jax
import numpy as np
import optax
from jax import Array

from ..contract import Integrator

DATA, MASKS, WEIGHTS = 1, 2, 3
"""Roles of randomness: the key of a role is fold_in(key of the seed, role)."""
DECAYED = ("kernel", "embedding")
"""Roles of parameters that decay; biases, norms and what an integrator learns do not."""


def adamw(
    peak: float, end: float, warmup: int, steps: int, decay: float = 0.01, clip: float = 1.0
) -> optax.GradientTransformation:
    """AdamW, linear warm-up to `peak` then cosine to `end` at `steps`, gradients clipped by norm.

    Weight decay goes by a parameter's role, never by its number of dimensions, which stacking
    the layers changes.
    """
    rate = optax.warmup_cosine_decay_schedule(0.0, peak, min(warmup, steps - 1), steps, end)
    return optax.chain(
        optax.clip_by_global_norm(clip), optax.adamw(rate, weight_decay=decay, mask=decays)
    )


def decays(params: Any) -> Any:
    """For each parameter whether weight decay applies to it, by its name."""

    def named(path: Any, leaf: Any) -> bool:
        return any(str(getattr(entry, "key", "")) in DECAYED for entry in path)

    return jax.tree.map_with_path(named, params)


def role_key(seed: Any, role: int) -> Array:
    """The key of one role of randomness of a run."""
    return jax.random.fold_in(jax.random.key(seed), role)


def unrolled(rule: Integrator) -> bool:
    """Whether layers and pieces of a batch are compiled one by one instead of as a loop.

    That makes steps faster and compiling longer, and so is not worth it where a rule evaluates
    each branch more than twice.
    """
    return (rule.traits.evaluations or math.inf) <= 2


def windows(tokens: np.ndarray, context: int, count: int) -> np.ndarray:
    """`count` windows of context + 1 tokens, evenly spread over the text: [count, context + 1]."""
    starts = np.linspace(0, len(tokens) - context - 1, count).astype(int)
    return tokens[starts[:, None] + np.arange(context + 1)]


def all_windows(tokens: np.ndarray, context: int) -> np.ndarray:
    """The whole text in windows that overlap by one token: each token is predicted once."""
    count = (len(tokens) - 1) // context
    return tokens[context * np.arange(count)[:, None] + np.arange(context + 1)]


@dataclass(frozen=True)
class Plan:
    """What a training does, and at which steps."""

    steps: int
    """Steps of the whole schedule."""
    stop: int
    """The step at which this training ends, at most `steps`."""
    batch: int
    context: int
    validate_every: int
    telemetry: tuple[int, ...]
    """Steps at which the geometry is measured."""
    pieces: int = 1
    """Equal parts that a batch is taken in, two at a time; an accelerator takes it whole."""
    evaluation_batch: int = 64
    save_every: int = 0
    """Steps between checkpoints; 0 for one about every minute."""
    chunk: int = 20
    """Steps a compiled call at most, so that progress and interrupts come in time."""

    def validated(self) -> list[int]:
        """The steps at which the fixed windows are evaluated."""
        due = range(self.validate_every, self.steps, self.validate_every)
        return [step for step in (*due, self.steps) if step <= self.stop]

    def measured(self) -> list[int]:
        """The steps at which the geometry is measured."""
        return [step for step in self.telemetry if step <= self.stop]

    def stops(self) -> list[int]:
        """Every step at which the compiled call returns."""
        due = {0, self.stop, *self.validated(), *self.measured()}
        due |= {*range(0, self.stop, self.chunk)}
        return sorted(due | {*range(0, self.stop, self.save_every or self.stop)})


@dataclass
class Trained:
    """One run's training, under way or ended; all of it is in its checkpoints."""

    step: int
    params: Any
    best_params: Any
    losses: np.ndarray
    best_loss: float
    best_step: int
    curve: dict[int, float]
    """Validation loss on the fixed windows, by step."""
    telemetry: dict[int, dict[str, np.ndarray]]
    first_bad: int | None = None
    stopped: bool = False
    compile_seconds: float = 0.0
    run_seconds: float = 0.0
    checkpoint: Path | None = None
    tokens_per_second: float | None = None
    """Speed of the steps that were taken by this process."""
