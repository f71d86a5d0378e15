"""What a check is, and what it finds."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any, Literal

from ..contract import Integrator
from ..errors import one_line, unknown

MINIMUM = 12
"""An integrator passes only if at least so many checks have run."""

Status = Literal["passed", "failed", "skipped", "expected"]


@dataclass(frozen=True)
class Measured:
    """What a check measured, beside its bound."""

    ok: bool
    measured: str
    bound: str
    declared: str = ""
    """What the integrator declares, where that is what is measured."""
    value: float | None = None
    """The figure as a number, for tables."""


@dataclass(frozen=True)
class Check:
    """One check: chosen by what an integrator declares, never by its name."""

    id: str
    why: str
    """Why it matters: one line."""
    run: Callable[[Subject], Measured]
    needs: tuple[str, ...]
    """Checks without which this one has no meaning; it is skipped where one of them failed."""
    unless: Callable[[Integrator], str]
    """Why it does not apply, from what the integrator declares; empty where it does."""


@dataclass(frozen=True)
class Finding:
    """The outcome of one check on one integrator."""

    id: str
    status: Status
    measured: str
    bound: str
    reason: str
    why: str
    value: float | None = None
    blocked: bool = False
    """Skipped only because a check that it needs failed."""

    def as_json(self) -> dict[str, Any]:
        """The row of `zoo check --json`."""
        return {
            "id": self.id,
            "status": self.status,
            "measured": self.measured or None,
            "bound": self.bound or None,
            "reason": self.reason or None,
            "why": self.why,
        }


CHECKS: dict[str, Check] = {}
"""Every check by its id, in the order in which they run."""


def check(
    id: str,
    why: str,
    *,
    needs: tuple[str, ...] = (),
    unless: Callable[[Integrator], str] = lambda rule: "",
) -> Callable[[Callable[[Subject], Measured]], Callable[[Subject], Measured]]:
    """Decorator: register a function of a `Subject` as a check."""

    def register(run: Callable[[Subject], Measured]) -> Callable[[Subject], Measured]:
        assert id not in CHECKS, id
        assert all(need in CHECKS for need in needs), id  # so there is an order to run them in
        CHECKS[id] = Check(id, why, run, needs, unless)
        return run

    return register


class Subject:
    """An integrator under examination. Each check runs once; its finding is kept."""

    def __init__(self, rule: Integrator) -> None:
        self.rule = rule
        self.traits = rule.traits
        self._findings: dict[str, Finding] = {}
        self._kept: dict[str, Any] = {}

    def once(self, what: str, make: Callable[[], Any]) -> Any:
        """Something that several checks look at, made at the first call."""
        if what not in self._kept:
            self._kept[what] = make()
        return self._kept[what]

    def finding(self, id: str) -> Finding:
        """What the check found, run now if it has not been."""
        if id not in CHECKS:
            raise unknown("check", id, CHECKS, "See: zoo check --list")
        if id not in self._findings:
            self._findings[id] = self._examine(CHECKS[id])
        return self._findings[id]

    def _examine(self, check: Check) -> Finding:
        def found(status: Status, reason: str = "", measured: Measured | None = None) -> Finding:
            figures = ("", "") if measured is None else (measured.measured, measured.bound)
            value = None if measured is None else measured.value
            return Finding(check.id, status, *figures, reason, check.why, value)

        if reason := check.unless(self.rule):
            return found("skipped", reason)
        for need in map(self.finding, check.needs):
            if need.status == "failed":
                return replace(found("skipped", f"needs {need.id}, which failed"), blocked=True)
            if need.blocked:
                return replace(need, id=check.id, why=check.why)
        try:
            measured = check.run(self)
        except KeyboardInterrupt:
            raise
        except Exception as error:
            return found("failed", one_line(error))
        if measured.ok:
            return found("passed", measured=measured)
        declared = f"declared {measured.declared}, " if measured.declared else ""
        reason = f"{declared}measured {measured.measured}, bound {measured.bound}"
        return found("failed", reason, measured)
