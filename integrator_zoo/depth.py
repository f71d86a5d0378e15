"""Driving an integrator through depth: the only place that walks layers."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
from jax import Array, lax

from .contract import Field, Integrator, Step
from .errors import PluginError, ZooError, unknown
from .trajectory import Trajectory

Branch = Callable[[Any, Any, Array], Array]
"""One part of a layer: branch(layer weights, index of the sub-update, x) -> F(x)."""

MEMORY = ("store", "remat")


class Passage(NamedTuple):
    """What a walk through depth gives."""

    state: Any
    """The integrator's final state."""
    position: Array
    """The final position of the residual stream."""
    trajectory: Trajectory | None
    """All nodes, when asked for."""


def integrate(
    rule: Integrator,
    branches: Branch | Sequence[Branch],
    weights: Any,
    x0: Array,
    *,
    depth: Any,
    h: Any,
    t0: Any = 0.0,
    params: Mapping[str, Array] | None = None,
    velocity: Array | None = None,
    tied: bool = False,
    shared: bool = False,
    axis: int = -1,
    collect: bool = False,
    memory: str = "store",
    unroll: int | bool = 1,
) -> Passage:
    """Carry `x0` through `depth` layers of `branches` with the rule.

    Layer l applies its parts one after another; part p is sub-update i = l * parts + p, with time
    t0 + i h and the field F(x) = branches[p](weights_l, i, x).

    Args:
        rule: the integrator.
        branches: the layer's parts, each branch(layer weights, i, x) -> array like x.
        weights: pytree whose leaves are stacked along axis 0, one slice a layer; with `tied`, one
            layer's weights, used by all layers.
        x0: initial position, any shape and floating dtype.
        depth: number of layers, at least 1. With `tied` and nothing collected it may be a traced
            integer: one compilation for all depths, without derivatives.
        h: step size of one sub-update. A scalar array is cast to the dtype of `x0`.
        t0: time at the start.
        params: the rule's learnable parameters, leaves [depth, parts, ...]; by default their
            initial values.
        velocity: initial velocity, of the shape of `x0`; at rest by default.
        tied: whether all layers use the same weights.
        shared: promise that *all* sub-updates have the very same field (tied, one part, no
            dropout), so that a rule may reuse a force it has evaluated.
        axis: the axis of the features in `x0`.
        collect: whether to return every node.
        memory: 'store' keeps what the backward pass needs; 'remat' recomputes each layer.
        unroll: layers unrolled in the compiled loop (True for all).

    Raises:
        ZooError: a depth below 1, an unknown memory mode, a position that is not floating.
        PluginError: the rule changes the structure, shape or dtype of its state.
    """
    parts = [branches] if callable(branches) else list(branches)
    if isinstance(depth, int) and depth < 1:
        raise ZooError(f"depth={depth}: a network needs at least one layer.", "Give depth >= 1.")
    if memory not in MEMORY:
        raise unknown("memory mode", memory, MEMORY)
    if not jnp.issubdtype(x0.dtype, jnp.floating):
        raise ZooError(f"positions of dtype {x0.dtype} cannot be integrated.", "Give floats.")
    if isinstance(h, Array):
        h = h.astype(x0.dtype)
    count = depth * len(parts)
    open_ended = isinstance(depth, Array)
    if params is None:
        params = initial_parameters(rule, 1 if open_ended else depth, len(parts), x0.shape[axis])

    def at(index: Any) -> Step:
        return Step(t0 + index * h, h, index, count, shared, axis)

    def field(part: int, layer_weights: Any, index: Any) -> Field:
        return lambda x: parts[part](layer_weights, index, x)

    def layer(state: Any, sliced: Any) -> tuple[Any, Any]:
        layer_weights, layer_params, number = sliced
        layer_weights = weights if tied else layer_weights
        seen = []
        for part in range(len(parts)):
            index = number * len(parts) + part
            own = {name: value[part] for name, value in layer_params.items()}
            after = rule.step(state, field(part, layer_weights, index), at(index), own)
            _same_structure(rule, state, after)
            state = after
            seen.append((rule.position(state), rule.observe(state)))
        return state, _stack(seen) if collect else None

    first_weights = weights if tied else jax.tree.map(lambda leaf: leaf[0], weights)
    start = rule.init(x0, field(0, first_weights, 0), at(0), velocity)
    if open_ended:
        own = jax.tree.map(lambda leaf: leaf[0], dict(params))
        end = lax.fori_loop(0, depth, lambda i, state: layer(state, (None, own, i))[0], start)
        return Passage(end, rule.position(end), None)
    walk = jax.checkpoint(layer, prevent_cse=False) if memory == "remat" else layer
    xs = (None if tied else weights, dict(params), jnp.arange(depth, dtype=jnp.int32))
    end, seen = lax.scan(walk, start, xs, length=depth, unroll=unroll)
    path = _trajectory(rule, start, seen) if collect else None
    return Passage(end, rule.position(end), path)


def initial_parameters(rule: Integrator, depth: int, parts: int, width: int) -> dict[str, Array]:
    """The rule's learnable parameters before training, leaves [depth, parts, ...]."""
    return {
        name: jnp.broadcast_to(value, (depth, parts, *value.shape))
        for name, value in rule.parameters(width).items()
    }


def _same_structure(rule: Integrator, before: Any, after: Any) -> None:
    """Name the plugin when its step changes what its state is made of."""
    was, now = jax.tree.structure(before), jax.tree.structure(after)
    if was != now:
        raise PluginError(
            f"integrator {rule.spec!r}: step() changed the structure of the state, "
            f"from {was} to {now}",
            "Return the same structure that init() gives.",
        )
    for a, b in zip(jax.tree.leaves(before), jax.tree.leaves(after), strict=True):
        a, b = jax.typeof(a), jax.typeof(b)
        if (a.shape, a.dtype) != (b.shape, b.dtype):
            raise PluginError(
                f"integrator {rule.spec!r}: step() changed a leaf of the state, "
                f"from {a.str_short()} to {b.str_short()}",
                "Keep shapes and dtypes; cast with .astype(x.dtype).",
            )


def _stack(seen: list[Any]) -> Any:
    return jax.tree.map(lambda *leaves: jnp.stack(leaves), *seen)


def _trajectory(rule: Integrator, start: Any, seen: Any) -> Trajectory:
    """Join the start and the collected [depth, parts, ...] leaves to [sub-updates + 1, ...]."""

    def join(first: Array, rest: Array) -> Array:
        return jnp.concatenate([first[None], rest.reshape(-1, *rest.shape[2:])])

    nodes, observed = jax.tree.map(join, (rule.position(start), rule.observe(start)), seen)
    return Trajectory(nodes, observed)


def count_evaluations(run: Callable[[Callable[[Array], Array]], Any]) -> int:
    """How often the field is really evaluated, loops and branches included.

    Args:
        run: called with a marker; it passes every field value through it and returns arrays.
            Each passage is counted when it is executed, not when it is traced.
    """
    calls = 0

    def bump(_: Any) -> None:
        nonlocal calls
        calls += 1

    def marker(value: Array) -> Array:
        jax.debug.callback(bump, value.ravel()[0])
        return value

    jax.block_until_ready(run(marker))
    jax.effects_barrier()
    return calls


__all__ = [
    "MEMORY",
    "Branch",
    "Passage",
    "count_evaluations",
    "initial_parameters",
    "integrate",
]
