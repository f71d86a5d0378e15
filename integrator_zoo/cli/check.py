"""`zoo check`: is an integrator what it declares to be? And `zoo docs`, the generated page."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from ..errors import ZooError
from . import output
from .app import AsJson, Plugin, Strict, app, registry_with

if TYPE_CHECKING:
    from ..conformance import Report
    from ..contract import Integrator
    from ..registry import Registry


@app.command("check")
def check_command(
    names: Annotated[
        list[str] | None,
        typer.Argument(help="Integrators (ledger:mu=0.6) or plugin files; all by default."),
    ] = None,
    as_json: AsJson = False,
    picture: Annotated[
        bool | None,
        typer.Option(help="Draw order, energy, stability, round trip; default: for one."),
    ] = None,
    out: Annotated[Path, typer.Option(help="Where pictures go.", metavar="DIR")] = Path("runs"),
    list_checks: Annotated[bool, typer.Option("--list", help="List the checks.")] = False,
    plugin: Plugin = None,
    strict: Strict = False,
) -> None:
    """Check integrators against what they declare. Exit code 1 where one fails."""
    if list_checks:
        _print_checks(as_json)
        return
    rules = _rules(registry_with(plugin, strict), names or [])
    from ..conformance import check_integrator

    reports: list[Report] = []
    with output.progress_bar() as progress:
        for done, rule in enumerate(rules):
            progress("check", done / len(rules), rule.spec)
            reports.append(check_integrator(rule))
    draw = len(rules) == 1 if picture is None else picture
    pictures: list[Path] = []
    if draw:
        from ..figures import conformance

        pictures = conformance.draw_all(rules, out / "check")
    passed = all(report.passed for report in reports)
    if as_json:
        shown = [report.as_json() for report in reports]
        drawn = {"pictures": [str(path) for path in pictures]}
        one = len(shown) == 1
        output.print_json((shown[0] if one else {"reports": shown, "passed": passed}) | drawn)
    else:
        _print_report(reports[0]) if len(reports) == 1 else _print_summary(reports)
        for path in pictures:
            output.print_line(f"picture   {path}")
    if not passed:
        raise typer.Exit(1)


@app.command("docs")
def docs_command(
    file: Annotated[Path, typer.Argument(help="The page to write.")] = Path("entry_points.md"),
    check: Annotated[
        bool, typer.Option("--check", help="Write nothing; exit code 1 where the page has drifted.")
    ] = False,
) -> None:
    """Write the method table of the plugin contract, with measured figures."""
    from ..conformance import table

    text = file.read_text(encoding="utf-8") if file.is_file() else ""
    made = table.filled(text)
    if not check:
        file.write_text(made, encoding="utf-8")
        output.print_line(f"written   {file}")
    elif drifted := table.drift(text, made):
        output.note(f"{file} has drifted: {drifted}  Type: zoo docs {file}")
        raise typer.Exit(1)


def _rules(registry: Registry, names: list[str]) -> list[Integrator]:
    """The integrators that names and files stand for."""
    if not names:
        return [entry.default for _, entry in sorted(registry.entries["integrator"].items())]
    rules: list[Any] = []
    for name in names:
        if not name.endswith(".py"):
            rules.append(registry.get("integrator", name))
            continue
        registry.load_file(name)
        if broken := [b for b in registry.broken if b.origin.distribution == str(Path(name))]:
            raise ZooError(f"{name}: {broken[0].reason}.", "Mend the file, then check it again.")
        held = [
            entry.default
            for entry in registry.entries["integrator"].values()
            if entry.origin.distribution == str(Path(name))
        ]
        if not held:
            raise ZooError(f"{name} holds no integrator.", "Decorate one with @integrator(...).")
        rules += held
    return rules


def _print_checks(as_json: bool) -> None:
    from ..conformance import CHECKS

    if as_json:
        output.print_json({"checks": [{"id": c.id, "why": c.why} for c in CHECKS.values()]})
        return
    table = output.new_table("check", "why it matters", left=("check", "why it matters"))
    for check in CHECKS.values():
        table.add_row(check.id, check.why)
    output.print_table(table)


def _print_report(report: Report) -> None:
    """One integrator: every check with its figure and bound."""
    words = ("check", "status", "measured", "bound, or reason")
    table = output.new_table(*words, left=words)
    for finding in report.findings:
        said = finding.bound if finding.status == "passed" else finding.reason
        table.add_row(finding.id, finding.status, finding.measured, said)
    output.print_table(table)
    output.print_line(f"\n{_verdict(report)}")
    for finding in report.of("failed"):
        output.print_line(f"{finding.id}: {finding.reason}. {finding.why}.")


def _print_summary(reports: list[Report]) -> None:
    """Many integrators: a row each, then what failed."""
    table = output.new_table("integrator", "run", "passed", "failed", "skipped", "seconds")
    for report in reports:
        counts = report.counts
        cells = (str(counts[name]) for name in ("run", "passed", "failed", "skipped"))
        table.add_row(report.integrator, *cells, f"{report.seconds:.1f}")
    output.print_table(table)
    for report in reports:
        for finding in report.of("failed"):
            output.print_line(f"{report.integrator}: {finding.id}: {finding.reason}")
    good = sum(report.passed for report in reports)
    seconds = sum(report.seconds for report in reports)
    output.print_line(f"\n{good} of {len(reports)} integrators pass, {seconds:.0f} s")


def _verdict(report: Report) -> str:
    counts = report.counts
    word = "passes" if report.passed else "fails"
    figures = ", ".join(f"{counts[name]} {name}" for name in ("passed", "failed", "skipped"))
    return (
        f"{report.integrator} {word}: {counts['run']} checks run, {figures}, {report.seconds:.1f} s"
    )
