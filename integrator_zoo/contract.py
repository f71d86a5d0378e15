"""The contract between an integrator and everything that uses one.

A residual block `x + F(x)` is one forward-Euler step; depth is time. An *integrator* is the rule
that turns the *field* F of one sub-update into the next position of the residual stream. It is a
small frozen dataclass of hyperparameters with pure methods; whoever writes one touches one file:

    @integrator("euler", equation="x' = x + h F(x)", reference="Euler (1768)", order=1)
    class Euler(Integrator):
        def step(self, state, field, at, params):
            return state + at.h * field(state)

This module imports neither jax nor Flax, so that listing the zoo costs nothing.
"""

from __future__ import annotations

import dataclasses
from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping
from typing import (
    TYPE_CHECKING,
    Any,
    ClassVar,
    Literal,
    NamedTuple,
    TypeVar,
    get_args,
    get_origin,
    get_type_hints,
)

from .errors import ZooError
from .options import Options, declare, option

if TYPE_CHECKING:
    from jax import Array
else:
    Array = Any

__all__ = [
    "Drift",
    "Fade",
    "Field",
    "Integrator",
    "Invertible",
    "Kick",
    "Move",
    "Moving",
    "MovingIntegrator",
    "Step",
    "Traits",
    "exactly",
    "integrator",
    "option",
]

Field = Callable[[Array], Array]
"""One sub-update's branch, bound to its weights and its dropout key: F(x), same shape as x.

Within one step it is a fixed function: every stage of a Runge-Kutta step and every recomputation
sees the same weights and the same dropout mask. It may be called any number of times.
"""

State = Any
Params = Mapping[str, Array]


@dataclasses.dataclass(frozen=True)
class Step:
    """Where in depth a step stands."""

    t: Any
    """Time at the start of the step, t0 + index * h (never accumulated)."""
    h: Any
    """Step size."""
    index: Any
    """Index of this sub-update, from 0."""
    count: int
    """Number of sub-updates in all."""
    shared: bool = False
    """True where every sub-update has the same field (an orbit, weights shared by all layers)."""
    axis: int = -1
    """The axis of the position that holds the features; all other axes are batch."""

    def along_features(self, values: Array, x: Array) -> Array:
        """Shape a per-feature vector [width] so that it broadcasts against a position `x`."""
        shape = [1] * x.ndim
        shape[self.axis] = values.shape[0]
        return values.reshape(shape)


@dataclasses.dataclass(frozen=True)
class Traits:
    """What an integrator declares about itself, and what the checks then measure."""

    equation: str
    """The update, with F the field and h the step."""
    reference: str
    """Where the rule comes from."""
    order: int | None
    """Formal order of accuracy; None for a method that follows the flow to a tolerance instead."""
    evaluations: int | None = 1
    """Field evaluations a step, each sub-update with its own field; None where they vary."""
    evaluations_shared: int | None = 1
    """Field evaluations a step in steady state, all sub-updates sharing one field."""
    dynamics: Literal["first", "second"] = "first"
    """Whether the rule integrates x' = F(x) or x'' = F(x)."""
    inverse: Literal["none", "algebraic", "exact"] = "none"
    """Whether `invert` exists: undone up to rounding (algebraic) or bit for bit (exact)."""
    symplectic: bool = False
    time_reversible: bool = False
    manifold: Literal["none", "sphere"] = "none"
    """The manifold on which the position stays: the sphere has radius sqrt(width)."""
    reads: Literal["normalised", "raw"] = "normalised"
    """Whether a pre-norm backbone hands the branch a normalised copy or the raw stream."""
    reduces_to: tuple[tuple[str, str], ...] = ()
    """Limits that hold bit for bit, as (options, spec): (("mu=0", "euler"),)."""

    def __post_init__(self) -> None:
        for name, kind in get_type_hints(Traits).items():
            value = getattr(self, name)
            if get_origin(kind) is Literal and value not in get_args(kind):
                allowed = ", ".join(map(repr, get_args(kind)))
                raise ZooError(f"trait {name}={value!r} is not one of {allowed}.")


class Integrator(Options, ABC):
    """A residual-update rule. Subclass, decorate with `@integrator(...)`, write `step`.

    The default state is the position itself. Rules that carry a velocity subclass
    `MovingIntegrator`; any other pytree of fixed structure will do when `init`, `position` and
    `relocate` are written to match.
    """

    traits: ClassVar[Traits]

    def init(self, x0: Array, field: Field, at: Step, velocity: Array | None = None) -> State:
        """The state before the first step. `velocity` is used by rules that keep one."""
        return x0

    @abstractmethod
    def step(self, state: State, field: Field, at: Step, params: Params) -> State:
        """The state one step later. Pure: no side effects, same structure, shapes and dtypes."""

    def position(self, state: State) -> Array:
        """The residual stream, of the shape and dtype of x0."""
        return state

    def relocate(self, state: State, x: Array) -> State:
        """The same state with its position moved to `x` (used by rules that wrap another)."""
        return x

    def parameters(self, width: int) -> dict[str, Array]:
        """Initial values of what is learned, for one sub-update; {} for most."""
        return {}

    def observe(self, state: State) -> dict[str, Array]:
        """Named extras for telemetry, each of the shape of the position; {} by default."""
        return {}


class Invertible(Integrator):
    """An integrator whose step can be undone from the final state alone."""

    @abstractmethod
    def invert(self, state: State, field: Field, at: Step, params: Params) -> State:
        """The state before `step` gave this one, with the same field, place and parameters."""

    def amplification(self) -> float:
        """Factor by which one undone step magnifies a rounding error; 1 for lossless rules."""
        return 1.0


class Moving(NamedTuple):
    """Position and velocity."""

    x: Array
    v: Array


class Kick(NamedTuple):
    """The move v += by F(x)."""

    by: Any


class Drift(NamedTuple):
    """The move x += by v."""

    by: Any


class Fade(NamedTuple):
    """The move v *= by, with 0 < by < 1: friction."""

    by: Any


Move = Kick | Drift | Fade


class MovingIntegrator(Integrator):
    """A rule with a velocity: the state is `Moving(x, v)`, at rest unless a velocity is given."""

    def moves(self, h: Any) -> tuple[Move, ...]:
        """The step as a sequence of moves, each of which integers can undo; () where it is none.

        This is what `memory="exact"` carries out, forward and backward, in fixed point.
        """
        return ()

    def init(self, x0: Array, field: Field, at: Step, velocity: Array | None = None) -> State:
        return Moving(x0, 0 * x0 if velocity is None else velocity)

    def position(self, state: State) -> Array:
        return state.x

    def relocate(self, state: State, x: Array) -> State:
        return state._replace(x=x)

    def observe(self, state: State) -> dict[str, Array]:
        return {"velocity": state.v}


_I = TypeVar("_I", bound=Integrator)


def integrator(
    name: str,
    *,
    equation: str,
    reference: str,
    order: int | None,
    evaluations: int | None = 1,
    evaluations_shared: int | Literal["same"] | None = "same",
    dynamics: Literal["first", "second"] = "first",
    inverse: Literal["none", "algebraic", "exact"] = "none",
    symplectic: bool = False,
    time_reversible: bool = False,
    manifold: Literal["none", "sphere"] = "none",
    reads: Literal["normalised", "raw"] = "normalised",
    reduces_to: Mapping[str, str] | None = None,
) -> Callable[[type[_I]], type[_I]]:
    """Make a class an integrator: a frozen, hashable dataclass with a name and declared traits.

    Args:
        name: the name in spec strings: lower case letters, digits and dashes.
        equation, reference, order, ...: the traits, see `Traits`; `reduces_to` maps options to
            the spec they reduce to, as in `{"mu=0": "euler"}`.

    Raises:
        ZooError: the name or an option is malformed.
    """
    traits = Traits(
        equation=equation,
        reference=reference,
        order=order,
        evaluations=evaluations,
        evaluations_shared=evaluations if evaluations_shared == "same" else evaluations_shared,
        dynamics=dynamics,
        inverse=inverse,
        symplectic=symplectic,
        time_reversible=time_reversible,
        manifold=manifold,
        reads=reads,
        reduces_to=tuple((reduces_to or {}).items()),
    )

    def decorate(cls: type[_I]) -> type[_I]:
        made = declare(cls, name)
        made.traits = traits
        return made

    return decorate


def exactly(value: Any, number: float) -> bool:
    """Whether an option is this very number, and so the rule its declared limit.

    Use it for the branches in Python that a limit needs. A traced option is never at a limit
    (see `traced_options`), so the question is answered before tracing.
    """
    return isinstance(value, float) and value == number


def traced_options(rule: Integrator) -> dict[str, float]:
    """The float options that may become traced values, so that rules share one program.

    An option at a value where the rule declares a limit (`reduces_to`) stays static: there the
    rule is another expression, not the same one with another number.
    """
    limits = {condition for condition, _ in rule.traits.reduces_to}
    values = rule.option_values()
    return {
        name: value
        for name, value in values.items()
        if type(value) is float and f"{name}={value:g}" not in limits
    }
