"""`zoo reproduce` and `zoo study`: published claims judged, questions answered, from records."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from ..claims import EFFORTS
from ..errors import unknown
from . import output
from .app import AsJson, Out, Plugin, Strict, app, registry_with, working

if TYPE_CHECKING:
    from ..claims import Judgement, Request

PAGE = Path("docs/reproduction.md")
NoRun = Annotated[bool, typer.Option("--no-run", help="Only read the records there are.")]


@app.command()
def reproduce(
    claims: Annotated[
        list[str] | None, typer.Argument(help="Claims or families of them; all by default.")
    ] = None,
    no_run: NoRun = False,
    effort: Annotated[
        str, typer.Option(help="Do runs that take minutes, hours or days.")
    ] = EFFORTS[0],
    page: Annotated[
        Path | None,
        typer.Option(help=f"The page to write; of all claims {PAGE}, else none.", metavar="FILE"),
    ] = None,
    out: Out = Path("runs"),
    as_json: AsJson = False,
    plugin: Plugin = None,
    strict: Strict = False,
) -> None:
    """Hold published claims against runs: claim, published, ours, verdict; and write the page."""
    registry_with(plugin, strict)
    from ..runs import Store
    from ..runs.reproduce import all_claims, counts, judge, select
    from ..runs.reproduce import page as page_of

    if effort not in EFFORTS:
        raise unknown("effort", effort, EFFORTS, f"One of: {', '.join(EFFORTS)}")
    known = all_claims()
    chosen = select(known, claims or [])
    if not no_run:
        affordable = EFFORTS[: EFFORTS.index(effort) + 1]
        _do([r for claim in chosen if claim.effort in affordable for r in claim.requests], out)
    found = judge(chosen, Store(out))
    page = page or (None if claims or as_json else PAGE)
    if page:
        _write(page, page_of(found if not claims else judge(list(known.values()), Store(out))))
    if as_json:
        output.print_json({"claims": [judgement.as_json() for judgement in found]})
        return
    _print_judgements(found)
    print(f"\n{counts(found)}" + (f"\npage      {page}" if page else ""))


@app.command()
def study(
    name: Annotated[
        str | None, typer.Argument(help="The study; without one, they are listed.")
    ] = None,
    no_run: NoRun = False,
    pages: Annotated[Path, typer.Option(help="Where its page goes.", metavar="DIR")] = Path(
        "docs/findings"
    ),
    out: Out = Path("runs"),
    plugin: Plugin = None,
    strict: Strict = False,
) -> None:
    """Answer a question by runs, and write its page with table and picture."""
    registry = registry_with(plugin, strict)
    entries = sorted(registry.entries["experiment"].items())
    studies = {s.name: s for _, entry in entries for s in entry.default.studies()}
    if name is None:
        for one in studies.values():
            output.print_line(f"{one.name:<12}{one.question}")
        return
    if name not in studies:
        raise unknown("study", name, studies, "See: zoo study")
    chosen = studies[name]
    if not no_run:
        _do(chosen.requests, out)
    from ..runs import Store
    from ..runs.reproduce import study_page

    pages.mkdir(parents=True, exist_ok=True)
    file = pages / f"{name}.md"
    _write(file, study_page(chosen, Store(out), pages))
    output.print_line(f"page      {file}")


def _do(requests: Sequence[Request], out: Path) -> None:
    """Do the runs that are missing."""
    from ..runs.reproduce import do, jobs_of

    experiments = {job.experiment for r in requests for job in jobs_of(r) if job.experiment}
    with working(experiments, out) as (store, progress):
        do(requests, store, progress, output.note)


def _write(file: Path, text: str) -> None:
    from ..runs.store import write_text

    write_text(file, text)


def _print_judgements(found: Sequence[Judgement]) -> None:
    table = output.new_table(
        "claim", "published", "ours", "holds within", "verdict", left=("claim", "ours", "verdict")
    )
    for judgement in found:
        claim = judgement.claim
        table.add_row(
            claim.statement,
            claim.shown(claim.published),
            judgement.ours(),
            claim.accepted(),
            judgement.verdict,
        )
    output.print_table(table)
    differing = [judgement.claim for judgement in found if judgement.verdict == "differs"]
    for remark in dict.fromkeys(claim.remark for claim in differing if claim.remark):
        print(f"\n{remark}")
