"""Other settings of a rule: the values its options allow, beside the ones it has."""

from __future__ import annotations

from typing import Any

from ..contract import Integrator
from ..options import kind_of


def variants(rule: Integrator) -> list[Integrator]:
    """The rule itself, and one more for every other value that an option is tried at."""
    found = [rule]
    for key in rule.option_fields():
        found += [rule.with_options({key: value}) for value in _tries(rule, key)]
    return found


def _tries(rule: Integrator, key: str) -> list[Any]:
    kind, now = kind_of(type(rule), key), getattr(rule, key)
    meta = rule.option_fields()[key].metadata
    if kind is bool:
        return [not now]
    if kind is str:
        return [choice for choice in meta["choices"] or () if choice != now]
    low = meta["low"] if meta["low"] is not None else meta["above"]
    high = meta["high"] if meta["high"] is not None else meta["below"]
    if kind is int:
        ends = (low is None or now - 1 >= low), (high is None or now + 1 <= high)
        return [now + step for step, fits in zip((-1, 1), ends, strict=True) if fits]
    if low is not None and high is not None:
        tries = [low + share * (high - low) for share in (0.3, 0.6)]
    else:
        tries = [now / 2, 2 * now] if now else []
        tries = [t for t in tries if (low is None or t > low) and (high is None or t < high)]
    return [value for value in tries if value != now]
