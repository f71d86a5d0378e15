"""Rings, moons and spirals: the accuracy of every cell, the ceiling, turning, and how soon."""

from __future__ import annotations

import math

import numpy as np

from integrator_zoo.claims import Claim, FirstReach, Mean, Request, Share, near

PLAIN, LEDGER = "euler", "ledger"
NAMES = {PLAIN: "plain", LEDGER: "ledger"}
TEST_POINTS = 2048
SEEDS, MANY = 3, 32

ACCURACY = {
    # (data set, depth): accuracy of three seeds, plain and ledger (mu = 0.9)
    ("moons", 8): ((0.9995117, 0.9995117, 1.0), (1.0, 0.9995117, 1.0)),
    ("moons", 32): ((0.9980469, 0.9980469, 0.9995117), (1.0, 0.9995117, 1.0)),
    ("moons", 128): ((0.9980469, 0.9985352, 1.0), (1.0, 0.9990234, 1.0)),
    ("spirals", 8): ((0.9604492, 0.9760742, 0.9487305), (0.96875, 0.984375, 0.9765625)),
    ("spirals", 32): ((0.984375, 0.9736328, 0.9765625), (0.972168, 0.9775391, 0.9765625)),
    ("spirals", 128): ((0.9731445, 0.9287109, 0.9829102), (0.9833984, 0.9819336, 0.9770508)),
    ("rings", 8): ((1.0, 0.9980469, 1.0), (1.0, 1.0, 1.0)),
    ("rings", 32): ((0.9960938, 0.9975586, 0.9956055), (1.0, 1.0, 1.0)),
    ("rings", 128): ((0.9985352, 0.9975586, 0.9995117), (1.0, 1.0, 0.9985352)),
}
CELL_WHY = (
    "accuracies: three standard errors of the difference of two means of three seeds, with the "
    "published spread, at least two test points"
)
ROUNDED = 1 - 1e-9
"""Every test point right."""


def request(data: str, depth: int, integrator: str, seeds: int = SEEDS) -> Request:
    return Request(data, integrator, seeds, settings={"depth": depth})


def _cell(data: str, depth: int, integrator: str, seeds: tuple[float, ...]) -> Claim:
    middle, spread = float(np.mean(seeds)), float(np.std(seeds, ddof=1))
    reach = max(3 * spread * math.sqrt(2 / len(seeds)), 2 / TEST_POINTS)
    return Claim(
        f"{data}/accuracy-{NAMES[integrator]}-{depth}",
        f"{data}, depth {depth}, {NAMES[integrator]}: test accuracy, %",
        middle,
        middle - reach,
        min(1.0, middle + reach),
        CELL_WHY,
        (request(data, depth, integrator),),
        Mean("test_accuracy"),
        ".2f",
        100,
    )


def _ceiling(
    depth: int, integrator: str, seeds: int, published: float, low: float, high: float, said: str
) -> Claim:
    name = NAMES[integrator]
    return Claim(
        f"rings/ceiling-{name}-{depth}-{seeds}-seeds",
        f"rings, depth {depth}: the {name} net {said}; share of {seeds} seeds at 100 %",
        published,
        low,
        high,
        "ceiling: the words of the claim, as a share of seeds; `nearly always` is at least 60 %",
        (request("rings", depth, integrator, seeds),),
        Share("test_accuracy", ROUNDED),
        ".0f",
        100,
        effort="minutes" if seeds == SEEDS else "hours",
    )


def _ceilings(seeds: int):
    least = 1 / seeds
    yield _ceiling(8, PLAIN, seeds, 2 / 3, least, 1, "can reach 100 %")
    yield _ceiling(32, PLAIN, seeds, 0, 0, 0, "never reaches 100 %")
    yield _ceiling(128, PLAIN, seeds, 0, 0, 0, "never reaches 100 %")
    yield _ceiling(8, LEDGER, seeds, 1, 1, 1, "always reaches 100 %")
    yield _ceiling(32, LEDGER, seeds, 1, 1, 1, "always reaches 100 %")
    yield _ceiling(128, LEDGER, seeds, 2 / 3, 0.6, 1, "nearly always reaches 100 %")


def _turning(integrator: str, published: float) -> Claim:
    return Claim(
        f"rings/turning-{NAMES[integrator]}",
        f"rings, depth 32, {NAMES[integrator]}: turning angle, degrees a layer",
        published,
        *near(published, 0.25),
        "turning: a quarter, since one seed was published and seeds differ by about a tenth",
        (request("rings", 32, integrator),),
        Mean("turning_angle_degrees"),
        ".1f",
    )


SOON = Claim(
    "rings/within-50-steps",
    "rings, depth 32, ledger: step at which accuracy first is 100 %",
    50,
    0,
    50,
    "early: within the first 50 steps, as the claim says",
    (request("rings", 32, LEDGER),),
    FirstReach("accuracy_by_step", "curve_steps", ROUNDED),
    ".0f",
    remark="The published text says that the ledger's accuracy is pinned at 100 % within 50 steps; "
    "accuracy is recorded here every five steps up to step 100.",
)

CLAIMS = (
    *(
        _cell(data, depth, integrator, seeds)
        for (data, depth), both in ACCURACY.items()
        for integrator, seeds in zip((PLAIN, LEDGER), both, strict=True)
    ),
    *_ceilings(SEEDS),
    *_ceilings(MANY),
    _turning(PLAIN, 52.88774),
    _turning(LEDGER, 9.629123),
    SOON,
)
