"""The gain-matched control: is a ledger's short path inertia, or only small gains?"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import numpy as np

from integrator_zoo.claims import Groups, Request, Study, values
from integrator_zoo.intervals import Interval, mean

RULES = ("euler", "euler-gain-matched", "euler-gain-matched:match=step", "ledger")
PLAIN, LEDGER = 0, 3
PLANAR = tuple(Request("rings", rule, 8, settings={"depth": 32}) for rule in RULES)
GPT_STEPS = 200
GPT = tuple(Request("shakespeare", rule, 2, "quick", {"steps": GPT_STEPS}) for rule in RULES)
COLUMNS = {
    "path length": ("path_length", ".1f"),
    "straightness": ("straightness", ".3f"),
    "turning, degrees": ("turning_angle_degrees", ".1f"),
}


def _per_distance(group: Sequence) -> list[float]:
    """Path length over end-to-end distance, both means over points."""
    ways, ends = values(group, "path_length"), values(group, "end_to_end")
    return [way / end for way, end in zip(ways, ends, strict=True)]


def _share(groups: Groups, control: int, metric: str = "path_length") -> Interval:
    """How much of the change from plain to ledger the control has too, paired by seed."""
    plain, ledger, ours = (np.array(values(groups[i], metric)) for i in (PLAIN, LEDGER, control))
    return mean((plain - ours) / (plain - ledger))


def _table(groups: Groups, quality: tuple[str, str, float, str]) -> list[str]:
    from integrator_zoo.runs.reproduce import markdown_table

    heading, metric, scale, form = quality
    rows = [
        (
            f"`{rule}`",
            mean(values(group, metric)).show(form, scale),
            *(mean(values(group, name)).show(shape) for name, shape in COLUMNS.values()),
            mean(_per_distance(group)).show(".2f"),
            "" if i in (PLAIN, LEDGER) else _share(groups, i).show(".0f", 100),
        )
        for i, (rule, group) in enumerate(zip(RULES, groups, strict=True))
    ]  # fmt: skip
    headings = ("rule", heading, *COLUMNS, "path per distance", "share of the shortening, %")
    return markdown_table(headings, rows)


def _both(groups: Groups, metric: str) -> str:
    """The shares of the two controls, in words."""
    output, step = (100 * _share(groups, control, metric).value for control in (1, 2))
    return f"{output:.0f} % and {step:.0f} %"


def _report(groups: Groups, folder: Path) -> Sequence[str]:
    from integrator_zoo.figures import by_integrator, planar, style

    rings, gpt = groups[: len(RULES)], groups[len(RULES) :]
    runs = by_integrator(record for group in rings for record in group)
    style.draw_each([planar.trajectories], runs, folder / "inertia")
    said = [
        f"of the {what} gains without velocity give {_both(rings, metric)} on rings and "
        f"{_both(gpt, metric)} on the language model"
        for what, metric in (
            ("shorter path", "path_length"),
            ("smaller turning angle", "turning_angle_degrees"),
        )
    ]
    return [
        "A ledger's path is short. Two controls have its gains and no velocity: "
        "`euler-gain-matched` gives sub-update i of n the gain 1 - mu^(n-i) with which its force "
        "would reach the output, `match=step` the gain 1 - mu^(i+1) of a ledger's early, small "
        "steps. The share of the shortening is (plain - control) / (plain - ledger) in path "
        "length: 100 % would mean that the gain alone does it.",
        "",
        "## Rings, depth 32",
        "",
        *_table(rings, ("test accuracy, %", "test_accuracy", 100, ".2f")),
        "",
        "![test points through depth under the four rules](inertia/trajectories.png)",
        "",
        f"## The language model, small and trained for {GPT_STEPS} steps",
        "",
        *_table(gpt, ("best validation loss, nats", "best_val_loss", 1, ".3f")),
        "",
        f"**Inertia or gain? {said[0][0].upper()}{said[0][1:]}; {said[1]}** (first the output's "
        "gains, then the steps'). What the gains do not give is inertia.",
    ]


INERTIA = Study(
    "inertia",
    "Inertia or gain?",
    "How much of a ledger's short path is inertia, and how much only the small gain of its "
    "sub-updates?",
    (*PLANAR, *GPT),
    _report,
)
