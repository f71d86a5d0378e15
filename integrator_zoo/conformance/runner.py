"""Run the checks and say what they found; the same checks as pytest parameters."""

from __future__ import annotations

import time
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from ..contract import Integrator
from ..errors import ZooError, unknown
from .base import CHECKS, MINIMUM, Finding, Subject

Expected = Mapping[str, str]
"""Check ids that are known to fail, each with the reason."""


@dataclass(frozen=True)
class Report:
    """What all checks found on one integrator."""

    integrator: str
    findings: tuple[Finding, ...]
    seconds: float = 0.0

    def of(self, *statuses: str) -> list[Finding]:
        """The findings of some statuses."""
        return [f for f in self.findings if f.status in statuses]

    @property
    def counts(self) -> dict[str, int]:
        """How many ran, passed, failed, failed as expected, and were skipped."""
        counts = {s: len(self.of(s)) for s in ("passed", "failed", "expected", "skipped")}
        return {"run": len(self.findings) - counts["skipped"], **counts}

    @property
    def passed(self) -> bool:
        """Whether nothing failed unexpectedly, and enough was run to say so."""
        return not self.of("failed") and self.counts["run"] >= MINIMUM

    def raise_if_failed(self) -> Report:
        """The report itself.

        Raises:
            AssertionError: a check failed, or fewer than the minimum were run.
        """
        if not self.passed:
            lines = [f"{f.id}: {f.reason}" for f in self.of("failed")]
            run = self.counts["run"]
            lines += [] if run >= MINIMUM else [f"only {run} checks ran, at least {MINIMUM} must"]
            raise AssertionError(f"{self.integrator}: " + "\n".join(lines))
        return self

    def as_json(self) -> dict[str, Any]:
        """What `zoo check --json` prints."""
        return {
            "integrator": self.integrator,
            "checks": [finding.as_json() for finding in self.findings],
            "counts": self.counts,
            "seconds": self.seconds,
            "passed": self.passed,
        }

    def __str__(self) -> str:
        lines = [
            f"{f.id:<20} {f.status:<8} {f.reason if f.status != 'passed' else f.measured}"
            for f in self.findings
        ]
        said = ", ".join(f"{count} {name}" for name, count in self.counts.items())
        return "\n".join([f"{self.integrator}: {said}", *lines])


def check_integrator(
    integrator: Integrator | type[Integrator],
    *,
    expected: Expected | None = None,
    only: Sequence[str] | None = None,
) -> Report:
    """Examine an integrator: is it what it declares to be?

    Args:
        integrator: an instance, or a class that is examined at its defaults.
        expected: checks that are known to fail, each with the reason. One that passes after all
            counts as a failure, so that the list stays true.
        only: ids of the checks to run; all by default.

    Raises:
        ZooError: an unknown check id, or something that is not an integrator.
    """
    rule = instance(integrator)
    ids = list(CHECKS) if only is None else list(only)
    for id in [*ids, *(expected or {})]:
        if id not in CHECKS:
            raise unknown("check", id, CHECKS, "See: zoo check --list")
    subject, clock = Subject(rule), time.perf_counter()
    findings = [_expect(subject.finding(id), (expected or {}).get(id)) for id in ids]
    return Report(rule.spec, tuple(findings), time.perf_counter() - clock)


def instance(integrator: Any) -> Integrator:
    """The default instance of a class made with `@integrator`, or the instance itself."""
    cls = integrator if isinstance(integrator, type) else type(integrator)
    if not (issubclass(cls, Integrator) and vars(cls).get("name")):
        raise ZooError(
            f"{getattr(integrator, '__name__', integrator)!r} is not an integrator.",
            "Subclass Integrator and decorate with @integrator(...).",
        )
    if missing := sorted(getattr(cls, "__abstractmethods__", ())):
        raise ZooError(f"{cls.__name__} does not define {', '.join(missing)}().", "Write it.")
    return integrator() if isinstance(integrator, type) else integrator


def _expect(finding: Finding, reason: str | None) -> Finding:
    if reason is None or finding.status == "skipped":
        return finding
    if finding.status == "failed":
        return replace(finding, status="expected", reason=f"{reason} ({finding.reason})")
    return replace(finding, status="failed", reason=f"expected to fail ({reason}), but it passes")


def parametrize_with_checks(
    integrators: Iterable[Integrator | type[Integrator]],
    *,
    expected: Mapping[str, Expected] | None = None,
) -> Any:
    """A pytest mark: one test for each integrator and check that applies to it::

        @parametrize_with_checks([MyRule], expected={"my-rule": {"zero": "known, issue 7"}})
        def test_conformance(integrator, check):
            check(integrator)

    Checks are chosen by what an integrator declares. An expected failure is a strict xfail.

    Raises:
        ZooError: an unknown integrator or check in `expected`.
        AssertionError: fewer than the minimum of checks apply to an integrator.
    """
    import pytest

    rules = [instance(one) for one in integrators]
    for spec, reasons in (expected or {}).items():
        if spec not in [rule.spec for rule in rules]:
            raise unknown("integrator in expected", spec, [rule.spec for rule in rules])
        for id in reasons:
            if id not in CHECKS:
                raise unknown("check", id, CHECKS, "See: zoo check --list")
    cases = []
    for rule in rules:
        subject = Subject(rule)
        chosen = [check for check in CHECKS.values() if not check.unless(rule)]
        assert len(chosen) >= MINIMUM, f"{rule.spec}: only {len(chosen)} checks apply"
        for check in chosen:
            reason = (expected or {}).get(rule.spec, {}).get(check.id)
            marks = [] if reason is None else [pytest.mark.xfail(reason=reason, strict=True)]
            name = f"{rule.spec}-{check.id}"
            cases.append(pytest.param(rule, Examine(subject, check.id), marks=marks, id=name))
    return pytest.mark.parametrize(("integrator", "check"), cases)


@dataclass(frozen=True, eq=False)
class Examine:
    """One check of one integrator, as a test calls it."""

    subject: Subject
    id: str

    def __call__(self, integrator: Integrator) -> None:
        """Run the check on the integrator.

        Raises:
            AssertionError: it failed.
        """
        if integrator is not self.subject.rule:
            raise ZooError("the check belongs to another integrator.", "check(integrator)")
        finding = self.subject.finding(self.id)
        if finding.status == "skipped":
            import pytest

            pytest.skip(finding.reason)
        assert finding.status == "passed", f"{self.id}: {finding.reason}. {finding.why}."
