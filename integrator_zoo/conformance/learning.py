"""Checks of what is learned."""

from __future__ import annotations

from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from ..contract import Integrator
from ..depth import initial_parameters
from . import probe
from .base import Measured, Subject, check


def _learns_nothing(rule: Integrator) -> str:
    return "" if rule.parameters(probe.WIDTH) else "learns nothing"


@check("parameters", "what is learned is declared: names, shapes, first values")
def parameters(subject: Subject) -> Measured:
    rule = subject.rule
    wide, again, wider = (rule.parameters(probe.WIDTH + more) for more in (0, 0, 2))
    wrong = []
    if not probe.same_bits(wide, again):
        wrong.append("two calls differ")
    if set(wide) != set(wider):
        wrong.append("the names depend on the width")
    for name, value in wide.items():
        if not name.isidentifier():
            wrong.append(f"{name!r} is no identifier")
        if not isinstance(value, jax.Array) or not jnp.issubdtype(value.dtype, jnp.floating):
            wrong.append(f"{name} is {type(value).__name__}, not a floating array")
        elif not probe.all_finite(value):
            wrong.append(f"{name} is not finite")
    shapes = ", ".join(f"{name}{list(jnp.shape(value))}" for name, value in wide.items())
    count = sum(int(np.prod(jnp.shape(value))) for value in wide.values())
    said = "; ".join(wrong) or (f"{shapes}: {count} for width {probe.WIDTH}" if wide else "none")
    return Measured(not wrong, said, "named floating arrays, the same at each call", value=count)


@check(
    "parameters-gradient",
    "a parameter without a gradient is never trained",
    needs=("scan", "parameters"),
    unless=_learns_nothing,
)
def parameters_gradient(subject: Subject) -> Measured:
    rule, w, x0 = subject.rule, probe.weights(), probe.start(probe.BATCH, probe.WIDTH)

    def loss(own: Any) -> Any:
        return jnp.sum(jnp.sin(probe.walk(rule, w, x0, params=own).position))

    slopes = jax.jit(jax.grad(loss))(initial_parameters(rule, probe.DEPTH, 1, probe.WIDTH))
    dead = {}
    for name, slope in slopes.items():
        each = np.abs(np.asarray(slope)).max(axis=(0, 1))  # the best of the sub-updates
        dead[name] = int((~(each > 0)).sum())
    silent = sum(dead.values())
    names = ", ".join(name for name, count in dead.items() if count)
    said = f"{silent} entries of {names} receive none" if silent else "every entry receives one"
    finite = probe.all_finite(slopes)
    said = said if finite else "not finite"
    return Measured(finite and not silent, said, "every entry receives one", value=silent)
