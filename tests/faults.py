"""Planted faults, each with its honest twin: what every check of the kit must catch.

A fault is an honest rule with one thing wrong. `FAULTS` holds (check, faulty class, twin).
"""

from __future__ import annotations

from typing import ClassVar, NamedTuple

import jax
import jax.numpy as jnp

from integrator_zoo import (
    Integrator,
    Invertible,
    Moving,
    MovingIntegrator,
    exactly,
    integrator,
    option,
)

FIRST = {"equation": "x' = x + h F(x)", "reference": "a test, 2026", "order": 1}
SECOND = {**FIRST, "equation": "v' = v + h F(x);  x' = x + h v'", "dynamics": "second"}
FAULTS: list[tuple[str, type[Integrator], type[Integrator]]] = []


@integrator("honest", **FIRST)
class Honest(Integrator):
    """Euler, as it should be written."""

    def step(self, state, field, at, params):
        return state + at.h * field(state)


@integrator("honest-midpoint", **{**FIRST, "order": 2, "evaluations": 2})
class Midpoint(Integrator):
    """The explicit midpoint rule, as it should be."""

    def step(self, state, field, at, params):
        return state + at.h * field(state + at.h / 2 * field(state))


@integrator("honest-ledger", **FIRST, inverse="algebraic")
class Ledger(MovingIntegrator, Invertible):
    """Heavy ball, as it should be."""

    mu: float = option(0.9, "memory of the velocity", above=0.0, below=1.0)

    def step(self, state, field, at, params):
        v = self.mu * state.v + (1 - self.mu) * field(state.x)
        return Moving(state.x + at.h * v, v)

    def invert(self, state, field, at, params):
        x = state.x - at.h * state.v
        return Moving(x, (state.v - (1 - self.mu) * field(x)) / self.mu)

    def amplification(self):
        return 1 / self.mu


@integrator("honest-leapfrog", **{**SECOND, "order": 2}, symplectic=True, time_reversible=True)
class Leapfrog(MovingIntegrator):
    """Drift, kick, drift, as it should be."""

    def step(self, state, field, at, params):
        y = state.x + at.h / 2 * state.v
        v = state.v + at.h * field(y)
        return Moving(y + at.h / 2 * v, v)


@integrator("honest-kick", **SECOND, symplectic=True)
class Kick(MovingIntegrator):
    """Symplectic Euler, as it should be."""

    def step(self, state, field, at, params):
        v = state.v + at.h * field(state.x)
        return Moving(state.x + at.h * v, v)


def retract(z, at):
    """To the sphere of radius sqrt(D), for z of any size."""
    largest = jax.lax.stop_gradient(jnp.max(jnp.abs(z), axis=at.axis, keepdims=True))
    z = z / jnp.where(largest > 0, largest, 1)
    square = jnp.sum(z * z, axis=at.axis, keepdims=True)
    norm = jnp.where(square > 0, jnp.sqrt(jnp.where(square > 0, square, 1)), 1)
    return z * (z.shape[at.axis] ** 0.5 / norm)


@integrator("honest-sphere", **FIRST, manifold="sphere")
class Sphere(Integrator):
    """Euler on the sphere, as it should be."""

    def init(self, x0, field, at, velocity=None):
        return retract(x0, at)

    def step(self, state, field, at, params):
        return retract(state + at.h * field(state), at)


@integrator("honest-learner", **FIRST)
class Learner(Integrator):
    """Euler with a learned gain for each feature, as it should be."""

    def step(self, state, field, at, params):
        gain = at.along_features(params["gain"], state).astype(state.dtype)
        return state + at.h * gain * field(state)

    def parameters(self, width):
        return {"gain": jnp.ones(width)}


@jax.custom_jvp
def rounded(z):
    """z on a grid of which sums below 16 are exact; its derivative is that of z."""
    fine = 2.0 ** -(jnp.finfo(z.dtype).nmant - 3)
    return jnp.round(z / fine) * fine


rounded.defjvp(lambda primals, tangents: (rounded(*primals), tangents[0]))


@integrator("honest-lattice", **SECOND, inverse="exact", symplectic=False)
class Lattice(MovingIntegrator, Invertible):
    """Symplectic Euler whose moves are rounded to a grid on which sums are exact."""

    def grid(self, z):
        return rounded(z)

    def init(self, x0, field, at, velocity=None):
        start = super().init(x0, field, at, velocity)
        return Moving(self.grid(start.x), self.grid(start.v))

    def step(self, state, field, at, params):
        v = state.v + self.grid(at.h * field(state.x))
        return Moving(state.x + self.grid(at.h * v), v)

    def invert(self, state, field, at, params):
        x = state.x - self.grid(at.h * state.v)
        return Moving(x, state.v - self.grid(at.h * field(x)))


@integrator("honest-limit", **FIRST, reduces_to={"mu=0": "euler"})
class Limit(Integrator):
    """A gain that is 1 where mu is 0, as it should be."""

    mu: float = option(0.5, "cuts the last sub-updates", low=0.0, below=1.0)

    def step(self, state, field, at, params):
        if exactly(self.mu, 0):
            return state + at.h * field(state)
        gain = jnp.asarray(1 - self.mu ** (at.count - at.index), state.dtype)
        return state + at.h * gain * field(state)


class Counted(NamedTuple):
    """A position and how many steps were made."""

    x: jax.Array
    count: jax.Array


@integrator("honest-counter", **FIRST)
class Counter(Integrator):
    """Euler that counts its steps, as it should."""

    def init(self, x0, field, at, velocity=None):
        return Counted(x0, jnp.zeros((), x0.dtype))

    def step(self, state, field, at, params):
        return Counted(state.x + at.h * field(state.x), state.count + 1)

    def position(self, state):
        return state.x

    def relocate(self, state, x):
        return state._replace(x=x)


def fault(check, twin, **changes):
    """Register a faulty subclass of an honest twin; `changes` are its declared traits."""

    def plant(cls):
        traits = twin.traits
        said = {key: changes.get(key, getattr(traits, key)) for key in vars(traits)}
        said["reduces_to"] = dict(said["reduces_to"])
        cls.__doc__ = cls.__doc__ if "undocumented" not in changes else None
        FAULTS.append((check, integrator(f"fault-{len(FAULTS)}", **said)(cls), twin))
        return cls

    return plant


@fault("state-structure", Ledger)
class ForgetsVelocity(Ledger):
    """The step returns a plain pair instead of its own state type."""

    def step(self, state, field, at, params):
        after = super().step(state, field, at, params)
        return (after.x, after.v)


@fault("state-structure", Counter)
class GrowingState(Counter):
    """The counter gains an axis at every step."""

    def step(self, state, field, at, params):
        return Counted(state.x + at.h * field(state.x), state.count[None] + 1)


@fault("shapes", Honest)
class FlattensTime(Honest):
    """A stream with a time axis comes back flattened."""

    def position(self, state):
        return state.reshape(-1, state.shape[-1]) if state.ndim == 3 else state


@fault("dtype-bfloat16", Honest)
class PromotesHalf(Honest):
    """A float32 constant turns bfloat16 into float32."""

    def step(self, state, field, at, params):
        return (
            state + jnp.float32(at.h) * field(state)
            if state.dtype == jnp.bfloat16
            else (super().step(state, field, at, params))
        )


@fault("dtype-float32", Honest)
class PromotesSingle(Honest):
    """A float64 constant turns float32 into float64 where 64-bit is on."""

    def step(self, state, field, at, params):
        wide = jnp.float64(1.0) if state.dtype == jnp.float32 and jax.config.jax_enable_x64 else 1
        return state + at.h * wide * field(state)


@fault("dtype-float64", Honest)
class CastsDown(Honest):
    """The step is computed in float32, whatever comes in."""

    def step(self, state, field, at, params):
        return (state + at.h * field(state)).astype(
            jnp.float32 if state.dtype == jnp.float64 else state.dtype
        )


@fault("hashable", Honest)
class HashById(Honest):
    """Equal rules hash differently, so every instance compiles anew."""

    def __hash__(self):
        return id(self)


@fault("spec", Ledger)
class SpecForgets(Ledger):
    """The spec string leaves the options out."""

    spec = property(lambda self: self.name)


@fault("repr", Ledger)
class ReprForgets(Ledger):
    """repr leaves the options out."""

    def __repr__(self):
        return f"{type(self).__name__}()"


@fault("pure", Honest)
class HiddenCounter(Honest):
    """A counter kept outside the state; a compiled loop sees only its first value."""

    calls: ClassVar = [0]

    def step(self, state, field, at, params):
        self.calls[0] += not isinstance(state, jax.core.Tracer)
        return state + at.h * (1 + 1e-6 * self.calls[0]) * field(state)


class Boxed(dict):
    """A state that can be changed in place."""


jax.tree_util.register_pytree_node(
    Boxed, lambda box: ((box["x"],), None), lambda _, leaves: Boxed(x=leaves[0])
)


@fault("inputs-unchanged", Honest)
class InPlace(Honest):
    """The step writes into the state it was given."""

    def init(self, x0, field, at, velocity=None):
        return Boxed(x=x0)

    def step(self, state, field, at, params):
        moved = Boxed(x=state["x"] + at.h * field(state["x"]))
        if not isinstance(moved["x"], jax.core.Tracer):
            state["x"] = moved["x"]
        return moved

    def position(self, state):
        return state["x"]

    def relocate(self, state, x):
        return Boxed(x=x)


@fault("start", Kick)
class Swapped(Kick):
    """Position and velocity are swapped in the state."""

    def init(self, x0, field, at, velocity=None):
        return Moving(0 * x0 if velocity is None else velocity, x0)


@fault("start", Kick)
class IgnoresVelocity(Kick):
    """The velocity that was given is forgotten."""

    def init(self, x0, field, at, velocity=None):
        return Moving(x0, 0 * x0)


@fault("relocate", Ledger)
class RelocateForgets(Ledger):
    """Moving the position puts the velocity to rest."""

    def relocate(self, state, x):
        return Moving(x, 0 * state.v)


@fault("observe", Ledger)
class ObservesScalar(Ledger):
    """Telemetry of another shape than the position."""

    def observe(self, state):
        return {"speed": jnp.sum(state.v)}


@fault("jit", Honest)
class KnowsTracing(Honest):
    """The compiled step is another step than the eager one."""

    def step(self, state, field, at, params):
        gain = 1 + 0.1 * at.h if isinstance(state, jax.core.Tracer) else 1
        return state + at.h * gain * field(state)


@fault("scan", Honest)
class BranchesOnIndex(Honest):
    """A Python branch on a traced index."""

    def step(self, state, field, at, params):
        return state + at.h * field(state) if at.index >= 0 else state


@fault("vmap", Honest)
class MixesBatch(Honest):
    """A point is drawn to the mean of its batch."""

    def step(self, state, field, at, params):
        force = field(state)
        if state.ndim == 2:
            force = force + 0.1 * (force.mean(0) - force)
        return state + at.h * force


@fault("grad", Honest)
class StopsGradient(Honest):
    """The branch receives no gradient."""

    def step(self, state, field, at, params):
        return state + at.h * jax.lax.stop_gradient(field(state))


@fault("no-leak", Honest)
class KeepsTracer(Honest):
    """Every force is kept in a list, for later."""

    seen: ClassVar = []

    def step(self, state, field, at, params):
        force = field(state)
        self.seen.append(force)
        return state + at.h * force


@fault("no-recompilation", Counter)
class WeakStart(Counter):
    """The counter starts weakly typed and becomes strongly typed."""

    def init(self, x0, field, at, velocity=None):
        weak = x0.dtype == jnp.float32 and not jax.config.jax_enable_x64
        return Counted(x0, jnp.asarray(0.0) if weak else jnp.zeros((), x0.dtype))

    def step(self, state, field, at, params):
        after = super().step(state, field, at, params)
        return after._replace(count=after.count + jnp.zeros((), state.x.dtype))


@fault("memory-modes", Honest)
class AnotherEachTrace(Honest):
    """A counter at trace time: what is recomputed is not what was computed."""

    traces: ClassVar = [0]

    def step(self, state, field, at, params):
        deep = isinstance(at.h, float) and at.count == 3 and state.dtype == jnp.float64
        if deep and isinstance(state, jax.core.Tracer):
            self.traces[0] += 1
        return state + at.h * (1 + 1e-4 * self.traces[0] * deep) * field(state)


@fault("consistency", Honest)
class WrongScale(Honest):
    """The field is followed two per cent too fast."""

    def step(self, state, field, at, params):
        return state + at.h * 1.02 * field(state)


@fault("order", Midpoint, order=4)
class ClaimsFour(Midpoint):
    """Declares order 4 and has order 2."""


@fault("order", Midpoint)
class BadStart(Midpoint):
    """Order 2, but the first step is only half a step."""

    def step(self, state, field, at, params):
        after = super().step(state, field, at, params)
        share = jnp.where(jnp.asarray(at.index) == 0, 0.5, 1.0).astype(state.dtype)
        return state + share * (after - state)


@fault("evaluations", Midpoint, evaluations=1, evaluations_shared=2)
class UndercountsLayers(Midpoint):
    """Declares one evaluation where each layer has its own field, and makes two."""


@fault("evaluations-shared", Midpoint, evaluations=2, evaluations_shared=1)
class UndercountsOrbit(Midpoint):
    """Declares one evaluation where the field is shared, and makes two."""


@fault("shared-field", Honest)
class OtherWhenShared(Honest):
    """Another path where all sub-updates share a field."""

    def step(self, state, field, at, params):
        gain = 1 + 0.1 * at.h if at.shared else 1
        return state + at.h * gain * field(state)


@fault("inverse-declared", Honest, inverse="algebraic")
class NoInvert(Honest):
    """Declares an inverse and defines none."""


@fault("inverse-declared", Ledger, inverse="none")
class HidesInvert(Ledger):
    """Defines an inverse and declares none."""


@fault("inverse-algebraic", Ledger)
class WrongDivisor(Ledger):
    """The inverse divides by 1 - mu instead of mu."""

    def invert(self, state, field, at, params):
        x = state.x - at.h * state.v
        return Moving(x, (state.v - (1 - self.mu) * field(x)) / (1 - self.mu))


@fault("inverse-algebraic", Ledger)
class HidesAmplification(Ledger):
    """Claims to lose nothing when it is undone."""

    def amplification(self):
        return 1.0


@fault("inverse-exact", Lattice)
class OnlyAlgebraic(Lattice):
    """Declares an exact inverse that rounds."""

    def grid(self, z):
        return z


@fault("symplectic-form", Kick)
class PlainEuler(Kick):
    """Declares symplecticity and is plain Euler: the drift uses the old velocity."""

    def step(self, state, field, at, params):
        return Moving(state.x + at.h * state.v, state.v + at.h * field(state.x))


@fault("energy-band", Kick)
class GrowingForce(Kick):
    """Symplectic at every step, but the force grows with depth."""

    def step(self, state, field, at, params):
        grown = jnp.asarray(at.h * (1 + at.h * at.t), state.x.dtype)
        v = state.v + grown * field(state.x)
        return Moving(state.x + at.h * v, v)


@fault("time-reversal", Kick, time_reversible=True)
class ClaimsReversal(Kick):
    """Declares time reversal and is symplectic Euler."""


@fault("manifold", Sphere)
class StartsOff(Sphere):
    """Only the steps are retracted, not the start."""

    def init(self, x0, field, at, velocity=None):
        return x0


@fault("manifold", Sphere)
class NoRetraction(Sphere):
    """Only the start is retracted, not the steps."""

    def step(self, state, field, at, params):
        return state + at.h * field(state)


@fault("reduction", Limit)
class NearlyEuler(Limit):
    """Nearly Euler where mu is 0, but one bit beside it."""

    def step(self, state, field, at, params):
        if exactly(self.mu, 0):
            return state + at.h * (1 + 2e-7) * field(state)
        return super().step(state, field, at, params)


@fault("rest", Honest)
class Creeps(Honest):
    """A stream at rest creeps."""

    def step(self, state, field, at, params):
        return state + at.h * field(state) + 1e-3 * at.h * at.h * state


@fault("zero", Honest)
class RootOfZero(Honest):
    """The norm of the force, whose gradient is NaN where the force is zero."""

    def step(self, state, field, at, params):
        force = field(state)
        norm = jnp.sqrt(jnp.sum(force * force, axis=at.axis, keepdims=True))
        return state + at.h * force * jnp.where(norm > 0, norm / norm, 1)


@fault("extreme", Honest)
class Overflows(Honest):
    """The square of the stream, which overflows at 1e30."""

    def step(self, state, field, at, params):
        size = 1 + jnp.sum(state * state, axis=at.axis, keepdims=True)
        return state + at.h * field(state) * (size / size)


@fault("parameters", Learner)
class OtherEachTime(Learner):
    """The first values differ from call to call."""

    calls: ClassVar = [0]

    def step(self, state, field, at, params):
        return super().step(state, field, at, {"gain": 1 + params["gain"]})

    def parameters(self, width):
        self.calls[0] += 1
        return {"gain": jnp.full(width, 1e-30 * self.calls[0])}


@fault("parameters-gradient", Learner)
class Unused(Learner):
    """A parameter that nothing reads."""

    def parameters(self, width):
        return {**super().parameters(width), "spare": jnp.ones(2)}


@fault("equation", Honest, equation="as usual")
class NoEquation(Honest):
    """The update is not written down."""


@fault("reference", Honest, reference=" ")
class NoReference(Honest):
    """Nobody says where the rule comes from."""


@fault("docstring", Honest, undocumented=True)
class NoDocstring(Honest):
    pass


@fault("table", Honest, reference="one line\nand another")
class TwoLines(Honest):
    """The reference does not fit into a row."""
