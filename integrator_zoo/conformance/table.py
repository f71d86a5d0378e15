"""The generated parts of the plugin contract's page: the method table and the list of checks."""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import Any

import jax

from ..contract import Integrator
from ..discovery import OWN
from ..errors import ZooError
from ..registry import current
from . import probe
from .base import CHECKS, Subject

HEADINGS = (
    "integrator", "update", "order", "measured", "F/step", "shared", "state", "inverse",
    "round trip", "symplectic", "reads", "learns", "reference",
)  # fmt: skip
MEASURED = (HEADINGS.index("measured"), HEADINGS.index("round trip"))
ORDER_JITTER, TRIP_JITTER = 0.05, 30.0
"""How far measured figures may move between machines before the page counts as drifted."""


def measured(rule: Integrator) -> tuple[str, str]:
    """Order and round-trip error, measured now, as they are printed."""
    subject, inverse = Subject(rule), rule.traits.inverse
    slope = subject.finding("order").value
    trip = subject.finding(f"inverse-{inverse}").value if inverse != "none" else None
    return "-" if slope is None else f"{slope:.2f}", "-" if trip is None else f"{trip:.0e}"


def row(rule: Integrator, figures: tuple[str, str]) -> list[str]:
    """The row of one integrator."""
    traits = rule.traits
    state = rule.init(probe.start(), lambda x: x, probe.place(0))
    size = sum(leaf.size for leaf in jax.tree.leaves(state)) / probe.WIDTH
    return [
        f"`{rule.name}`",
        traits.equation,
        _or(traits.order, "to tolerance"),
        figures[0],
        _or(traits.evaluations, "varies"),
        _or(traits.evaluations_shared, "varies"),
        f"{size:g} D",
        traits.inverse if traits.inverse != "none" else "-",
        figures[1],
        "yes" if traits.symplectic else "-",
        traits.reads,
        ", ".join(rule.parameters(probe.WIDTH)) or "-",
        traits.reference,
    ]


def _or(value: Any, otherwise: str) -> str:
    return otherwise if value is None else str(value)


def markdown(headings: tuple[str, ...], lines: list[list[str]]) -> str:
    """A Markdown table; a bar inside a cell is escaped."""
    table = [list(headings), ["---"] * len(headings), *lines]
    escaped = [[cell.replace("|", "\\|") for cell in line] for line in table]
    return "\n".join(f"| {' | '.join(line)} |" for line in escaped)


def cells(line: str) -> list[str]:
    """The cells of one line of a Markdown table."""
    return re.split(r"(?<!\\) \| |^\| | \|$", line)[1:-1]


def written(page: str) -> dict[str, tuple[str, str]]:
    """The measured figures that a page holds, by integrator."""
    lines = [cells(line) for line in page.splitlines() if line.startswith("| `")]
    return {
        line[0].strip("`"): (line[MEASURED[0]], line[MEASURED[1]])
        for line in lines
        if len(line) == len(HEADINGS)
    }


def filled(page: str, measure: Callable[[Integrator], tuple[str, str]] = measured) -> str:
    """The page with its generated parts made anew: the built-in integrators, the checks.

    Raises:
        ZooError: the page has no place for one of them.
    """
    entries = sorted(current().entries["integrator"].items())
    rules = [entry.default for _, entry in entries if entry.origin.distribution == OWN]
    methods = [row(rule, measure(rule)) for rule in rules]
    checks = [[f"`{c.id}`", c.why, ", ".join(c.needs) or "-"] for c in CHECKS.values()]
    for part, text in (
        ("methods", markdown(HEADINGS, methods)),
        ("checks", markdown(("check", "why it matters", "needs"), checks)),
    ):
        begin, end = f"<!-- generated: {part} -->", f"<!-- end: {part} -->"
        if begin not in page or end not in page:
            raise ZooError(f"the page has no {begin} ... {end}.", "Add both lines to it.")
        head, rest = page.split(begin, 1)
        page = head + f"{begin}\n\n{text}\n\n{end}" + rest.split(end, 1)[1]
    return page


def drift(page: str, made: str) -> str:
    """The first line in which a page differs from what is made now; empty where none does.

    Measured orders may move by 0.05 and round-trip errors by a factor of 30.
    """
    old, new = page.splitlines(), made.splitlines()
    for one, other in zip(old, new, strict=False):
        if not _same(one, other):
            return f"{one[:70]!r} should be {other[:70]!r}."
    return "" if len(old) == len(new) else "another number of lines."


def _same(one: str, other: str) -> bool:
    if one == other:
        return True
    a, b = cells(one), cells(other)
    if len(a) != len(b) or len(a) != len(HEADINGS):
        return False
    for place, (x, y) in enumerate(zip(a, b, strict=True)):
        if x == y:
            continue
        if place not in MEASURED or "-" in (x, y):
            return False
        first, second = float(x), float(y)
        if place == MEASURED[0] and abs(first - second) > ORDER_JITTER:
            return False
        ratio = (first + 1e-17) / (second + 1e-17)
        if place == MEASURED[1] and not 1 / TRIP_JITTER <= ratio <= TRIP_JITTER:
            return False
    return True
