"""Checks of what a reader is told."""

from __future__ import annotations

import re

from .base import Measured, Subject, check


@check("equation", "the update is what a reader looks for first")
def equation(subject: Subject) -> Measured:
    text = subject.traits.equation
    good = "=" in text and re.search(r"\bF\b|\bflow\b", text) is not None
    return Measured(good, repr(text), "an equation in the field F")


@check("reference", "where the rule comes from")
def reference(subject: Subject) -> Measured:
    text = subject.traits.reference.strip()
    return Measured(bool(text), repr(text), "a source, or who wrote it and when")


@check("docstring", "zoo info shows it")
def docstring(subject: Subject) -> Measured:
    cls = type(subject.rule)
    text = vars(cls).get("__doc__") or ""
    made = text.startswith(f"{cls.__name__}(")  # what a dataclass writes by itself
    words = 0 if made else len(text.split())
    return Measured(words >= 5, f"{words} words", "at least 5", value=words)


@check("table", "one row of the method table, where rules are compared at a glance")
def table(subject: Subject) -> Measured:
    traits = subject.traits
    cells = {"equation": traits.equation, "reference": traits.reference}
    wrong = [
        f"{what} has {len(text)} characters" + " on several lines" * ("\n" in text)
        for what, text in cells.items()
        if len(text) > CELL or "\n" in text
    ]
    bound = f"one line of at most {CELL} characters"
    return Measured(not wrong, "; ".join(wrong) or "fits", bound)


CELL = 200
"""Most characters in a cell of the method table."""
