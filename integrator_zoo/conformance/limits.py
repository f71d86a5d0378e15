"""Checks at the edges: declared limits, rest, zeros, tiny and large inputs."""

from __future__ import annotations

from typing import Any

import jax
import jax.numpy as jnp

from .. import registry
from ..contract import Integrator
from ..options import from_spec
from . import probe
from .base import Measured, Subject, check

REST = 1e-6


@check(
    "reduction",
    "where a rule reduces to another, runs must agree bit for bit",
    needs=("scan",),
    unless=lambda rule: "declares no limit" * (not rule.traits.reduces_to),
)
def reduction(subject: Subject) -> Measured:
    w, x0, apart, said = probe.weights(8), probe.start(probe.BATCH, probe.WIDTH), 0.0, []
    for condition, spec in subject.traits.reduces_to:
        limit = from_spec(f"{subject.rule.name}:{condition}", lambda _: subject.rule)
        one, other = (_nodes(rule, w, x0) for rule in (limit, registry.get(spec)))
        apart = max(apart, probe.distance(one, other))
        said += [] if probe.same_bits(one, other) else [f"{condition} is not {spec}"]
    declared = ", ".join(f"{condition} is {spec}" for condition, spec in subject.traits.reduces_to)
    figure = f"{'; '.join(said) or declared}: {apart:.1e} apart"
    return Measured(not said, figure, "0, bit for bit", declared, apart)


def _nodes(rule: Integrator, w: Any, x0: Any) -> Any:
    return jax.jit(lambda w, x0: probe.walk(rule, w, x0, collect=True).trajectory.nodes)(w, x0)


@check(
    "rest",
    "where the field is zero, a stream at rest stays where it is",
    needs=("scan", "start", "manifold"),
)
def rest(subject: Subject) -> Measured:
    path = probe.walk(
        subject.rule,
        probe.weights(),
        probe.start(),
        branch=lambda layer, index, x: 0 * x,
        collect=True,
    ).trajectory
    gap = probe.distance(path.nodes[1:], path.nodes[:1] + 0 * path.nodes[1:])
    return Measured(gap <= REST, f"moved by {gap:.1e}", f"{REST:.0e}", value=gap)


@check(
    "zero",
    "a zero-initialised branch or an empty stream must not give NaN",
    needs=("dtype-bfloat16",),
)
def zero(subject: Subject) -> Measured:
    cases = {
        f"{name}, {jnp.dtype(dtype).name}": (x_scale, f_scale, dtype)
        for dtype in (jnp.float32, jnp.bfloat16)
        for name, x_scale, f_scale in (
            ("zero state", 0.0, 1.0),
            ("zero field", 1.0, 0.0),
            ("zero state and field", 0.0, 0.0),
        )
    }
    return _finite(subject, cases)


@check("extreme", "tiny and large streams occur early in training", needs=("dtype-bfloat16",))
def extreme(subject: Subject) -> Measured:
    cases = {
        f"|x| near {size:g}, {jnp.dtype(dtype).name}": (size, 1.0, dtype)
        for dtype in (jnp.float32, jnp.bfloat16)
        for size in (1e-30, 1e30)
    }
    return _finite(subject, cases)


def _finite(subject: Subject, cases: dict[str, tuple[float, float, Any]]) -> Measured:
    """Values and gradients over the probe's layers, the state and the field scaled."""

    def loss(w: Any, x0: Any, f_scale: Any) -> Any:
        def scaled(layer: Any, index: Any, x: Any) -> Any:
            return f_scale * probe.branch(layer, index, x)

        end = probe.walk(subject.rule, w, x0, branch=scaled).position
        return jnp.sum(end * jnp.cos(jnp.arange(probe.WIDTH)).astype(end.dtype))

    both = subject.once("edges", lambda: jax.jit(jax.value_and_grad(loss, (0, 1, 2))))
    bad = []
    for name, (x_scale, f_scale, dtype) in cases.items():
        w = probe.weights(dtype=dtype)
        value, slope = both(w, (x_scale * probe.start()).astype(dtype), jnp.asarray(f_scale, dtype))
        for what, got in (("value", value), ("gradient", slope)):
            bad += [] if probe.all_finite(got) else [f"{what} not finite at {name}"]
    return Measured(not bad, "; ".join(bad) or "all finite", "all finite")
