"""Driving an integrator through depth: the only place that walks layers."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
from jax import Array, lax

from .contract import Integrator
from .course import Branch, Course
from .errors import ZooError
from .exact import Code, FixedPoint, report_overflow
from .memory import MEMORY, Exact, Memory, Remat, Reversible, check_trust, read_memory
from .reversible import Algebraic, Place, Tape, drive, part_of, stack
from .trajectory import Trajectory


class Passage(NamedTuple):
    """What a walk through depth gives."""

    state: Any
    """The integrator's final state."""
    position: Array
    """The final position of the residual stream."""
    trajectory: Trajectory | None
    """All nodes, when asked for."""
    code: Code | None = None
    """The final state in integers, under memory='exact'; `rewind` takes it back bit for bit."""


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
        memory: what the backward pass keeps. 'store': all it needs. 'remat': the input of each
            layer. 'reversible': the final state; layers are undone by the rule's inverse, and
            refused beforehand where rounding would spoil that. 'exact': the final state in
            integers and the bits friction lost; layers are undone bit for bit. Options as in a
            spec: 'reversible:unsafe=warn', 'exact:fraction=18'.
        unroll: layers unrolled in the compiled loop (True for all).

    Raises:
        ZooError: a depth below 1, an unknown memory mode, a position that is not floating; a rule
            that cannot be undone, or not so often, or a value out of range, under a memory mode
            that undoes layers. (Inside a compiled function a value out of range gives NaN.)
        PluginError: the rule changes the structure, shape or dtype of its state.
    """
    mode = read_memory(memory)
    if not jnp.issubdtype(x0.dtype, jnp.floating):
        raise ZooError(f"positions of dtype {x0.dtype} cannot be integrated.", "Give floats.")
    course = _course(rule, branches, depth, h, t0, tied, shared, axis, collect, mode, x0.dtype)
    parts, open_ended = len(course.parts), isinstance(depth, Array)
    if params is None:
        params = initial_parameters(rule, 1 if open_ended else depth, parts, x0.shape[axis])
    first_weights = weights if tied else jax.tree.map(lambda leaf: leaf[0], weights)
    start = rule.init(x0, course.field(0, first_weights, 0), course.at(0), velocity)

    def layer(state: Any, sliced: Any) -> tuple[Any, Any]:
        layer_weights, layer_params, number = sliced
        seen = []
        for part in range(parts):
            own = part_of(layer_params, part)
            place = Place(weights if tied else layer_weights, own, number * parts + part)
            state = course.step(part, state, place)
            seen.append(course.see(state))
        return state, stack(seen)

    if open_ended:
        own = jax.tree.map(lambda leaf: leaf[0], dict(params))
        end = lax.fori_loop(0, depth, lambda i, state: layer(state, (None, own, i))[0], start)
        return Passage(end, rule.position(end), None)
    code = None
    if isinstance(mode, Reversible | Exact):
        tape = _tape(course, mode, x0.dtype)
        (end, code), seen = drive(course, tape, start, weights, params, unroll=unroll)
        if isinstance(tape, FixedPoint):
            start = _rounded(tape, start)
            report_overflow(rule, tape, code.fault)
            end = jax.tree.map(lambda leaf: jnp.where(code.fault, jnp.nan, leaf), end)
    else:
        walk = jax.checkpoint(layer, prevent_cse=False) if isinstance(mode, Remat) else layer
        xs = (None if tied else weights, dict(params), jnp.arange(depth, dtype=jnp.int32))
        end, seen = lax.scan(walk, start, xs, length=depth, unroll=unroll)
    path = _trajectory(course.see(start), seen) if collect else None
    return Passage(end, rule.position(end), path, code if isinstance(mode, Exact) else None)


def rewind(
    rule: Integrator,
    branches: Branch | Sequence[Branch],
    weights: Any,
    end: Any,
    *,
    depth: int,
    h: Any,
    t0: Any = 0.0,
    params: Mapping[str, Array] | None = None,
    tied: bool = False,
    shared: bool = False,
    axis: int = -1,
    collect: bool = False,
    memory: str | None = None,
    unroll: int | bool = 1,
) -> Passage:
    """Run depth backward: `integrate` undone, from its end alone.

    Args:
        end: the `Passage` that `integrate` gave, or only its final state. A passage under
            memory='exact' is undone bit for bit, anything else by the rule's inverse with
            whatever rounding that brings.
        collect: whether to return every node; node 0 is the recovered start, as on the way there.
        memory: the mode of the passage, where it had options ('exact:fraction=18').

    The other arguments are those of `integrate`, and so are the errors. Under 'exact', the code
    of the result holds the recovered integers, and what is left of the remainders: nothing.
    """
    passage = end if isinstance(end, Passage) else Passage(end, rule.position(end), None)
    exact = passage.code is not None
    mode = read_memory(memory or ("exact" if exact else "reversible:unsafe=allow"))
    x = passage.position
    course = _course(rule, branches, depth, h, t0, tied, shared, axis, collect, mode, x.dtype)
    parts = len(course.parts)
    if params is None:
        params = initial_parameters(rule, depth, parts, x.shape[axis])
    tape = _tape(course, mode, x.dtype)

    def layer(code: Any, sliced: Any) -> tuple[Any, Any]:
        layer_weights, layer_params, rows, number = sliced
        seen = []
        for part in reversed(range(parts)):
            own, row = part_of(layer_params, part), part_of(rows, part)
            place = Place(weights if tied else layer_weights, own, number * parts + part)
            seen.append(course.see(tape.decode(code)))
            code = tape.backward(part, code, place, row)
        return code, stack(seen[::-1])

    numbers = jnp.arange(depth, dtype=jnp.int32)
    xs = (None if tied else weights, dict(params), tape.rows, numbers)
    last = passage.code if exact else passage.state
    code, seen = lax.scan(layer, last, xs, length=depth, reverse=True, unroll=unroll)
    start = tape.decode(code)
    path = _trajectory(course.see(start), seen) if collect else None
    return Passage(start, rule.position(start), path, code if exact else None)


def _course(
    rule: Integrator,
    branches: Branch | Sequence[Branch],
    depth: Any,
    h: Any,
    t0: Any,
    tied: bool,
    shared: bool,
    axis: int,
    collect: bool,
    mode: Memory,
    dtype: Any,
) -> Course:
    """The way through depth, once it is known that the rule can go it in this memory mode."""
    parts = (branches,) if callable(branches) else tuple(branches)
    if isinstance(depth, int) and depth < 1:
        raise ZooError(f"depth={depth}: a network needs at least one layer.", "Give depth >= 1.")
    if isinstance(depth, Array) and isinstance(mode, Reversible | Exact):
        raise ZooError("a depth that is a traced value cannot be undone.", "Give a plain integer.")
    if isinstance(h, Array):
        h = h.astype(dtype)
    shared = shared and not isinstance(mode, Exact)  # in integers every force is evaluated anew
    course = Course(rule, parts, depth, h, t0, tied, shared, axis, collect)
    if isinstance(mode, Reversible):
        check_trust(rule, mode, course.count, float(jnp.finfo(dtype).eps))
    return course


def _rounded(tape: Tape, state: Any) -> Any:
    """The state as the tape holds it, with the derivative of the state as it was."""
    held = tape.decode(tape.encode(state))
    return jax.tree.map(lambda a, b: a + lax.stop_gradient(b - a), state, held)


def _tape(course: Course, mode: Memory, dtype: Any) -> Tape:
    return FixedPoint(course, mode, dtype) if isinstance(mode, Exact) else Algebraic(course)


def initial_parameters(rule: Integrator, depth: int, parts: int, width: int) -> dict[str, Array]:
    """The rule's learnable parameters before training, leaves [depth, parts, ...]."""
    return {
        name: jnp.broadcast_to(value, (depth, parts, *value.shape))
        for name, value in rule.parameters(width).items()
    }


def _trajectory(start: Any, seen: Any) -> Trajectory:
    """Join the start and the collected [depth, parts, ...] leaves to [sub-updates + 1, ...]."""

    def join(first: Array, rest: Array) -> Array:
        return jnp.concatenate([first[None], rest.reshape(-1, *rest.shape[2:])])

    nodes, observed = jax.tree.map(join, start, seen)
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
    "rewind",
]
