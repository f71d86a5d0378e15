"""Run folders: one folder a run, written by atomic rename, keyed by what was asked.

A folder holds `config.toml` (what was asked), `record.json` (what came out) and `arrays.npz`.
Nothing is pickled, written or read. JSON is strict: a number that is not finite is null.
"""

from __future__ import annotations

import contextlib
import dataclasses
import errno
import hashlib
import json
import math
import os
import re
import shutil
import tempfile
import time
import tomllib
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path
from typing import Any

import numpy as np
import tomli_w

from ..errors import ELSEWHERE, ZooError, unwritable

KEPT = f"{ELSEWHERE} Finished runs are kept."
FORMAT = 1
"""Version of the folder's layout; folders of another version are not found again."""


@dataclass
class Record:
    """A finished run, as read from its folder."""

    folder: Path
    config: Mapping[str, Any]
    data: Mapping[str, Any] = field(repr=False)

    @property
    def integrator(self) -> str:
        """The integrator's spec."""
        return self.config["integrator"]["spec"]

    @property
    def seed(self) -> int:
        return self.config["seed"]

    @property
    def status(self) -> str:
        return self.data["status"]

    @property
    def reason(self) -> str | None:
        return self.data["reason"]

    @property
    def metrics(self) -> Mapping[str, Any]:
        return self.data["metrics"]

    @property
    def facts(self) -> Mapping[str, Any]:
        return self.data["facts"]

    @cached_property
    def arrays(self) -> Mapping[str, np.ndarray]:
        """The recorded arrays, read when first asked for."""
        try:
            return self._load()
        except FileNotFoundError:  # another process may just be replacing the folder
            time.sleep(0.25)
            return self._load()

    def _load(self) -> Mapping[str, np.ndarray]:
        with np.load(self.folder / "arrays.npz", allow_pickle=False) as stored:
            return dict(stored)

    def row(self) -> dict[str, Any]:
        """What `--json` prints for this run."""
        return {
            "integrator": self.integrator,
            "seed": self.seed,
            "status": self.status,
            "reason": self.reason,
            "metrics": {**self.metrics, **self.data["seconds"]},
            "run": str(self.folder),
        }


class Store:
    """The run folders under one root, such as `runs/`."""

    def __init__(self, root: str | Path) -> None:
        self.root = Path(root)

    def check_writable(self) -> None:
        """Raises ZooError unless folders can be made and renamed under the root."""
        try:
            self.root.mkdir(parents=True, exist_ok=True)
            with tempfile.TemporaryDirectory(prefix=".probe-", dir=self.root):
                pass
        except OSError as error:
            raise ZooError(
                f"cannot write to {str(self.root)!r}: {error.strerror or error}.",
                "Give a folder you may write to: --out DIR",
            ) from None

    def folder(self, config: Mapping[str, Any]) -> Path:
        """Where the run of a config lives: experiment/integrator-seed-key."""
        slug = re.sub(r"[^\w.=,-]+", "-", config["integrator"]["spec"])[:60]
        return self.root / config["experiment"] / f"{slug}-s{config['seed']}-{key_of(config)}"

    def scratch(self, config: Mapping[str, Any]) -> Path:
        """Where a run keeps what must outlive an interruption."""
        return self.root / ".scratch" / f"{config['experiment']}-{key_of(config)}"

    def find(self, config: Mapping[str, Any]) -> Record | None:
        """The finished run of a config, or None; an unreadable folder counts as absent."""
        folder = self.folder(config)
        try:
            record = read(folder)
            intact = (folder / "arrays.npz").is_file()
        except (OSError, ValueError, KeyError):
            return None
        return record if intact and record.status in ("ok", "diverged") else None

    def write(
        self,
        config: Mapping[str, Any],
        data: Mapping[str, Any],
        arrays: Mapping[str, Any],
        folders: Mapping[str, Path] | None = None,
    ) -> Record:
        """Write a run folder in one rename; one that is there already is replaced.

        `folders` are copied into it, by their name there.

        Raises:
            ZooError: the disk is full or the folder cannot be written; nothing is left behind.
        """
        folder = self.folder(config)
        with replacing(folder) as made:
            (made / "config.toml").write_text(tomli_w.dumps(_toml(config)), encoding="utf-8")
            text = json.dumps(finite(data), indent=1, allow_nan=False)
            (made / "record.json").write_text(text + "\n", encoding="utf-8")
            stored: Any = {name: np.asarray(value) for name, value in arrays.items()}
            np.savez_compressed(made / "arrays.npz", **stored)
            for name, source in (folders or {}).items():
                shutil.copytree(source, made / name)
            record = read(made)
        return dataclasses.replace(record, folder=folder)


def read(folder: Path) -> Record:
    """The record in a folder.

    Raises:
        OSError, ValueError, KeyError: it is not a complete run folder of this format.
    """
    data = json.loads((folder / "record.json").read_text(encoding="utf-8"))
    if data["format"] != FORMAT:
        raise ValueError(f"{folder}: format {data['format']}, expected {FORMAT}")
    return Record(folder, tomllib.loads((folder / "config.toml").read_text("utf-8")), data)


def key_of(config: Mapping[str, Any]) -> str:
    """Eight hexadecimal digits that stand for all of a config."""
    text = json.dumps(config, sort_keys=True, allow_nan=False)
    return hashlib.sha256(text.encode()).hexdigest()[:8]


@contextlib.contextmanager
def replacing(folder: Path) -> Iterator[Path]:
    """A new folder beside `folder` that takes its place at the end; on any error it vanishes."""
    try:
        folder.parent.mkdir(parents=True, exist_ok=True)
        made = Path(tempfile.mkdtemp(prefix=f".{folder.name}-", dir=folder.parent))
    except OSError as error:
        raise unwritable(folder, error, KEPT) from None
    try:
        yield made
        made.chmod(0o755)
        _take_place(made, folder)
    except OSError as error:
        raise unwritable(folder, error, KEPT) from None
    finally:
        shutil.rmtree(made, ignore_errors=True)


def _take_place(made: Path, folder: Path) -> None:
    """Rename `made` to `folder`, also where other processes do the same at the same moment."""
    while True:
        try:
            made.rename(folder)
            return
        except OSError as error:
            if error.errno not in (errno.ENOTEMPTY, errno.EEXIST):
                raise
        old = Path(tempfile.mkdtemp(prefix=f"{made.name}-old-", dir=folder.parent))
        with contextlib.suppress(FileNotFoundError):  # another one has just moved it away
            folder.rename(old / folder.name)
        shutil.rmtree(old, ignore_errors=True)


def finite(value: Any) -> Any:
    """Plain JSON values: numpy scalars unwrapped, numbers that are not finite replaced by None."""
    if isinstance(value, Mapping):
        return {str(k): finite(v) for k, v in value.items()}
    if isinstance(value, (list, tuple)):
        return [finite(v) for v in value]
    if isinstance(value, (np.generic, np.ndarray)):
        return finite(value.tolist())
    if isinstance(value, float) and not math.isfinite(value):
        return None
    return os.fspath(value) if isinstance(value, Path) else value


def _toml(value: Any) -> Any:
    """TOML has no null: what is None is left out."""
    if isinstance(value, Mapping):
        return {k: _toml(v) for k, v in value.items() if v is not None}
    return value


def write_text(file: Path, text: str, hint: str = ELSEWHERE) -> None:
    """Write a text file in one rename.

    Raises:
        ZooError: it cannot be written.
    """
    try:
        file.parent.mkdir(parents=True, exist_ok=True)
        with tempfile.TemporaryDirectory(prefix=f".{file.stem}-", dir=file.parent) as made:
            written = Path(made) / file.name
            written.write_text(text, encoding="utf-8")
            written.replace(file)
    except OSError as error:
        raise unwritable(file, error, hint) from None
