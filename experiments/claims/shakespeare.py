"""The language model: parameters, quality, and the geometry of its path, at three sizes of effort.

`published` is the published training (days on two cores), `probe` the same stopped at step 1,200
(hours), `small` the quick preset (minutes), where only what does not depend on size is claimed.
"""

from __future__ import annotations

import math
from typing import Any

from integrator_zoo.claims import (
    Claim,
    Groups,
    Mean,
    Monotony,
    Range,
    Rank,
    Ratio,
    Request,
    near,
    values,
)
from integrator_zoo.intervals import Interval, mean

PLAIN, LEDGER, SPHERE, BOTH = "euler", "ledger", "ngpt-lite", "ngpt-ledger"
VARIANTS = (PLAIN, LEDGER, SPHERE, BOTH)
VOCABULARY, WIDTH = 80, 192

PARAMETERS: dict[str, int] = dict(
    zip(VARIANTS, (2_724_864, 2_724_864, 2_722_560, 2_722_560), strict=True)
)
BEST_LOSS: dict[str, float] = dict(zip(VARIANTS, (1.43296, 1.43516, 1.41978, 1.45562), strict=True))
PATH = {
    # at steps 0, 1,200, 6,000 and 12,000
    PLAIN: (116.25, 137.82, 142.69, 127.81),
    LEDGER: (18.67, 45.89, 52.9, 48.23),
    SPHERE: (90.89, 65.13, 61.1, 57.76),
    BOTH: (14.48, 27.36, 31.47, 31.58),
}
TURNING: dict[str, float] = dict(zip(VARIANTS, (74.88, 28.77, 97.77, 47.27), strict=True))
LOSS_AT_1250: dict[str, float] = dict(zip(VARIANTS, (1.7106, 1.6864, 1.6928, 1.7114), strict=True))
ANOTHER_CORPUS = (
    "The published corpus is Project Gutenberg's complete works (5,359,444 characters, 80 "
    "different ones); the default here is the plays alone (4,955,690 and 79), which pip can fetch. "
    "Losses are those of two different texts."
)


def published(rule: str, seeds: int = 3, **settings: Any) -> Request:
    return Request("shakespeare", rule, seeds, "published", settings)


def probe(rule: str) -> Request:
    return Request("shakespeare", rule, 1, "cpu-probe")


def small(rule: str) -> Request:
    return Request("shakespeare", rule, 1, "quick")


def untrained(rule: str) -> Request:
    return published(rule, stop_at=1)


def parameters_at_published_vocabulary(groups: Groups) -> Interval:
    """Parameters, with the embedding's and the head's rows for the characters that are missing."""
    found = [
        record.metrics["parameters"] + 2 * WIDTH * (VOCABULARY - record.facts["vocabulary"])
        for record in groups[0]
    ]
    return mean(found)


def path_over_training(groups: Groups) -> Interval:
    """Path length at the end of the training over that before its first step."""
    first = values(groups[0], "path_length_by_step", "0")
    return mean([b / a for a, b in zip(first, values(groups[0], "path_length"), strict=True)])


def _size(rule: str):
    yield Claim(
        f"gpt/parameters-{rule}",
        f"{rule}: parameters at a vocabulary of {VOCABULARY}",
        PARAMETERS[rule],
        PARAMETERS[rule],
        PARAMETERS[rule],
        "parameters: exactly",
        (untrained(rule),),
        parameters_at_published_vocabulary,
        ",.0f",
        effort="hours",
    )
    yield Claim(
        f"gpt/untrained-path-{rule}",
        f"{rule}, untrained: path length",
        PATH[rule][0],
        *near(PATH[rule][0], 0.05),
        "untrained paths: 5 %, means of three seeds on other text",
        (untrained(rule),),
        Mean("path_length_by_step", "0"),
        ".2f",
        effort="hours",
    )


def _probe(rule: str):
    yield Claim(
        f"gpt-probe/path-{rule}",
        f"{rule}: path length at step 1,200",
        PATH[rule][1],
        *near(PATH[rule][1], 0.15),
        "path: 15 %, one seed on another corpus",
        (probe(rule),),
        Mean("path_length"),
        ".1f",
        effort="hours",
    )
    yield Claim(
        f"gpt-probe/loss-{rule}",
        f"{rule}: validation loss near step 1,250, nats",
        LOSS_AT_1250[rule],
        LOSS_AT_1250[rule] - 0.12,
        LOSS_AT_1250[rule] + 0.12,
        "loss: 0.12 nats, for another corpus",
        (probe(rule),),
        Mean("final_val_loss"),
        ".3f",
        effort="hours",
        remark=ANOTHER_CORPUS,
    )


def _published(rule: str):
    rows = (
        ("loss", "best validation loss, nats", BEST_LOSS[rule], 0.07, "best_val_loss", ".3f"),
        ("path", "path length at the end", PATH[rule][3], 0.15, "path_length", ".1f"),
        ("turning", "turning angle, degrees", TURNING[rule], 0.1, "turning_angle_degrees", ".1f"),
    )
    for name, what, figure, reach, metric, form in rows:
        yield Claim(
            f"gpt-published/{name}-{rule}",
            f"{rule}: {what}",
            figure,
            *near(figure, reach),
            "7 % for a loss (another corpus), 15 % for a path, 10 % for an angle",
            (published(rule),),
            Mean(metric),
            form,
            effort="days",
        )


SHORT_SCHEDULE = (
    "How far training moves the small net's paths depends on its short schedule: at half the "
    "learning rate and twice the batch the plain net's path became 1.42 times as long, ngpt-lite's "
    "0.87 times. The published paths are those after 12,000 steps at that lower rate."
)


def _small(
    id: str, said: str, figure: float, low: float, high: float, requests, measure, form, remark=""
):
    return Claim(
        f"gpt/{id}",
        said,
        figure,
        low,
        high,
        "small net: the direction and rough size that the published figure, of a net of another "
        "size, has",
        requests,
        measure,
        form,
        remark=remark,
    )


_ALL = tuple(small(rule) for rule in VARIANTS)
_TWO = (small(LEDGER), small(PLAIN))
_SMALL = (
    _small("tie", "small net: best validation losses differ by, nats", 0.0358, 0, 0.2, _ALL,
           Range("best_val_loss"), ".3f"),
    _small("short-path", "small net: the ledger's path over the plain net's", 48.23 / 127.81,
           0, 0.5, _TWO, Ratio("path_length"), ".2f"),
    _small("small-turns", "small net: the ledger's turning angle over the plain net's",
           28.77 / 74.88, 0, 0.6, _TWO, Ratio("turning_angle_degrees"), ".2f"),
    _small("sphere-turns-most", "small net: place of ngpt-lite's turning angle among the four", 1,
           1, 1, (small(SPHERE), small(PLAIN), small(LEDGER), small(BOTH)),
           Rank("turning_angle_degrees"), ".0f"),
    _small("profile-ledger", "small net: the ledger's steps grow with depth, rank correlation", 1.0,
           0.9, 1.0, (small(LEDGER),), Monotony("step_length_by_sub_update"), ".2f"),
    _small("path-grows-ledger", "small net: the ledger's path after training over before",
           48.23 / 18.67, 1.15, math.inf, (small(LEDGER),), path_over_training, ".2f"),
    _small("path-stays-plain", "small net: the plain net's path after training over before",
           127.81 / 116.25, 0.7, 1.3, (small(PLAIN),), path_over_training, ".2f", SHORT_SCHEDULE),
    _small("sphere-path-shrinks", "small net: ngpt-lite's path after training over before",
           57.76 / 90.89, 0, 0.85, (small(SPHERE),), path_over_training, ".2f", SHORT_SCHEDULE),
)  # fmt: skip

CLAIMS = (
    *_SMALL,
    *(claim for rule in VARIANTS for claim in _size(rule)),
    *(claim for rule in VARIANTS for claim in _probe(rule)),
    Claim(
        "gpt-published/tie",
        "best validation losses of the four differ by, nats",
        0.0358,
        0,
        0.07,
        "twice the published difference",
        tuple(published(rule) for rule in VARIANTS),
        Range("best_val_loss"),
        ".3f",
        effort="days",
    ),
    *(claim for rule in VARIANTS for claim in _published(rule)),
)
