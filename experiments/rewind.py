"""Rewind: a trained network run backward from its end, and what rounding makes of that."""

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
    from integrator_zoo.runs import Record

WAYS = ("float32", "mixed", "float64")
"""Both ways in 32-bit; forward in 32-bit and backward in 64-bit; both ways in 64-bit."""


@experiment(
    "rewind",
    summary="a trained rings network run backward: error after each layer, against the law",
    default_specs=("ledger", "ledger:mu=0.6", "ledger:mu=0.3"),
    presets={"published": {}, "quick": {"steps": 300}},
)
class Rewind(Experiment):
    """Train on `rings`, keep the final state of some test points, undo every layer.

    The error is the largest |x recovered - x| over points and features. Each undone layer should
    multiply it by the rule's amplification (1/mu for a ledger), apart from what the slope of the
    field adds. `growth_per_layer` is the slope fitted to the float32 errors of the trained network,
    `..._linearised` the same of a tangent vector sent backward (what the field's slope predicts),
    `..._untrained` that before training, where the field is nearly flat: the law by itself. Rules
    with exact moves are also undone in fixed point.
    """

    depth: int = option(32, "number of layers", low=4)
    points: int = option(64, "test points that are rewound", low=2)
    steps: int = option(4000, "optimiser steps of the training, full batch", low=1)

    columns = (
        Column(
            "rewind_error_float32",
            "error float32",
            ".2g",
            meaning="largest |recovered - input|, 32-bit",
        ),
        Column(
            "rewind_error_mixed", "float32, back in 64", ".2g", meaning="the same, undone in 64-bit"
        ),
        Column("rewind_error_float64", "float64", ".2g", meaning="the same, both ways in 64-bit"),
        Column("growth_per_layer", "growth a layer", ".3f", meaning="of the 32-bit error, fitted"),
        Column(
            "growth_per_layer_linearised",
            "linearised",
            ".3f",
            meaning="growth that the field's slope predicts",
        ),
        Column("growth_per_layer_untrained", "untrained", ".3f", meaning="growth before training"),
        Column(
            "law_per_layer", "law", ".3f", meaning="growth by the update alone: 1/mu for a ledger"
        ),
        Column(
            "rewind_error_exact",
            "exact",
            ".2g",
            meaning="error undone in fixed point with remainders",
        ),
        Column(
            "remainder_bits_per_layer",
            "bits a layer",
            ".3f",
            meaning="remainder kept for that, a number",
        ),
    )

    def headline(self) -> str:
        return (
            f"rewind, rings, depth {self.depth}, {self.steps:,} training steps, {self.points} "
            "points, largest |x0 recovered - x0|"
        )

    def run(self, jobs: Sequence[Job], progress: Progress) -> Iterator[Result]:
        for done, job in enumerate(jobs):
            progress(job.rule.spec, done / len(jobs), "training, then backward")
            try:
                yield self._one(job)
            except Exception as error:
                yield Result(job, "failed", {}, reason=one_line(error, type(job.rule)))
        progress("rewind", 1.0, "done")

    def _one(self, job: Job) -> Result:
        from flax import nnx

        from integrator_zoo import ResNet, fit, parameter_count
        from integrator_zoo.data import planar_data
        from integrator_zoo.memory import require_inverse

        rule = require_inverse(job.rule)
        data = planar_data("rings", job.seed)
        clock = time.perf_counter()
        net = ResNet(self.depth, integrator=rule, rngs=nnx.Rngs(job.seed))
        picks = np.linspace(0, len(data.test_x) - 1, self.points).astype(int)
        points = data.test_x[picks].T
        untrained = error_by_node(*there_and_back(net.stack, points, "float64"))
        losses = fit(net, data.train_x, data.train_y, steps=self.steps)
        passages = {way: there_and_back(net.stack, points, way) for way in WAYS}
        errors = {way: error_by_node(*passage) for way, passage in passages.items()}
        metrics: dict[str, Any] = {f"rewind_error_{way}": errors[way][0] for way in WAYS}
        metrics |= {
            "parameters": parameter_count(net),
            "train_loss": float(losses[-1]),
            "growth_per_layer": growth(errors["float32"]),
            "growth_per_layer_untrained": growth(untrained),
            "growth_per_layer_linearised": growth(tangent_by_node(net.stack, points)),
            "law_per_layer": rule.amplification(),
        }
        exact, bits = exactly_back(net.stack, points)
        metrics |= {"rewind_error_exact": exact, "remainder_bits_per_layer": bits}
        facts = {"data_hash": data.digest(), "dtype": "float32 and float64", "devices": 1}
        return Result(
            job,
            "ok",
            {name: _finite(value) for name, value in metrics.items()},
            {
                **{f"error_{way}": error for way, error in errors.items()},
                "nodes": passages["float32"][0].swapaxes(1, 2),
                "nodes_back": passages["float32"][1].swapaxes(1, 2),
                "labels": data.test_y[picks],
            },
            facts,
            run_seconds=time.perf_counter() - clock,
        )

    def claims(self) -> Sequence[Claim]:
        from .claims.rewind import CLAIMS

        return CLAIMS

    def pictures(self, records: Sequence[Record], folder: Path) -> list[Path]:
        from integrator_zoo.figures import reversal

        return reversal.draw_rewind(records, folder)


def error_by_node(there: np.ndarray, back: np.ndarray) -> np.ndarray:
    """Largest |recovered - original| at each node, [depth + 1], node 0 the start."""
    return np.abs(back - there).reshape(len(there), -1).max(1)


def there_and_back(stack: Any, x: Any, way: str) -> tuple[np.ndarray, np.ndarray]:
    """The nodes of points x on their way through depth and of the rewind, one of WAYS, [node, ...].

    Both start at node 0, the input: the rewind's first step gives its last node but one.
    """
    import jax

    with jax.enable_x64(way != "float32"):
        forward, backward, weights, x = _passages(stack, x, way == "float64")
        there = forward(weights, x)
        weights, end = _wide((weights, there.state)) if way == "mixed" else (weights, there.state)
        back = backward(weights, end)
        nodes = (found.trajectory.nodes for found in (there, back))
        ours, theirs = (np.asarray(found, float) for found in nodes)
    return ours, theirs


def tangent_by_node(stack: Any, x: Any) -> np.ndarray:
    """Size of a random tangent of the end at each node, [depth + 1], in 64-bit.

    It is sent backward through the derivative of the rewind: the field has reverse mode only, and
    the transpose of a transpose is the derivative itself.
    """
    import jax

    with jax.enable_x64(True):
        forward, backward, weights, x = _passages(stack, x, True)
        end = forward(weights, x).state
        keys = iter(jax.random.split(jax.random.key(0), len(jax.tree.leaves(end))))
        tangent = jax.tree.map(
            lambda leaf: jax.random.normal(next(keys), leaf.shape, leaf.dtype), end
        )
        nodes, transposed = jax.vjp(lambda end: backward(weights, end).trajectory.nodes, end)
        (moved,) = jax.linear_transpose(lambda of: transposed(of)[0], nodes)(tangent)
        return np.abs(np.asarray(moved)).reshape(len(moved), -1).max(1)


def _passages(stack: Any, x: Any, wide: bool) -> tuple[Any, Any, Any, Any]:
    """Both ways as compiled functions of weights; the weights; the points rounded to 32-bit."""
    import jax
    import jax.numpy as jnp
    from flax import nnx

    graph, weights = nnx.split(stack)
    forward = jax.jit(lambda w, x: nnx.merge(graph, w).passage(x, collect=True))
    backward = jax.jit(lambda w, end: nnx.merge(graph, w).rewind(end, collect=True))
    x = jnp.asarray(x, jnp.float32)
    weights, x = _wide((weights, x)) if wide else (weights, x)
    return forward, backward, weights, x


def _wide(tree: Any) -> Any:
    """Every floating leaf in 64-bit."""
    import jax
    import jax.numpy as jnp

    def wide(leaf: Any) -> Any:
        return leaf.astype(jnp.float64) if jnp.issubdtype(leaf.dtype, jnp.floating) else leaf

    return jax.tree.map(wide, tree)


def exactly_back(stack: Any, x: Any) -> tuple[float | None, float | None]:
    """(largest |recovered - original|, remainder bits an element and layer) in fixed point.

    (None, None) for a rule without exact moves. The original is x rounded to the fixed point.
    """
    import jax
    import jax.numpy as jnp
    from flax import nnx

    from integrator_zoo.exact import SPILL

    graph, weights = nnx.split(stack)

    def both(w: Any, x: Any) -> Any:
        net = nnx.merge(graph, w)
        net.memory = "exact"
        there = net.passage(x, collect=True)
        back = net.rewind(there)
        gap = jnp.abs(back.position - there.trajectory.nodes[0]).max()
        return gap, there.code.top, there.code.remainder

    try:
        gap, words, left = jax.jit(both)(weights, jnp.asarray(x, jnp.float32))
    except ZooError:
        return None, None
    held = 0 if left is None else np.log2(1 + np.asarray(left, float).max())
    return float(gap), float(SPILL * int(words) + held) / stack.sub_updates


def growth(errors: np.ndarray) -> float | None:
    """Factor a layer: slope of log error over the undone layers, the first quarter left out."""
    logs = np.log(errors[: -len(errors) // 4])[::-1]
    if not np.isfinite(logs).all():
        return None
    return float(np.exp(np.polyfit(np.arange(len(logs)), logs, 1)[0]))


def _finite(value: Any) -> Any:
    return value if value is None or np.isfinite(value) else None


@hookimpl
def zoo_experiments():
    return [Rewind]
