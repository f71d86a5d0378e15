"""What the command prints: tables and JSON on stdout, progress and notes on stderr."""

from __future__ import annotations

import dataclasses
import json
import os
import sys
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any, NoReturn

from ..options import bounds_text, format_value, kind_of
from ..registry import KINDS

if TYPE_CHECKING:
    from rich.table import Table

    from ..lab import Experiment, Progress
    from ..registry import Entry, Registry
    from ..runs import Record

WIDE = 200
"""Columns of a table that goes to a file or a pipe."""


def note(line: str) -> None:
    """One line for the user on stderr."""
    print(f"zoo: {line}", file=sys.stderr, flush=True)


INTERRUPTED = 130
"""Exit code of a command ended by Ctrl-C, as shells have it."""


def leave(line: str, code: int) -> NoReturn:
    """Say one line and end at once: a worker thread that still compiles is not waited for."""
    note(line)
    sys.stdout.flush()
    os._exit(code)


def print_line(line: str) -> None:
    print(line)


def print_json(value: Any) -> None:
    """Strict JSON on stdout: what is not finite is null."""
    from ..runs.store import finite

    print(json.dumps(finite(value), indent=1, allow_nan=False))


def listing(registry: Registry) -> tuple[list[dict[str, Any]], list[dict[str, Any]]]:
    """The rows of `zoo list`."""
    rows: dict[str, list[dict[str, Any]]] = {}
    for kind in KINDS:
        rows[kind] = [
            {"name": name, "distribution": e.origin.distribution, "version": e.origin.version}
            | (
                {"traits": dataclasses.asdict(e.default.traits)}
                if kind == "integrator"
                else {"summary": e.default.summary}
            )
            for name, e in sorted(registry.entries[kind].items())
        ]
    return rows["integrator"], rows["experiment"]


def print_listing(integrators: Sequence[Any], experiments: Sequence[Any]) -> None:
    """The tables of `zoo list`."""
    headings = ("integrator", "order", "F/step", "shared", "integrates", "inverse")
    table = new_table(*headings, left=("integrator", "update", "from"))
    for row in integrators:
        traits = row["traits"]
        shown = ("varies" if v is None else str(v) for v in _orders(traits))
        dynamics = "x' = F" if traits["dynamics"] == "first" else "x'' = F"
        source = f"{row['distribution']} {row['version']}".strip()
        table.add_row(row["name"], *shown, dynamics, traits["inverse"], traits["equation"], source)
    print_table(table)
    print()
    table = new_table("experiment", left=("experiment", "what it is", "from"))
    for row in experiments:
        source = f"{row['distribution']} {row['version']}".strip()
        table.add_row(row["name"], row["summary"], source)
    print_table(table)
    print("\nmore      zoo info NAME")


def _orders(traits: Mapping[str, Any]) -> tuple[Any, Any, Any]:
    return traits["order"], traits["evaluations"], traits["evaluations_shared"]


def facts(kind: str, entry: Entry) -> dict[str, Any]:
    """What `zoo info` knows of one name."""
    thing = entry.default
    cls = type(thing)
    options = [
        {
            "name": key,
            "type": kind_of(cls, key).__name__,
            "default": field.default,
            "range": bounds_text(field),
            "help": field.metadata["help"],
        }
        for key, field in cls.option_fields().items()
    ]
    about = {
        "name": thing.name,
        "kind": kind,
        "about": (cls.__doc__ or "").strip(),
        "origin": str(entry.origin),
        "options": options,
    }
    if kind == "integrator":
        return about | {"traits": dataclasses.asdict(thing.traits)}
    return about | {
        "summary": thing.summary,
        "presets": thing.presets,
        "default_integrators": thing.default_specs,
    }


def print_facts(about: Mapping[str, Any]) -> None:
    """The page of `zoo info`."""
    import inspect

    print(f"{about['name']}  ({about['kind']}, from {about['origin']})\n")
    print(inspect.cleandoc(about["about"]) + "\n")
    rows: list[tuple[str, str]] = []
    if "traits" in about:
        for key, value in about["traits"].items():
            if key == "reduces_to":
                value = ", ".join(f"{options} is {spec}" for options, spec in value) or None
            rows.append((key.replace("_", " "), _plain(value)))
    else:
        rows.append(("compares", ", ".join(about["default_integrators"])))
        rows += [
            (f"--preset {name}", ", ".join(f"{k}={v}" for k, v in changes.items()) or "defaults")
            for name, changes in about["presets"].items()
        ]
    width = max(len(label) for label, _ in rows) + 2
    for label, text in rows:
        print(f"{label:<{width}}{text}")
    print("\noptions" if about["options"] else "\nno options")
    for option in about["options"]:
        where = f" in {option['range']}" if option["range"] else ""
        default = format_value(option["default"])
        print(f"  {option['name']} = {default}  {option['type']}{where}: {option['help']}")


def _plain(value: Any) -> str:
    if isinstance(value, bool):
        return "yes" if value else "no"
    return "-" if value is None else str(value)


def comparison(experiment: Experiment, records: Sequence[Record]) -> dict[str, Any]:
    """What `--json` prints for runs."""
    summary = {"experiment": experiment.name, "rows": [record.row() for record in records]}
    pairs = experiment.pairs(records)
    return summary | ({"pairs": pairs} if pairs else {})


def print_comparison(
    experiment: Experiment, records: Sequence[Record], summary: Mapping[str, Any]
) -> None:
    """The table of `zoo compare`: a row an integrator, means over its seeds."""
    from ..report.comparison import UNEQUAL, headings, remarks, rows

    seeds = len({record.seed for record in records})
    device, devices = (records[0].facts.get(key) for key in ("device", "devices"))
    where = f", {devices} {device} device{'s' * (devices > 1)}" if device and devices else ""
    counted = f", {seeds} seed{'s' * (seeds > 1)}" if experiment.random else ""
    print(f"{experiment.headline()}{counted}{where}\n")
    found = rows(experiment, records)
    table = new_table("integrator", *headings(experiment))
    for row in found:
        name = row.spec if row.equal else f"{row.spec} *"
        table.add_row(name, *(cell.text for cell in row.cells))
    print_table(table)
    if not all(row.equal for row in found):
        print(f"* {UNEQUAL}")
    for metric, values in summary.get("pairs", {}).items():
        if 0 < len(values) <= 6:
            shown = ", ".join(f"{pair} {value:.4g}" for pair, value in values.items())
            print(f"{metric.replace('_', ' ')}: {shown}")
    for remark in remarks(records):
        print(remark)
    print(f"\nruns      {records[0].folder.parent}")
    for path in summary["pictures"]:
        print(f"picture   {path}")
    if summary.get("report"):
        print(f"report    {summary['report']}")


def print_record(experiment: Experiment, record: Record) -> None:
    """The page of `zoo run`."""
    print(f"{experiment.headline()}\n{record.integrator}, seed {record.seed}: {record.status}")
    if record.reason:
        print(record.reason)
    width = max((len(name) for name in record.metrics), default=0) + 2
    for name, value in {**record.metrics, **record.data["seconds"]}.items():
        print(f"  {name:<{width}}{_shown(value)}")
    print(f"run       {record.folder}")


def _shown(value: Any) -> str:
    """A metric: a number, or numbers by step."""
    if isinstance(value, dict):
        return ", ".join(f"{_shown(part)} at {key}" for key, part in value.items())
    return "-" if value is None else format(value, ".6g")


def new_table(*headings: str, left: Sequence[str] = ("integrator",)) -> Table:
    """A plain table; the columns of words are aligned left, those of numbers right."""
    from rich.table import Table

    table = Table(box=None, pad_edge=False, header_style="bold")
    for i, heading in enumerate(dict.fromkeys([*headings, *left])):
        # a narrow terminal folds numbers rather than cutting them; the name stays whole
        justify = "left" if heading in left else "right"
        table.add_column(heading, justify=justify, no_wrap=i == 0, overflow="fold")
    return table


def print_table(table: Table) -> None:
    """Print a table; names are text, never markup."""
    from rich.console import Console
    from rich.text import Text

    for column in table.columns:
        column._cells = [Text(cell) if isinstance(cell, str) else cell for cell in column._cells]
    Console(width=None if sys.stdout.isatty() else WIDE, highlight=False).print(table)


def _left(seconds: float | None) -> str:
    """Time left in few words; nothing where it is not known, or hardly any."""
    if seconds is None or seconds < 5:
        return ""
    return f", about {f'{seconds / 60:.0f} min' if seconds > 90 else f'{seconds:.0f} s'} left"


@contextmanager
def progress_bar() -> Iterator[Progress]:
    """A progress bar on a terminal; elsewhere a line every ten seconds. Both on stderr."""
    if sys.stderr.isatty():
        from rich.console import Console
        from rich.progress import Progress as Bar

        with Bar(console=Console(stderr=True), transient=True) as bar:
            task = bar.add_task("starting", total=1.0)
            yield lambda what, share, words: bar.update(
                task, completed=share, description=f"{what}: {words}".replace("[", "\\[")
            )
        return
    start = last = time.monotonic()

    def line(what: str, share: float, words: str) -> None:
        nonlocal last
        now = time.monotonic()
        if now - last >= 10:
            last = now
            left = (now - start) * (1 - share) / share if share > 0.01 else None
            note(f"{share:4.0%}  {what}: {words}{_left(left)}")

    yield line
