"""The friction dial: the ledger's memory mu against accuracy, turning, path and rewind error."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import numpy as np

from integrator_zoo.claims import Groups, Request, Study, values
from integrator_zoo.intervals import mean

from .ceiling import ROUNDED

DIAL = (0.0, 0.3, 0.6, 0.8, 0.9, 0.99)
TRAINED = tuple(Request("rings", f"ledger:mu={mu:g}", 3) for mu in DIAL)
REWOUND = tuple(Request("rewind", f"ledger:mu={mu:g}") for mu in DIAL[1:])  # mu = 0 has no inverse
COLUMNS = {
    "test accuracy, %": ("test_accuracy", 100, ".2f"),
    "turning, degrees a layer": ("turning_angle_degrees", 1, ".1f"),
    "path length": ("path_length", 1, ".1f"),
}
ERROR = "rewind error, 32-bit"


def _report(groups: Groups, folder: Path) -> Sequence[str]:
    from integrator_zoo.figures import studies, style
    from integrator_zoo.runs.reproduce import markdown_table

    trained, rewound = groups[: len(DIAL)], groups[len(DIAL) :]
    curves: dict[str, studies.Curve] = {
        name: (DIAL, [_spread(np.array(values(group, metric)) * scale) for group in trained])
        for name, (metric, scale, _) in COLUMNS.items()
    }
    errors = [values(group, "rewind_error_float32")[0] for group in rewound]
    curves[ERROR] = (DIAL[1:], [(error, error, error) for error in errors])
    with style.theme():
        picture = studies.dial(curves, "mu, memory of the velocity", [ERROR])
        style.save(picture, folder / "friction", "dial")
    shown = dict(zip(DIAL[1:], (f"{error:.2g}" for error in errors), strict=True))
    rows = [
        (
            f"{mu:g}",
            *(
                mean(values(group, metric)).show(form, scale)
                for metric, scale, form in COLUMNS.values()
            ),
            shown.get(mu, "not invertible"),
        )
        for mu, group in zip(DIAL, trained, strict=True)
    ]  # fmt: skip
    turns = [float(np.mean(values(group, "turning_angle_degrees"))) for group in trained]
    perfect = [
        f"{mu:g}"
        for mu, group in zip(DIAL, trained, strict=True)
        if min(values(group, "test_accuracy")) >= ROUNDED
    ]
    return [
        "Rings at depth 32, three seeds; the rewind error is the largest |x0 recovered - x0| of a "
        "trained net run backward in 32-bit.",
        "",
        *markdown_table(("mu", *COLUMNS, ERROR), rows),
        "",
        "![accuracy, turning, path and rewind error against mu](friction/dial.png)",
        "",
        f"**From mu = 0 to {DIAL[-1]:g} the turning falls from {turns[0]:.0f} to {turns[-1]:.1f} "
        f"degrees a layer; every seed is at 100 % at mu = {', '.join(perfect) or 'none'}; the "
        f"error of a rewind falls from {errors[0]:.1g} at mu = {DIAL[1]:g} to {errors[-1]:.1g}.**",
    ]


def _spread(found: np.ndarray) -> tuple[float, float, float]:
    return float(found.mean()), float(found.min()), float(found.max())


FRICTION = Study(
    "friction",
    "The friction dial",
    "What does the memory of the velocity change, from none to almost all?",
    (*TRAINED, *REWOUND),
    _report,
)
