"""Run folders as a user names them: single ones, or folders that hold some."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path

from ..errors import ZooError
from .store import Record, read


def find_runs(
    paths: Sequence[Path], note: Callable[[str], None] = lambda line: None
) -> list[Record]:
    """The records of run folders, and of all run folders inside other folders.

    Args:
        paths: run folders, or folders that hold some.
        note: is told of a folder found inside another that cannot be read; it is left out.

    Raises:
        ZooError: a path is no folder, holds no run, or is a run that cannot be read.
    """
    found: dict[Path, Record] = {}
    for path in paths:
        if not path.is_dir():
            raise ZooError(f"{str(path)!r} is not a folder.", _GIVE)
        named = (path / "record.json").is_file()
        before = len(found)
        for folder in [path] if named else _inside(path):
            try:
                found[folder.resolve()] = read(folder)
            except (OSError, ValueError, KeyError) as error:
                if named:
                    raise ZooError(f"{str(path)!r} is not a complete run folder.", _GIVE) from None
                note(f"{str(folder)!r} is left out: it cannot be read ({type(error).__name__})")
        if len(found) == before and not named:
            raise ZooError(f"{str(path)!r} holds no run that can be read.", _GIVE)
    return list(found.values())


_GIVE = "Give run folders, or a folder that holds some, such as runs/"


def _inside(path: Path) -> Iterator[Path]:
    """The run folders below a folder, in order; hidden ones are half written."""
    for place, below, files in os.walk(path):
        below[:] = sorted(name for name in below if not name.startswith("."))
        if "record.json" in files:
            below.clear()
            yield Path(place)
