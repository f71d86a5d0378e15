"""A rule's way through depth: what one sub-update is, how it is undone, and that it keeps faith."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

import jax
from jax import Array

from .contract import Field, Integrator, Invertible, Step
from .errors import PluginError

if TYPE_CHECKING:
    from .reversible import Place

Branch = Callable[[Any, Any, Array], Array]
"""One part of a layer: branch(layer weights, index of the sub-update, x) -> F(x)."""


@dataclasses.dataclass(frozen=True)
class Course:
    """A rule's way through depth: what one sub-update is, and how it is undone."""

    rule: Integrator
    parts: tuple[Branch, ...]
    depth: Any
    h: Any
    t0: Any
    tied: bool
    shared: bool
    axis: int
    collect: bool

    @property
    def count(self) -> Any:
        """Number of sub-updates."""
        return self.depth * len(self.parts)

    def at(self, index: Any) -> Step:
        return Step(self.t0 + index * self.h, self.h, index, self.count, self.shared, self.axis)

    def field(self, part: int, layer_weights: Any, index: Any) -> Field:
        return lambda x: self.parts[part](layer_weights, index, x)

    def step(self, part: int, state: Any, place: Place) -> Any:
        field = self.field(part, place.weights, place.index)
        after = self.rule.step(state, field, self.at(place.index), place.own)
        _same_structure(self.rule, "step", state, after)
        return after

    def undo(self, part: int, state: Any, place: Place) -> Any:
        assert isinstance(self.rule, Invertible)
        field = self.field(part, place.weights, place.index)
        before = self.rule.invert(state, field, self.at(place.index), place.own)
        _same_structure(self.rule, "invert", state, before)
        return before

    def see(self, state: Any) -> Any:
        """What a trajectory is made of."""
        return (self.rule.position(state), self.rule.observe(state)) if self.collect else None


def _same_structure(rule: Integrator, what: str, before: Any, after: Any) -> None:
    """Name the plugin when its step, or the inverse, changes what its state is made of."""
    was, now = jax.tree.structure(before), jax.tree.structure(after)
    if was != now:
        raise PluginError(
            f"integrator {rule.spec!r}: {what}() changed the structure of the state, "
            f"from {_describe(before)} to {_describe(after)}",
            "Return the same structure that init() gives.",
        )
    for a, b in zip(jax.tree.leaves(before), jax.tree.leaves(after), strict=True):
        a, b = jax.typeof(a), jax.typeof(b)
        if (a.shape, a.dtype) != (b.shape, b.dtype):
            raise PluginError(
                f"integrator {rule.spec!r}: {what}() changed a leaf of the state, "
                f"from {a.str_short()} to {b.str_short()}",
                "Keep shapes and dtypes; cast with .astype(x.dtype).",
            )


def _describe(state: Any) -> str:
    """What a state is made of, as one would write it: 'Moving(x, v)', 'an array', 'None'."""
    if isinstance(state, tuple):
        names = getattr(state, "_fields", None) or [_describe(part) for part in state]
        return f"{type(state).__name__ if hasattr(state, '_fields') else ''}({', '.join(names)})"
    if state is None:
        return "None (is a return missing?)"
    return "an array" if isinstance(state, Array) else type(state).__name__
