"""Hold published claims against run folders: find or do their runs, judge, write the page."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Sequence
from pathlib import Path
from typing import Any

from ..claims import Claim, Groups, Judgement, Request, Study
from ..errors import ZooError, unknown
from ..lab import Experiment, Job, Progress
from ..registry import current
from .perform import config_of, perform_jobs
from .store import Record, Store


def all_claims() -> dict[str, Claim]:
    """The claims of every registered experiment, by id."""
    entries = current().entries["experiment"]
    return {claim.id: claim for _, e in sorted(entries.items()) for claim in e.default.claims()}


def select(claims: dict[str, Claim], wanted: Sequence[str]) -> list[Claim]:
    """The claims whose id is one of `wanted` or begins with one; all where none is named.

    Raises:
        ZooError: a name fits no claim.
    """
    for name in wanted:
        if not any(_fits(id, name) for id in claims):
            families = sorted({id.split("/")[0] for id in claims})
            raise unknown("claim", name, [*families, *claims], f"Families: {', '.join(families)}")
    return [c for id, c in claims.items() if not wanted or any(_fits(id, n) for n in wanted)]


def _fits(id: str, name: str) -> bool:
    return id == name or id.startswith(name.rstrip("/") + "/")


def jobs_of(request: Request) -> list[Job]:
    """The runs of a request.

    Raises:
        ZooError: the experiment, integrator or a setting is unknown here.
    """
    experiment: Experiment = current().get("experiment", request.experiment)
    if request.preset:
        experiment = experiment.with_options(experiment.presets[request.preset])
    experiment = experiment.with_options(request.settings)
    rule = current().get("integrator", request.integrator)
    return [Job(rule, seed, experiment=experiment) for seed in range(request.seeds)]


def find(requests: Iterable[Request], store: Store) -> list[list[Record]] | None:
    """The records of each request; None where one is missing."""
    groups: list[list[Record]] = []
    for request in requests:
        jobs = jobs_of(request)
        found = [store.find(config_of(job.experiment, job)) for job in jobs]  # type: ignore[arg-type]
        if None in found:
            return None
        groups.append([record for record in found if record is not None])
    return groups


def do(
    requests: Iterable[Request],
    store: Store,
    progress: Progress = lambda what, share, words: None,
    note: Callable[[str], None] = lambda line: None,
) -> None:
    """Do all runs of the requests that are not in the store, those of one kin together."""
    jobs = dict.fromkeys(job for request in requests for job in jobs_of(request))
    perform_jobs(list(jobs), store, progress=progress, note=note)


def judge(claims: Sequence[Claim], store: Store) -> list[Judgement]:
    """The verdict on each claim from the records there are."""
    cache: dict[tuple[Request, ...], Groups | None] = {}
    found = []
    for claim in claims:
        if claim.requests not in cache:
            cache[claim.requests] = find(claim.requests, store)
        found.append(claim.judge(cache[claim.requests]))
    return found


def study_page(study: Study, store: Store, folder: Path) -> str:
    """The page of a study, as Markdown; its pictures are drawn into the folder.

    Raises:
        ZooError: a run of it is missing.
    """
    groups = find(study.requests, store)
    if groups is None:
        raise ZooError(
            f"study {study.name}: not all of its runs are in {str(store.root)!r}.",
            f"Do them: zoo study {study.name}",
        )
    head = [f"# {study.title}", "", study.question, ""]
    foot = ["", f"Written by `zoo study {study.name}` from {sum(map(len, groups))} run records."]
    return "\n".join([*head, *study.report(groups, folder), *foot]) + "\n"


def counts(judgements: Sequence[Judgement]) -> str:
    """As `40 hold, 3 differ, 8 not run`."""
    number = Counter(judgement.verdict for judgement in judgements)
    words = {"holds": "hold", "differs": "differ", "not run": "not run"}
    return ", ".join(f"{number[verdict]} {word}" for verdict, word in words.items())


def page(judgements: Sequence[Judgement]) -> str:
    """The page of all claims, as Markdown."""
    lines = [
        "# Reproduction",
        "",
        "Written by `zoo reproduce` from run records. The published figures are those of three "
        "posts of July 2026 (skip connections with inertia; transformers with a velocity ledger; "
        "a velocity ledger for transformers) and their result files. Each claim is one, with "
        "bounds that were set beforehand; it *holds* where the measured number lies within them. "
        "Intervals are 95 % (bootstrap over seeds, exact binomial for shares), or the range of "
        "all seeds where these are few.",
        "",
        f"**{len(judgements)} claims: {counts(judgements)}.**",
    ]
    families: dict[str, list[Judgement]] = {}
    for judgement in judgements:
        families.setdefault(judgement.claim.id.split("/")[0], []).append(judgement)
    for family, members in families.items():
        rows = [
            (m.claim.statement, m.claim.shown(m.claim.published), m.ours(), m.claim.accepted(),
             f"**{m.verdict}**" if m.verdict == "differs" else m.verdict)
            for m in members
        ]  # fmt: skip
        lines += ["", f"## {family.capitalize()}", ""]
        lines += markdown_table(("claim", "published", "ours", "holds within", "verdict"), rows)
        reasons = dict.fromkeys(m.claim.why for m in members)
        lines += ["", f"Bounds: {'; '.join(reasons)}."]
        remarks = dict.fromkeys(m.claim.remark for m in members if m.claim.remark)
        lines += [line for remark in remarks for line in ("", remark)]
        missing = [m.claim for m in members if m.verdict == "not run"]
        if missing:
            commands = dict.fromkeys(r.command() for claim in missing for r in claim.requests)
            lines += ["", "Not run here; these do it:", "", "```text", *commands, "```"]
    return "\n".join(lines) + "\n"


def markdown_table(headings: Sequence[str], rows: Sequence[Sequence[Any]]) -> list[str]:
    """The lines of a Markdown table; a bar in a cell is escaped."""
    cells = [[str(cell).replace("|", "\\|") for cell in row] for row in rows]
    return [
        "| " + " | ".join(headings) + " |",
        "|" + "---|" * len(headings),
        *("| " + " | ".join(row) + " |" for row in cells),
    ]
