"""Checkpoints: complete or not there, checked when read, the one before as a fallback.

A checkpoint is the folder `step-00001200`: the arrays as orbax writes them, and `about.json` with
what was said about them and the SHA-256 of every file. It is written under another name and takes
its own by one rename, so that a kill at any moment leaves only complete ones.
"""

from __future__ import annotations

import hashlib
import json
import shutil
import tempfile
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import jax
import numpy as np

from ..errors import ZooError

KEPT = 2
"""Checkpoints kept: the last, and one to fall back to."""


def save(folder: Path, step: int, state: Any, about: Mapping[str, Any]) -> Path:
    """Write the checkpoint of a step; of those up to it, and of those after it, `KEPT` stay.

    There are some after it where a run that went further is repeated with an earlier stop.

    Args:
        folder: where the checkpoints of one run live.
        step: steps done.
        state: any pytree of arrays.
        about: plain JSON values: what a reader must know (vocabulary, settings).
    """
    folder.mkdir(parents=True, exist_ok=True)
    for leftover in folder.glob(".writing-*"):  # of a process that was killed
        shutil.rmtree(leftover, ignore_errors=True)
    made = Path(tempfile.mkdtemp(prefix=".writing-", dir=folder)).resolve()
    try:
        with _orbax() as checkpointer:
            checkpointer.save(made / "state", _named(jax.tree.map(np.asarray, state)))
        text = {"step": step, "about": dict(about), "files": _hashes(made / "state")}
        (made / "about.json").write_text(json.dumps(text, indent=1), encoding="utf-8")
        place = folder / f"step-{step:08}"
        shutil.rmtree(place, ignore_errors=True)
        made.rename(place)
    except OSError as error:
        raise ZooError(
            f"cannot write a checkpoint to {str(folder)!r}: {error.strerror or error}.",
            "Free some space, or give another folder: --out DIR",
        ) from None
    finally:
        shutil.rmtree(made, ignore_errors=True)
    saved = steps(folder)
    kept = {*saved[-KEPT:], *[one for one in saved if one <= step][-KEPT:]}
    for old in set(saved) - kept:
        shutil.rmtree(folder / f"step-{old:08}", ignore_errors=True)
    return place


def steps(folder: Path) -> list[int]:
    """The steps of which there are checkpoints, ascending."""
    return sorted(int(found.name[5:]) for found in folder.glob("step-*"))


def latest(
    folder: Path, like: Any, note: Callable[[str], None], most: int | None = None
) -> tuple[int, Any] | None:
    """The last checkpoint that is intact, as (step, state); None where there is none.

    Checkpoints after the step `most` are passed over.

    A damaged one is named through `note` in one line, and the one before it is read.

    Raises:
        ZooError: its arrays are not those of `like`; what differs is named.
    """
    for step in reversed(steps(folder)):
        if most is not None and step > most:
            continue
        place = folder / f"step-{step:08}"
        try:
            return step, load(place, like)
        except DamagedError as error:
            note(f"checkpoint {place.name} is damaged ({error}); going back to the one before")
    return None


class DamagedError(Exception):
    """A checkpoint whose files are not what was written."""


def about(place: Path) -> dict[str, Any]:
    """What was said about a checkpoint when it was saved, after checking its files.

    Raises:
        DamagedError: a file is missing, changed or cut short.
    """
    try:
        text = json.loads((place / "about.json").read_text("utf-8"))
        expected, found = text["files"], _hashes(place / "state")
    except (OSError, ValueError, KeyError) as error:
        raise DamagedError(f"about.json: {type(error).__name__}") from None
    for name, digest in expected.items():
        if found.get(name) != digest:
            raise DamagedError(
                f"state/{name} {'is cut or changed' if name in found else 'is gone'}"
            )
    return text["about"]


def load(place: Path, like: Any, only: str = "") -> Any:
    """The state of one checkpoint, in the structure of `like` (arrays or shapes), as numpy.

    `only` reads the part whose names begin so; `like` then is that part.

    Raises:
        DamagedError: a file is missing, changed or cut short.
        ZooError: the arrays are not those of `like`; the first that differs is named.
    """
    import orbax.checkpoint as ocp

    about(place)
    expected = _named(like)
    with _orbax() as checkpointer:
        stored = checkpointer.metadata(place.resolve() / "state").item_metadata
        here = {name: tuple(stored[name].shape) for name in stored if name.startswith(only)}
        wanted = {name: tuple(leaf.shape) for name, leaf in expected.items()}
        differs = [name for name in sorted(here | wanted) if here.get(name) != wanted.get(name)]
        if differs:
            name = differs[0]
            more = f" ({len(differs) - 1} more differ)" if len(differs) > 1 else ""
            raise ZooError(
                f"checkpoint {str(place)!r} is of another model: {name.removesuffix('.value')} is "
                f"{_shape(here.get(name))} there and {_shape(wanted.get(name))} here{more}.",
                "Give the settings it was made with, or start anew: --fresh",
            )
        arguments = {name: ocp.RestoreArgs(restore_type=np.ndarray) for name in expected}
        arrays = checkpointer.restore(
            place.resolve() / "state", item=dict(expected), restore_args=arguments, transforms={}
        )
    leaves = [arrays[name] for name in expected]
    return jax.tree.unflatten(jax.tree.structure(like), leaves)


def _shape(shape: tuple[int, ...] | None) -> str:
    return "absent" if shape is None else str(list(shape))


def _named(tree: Any) -> dict[str, Any]:
    """Leaves by path, as in 'params.stack.parts.0.qkv.kernel'."""
    leaves = jax.tree.leaves_with_path(tree)
    return {jax.tree_util.keystr(path, simple=True, separator="."): leaf for path, leaf in leaves}


def _orbax() -> Any:
    import logging

    import orbax.checkpoint as ocp

    logging.getLogger("absl").setLevel(logging.ERROR)
    return ocp.PyTreeCheckpointer()


def _hashes(folder: Path) -> dict[str, str]:
    """SHA-256 of every file under a folder, by relative path."""
    files = sorted(file for file in folder.rglob("*") if file.is_file())
    return {
        file.relative_to(folder).as_posix(): hashlib.sha256(file.read_bytes()).hexdigest()
        for file in files
    }
