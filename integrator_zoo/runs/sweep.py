"""What a sweep leaves behind: the tidy table, the table of its cells, and pictures."""

from __future__ import annotations

import json
from collections.abc import Callable, Sequence
from pathlib import Path

from .perform import key_of_runs
from .store import Record, Store, finite, replacing
from .table import Cell, tidy

Draw = Callable[[Sequence[Record], Path], object]


def write_tables(
    records: Sequence[Record], cells: Sequence[Cell], store: Store, draw: Sequence[Draw] = ()
) -> list[Path]:
    """Write `runs.csv`, `runs.json` and `cells.csv` of a sweep in one folder; the files written.

    Args:
        draw: draw(records, folder) adds pictures of some of the records.

    Raises:
        ZooError: the folder cannot be written.
    """
    from pandas import DataFrame

    folder = store.root / f"sweep-{key_of_runs(records)}"
    with replacing(folder) as made:
        table = tidy(records)
        table.to_csv(made / "runs.csv", index=False)
        rows = [finite(row) for row in table.to_dict("records")]
        (made / "runs.json").write_text(json.dumps(rows, indent=1) + "\n", encoding="utf-8")
        DataFrame([cell.as_json() for cell in cells]).to_csv(made / "cells.csv", index=False)
        for add in draw:
            add(records, made)
    return sorted(path for path in folder.rglob("*") if path.suffix in (".csv", ".json", ".png"))
