"""One derivative over the whole depth that keeps no activations: undo a layer, differentiate it.

What is carried from layer to layer is a *code* of the state, and a *tape* knows how to advance a
code by one sub-update and how to take it back. `Algebraic` codes the state as itself and undoes
it with the rule's inverse; `exact.FixedPoint` codes it in integers and undoes it bit for bit.
"""

from __future__ import annotations

import functools
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any, NamedTuple, Protocol

import jax
import jax.core
import jax.numpy as jnp
from jax import Array, lax

if TYPE_CHECKING:
    from .course import Course


class Tape(Protocol):
    """How a state is carried through depth, and back.

    `part` is static; `row` is this sub-update's slice of `rows`, leaves [depth, parts, ...]. A
    `witness` of the first code is kept, by which `came_back` tells whether it was found again.
    """

    rows: Any

    def encode(self, state: Any) -> Any: ...
    def decode(self, code: Any) -> Any: ...
    def forward(self, part: int, code: Any, at: Place, row: Any) -> Any: ...
    def backward(self, part: int, code: Any, at: Place, row: Any) -> Any: ...
    def witness(self, code: Any) -> Any: ...
    def came_back(self, code: Any, witness: Any) -> Array | bool: ...


class Place(NamedTuple):
    """One sub-update: the weights of its layer, its own learned parameters, its index."""

    weights: Any
    own: Any
    index: Any


class Algebraic:
    """The state as it is, undone by the rule's `invert`."""

    def __init__(self, course: Course) -> None:
        self.course = course
        self.rows = None

    def encode(self, state: Any) -> Any:
        return state

    def decode(self, code: Any) -> Any:
        return code

    def forward(self, part: int, code: Any, at: Place, row: Any) -> Any:
        return self.course.step(part, code, at)

    def backward(self, part: int, code: Any, at: Place, row: Any) -> Any:
        return self.course.undo(part, code, at)

    def witness(self, code: Any) -> None:
        return None

    def came_back(self, code: Any, witness: Any) -> bool:
        return True


class _Part(NamedTuple):
    """The functions of one part of a layer, each pure: what it closes over is `caught`."""

    step: Callable[..., Any]
    forward: Callable[..., Any]
    backward: Callable[..., Any]


def drive(
    course: Course, tape: Tape, start: Any, weights: Any, params: Any, *, unroll: int | bool
) -> tuple[Any, Any]:
    """Walk all layers with a tape.

    Returns:
        (final state, its code), and what was seen after each sub-update, [depth, parts, ...].
        Derivatives flow from the state and from what was seen to the start, the weights, the
        rule's parameters, and to whatever the branches and the rule close over.
    """
    learned, fixed, join = _split(weights)
    layer_of = (lambda leaf: leaf) if course.tied else (lambda leaf: leaf[0])
    first = join(jax.tree.map(layer_of, learned), jax.tree.map(layer_of, fixed))
    own = jax.tree.map(lambda leaf: leaf[0, 0], params)
    example = Place(first, own, jnp.int32(0))
    row = jax.tree.map(lambda leaf: leaf[0, 0], tape.rows)
    code = tape.encode(start)

    made, caught = [], []
    for part in range(len(course.parts)):
        pure = {
            "step": _close(functools.partial(_seen_step, course, part), start, example),
            "forward": _close(
                functools.partial(_seen_code, course, tape, part), code, example, row
            ),
            "backward": _close(functools.partial(tape.backward, part), code, example, row),
        }
        made.append(_Part(**{name: function for name, (function, _) in pure.items()}))
        caught.append({name: consts for name, (_, consts) in pure.items()})
    # Derivatives are owed to what a step closes over only where someone may ask: to tracers.
    traced = [[c if _asks(c) else None for c in one["step"]] for one in caught]
    rest = [[None if _asks(c) else c for c in one["step"]] for one in caught]
    others = [(one["forward"], one["backward"]) for one in caught]
    passive = (fixed, rest, others, tape.rows)
    passage = _passage(course, tape, tuple(made), join, unroll)
    end, code, seen = passage(start, learned, dict(params), traced, passive)
    return (end, code), seen


def _passage(
    course: Course, tape: Tape, made: Sequence[_Part], join: Callable[..., Any], unroll: int | bool
) -> Any:
    """The differentiable walk; it closes over nothing traced."""
    parts = len(made)

    def slices(learned: Any, fixed: Any, params: Any, rows: Any) -> Any:
        stacked = None if course.tied else (learned, fixed)
        return stacked, params, rows, jnp.arange(course.depth, dtype=jnp.int32)

    def place(sliced: Any, part: int, tied: Any) -> tuple[Place, Any, Any]:
        stacked, params, rows, number = sliced
        own, row = part_of(params, part), part_of(rows, part)
        learned, fixed = tied if course.tied else stacked
        return Place(join(learned, fixed), own, number * parts + part), row, (learned, fixed)

    def walk(start: Any, learned: Any, params: Any, traced: Any, passive: Any) -> Any:
        fixed, _, others, rows = passive

        def layer(code: Any, sliced: Any) -> Any:
            seen = []
            for part in range(parts):
                at, row, _ = place(sliced, part, (learned, fixed))
                code, saw = made[part].forward(others[part][0], code, at, row)
                seen.append(saw)
            return code, stack(seen)

        code, seen = lax.scan(
            layer, tape.encode(start), slices(learned, fixed, params, rows), unroll=unroll
        )
        return tape.decode(code), code, seen

    def forward(start: Any, learned: Any, params: Any, traced: Any, passive: Any) -> Any:
        out = walk(start, learned, params, traced, passive)
        return out, (out[1], tape.witness(tape.encode(start)), learned, params, traced, passive)

    def backward(kept: Any, bars: Any) -> Any:
        code, witness, learned, params, traced, passive = kept
        end_bar, _, seen_bar = bars
        fixed, rest, others, rows = passive

        def layer(carry: Any, sliced: Any) -> Any:
            code, bar, caught_bar, tied_bar = carry
            sliced, seen_bar = sliced
            weights_bar, own_bars = tied_bar, []
            for part in reversed(range(parts)):
                at, row, (layer_learned, layer_fixed) = place(sliced, part, (learned, fixed))
                code = made[part].backward(others[part][1], code, at, row)

                def step(
                    state: Any,
                    learned: Any,
                    own: Any,
                    traced: Any,
                    part: int = part,
                    at: Place = at,
                    fixed: Any = layer_fixed,
                ) -> Any:
                    consts = _join(traced, rest[part])
                    return made[part].step(
                        consts, state, Place(join(learned, fixed), own, at.index)
                    )

                before = tape.decode(code)
                _, pull = jax.vjp(step, before, layer_learned, at.own, traced[part])
                saw_bar = part_of(seen_bar, part)
                bar, one_weights, own_bar, one_caught = pull((bar, saw_bar))
                weights_bar = one_weights if weights_bar is None else _add(weights_bar, one_weights)
                own_bars.append(own_bar)
                caught_bar[part] = _add(caught_bar[part], one_caught)
            own_bar = stack(own_bars[::-1])
            if course.tied:
                return (code, bar, caught_bar, weights_bar), (None, own_bar)
            return (code, bar, caught_bar, None), (weights_bar, own_bar)

        nothing = jax.tree.map(jnp.zeros_like, (traced, learned if course.tied else None))
        sliced = (slices(learned, fixed, params, rows), seen_bar)
        (code, bar, caught_bar, tied_bar), (stacked_bar, own_bar) = lax.scan(
            layer, (code, end_bar, *nothing), sliced, reverse=True, unroll=unroll
        )
        back = tape.came_back(code, witness)
        if back is not True:  # never a quietly wrong gradient
            bar, tied_bar, caught_bar = _or_nan(back, (bar, tied_bar, caught_bar))
            # In the stacked ones only the first layer, in place: a copy would cost their memory.
            stacked_bar, own_bar = jax.tree.map(
                lambda leaf: leaf.at[0].set(_or_nan(back, leaf[0])), (stacked_bar, own_bar)
            )
        found = (bar, tied_bar if course.tied else stacked_bar, own_bar, caught_bar)
        return (*found, None)

    passage = jax.custom_vjp(walk)
    passage.defvjp(forward, backward)
    return passage


def _seen_step(course: Course, part: int, state: Any, at: Place) -> Any:
    after = course.step(part, state, at)
    return after, course.see(after)


def _seen_code(course: Course, tape: Tape, part: int, code: Any, at: Place, row: Any) -> Any:
    after = tape.forward(part, code, at, row)
    return after, course.see(tape.decode(after))


def _close(function: Callable[..., Any], *examples: Any) -> tuple[Callable[..., Any], list[Any]]:
    """The function with all that it closes over as an explicit first argument, and those values."""
    closed, shape = jax.make_jaxpr(function, return_shape=True)(*examples)
    tree = jax.tree.structure(shape)

    def pure(caught: Sequence[Any], *args: Any) -> Any:
        return tree.unflatten(jax.core.eval_jaxpr(closed.jaxpr, caught, *jax.tree.leaves(args)))

    return pure, list(closed.consts)


def _is_float(leaf: Any) -> bool:
    return jnp.issubdtype(jnp.result_type(leaf), jnp.floating)


def _asks(leaf: Any) -> bool:
    return isinstance(leaf, jax.core.Tracer) and _is_float(leaf)


def _split(tree: Any) -> tuple[list[Any], list[Any], Callable[[Any, Any], Any]]:
    """The floating leaves, all others (keys, counters), and what joins them to the tree again."""
    leaves, structure = jax.tree.flatten(tree)
    floats = [leaf if _is_float(leaf) else None for leaf in leaves]
    others = [None if _is_float(leaf) else leaf for leaf in leaves]
    return floats, others, lambda a, b: structure.unflatten(_join(a, b))


def _join(one: Sequence[Any], other: Sequence[Any]) -> list[Any]:
    return [b if a is None else a for a, b in zip(one, other, strict=True)]


def _add(one: Any, other: Any) -> Any:
    return jax.tree.map(jnp.add, one, other)


def _or_nan(good: Any, tree: Any) -> Any:
    return jax.tree.map(lambda leaf: jnp.where(good, leaf, jnp.nan), tree)


def stack(seen: Sequence[Any]) -> Any:
    """Join the parts of a layer: leaves [...] to [parts, ...]."""
    return jax.tree.map(lambda *leaves: jnp.stack(leaves), *seen)


def part_of(stacked: Any, part: int) -> Any:
    """One part of a layer: leaves [parts, ...] to [...]."""
    return jax.tree.map(lambda leaf: leaf[part], stacked)
