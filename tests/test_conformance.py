"""The conformance kit: the built-in integrators pass it, and it catches what it must catch."""

from __future__ import annotations

import subprocess
import sys

import jax
import numpy as np
import pytest
from conftest import ALL
from faults import FAULTS, Honest, Kick, Leapfrog

import integrator_zoo as zoo
from integrator_zoo.conformance import CHECKS, MINIMUM, Subject, check_integrator
from integrator_zoo.conformance.geometry import energy_band
from integrator_zoo.conformance.portrait import plane, stability

BUILT_IN = [zoo.get(name) for name in ALL]


def dear(rule):
    """Whether a rule is slow to compile: its full check belongs to the slow tests."""
    traits = rule.traits
    return traits.evaluations is None or traits.evaluations > 2 or "diffrax" in traits.reference


@zoo.parametrize_with_checks([rule for rule in BUILT_IN if not dear(rule)])
def test_built_in(integrator, check):
    check(integrator)


@pytest.mark.slow
@zoo.parametrize_with_checks([rule for rule in BUILT_IN if dear(rule)])
def test_built_in_that_compiles_slowly(integrator, check):
    check(integrator)


@pytest.mark.parametrize(("check", "faulty", "twin"), FAULTS, ids=[f[1].__name__ for f in FAULTS])
def test_a_planted_fault_is_caught(check, faulty, twin):
    finding = Subject(zoo.conformance.runner.instance(faulty)).finding(check)
    assert finding.status == "failed"
    assert finding.reason


@pytest.mark.parametrize(
    ("check", "twin"), sorted({(check, twin) for check, _, twin in FAULTS}, key=str),
    ids=lambda value: value if isinstance(value, str) else value.__name__,
)  # fmt: skip
def test_the_honest_twin_passes(check, twin):
    finding = subject_of(twin).finding(check)
    assert finding.status == "passed" or "declares" in finding.reason, finding.reason


_SUBJECTS: dict[type, Subject] = {}


def subject_of(cls):
    """One subject a class, so that its checks share what they measure."""
    return _SUBJECTS.setdefault(cls, Subject(cls()))


@pytest.mark.slow
@pytest.mark.parametrize(("check", "faulty", "twin"), FAULTS, ids=[f[1].__name__ for f in FAULTS])
def test_a_planted_fault_fails_no_other_check(check, faulty, twin):
    assert [finding.id for finding in check_integrator(faulty).of("failed")] == [check]
    jax.clear_caches()


@pytest.mark.slow
@pytest.mark.parametrize("twin", sorted({twin for _, _, twin in FAULTS}, key=str))
def test_an_honest_twin_passes_everything(twin):
    check_integrator(twin).raise_if_failed()
    jax.clear_caches()


def test_every_check_has_a_planted_fault():
    assert {check for check, _, _ in FAULTS} == set(CHECKS)
    assert len(FAULTS) >= 25


def test_a_lie_says_declared_measured_bound():
    faults = {cls.__name__: (check, cls) for check, cls, _ in FAULTS}
    for name, words in {
        "ClaimsFour": ("declared 4", "measured 2.0", "bound 3.8 to 4.2"),
        "PlainEuler": ("declared symplectic", "measured form changed by", "bound 1e-10"),
        "OnlyAlgebraic": ("declared inverse exact", "measured", "bound 0, every bit"),
    }.items():
        check, cls = faults[name]
        reason = Subject(cls()).finding(check).reason
        assert all(word in reason for word in words), reason


def test_a_plugin_that_declares_nothing_is_still_checked():
    @zoo.integrator("silent", equation="", reference="", order=None, evaluations=None)
    class Silent(zoo.Integrator):
        def step(self, state, field, at, params):
            return state + at.h * field(state)

    applying = [check for check in CHECKS.values() if not check.unless(Silent())]
    assert len(applying) >= MINIMUM
    cheap = ["hashable", "spec", "repr", "pure", "start", "jit", "equation", "reference"]
    report = check_integrator(Silent, only=cheap)
    assert report.counts["run"] == len(cheap)
    assert [finding.id for finding in report.of("failed")] == ["equation", "reference"]


def test_too_few_checks_do_not_pass():
    report = check_integrator(Honest, only=["hashable", "spec"])
    assert report.counts["run"] == 2
    assert not report.of("failed")
    with pytest.raises(AssertionError, match="only 2 checks ran, at least 12 must"):
        report.raise_if_failed()


def test_an_expected_failure_needs_a_reason_and_must_fail():
    known = check_integrator(FAULTS[-1][1], only=["table"], expected={"table": "known"})
    assert known.findings[0].status == "expected"
    stale = check_integrator(Honest, only=["table"], expected={"table": "known"})
    assert stale.findings[0].status == "failed"
    assert "but it passes" in stale.findings[0].reason
    with pytest.raises(zoo.ZooError, match="Did you mean 'table'"):
        check_integrator(Honest, expected={"tabel": "known"})
    with pytest.raises(zoo.ZooError, match="is not an integrator"):
        check_integrator(3)  # type: ignore[arg-type]


def test_the_energy_band_control_euler_drifts():
    """Control: without a symplectic step the hundred orbits are not survived."""
    assert not energy_band(Subject(zoo.get("euler"))).ok
    assert energy_band(Subject(Kick())).ok


def test_parametrize_as_a_third_party_uses_it(tmp_path):
    (tmp_path / "test_mine.py").write_text(
        "import integrator_zoo as zoo\n"
        "@zoo.integrator('mine', equation='x = F', reference='me', order=1)\n"
        "class Mine(zoo.Integrator):\n"
        "    def step(self, state, field, at, params):\n"
        "        return state + at.h * field(state)\n"
        "@zoo.parametrize_with_checks([Mine], expected={'mine': {'docstring': 'none yet'}})\n"
        "def test_mine(integrator, check):\n"
        "    check(integrator)\n"
    )
    chosen = "equation or docstring or hashable or table"
    done = subprocess.run(
        [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", "-k", chosen],
        capture_output=True, text=True, cwd=tmp_path,
    )  # fmt: skip
    assert "3 passed" in done.stdout, done.stdout
    assert "1 xfailed" in done.stdout


def test_checks_are_chosen_by_declarations_only():
    """A renamed rule gets the same checks."""
    renamed = zoo.integrator("euler-in-disguise", equation="", reference="", order=1)(
        type("Other", (Honest,), {"__module__": __name__})
    )
    for check in CHECKS.values():
        assert check.unless(renamed()) == check.unless(Honest())


def test_the_stability_region_is_the_known_one():
    """Euler: |1 + z| <= 1. Leapfrog keeps x'' = z x for z in [-4, 0] and loses z = 0.5."""
    real, imaginary = plane()
    radius = stability(Honest())
    assert np.allclose(radius, np.abs(1 + real + 1j * imaginary), atol=1e-12)
    near = np.argmin(np.abs(real + 1) + np.abs(imaginary))
    assert stability(Leapfrog()).ravel()[near] == pytest.approx(1, abs=1e-12)
    near = np.argmin(np.abs(real - 0.5) + np.abs(imaginary))
    assert stability(Leapfrog()).ravel()[near] > 1.5


def test_pictures_are_drawn(tmp_path):
    from integrator_zoo.figures.conformance import draw_all

    drawn = draw_all([zoo.get("ledger:mu=0.6"), zoo.get("leapfrog")], tmp_path)
    assert [path.name for path in drawn] == ["ledger_mu=0.6.png", "leapfrog.png", "stability.png"]
    for path in drawn:
        assert path.read_bytes().startswith(b"\x89PNG")
        assert path.stat().st_size > 20_000
