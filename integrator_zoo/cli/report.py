"""`zoo report`: one offline page about some runs."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from . import output
from .app import Plugin, app, registry_with


@app.command()
def report(
    runs: Annotated[
        list[Path], typer.Argument(help="Run folders, or folders that hold some, such as runs/.")
    ],
    out: Annotated[Path, typer.Option("-o", "--out", help="The page.", metavar="FILE")] = Path(
        "report.html"
    ),
    plugin: Plugin = None,
) -> None:
    """Write one HTML page about runs: table, pictures, explorer, how to reproduce. No network."""
    registry = registry_with(plugin, strict=False)
    from ..report import chapters, write_report
    from ..runs.found import find_runs

    found = find_runs(runs, output.note)
    page = write_report(chapters(found, registry), out, note=output.note)
    size = page.stat().st_size / 1e6
    output.print_line(f"report    {page}  ({len(found)} runs, {size:.1f} MB)")
