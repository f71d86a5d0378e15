"""Which update rules break the ceiling of rings: the velocity, or the coarse step?"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from integrator_zoo.claims import Groups, Request, Share, Study
from integrator_zoo.intervals import mean

if TYPE_CHECKING:
    from integrator_zoo.runs import Record

SEEDS = 32
FLOW, FINER = "diffrax-adaptive", "diffrax-adaptive:rtol=1e-6,atol=1e-8"
RULES = ("euler", "ledger", "leapfrog", "diffrax-heun", "diffrax-dopri5", FLOW)
ROUNDED = 1 - 1e-9
"""Every test point right."""
MORE = 20_000
"""Points on which a net that has every test point right is looked at again."""


def _request(rule: str, depth: int) -> Request:
    return Request("rings", rule, SEEDS, settings={"depth": depth})


REQUESTS = (
    *(_request(rule, 8) for rule in RULES),
    *(_request(rule, 32) for rule in RULES[:3]),
)


def _report(groups: Groups, folder: Path) -> Sequence[str]:
    from integrator_zoo.figures import by_integrator, planar, style
    from integrator_zoo.runs.reproduce import markdown_table

    records = [record for group in groups for record in group]
    style.draw_each([planar.ceiling], by_integrator(records), folder / "ceiling")
    rows = []
    for request, group in zip(REQUESTS, groups, strict=True):
        good = [record for record in group if record.status == "ok"]
        accuracy = mean([record.metrics["test_accuracy"] for record in good])
        touched = Share("test_accuracy", ROUNDED)([good])
        rows.append((
            request.settings["depth"],
            f"`{request.integrator}`",
            f"{group[0].metrics['evaluations_per_step']:.3g}",
            accuracy.show(".3f", 100),
            f"{round(touched.value * touched.count)} of {len(group)}",
            f"{100 * touched.low:.0f} to {100 * touched.high:.0f}",
            mean([record.metrics["turning_angle_degrees"] for record in good]).show(".1f"),
        ))  # fmt: skip
    headings = (
        "depth", "rule", "F/step", "test accuracy, %", "seeds at 100 %",
        "exact 95 % of that share, %", "turning, degrees a layer",
    )  # fmt: skip
    return [
        "The disk of `rings` lies inside an annulus, so no flow of the plane separates them: an "
        "exact flow must leave a channel through the annulus on the wrong side, but it can be so "
        "thin that none of the test points lies in it. A rule breaks the ceiling if it can reach "
        "100 %.",
        "",
        *markdown_table(headings, rows),
        "",
        "![test accuracy of every seed against depth](ceiling/ceiling.png)",
        "",
        *_answer(groups),
        "",
        *_thin_channels(groups[RULES.index(FLOW)]),
    ]


def _full(record: Record) -> bool:
    return (record.metrics.get("test_accuracy") or 0) >= ROUNDED


def _thin_channels(flows: Sequence[Record]) -> list[str]:
    """What the exact flows that reach 100 % do to many more points: is there no channel?"""
    full = list(filter(_full, flows))
    if not full:
        return []
    as_trained, finer = ([_wrong(record, rule) for record in full] for rule in (FLOW, FINER))
    said = (
        f"Exact flows with every test point right: {len(full)} of {len(flows)}. Of {MORE:,} other "
        f"points such a net gets {_counts(as_trained)} wrong, and {_counts(finer)} at a hundredth "
        "of the tolerance"
    )
    return [said + (": its channel is thin, not gone." if min(as_trained + finer) else ".")]


def _wrong(record: Record, rule: str) -> int:
    """How many of MORE points that it has not seen a recorded net gets wrong under a rule."""
    import jax
    import jax.numpy as jnp
    from flax import nnx

    import integrator_zoo as zoo
    from integrator_zoo.registry import current
    from integrator_zoo.training.weights import from_records

    chosen = {**record.config["settings"], "test_points": MORE}
    experiment: Any = current().get("experiment", "rings").with_options(chosen)
    graph, (params,) = from_records(lambda: experiment.network(zoo.get(rule), 0), [record.arrays])
    points = experiment.data(seed=MORE)  # a seed that no run has
    logits = jax.jit(lambda p, x: nnx.merge(graph, p)(x))(params, jnp.asarray(points.test_x))
    return int((np.asarray(logits.argmax(-1)) != points.test_y).sum())


def _counts(values: Sequence[int]) -> str:
    return ", ".join(map(str, values))


def _answer(groups: Groups) -> list[str]:
    """How many nets reached 100 %: those that keep a velocity together, the others one by one."""
    moving, still, said = [0, 0], [], []
    for request, group in zip(REQUESTS, groups, strict=True):
        hits = sum(map(_full, group))
        if "kinetic_energy_end" in group[0].metrics:
            moving[0] += hits
            moving[1] += len(group)
        else:
            depth = request.settings["depth"]
            still.append((request.integrator, depth, hits / len(group)))
            said.append(f"`{request.integrator}` at depth {depth} {hits} of {len(group)}")
    found = (
        f"**Of the nets whose rule keeps a velocity, {moving[0]} of {moving[1]} reach 100 %. "
        f"Of the others: {', '.join(said)}.**"
    )
    at_8 = [share for _, depth, share in still if depth == 8]
    at_32 = [share for _, depth, share in still if depth == 32]
    finer_is_rarer = at_8 == sorted(at_8, reverse=True) and max(at_32) < at_8[0]
    if moving[0] < 0.9 * moving[1] or not finer_is_rarer:
        return [found]
    return [
        f"{found} Both break the ceiling, in two ways: a velocity lifts the plane into phase "
        "space, where the classes can pass each other, whatever the step size; without one it is "
        "the error of the step that jumps across: the smaller or the more accurate the step, the "
        "more rarely.",
    ]


CEILING = Study(
    "ceiling",
    "The ceiling of rings",
    "Which update rules break the topological ceiling, and is it the velocity or the coarse step?",
    REQUESTS,
    _report,
)
