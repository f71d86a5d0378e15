"""Checks of the contract itself: shapes, dtypes, structure, purity, identity."""

from __future__ import annotations

from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from ..options import from_spec
from . import probe
from .base import Measured, Subject, check
from .variants import variants


def first_step(rule: Any, x0: Any, dtype: Any = jnp.float32) -> tuple[Any, Any]:
    """The state before and after one step."""
    w = probe.weights(1, dtype)
    field, at = probe.bound_field(w, 0), probe.place(0, 1)
    state = rule.init(x0, field, at, probe.opening_velocity(rule, x0))
    return state, rule.step(state, field, at, probe.own_parameters(rule))


def leaf_types(tree: Any) -> list[str]:
    """Shape and dtype of every leaf."""
    return [f"{jnp.result_type(leaf)}{list(jnp.shape(leaf))}" for leaf in jax.tree.leaves(tree)]


@check("state-structure", "a compiled loop over depth carries one fixed structure")
def state_structure(subject: Subject) -> Measured:
    before, after = first_step(subject.rule, probe.start())
    was, now = jax.tree.structure(before), jax.tree.structure(after)
    if was == now:
        was, now = leaf_types(before), leaf_types(after)
    return Measured(was == now, "unchanged" if was == now else f"{was} to {now}", "unchanged")


@check("hashable", "a rule is a static argument of compiled programs")
def hashable(subject: Subject) -> Measured:
    rules = variants(subject.rule)
    twins = [type(rule)().with_options(rule.option_values()) for rule in rules]
    equal = all(a == b and hash(a) == hash(b) for a, b in zip(rules, twins, strict=True))
    apart = len(set(rules)) == len(rules)
    said = "equal options, equal hash" if equal else "equal options compare or hash differently"
    said = said if apart else "different options compare equal"
    return Measured(equal and apart, said, "equal options, equal hash")


@check("spec", "runs are named, stored and found again by the spec string")
def spec(subject: Subject) -> Measured:
    lost = [
        r.spec for r in variants(subject.rule) if from_spec(r.spec, lambda _, r=r: type(r)()) != r
    ]
    said = f"{', '.join(lost)} names another rule" if lost else "every spec names its rule"
    return Measured(not lost, said, "every spec names its rule")


@check("repr", "what a notebook prints makes the same rule again")
def repr_round_trip(subject: Subject) -> Measured:
    cls = type(subject.rule)
    lost = []
    for rule in variants(subject.rule):
        try:
            local = repr(rule).replace(cls.__qualname__, cls.__name__, 1)  # made inside a function
            same = eval(local, {cls.__name__: cls}) == rule
        except Exception:
            same = False
        if not same:
            lost.append(repr(rule))
    said = f"{', '.join(lost)} does not" if lost else "repr makes the same rule"
    return Measured(not lost, said, "repr makes the same rule")


@check("pure", "a compiled step runs Python once: hidden state is lost", needs=("state-structure",))
def pure(subject: Subject) -> Measured:
    x0 = probe.start()
    one = first_step(subject.rule, x0)
    first_step(subject.rule, 2 * x0)
    other = first_step(subject.rule, x0)
    gap = probe.distance(other, one)
    same = probe.same_bits(other, one)
    return Measured(same, f"second call differs by {gap:.1e}", "0, bit for bit", value=gap)


@check("inputs-unchanged", "the state before a step is still needed", needs=("state-structure",))
def inputs_unchanged(subject: Subject) -> Measured:
    rule, w = subject.rule, probe.weights(1)
    field, at, own = probe.bound_field(w, 0), probe.place(0, 1), probe.own_parameters(rule)
    x0 = probe.start()
    state = rule.init(x0, field, at, probe.opening_velocity(rule, x0))
    kept = jax.tree.map(np.array, (state, own))
    rule.step(state, field, at, own)
    same = probe.same_bits((state, own), kept)
    return Measured(same, "unchanged" if same else "changed in place", "unchanged")


@check(
    "start",
    "the first node is the input, moving with the velocity that was given",
    needs=("state-structure",),
)
def start(subject: Subject) -> Measured:
    rule, x0 = subject.rule, probe.start()
    velocity = probe.opening_velocity(rule, x0)
    state = rule.init(x0, probe.bound_field(probe.weights(1), 0), probe.place(0, 1), velocity)
    at = rule.position(state)
    if subject.traits.manifold == "none":
        gap = probe.distance(at, x0)
    else:  # only the direction is the input's
        gap = probe.distance(at / jnp.linalg.norm(at), x0 / jnp.linalg.norm(x0))
    if velocity is not None:
        if "velocity" not in rule.observe(state):
            return Measured(False, "no velocity in observe()", "observe() names 'velocity'")
        gap = max(gap, probe.distance(rule.observe(state)["velocity"], velocity))
    return Measured(gap <= 1e-6, f"{gap:.1e} off", "1e-6", value=gap)


@check(
    "relocate", "a rule that wraps this one moves its position", needs=("state-structure", "start")
)
def relocate(subject: Subject) -> Measured:
    rule = subject.rule
    _, state = first_step(rule, probe.start())
    here, there = rule.position(state), -2.0 * rule.position(state)
    moved = rule.relocate(state, there)
    gap = probe.distance(rule.position(moved), there)
    back = rule.relocate(moved, here)
    same = leaf_types(moved) == leaf_types(state) and probe.same_bits(back, state)
    said = f"{gap:.1e} off" + ("" if same else ", and the rest of the state is changed")
    return Measured(gap == 0 and same, said, "0, the rest unchanged", value=gap)


@check(
    "observe",
    "telemetry is stacked over depth: fixed names, shaped like the position",
    needs=("state-structure",),
)
def observe(subject: Subject) -> Measured:
    rule = subject.rule
    before, after = (rule.observe(s) for s in first_step(rule, probe.start()))
    wrong = [
        f"{name}: {list(jnp.shape(value))}"
        for name, value in after.items()
        if jnp.shape(value) != (probe.WIDTH,)
    ]
    if set(before) != set(after):
        wrong.append(f"names change from {sorted(before)} to {sorted(after)}")
    names = ", ".join(after) or "nothing observed"
    return Measured(not wrong, "; ".join(wrong) or names, "fixed names, shape of the position")
