"""Classifiers trained on one full batch: the compiled pieces of all runs that share a program."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import jax
import optax
from flax import nnx
from jax import lax

from ..contract import Integrator
from .fleet import Once, over_runs
from .loop import advance, begin, cross_entropy


class ClassifierProgram:
    """Start, training, measurement and film of stacked runs; compiled once a device and stack size.

    Every argument of these is stacked over runs. Data is an argument, so that runs on
    different data sets share a program.

    Args:
        network: makes the classifier from a seed; its call takes points and `integrator=`.
        rule: any rule of the program; its traced options come as arguments.
        optimizer: as from optax.
        steps: optimiser steps of a whole training.
        measure: measure(net, rule, test points, test labels) of one trained run.
        film: film(net, rule, test points) of one run at one moment of its training.
    """

    def __init__(
        self,
        network: Callable[[Any], nnx.Module],
        rule: Integrator,
        optimizer: optax.GradientTransformation,
        steps: int,
        measure: Callable[[Any, Integrator, Any, Any], Any],
        film: Callable[[Any, Integrator, Any], Any],
    ) -> None:
        self.graph, self.shapes = nnx.split(nnx.eval_shape(lambda: network(0)))

        def start(seed: Any) -> Any:
            return begin(nnx.state(network(seed), nnx.Param), optimizer, steps)

        def train(run: Any, options: Any, x: Any, y: Any, test_x: Any, test_y: Any, until: Any):
            moved = rule.with_traced(options)

            def logits(params: Any, points: Any) -> Any:
                return self.merged(params)(points, integrator=moved)

            def loss(params: Any, step: Any) -> Any:
                return cross_entropy(logits(params, x), y)

            run = advance(run, jax.value_and_grad(loss), optimizer, until)
            return run, (logits(run.params, test_x).argmax(-1) == test_y).mean()

        def measured(params: Any, options: Any, test_x: Any, test_y: Any) -> Any:
            return measure(self.merged(params), rule.with_traced(options), test_x, test_y)

        def filmed(params_by_moment: Any, options: Any, test_x: Any) -> Any:
            moved = rule.with_traced(options)
            return lax.map(lambda p: film(self.merged(p), moved, test_x), params_by_moment)

        self.start = jax.jit(over_runs(start))
        self.train = jax.jit(over_runs(train), donate_argnums=0)
        self.measure = jax.jit(over_runs(measured))
        self.film = jax.jit(over_runs(filmed))
        self.evaluations = Once()
        """Field evaluations a step, by rule."""

    def merged(self, params: Any) -> Any:
        """The classifier with these parameters."""
        return nnx.merge(self.graph, params)
